"""Grad mode: whether the operations of a thread are recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable

from .._binding.library import lib
from .._package.exports import publish
from .._package.typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload

__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"]

F = TypeVar("F", bound=Callable[..., Any])


if TYPE_CHECKING:

    class Guard:
        """The base of context managers that restore a setting, as no_grad() does. __exit__ pops and calls the last
        function of _restores. It is written in C (csrc/python/guard.c), so that no asynchronous exception interrupts
        it."""

        _restores: list[Callable[[], Any]]

        def __exit__(self, *_: object) -> None: ...

    class _Mode:
        enabled: bool
        grad_mode: int
        autocast: Any
        casting: bool
        anomaly: Any
        overridden: bool

else:
    Guard = lib.norch_guard_class()

# Each thread has enabled, grad_mode (UNRECORDED and INFERENCE, bits of csrc/python/modes.h), autocast (its setting,
# autocast.py) and overridden (whether a TorchFunctionMode gets its calls). The process has casting (whether any thread
# casts) and anomaly (anomaly.py).
mode: _Mode = lib.norch_modes()  # csrc/python/mode.c
UNRECORDED, INFERENCE = 1, 64
# Setters without Python code, because Guard.__exit__ must not be interrupted.
_SET = {enabled: functools.partial(setattr, mode, "enabled", enabled) for enabled in (False, True)}


def is_grad_enabled() -> bool:
    """Whether operations of this thread are recorded.

    >>> with norch.no_grad():
    ...     norch.is_grad_enabled()
    False
    """
    return mode.enabled


class set_grad_enabled(Guard):  # PyTorch's name
    """Turns recording on or off in this thread: at once, until the end of a `with`, or within a decorated function.

    >>> x = norch.ones(2, requires_grad=True)
    >>> with norch.set_grad_enabled(False):
    ...     print((x * 2).requires_grad)
    False
    """

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled: mode must be a bool, not {type(mode).__name__}")
        self.enabled = mode
        self.before = is_grad_enabled()
        self._restores = []
        _SET[mode]()

    def __enter__(self) -> None:
        self._restores.append(_SET[self.before])
        mode.enabled = self.enabled

    def __call__(self, function: F) -> F:
        mode.enabled = self.before  # as a decorator it acts inside the function only
        return decorated(function, lambda: set_grad_enabled(self.enabled))


class _Within(Guard):
    """Base of no_grad and enable_grad: for a `with` or a decorated function. One object may be entered repeatedly, also
    nested."""

    enabled: bool

    def __init__(self) -> None:
        self._restores = []

    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    @overload
    def __new__(cls, function: None = ...) -> Self: ...
    def __new__(cls, function: Any = None) -> Any:
        if function is not None and not callable(function):
            raise TypeError(f"{cls.__name__}: decorates functions, not {type(function).__name__}")
        return object.__new__(cls) if function is None else decorated(function, cls)

    def __enter__(self) -> None:
        self._restores.append(_SET[mode.enabled])
        mode.enabled = self.enabled

    def __call__(self, function: F) -> F:
        return decorated(function, type(self))


GENERATOR = 0x20  # inspect.CO_GENERATOR; importing inspect is slow


def decorated(function: F, make: Callable[[], Any]) -> F:
    """function, run in the context make(). A generator is in it while it runs, not while it is suspended."""
    if getattr(getattr(function, "__code__", None), "co_flags", 0) & GENERATOR:

        @functools.wraps(function)
        def stepwise(*arguments: Any, **named: Any) -> Any:
            return _stepwise(function(*arguments, **named), make)

        return cast(F, stepwise)

    @functools.wraps(function)
    def inside(*arguments: Any, **named: Any) -> Any:
        before = mode.grad_mode
        try:
            with make():
                return function(*arguments, **named)
        finally:  # an asynchronous exception may come before the first statement of __exit__
            mode.grad_mode = before

    return cast(F, inside)


def _stepwise(generator: Any, make: Callable[[], Any]) -> Any:
    resume, value = generator.send, None
    while True:
        try:
            with make():
                item = resume(value)
        except StopIteration as end:
            return end.value
        try:
            resume, value = generator.send, (yield item)
        except GeneratorExit:
            with make():
                generator.close()
            raise
        except BaseException as error:
            resume, value = generator.throw, error


class no_grad(_Within):  # PyTorch's name
    """Operations inside are not recorded: ``with no_grad():`` or ``@no_grad()``.

    >>> x = norch.ones(2, requires_grad=True)
    >>> with norch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    enabled = False


class enable_grad(_Within):  # PyTorch's name
    """Operations inside are recorded, also within no_grad().

    >>> x = norch.ones(1, requires_grad=True)
    >>> with norch.no_grad(), norch.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    enabled = True


class inference_mode(Guard):  # PyTorch's name
    """As no_grad(), and is_inference_mode_enabled() is True. inference_mode(False) records operations, also within
    no_grad().

    >>> with norch.inference_mode():
    ...     print((norch.ones(2, requires_grad=True) * 2).requires_grad)
    False
    """

    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    @overload
    def __new__(cls, mode: bool = ...) -> Self: ...
    def __new__(cls, mode: Any = True) -> Any:
        return decorated(mode, cls) if callable(mode) else object.__new__(cls)

    def __init__(self, mode: bool = True):
        self.mode = mode
        self._restores = []

    def __enter__(self) -> None:
        self._restores.append(functools.partial(setattr, mode, "grad_mode", mode.grad_mode))
        mode.grad_mode = UNRECORDED | INFERENCE if self.mode else 0

    def __call__(self, function: F) -> F:
        return decorated(function, lambda: inference_mode(self.mode))


publish(globals())
