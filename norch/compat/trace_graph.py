"""The graph of a call in the classes of PyTorch's tracer: torch.jit._get_trace_graph, which operation counters and
model printers read. The graph cannot run: norch.fx has one that can.

Each call that returns tensors, inside modules and PyTorch's Python functions too, is a node with PyTorch's operator
(aten.py). Reading a shape leaves no node.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..device import device
from ..nn._hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..nn.module import Module
from ..nn.recurrent import RNNBase
from ..overrides import TorchFunctionMode
from ..tensor import Tensor
from . import aten, pytree

_SCALARS = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long",
            "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool",
            "complex64": "ComplexFloat", "complex128": "ComplexDouble"}  # fmt: skip
_KINDS = {bool: "BoolType", int: "IntType", float: "FloatType", str: "StringType", type(None): "NoneType"}
_FIELDS = {bool: "i", int: "i", float: "f", str: "s"}  # a constant's type as Node.kindOf() names it


class Type:
    """The type of a Value. shown: its text; tensors also have sizes, strides, dtype and device."""

    def __init__(self, kind: str, shown: str, like: Tensor | None = None, element: Type | None = None) -> None:
        self._kind, self._shown, self._element = kind, shown, element
        self._of: Any = None
        if like is not None:
            self._of = list(like.shape), list(like.stride()), like.dtype, like.device, like.requires_grad

    def kind(self) -> str:
        return self._kind

    def __str__(self) -> str:
        return self._shown

    __repr__ = annotation_str = __str__

    def sizes(self) -> list[int] | None:
        return self._of and list(self._of[0])

    def strides(self) -> list[int] | None:
        return self._of and list(self._of[1])

    def dim(self) -> int | None:
        return self._of and len(self._of[0])

    def dtype(self) -> Any:
        return self._of and self._of[2]

    def device(self) -> Any:
        return self._of and self._of[3]

    def scalarType(self) -> str | None:  # noqa: N802
        return self._of and _SCALARS.get(self._of[2].name)

    def requiresGrad(self) -> bool:  # noqa: N802
        return bool(self._of and self._of[4])

    def getElementType(self) -> Type | None:  # noqa: N802
        return self._element


def _type_of(value: Any) -> Type:
    if isinstance(value, Tensor):
        sizes = ", ".join(map(str, value.shape))
        inner = f"{sizes}, strides=[{', '.join(map(str, value.stride()))}], " if sizes else ""
        grad = int(value.requires_grad)
        shown = f"{_SCALARS.get(value.dtype.name, 'Tensor')}({inner}requires_grad={grad}, device={value.device})"
        return Type("TensorType", shown, value)
    if isinstance(value, (list, tuple)):
        element = _type_of(value[0]) if value else Type("TensorType", "Tensor")
        return Type("ListType", f"{'Tensor' if element.kind() == 'TensorType' else element}[]", element=element)
    kind = _KINDS.get(type(value), "DeviceObjType" if isinstance(value, device) else "AnyType")
    return Type(
        kind, kind.removesuffix("Type").lower() if kind not in ("NoneType", "StringType") else kind[:4].rstrip("i")
    )


class Value:
    """An output of a node. node(): that node."""

    def __init__(self, node: Node, value: Any, number: int) -> None:
        self._node, self._type, self._number = node, _type_of(value), number
        self._constant = value if node.kind() == "prim::Constant" else None

    def node(self) -> Node:
        return self._node

    def type(self) -> Type:
        return self._type

    def unique(self) -> int:
        return self._number

    def debugName(self) -> str:  # noqa: N802
        return str(self._number)

    def isCompleteTensor(self) -> bool:  # noqa: N802
        return self._type.kind() == "TensorType" and self._type.sizes() is not None

    def toIValue(self) -> Any:  # noqa: N802
        """The value of a constant, else None."""
        return self._constant

    def __str__(self) -> str:
        return f"{self._number} defined in ({self._node})"

    def __repr__(self) -> str:
        return str(self)


class Node:
    """A call. kind(): the operator; scopeName(): the scopes that the program had pushed, joined by "/"."""

    def __init__(self, kind: str, scope: str, attributes: dict[str, Any] | None = None) -> None:
        self._kind, self._scope, self._attributes = kind, scope, attributes or {}
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []

    def kind(self) -> str:
        return self._kind

    def scopeName(self) -> str:  # noqa: N802
        return self._scope

    def inputs(self) -> Iterator[Value]:
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        return iter(self._outputs)

    def inputsSize(self) -> int:  # noqa: N802
        return len(self._inputs)

    def outputsSize(self) -> int:  # noqa: N802
        return len(self._outputs)

    def input(self) -> Value:
        return self._inputs[0]

    def output(self) -> Value:
        return self._outputs[0]

    def attributeNames(self) -> list[str]:  # noqa: N802
        return list(self._attributes)

    def hasAttribute(self, name: str) -> bool:  # noqa: N802
        return name in self._attributes

    def kindOf(self, name: str) -> str:  # noqa: N802
        return _FIELDS.get(type(self._attributes[name]), "ival")

    def _attribute(self, name: str) -> Any:
        return self._attributes[name]

    i = f = s = t = ival = __getitem__ = _attribute

    def sourceRange(self) -> str:  # noqa: N802
        return ""

    def __str__(self) -> str:
        outs = ", ".join(f"%{v.debugName()} : {v.type()}" for v in self._outputs)
        more = "".join(f"{name}={value!r}" for name, value in self._attributes.items())
        ins = ", ".join(f"%{v.debugName()}" for v in self._inputs)
        scope = f", scope: {self._scope}" if self._scope else ""
        return f"{outs} = {self._kind}{f'[{more}]' if more else ''}({ins}){scope}"

    def __repr__(self) -> str:
        return str(self)


class Graph:
    """Nodes in call order. inputs(): the arguments, parameters and buffers."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._param, self._return = Node("prim::Param", ""), Node("prim::Return", "")
        self._number = -1

    def nodes(self) -> Iterator[Node]:
        return iter(self._nodes)

    def inputs(self) -> Iterator[Value]:
        return self._param.outputs()

    def outputs(self) -> Iterator[Value]:
        return self._return.inputs()

    def param_node(self) -> Node:
        return self._param

    def return_node(self) -> Node:
        return self._return

    def value(self, node: Node, thing: Any) -> Value:
        """Adds an output to a node."""
        self._number += 1
        node._outputs.append(new := Value(node, thing, self._number))
        return new

    def __str__(self) -> str:
        inputs = ",\n      ".join(f"%{v.debugName()} : {v.type()}" for v in self.inputs())
        body = "".join(f"  {node}\n" for node in self._nodes)
        return f"graph({inputs}):\n{body}  return ({', '.join(f'%{v.debugName()}' for v in self.outputs())})\n"


# ---- tracing -------------------------------------------------------------------------------------------------------


class _Here(threading.local):
    tracing: Tracing | None = None  # the innermost trace of this thread


here = _Here()


class Tracing(TorchFunctionMode):
    """Records the graph of the calls in the context. torch._C._get_tracing_state() returns it meanwhile."""

    def __init__(self, inputs: list[Tensor]) -> None:
        self.graph, self.scopes = Graph(), list[str]()
        self._values: dict[int, tuple[Any, Value]] = {}  # by id; the tensor is kept, so the id stays valid
        self._recurrent: list[str | None] = []  # for each running recurrent layer, the scope of its first call
        for x in inputs:
            if id(x) not in self._values:
                self._values[id(x)] = x, self.graph.value(self.graph._param, x)

    def push_scope(self, name: str) -> None:
        self.scopes.append(name)

    def pop_scope(self) -> None:
        self.scopes.pop()

    def current_scope(self) -> str:
        return "/".join(self.scopes)

    def __enter__(self) -> Any:
        self._before, here.tracing = here.tracing, self
        self._hooks = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave),
        ]
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for hook in self._hooks:
            hook.remove()
        here.tracing = self._before

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._recurrent:  # a recurrent layer is one operator
            self._recurrent[-1] = self._recurrent[-1] or self.current_scope()
            return func(*args, **kwargs)
        if getattr(func, "__name__", "") in aten.COMPOSED:
            super().__enter__()
            try:
                return aten.original(func)(*args, **kwargs)
            finally:
                super().__exit__()
        inputs = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        for x in inputs:  # before the call, which may write to them
            self._read(x)
        result = func(*args, **kwargs)
        if any(isinstance(x, Tensor) for x in pytree.tree_leaves(result)):
            name, arguments = aten.named(func, args, kwargs)
            if name:
                self.add(f"aten::{name}", arguments, result, self.current_scope())
        return result

    def add(self, kind: str, arguments: Any, result: Any, scope: str) -> None:
        """Adds a node for a call."""
        node = Node(kind, scope)
        node._inputs = [self._argument(x, scope) for x in arguments]
        self.graph._nodes.append(node)
        if isinstance(result, list) or (isinstance(result, tuple) and kind in _LISTS):
            value, unpacked = self.graph.value(node, list(result)), Node("prim::ListUnpack", scope)
            unpacked._inputs = [value]
            self.graph._nodes.append(unpacked)
            node = unpacked
        for x in result if isinstance(result, (list, tuple)) else [result]:
            self._values[id(x)] = x, self.graph.value(node, x)

    def _argument(self, x: Any, scope: str) -> Value:
        if isinstance(x, Tensor):
            return self._read(x)
        if isinstance(x, (list, tuple)):
            node = Node("prim::ListConstruct", scope)
            node._inputs = [self._argument(each, scope) for each in x]
        else:
            node = Node("prim::Constant", scope, {} if x is None else {"value": x})
        self.graph._nodes.append(node)
        return self.graph.value(node, x)

    def _read(self, x: Tensor) -> Value:
        if id(x) not in self._values:  # made outside of the traced calls
            node = Node("prim::Constant", self.current_scope(), {"value": x})
            self.graph._nodes.append(node)
            self._values[id(x)] = x, self.graph.value(node, x)
        return self._values[id(x)][1]

    def _enter(self, module: Module, args: Any) -> None:
        if isinstance(module, RNNBase) and here.tracing is self:
            self._recurrent.append(None)

    def _leave(self, module: Any, args: Any, result: Any) -> None:
        if not isinstance(module, RNNBase) or here.tracing is not self:
            return
        scope = self._recurrent.pop() or ""
        x, state = pytree.tree_leaves(args[0]), pytree.tree_leaves(args[1:])
        if not state:
            rows = result[1][0].shape[1] if isinstance(result[1], tuple) else result[1].shape[1]
            zeros = x[0].new_zeros(module._num_runs(), rows, module.hidden_size)
            state = [zeros, zeros.clone()] if module.mode == "LSTM" else [zeros]
        settings = [module.bias, module.num_layers, module.dropout, module.training, module.bidirectional]
        weights = pytree.tree_leaves(module.all_weights)
        inputs = [*x, state if len(state) > 1 else state[0], weights, *settings, module.batch_first]
        self.add(f"aten::{module.mode.lower()}", inputs, tuple(pytree.tree_leaves(result)), scope)


# Operators that return a list.
_LISTS = frozenset(f"aten::{name}" for name in "chunk split unbind tensor_split hsplit vsplit dsplit meshgrid".split())


def _get_trace_graph(
    f: Callable[..., Any],
    args: Any = (),
    kwargs: Any = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> Any:
    """(the Graph of f(*args, **kwargs), its result), and with return_inputs the input tensors.

    >>> graph, y = norch.jit._get_trace_graph(norch.nn.Linear(3, 2), norch.ones(4, 3))
    >>> [node.kind() for node in graph.nodes()], list(graph.outputs())[0].type().sizes()
    (['aten::linear'], [4, 2])
    """
    args = args if isinstance(args, tuple) else (args,)
    inputs = [x for x in pytree.tree_leaves((args, kwargs or {})) if isinstance(x, Tensor)]
    kept = list(f.state_dict(keep_vars=True).values()) if isinstance(f, Module) else []
    tracing = Tracing([*inputs, *kept])
    with tracing:
        result = f(*args, **(kwargs or {}))
    tracing.graph._return._inputs = [tracing._read(x) for x in pytree.tree_leaves(result) if isinstance(x, Tensor)]
    return (tracing.graph, result, tuple(inputs)) if return_inputs else (tracing.graph, result)
