"""Checks of arguments that raise an error with the name of the function."""

from __future__ import annotations

from .._binding.numbers import int64
from .._package.typing import Any, Tensor
from ..errors import ArgumentError, DeviceError, DTypeError, ShapeError
from ._operand import as_operand, tensor_of


def at_least(ndim: int, value: Tensor, name: str) -> Tensor:
    """tensor_of(value). ShapeError if the tensor has fewer dimensions."""
    if tensor_of(value, name).ndim < ndim:
        shape = f"shape {tuple(value.shape)}" if value.ndim else "a 0-d tensor"
        wanted = "1 dimension" if ndim == 1 else f"{ndim} dimensions"
        raise ShapeError(f"{name}: needs at least {wanted}, got {shape}")
    return value


def with_ndim(value: Tensor, name: str, *ndims: int) -> Tensor:
    """tensor_of(value). ShapeError unless its number of dimensions is one of these."""
    if tensor_of(value, name).ndim not in ndims:
        wanted = " or ".join(map(str, ndims)) + " dimension" + "s" * (ndims != (1,))
        raise ShapeError(f"{name}: expected {wanted}, got shape {tuple(value.shape)}")
    return value


def floats_of(value: Tensor, name: str) -> Tensor:
    """as_operand(value). DTypeError unless its dtype is a float."""
    value = as_operand(value, name)
    if not value.dtype.is_floating_point:
        raise DTypeError(f"{name}: not defined for dtype {value.dtype.name}")
    return value


def real_of(value: Tensor, name: str) -> Tensor:
    """as_operand(value). DTypeError if its dtype is complex."""
    value = as_operand(value, name)
    if value.dtype.is_complex:
        raise DTypeError(f"{name}: {value.dtype.name} is not supported")
    return value


def numbers_of(value: Tensor, name: str) -> Tensor:
    """as_operand(value). DTypeError for bool."""
    value = as_operand(value, name)
    if value.dtype.kind == "b":
        raise DTypeError(f"{name}: not defined for dtype bool")
    return value


def on_one_device(name: str, x: Any, other: Any) -> None:
    """Raises a DeviceError that names both devices if two tensors are on different ones."""
    if x._device_type != other._device_type or x._device_index != other._device_index:
        raise DeviceError(f"{name}: tensors on {x.device} and {other.device}; move one with .to()")


def check_count(value: Any, name: str, most: int = 1 << 24) -> int:
    """value as an integer, a count of objects that Python makes one by one, such as views;
    ArgumentError beyond `most`."""
    if type(value) is int and value <= most:
        return value
    if (count := int64(value, name)) > most:
        raise ArgumentError(f"{name} must be at most {most}, got {count}")
    return count
