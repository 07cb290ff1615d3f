"""Writes norch/_methods.pyi, Tensor's methods as norch/ops declares them. `make stubs` runs it from the sources.

tensor.py makes these methods of the class when it is imported, which editors and type checkers cannot see. Annotations
are those of the functions, where the stub knows their names.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import norch  # noqa: E402, F401  (declares the methods)
from norch.ops._deferred import DeferredMethod  # noqa: E402
from norch.ops.op import METHODS  # noqa: E402

STUB = HERE.parent / "norch" / "_methods.pyi"
HEAD = '''"""Written by `make stubs` from the declarations in norch/ops; a test tells when it is old."""

import builtins
from collections.abc import Sequence
from typing import Any

from ._handle import Handle
from .dtype import dtype as DType
from .tensor import Tensor

_Operand = Any
_Dims = int | Sequence[int] | None

class DeclaredMethods(Handle):
    """The methods of Tensor that norch/ops declares."""

    __slots__ = ()
'''
KNOWN = {"Dims": "_Dims", "DType": "DType", "DType | None": "DType | None"}
PLAIN = {"int", "float", "bool", "str", "None", "Any", "Tensor", "..."}


def annotation(text: Any, otherwise: str = "Any") -> str:
    """The annotation where the stub knows its names."""
    text = text if isinstance(text, str) else otherwise
    words = text.replace("[", " ").replace("]", " ").replace(",", " ").replace("|", " ").split()
    text = KNOWN.get(text, text if set(words) <= PLAIN | {"tuple", "Sequence"} else otherwise)
    return re.sub(r"\b(int|float|bool)\b", r"builtins.\1", text)  # Tensor has methods of these names


def parameter(p: inspect.Parameter, first: bool, is_row: bool) -> str:
    """One parameter; the first is self. A row of csrc/ops.def takes tensors, numbers and arrays."""
    if first:
        return "self"
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    default = "" if p.default is p.empty else " = ..."
    return f"{stars}{p.name}: {'_Operand' if is_row else annotation(p.annotation)}{default}"


def method(name: str, thing: Any) -> str:
    """The declaration of a method, a property or a constant."""
    if isinstance(thing, property):
        given = annotation(inspect.signature(thing.fget).return_annotation)
        return f"    @property\n    def {name}(self) -> {'Tensor' if given == 'Any' else given}: ..."
    if isinstance(thing, DeferredMethod):
        thing = thing.function()
    if not callable(thing):
        return f"    {name}: {annotation(type(thing).__name__)}"
    is_row = hasattr(thing, "row")
    ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    signature = inspect.signature(thing)
    parts: list[str] = []
    for i, p in enumerate(signature.parameters.values()):
        if p.kind is p.KEYWORD_ONLY and "*" not in parts and not any(part.startswith("*") for part in parts):
            parts.append("*")
        parts.append(parameter(p, i == 0, is_row))
    return f"    def {name}({', '.join(parts)}) -> {annotation(signature.return_annotation)}: ...{ignored}"


def lines() -> Iterator[str]:
    """The stub, method by method in alphabetical order."""
    yield HEAD
    for name, thing in sorted(METHODS.items()):
        yield method(name, thing)


def text() -> str:
    """The whole stub."""
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    STUB.write_text(text())
