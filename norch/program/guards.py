"""Guards: every Python value that a recorded function read is compared before a replay; if it cannot be, the function
is refused.

    Frames           Guards.collect()            Walk                           Containers           C
    code that ran,   variables that this code    follows what these hold:       entries of lists,    compares rows
    calls in C    -> names, arguments, hooks  -> attributes that the code    -> dicts, arrays:    -> before each
    (frames.py)      and loggers (this file)     names (walk.py)                rows                 replay
                                                                                (containers.py)      (conditions.py)

A row is one comparison: a container, a key, and the value found there. Refused is raised for values that cannot be
compared.
"""

from __future__ import annotations

import abc
import gc
import sys
import warnings
from collections.abc import Iterable
from functools import partial
from importlib.util import resolve_name
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

from .._binding.library import lib
from .._tensor.handle import Handle
from ..autograd.hooks import RetainGradHook, UserHook
from ..autograd.node import Leaf, Node, NodeBase
from ..nn import _hooks as module_hooks
from ..tensor import Tensor
from .conditions import FIELD, SIZE, absent
from .containers import COMPUTED_VARIABLE, Place, Refused
from .fields import is_a, offset_of
from .frames import LAYERS, LIBRARY, USER, kind_of
from .values import is_class_of_library, is_defined_by_user, note_inner, place_of_function
from .walk import IDS, Walk
from .written import Written

# Attributes of loggers, handlers and their manager.
_REPORTS = frozenset(("level", "disabled", "propagate", "parent", "handlers", "filters", "disable", "_disable"))
_HOOKS = offset_of(NodeBase.__dict__["hooks"])
_OF_SETTINGS = (bool, int, float, str, tuple, list, dict, set, frozenset, type(None))
_UNSEEN = frozenset(("_version", "_base", "_is_view", "next_functions", "retains_grad"))  # of tensors and nodes


class Guards(Walk):
    """See the top of the file. collect() fills the lists of Walk."""

    # ---- from what ran -------------------------------------------------------------------------------------------

    def collect(
        self, function: Any, arguments: Iterable[Any], walked: dict[Node, list[Any] | None], is_joint: bool
    ) -> None:
        """Finds the guards. walked: older nodes that backward() went through, and their hooks. Raises Refused, or
        ComputedNames if the guards must be found again with computes_names."""
        self._note_names()
        for name in _UNSEEN & self.names:
            raise Refused(f"it reads {name} of a tensor, which a replay does not set", self._place_of_name(name))
        self._reach(function, place_of_function(function))
        self._guard_class(Tensor, place_of_function(function))
        for value in arguments:
            if is_a(value, Handle):
                self._check_argument(value, is_joint)
            else:
                self._reach(value, place_of_function(function))
        for node, hooks in walked.items():
            self._guard_hooks(node, hooks, place_of_function(function), is_joint)
        for global_hooks in module_hooks.GLOBAL_HOOKS:
            self._reach(global_hooks, place_of_function(function))
        self._guard_reports(place_of_function(function))
        if self._frames.asks_abstract:
            self._unchanged(lambda abc: (abc.get_cache_token(),), abc, place_of_function(function))
        for setting in self._frames.settings.values():
            self._unchanged(lambda current: (current(),), setting, place_of_function(function))
        for reads, code, variables, inbuilt, kind in list(self._frames.reads()):
            if kind >= LIBRARY:
                self._read_variables(reads, code, variables, inbuilt)
                stored = [] if kind == LIBRARY else reads.stored.keys() & variables.keys()
                self.written += [Written(variables, name, name, self._stored[name]) for name in stored]
            elif kind == LAYERS:
                self._read_definitions(reads, variables, place_of_function(function))
        self._walk()
        self._find_functions()
        self.guard_attributes_of_tensors()

    def guard_attributes_of_tensors(self) -> None:
        """Guards attributes that programs set on tensors, once the names that the code reads are complete."""
        lacking = self.reads_optional_attributes or any(not hasattr(Tensor, name) for name in self._of_tensors)
        for x in self.tensors:
            if (x.__dict__ or lacking) and (id(x.__dict__), True) not in self._seen:
                self._seen[id(x.__dict__), True] = x.__dict__
                self._attributes(x, x.__dict__, None)
        self._walk()

    def _guard_reports(self, place: Place | None) -> None:
        """Guards the levels, handlers and filters that decide whether loggers and warnings act."""
        for logger in self._frames.loggers:
            self._reach(logger, place)
            self._reports(logger.manager, place)
            while logger is not None:
                self._reports(logger, place)
                logger = logger.parent
        if self._frames.warns:
            self._unchanged(lambda module: (module.showwarning, *module.filters), warnings, place)
        if self._frames.reads_exception:
            if sys.exc_info()[1] is not None:
                raise Refused("it asks for the exception that its caller handles; pass it as an argument", place)
            self._unchanged(lambda sys: (sys.exc_info()[1],), sys, place)

    def _reports(self, reporter: Any, place: Place | None) -> None:
        attributes = reporter.__dict__
        for name in _REPORTS & attributes.keys():
            value = attributes[name]
            self._item(attributes, name, value, place)
            if type(value) is list:
                self._row(place, value, SIZE, len(value))
                for i, inner in enumerate(value):
                    self._item(value, i, inner, place)
                    self._reach(inner, place)
                    if name == "handlers":
                        self._reports(inner, place)

    def _guard_hooks(self, node: Node, hooks: list[Any] | None, place: Place | None, is_joint: bool) -> None:
        """Guards a node's hooks: each change makes a new list. C compares those of leaves (nr_used), except in
        recordings of two parts."""
        if is_joint or type(node) is not Leaf:
            self._row(place, node, FIELD, _HOOKS, hooks)
        for hook in hooks or ():
            called = hook.hook if is_a(hook, UserHook) else hook
            function = called.func if type(called) is partial else called
            is_of_program = type(function) is FunctionType and kind_of(function.__code__.co_filename) < LIBRARY
            if not is_of_program and not is_a(hook, RetainGradHook):
                self._reach(called, place_of_function(called) or place)

    def _check_argument(self, x: Any, is_joint: bool) -> None:
        """Refuses reads of a tensor that may be a different tensor in each call."""
        if "grad" in self.names and x._grad is not None and (is_joint or not x.requires_grad):
            raise Refused("it reads .grad of an argument", self._place_of_name("grad"))
        read = [name for name in x.__dict__ if self.reads_optional_attributes or name in self.names]
        if read:
            raise Refused(f"it reads an attribute ({read[0]}) of an argument", self._place_of_name(read[0]))

    def _place_of_name(self, name: str) -> Place | None:
        return self.places_of_names.get(name) or self._places_of_tensors.get(name) or self._texts.get(name)

    def _note_names(self) -> None:
        self.names |= self._frames.names
        for reads, code, _, _, kind in self._frames.reads():
            self._ran.add(id(code))
            place_of = partial(self._frames.place_of, code)
            for name, line in reads.attributes.items():
                self.places_of_names.setdefault(name, place_of(line))
            for of_tensors, of_others, name, line in self._frames.attributes_of_locals(code):
                places = self.places_of_names if of_others else self._places_of_tensors
                places.setdefault(name, place_of(line))
                if kind >= LIBRARY:
                    self.names.add(name)
                    self._of_tensors |= {name} if of_tensors else set()
            for name, uses in reads.uses.items():
                for use, line in uses.items():
                    self._uses.setdefault(name, {}).setdefault(use, place_of(line))
            self._escaping |= reads.escaping
            self._compared |= reads.compared if kind >= LIBRARY else set()
            if kind == USER:
                for name, line in reads.stored.items():
                    self._stored.setdefault(name, place_of(line))
            if kind >= LIBRARY:
                self.names |= reads.attributes.keys() | reads.uses.keys()
                self._of_tensors |= reads.of_others
                self.names |= reads.texts
                self._computes_names |= reads.computes_names
                self._texts.update(dict.fromkeys(reads.texts, place_of(code.co_firstlineno)))

    def _read_definitions(self, reads: Any, variables: dict[str, Any], place: Place | None) -> None:
        """Guards the functions that norch's layers call, which a program may replace."""
        for read in reads.variables:
            if read.kind == "global" and read.name in variables:
                kind = type(value := variables[read.name])
                if kind in _OF_SETTINGS:  # norch itself sets it
                    continue
                self._item(variables, read.name, value, place)
                if getattr(kind, "is_compared", False):  # programs add functions to this dict of norch
                    functions = self._unchanged(lambda registry: tuple(registry.values()), value, place)
                    for function in filter(is_defined_by_user, functions):
                        self._reach(function, place)
                    continue
                of_norch = not is_defined_by_user(value) if kind is FunctionType else is_class_of_library(kind)
                if not of_norch or (kind is SimpleNamespace and value is not lib):
                    self._reach(value, place)

    def _read_variables(self, reads: Any, code: CodeType, variables: dict[str, Any], inbuilt: dict[str, Any]) -> None:
        place_of = partial(self._frames.place_of, code)
        for read in reads.variables:
            place = place_of(read.line)
            if read.kind == "module":
                try:
                    path = resolve_name(read.dots + read.name, variables.get("__package__") or "")
                except ImportError:  # beyond the top-level package: it cannot have been imported
                    continue
                for name in {path} if read.dots else {path, path.partition(".")[0]}:
                    module = sys.modules.get(name, absent)
                    self._item(sys.modules, name, module, place)
                    self._reach(module, place)
                if read.attributes:  # from a import b
                    self._follow(sys.modules.get(path), read, place)
                continue
            if read.kind == "global":
                if read.name == "__builtins__":
                    self._computed_names()
                value = variables.get(read.name, absent)
                if self._note_written(variables, read.name, read.name, value, [read.use], place):
                    continue
                self._item(variables, read.name, value, place)
                if value is absent:
                    value = inbuilt.get(read.name, absent)
                    self._item(inbuilt, read.name, value, place)
                    if type(value) is BuiltinFunctionType and value.__name__ == read.name:
                        self.asks_for_ids |= value in IDS
                        continue  # read by name: see bytecode.py
            else:  # guarded with the function
                continue
            self._follow(value, read, place)
        if reads.modules_by_text:
            for name in reads.modules - sys.modules.keys():
                self._item(sys.modules, name, absent, place_of(code.co_firstlineno))
            for name, module in list(sys.modules.items()):
                file = getattr(module, "__file__", None) if is_a(module, ModuleType) else ""
                if name in reads.modules or file is None or (file and kind_of(file) == USER):
                    self._item(sys.modules, name, module, place_of(code.co_firstlineno))
                    self._reach(module, place_of(code.co_firstlineno))
        if reads.computes_variable:
            raise Refused(COMPUTED_VARIABLE, place_of(reads.computes_variable))
        if reads.variables_by_text:
            self._read_texts(variables, reads.texts, place_of(code.co_firstlineno))

    def _find_functions(self) -> None:
        """Adds functions that ran but that no variable or attribute reaches."""
        inner: set[int] = set()
        for _, code, _, _, _ in self._frames.reads():
            note_inner(code, inner)
        missing = {
            id(code): code
            for _, code, _, _, kind in self._frames.reads()
            if kind == USER and id(code) not in self._functions and id(code) not in inner
        }
        codes = [code for code in missing.values() if code.co_name != "<module>"]
        if not codes:
            return
        for function in gc.get_referrers(*codes):
            if type(function) is FunctionType and id(function.__code__) in missing:
                self._reach(function, (function.__code__.co_filename, function.__code__.co_firstlineno))
        self._walk()
        for code in codes:
            if id(code) not in self._functions and code.co_freevars:
                place = (code.co_filename, code.co_firstlineno)
                raise Refused(
                    f"the variables of {code.co_name} cannot be found, as it no longer exists after the call", place
                )
