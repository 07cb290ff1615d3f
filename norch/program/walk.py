"""Visits the values that a recorded function can reach: everything in containers, and those attributes of objects,
classes and modules whose names, or texts that may be names, are in the code."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Collection, Iterable
from io import FileIO
from operator import attrgetter, methodcaller
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any
from weakref import CallableProxyType, ProxyType

from .._binding.library import lib
from .._tensor.handle import Handle
from ..autograd.function import Function
from ..nn._registry import CALL_HOOKS, Registry
from ..nn.module import Module
from ..ops._deferred import DeferredMethod
from ..optim.optimizer import Optimizer
from .bytecode import CALLED, COMPUTES_NAMES, SETS_NAME, TAKES_NAME, Read, Use
from .conditions import (
    CALL,
    FIELD,
    KEYS,
    ClassUnchanged,
    absent,
    contents_of,
    dict_of,
    dict_of_class,
    guard_of_bases,
    guard_of_dict,
    slot_of,
)
from .containers import COMPUTED_VARIABLE, HOLD, ComputedNames, Place, Refused
from .fields import (
    CLASS,
    CODE,
    DEFAULTS,
    KEYWORDS,
    NAMES_OF_CLASS,
    NAMES_OF_FUNCTION,
    TAG,
    is_a,
    is_made_by_class_statement,
    offset_of,
)
from .frames import LIBRARY, Frames, kind_of, what_is_read
from .settings import Settings
from .trusted import is_own
from .values import (
    IN_C,
    NOT_READ,
    is_class_of_library,
    is_defined_by_user,
    is_inert,
    is_module_of_library,
    is_only_counted,
    is_only_used,
    reads_of_cell,
)
from .written import Written

_MOST = 50_000  # the most values that one recording compares

_OF_STATE = frozenset(("state_dict", "__getstate__", "__dict__"))  # of optimizers and other objects of norch
_OF_PARAMETERS = frozenset("parameters named_parameters buffers named_buffers _parameters _buffers".split())
_WRAPPERS = {  # wrappers of functions in classes, with their members
    property: (property.fget, property.fset, property.fdel),
    staticmethod: (staticmethod.__dict__["__func__"],),
    classmethod: (classmethod.__dict__["__func__"],),
}
_DEFINITIONS = (FunctionType, *_WRAPPERS)
IDS = (id, hash)


def _is_setter(value: Any) -> bool:
    """Whether Python code runs when an attribute of this name is set or deleted."""
    if type(value) in (MemberDescriptorType, GetSetDescriptorType):
        return False
    return any("__set__" in cls.__dict__ or "__delete__" in cls.__dict__ for cls in type(value).__mro__)


class Walk(Settings):
    """tensors          tensors that Python reads
    modules          {id: module} of modules that it reads
    names            names of attributes that code outside norch reads
    places_of_names  {name of an attribute: where it is read}
    """

    def __init__(self, frames: Frames, computes_names: bool = False) -> None:
        super().__init__()
        self.tensors: list[Any] = []
        self.modules: dict[int, Module] = {}
        self._frames = frames
        self.places_of_names: dict[str, Place] = {}
        self._uses: dict[str, dict[Use, Place]] = {}  # of attributes that are never simply read
        self._places_of_tensors: dict[str, Place] = {}  # of attributes read only from tensors
        self._of_tensors: set[str] = set()  # attributes that code outside norch may read from tensors
        self._stored: dict[str, Place] = {}  # attributes and variables that are bound
        self._escaping: set[str] = set()  # names of functions that are not just called
        self.written: list[Written] = []
        self.asks_for_ids = False  # whether the code can use id() or hash()
        self.names: set[str] = set()
        self._texts: dict[str, Place] = {}
        self._computes_names = computes_names
        self._ran: set[int] = set()
        self._seen: dict[tuple[int, bool], Any] = {}
        self._functions: set[int] = set()  # ids of the code of functions that were reached

    @property
    def reads_optional_attributes(self) -> bool:  # which may be absent
        return self._computes_names or bool(self._texts)

    # ---- the walk ------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        while self._open:
            value, place = self._open.pop()
            if (id(value), False) not in self._seen:
                self._seen[id(value), False] = value
                if len(self.rows) > _MOST:
                    raise Refused(f"it reads more than {_MOST:,} Python values", place)
                self._guard(value, place)

    def _guard(self, x: Any, place: Place | None) -> None:
        kind = type(x)
        self._note_settings(x, place)
        if kind in (ProxyType, CallableProxyType):
            raise Refused(f"it reads a weak reference; {HOLD}", place)
        if x is sys.modules:
            return  # _read_variables() visits those that the code can find
        if x is builtins.__dict__:  # a module's __builtins__
            return
        if is_a(x, Handle):
            self.tensors.append(x)
            self._guard_kind(x, place)
        elif is_a(x, Module):
            for module in x.modules():
                self.modules[id(module)] = module
        elif kind is FunctionType:
            self._guard_function(x, place)
        elif is_a(x, ModuleType):
            self._guard_module(x, place)
        elif is_a(x, type):
            if x in (attrgetter, methodcaller):
                self._computed_names()
            if x is FileIO:  # iterating over a file calls no function that Frames sees
                raise Refused("it reads a file; read it outside the function", place)
            self._guard_class(x, place)
        elif kind is MethodType:
            self._reach(x.__self__, place)
            self._reach(x.__func__, place)
        elif kind in _WRAPPERS:
            for member in _WRAPPERS[kind]:
                function = member.__get__(x)
                if function is not None:
                    self._row(place, x, FIELD, offset_of(member), function)  # __init__() may replace it
                self._reach(function, place)
        elif kind in IN_C:
            self._guard_function_in_c(x, place)
        elif kind in (MemberDescriptorType, GetSetDescriptorType):
            if x.__name__ not in self.places_of_names.keys() | self._texts.keys() | self._uses.keys():
                self._computed_names()
        elif kind is CellType:
            self._item(x, None, contents_of(x), place)
            self._reach(contents_of(x), place)
        elif kind in (attrgetter, methodcaller):
            self._computed_names()
            self._held(x, kind, place)
        else:
            self._guard_instance(x, kind, place)

    def _computed_names(self) -> None:
        """Notes that any attribute may be read."""
        if not self._computes_names:
            raise ComputedNames

    def _reach_named(self, name: str, value: Any, place: Place | None) -> None:
        if type(value) in IN_C and name not in self._escaping and name not in self._texts:
            self._guard_function_in_c(value, place, is_called=True)
        else:
            self._reach(value, place)

    def _guard_function_in_c(self, x: Any, place: Place | None, is_called: bool = False) -> None:
        """is_called: it is only called by name, which Frames sees; otherwise another function in C may call it."""
        owner = getattr(x, "__self__", None)
        self._note_settings(x, place)
        if x is globals:
            raise Refused(COMPUTED_VARIABLE, place)
        if x.__name__ in COMPUTES_NAMES | TAKES_NAME | SETS_NAME:
            self._computed_names()
        self.asks_for_ids |= x in IDS
        if not is_called and is_a(x, BuiltinFunctionType) and (read := what_is_read(x)) is not None:
            raise Refused(read, place)
        if not is_a(owner, ModuleType) and owner is not None and not is_own(type(owner).__module__):
            self._reach(owner, place)

    def _read_texts(self, variables: dict[str, Any], texts: Iterable[str], place: Place | None) -> None:
        """Guards global variables that are looked up by name."""
        for name in texts:
            value = variables.get(name, absent)
            self._item(variables, name, value, place)
            self._reach(value, place)

    def _follow(self, value: Any, read: Read, place: Place) -> None:
        """Visits the values that a.b.c reads: of modules only that attribute, of other objects every readable value."""
        use = read.use
        if is_a(value, Handle):
            self._of_tensors.update(read.attributes[:1])
        for name in read.attributes:
            if not is_a(value, ModuleType):
                use = None  # its attribute is guarded by name
                break
            if name == "__dict__":
                use = None
                break
            self._guard_kind(value, place)
            variables = value.__dict__
            if name not in variables:
                self._reach(value, place)
                if type(value) is not ModuleType:
                    return
            value = variables.get(name, absent)
            if name == read.attributes[-1] and self._note_written(variables, name, name, value, [use], place):
                return
            self._item(variables, name, value, place)
        if use == CALLED and type(value) in IN_C:
            self._guard_function_in_c(value, place, is_called=True)
        elif use is None or not is_only_used(value, [use]):
            self._reach(value, place)

    # ---- definitions ---------------------------------------------------------------------------------------------

    def _guard_function(self, function: FunctionType, place: Place | None) -> None:
        code = function.__code__
        if kind_of(code.co_filename) < LIBRARY:
            self._reach(getattr(function, "__wrapped__", None), place)  # a decorator of norch
            return
        self._attributes(function, function.__dict__, place, everything=True)
        self._about(function, NAMES_OF_FUNCTION, place)
        self._row(place, function, FIELD, CODE, code)
        for offset, value in ((DEFAULTS, function.__defaults__), (KEYWORDS, function.__kwdefaults__)):
            self._row(place, function, FIELD, offset, *([] if value is None else [value]))
            if id(code) in self._ran or not self.names.isdisjoint(("__defaults__", "__kwdefaults__")):
                self._reach(value, place)
        if "__closure__" in self.names:
            self._reach(function.__closure__, place)
        if "__globals__" in self.names:
            self._read_texts(function.__globals__, self._texts, place)
        if id(code) not in self._ran:
            return
        self._functions.add(id(code))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if name in self._stored:
                self.written.append(Written(cell, None, name, self._stored[name]))
            for read in reads_of_cell(code, name, self._ran):
                value, place = contents_of(cell), self._frames.place_of(code, read.line)
                if self._note_written(cell, None, name, value, [read.use], place):
                    continue
                self._item(cell, None, value, place)
                self._follow(value, read, place)

    def _about(self, definition: Any, names_at: Iterable[int], place: Place | None) -> None:
        """Guards the names of a function or class, which repr() also reads, and its texts."""
        for offset, name in zip(names_at, ("__name__", "__qualname__"), strict=True):
            self._row(place, definition, FIELD, offset, getattr(definition, name))
        names = [name for name in ("__doc__", "__module__") if name in self.names]
        if names:
            self._unchanged(lambda x: tuple([getattr(x, name) for name in names]), definition, place)
        if "__annotations__" in self.names:
            for held in self._unchanged(lambda x: (getattr(x, "__annotations__", None),), definition, place):
                self._reach(held, place)

    def _guard_module(self, module: ModuleType, place: Place | None) -> None:
        self._guard_kind(module, place)
        variables = module.__dict__
        hook = variables.get("__getattr__", absent)
        self._item(variables, "__getattr__", hook, place)
        if is_defined_by_user(hook):
            self._reach(hook, place)
        is_of_library = is_module_of_library(module)
        everything = self._computes_names and not is_of_library
        if self._computes_names:  # dir()
            self._row(place, variables, KEYS, None, tuple(variables))
        names = variables.keys() if everything else self.places_of_names.keys() | self._texts.keys()
        for name in list(names):
            value = variables.get(name, absent)
            self._item(variables, name, value, place)
            if is_a(value, ModuleType) or not is_of_library or not self._is_defined_by(value, module):
                self._reach_named(name, value, self.places_of_names.get(name, place))
        used = set() if is_of_library else self._uses.keys() & variables.keys() - {*names}
        for name in used:
            if not self._is_written(variables, name, name, variables[name]):
                self._item(variables, name, variables[name], place)
        stored = self._stored.keys() & variables.keys() - {*names} - used
        self.written += [Written(variables, name, name, self._stored[name]) for name in stored]

    def _is_defined_by(self, value: Any, module: ModuleType) -> bool:
        """Whether a variable of a known module is a definition of such a module, and not a value of the program."""
        if is_a(value, type):
            return is_class_of_library(value)
        if type(value) in (FunctionType, *IN_C):
            return not is_defined_by_user(value)
        if type(value) is SimpleNamespace and value is not lib:  # settings, such as those of backends
            return False
        is_of_norch = is_own(module.__name__) or module.__name__.partition(".")[0] == "numpy"
        return is_of_norch and is_class_of_library(type(value))

    def _guard_kind(self, x: Any, place: Place | None) -> None:
        """Guards the class of a module or tensor."""
        self._row(place, x, FIELD, CLASS, type(x))
        self._guard_class(type(x), place)

    def _guard_class(self, cls: type, place: Place | None) -> None:
        """Guards the attributes that are read of a class, directly or through its instances. While the class has the
        version of the last replay, it is one comparison."""
        if (id(cls), True) in self._seen:
            return
        self._seen[id(cls), True] = cls
        if "__subclasses__" in self.names and cls is not type:  # type(x) names type: its subclasses, all metaclasses
            for one in self._unchanged(lambda x: tuple(type.__subclasses__(x)), cls, place):
                self._reach(one, place)
        outer, self.rows = self.rows, []
        classes = [base for base in cls.__mro__ if is_made_by_class_statement(base)]
        for base in classes:
            attributes = dict_of_class(base)
            if is_class_of_library(base):
                self._definitions(attributes, place)
                continue
            self._row(place, *guard_of_bases(base))
            # Function.apply() reads forward, backward and others
            self._attributes(None, attributes, place, special=True, everything=issubclass(base, Function), cls=base)
            names = attributes.get("__match_args__", ()) if "__match_args__" in self.names else ()
            if not self._texts.keys() | self.places_of_names.keys() >= {*names}:
                self._computed_names()
        rows, self.rows = self.rows, outer
        if rows:
            self._row(place, ClassUnchanged(cls, rows), CALL, TAG, *([cls] if TAG else []))
        for base in classes:
            if not is_class_of_library(base):
                self._about(base, NAMES_OF_CLASS, place)
        meta = type(cls)
        if meta is not type and not is_class_of_library(cls):
            self._row(place, cls, FIELD, CLASS, meta)
            self._reach(meta, place)

    def _definitions(self, attributes: dict[str, Any], place: Place | None) -> None:
        """Guards a class of norch or of Python's library against attributes that a program adds."""
        waiting = {name for name, value in attributes.items() if isinstance(value, DeferredMethod)}  # not called so far

        def take(attributes: dict[str, Any]) -> tuple[Any, ...]:
            return *attributes, *(value for name, value in attributes.items() if name not in waiting)

        self._unchanged(take, attributes, place)
        for name, value in list(attributes.items()):
            if is_defined_by_user(value) and (
                type(value) in _DEFINITIONS
                or (
                    self._is_named(name)
                    and not is_own(type(value).__module__)
                    and not type(value).__module__.startswith("_ctypes")
                )
            ):
                self._reach(value, place)

    def is_only_written(self, name: Any) -> bool:
        """Whether the program sets attributes of this name and never reads them."""
        return type(name) is str and not self._is_named(name) and (name in self._uses or name in self._stored)

    def _note_written(
        self, container: Any, key: Any, name: str, value: Any, uses: Collection[Use | None], place: Place | None
    ) -> bool:
        """Whether a value is only incremented, and so not guarded. Records the writes of the function."""
        known_uses = [use for use in uses if use is not None and use != CALLED]
        if len(known_uses) < len(uses) or not is_only_used(value, known_uses):
            return False
        kinds = {use.kind for use in known_uses}
        self.written.append(Written(container, key, name, place, kinds.pop() if len(kinds) == 1 else "several"))
        return is_only_counted(value, known_uses)

    # ---- instances -----------------------------------------------------------------------------------------------

    def _is_named(self, name: str) -> bool:
        return self._computes_names or name in self.places_of_names or name in self._texts

    def _guard_instance(self, x: Any, kind: type, place: Place | None) -> None:
        module = str(kind.__module__)
        if kind is Registry:  # its entries are attributes of a module
            return
        if is_inert(kind):
            if not is_made_by_class_statement(kind):
                self._held(x, kind, place)
            return
        is_of_program = is_own(module)
        base = next(cls for cls in kind.__mro__ if not is_made_by_class_statement(cls))
        self._contents(x, base, place)
        if kind is not base:
            self._guard_kind(x, place)
        names: set[str] | None = self.names if is_a(x, Optimizer) else None
        if names is not None and not _OF_STATE.isdisjoint(names):
            names = {*names, "param_groups", "state"}
        everything = (
            is_of_program and names is None and hasattr(x, "state_dict") and not _OF_STATE.isdisjoint(self.names)
        )
        # NumPy's code is not examined, so the names that it reads are unknown.
        everything = everything or module.partition(".")[0] in ("numpy", "scipy")
        everything = everything or (base is SimpleNamespace and x is not lib)
        attributes = dict_of(x)
        if attributes is not None:
            self._attributes(x, attributes, place, special=True, names=names, everything=everything)
        if is_a(x, Optimizer):
            for hooks in x._all_hooks():
                self._reach(hooks, place)
        if is_of_program:
            if attributes is not None:  # a captured function
                self._reach(attributes.get("function"), place)
            return
        for cls in kind.__mro__:
            slots = cls.__dict__ if is_made_by_class_statement(cls) and "__slots__" in cls.__dict__ else {}
            for name, slot in slots.items():
                if type(slot) is MemberDescriptorType and (everything or self._is_named(name)):
                    value = slot_of(slot, x)
                    self._row(place, x, FIELD, offset_of(slot), *([] if value is absent else [value]))
                    self._reach(value, self.places_of_names.get(name, place))
                elif type(slot) is MemberDescriptorType and name in self._uses:
                    value = slot_of(slot, x)
                    if not self._is_written(x, slot, name, value):
                        self._row(place, x, FIELD, offset_of(slot), *([] if value is absent else [value]))
                elif type(slot) is MemberDescriptorType and name in self._stored:
                    self.written.append(Written(x, slot, name, self._stored[name]))

    # ---- attributes ----------------------------------------------------------------------------------------------

    def _attributes(
        self,
        owner: Any,
        attributes: dict[str, Any],
        place: Place | None,
        special: bool = False,
        everything: bool = False,
        names: set[str] | None = None,
        cls: type | None = None,
    ) -> None:
        """Guards the entries of an object's __dict__ that the code names and that exist. special: also those that
        Python reads implicitly, such as __getitem__; names: replaces the names of all code. owner: the object, or None
        for the class cls, whose dict cannot be replaced."""
        if owner is not None:
            self._row(place, *guard_of_dict(owner, attributes))
        self._row(place, attributes, KEYS, None, tuple(attributes))
        everything = everything or (self._computes_names and names is None)
        for name, value in list(attributes.items()):
            if names is not None and name not in names:
                continue
            named = everything or names is not None or name in self.places_of_names or name in self._texts
            named = named or (name in self._places_of_tensors and is_a(owner, Handle))
            named = named or (cls is not None and name in self._stored and _is_setter(value))
            if named or (special and name[:2] == "__" and name not in NOT_READ):
                self._item(attributes, name, value, place)
                self._reach_named(name, value, self.places_of_names.get(name, place))
            elif name in self._uses:
                if not self._is_written(attributes, name, name, value):
                    self._item(attributes, name, value, place)
            elif name in self._stored:
                self.written.append(Written(attributes, name, name, self._stored[name], owner=cls))

    def _is_written(self, container: Any, key: Any, name: str, value: Any) -> bool:
        """_note_written() for an attribute with uses. Visits its value if the code also reads it."""
        uses, used_at = self._uses[name], next(iter(self._uses[name].values()))
        if self._note_written(container, key, name, value, uses, used_at):
            return True
        if not is_only_used(value, uses):
            self._reach(value, used_at)
        return False

    def guard_layer(self, module: Module) -> None:
        """Visits the attributes that are read from a module; Trace guards its parameters, buffers, children and
        hooks."""
        self._guard_class(type(module), None)
        self._row(None, module, FIELD, CLASS, type(module))
        if not _OF_PARAMETERS.isdisjoint(self.names):
            self.tensors += [x for x in (*module._parameters.values(), *module._buffers.values()) if x is not None]
        private = self._computes_names and is_class_of_library(type(module))
        self._attributes(module, module.__dict__, None, names=self.names if private else None)
        for name, options in CALL_HOOKS.items():
            self._reach(hooks := module.__dict__.get(name, absent), None)
            for option in options if hooks else ():
                self._reach(module.__dict__.get(option, absent), None)
        self._walk()
