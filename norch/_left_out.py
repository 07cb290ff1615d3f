"""AttributeErrors for the names of PyTorch that norch leaves out; compat/left_out.txt lists them with the reasons."""

from __future__ import annotations

import os
import sys
from functools import cache

from ._typing import Any

# Where the names of a module are listed, if not under that of PyTorch's module.
_LISTED_AS = {"norch": "torch", "norch.nn.functional": "functional", "norch.distributions.transforms": "distributions"}
_LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compat", "left_out.txt")


@cache
def table() -> dict[str, dict[str, list[str]]]:
    """{reason: {where: names}}. The head of the list explains its format."""
    found: dict[str, dict[str, list[str]]] = {}
    with open(_LIST) as file:
        lines = file.read().replace("\n    ", " ").splitlines()
    for line in lines:
        if line[:1] == "[":
            listed = found[line[1:-1]] = {}
        elif line and line[0] != "#":
            where, _, names = line.partition(": ")
            listed[where] = names.split()
    return found


def reason(where: str, name: str) -> str | None:
    """Why norch leaves out a name of PyTorch; None for a name that is not in the list."""
    return next((why for why, names in table().items() if name in names.get(where, ())), None)


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module of norch does not have."""
    why = reason(_LISTED_AS.get(module, module[6:]), name)
    what = f"has no attribute {name!r}" if why is None else f"leaves out {name!r} of PyTorch: {why}"
    # name and obj: with them Python suggests a name that is spelled alike
    return AttributeError(f"module {module!r} {what}", name=name, obj=sys.modules.get(module))


class Missing:
    """A descriptor in place of a method that Tensor leaves out: it raises an AttributeError with the reason.

    A __getattr__ of Tensor would slow down every attribute.
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        raise AttributeError(f"norch.Tensor leaves out {self.name!r} of PyTorch: {reason('Tensor', self.name)}")


def mark(cls: type) -> None:
    """Sets a Missing in cls for each name of Tensor in the list that cls lacks."""
    for names in table().values():
        for name in names.get("Tensor", ()):
            if not hasattr(cls, name):
                setattr(cls, name, Missing(name))
