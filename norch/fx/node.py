"""Node: one step of a graph."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from ..overrides import handle_torch_function, has_torch_function_unary, resolve_name

OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
BASE_TYPES = (str, int, float, bool, complex, type(None), type(...))
BaseArgumentTypes = Argument = Any  # for annotations
Target = Callable[..., Any] | str
_side_effects: set[Any] = set()


def has_side_effect(function: Any) -> Any:
    """Marks a function as having side effects, so that its calls stay in a graph when unused. Returns it."""
    _side_effects.add(function)
    return function


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """a with fn(x) in place of each x in its tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        parts = [map_aggregate(x, fn) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return [map_aggregate(x, fn) for x in a]
    if isinstance(a, dict):
        return {key: map_aggregate(x, fn) for key, x in a.items()}
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """a with fn(node) in place of each node."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


class Node:
    """One step of a graph.

    op        placeholder, get_attr, call_function, call_method, call_module or output
    target    the name of an argument, attribute, method or submodule, or the function
    args, kwargs  its arguments: numbers, strings, nodes, and containers of them
    users     the nodes that use its result
    meta      a dict for the program's notes
    """

    def __init__(
        self, graph: Any, name: str, op: str, target: Any, args: Any, kwargs: Any, return_type: Any = None
    ) -> None:
        if op not in OPS:
            raise ValueError(f"{op!r} is not one of {', '.join(OPS)}")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node [graph = {graph}, name = {name!r}] target {target!r} has to be callable")
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(f"Node [name = {name!r}] target {target!r} has to be a str for {op}")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._change(args, kwargs)

    # ---- arguments -----------------------------------------------------------------------------------------------

    def _change(self, args: Any, kwargs: Any) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._args, self._kwargs, self._input_nodes = map_arg(tuple(args), _same), map_arg(dict(kwargs), _same), {}
        map_arg((self._args, self._kwargs), lambda node: self._input_nodes.setdefault(node))
        for node in self._input_nodes:
            node.users.setdefault(self)

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments by position."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._change(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._change(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among its arguments, without duplicates."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replaces a positional argument."""
        self.args = (*self._args[:idx], arg, *self._args[idx + 1 :])

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Inserts an argument before a position."""
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replaces a keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replaces old_input by new_input in the arguments."""
        args, kwargs = map_arg((self._args, self._kwargs), lambda node: new_input if node is old_input else node)
        self._change(args, kwargs)

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Replaces this node by replace_with in its users, or in those for which delete_user_cb returns True. Returns
        the users."""
        if propagate_meta:
            replace_with.meta.update({key: x for key, x in self.meta.items() if key not in replace_with.meta})
        users = [user for user in self.users if delete_user_cb(user)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    # ---- its place -----------------------------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        """The next node."""
        return self._next

    @property
    def prev(self) -> Node:
        """The previous node."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Moves x, a node of the same graph, before this one."""
        if x.graph is not self.graph:
            raise ValueError("a node cannot move to another graph; use node_copy()")
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Moves x after this node."""
        if x is not self._next:
            self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    # ---- what it is ----------------------------------------------------------------------------------------------

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it must stay when its result is unused."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effects or "out" in self._kwargs or bool(self._kwargs.get("inplace"))
        if self.op == "call_module":
            root = self.graph.owning_module
            module = None if root is None else root.get_submodule(self.target)
            return bool(getattr(module, "_is_impure", False))
        return self.op == "call_method" and self.target.endswith("_") and not self.target.endswith("__")

    @property
    def stack_trace(self) -> str | None:
        """The place where it was traced, if the tracer recorded that."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def format_node(self, *_: Any, **__: Any) -> str:
        """The node as one line."""
        if self.op == "output":
            return f"return {self._args[0] if self._args else None}"
        target = self.target
        if self.op == "call_function":
            target = path_of(target)
        about = ""
        if self.op == "placeholder" and self._args:
            about = f"(default={self._args[0]})"
        elif self.op.startswith("call"):
            about = f"(args = {_shown(self._args)}, kwargs = {_shown(self._kwargs)})"
        kind = f"{getattr(self.type, '__name__', self.type)} " if self.type is not None else ""
        return f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={target}]{about}"

    def __repr__(self) -> str:
        return self.name


def path_of(function: Any) -> str:
    """The importable name of a function, such as "norch.nn.functional.linear"."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", function.__name__)
    if module == "builtins" or module is None:
        return f"builtins.{name}" if hasattr(builtins, name) else name
    if module.startswith(("norch", "torch")) and (found := resolve_name(function)) is not None:
        return found
    return f"{'operator' if module == '_operator' else module}.{name}"


def _shown(x: Any) -> str:
    """An argument in format_node()."""
    if isinstance(x, tuple):
        return f"({', '.join(map(_shown, x))}{',' if len(x) == 1 else ''})"
    if isinstance(x, list):
        return f"[{', '.join(map(_shown, x))}]"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{key}: {_shown(value)}" for key, value in x.items()) + "}"
    return f"%{x.name}" if isinstance(x, Node) else str(x)


@has_side_effect
def _assert(condition: Any, message: Any) -> None:
    """Raises AssertionError unless condition. Unlike assert it stays under `python -O` and in a trace."""
    if has_torch_function_unary(condition):
        handle_torch_function(_assert, (condition,), condition, message)
    elif not condition:
        raise AssertionError(message)


def _same(x: Any) -> Any:
    return x
