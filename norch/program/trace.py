"""Trace: what Python notes while a function is recorded. C records the calls of the library (norch.Recording).

before_run, after_run  functions to call before and after each replay: they update hyper-parameters and step counts
watches                options of optimizers, as guards: before_run is called only if one has changed. None: always
guards                 conditions (container, key, value) for a replay: container[key] must be value, or equal it if it
                       is a number or a string. The key None stands for the size of the container
modules                {id: module} of the modules that were called
kept                   objects whose memory the calls use: generators of random numbers, C structs of hyper-parameters
generators             (state, seed, counter) of each generator before its first random numbers
visited                nodes that backward() has visited
unfinished             collectives that were begun, and not yet waited for
is_joint               whether the function and its gradient are recorded as two parts (joint.py)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from .._handle import Handle
from .._lib import lib
from .._nvrtc import name_nvrtc
from .._recording import here, unseen
from ..amp.state import fresh_cast_cache
from ..autograd import anomaly
from ..autograd.reachable import reachable
from ..nn._watch import watching
from ..nn.module import Module

Guard = tuple[Any, Any, Any]
_SOURCE = (ModuleType, FunctionType, BuiltinFunctionType, type)  # definitions, which programs do not rebind
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Trace:
    """See above. here.trace is the trace that is under way in this thread (norch/_recording.py)."""

    def __init__(self, is_joint: bool = False) -> None:
        name_nvrtc()
        self.is_joint = is_joint
        self.before_run: list[Callable[[], bool]] = []
        self.after_run: list[Callable[[], None]] = []
        self.watches: list[Guard] | None = []
        self.guards: list[Guard] = []
        self.kept: list[Any] = []
        self.generators: list[tuple[Any, int, int]] = []
        self.visited: set[Any] = set()
        self.unfinished: set[Any] = set()
        self.modules: dict[int, Module] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """For the call of the function."""
        outer, here.trace = here.trace, self
        try:
            with watching(_note_module), fresh_cast_cache():
                yield
        finally:
            here.trace = outer

    # ---- called by other modules while a function is traced ------------------------------------------------------

    def on_replay(
        self, before: Callable[[], bool], after: Callable[[], None] | None, options: dict[str, Any] | None
    ) -> None:
        """before() writes numbers to C memory that the calls read, and returns whether the recording still fits;
        after() advances step counts. options: before() is needed only if one of these has changed; None: always."""
        self.before_run.append(before)
        if after is not None:
            self.after_run.append(after)
        if options is None:
            self.watches = None
        elif self.watches is not None:
            self.watches += [(options, name, value) for name, value in options.items()]

    def guard(self, container: Any, key: Any, value: Any) -> None:
        """Adds the guard that container[key], of a dict or list, is value."""
        self.guards.append((container, key, value))

    def guard_size(self, container: Any) -> None:
        """Adds the guard that len(container) does not change."""
        self.guards.append((container, None, len(container)))

    def note_generator(self, state: Any) -> None:
        """Notes that random numbers are drawn from a generator of this state."""
        if all(state is not known for known, *_ in self.generators):
            self.generators.append((state, state[0], state[1]))
            self.kept.append(state)

    def note_backward(self, roots: list[Any]) -> None:
        """Notes that backward() walks from these nodes, and frees their graph."""
        self.visited |= reachable(roots, self.visited)

    # ---- the end ---------------------------------------------------------------------------------------------------

    def end(
        self, recording: Any, given: tuple[Any, ...], results: list[Any], copy: bool, alone: bool, fuse: bool
    ) -> bool:
        """Ends the recording. False if it cannot be replayed; norch_refusal() has the reason."""
        if self.unfinished:
            unseen("a collective that the function begins goes on after it; wait() for its Work in the function")
        guards, watches = _by_container(self.guards), self.watches and _by_container(self.watches)
        before_run, after_run = _each(self.before_run), _each(self.after_run)
        lib.norch_record_conditions(recording, guards, watches, before_run, after_run, self.kept)
        return lib.norch_record_end(recording, given, tuple(results), copy, alone, fuse)

    # ---- guards ----------------------------------------------------------------------------------------------------

    def add_guards(self, function: Any, leaves: tuple[Any, ...]) -> None:
        """Adds guards for the variables that the function reads, and for the modules that it reaches."""
        self.guard(anomaly.__dict__, "check", anomaly.check)
        seen: set[int] = set()
        for value in (function, getattr(function, "__self__", None), *leaves):
            self._guard_entries(value, deep=True)
        while isinstance(function, partial):
            for value in (*function.args, *function.keywords.values()):
                self._guard_entries(value, deep=True)
            function = function.func
        self._guard_names(function, seen)
        if not isinstance(function, (Module, FunctionType)):
            self._guard_names(type(function).__call__, seen)
        for module in list(self.modules.values()):
            self._guard_module(module)
            self._guard_names(type(module).forward, seen)

    def _guard_names(self, function: Any, seen: set[int]) -> None:
        """Adds guards for the variables that a function reads, and those that the functions it names read; code of
        libraries is left out."""
        if hasattr(function, "__wrapped__"):  # by a decorator
            self._guard_names(function.__wrapped__, seen)
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if code is None or id(code) in seen or _is_of_library(code.co_filename):
            return
        seen.add(id(code))
        for container, key, value in _names(function, code):
            if isinstance(value, FunctionType):
                self._guard_names(value, seen)
            elif not isinstance(value, _SOURCE):
                self.guard(container, key, value)
                self._guard_entries(value, deep=True)
                if hasattr(value, "__wrapped__"):
                    self._guard_names(value, seen)

    def _guard_entries(self, value: Any, deep: bool) -> None:
        if isinstance(value, Module):
            for module in value.modules():
                self.modules[id(module)] = module
        elif type(value) in (list, tuple, dict):
            if type(value) is not tuple:
                self.guard_size(value)
            items = value.items() if type(value) is dict else enumerate(value)
            for key, part in list(items)[:_MOST]:
                if key is None:
                    unseen("a dictionary has the key None")  # as key of a guard None means the size
                elif type(value) is not tuple:
                    self.guard(value, key, part)
                self._guard_entries(part, deep=False)
        elif deep and not isinstance(value, (Handle, *_SOURCE)) and hasattr(value, "__dict__"):
            if type(value).__module__.startswith(("norch.", "torch.")):  # or as norch.as_torch() names them
                return  # norch's own objects add their guards themselves
            self.guard_size(value.__dict__)
            for name, part in list(value.__dict__.items())[:_MOST]:
                self.guard(value.__dict__, name, part)
                self._guard_entries(part, deep=False)

    def _guard_module(self, module: Module) -> None:
        attributes = module.__dict__
        for name, value in attributes.items():
            if name in ("_parameters", "_buffers", "_modules"):
                if name == "_modules":  # containers go through their children
                    self.guard_size(value)
                for key, part in value.items():
                    self.guard(value, key, part)
            elif name in _HOOKS:
                self.guard_size(value)
            elif not name.startswith("_"):
                self.guard(attributes, name, value)


def _note_module(module: Module) -> None:
    """Notes that a module is called, if this thread traces."""
    if here.trace is not None:
        here.trace.modules[id(module)] = module


_LIBRARIES = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))), os.path.dirname(os.__file__))
_MOST = 1000  # entries of one container that get a guard


def _by_container(guards: list[Guard]) -> list[Guard]:
    """The guards, with those of each container next to each other."""
    return sorted(guards, key=lambda guard: id(guard[0]))


def _each(functions: list[Callable[[], Any]]) -> Callable[[], Any] | None:
    """All functions in one, which returns False if one has; None if there are none."""
    if len(functions) < 2:
        return functions[0] if functions else None
    return lambda: all(function() is not False for function in functions)


def _is_of_library(file: str) -> bool:
    return file.startswith(_LIBRARIES) or "site-packages" in file


def _names(function: Any, code: CodeType) -> Iterator[Guard]:
    """(container, name, value) for each global and closure variable that a function reads."""
    for cell in function.__closure__ or ():
        try:
            yield cell, "cell_contents", cell.cell_contents
        except ValueError:  # not yet filled
            continue
    variables = function.__globals__
    for name in sorted(_read_names(code)):
        if name in variables:
            yield variables, name, variables[name]


def _read_names(code: CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):  # lambdas and comprehensions
            found |= _read_names(constant)
    return found
