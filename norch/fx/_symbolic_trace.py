"""Tracing: runs a module or function on proxies and records the graph of the operations on them."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import operator
import sys
from collections.abc import Callable
from itertools import chain
from threading import get_ident
from types import FunctionType, ModuleType
from typing import Any

from .._package import override as _override
from ..nn.container import Sequential
from ..nn.module import Module
from ..nn.parameter import Parameter
from ..tensor import Tensor
from .graph import Graph
from .graph_module import GraphModule
from .node import BASE_TYPES, _assert, map_aggregate
from .proxy import ParameterProxy, Proxy, TraceError, TracerBase

_wrapped: dict[tuple[int, str], dict[str, Any]] = {}  # by (id of globals, name): the globals of a wrapped function


def wrap(fn_or_name: Any) -> Any:
    """Makes a trace keep each call of a function of the calling module as one node instead of running it on proxies.
    Call it at module level with a function or its name (also "len" of Python), or use it as a decorator. Returns the
    argument."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise TypeError(f"wrap: expected a function or its name, not {type(fn_or_name).__name__}")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


class Tracer(TracerBase):
    """Traces a module into a graph. is_leaf_module(), which subclasses may override, decides which modules stay one
    call; functions of autowrap_modules and autowrap_functions do too."""

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        functions = [
            x for module in autowrap_modules for name, x in vars(module).items() if name[0] != "_" and callable(x)
        ]
        self._autowrapped = {id(x): x for x in chain(functions, autowrap_functions)}
        self.param_shapes_constant = param_shapes_constant
        self.root: Any = None
        self.scope: list[str] = []

    # ---- what subclasses may change ------------------------------------------------------------------------------

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of a module is one node: true for the modules of norch.nn except Sequential."""
        return m.__module__.startswith(("norch.nn.", "torch.nn.")) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The dotted name of a submodule; NameError for another module."""
        found = self._paths.get(id(mod)) or next((name for name, m in self.root.named_modules() if m is mod), None)
        if found is None:
            raise NameError("module is not installed as a submodule")
        return found

    def call_module(self, m: Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Calls a module: a node, or the result of its forward on proxies."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """The value of a parameter that a module reads."""
        return parameter_proxy_cache.get(attr, attr_val)

    def create_arg(self, a: Any) -> Any:
        """Parameters, buffers and submodules become attributes; other tensors become constants of the module."""
        if isinstance(a, Tensor) and not isinstance(a, Proxy):
            found = self._tensors.get(id(a))
            if found is None:
                number = 0
                while hasattr(self.root, name := f"_tensor_constant{number}"):
                    number += 1
                if a.grad_fn is not None:
                    raise TraceError("a tensor computed from parameters outside the trace cannot be a constant")
                setattr(self.root, name, a)
                found = self._tensors[id(a)] = name
                self._kept.append(a)
            return self.create_node("get_attr", found, (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    # ---- the trace -----------------------------------------------------------------------------------------------

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or function. concrete_args: values of arguments, used instead of proxies."""
        _override.begin()
        if isinstance(root, Module):
            self.root, function = root, type(root).forward
        else:
            self.root, function = Module(), root
        self._paths = {id(m): name for name, m in self.root.named_modules()}
        self._tensors = {id(x): name for name, x in chain(self.root.named_buffers(), self.root.named_parameters())}
        self._kept: list[Any] = []
        self.graph = Graph(tracer_cls=type(self))
        takes: Callable[..., Any] = function
        if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
            takes = _without_stars(function)
        arguments, named = self._arguments(function, isinstance(root, Module), concrete_args or {}, takes is function)
        restore: list[Callable[[], None]] = []
        try:
            self._replace(function, restore)
            result = takes(*arguments, **named)
        finally:
            for undo in reversed(restore):
                undo()
        self.create_node("output", "output", (self.create_arg(result),), {}, None, None)
        return self.graph

    def _arguments(
        self, function: Any, is_module: bool, values: dict[str, Any], has_stars: bool
    ) -> tuple[list[Any], dict[str, Any]]:
        """Proxies for the arguments. has_stars: the function that is called takes *args one by one."""
        arguments: list[Any] = [self.root] if is_module else []
        named: dict[str, Any] = {}
        parameters = list(inspect.signature(function).parameters.values())[is_module:]
        for p in parameters:
            stars = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
            default = () if p.default is p.empty or stars else (p.default,)
            kind = None if p.annotation is p.empty or not isinstance(p.annotation, type) else p.annotation
            if p.name in values:
                default = (values[p.name],)
            node = self.create_node("placeholder", stars + p.name, self.create_arg(default), {}, None, kind)
            value = values.get(p.name, self.proxy(node))
            if p.name in values and isinstance(value, BASE_TYPES):
                is_equal = self.create_proxy("call_function", operator.eq, (self.proxy(node), value), {})
                message = f"{p.name} has been specialized to have value {value} but got another value"
                self.create_proxy("call_function", _assert, (is_equal, message), {})
            if stars and has_stars:
                if p.kind is p.VAR_POSITIONAL:
                    arguments += value if isinstance(value, (list, tuple)) else [value]
                else:
                    named |= value if p.name in values else {}
            elif stars or p.kind is p.KEYWORD_ONLY:
                named[p.name] = value
            else:
                arguments.append(value)
        return arguments, named

    def _replace(self, function: Any, restore: list[Callable[[], None]]) -> None:
        """Redirects calls of modules, reads of parameters and wrapped functions to this tracer."""
        original, thread, seen = Module.__call__, get_ident(), set[int]()

        def set_global(names: dict[str, Any], name: str, x: Any) -> None:
            before = names.get(name, _MISSING)
            names[name] = x
            restore.append(
                lambda: names.pop(name, None) and None if before is _MISSING else names.update({name: before})
            )

        def wrap_globals(names: dict[str, Any]) -> None:
            if id(names) in seen:
                return
            seen.add(id(names))
            for name, x in list(names.items()):
                if id(x) in self._autowrapped and name[0] != "_":
                    set_global(names, name, self._one_call(x))

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if get_ident() != thread:
                return original(module, *args, **kwargs)

            def forward(*args: Any, **kwargs: Any) -> Any:
                self.scope.append(type(module).__name__)
                try:
                    return original(module, *args, **kwargs)
                finally:
                    self.scope.pop()

            wrap_globals(getattr(getattr(module, "forward", None), "__globals__", {}))
            return self.call_module(module, forward, args, kwargs)

        setattr(Module, "__call__", call)  # noqa: B010
        restore.append(lambda: setattr(Module, "__call__", original))
        cache: dict[str, Any] = {}
        for path, module in self.root.named_modules():
            for name, param in list(module._parameters.items()):
                full = f"{path}.{name}" if path else name
                if isinstance(param, Parameter) and module.__dict__.get(name) is param:
                    target = self._tensors.get(id(param), full)
                    proxy = cache.setdefault(target, ParameterProxy(self, target, param))
                    module.__dict__[name] = self.getattr(target, proxy, cache)
                    restore.append(functools.partial(module.__dict__.__setitem__, name, param))
        for (_, name), names in _wrapped.items():
            found = names.get(name, getattr(builtins, name, None))
            if found is not None:
                set_global(names, name, self._one_call(found))
        if isinstance(function, FunctionType):
            wrap_globals(function.__globals__)
        for x in self._autowrapped.values():
            if isinstance(x, FunctionType) and x.__module__ in sys.modules:
                names = vars(sys.modules[x.__module__])
                name = x.__name__
                if names.get(name) is x:
                    set_global(names, name, self._one_call(x))

    def _one_call(self, function: Any) -> Any:
        @functools.wraps(function)
        def kept(*args: Any, **kwargs: Any) -> Any:
            outputs: list[Any] = []
            map_aggregate((args, kwargs), lambda x: outputs.append(x) if isinstance(x, Proxy) else None)
            return self.create_proxy("call_function", function, args, kwargs) if outputs else function(*args, **kwargs)

        return kept


_MISSING = object()


def _without_stars(function: FunctionType) -> FunctionType:
    """function, with its *args and **kwargs as arguments of these names: one proxy stands for all of each."""
    code = function.__code__
    stars = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if not stars:
        return function
    count = code.co_argcount + code.co_kwonlyargcount + stars.bit_count()
    code = code.replace(co_argcount=count, co_kwonlyargcount=0, co_flags=code.co_flags & ~stars)
    return FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A GraphModule that computes a module or function, along the branches taken in this trace. TraceError if a branch
    depends on a tensor's value.

    concrete_args: values of arguments by name, which become constants of the graph.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
