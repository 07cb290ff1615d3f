"""The graph of a module for TensorBoard, SummaryWriter.add_graph(): calls in the scopes of the modules that make them,
as "Net/Linear[head]/aten::linear", with the shapes of their results."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ..nn.module import Module
from ..tensor import Tensor
from . import pytree
from .trace_graph import Tracing, Value


class _ByModule(Tracing):
    """Records calls in the scopes of the modules that make them. named: {id of a module: its scope in its parent}."""

    def __init__(self, inputs: list[Tensor], named: dict[int, str]) -> None:
        super().__init__(inputs)
        self.named = named

    def _enter(self, module: Module, args: Any) -> None:
        self.push_scope(self.named.get(id(module), type(module).__name__))
        super()._enter(module, args)

    def _leave(self, module: Any, args: Any, result: Any) -> None:
        super()._leave(module, args, result)
        self.pop_scope()


class _NoStatistics:
    """The metadata of a run that was not timed."""

    def SerializeToString(self) -> bytes:  # noqa: N802
        return b""


def graph(model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True) -> tuple[Any, Any]:
    """(the GraphDef of model(*args), the metadata of the run), for the writer of tensorboardX."""
    args = args if isinstance(args, tuple) else (args,)
    inputs = [x for x in pytree.tree_leaves(args) if isinstance(x, Tensor)]
    named = {id(m): f"{type(m).__name__}[{path.rpartition('.')[2]}]" for path, m in model.named_modules() if path}
    tracing = _ByModule([*inputs, *model.parameters(), *model.buffers()], named)
    with tracing:
        result = model(*args)
    outputs = [tracing._read(x) for x in pytree.tree_leaves(result) if isinstance(x, Tensor)]
    if verbose:
        print(tracing.graph)
    return _definition(tracing.graph, len({id(x) for x in inputs}), outputs), _NoStatistics()


def _definition(traced: Any, inputs: int, outputs: list[Value]) -> Any:
    node_of = import_module("tensorboardX.proto.node_def_pb2").NodeDef
    names: dict[int, str] = {}
    nodes = []

    def add(name: str, op: str, sources: list[str], results: list[Value]) -> None:
        nodes.append(node_of(name=name, op=op, input=sources, attr={"_output_shapes": _shapes(results)}))

    for i, value in enumerate(traced.inputs()):
        kind = "input" if i < inputs else "parameter"
        names[value.unique()] = name = f"{kind}/{kind}.{i}"
        add(name, "IO Node", [], [value])
    for node in traced.nodes():
        results = list(node.outputs())
        if not node.kind().startswith("aten::"):
            continue
        name = "/".join(part for part in (node.scopeName(), f"{node.kind()}_{results[0].debugName()}") if part)
        sources = [names[value.unique()] for x in node.inputs() for value in _tensors(x) if value.unique() in names]
        add(name, node.kind(), sources, results)
        for value in results:
            names[value.unique()] = name
    for i, value in enumerate(outputs):
        sources = [names[x.unique()] for x in _tensors(value) if x.unique() in names]
        add(f"output/output.{i}", "IO Node", sources, [value])
    version = import_module("tensorboardX.proto.versions_pb2").VersionDef(producer=22)
    return import_module("tensorboardX.proto.graph_pb2").GraphDef(node=nodes, versions=version)


def _tensors(value: Value) -> Iterator[Value]:
    """A value, or the values in a list."""
    node = value.node()
    if node.kind() in ("prim::ListConstruct", "prim::ListUnpack"):
        for x in node.inputs():
            yield from _tensors(x)
    else:
        yield value


def _shapes(values: list[Value]) -> Any:
    shape = import_module("tensorboardX.proto.tensor_shape_pb2").TensorShapeProto
    attribute = import_module("tensorboardX.proto.attr_value_pb2").AttrValue
    sizes = [value.type().sizes() for value in values]
    shapes = [shape(dim=[shape.Dim(size=n) for n in each]) for each in sizes if each is not None]
    return attribute(list=attribute.ListValue(shape=shapes))
