"""Passes over graphs of torch.fx, by PyTorch's names: the shapes of all nodes (fx.passes.shape_prop), and networks for
inference (fx.experimental.optimization)."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, NamedTuple

import norch

from .. import nn
from ..fx import GraphModule, Interpreter, Node, Transformer, symbolic_trace
from ..fx.node import map_aggregate
from ..nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from ..tensor import Tensor


class TensorMetadata(NamedTuple):
    """The metadata of a node's result, its meta["tensor_meta"]."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    contiguous = include_contiguity and result.is_contiguous()
    memory_format = norch.contiguous_format if contiguous else None
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), memory_format, False, {})


class ShapeProp(Interpreter):
    """Runs a graph, and stores in meta of each node the metadata of the tensors in its result, and its type."""

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        result, tensors = super().run_node(n), []

        def noted(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            tensors.append(x)
            return _extract_tensor_metadata(x)

        metadata = map_aggregate(result, noted)
        if tensors:
            n.meta["tensor_meta"] = metadata
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """run()."""
        return self.run(*args)


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Whether node calls a module of the second class on the result of a module of the first class."""
    source: Any = node.args[0] if node.args else None
    pair = (source, node)
    if not all(isinstance(x, Node) and x.op == "call_module" and x.target in modules for x in pair):
        return False
    return all(type(modules[x.target]) is kind for kind, x in zip(pattern, pair, strict=True))


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Any) -> None:
    """Replaces the module that node calls."""
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


_FUSED: Any = (
    (nn.Conv1d, nn.BatchNorm1d, fuse_conv_bn_eval),
    (nn.Conv2d, nn.BatchNorm2d, fuse_conv_bn_eval),
    (nn.Conv3d, nn.BatchNorm3d, fuse_conv_bn_eval),
    (nn.Linear, nn.BatchNorm1d, fuse_linear_bn_eval),
)


def fuse(model: Any, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """A graph of model, in evaluation, whose batch normalisations are folded into the layers before them."""
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    graph = copy.deepcopy(traced.graph)
    modules: dict[str, Any] = dict(traced.named_modules())
    for layer, norm, fused in _FUSED:
        for node in graph.nodes:
            if not matches_module_pattern((layer, norm), node, modules) or len(node.args[0].users) > 1:
                continue
            if modules[node.target].track_running_stats:
                together = fused(modules[node.args[0].target], modules[node.target])
                replace_node_module(node.args[0], modules, together)
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
    return GraphModule(traced, graph)


class _WithoutDropout(Transformer):
    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        dropped = isinstance(self.submodules[target], nn.Dropout)
        return args[0] if dropped else super().call_module(target, args, kwargs)


def remove_dropout(model: Any) -> GraphModule:
    """A graph of model without its Dropout layers."""
    return _WithoutDropout(symbolic_trace(model)).transform()
