"""The placeholders of names of PyTorch that norch leaves out; compat/left_out.txt lists the names with the reasons."""

from __future__ import annotations

import os
import sys
from functools import cache

from .typing import Any

# The section of left_out.txt with the names of a module, if it is not that of PyTorch's module.
_LISTED_AS = {"nn.functional": "functional", "distributions.transforms": "distributions"}
_LIST = os.path.join(os.path.dirname(os.path.dirname(__file__)), "compat", "left_out.txt")


def sections(path: str) -> dict[str, dict[str, list[str]]]:
    """{reason: {where: names}} of a file with reasons in brackets; "" is the reason of lines before the first."""
    found: dict[str, dict[str, list[str]]] = {"": {}}
    listed = found[""]
    with open(path) as file:
        text = file.read().replace("\n    ", " ").splitlines()
    for line in text:
        if line[:1] == "[":
            listed = found.setdefault(line[1:-1], {})
        elif line and line[0] != "#":
            where, _, names = line.partition(":")
            listed.setdefault(where, []).extend(names.split())
    return found


@cache
def table() -> dict[str, dict[str, list[str]]]:
    """{reason: {where: names}}. The head of the list explains its format."""
    return {why: listed for why, listed in sections(_LIST).items() if why}


@cache
def _reasons() -> dict[str, dict[str, str]]:
    """{where: {name: reason}}."""
    reasons: dict[str, dict[str, str]] = {}
    for why, listed in table().items():
        for where, names in listed.items():
            reasons.setdefault(where, {}).update(dict.fromkeys(names, why))
    return reasons


def reason(where: str, name: str) -> str | None:
    """Why norch leaves out a name of PyTorch; None for a name that is not in the list."""
    return _reasons().get(_LISTED_AS.get(where, where), {}).get(name)


def _placeholder(where: str, name: str) -> Any:
    from importlib import import_module  # by name: of a package that imports this one

    return import_module("norch.compat.placeholders").placeholder(where, name)


def lookup(module: str, name: str) -> Any:
    """The value of a name that a module of norch does not define: a placeholder of compat/placeholders.py, or an
    AttributeError with the reason."""
    where = module.partition(".")[2].removeprefix("compat.") or "torch"
    try:
        return _placeholder(where, name)
    except LookupError:
        why = reason(where, name)
    problem = f"has no attribute {name!r}" if why is None else f"leaves out {name!r} of PyTorch: {why}"
    # name and obj: with them Python suggests a name that is spelled alike
    raise AttributeError(f"module {module!r} {problem}", name=name, obj=sys.modules.get(module))


class Missing:
    """A descriptor for an attribute that Tensor leaves out: a placeholder, or an AttributeError with the reason.

    A __getattr__ of Tensor would slow down every attribute.
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        try:
            return _placeholder("Tensor", self.name)
        except LookupError:
            why = reason("Tensor", self.name)
        raise AttributeError(f"norch.Tensor leaves out {self.name!r} of PyTorch: {why}")


def missing_methods() -> dict[str, Missing]:
    """A Missing for each name of Tensor in the list."""
    return {name: Missing(name) for names in table().values() for name in names.get("Tensor", ())}
