"""Guards: every value of Python that a recorded function read is compared before a replay, or the function is refused.

Frames has the code that ran. What that code can read is found in a walk over the objects: from the global variables,
builtins and closures that it names, and the arguments, along all that containers hold, and along those attributes of
objects, classes and modules whose names, or texts that may be names, stand in the code.
"""

from __future__ import annotations

import gc
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import cached_property, lru_cache, partial
from operator import attrgetter, methodcaller
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GenericAlias,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any
from weakref import CallableProxyType, ProxyType, ref

from .._handle import Device, DType, Handle, Size
from ..nn._registry import Registry
from ..nn.module import Module
from ..optim.optimizer import Optimizer
from .bytecode import WRITES, Read, reads_of
from .conditions import (
    CALL,
    FIELD,
    ITEM,
    KEYS,
    SIZE,
    Row,
    Unchanged,
    absent,
    contents_of,
    dict_of,
    dict_of_class,
    guard_of_bases,
    is_python,
    slot_of,
)
from .fields import CLASS, CODE, DEFAULTS, KEYWORDS, offset_of
from .frames import LIBRARY, USER, Frames, kind_of

Place = tuple[str, int]  # file and line that read something

_MOST = 50_000  # values that one recording compares
_MOST_BYTES = 1 << 20  # of an array

_CONSTANT = (
    type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range, slice, CodeType,
    GetSetDescriptorType, MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType,
    MethodWrapperType, GenericAlias, type(int | str), type(dict.__dict__["fromkeys"]), type(object().__str__),
    Size, Device, DType,
)  # fmt: skip
_OF_PARAMETERS = frozenset("parameters named_parameters buffers named_buffers _parameters _buffers".split())
_UNSEEN = frozenset(("_version", "_base", "_is_view", "next_functions"))  # of tensors and their nodes
_CACHE = type(lru_cache(len))
_OWN = ("norch", "torch")  # modules of norch's classes; the second by norch.as_torch()
# Types of other modules whose instances do not change, or of which programs read nothing that does.
_INERT = {
    "re": ("Pattern",),
    "decimal": ("Decimal",),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "_thread": ("lock", "RLock"),
    "_io": ("TextIOWrapper", "BufferedWriter", "FileIO", "StringIO", "BytesIO"),
    "operator": ("itemgetter",),
    "_abc": ("_abc_data",),
    "functools": ("_lru_list_elem",),
    "_collections": ("_tuplegetter",),
    "collections": ("_tuplegetter",),
    "ctypes": ("PyDLL", "CDLL"),
}
_QUIET_MODULES = ("typing", "_typing", "logging", "warnings", "_pytest", "unittest")


class Refused(Exception):
    """A value that cannot be compared; place: where it is read."""

    def __init__(self, text: str, place: Place | None):
        super().__init__(text)
        self.place = place


class AnyName(Exception):
    """The names of attributes that are read stand in an object: any may be read."""


class Guards:
    """rows      the guards
    places    {id of a container of rows: where it is read}
    tensors   tensors that Python reads
    modules   {id: module} of modules that it reads
    names     names of attributes that code outside norch reads
    places_of_names  where attributes of a name are read
    """

    def __init__(self, frames: Frames, any_name: bool = False) -> None:
        self.rows: list[Row] = []
        self.places: dict[int, Place | None] = {}
        self.tensors: list[Any] = []
        self.modules: dict[int, Module] = {}
        self._frames = frames
        self.places_of_names: dict[str, Place] = {}  # attributes that are read
        self._written: dict[str, Place] = {}
        self.names: set[str] = set()
        self._texts: dict[str, Place] = {}
        self._any = any_name  # whether names of attributes are computed
        self._ran: set[int] = set()
        self._known: dict[tuple[int, bool], Any] = {}
        self._open: list[tuple[Any, Place | None]] = []
        self._functions: set[int] = set()  # ids of the code of functions that were reached

    # ---- from what ran -------------------------------------------------------------------------------------------

    def collect(self, function: Any, arguments: Iterable[Any], is_joint: bool) -> None:
        """Finds the guards. Raises Refused, and AnyName if they are to be found again, with any_name."""
        self._note_names()
        for name in _UNSEEN & self.names:
            raise Refused(f"it reads {name} of a tensor, which a replay does not set", self.places_of_names.get(name))
        self._reach(function, _place_of(function))
        for value in arguments:
            if isinstance(value, Handle):
                self._check_argument(value, is_joint)
            else:
                self._reach(value, _place_of(function))
        for one in self._frames.settings:
            self._unchanged(lambda setting: (setting(),), one, _place_of(function))
        for reads, code, variables, builtins, kind in list(self._frames.reads()):
            if kind >= LIBRARY:
                self._read_variables(reads, code, variables, builtins)
        self._walk()
        self._find_functions()

    @property
    def asks_for_attributes(self) -> bool:
        """Whether code reads attributes that need not be there."""
        return self._any or bool(self._texts)

    def _check_argument(self, x: Any, is_joint: bool) -> None:
        """Refuses what is read of a tensor that another call passes another for."""
        if "grad" in self.names and x._grad is not None and (is_joint or not x.requires_grad):
            raise Refused("it reads .grad of an argument", self.places_of_names.get("grad"))
        read = [name for name in x.__dict__ if self.asks_for_attributes or name in self.names]
        if read:
            raise Refused(
                f"it reads an attribute ({read[0]}) of an argument",
                self.places_of_names.get(read[0], self._texts.get(read[0])),
            )

    def _note_names(self) -> None:
        for reads, code, _, _, kind in self._frames.reads():
            self._ran.add(id(code))
            for name, line in reads.attributes.items():
                self.places_of_names.setdefault(name, (code.co_filename, line))
            for name, line in reads.written.items():
                self._written.setdefault(name, (code.co_filename, line))
            if kind >= LIBRARY:
                self.names |= reads.attributes.keys()
                self.names |= reads.texts
                self._any |= reads.any
                self._texts.update(dict.fromkeys(reads.texts, (code.co_filename, code.co_firstlineno)))

    def _read_variables(self, reads: Any, code: CodeType, variables: dict[str, Any], builtins: dict[str, Any]) -> None:
        for one in reads.variables:
            place = (code.co_filename, one.line)
            if one.kind == "module":
                package = variables.get("__package__") or ""
                for name in {
                    one.name,
                    one.name.partition(".")[0],
                    package,
                    f"{package}.{one.name}",
                } & sys.modules.keys():
                    self._item(sys.modules, name, sys.modules[name], place)
                    self._reach(sys.modules[name], place)
                continue
            if one.kind == "global":
                value = variables.get(one.name, absent)
                self._item(variables, one.name, value, place)
                if value is absent:
                    value = builtins.get(one.name, absent)
                    self._item(builtins, one.name, value, place)
            else:  # with the function
                continue
            self._follow(value, one.attributes, place)
        if reads.any_module:
            for name, module in list(sys.modules.items()):
                file = getattr(module, "__file__", None) if isinstance(module, ModuleType) else ""
                if name in reads.texts or file is None or (file and kind_of(file) == USER):
                    self._item(sys.modules, name, module, (code.co_filename, code.co_firstlineno))
                    self._reach(module, (code.co_filename, code.co_firstlineno))
        if reads.any_variable:
            for name in reads.texts:
                value = variables.get(name, absent)
                self._item(variables, name, value, (code.co_filename, code.co_firstlineno))
                self._reach(value, (code.co_filename, code.co_firstlineno))

    def _follow(self, value: Any, attributes: list[str], place: Place) -> None:
        """Reaches what a.b.c reads: of modules only that attribute, of others all that can be read."""
        for name in attributes:
            if not isinstance(value, ModuleType):
                if name in WRITES and type(value) in (list, set, deque, dict):
                    return
                break
            if name == "__dict__":
                break
            variables = value.__dict__
            found = variables.get(name, absent)
            self._item(variables, name, found, place)
            value = found
        self._reach(value, place)

    def _find_functions(self) -> None:
        """Reaches functions that ran, but that the walk has not found: no variable or attribute holds them."""
        inner: set[int] = set()
        for _, code, _, _, _ in self._frames.reads():
            _note_inner(code, inner)
        missing = {
            id(code): code
            for _, code, _, _, kind in self._frames.reads()
            if kind == USER and id(code) not in self._functions and id(code) not in inner
        }
        codes = [code for code in missing.values() if code.co_name != "<module>"]
        if not codes:
            return
        for one in gc.get_referrers(*codes):
            if type(one) is FunctionType and id(one.__code__) in missing:
                self._reach(one, (one.__code__.co_filename, one.__code__.co_firstlineno))
        self._walk()
        for code in codes:
            if id(code) not in self._functions and code.co_freevars:
                place = (code.co_filename, code.co_firstlineno)
                raise Refused(f"the variables of {code.co_name} are not found, as it is gone after the call", place)

    # ---- the walk ------------------------------------------------------------------------------------------------

    def _reach(self, value: Any, place: Place | None) -> None:
        if type(value) not in _CONSTANT and value is not absent:
            self._open.append((value, place))

    def _walk(self) -> None:
        while self._open:
            value, place = self._open.pop()
            if (id(value), False) not in self._known:
                self._known[id(value), False] = value
                if len(self.rows) > _MOST:
                    raise Refused(f"it reads more than {_MOST:,} values of Python's", place)
                self._look_into(value, place)

    def _row(self, place: Place | None, *row: Any) -> None:
        self.rows.append(row)
        self.places.setdefault(id(row[0]), place)

    def _item(self, container: Any, key: Any, value: Any, place: Place | None) -> None:
        if value is absent:
            self._row(place, container, ITEM, key)
        else:
            self._row(place, container, ITEM, key, value)

    def _unchanged(self, take: Callable[[Any], tuple[Any, ...]], value: Any, place: Place | None) -> tuple[Any, ...]:
        """Guards what take(value) gives."""
        check = Unchanged(take, value)
        self._row(place, check, CALL, None)
        return check.before

    def _look_into(self, x: Any, place: Place | None) -> None:
        kind = type(x)
        if kind in (ProxyType, CallableProxyType):
            raise Refused("it reads a weak reference", place)
        if x is sys.modules:
            return  # _read_variables() has those that the code can find
        if isinstance(x, Handle):
            self.tensors.append(x)
            attributes = x.__dict__
            if attributes or self.asks_for_attributes:
                self._attributes(attributes, place)
        elif isinstance(x, Module):
            for module in x.modules():
                self.modules[id(module)] = module
        elif kind is FunctionType:
            self._look_into_function(x, place)
        elif isinstance(x, ModuleType):
            self._look_into_module(x, place)
        elif isinstance(x, type):
            self._look_into_class(x, place)
        elif kind is MethodType:
            self._reach(x.__self__, place)
            self._reach(x.__func__, place)
        elif kind is property:
            for function in (x.fget, x.fset):
                self._reach(function, place)
        elif kind in (staticmethod, classmethod):
            self._reach(x.__func__, place)
        elif kind is BuiltinFunctionType:
            if not isinstance(x.__self__, (ModuleType, type(None))) and x.__self__.__class__.__module__ not in _OWN:
                self._reach(x.__self__, place)
        elif kind is CellType:
            self._item(x, None, contents_of(x), place)
            self._reach(contents_of(x), place)
        elif kind in (attrgetter, methodcaller):
            if not self._any:
                raise AnyName
        else:
            self._look_into_instance(x, kind, place)

    # ---- definitions ---------------------------------------------------------------------------------------------

    def _look_into_function(self, function: FunctionType, place: Place | None) -> None:
        code = function.__code__
        if kind_of(code.co_filename) < LIBRARY:
            self._reach(getattr(function, "__wrapped__", None), place)  # by one of norch's decorators
            return
        self._attributes(function.__dict__, place, everything=True)
        self._about(function, place)
        self._row(place, function, FIELD, CODE, code)
        for offset, value in ((DEFAULTS, function.__defaults__), (KEYWORDS, function.__kwdefaults__)):
            self._row(place, function, FIELD, offset, *([] if value is None else [value]))
            if id(code) in self._ran or not self.names.isdisjoint(("__defaults__", "__kwdefaults__")):
                self._reach(value, place)
        if "__closure__" in self.names:
            self._reach(function.__closure__, place)
        if id(code) not in self._ran:
            return
        self._functions.add(id(code))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            for one in _reads_of_cell(code, name, self._ran):
                value = contents_of(cell)
                self._item(cell, None, value, (code.co_filename, one.line))
                self._follow(value, one.attributes, (code.co_filename, one.line))

    def _about(self, definition: Any, place: Place | None) -> None:
        """Guards the name and the texts of a function or a class."""
        names = [name for name in ("__name__", "__qualname__", "__doc__", "__module__") if name in self.names]
        if names:
            self._unchanged(lambda x: tuple([getattr(x, name) for name in names]), definition, place)
        if "__annotations__" in self.names:
            self._reach(getattr(definition, "__annotations__", None), place)

    def _look_into_module(self, module: ModuleType, place: Place | None) -> None:
        variables = module.__dict__
        known = self._is_standard(module.__name__)
        names = variables.keys() if self._any and not known else self.places_of_names.keys() | self._texts.keys()
        for name in list(names):
            if name in variables or name in self._texts:
                value = variables.get(name, absent)
                self._item(variables, name, value, place)
                if not known:
                    self._reach(value, self.places_of_names.get(name, place))

    def _look_into_class(self, cls: type, place: Place | None) -> None:
        """Guards what is read of a class, as itself or through its instances."""
        for one in cls.__mro__:
            if (id(one), True) not in self._known:
                self._known[id(one), True] = one
                if is_python(one) and not self._is_standard(one.__module__):
                    self._row(place, *guard_of_bases(one))
                    self._about(one, place)
                    self._attributes(dict_of_class(one), place, special=True)
        if not self._is_standard(cls.__module__):
            meta = type(cls)
            if meta is not type:
                self._reach(meta, place)

    def _is_standard(self, module: Any) -> bool:
        top = str(module).partition(".")[0]
        return top in (*_OWN, "numpy", "builtins") or (top in sys.stdlib_module_names and top != "__main__")

    # ---- instances -----------------------------------------------------------------------------------------------

    def _look_into_instance(self, x: Any, kind: type, place: Place | None) -> None:
        module = str(kind.__module__)
        if kind is Registry:  # its entries are attributes of a module
            return
        if kind.__name__ in _INERT.get(module, ()) or module.partition(".")[0] in _QUIET_MODULES:
            return
        base = next(one for one in kind.__mro__ if not is_python(one))
        self._contents(x, base, place)
        if base is partial:
            for value in (x.func, x.args, x.keywords):
                self._reach(value, place)
            self._unchanged(lambda x: (x.func, x.args, x.keywords), x, place)
        if kind is not base:
            if not self._is_standard(module):
                self._row(place, x, FIELD, CLASS, kind)
            self._look_into_class(kind, place)
        names = self.names if isinstance(x, Optimizer) else None
        attributes = dict_of(x)
        if attributes is not None:
            self._attributes(attributes, place, names=names)
        if isinstance(x, Optimizer):
            for hooks in x._hooks.values():
                self._reach(hooks, place)
        if module.partition(".")[0] in _OWN:
            if attributes is not None:  # of a captured function
                self._reach(attributes.get("function"), place)
            return
        for one in kind.__mro__:
            slots = one.__dict__ if is_python(one) and "__slots__" in one.__dict__ else {}
            for name, slot in slots.items():
                if type(slot) is MemberDescriptorType and (
                    self._any or name in self.places_of_names or name in self._texts
                ):
                    value = slot_of(slot, x)
                    self._row(place, x, FIELD, offset_of(slot), *([] if value is absent else [value]))
                    self._reach(value, self.places_of_names.get(name, place))

    def _contents(self, x: Any, base: type, place: Place | None) -> None:
        """Guards what a container holds, and reaches that. base: the class in C that its class is, or inherits from."""
        if base in (object, SimpleNamespace, partial, cached_property):
            return
        if base is list:
            self._row(place, x, SIZE, list.__len__(x))
            for i, value in enumerate(list.__iter__(x)):
                self._item(x, i, value, place)
                self._reach(value, place)
        elif issubclass(base, tuple):  # also sys.version_info and the like
            for value in tuple.__iter__(x):
                self._reach(value, place)
        elif issubclass(base, dict):
            keys = tuple(dict.__iter__(x))
            self._row(place, x, KEYS, None, keys)
            if base is OrderedDict:
                self._unchanged(lambda x: tuple(OrderedDict.__iter__(x)), x, place)
            for key in keys:
                value = dict.__getitem__(x, key)
                self._item(x, key, value, place)
                self._reach(key, place)
                self._reach(value, place)
            if base is not dict and base is not OrderedDict:  # defaultdict
                self._unchanged(lambda x: (x.default_factory,), x, place)
                self._reach(x.default_factory, place)
        elif base in (set, frozenset, deque):
            take: Any = base.__iter__
            for value in take(x) if base is frozenset else self._unchanged(take, x, place):
                self._reach(value, place)
        elif base in (bytearray, memoryview) or base.__module__ == "array":
            self._bytes(lambda x: (bytes(memoryview(x)),), memoryview(x).nbytes, x, place)
        elif base in _CONSTANT:  # a class of numbers or texts
            return
        else:
            self._contents_of_others(x, base, place)

    def _contents_of_others(self, x: Any, base: type, place: Place | None) -> None:
        module = str(base.__module__)
        if issubclass(base, ref):
            if isinstance(x(), type):
                self._reach(x(), place)
            elif x() is not None:  # a guard of it would keep it alive
                raise Refused("it reads a weak reference", place)
        elif base is MappingProxyType:
            self._pairs(lambda x: x.items(), x, place)
        elif base is ContextVar:
            self._reach(self._unchanged(lambda x: (x.get(absent),), x, place)[0], place)
        elif (module, base.__name__) == ("_thread", "_local"):
            self._pairs(lambda x: x.__dict__.items(), x, place)
        elif base is _CACHE:
            for value in self._unchanged(lambda x: tuple(sorted(gc.get_referents(x), key=id)), x, place):
                self._reach(value, place)
        elif module == "numpy" and base.__name__ == "ndarray":
            if x.dtype.hasobject:
                for value in self._unchanged(lambda x: (x.shape, *x.flat), x, place):
                    self._reach(value, place)
            else:
                self._bytes(lambda x: (x.dtype, x.shape, x.tobytes()), x.nbytes, x, place)
        elif module.partition(".")[0] == "numpy" and not module.startswith("numpy.random"):
            return  # numbers, dtypes, functions
        elif issubclass(base, BaseException):
            for value in self._unchanged(lambda x: x.args, x, place):
                self._reach(value, place)
        elif module.partition(".")[0] not in _OWN:
            raise Refused(f"it reads an object of type {type(x).__name__}, whose state cannot be compared", place)

    def _pairs(self, take: Callable[[Any], Any], x: Any, place: Place | None) -> None:
        def flat(x: Any) -> tuple[Any, ...]:
            return tuple([one for pair in take(x) for one in pair])

        for value in self._unchanged(flat, x, place):
            self._reach(value, place)

    def _bytes(self, take: Callable[[Any], tuple[Any, ...]], size: int, x: Any, place: Place | None) -> None:
        if size > _MOST_BYTES:
            raise Refused(f"it reads an array of {size:,} bytes of Python's; pass it as a tensor", place)
        self._unchanged(take, x, place)

    # ---- attributes ----------------------------------------------------------------------------------------------

    def _attributes(
        self,
        attributes: dict[str, Any],
        place: Place | None,
        special: bool = False,
        everything: bool = False,
        names: set[str] | None = None,
    ) -> None:
        """Guards those entries of an object's __dict__ that the code names, and which there are. special: also those
        that Python reads by itself, such as __getitem__; names: in place of those of all code."""
        self._row(place, attributes, KEYS, None, tuple(attributes))
        everything = everything or (self._any and not special and names is None)
        for name, value in list(attributes.items()):
            if names is not None and name not in names:
                continue
            named = everything or name in self.places_of_names or name in self._texts
            if named or (special and name[:2] == "__" and name not in _NOT_READ):
                self._item(attributes, name, value, place)
                self._reach(value, self.places_of_names.get(name, place))
            elif name in self._written:
                self._item(attributes, name, value, place)
                if type(value) not in (list, set, deque, dict):
                    self._reach(value, self._written[name])

    def look_into_module(self, module: Module) -> None:
        """Reaches what is read of a module's attributes; Trace guards its parameters, buffers, children and hooks."""
        self._look_into_class(type(module), None)
        if not self._is_standard(type(module).__module__):
            self._row(None, module, FIELD, CLASS, type(module))
        if not _OF_PARAMETERS.isdisjoint(self.names):
            self.tensors += [x for x in (*module._parameters.values(), *module._buffers.values()) if x is not None]
        private = self._any and self._is_standard(type(module).__module__)
        self._attributes(module.__dict__, None, names=self.names if private else None)
        self._walk()


_NOT_READ = frozenset(
    "__module__ __doc__ __dict__ __weakref__ __annotations__ __qualname__ __slots__ __parameters__ __orig_bases__ "
    "__abstractmethods__ __firstlineno__ __static_attributes__ __annotate__ __annotate_func__ __annotations_cache__ "
    "__match_args__ __dataclass_params__ __dataclass_fields__".split()
)


def _place_of(function: Any) -> Place | None:
    code = (
        getattr(getattr(function, "__func__", function), "__code__", None) if not isinstance(function, dict) else None
    )
    return (code.co_filename, code.co_firstlineno) if isinstance(code, CodeType) else None


def _reads_of_cell(code: CodeType, name: str, ran: set[int]) -> Iterator[Read]:
    """The loads of a variable of an outer function in code, and in functions within it that ran."""
    yield from (one for one in reads_of(code).variables if one.kind == "cell" and one.name == name)
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and id(constant) in ran and name in constant.co_freevars:
            yield from _reads_of_cell(constant, name, ran)


def _note_inner(code: CodeType, found: set[int]) -> None:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.add(id(constant))
            _note_inner(constant, found)
