"""Devices: where the elements of a tensor are, and where new tensors are made."""

from __future__ import annotations

from ._binding.library import constants, lib
from ._package.typing import Any
from .errors import ArgumentError, DeviceError

_TYPES = {"cpu": constants["CPU"], "cuda": constants["CUDA"], "meta": constants["META"]}

# PyTorch's other types of devices: they can be named and compared, but have no tensors in norch.
_ELSEWHERE = frozenset(
    "fpga hip hpu ideep ipu lazy maia mkldnn mps mtia opencl opengl ort privateuseone ve vulkan xla xpu".split()
)


class device:  # PyTorch's name
    """A device by name: ``device("cpu")``, ``device("cuda:1")``; ``device("cuda")`` is the current CUDA device.

    ``device("meta")`` has no memory: its tensors have shapes, strides and dtypes, and no elements.
    DeviceError for other names. There is one CPU: tensors made on ``device("cpu", 3)`` are on it.

    >>> norch.device("cuda", 1)
    device(type='cuda', index=1)

    In a with statement it is the default device, as after set_default_device().

    >>> with norch.device("cpu"):
    ...     norch.zeros(1).device
    device(type='cpu')
    """

    __slots__ = ("code", "index", "type")

    def __init__(self, type: str | int | device, index: int | None = None):
        if isinstance(type, int) and not isinstance(type, bool):  # a bare number is a CUDA device
            type = f"cuda:{type}"
        if isinstance(type, device):
            index = type.index if index is None else index
            type = type.type
        name, colon, number = str(type).partition(":")
        if colon:
            if not number.isdecimal() or index is not None:
                raise DeviceError(f"{type!r} names no device; write it like 'cpu' or 'cuda:0'")
            index = int(number)
        if index is not None and (not isinstance(index, int) or index < 0):
            raise DeviceError(f"{index!r} is no number of a device; they count from 0")
        if name not in _TYPES:
            if name not in _ELSEWHERE:
                # PyTorch's sentence: array_api_compat reads the types from it
                types = "Expected one of cpu, cuda, meta device type at start of device string"
                raise DeviceError(f"{types}: {name}")
        self.type: str = name
        self.index: int | None = index
        if name in _TYPES:  # else it is a name only
            self.code: int = _TYPES[name]

    def __getattr__(self, name: str) -> Any:
        if name == "code":  # where a tensor should be on it
            raise DeviceError(f"norch has no device {str(self)!r}; there are 'cpu', 'cuda' and 'meta'")
        raise AttributeError(f"a device has no attribute {name!r}", name=name, obj=self)

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


CPU, META = device("cpu"), device("meta")
_cuda_devices: list[device] = []


def cuda_device(index: int) -> device:
    """The CUDA device of an index; the same object each time."""
    while len(_cuda_devices) <= index:
        _cuda_devices.append(device("cuda", len(_cuda_devices)))
    return _cuda_devices[index]


def cuda_device_count() -> int:
    """The number of CUDA devices that can be used."""
    try:
        return lib.norch_device_count(1)
    except DeviceError:
        return 0


def device_of(x: Any) -> device:
    """The device of a tensor, which may have a shape only (norch_meta)."""
    code = x._device_type
    return CPU if code == CPU.code else META if code == META.code else cuda_device(x._device_index)


class _Current:
    """The current CUDA device, and the default device of new tensors."""

    def __init__(self) -> None:
        self.cuda: int = 0
        self.default: device = CPU


current = _Current()
_defaults_before: list[device] = []  # what with statements restore
_defaults: dict[device, device] = {}


_CPU_CODE = CPU.code, 0


def device_code(wanted: Any) -> tuple[int, int]:
    """The type and index of a device, for C; None is the default device."""
    if wanted is None:
        if (wanted := current.default) is CPU:
            return _CPU_CODE
    elif not isinstance(wanted, device):
        wanted = device(wanted)
    if (code := wanted.code) != _TYPES["cuda"]:
        return code, 0
    return code, current.cuda if wanted.index is None else wanted.index


def cuda_place(wanted: Any) -> tuple[int, int]:
    """device_code() of a CUDA device; None is the current one. ArgumentError for another."""
    found = device_code("cuda" if wanted is None else wanted)
    if found[0] != _TYPES["cuda"]:
        raise ArgumentError(f"expected a CUDA device, not {wanted!r}")
    return found


def set_default_device(device: Any) -> None:
    """Sets the default device of new tensors. None is the CPU.

    >>> norch.set_default_device("meta")
    >>> norch.zeros(1).device
    device(type='meta')
    >>> norch.set_default_device(None)
    """
    wanted = CPU if device is None else _named(device)
    # one object for each, which recordings compare
    current.default = CPU if wanted.code == CPU.code else _defaults.setdefault(wanted, wanted)


def get_default_device() -> device:
    """The device of tensors that are created without one: the CPU unless set_default_device() changed it.

    >>> norch.get_default_device()
    device(type='cpu')
    """
    return current.default


_named = device
