"""Graph: nodes in order, and the Python code that computes them."""

from __future__ import annotations

import builtins
import copy
import keyword
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import norch  # code refers to it by its __name__, which as_torch() changes

from .node import BASE_TYPES, Node, has_side_effect, map_arg, path_of

# The operator's symbol in code for functions of the module operator.
MAGIC = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}",
    "floordiv": "{} // {}", "truediv": "{} / {}", "mod": "{} % {}", "lshift": "{} << {}", "rshift": "{} >> {}",
    "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "matmul": "{} @ {}", "pow": "{} ** {}", "abs": "abs({})",
}  # fmt: skip
INPLACE = [f"i{_name}" for _name in "add and floordiv lshift mod mul matmul or pow rshift sub truediv xor".split()]
REFLECTED = "add sub mul floordiv truediv mod lshift rshift and_ or_ xor matmul pow".split()
_WRITTEN = {getattr(operator, name): form for name, form in MAGIC.items()} | {operator.getitem: "{}[{}]"}
for _name in INPLACE:
    has_side_effect(getattr(operator, _name))
has_side_effect(operator.setitem)


class PythonCode(NamedTuple):
    """The code of a graph, and the globals that it uses."""

    src: str
    globals: dict[str, Any]


class CodeGen:
    """Writes a graph as a function."""


class _Names:
    """Makes unique names."""

    def __init__(self) -> None:
        self.of: dict[Any, str] = {}
        self.used: set[str] = set()

    def new(self, candidate: str, owner: Any = None) -> str:
        """A unique name like candidate; always the same for one owner."""
        if owner is not None and id(owner) in self.of:
            return self.of[id(owner)]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.fullmatch(r"(.*)_(\d+)", candidate)
        base, number = (match[1], int(match[2])) if match else (candidate, 0)
        while (
            candidate in self.used
            or keyword.iskeyword(candidate)
            or hasattr(builtins, candidate)
            or candidate == "self"
        ):
            number += 1
            candidate = f"{base}_{number}"
        self.used.add(candidate)
        if owner is not None:
            self.of[id(owner)] = candidate
        return candidate


class _Nodes:
    """The nodes of a graph, in order, as a sequence."""

    def __init__(self, graph: Graph, backward: bool = False):
        self.graph, self.backward = graph, backward

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root, at = self.graph._root, self.graph._root
        while True:
            at = at._prev if self.backward else at._next
            if at is root:
                return
            if not at._erased:
                yield at

    def __reversed__(self) -> _Nodes:
        return _Nodes(self.graph, not self.backward)


class Graph:
    """Nodes in the order in which they are computed, beginning with the placeholders and ending with the output.

    >>> graph = norch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(norch.relu, (x,)))
    >>> norch.fx.GraphModule({}, graph)(norch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "", "output", "", (), {})
        self._root._erased = True
        self._len, self._names = 0, _Names()
        self._insert: Callable[[Node], None] = self._root.prepend
        self._owning_module, self._tracer_cls, self._tracer_extras = owning_module, tracer_cls, tracer_extras
        self._codegen = CodeGen()

    @property
    def owning_module(self) -> Any:
        """The GraphModule that owns the graph, or None."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> Any:
        """The nodes, in order."""
        return _Nodes(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, with this target unless it is None."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def output_node(self) -> Node:
        """The output node."""
        return next(iter(reversed(self.nodes)))

    # ---- new nodes -----------------------------------------------------------------------------------------------

    def create_node(
        self, op: str, target: Any, args: Any = None, kwargs: Any = None, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """A new node at the insertion point: the end, unless inserting_before() or inserting_after() moved it."""
        if not isinstance(args, (tuple, list, type(None))):
            raise TypeError(f"create_node: args must be a tuple, not {type(args).__name__}")
        if not isinstance(kwargs, (dict, type(None))):
            raise TypeError(f"create_node: kwargs must be a dict, not {type(kwargs).__name__}")
        named = self._names.new(name if name is not None else _name_of(target))
        node = Node(self, named, op, target, args or (), kwargs or {}, type_expr)
        self._insert(node)
        self._len += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An argument of the function."""
        return self.create_node(
            "placeholder", name, () if default_value is ... else (default_value,), None, None, type_expr
        )

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """An attribute of the module, by its dotted name."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self, the_function: Any, args: Any = None, kwargs: Any = None, type_expr: Any = None, name: str | None = None
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, None, type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """A call of a submodule, by its dotted name."""
        return self.create_node("call_module", module_name, args, kwargs, None, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """The function's return value."""
        return self.create_node("output", "output", (result,), None, None, type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Copies a node of this or another graph; arg_transform maps the nodes in its arguments."""
        args, kwargs = map_arg((node.args, node.kwargs), arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copies the nodes of g that val_map lacks, and adds them to it. Returns the mapped output value."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    # ---- changes -------------------------------------------------------------------------------------------------

    def inserting_before(self, n: Node | None = None) -> Any:
        """Moves the insertion point before n (None: to the beginning), permanently or within a with statement."""
        return self._inserting(self._root._next.prepend if n is None else n.prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """Moves the insertion point after n (None: to the end), permanently or within a with statement."""
        last = [self._root._prev if n is None else n]

        def insert(node: Node) -> None:
            last[0].append(node)
            last[0] = node

        return self._inserting(insert)

    def _inserting(self, insert: Callable[[Node], None]) -> Any:
        before, self._insert = self._insert, insert

        @contextmanager
        def until() -> Iterator[None]:
            try:
                yield
            finally:
                self._insert = before

        return until()

    def erase_node(self, to_erase: Node) -> None:
        """Removes a node. RuntimeError if it has users or belongs to another graph."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase._change((), {})

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Removes unused nodes without side effects; returns whether there were any."""
        self.lint()
        before = self._len
        for node in reversed(self.nodes):
            impure = node.is_impure() if is_impure_node is None else is_impure_node(node)
            if not impure and not node.users:
                self.erase_node(node)
        return self._len < before

    def lint(self) -> None:
        """Raises RuntimeError unless nodes are used after they are defined, names are unique, and targets exist."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for x in node.all_input_nodes:
                if x not in seen:
                    raise RuntimeError(f"Argument '{x}' of Node '{node}' was used before it has been defined!")
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                at = self.owning_module
                for name in node.target.split("."):
                    if not hasattr(at, name):
                        raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {name}")
                    at = getattr(at, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        copied, new_nodes = Graph(tracer_cls=self._tracer_cls), dict[Node, Node]()
        for node in self.nodes:
            new_nodes[node] = copied.node_copy(node, new_nodes.__getitem__)
        return copied

    def __reduce__(self) -> Any:
        at = {node: i for i, node in enumerate(self.nodes)}
        rows = [
            (x.op, x.target, *map_arg((x.args, x.kwargs), lambda node: _Reference(at[node])), x.name, x.type)
            for x in self.nodes
        ]
        return _restored, (rows, self._tracer_cls)

    # ---- text ----------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    def print_tabular(self) -> None:
        """Prints the nodes as a table."""
        rows = [["opcode", "name", "target", "args", "kwargs"]]
        rows += [[x.op, x.name, str(x.target), str(x.args), str(x.kwargs)] for x in self.nodes]
        widths = [max(map(len, column)) for column in zip(*rows)]
        rows.insert(1, ["-" * width for width in widths])
        print("\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows))

    def python_code(self, root_module: str = "self", **_: Any) -> PythonCode:
        """(code, globals) of the function, whose first argument is root_module."""
        return _Writer(self, root_module).written()


class _Reference(NamedTuple):
    """A reference to a node in a pickle."""

    number: int


def _restored(rows: list[Any], tracer_cls: Any) -> Graph:
    from .node import map_aggregate

    graph, nodes = Graph(tracer_cls=tracer_cls), list[Node]()

    def node_of(x: Any) -> Any:
        return nodes[x.number] if isinstance(x, _Reference) else x

    def back(x: Any) -> Any:
        if isinstance(x, _Reference):
            return nodes[x.number]
        if isinstance(x, (tuple, list)) and not hasattr(x, "_fields"):
            return type(x)(map(back, x))
        if isinstance(x, dict):
            return {key: back(value) for key, value in x.items()}
        return map_aggregate(x, node_of)

    for op, target, args, kwargs, name, type_expr in rows:
        nodes.append(graph.create_node(op, target, back(args), back(kwargs), name, type_expr))
    return graph


def _name_of(target: Any) -> str:
    """The name of a node of this target before it is made unique: fooBar gives foo_bar, __add__ gives add."""
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    if isinstance(target, str) and re.fullmatch(r"__.+__", name):
        name = name[2:-2]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


class _Writer:
    """Writes a graph as code."""

    def __init__(self, graph: Graph, root: str):
        self.graph, self.root, self.names, self.globals = graph, root, _Names(), dict[str, Any]()
        self.names.used |= {node.name for node in graph.nodes}

    def written(self) -> PythonCode:
        """The code."""
        last: dict[Node, list[Node]] = {}  # {node: the nodes whose last user it is}
        used: set[Node] = set()
        for node in reversed(self.graph.nodes):
            for x in node.all_input_nodes:
                if x not in used:
                    used.add(x)
                    last.setdefault(node, []).append(x)
        arguments, body, result = [], [], "    return None"
        for node in self.graph.nodes:
            if node.op == "placeholder":
                arguments.append(self.argument(node))
                if node.target.lstrip("*") != node.name:
                    body.append(f"    {node.name} = {node.target.lstrip('*')}")
                continue
            if node.op == "output":
                result = f"    return {self.text(node.args[0])}"
                continue
            line = f"    {node.name}{self.annotation(node)} = {self.expression(node)}"
            if not node.users:
                line = f"    {line.strip()};  {node.name} = None"
            unused = [x.name for x in last.get(node, ())]
            body.append(line + (f";  {' = '.join(unused)} = None" if unused else ""))
        head = f"def forward({', '.join([self.root, *arguments])}):"
        return PythonCode("\n".join(["\n\n", head, *body, result, "    "]), self.globals)

    def argument(self, node: Node) -> str:
        """A placeholder in the parameter list."""
        default = f" = {self.text(node.args[0])}" if node.args else ""
        return f"{node.target}{self.annotation(node)}{default}"

    def annotation(self, node: Node) -> str:
        """The type annotation of a node, if it has one."""
        return "" if node.type is None else f" : {self.global_of(node.type)}"

    def expression(self, node: Node) -> str:
        """The call of a node."""
        if node.op == "get_attr":
            return _attribute(self.root, node.target)
        if node.op == "call_module":
            return f"{_attribute(self.root, node.target)}({self.arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            return f"{self.text(node.args[0])}.{node.target}({self.arguments(node.args[1:], node.kwargs)})"
        form = _WRITTEN.get(node.target)
        if form is not None and not node.kwargs and len(node.args) == form.count("{}"):
            return form.format(*(self.text(x) if isinstance(x, Node) else self.operand(x) for x in node.args))
        if (
            node.target is getattr
            and len(node.args) == 2
            and isinstance(node.args[1], str)
            and node.args[1].isidentifier()
        ):
            return f"{self.text(node.args[0])}.{node.args[1]}"
        return f"{self.global_of(node.target)}({self.arguments(node.args, node.kwargs)})"

    def operand(self, x: Any) -> str:
        """An operand, in parentheses if necessary."""
        text = self.text(x)
        return f"({text})" if text[0] == "-" else text

    def arguments(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        """The arguments of a call."""
        return ", ".join([*map(self.text, args), *(f"{key} = {self.text(x)}" for key, x in kwargs.items())])

    def text(self, x: Any) -> str:
        """An argument as an expression."""
        if isinstance(x, Node):
            return x.name
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return f"{self.global_of(type(x))}({', '.join(map(self.text, x))})"
        if isinstance(x, tuple):
            return f"({', '.join(map(self.text, x))}{',' if len(x) == 1 else ''})"
        if isinstance(x, list):
            return f"[{', '.join(map(self.text, x))}]"
        if isinstance(x, dict):
            return "{" + ", ".join(f"{key!r}: {self.text(value)}" for key, value in x.items()) + "}"
        if isinstance(x, slice):
            return f"slice({self.text(x.start)}, {self.text(x.stop)}, {self.text(x.step)})"
        if isinstance(x, float) and not float("-inf") < x < float("inf"):
            return f"float('{x}')"
        if isinstance(x, (*BASE_TYPES, range)):
            return "..." if x is ... else repr(x)
        return self.global_of(x)

    def global_of(self, x: Any) -> str:
        """The name under which the code refers to a function, class or other object."""
        if x is type(None):
            return "None"
        path = path_of(x) if hasattr(x, "__name__") else ""
        if path.startswith("builtins.") and getattr(builtins, path[9:], None) is x:
            return path[9:]
        root, *names = path.split(".")
        if names and root == norch.__name__:
            at: Any = norch
            for name in names:
                at = getattr(at, name, None)
            if at is x:
                self.globals[root] = norch
                return path
        name = self.names.new((path or type(x).__name__).replace(".", "_"), x)
        self.globals[name] = x
        return name


def _attribute(root: str, path: str) -> str:
    """root.path; parts of the path may be numbers."""
    text = root
    for name in path.split("."):
        text = f"{text}.{name}" if name.isidentifier() else f'getattr({text}, "{name}")'
    return text
