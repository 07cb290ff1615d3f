"""Where CPython's objects keep data outside of dicts: slots, dict pointers, and the code and defaults of functions.

The offsets are found in sample objects, so that an unknown version of CPython raises an error at import."""

from __future__ import annotations

import ctypes
from types import MemberDescriptorType, ModuleType
from typing import Any

_WORD = ctypes.sizeof(ctypes.c_void_p)
CLASS = _WORD  # the offset of an object's class
_MANAGED_DICT = 1 << 4  # flag of types whose instances have their dict in front of them (Python 3.11 on)


def is_a(x: Any, classes: type | tuple[type, ...]) -> bool:
    """isinstance() without reading x.__class__, which a program may compute."""
    return issubclass(type(x), classes)


def _word(x: Any, offset: int) -> int | None:
    return ctypes.c_void_p.from_address(id(x) + offset).value


def offset_of(slot: MemberDescriptorType) -> int:
    """The offset of a slot in instances of its class (PyMemberDescrObject, PyMemberDef)."""
    definition = _word(slot, 5 * _WORD)
    assert definition is not None
    return ctypes.c_ssize_t.from_address(definition + 2 * _WORD).value


def offset_of_dict(x: Any, attributes: dict[str, Any]) -> int | None:
    """The offset of the pointer to an object's dict; None if it has no fixed offset."""
    offset = -3 * _WORD if type(x).__flags__ & _MANAGED_DICT else type(x).__dictoffset__
    return offset if offset and _word(x, offset) == id(attributes) else None


def _offsets_in(x: Any, *names: str) -> list[int]:
    """The offsets of these attributes in functions or classes, found in a sample."""
    size: int = type.__dict__["__basicsize__"].__get__(type(x))
    words = [_word(x, i) for i in range(0, size, _WORD)]
    return [words.index(id(getattr(x, name))) * _WORD for name in names]


def _samples() -> tuple[Any, type]:
    def sample(a: Any = object, *, b: Any = object) -> None: ...

    class Sample: ...

    return sample, Sample


_FUNCTION, _CLASS = _samples()
CODE, DEFAULTS, KEYWORDS = _offsets_in(_FUNCTION, "__code__", "__defaults__", "__kwdefaults__")
# repr() reads these.
NAMES_OF_FUNCTION = _offsets_in(_FUNCTION, "__name__", "__qualname__")
NAMES_OF_CLASS = _offsets_in(_CLASS, "__name__", "__qualname__")

# Classes made by class statements share one destructor, subtype_dealloc (PyTypeObject.tp_dealloc), whatever their
# bases. A class in C with its own destructor does not have it.
_DESTRUCTOR = 6 * _WORD
_MADE = [type("Made", bases, {}) for bases in ((), (dict,), (type,), (ModuleType,), (ValueError,))]
_OF_PYTHON = _word(_MADE[0], _DESTRUCTOR)
if any(_word(cls, _DESTRUCTOR) != _OF_PYTHON for cls in _MADE) or _word(dict, _DESTRUCTOR) == _OF_PYTHON:
    raise ImportError("norch.program: the fields of types are not where they are in CPython 3.10 to 3.13")


def is_made_by_class_statement(cls: type) -> bool:
    """Whether a class is defined in Python, by a class statement or type()."""
    return _word(cls, _DESTRUCTOR) == _OF_PYTHON


def _offset_of_tag() -> int:
    """The offset of a class's version (PyTypeObject.tp_version_tag), which changes with the class or one of its bases;
    0 if not found."""

    size: int = type.__dict__["__basicsize__"].__get__(type)

    class Base: ...

    class Sample(Base): ...

    def words() -> list[int]:
        Sample().__doc__  # noqa: B018  a lookup gives the class a version
        return [_word(Sample, i) or 0 for i in range(0, size, _WORD)]

    before = words()
    Base.k = 1  # type: ignore[attr-defined]
    between = [_word(Sample, i) or 0 for i in range(0, size, _WORD)]
    rows = zip(before, between, words(), strict=True)
    offsets = [i * _WORD for i, (first, zero, last) in enumerate(rows) if 0 != first != last != 0 == zero]
    return offsets[0] if len(offsets) == 1 else 0


TAG = _offset_of_tag()
