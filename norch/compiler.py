"""``norch.compiler``: the functions of torch.compiler other than compile()."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ._binding.library import lib
from ._package.exports import publish
from ._package.recording import unseen
from .program import compile as compile
from .program.captured import reset_all

__all__ = ["compile", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting",
           "list_backends", "reset"]  # fmt: skip
publish(globals())

F = TypeVar("F", bound=Callable[..., Any])


def is_compiling() -> bool:
    """Whether a function is being recorded in this thread.

    >>> norch.compiler.is_compiling()
    False
    """
    return lib.norch_recording()


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """False: norch exports no graphs.

    >>> norch.compiler.is_exporting()
    False
    """
    return False


def disable(fn: F | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """fn, or, without it, a decorator: a function that is called in Python each time. What calls it is not recorded.

    >>> @norch.compiler.disable
    ... def logged(x):
    ...     print("called")
    ...     return x
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)

    @functools.wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        unseen(f"it calls {getattr(fn, '__name__', 'a function')}, which compiler.disable() keeps from that")
        return fn(*args, **kwargs)

    return called


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The names that compile() takes as backend for recordings; "eager" leaves functions as they are.

    >>> norch.compiler.list_backends()
    ['inductor']
    """
    return ["inductor"]


def reset() -> None:
    """Forgets the recordings of all functions of norch.compile and norch.capture.

    >>> double = norch.capture(lambda x: x * 2)
    >>> double(norch.ones(1))
    tensor([2.])
    >>> norch.compiler.reset()
    >>> double(norch.ones(1))  # is recorded anew
    tensor([2.])
    """
    reset_all()


def cudagraph_mark_step_begin() -> None:
    """Does nothing: each call has its own memory.

    >>> norch.compiler.cudagraph_mark_step_begin()
    """
