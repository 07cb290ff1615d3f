"""Interpreter: runs a graph node by node. Transformer: rewrites a graph node by node."""

from __future__ import annotations

from typing import Any

from ..nn.module import Module
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_arg
from .proxy import GraphAppendingTracer, Proxy


class Interpreter:
    """Runs a module's graph node by node; subclasses change what a kind of node does.

    >>> class Named(norch.fx.Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         print(target.__name__)
    ...         return super().call_function(target, args, kwargs)
    >>> Named(norch.fx.symbolic_trace(lambda x: norch.relu(x) + 1)).run(norch.tensor([-1.0]))
    relu
    add
    tensor([1.])
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None):
        self.module = module
        self.graph = module.graph if graph is None else graph
        self.garbage_collect_values, self.extra_traceback = garbage_collect_values, True
        self.env: dict[Node, Any] = {}
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(self.graph.nodes):
            for x in node.all_input_nodes:
                if x not in seen:
                    seen.add(x)
                    self.user_to_last_uses.setdefault(node, []).append(x)

    @property
    def submodules(self) -> dict[str, Module]:
        """The submodules, by dotted name."""
        return dict(self.module.named_modules())

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """The result for these arguments. initial_env: results of nodes that need not be computed."""
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                error.args = (
                    f"{error.args[0] if error.args else ''}\n\nWhile executing {node.format_node()}",
                    *error.args[1:],
                )
                raise
            if node.op == "output":
                return self.env[node]
            if self.garbage_collect_values:
                for x in self.user_to_last_uses.get(node, ()):
                    del self.env[x]
        return None

    def run_node(self, n: Node) -> Any:
        """Computes a node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The next argument; all remaining ones for *args."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A call of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A call of a method."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A call of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The result of the graph."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module at a dotted name."""
        value = self.module
        for i, name in enumerate(parts := target.split(".")):
            if not hasattr(value, name):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: i + 1])}")
            value = getattr(value, name)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """The arguments of a node, with nodes replaced by their results."""
        return self.map_nodes_to_values((n.args, n.kwargs), n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """args with nodes replaced by their results."""
        return map_arg(args, self.env.__getitem__)


class Transformer(Interpreter):
    """Runs a module's graph on proxies of a new graph; subclasses change how a kind of node is rewritten."""

    def __init__(self, module: Any):
        super().__init__(module)
        self.new_graph = Graph(tracer_cls=module.graph._tracer_cls)
        self.tracer = GraphAppendingTracer(self.new_graph)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The same argument of the new graph."""
        return Proxy(self.new_graph.placeholder(target, default_value=args[0] if args else ...), self.tracer)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The same attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The same call."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The same call."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the rewritten graph."""
        result = super().run()
        if result is not None:
            self.new_graph.output(map_arg_proxies(result))
        return GraphModule(self.module, self.new_graph)

    def run_node(self, n: Node) -> Any:
        """The proxy that replaces a node; its node gets the name and meta."""
        result = super().run_node(n)
        if isinstance(result, Proxy):
            result.node.meta.update(n.meta)
        return result


def map_arg_proxies(value: Any) -> Any:
    """A value with proxies replaced by their nodes."""
    from .node import map_aggregate

    return map_aggregate(value, lambda x: x.node if isinstance(x, Proxy) else x)
