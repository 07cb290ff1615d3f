"""``norch.fx``: the names of PyTorch's tracer, which norch lacks: wrap() has no effect, most others raise."""

from __future__ import annotations

from typing import Any, TypeVar

from .._exports import publish
from .refused import refused

__all__ = [
    "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "replace_pattern",
    "symbolic_trace", "wrap",
]  # fmt: skip
publish(globals(), name="norch.fx")

T = TypeVar("T")


def wrap(fn_or_name: T) -> T:
    """The argument itself, a function or the name of one."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise TypeError(f"wrap: expected a function or the name of one, not {type(fn_or_name).__name__}")
    return fn_or_name


def _assert(condition: Any, message: Any) -> None:
    """AssertionError with this message unless the condition holds: an assert that `python -O` keeps."""
    if not condition:
        raise AssertionError(message)


Graph, GraphModule, Interpreter, Node, Proxy, Tracer, Transformer, replace_pattern, symbolic_trace = refused(
    "norch.fx",
    "norch traces no programs; hooks of modules see what runs",
    "Graph GraphModule Interpreter Node Proxy Tracer Transformer replace_pattern symbolic_trace",
)
