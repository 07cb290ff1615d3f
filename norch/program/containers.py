"""Guards of the entries of containers: lists, dicts, arrays and the like. The base of Guards (guards.py)."""

from __future__ import annotations

import gc
import io
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cached_property, lru_cache, partial
from types import (
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    SimpleNamespace,
)
from typing import Any
from weakref import ref

from .conditions import CALL, EQUAL, ITEM, KEYS, SIZE, Place, Row, Unchanged, absent, found_by
from .fields import is_a
from .trusted import CONSTANT, HOLDERS, NUMPY_TYPES, TYPING, is_own
from .values import is_inert

CACHE = type(lru_cache(len))
_MOST_BYTES = 1 << 20  # of an array that is compared

COMPUTED_VARIABLE = "it looks up a global variable by a computed name; name the variable, or hold it in a dict"
HOLD = "read it outside the function, and pass what it gives as an argument"


class ComputedNames(Exception):
    """Names of attributes are values of an object, so any attribute may be read."""


def _field_of(field: Any, x: Any) -> tuple[Any, ...]:
    return (field.__get__(x),)


def _size_of(x: Any) -> int:
    try:
        return memoryview(x).nbytes
    except ValueError:  # released
        return 0


def _objects_of(x: Any) -> Iterator[Any]:
    """The objects in a NumPy array, or in a row of one."""
    if x.dtype.names is None:
        yield from x.flat
    for name in x.dtype.names or ():
        if x.dtype[name].kind == "O" and is_a(x, sys.modules["numpy"].void):
            yield x[name]
        elif x.dtype[name].hasobject:
            yield from _objects_of(x[name])


class Refused(Exception):
    """Raised for a value that cannot be compared; place: where it is read."""

    def __init__(self, text: str, place: Place | None):
        super().__init__(text)
        self.place = place


class Containers:
    """rows     the guards (conditions.py)
    places   {id of a container in rows: where it is read}
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.places: dict[int, Place | None] = {}
        self._open: list[tuple[Any, Place | None]] = []
        self._compared: set[str] = set()  # names of variables and attributes that code compares by `is`

    def _reach(self, value: Any, place: Place | None) -> None:
        """Adds a value to be guarded."""
        if type(value) not in CONSTANT and value is not absent:
            self._open.append((value, place))

    def _row(self, place: Place | None, *row: Any) -> None:
        self.rows.append(row)
        self.places.setdefault(id(row[0]), place)

    def _item(self, container: Any, key: Any, value: Any, place: Place | None) -> None:
        if type(key) is str and key in self._compared and type(value) in EQUAL:
            self._unchanged(lambda container: (found_by(container, key) is value,), container, place)
        if value is absent:
            self._row(place, container, ITEM, key)
        else:
            self._row(place, container, ITEM, key, value)

    def _unchanged(self, take: Callable[[Any], tuple[Any, ...]], value: Any, place: Place | None) -> tuple[Any, ...]:
        """Guards the result of take(value)."""
        check = Unchanged(take, value)
        self._row(place, check, CALL, 0)
        return check.before

    def _contents(self, x: Any, base: type, place: Place | None) -> None:
        """Guards and visits the entries of a container. base: its class, or the class in C that it inherits from."""
        if base in (object, SimpleNamespace, cached_property):
            return
        if base is partial:
            for value in self._unchanged(lambda x: (x.func, x.args, x.keywords), x, place):
                self._reach(value, place)
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
            if base is OrderedDict and len(keys) > 1:  # its order is not guarded
                self._unchanged(lambda x: tuple(OrderedDict.__iter__(x)), x, place)
            for key in keys:
                value = dict.__getitem__(x, key)
                self._item(x, key, value, place)
                self._reach(key, place)
                self._reach(value, place)
            if base is defaultdict:
                self._unchanged(lambda x: (x.default_factory,), x, place)
                self._reach(x.default_factory, place)
        elif base in (set, frozenset, deque):
            take: Any = base.__iter__
            for value in take(x) if base is frozenset else self._unchanged(take, x, place):
                self._reach(value, place)
        elif base in (bytearray, memoryview) or base.__module__ == "array":
            self._bytes(lambda x: (bytes(memoryview(x)),), _size_of(x), x, place)
        elif base in CONSTANT:  # numbers and texts
            return
        elif base in HOLDERS or is_inert(base) or base.__module__ in TYPING:
            self._held(x, base, place)
        else:
            self._contents_of_others(x, base, place)

    def _contents_of_others(self, x: Any, base: type, place: Place | None) -> None:
        module = str(base.__module__)
        if issubclass(base, ref):
            if is_a(x(), type):
                self._reach(x(), place)
            elif x() is not None:  # a guard would keep the object alive
                raise Refused(f"it reads a weak reference; {HOLD}", place)
        elif base is MappingProxyType:
            self._pairs(lambda x: x.items(), x, place)
        elif base is ContextVar:
            self._held(x, base, place)  # the default
            self._reach(self._unchanged(lambda x: (x.get(absent),), x, place)[0], place)
        elif (module, base.__name__) == ("_thread", "_local"):
            self._pairs(lambda x: x.__dict__.items(), x, place)
        elif base is CACHE:
            for value in self._unchanged(lambda x: tuple(sorted(gc.get_referents(x), key=id)), x, place):
                self._reach(value, place)
        elif module == "numpy" and base.__name__ == "ndarray":
            self._array(lambda x: (x.dtype, x.shape, x.strides, x.flags.num, x.tobytes()), x, place)
        elif module.partition(".")[0] == "numpy" and base.__name__ == "void":  # a row of an array
            self._array(lambda x: (x.dtype, x.tobytes()), x, place)
        elif module.partition(".")[0] == "numpy" and (kinds := NUMPY_TYPES & {cls.__name__ for cls in base.__mro__}):
            if "dtype" in kinds:
                for held in (x.metadata, x.base, *(x.fields or {}).values()):
                    self._reach(held if held is not x else None, place)
            elif "ufunc" in kinds:
                self._held(x, base, place)
        elif module == "_io":
            self._file(x, place)
        elif issubclass(base, BaseException):
            for value in self._unchanged(lambda x: (x.args, x.__cause__, x.__context__), x, place):
                self._reach(value, place)
            self._fields_in_c(x, base, place)
        elif not is_own(module):
            raise Refused(
                f"it reads an object of type {type(x).__name__}, whose state cannot be compared; {HOLD}", place
            )

    def _held(self, x: Any, base: type, place: Place | None) -> None:
        """Visits the values in an immutable object."""
        held = gc.get_referents(x)
        if base.__module__ == "datetime":  # gc does not see the values in times
            held = [base.__dict__["tzinfo"].__get__(x)] if "tzinfo" in base.__dict__ else []
        for value in held:
            if value is not type(x):
                self._reach(value, place)

    def _array(self, take: Callable[[Any], tuple[Any, ...]], x: Any, place: Place | None) -> None:
        """Guards the bytes of an array. For arrays of objects these are addresses, so the objects are kept alive."""
        self._reach(x.dtype, place)
        held = list(_objects_of(x)) if x.dtype.hasobject else []
        self._bytes(lambda x, held=held: take(x), x.nbytes, x, place)  # type: ignore[misc]
        for value in held:
            self._reach(value, place)

    def _fields_in_c(self, x: Any, base: type, place: Place | None) -> None:
        """Guards attributes of a type in C that the code names."""
        for cls in base.__mro__[:-1]:  # object's __class__ cannot be set
            for name, field in cls.__dict__.items():
                if type(field) not in (GetSetDescriptorType, MemberDescriptorType) or not self._is_named(name):
                    continue
                try:
                    values = self._unchanged(partial(_field_of, field), x, place)
                except (AttributeError, ValueError):  # such as for a closed file
                    continue
                self._reach(values[0], place)

    def _is_named(self, name: str) -> bool:
        """Whether the code names an attribute."""
        raise NotImplementedError

    def _file(self, x: Any, place: Place | None) -> None:
        """Files in memory are compared. Files that are only written to, and standard files of the process, are not
        read."""
        self._fields_in_c(x, type(x), place)
        if x in (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__) or x.closed or not x.readable():
            return
        if not is_a(x, (io.StringIO, io.BytesIO)):
            raise Refused("it reads a file; read it outside the function", place)
        self._bytes(lambda x: (x.getvalue(), x.tell()), len(x.getvalue()), x, place)

    def _pairs(self, take: Callable[[Any], Any], x: Any, place: Place | None) -> None:
        def flat(x: Any) -> tuple[Any, ...]:
            return tuple([item for pair in take(x) for item in pair])

        for value in self._unchanged(flat, x, place):
            self._reach(value, place)

    def _bytes(self, take: Callable[[Any], tuple[Any, ...]], size: int, x: Any, place: Place | None) -> None:
        if size > _MOST_BYTES:
            raise Refused(f"it reads a Python array of {size:,} bytes; pass it as a tensor", place)
        self._unchanged(take, x, place)
