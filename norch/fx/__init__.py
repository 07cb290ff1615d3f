"""``norch.fx``: programs as graphs, as in PyTorch. symbolic_trace() runs a module on proxies and records each use of
them as a node. A GraphModule computes a graph; `code` is its Python code.

>>> class Scaled(norch.nn.Module):
...     def __init__(self):
...         super().__init__()
...         self.linear = norch.nn.Linear(3, 2)
...     def forward(self, x):
...         return norch.relu(self.linear(x)) * 2
>>> traced = norch.fx.symbolic_trace(Scaled())
>>> print(traced.code.strip())
def forward(self, x):
    linear = self.linear(x);  x = None
    relu = norch.relu(linear);  linear = None
    mul = relu * 2;  relu = None
    return mul
"""

from __future__ import annotations

from .._package.exports import publish
from ._symbolic_trace import Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .node import _assert as _assert
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "has_side_effect",
    "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip


publish(globals())
