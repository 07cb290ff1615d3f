"""``norch.jit``: decorators and questions of TorchScript. Nothing is compiled: functions and modules stay as they are.

So it is in PyTorch, too, where the environment has PYTORCH_JIT=0; results are the same.
"""

from __future__ import annotations

import builtins
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar, overload
from typing import Final as Final

from .._package.exports import publish
from ..compat.refused import refused
from ..nn.module import Module

__all__ = [
    "CompilationUnit", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate", "export", "fork", "freeze",
    "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load", "optimize_for_inference", "save",
    "script", "script_if_tracing", "script_method", "trace", "trace_module", "unused", "wait",
]  # fmt: skip
publish(globals(), {"..compat.trace_graph": "_get_trace_graph"})


class BroadcastingList:
    """In annotations: a list of numbers, or one number for all."""

    def __class_getitem__(cls, kind: Any) -> Any:
        return list[kind]


# PyTorch's gives typing's names
_annotations = types.ModuleType("norch.jit.annotations", typing.__doc__)
vars(_annotations).update({name: value for name, value in vars(typing).items() if name[:2] != "__"})
vars(_annotations).update({f"BroadcastingList{count}": BroadcastingList for count in range(1, 7)})
globals()["annotations"] = sys.modules["norch.jit.annotations"] = _annotations

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def is_scripting() -> bool:
    """False: no code is compiled."""
    return False


def is_tracing() -> bool:
    """Whether _get_trace_graph(), which counters of operations call, makes a graph in this thread."""
    traced = sys.modules.get("norch.compat.trace_graph")
    return traced is not None and traced.here.tracing is not None


def script(obj: T, *args: Any, **options: Any) -> T:
    """obj itself, a function, class or module; trace(), freeze() and the like do the same.

    >>> @norch.jit.script
    ... def double(x):
    ...     return 2 * x
    >>> double(norch.ones(2))
    tensor([2., 2.])
    """
    return obj


trace = trace_module = freeze = optimize_for_inference = script


def unused(fn: T) -> T:
    """fn itself."""
    return fn


export = interface = script_method = script_if_tracing = unused
_overload = _overload_method = _script_if_tracing = unused


class TracerWarning(Warning):
    """Never given: no call is traced. For programs that silence it."""


@overload
def ignore(drop: F) -> F: ...
@overload
def ignore(drop: bool = ..., **kwargs: Any) -> Callable[[F], F]: ...
def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A decorator, with or without arguments, that returns the function."""
    return drop if callable(drop) else unused


def annotate(the_type: Any, the_value: T) -> T:
    """the_value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001
    """Whether obj is of a type, or of one in a tuple of types; of `list[int]` and the like also whether all elements
    are. A list, dict or tuple without the types of its elements raises a RuntimeError, as in PyTorch.

    >>> norch.jit.isinstance([1, 2], list[int]), norch.jit.isinstance({"a": 1}, dict[str, str])
    (True, False)
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, each) for each in target_type)
    origin, arguments = typing.get_origin(target_type), typing.get_args(target_type)
    if target_type in _CONTAINERS or (origin in _CONTAINERS and not arguments):
        raise RuntimeError(f"jit.isinstance: {target_type!r} names no type of its elements, as list[int] does")
    if target_type is None or target_type is Any:
        return obj is None or target_type is Any
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, each) for each in arguments)
    if origin is None or not builtins.isinstance(obj, origin):
        return origin is None and builtins.isinstance(obj, target_type)
    if origin is dict:
        return all(isinstance(key, arguments[0]) and isinstance(value, arguments[1]) for key, value in obj.items())
    if origin is tuple and arguments[1:] != (...,):
        return len(obj) == len(arguments) and all(map(isinstance, obj, arguments))
    return all(isinstance(each, arguments[0]) for each in obj)


_CONTAINERS = (list, dict, tuple, typing.List, typing.Dict, typing.Tuple, typing.Optional)  # noqa: UP006


class ScriptModule(Module):
    """A Module to derive from. script() and trace() make none."""


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A Future of func(*args, **kwargs), which is computed at once: in PyTorch, too, only a compiled function forks.

    >>> norch.jit.wait(norch.jit.fork(norch.add, norch.ones(2), 1))
    tensor([2., 2.])
    """
    from ..compat.futures import Future

    completed = Future()
    completed.set_result(func(*args, **kwargs))
    return completed


def wait(future: Any) -> Any:
    """What fork() computed."""
    return future.wait()


CompilationUnit, ScriptFunction, load, save = refused(
    "norch.jit",
    "norch has no TorchScript; norch.save(model.state_dict(), path) and model.load_state_dict(norch.load(path)) keep "
    "weights, norch.save(model, path) and norch.load(path, weights_only=False) the whole module; "
    "norch.load(path) gives the state dict of a TorchScript archive",
    "CompilationUnit ScriptFunction load save",
)
