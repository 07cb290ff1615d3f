"""Conditions on Python values under which a replay is valid, as rows:

    (container, ITEM, key, value)     container[key] of a dict, list or cell is value; without value: it is absent
    (container, SIZE, size)           it has this many entries
    (dict, KEYS, None, keys)          it has these keys in this order
    (object, FIELD, offset, value)    the pointer at this offset, such as a slot
    (callable, CALL, 0)               it returns True
    (callable, CALL, offset, class)   it returns True; it is not called again until the class changes its version,
                                      which is at that offset

Values are equal if they are identical, or equal numbers or texts of one type (csrc/python/capture/guards.c).
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from types import CellType, MemberDescriptorType
from typing import Any

from .fields import is_a, offset_of, offset_of_dict

ITEM, SIZE, KEYS, FIELD, CALL = range(5)
Row = tuple[Any, ...]
Place = tuple[str, int]  # file and line of a read
absent: Any = object()  # the value of an absent key


class Unchanged:
    """A guard in Python: take(value) returns the same result as before, or raises an exception of the same class."""

    __slots__ = ("before", "take", "value")

    def __init__(self, take: Callable[[Any], Any], value: Any):
        self.take, self.value = take, value
        self.before = _taken(take, value)

    def __call__(self) -> bool:
        now = _taken(self.take, self.value)
        return len(now) == len(self.before) and all(map(same, now, self.before))


def _taken(take: Callable[[Any], Any], value: Any) -> tuple[Any, ...]:
    try:
        return tuple(take(value))
    except Exception as error:  # such as for a released memoryview
        return (type(error),)


class ClassUnchanged:
    """A guard in Python: the guards of the dicts of a class and its bases hold."""

    __slots__ = ("cls", "rows")

    def __init__(self, cls: type, rows: list[Row]):
        self.cls, self.rows = cls, rows

    def __call__(self) -> bool:
        type.__getattribute__(self.cls, "__reduce__")  # a lookup gives the class a version
        return next(changes(self.rows), None) is None


def changes(rows: list[Row]) -> Iterator[Row]:
    """The guards that no longer hold."""
    for row in rows:
        if type(row[0]) is ClassUnchanged:
            yield from changes(row[0].rows)
        elif not _holds(*row):
            yield row


def found_by(container: Any, key: Any) -> Any:
    """The value that an ITEM guard finds."""
    try:
        return container.cell_contents if type(container) is CellType else container[key]
    except (LookupError, ValueError):
        return absent


def _holds(container: Any, kind: int, key: Any, value: Any = absent) -> bool:
    if kind == CALL:
        return bool(container())
    if kind == SIZE:
        return len(container) == key
    if kind == KEYS:
        return same(tuple(dict.__iter__(container)), value)
    if kind == FIELD:
        at = ctypes.c_void_p.from_address(id(container) + key).value
        return at is None if value is absent else at == id(value) or type(value) in EQUAL
    return same(found_by(container, key), value)


EQUAL = (int, float, str, bytes)


def same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) in EQUAL and repr(a) == repr(b) if type(a) is float else type(a) in EQUAL and a == b


def dict_of(x: Any) -> dict[str, Any] | None:
    try:
        attributes = object.__getattribute__(x, "__dict__")
    except AttributeError:
        return None
    return attributes if is_a(attributes, dict) else None


def slot_of(slot: Any, x: Any) -> Any:
    try:
        return slot.__get__(x)
    except AttributeError:
        return absent


def dict_of_class(cls: type) -> dict[str, Any]:
    """The dict behind the proxy cls.__dict__."""
    (attributes,) = (referent for referent in gc.get_referents(cls.__dict__) if type(referent) is dict)
    return attributes


def guard_of_bases(cls: type) -> Row:
    """A guard that the bases of a class did not change."""
    slot = type.__dict__["__mro__"]
    if type(slot) is MemberDescriptorType:
        return cls, FIELD, offset_of(slot), cls.__mro__
    return Unchanged(lambda cls: cls.__mro__, cls), CALL, 0


def guard_of_dict(x: Any, attributes: dict[str, Any]) -> Row:
    """A guard that the dict of an object was not replaced, for example by c.__dict__ = {}."""
    offset = offset_of_dict(x, attributes)
    if offset is None:
        return Unchanged(lambda x: (dict_of(x),), x), CALL, 0
    return x, FIELD, offset, attributes


def contents_of(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return absent
