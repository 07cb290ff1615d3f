"""GraphModule: a module that computes a graph."""

from __future__ import annotations

import copy
import linecache
from itertools import count
from typing import Any

from ..nn.module import Module
from ..nn.parameter import Parameter
from ..tensor import Tensor
from .graph import Graph, PythonCode, norch

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_numbers = count()


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Copies the attribute at a dotted name from one module to another, with the modules on its path."""
    *path, name = target.split(".")
    for part in path:
        source, existing = getattr(from_module, part), getattr(to_module, part, None)
        if source is existing:
            return
        if existing is None:
            existing = Module()
            setattr(to_module, part, existing)
        from_module, to_module = source, existing
    value = getattr(from_module, name)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(name, value)
    else:
        setattr(to_module, name, value)


def _assign_attr(found: Any, to_module: Any, target: str) -> None:
    *path, name = target.split(".")
    for part in path:
        if getattr(to_module, part, None) is None:
            setattr(to_module, part, Module())
        to_module = getattr(to_module, part)
    if isinstance(found, Tensor) and not isinstance(found, Parameter):
        to_module.register_buffer(name, found)
    else:
        setattr(to_module, name, found)


def function_of(code: PythonCode) -> Any:
    """Compiles the code of a graph to a function; tracebacks show its lines."""
    name = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[name] = (len(code.src), None, code.src.splitlines(keepends=True), name)
    namespace = dict(code.globals)
    exec(compile(code.src, name, "exec", dont_inherit=True), namespace)  # noqa: S102  (of the nodes of a graph)
    return namespace["forward"]


class GraphModule(Module):
    """A module whose forward() computes a graph. It has the submodules, parameters and buffers that the graph uses.

    root: a module that has them, or a dict of them by dotted name. Call recompile() after changing the graph; assigning
    `graph` does so.
    """

    _graph: Graph
    _code: str

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        for base in cls.__mro__:  # each instance has its own class, with its own forward
            if base.__qualname__.endswith("GraphModuleImpl"):
                continue
            return super().__new__(type("GraphModuleImpl", (base,), {"__module__": base.__module__}))
        raise TypeError("not a GraphModule class")

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        targets = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = root.training
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            if lacking := [target for target in targets if target not in root]:
                raise RuntimeError(f"Node referenced target {lacking[0]} but that target was not provided in ``root``!")
            for target in sorted(set(targets), key=lambda name: name.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self._tracer_cls = graph._tracer_cls
        self.meta: dict[str, Any] = {}
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise TypeError(f"expected a Graph, not {type(g).__name__}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    def recompile(self) -> PythonCode:
        """Regenerates the code and forward() from the graph."""
        code = self._graph.python_code("self")
        self.__dict__["_code"] = code.src
        type(self).forward = function_of(code)
        return code

    @property
    def code(self) -> str:
        """The code of forward()."""
        return self._code

    def print_readable(self, print_output: bool = True, **_: Any) -> str:
        """The code as a class; also prints it."""
        text = f"class {type(self).__name__}({norch.__name__}.nn.Module):" + self._code.replace("\n", "\n    ")
        if print_output:
            print(text)
        return text

    def add_submodule(self, target: str, m: Module) -> bool:
        """Adds a submodule at a dotted name; False if the path is blocked."""
        *path, name = target.split(".")
        at: Any = self
        for part in path:
            if not hasattr(at, part):
                at.add_module(part, Module())
            at = getattr(at, part)
            if not isinstance(at, Module):
                return False
        at.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Deletes the submodule at a dotted name; False if there is none."""
        *path, name = target.split(".")
        at: Any = self
        for part in path:
            at = getattr(at, part, None)
        if not isinstance(getattr(at, name, None), Module):
            return False
        delattr(at, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Deletes the submodules that the graph does not use."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used |= {".".join(parts[: i + 1]) for i in range(len(parts))}
                if node.op == "call_module":
                    inside = self.get_submodule(node.target).named_modules()
                    used |= {f"{node.target}.{name}" for name, _ in inside if name}
        for name in [name for name, _ in self.named_modules()]:
            if name and name not in used:
                self.delete_submodule(name)

    def _copied(self, state: dict[str, Any], graph: Graph) -> GraphModule:
        return _rebuilt(type(self).__mro__[1], state, graph, type(self).__name__)

    def _state(self) -> dict[str, Any]:
        return {name: x for name, x in self.__dict__.items() if name not in ("_graph", "_code")}

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        shell = Module()
        shell.__dict__.update(self._state())
        state = copy.deepcopy(shell, memo).__dict__
        memo[id(self)] = copied = self._copied(state, copy.deepcopy(self._graph, memo))
        return copied

    def __copy__(self) -> GraphModule:
        shell = Module()
        shell.__dict__.update(self._state())
        return self._copied(copy.copy(shell).__dict__, copy.deepcopy(self._graph))

    def __reduce__(self) -> Any:
        shell = Module()
        shell.__dict__.update(self._state())
        return _rebuilt, (type(self).__mro__[1], shell, self._graph, type(self).__name__)

    def __str__(self) -> str:
        return f"{super().__repr__()}\n\n{self._code}\n"


def _rebuilt(cls: Any, state: Any, graph: Graph, name: str) -> GraphModule:
    module = cls.__new__(cls)
    Module.__init__(module)
    module.__class__.__name__ = name
    for key, x in (state if isinstance(state, dict) else state.__dict__).items():
        if key in ("_parameters", "_buffers", "_modules"):
            for entry, value in x.items():
                persistent = entry not in state_of(state, "_non_persistent_buffers_set")
                module.register_buffer(entry, value, persistent) if key == "_buffers" else setattr(module, entry, value)
        elif key not in module.__dict__ or not hasattr(module.__dict__[key], "items"):
            module.__dict__[key] = x
    module.graph = graph
    return module


def state_of(state: Any, key: str) -> Any:
    """An entry of a module's state."""
    return (state if isinstance(state, dict) else state.__dict__)[key]


class _CodeOnlyModule(Module):
    """A module with these attributes, from which unpickling restores a graph."""

    def __init__(self, body: dict[str, Any]):
        super().__init__()
        self.__dict__.update(body)
