"""Adds a note (PEP 678) to an exception: the module that raised it, and the arguments of the call:

    norch.errors.ShapeError: linear: sizes 10 and 12 of the inner dimension do not match: (8, 10) and (4, 12)
    in 0 (Linear(12, 4)) of Sequential, called with (8, 10)

Module.__call__ imports this file when an exception passes through it. The innermost module writes the note, and each
module around it lengthens the path: one note, however deep the model. Python 3.10 has no notes; there the line is the
end of the message.
"""

from __future__ import annotations

import inspect
import weakref
from contextlib import suppress
from typing import Any

from ..errors import Error
from ..tensor import Tensor

_LONGEST = 100  # of the text of a module or an argument, in characters


class Place(str):
    """The note, with a reference to the outermost module that it names so far. The reference is weak, so that an
    exception does not keep parameters alive. A pickle has only the text."""

    inner: str  # the module that failed
    called: str  # its arguments
    path: str  # the path from the outermost module
    outer: weakref.ref[Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


def _place(inner: str, called: str, path: str, outer: Any) -> Place:
    where = f"{path} ({inner}) of {type(outer).__name__}" if path else inner
    place = Place(f"in {where}, called with {called}")
    place.inner, place.called, place.path, place.outer = inner, called, path, weakref.ref(outer)
    return place


def note(error: Exception, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Notes that the error was raised by module(*args, **kwargs), or lengthens the path of the module within it. If
    this itself fails, for example in a user's extra_repr(), the error stays as it is."""
    with suppress(Exception):
        old = _find(error)
        if old is None or not _has_inner_call(error):
            _write(error, old, _place(_text_of(module), _called_with(args, kwargs), "", module))
        elif below := _name_below(module, old.outer()):
            path = f"{below}.{old.path}" if old.path else below
            _write(error, old, _place(old.inner, old.called, path, module))


def _find(error: Exception) -> Place | None:
    return next((note for note in getattr(error, "__notes__", ()) if type(note) is Place), None)


def _has_inner_call(error: Exception) -> bool:
    """Whether the error has passed through a module inside the one that catches it now. An exception that is raised a
    second time still has the note of the first time."""
    frame: Any = error.__traceback__  # begins in Module.__call__
    at = frame.tb_next
    while at is not None:
        if at.tb_frame.f_code is frame.tb_frame.f_code:
            return True
        at = at.tb_next
    return False


def _name_below(module: Any, wanted: Any) -> str:
    """The path of a module within another one, without the wrapper that norch.compile() puts around a module; "" if it
    is not within it."""
    path = next((name for name, below in module.named_modules() if below is wanted), "")
    return ".".join(part for part in path.split(".") if part != "_orig_mod")


def _write(error: Any, old: Place | None, new: Place) -> None:
    notes = [note for note in getattr(error, "__notes__", ()) if note is not old]
    error.__notes__ = [*notes, new]
    if hasattr(error, "add_note"):
        return
    # Only if the message is the only argument, of a class whose constructor is known.
    is_plain = isinstance(error, Error) or type(error).__module__ == "builtins"
    if is_plain and len(error.args) == 1 and type(error.args[0]) is str and str(error) == error.args[0]:
        error.args = (error.args[0].removesuffix(f"\n{old}") + f"\n{new}",)


# ---- texts ------------------------------------------------------------------------------------------------------


def _text_of(module: Any) -> str:
    """The text Linear(12, 4): the required options without names, and the others if they differ from the default. A
    module with submodules is named by its class alone."""
    name = type(module).__name__
    extra = module.extra_repr()
    if module._modules or "\n" in extra:
        return name
    parameters = list(inspect.signature(type(module)).parameters.values())
    shown = []
    for at, option in enumerate(_options(extra)):
        key, equals, value = option.partition("=")
        parameter = {item.name: item for item in parameters}.get(key)
        if equals and parameter is not None and str(parameter.default) == value:
            continue
        required = equals and at < len(parameters) and parameters[at].name == key
        shown.append(value if required and parameters[at].default is inspect.Parameter.empty else option)
    text = f"{name}({', '.join(shown)})"
    return text if len(text) <= _LONGEST else name


def _options(text: str) -> list[str]:
    """Splits at commas outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _called_with(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    texts = [_argument(x) for x in args] + [f"{name}={_argument(x)}" for name, x in kwargs.items()]
    text = ", ".join(texts)
    return (text if len(text) <= 2 * _LONGEST else text[: 2 * _LONGEST] + " ...") or "no arguments"


def _argument(x: Any, depth: int = 0) -> str:
    """The text of an argument: of a tensor its shape, and its dtype unless it is float32; of a small container its
    elements; of anything that may be large its class."""
    if isinstance(x, Tensor):
        dtype = str(x.dtype).rpartition(".")[2]
        return f"{tuple(x.shape)}" + (f" {dtype}" if dtype != "float32" else "")
    if x is None or type(x) in (bool, int, float, complex):
        return repr(x)
    if type(x) is str and len(x) < _LONGEST // 4:
        return repr(x)
    if type(x) in (list, tuple) and len(x) <= 4 and depth < 2:
        inside = ", ".join(_argument(item, depth + 1) for item in x)
        return f"[{inside}]" if type(x) is list else f"({inside})"
    return type(x).__name__
