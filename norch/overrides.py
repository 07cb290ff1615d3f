"""``norch.overrides``: classes that override operations by ``__torch_function__``, as in PyTorch.

A subclass of Tensor, or any class with that classmethod, gets the calls of functions, methods, operators and attributes
with an instance among the arguments: ``__torch_function__(cls, func, types, args=(), kwargs=None)``. That of Tensor
runs func, and gives the results as instances of the subclass.

>>> class Logged(norch.Tensor):
...     @classmethod
...     def __torch_function__(cls, func, types, args=(), kwargs=None):
...         print(func.__name__)
...         return super().__torch_function__(func, types, args, kwargs)
>>> x = norch.ones(2).as_subclass(Logged)
>>> y = x + 1
add
>>> type(y).__name__
'Logged'
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from ._binding.library import lib
from ._package import override as _override
from ._package.exports import publish
from ._package.override import MODULES, state
from .autograd.grad_mode import Guard
from .tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode",
    "get_default_nowrap_functions", "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "is_tensor_like", "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip


class DisableTorchFunctionSubclass(Guard):
    """A context in which classes override nothing. Modes still do."""

    _modes = True  # whether modes still do

    def __init__(self) -> None:
        self._restores: list[Callable[[], Any]] = []

    def __enter__(self) -> None:
        disabled, modes = state.disabled, state.modes

        def restore() -> None:
            lib.norch_captured_slow_path(-1)
            state.disabled, state.modes = disabled, modes

        lib.norch_captured_slow_path(1)
        self._restores.append(restore)
        state.disabled, state.modes = True, modes if self._modes else ()


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A context in which neither classes nor modes override anything."""

    _modes = False


class TorchFunctionMode:
    """A context that gets all calls within it, of plain tensors too: subclasses define
    ``__torch_function__(self, func, types, args=(), kwargs=None)``, which runs outside it.

    >>> class Logged(norch.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Logged():
    ...     _ = norch.zeros(2).exp()
    zeros
    exp
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __torch_function__")

    def __enter__(self) -> Any:
        _override.change_modes(1)
        state.modes = (*state.modes, self)
        return self

    def __exit__(self, *_: object) -> None:
        state.modes = state.modes[:-1]
        _override.change_modes(-1)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether an override may get a call with these arguments: one overrides, or a mode is active."""
    return bool(state.modes) or (not state.disabled and bool(_override.overloaded(relevant_args, False)))


def has_torch_function_unary(x: Any) -> bool:
    """has_torch_function() of one argument."""
    return has_torch_function((x,))


def has_torch_function_variadic(*args: Any) -> bool:
    """has_torch_function() of several arguments."""
    return has_torch_function(args)


def handle_torch_function(public_api: Any, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """The result of public_api(*args, **kwargs) by the overrides among relevant_args, or by the innermost mode.
    Functions of your own call it after has_torch_function(). TypeError if no override implements the function.
    """
    overloads = [] if state.disabled else _override.overloaded(relevant_args, False)
    return _override.dispatch(public_api, overloads, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Any], Any]:
    """Decorates a function of your own, so that what dispatcher gives of its arguments may override it."""

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether inp is a tensor, or overrides operations as a tensor does."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def get_default_nowrap_functions() -> set[Any]:
    """The functions that return an object that a tensor stores, such as its gradient. Tensor.__torch_function__ does
    not convert their results to a subclass.
    """
    return _override.unwrapped()


def _modules() -> dict[str, Any]:
    return {name: import_module(name) for name in MODULES}


def _of(module: Any) -> dict[str, Any]:
    attributes = {name: getattr(module, name) for name in dir(module) if name not in _override.IGNORED}
    return {name: attribute for name, attribute in attributes.items() if hasattr(attribute, "__code__")}


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions and methods that can be overridden, by the module or the class that has them."""
    functions: dict[Any, list[Any]] = {module: list(_of(module).values()) for module in _modules().values()}
    methods = [getattr(Tensor, name, None) for name in sorted(_override._public_names())]
    return {**functions, Tensor: [method for method in methods if callable(method)]}


def get_testing_overrides() -> dict[Any, Callable[..., int]]:
    """{function or method that can be overridden: a function of the same signature that returns -1}.

    >>> import inspect
    >>> list(inspect.signature(norch.overrides.get_testing_overrides()[norch.matmul]).parameters)
    ['input', 'other', 'out']
    """
    found: dict[Any, Callable[..., int]] = {}
    for function in (one for several in get_overridable_functions().values() for one in several):

        def dummy(*args: Any, **kwargs: Any) -> int:
            return -1

        found[function] = functools.wraps(function)(dummy)
    return found


def get_ignored_functions() -> set[Any]:
    """Public functions that cannot be overridden."""
    ignored = {getattr(module, name, None) for module in _modules().values() for name in _override.IGNORED}
    return ignored - {None}


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether func, as an override gets it, is a method or an attribute of Tensor."""
    if getattr(func, "__name__", "") == "__get__":
        return True
    if getattr(import_module("norch"), getattr(func, "__name__", ""), None) is func:
        return False
    return any(func is getattr(Tensor, name, None) for name in _override._public_names())


def resolve_name(f: Any) -> str | None:
    """The public name of a function that an override gets, "norch.Tensor.add" say; None for others."""
    root = import_module("norch").__name__  # as_torch() changes it
    if getattr(f, "__name__", "") in ("__get__", "__set__"):
        owner = f.__self__
        name = next((name for name in _override._public_names() if getattr(Tensor, name, None) is owner), None)
        return None if name is None else f"{root}.Tensor.{name}.{f.__name__}"
    for path, module in (*_modules().items(), ("norch.Tensor", Tensor)):
        name = getattr(f, "__name__", "")
        if getattr(module, name, None) is f:
            return f"{root}{path[5:]}.{name}"
    return None


publish(globals())
