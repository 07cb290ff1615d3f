"""Proxy: represents a node's result during tracing. Each use of a proxy becomes a node."""

from __future__ import annotations

import operator
import sys
from dis import get_instructions
from typing import Any

from .._package.override import begin
from ..overrides import is_tensor_method_or_property
from ..tensor import Tensor
from .graph import INPLACE, MAGIC, REFLECTED, Graph
from .node import BASE_TYPES, Node, map_aggregate


class TraceError(ValueError):
    """Raised if the program needs the value of a proxy, as in an `if`."""


class TracerBase:
    """Makes nodes and proxies in a graph."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    proxy_buffer_attributes = False

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """A new node at the end of the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """A proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None, *_: Any
    ) -> Any:
        """A new node as a proxy; create_arg() converts args and kwargs."""
        args, kwargs = self.create_arg(tuple(args)), self.create_arg(dict(kwargs))
        return self.proxy(self.create_node(kind, target, args, kwargs, name, type_expr))

    def create_arg(self, a: Any) -> Any:
        """a as a node's argument; NotImplementedError if a graph cannot hold it."""
        if isinstance(a, (tuple, list, dict, slice)):
            if isinstance(a, dict) and any(isinstance(key, Proxy) for key in a):
                raise RuntimeError("a dict in a graph cannot have nodes as keys")
            if isinstance(a, slice):
                return slice(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
            if isinstance(a, dict):
                return {key: self.create_arg(x) for key, x in a.items()}
            parts = [self.create_arg(x) for x in a]
            return parts if isinstance(a, list) else type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, range):
            return range(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        if isinstance(a, Proxy):
            return a.node
        from ..device import device
        from ..dtype import dtype, memory_format

        if isinstance(a, (Node, *BASE_TYPES, device, dtype, memory_format)) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """The truth value of a proxy: raises TraceError."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Any:
        """Iterates over as many parts of a proxy as the program unpacks; otherwise TraceError."""
        frame = sys._getframe(2)
        instruction = next(item for item in get_instructions(frame.f_code) if item.offset == frame.f_lasti)
        if instruction.opname == "UNPACK_SEQUENCE":
            return (obj[i] for i in range(instruction.argval))  # type: ignore[index]
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument."
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of a proxy for **obj, which are a proxy too."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that appends to an existing graph."""

    def __init__(self, graph: Graph):
        begin()
        self.graph = graph


class Proxy:
    """The result of a node that was not computed yet. Functions, methods and operators on it become nodes."""

    def __init__(self, node: Node, tracer: TracerBase | None = None):
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Any:
        if name in ("node", "tracer") or (name[:2] == "__" and name[-2:] == "__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Any:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "norch.fx.wrap('len') at module scope"
        )

    def __contains__(self, item: Any) -> bool:
        raise TraceError("whether a proxy contains something depends on its value")

    def __index__(self) -> int:
        raise TraceError("a proxy cannot be a Python index: it has no value yet")

    def keys(self) -> Any:
        """For **proxy."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tracers: list[TracerBase] = []
        map_aggregate((args, kwargs or {}), lambda x: tracers.append(x.tracer) if isinstance(x, Proxy) else None)
        if any(tracer is not tracers[0] for tracer in tracers):
            raise RuntimeError("the arguments of a call belong to several tracers")
        if is_tensor_method_or_property(orig_method):
            return tracers[0].create_proxy("call_method", orig_method.__name__, args, kwargs or {})
        return tracers[0].create_proxy("call_function", orig_method, args, kwargs or {})


class Attribute(Proxy):
    """An attribute of a proxy: becomes a node when used; calling it becomes a method call."""

    def __init__(self, root: Proxy, attr: str):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """Made at the first use."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter of the traced module: becomes a node when used."""

    def __init__(self, tracer: TracerBase, path: str, param: Tensor):
        self.tracer, self.path, self.param = tracer, path, param
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """Made at the first use."""
        if self._node is None:
            self._node = self.tracer.create_node("get_attr", self.path, (), {})
        return self._node


def _operator(function: Any) -> Any:
    def method(self: Proxy, *args: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (self, *args), {})

    return method


def _reflected(function: Any) -> Any:
    def method(self: Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (other, self), {})

    return method


for _name in (*MAGIC, "getitem"):
    setattr(Proxy, f"__{_name.rstrip('_')}__", _operator(getattr(operator, _name)))
for _name in INPLACE:
    setattr(Proxy, f"__{_name}__", _operator(getattr(operator, _name)))
for _name in REFLECTED:
    setattr(Proxy, f"__r{_name.rstrip('_')}__", _reflected(getattr(operator, _name)))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
