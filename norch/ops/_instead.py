"""Objects that are no tensors and have __torch_function__: a function notices them where it refuses them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache

from .._package.typing import Any
from .._tensor.handle import Handle
from ..errors import PACKAGE

_FILES = ("ops", os.path.join("nn", "functional"), "fft", "linalg.py", "special.py")
_FUNCTIONS = tuple(PACKAGE + path for path in _FILES)


def instead(public: Any, arguments: tuple[Any, ...], named: dict[str, Any], error: Exception) -> Any:
    """What the arguments of a refused call of public make of it by __torch_function__; else raises error. A call within
    another function leaves it to that function."""
    if any(hasattr(type(x), "__torch_function__") for x in others((*arguments, *named.values()))):
        caller = sys._getframe(1)
        while caller.f_code.co_name in ("refused", "instead") or caller.f_code is getattr(public, "__code__", None):
            caller = caller.f_back  # type: ignore[assignment]
        if not caller.f_code.co_filename.startswith(_FUNCTIONS):
            from importlib import import_module

            return import_module("norch._package.override").instead(public, arguments, named, error)
    raise error from error.__cause__


def others(values: Iterable[Any]) -> Iterator[Any]:
    """Values, and those in lists and tuples among them, but for tensors."""
    for x in values:
        if isinstance(x, (list, tuple)):
            yield from (one for one in x if not isinstance(one, Handle))
        elif not isinstance(x, Handle):
            yield x


def wraps(function: Any) -> Any:
    """functools.wraps() in a third of its time: of 140 functions that is a percent of `import norch`."""

    def decorate(wrapper: Any) -> Any:
        wrapper.__module__, wrapper.__name__, wrapper.__qualname__ = (
            function.__module__,
            function.__name__,
            function.__qualname__,
        )
        wrapper.__doc__, wrapper.__annotations__ = function.__doc__, function.__annotations__
        wrapper.__dict__.update(function.__dict__)
        wrapper.__wrapped__ = function
        return wrapper

    return decorate


def guarded(function: Any, module: str, refusals: Any = TypeError) -> Any:
    """A function of a module that calls function, and notices such objects among its arguments where it is refused."""
    if is_row(function) and function.__code__.co_argcount == 1:
        wrapper = _row_of_1(function)
        wraps(function)(wrapper).__module__ = module
        return wrapper
    code = function.__code__
    make = _TAKING.get(code.co_argcount if not (code.co_kwonlyargcount or code.co_flags & _TAKES_MORE) else -1)
    if make is None:
        wrapper = _taking_all(function, refusals)
    else:  # with the names and defaults of the function, which costs a call less than *arguments do
        wrapper = make(function, refusals)
        wrapper.__code__ = wrapper.__code__.replace(co_varnames=(*code.co_varnames[: code.co_argcount], "error"))
        wrapper.__defaults__ = function.__defaults__
    wraps(function)(wrapper).__module__ = module
    return wrapper


def is_row(function: Any) -> bool:
    """Whether a function has the call of a row, which gives NotImplemented where the function converts arguments."""
    return hasattr(function, "call") and not hasattr(function, "__wrapped__")


@cache
def function_of(method: Any) -> Any:
    """The function of norch of the name of a method of Tensor: another object, as in PyTorch."""
    code = method.__code__
    if code.co_argcount != 1 or code.co_flags & _TAKES_MORE:
        return guarded(method, "norch", (TypeError, AttributeError))

    def wrapper(input: Any) -> Any:  # the method need not look at its tensor
        if isinstance(input, Handle):
            return method(input)
        error = TypeError(f"{method.__name__}: expected a tensor, not {type(input).__name__}")
        return instead(wrapper, (input,), {}, error)

    wraps(method)(wrapper).__module__ = "norch"
    return wrapper


def guard(namespace: dict[str, Any], names: str) -> None:
    """guarded() of functions in the globals() of a module."""
    for name in names.split():
        namespace[name] = guarded(namespace[name], namespace["__name__"])


def _taking_all(function: Any, refusals: Any) -> Any:
    def wrapper(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except refusals as error:
            return instead(wrapper, arguments, named, error)

    return wrapper


def _row_of_1(function: Any) -> Any:
    call = function.call

    def wrapper(input: Any) -> Any:
        try:
            out = call(input)
            return out if out is not NotImplemented else function(input)
        except TypeError as error:
            return instead(wrapper, (input,), {}, error)

    return wrapper


def _taking_1(function: Any, refusals: Any) -> Any:
    def wrapper(a: Any) -> Any:
        try:
            return function(a)
        except refusals as error:
            return instead(wrapper, (a,), {}, error)

    return wrapper


def _taking_2(function: Any, refusals: Any) -> Any:
    def wrapper(a: Any, b: Any) -> Any:
        try:
            return function(a, b)
        except refusals as error:
            return instead(wrapper, (a, b), {}, error)

    return wrapper


def _taking_3(function: Any, refusals: Any) -> Any:
    def wrapper(a: Any, b: Any, c: Any) -> Any:
        try:
            return function(a, b, c)
        except refusals as error:
            return instead(wrapper, (a, b, c), {}, error)

    return wrapper


def _taking_4(function: Any, refusals: Any) -> Any:
    def wrapper(a: Any, b: Any, c: Any, d: Any) -> Any:
        try:
            return function(a, b, c, d)
        except refusals as error:
            return instead(wrapper, (a, b, c, d), {}, error)

    return wrapper


_TAKES_MORE = 4 | 8  # CO_VARARGS, CO_VARKEYWORDS
_TAKING = {1: _taking_1, 2: _taking_2, 3: _taking_3, 4: _taking_4}
