"""Devices: where a tensor's elements live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._lib import constants
from .errors import DeviceError

if TYPE_CHECKING:
    from ._handle import Handle

_TYPES = {"cpu": constants["CPU"], "cuda": constants["CUDA"]}


class device:  # noqa: N801  (PyTorch's name)
    """A device by name: ``device("cpu")``, ``device("cuda:1")``; ``device("cuda")`` is the current CUDA device.

    >>> norch.device("cuda", 1)
    device(type='cuda', index=1)

    In a with statement it is where new tensors stand, as after set_default_device().

    >>> with norch.device("cpu"):
    ...     norch.zeros(1).device
    device(type='cpu')
    """

    __slots__ = ("code", "index", "type")

    def __init__(self, type: str | int | device, index: int | None = None):  # noqa: A002
        if isinstance(type, int) and not isinstance(type, bool):  # a bare number is a CUDA device
            type = f"cuda:{type}"  # noqa: A001
        if isinstance(type, device):
            index = type.index if index is None else index
            type = type.type  # noqa: A001
        name, colon, number = str(type).partition(":")
        if colon:
            if not number.isdecimal() or index is not None:
                raise DeviceError(f"{type!r} names no device; write it like 'cpu' or 'cuda:0'")
            index = int(number)
        if index is not None and (not isinstance(index, int) or index < 0):
            raise DeviceError(f"{index!r} is no number of a device; they count from 0")
        if name not in _TYPES:
            raise DeviceError(f"{name!r} is no device that norch knows; there are 'cpu' and 'cuda'")
        if name == "cpu" and index not in (None, 0):
            raise DeviceError(f"cpu:{index} does not exist; there is one CPU device")
        self.type: str = name
        self.index: int | None = index
        self.code: int = _TYPES[name]

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (str(self),)

    def __enter__(self) -> device:
        _defaults_before.append(current.default)
        set_default_device(self)
        return self

    def __exit__(self, *error: Any) -> None:
        current.default = _defaults_before.pop()


CPU = device("cpu")
_cuda_devices: list[device] = []


def cuda_device(index: int) -> device:
    """The CUDA device of a number, one object for each."""
    while len(_cuda_devices) <= index:
        _cuda_devices.append(device("cuda", len(_cuda_devices)))
    return _cuda_devices[index]


def device_of(x: Handle) -> device:
    """Where the elements of a tensor live, or would, if it has a shape only."""
    return CPU if x._device_type == CPU.code else cuda_device(x._device_index)


class _Current:
    """The CUDA device that "cuda" stands for, and the device of tensors made without one."""

    cuda: int = 0
    default: device = CPU


current = _Current()
_defaults_before: list[device] = []  # of the with statements under way


def place(wanted: Any) -> tuple[int, int]:
    """The numbers that C knows a device by; None is the default device."""
    if wanted is None:
        wanted = current.default
    elif not isinstance(wanted, device):
        wanted = device(wanted)
    index = wanted.index
    return wanted.code, current.cuda if index is None and wanted.code != CPU.code else index or 0


def set_default_device(device: Any) -> None:  # noqa: F811
    """Makes new tensors stand on a device where none is given. None: the CPU."""
    wanted = CPU if device is None else _named(device)
    current.default = CPU if wanted.code == CPU.code else wanted


def get_default_device() -> device:
    """The device of tensors made without one: the CPU unless changed."""
    return current.default


_named = device
