"""Entries: code that functions begin with while __torch_function__ may override them.

An entry replaces the __code__ of a function. So the function stays the same object, under all names that programs have
imported, and costs nothing more while nobody needs its entry. Everything else was dearer or different:

- An object of C before each function, which tests the modes of the thread and the types (csrc/python/method.c, as rows
  of ops.def have it): CPython calls a function of Python from C in 40 ns more than from Python (x.dim(): 143, not 102).
- A test in each function takes 14 ns, and does not see the types of its arguments.
- Another function under the same name: programs that have imported the first go on with that one, and handlers that
  compare `func is torch.add` know no other.
- PyFunction_SetVectorcall() is the same exchange in C, is new in Python 3.12, and not in its stable ABI.
"""

from __future__ import annotations

import warnings
from functools import cache
from types import CodeType, FunctionType

from ..ops._instead import ENTRIES
from .typing import Any

# The types of arguments that override nothing; override.py fills it, and empties it while a mode is active.
PLAIN: set[type] = set()
NOTHING = object()  # the result if nothing overrides a call


@cache
def _template(cells: int) -> CodeType:
    """The code of an entry; texts stand for its constants. It has as many free variables as the code it replaces."""
    names = ", ".join(f"cell{i}" for i in range(cells))
    text = f"""
def around({names}):
    def begin(*arguments, **named):
        if not named and 'are_plain'('map'('type', arguments)): return 'original'(*arguments)
        return 'entry'.run(arguments, named); {names}
    return begin
"""
    namespace: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a text is called
        exec(compile(text, __file__, "exec"), namespace)  # noqa: S102
    return namespace["around"](*range(cells)).__code__


class Entry:
    """A function and the code at its start.

    original    the function without an entry
    override    None, or override(arguments, named), which returns NOTHING if the call is not overridden
    """

    __slots__ = ("function", "original", "override")
    override: Any

    def __init__(self, function: FunctionType):
        self.function, code = function, function.__code__
        self.original = FunctionType(
            code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        for name in ("__kwdefaults__", "__annotations__", "__doc__", "__module__", "__qualname__"):
            setattr(self.original, name, getattr(function, name))
        self.original.__dict__.update(function.__dict__)
        self.override = None

    def change(self, override: Any) -> None:
        """Sets override."""
        self.override = override
        code: CodeType = self.original.__code__
        attributes = vars(self.function)
        if override is None:
            self.function.__code__ = code
            if attributes.get("__wrapped__") is self.original:
                del attributes["__wrapped__"]
            return
        attributes.setdefault("__wrapped__", self.original)  # where inspect finds the signature
        constants = {"entry": self, "are_plain": PLAIN.issuperset, "map": map, "type": type, "original": self.original}
        template = _template(len(code.co_freevars))
        self.function.__code__ = template.replace(
            co_consts=tuple([constants.get(x, x) if type(x) is str else x for x in template.co_consts]),
            co_name=code.co_name,
            co_filename=code.co_filename,  # tracebacks show the first line of the function
            co_firstlineno=code.co_firstlineno,
        )

    def run(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call of the function through its entry."""
        result = self.override(arguments, named)
        return self.original(*arguments, **named) if result is NOTHING else result


def entry_of(function: FunctionType) -> Entry:
    """The entry of a function. The first call makes it."""
    entry = ENTRIES.get(id(function))
    if entry is None:
        entry = ENTRIES[id(function)] = Entry(function)
    return entry
