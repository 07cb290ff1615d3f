"""Converts arguments of operations (Python numbers, arrays) to tensors; errors that name the operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import copysign

from .._binding.library import lib
from .._package.typing import Any, Operand, Tensor, TypeVar
from .._tensor.handle import Handle
from ..errors import Error, rename_error
from ._instead import instead, others
from .values import number_or_array

F = TypeVar("F", bound=Callable[..., Any])

# Python numbers as 0-d tensors, by type and value, for kernels to read. Users never get them, because a
# write to one would change the number for the rest of the process. -0.0 and NaN have texts as keys,
# because 0.0 == -0.0 and nan != nan.
_numbers: dict[type, dict[Any, Any]] = {float: {}, int: {}, bool: {}}
_LIMIT = 512  # of each type
lib.norch_bind_numbers(*_numbers.values())  # calls of rows look there first


def operand(value: Operand, name: str = "tensor") -> Tensor:
    """value as a Tensor for a kernel to read; NotImplemented if it is no tensor, number or array.

    Python numbers take part in promotion by their kind only. Their tensors are cached for later calls, so a function
    that may return its argument, return a view of it or write into it must use as_operand() instead.
    """
    if isinstance(value, Handle):
        return value
    key: Any = value
    cache = _numbers.get(type(key))
    if cache is None:
        return number_or_array(value, name)
    if key != key or (key == 0 and copysign(1.0, key) < 0):
        key = repr(key)
    number = cache.get(key)
    if number is None:
        number = number_or_array(value, name)
        if len(cache) >= _LIMIT:
            cache.clear()
        cache[key] = number
    return number


def kernel_operand(value: Operand, name: str) -> Tensor:
    """operand(value), or a TypeError that names the operation."""
    result = operand(value, name)
    if result is NotImplemented:
        raise _no_operand(value, name)
    return result


def as_operand(value: Operand, name: str) -> Tensor:
    """value as a Tensor that the caller may return or change. TypeError, which names the operation, if it is no tensor,
    number or array.
    """
    if isinstance(value, Handle):
        return value
    number = number_or_array(value, name)
    if number is NotImplemented:
        raise _no_operand(value, name)
    return number


def _no_operand(value: Any, name: str) -> TypeError:
    return TypeError(f"{name}: expected a tensor or a number, not {type(value).__name__}")


def tensor_of(value: Tensor, name: str) -> Tensor:
    """value. TypeError unless it is a tensor."""
    if isinstance(value, Handle):
        return value
    raise TypeError(f"{name}: expected a tensor, not {type(value).__name__}")


def renamed_error(error: Exception, name: str, arguments: Iterable[Any]) -> Exception:
    """An error raised by a step of the operation name, reworded to name the operation; a
    TypeError if no tensor was passed."""
    if not isinstance(error, AttributeError):
        rename_error(error, name)  # type: ignore[arg-type]
    elif error.name and not isinstance(error.obj, Handle) and any(x is error.obj for x in arguments):
        return TypeError(f"{name}: expected a tensor, not {type(error.obj).__name__}")
    return error


RENAMED_ERRORS = (Error, TypeError, OverflowError, AttributeError)  # what renamed_error() takes


def refused(function: Any, name: str, is_operator: bool, *arguments: Any) -> Any:
    """The result of the call by __torch_function__ of an operand that is no tensor, number or array. Without that,
    NotImplemented for an operator, else a TypeError."""
    try:
        return instead(
            function, arguments, {}, _no_operand(next(x for x in arguments if operand(x, name) is NotImplemented), name)
        )
    except TypeError:
        if is_operator and not any(hasattr(type(x), "__torch_function__") for x in others(arguments)):
            return NotImplemented
        raise
