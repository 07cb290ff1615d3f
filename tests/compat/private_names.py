"""Writes norch/compat/private_names.txt: what PyTorch has in modules that norch has too, beside its public names.

Beside PyTorch: python tests/compat/private_names.py
"""

from __future__ import annotations

import importlib
import sys
import textwrap
import types
import warnings
from pathlib import Path

import torch

import norch
from norch._package import left_out
from norch.compat import placeholders

HEAD = """\
# What PyTorch 2.13 defines in its modules beside public names, and norch does not: classes, and functions of the parts
# that norch leaves out. Each is a placeholder (placeholders.py).
# Written by tests/compat/private_names.py; placeholders.txt says what others are.
"""
FILE = Path(norch.__file__).parent / "compat" / "private_names.txt"
# Modules of which functions are listed too: they export, print and distribute. Those of the others compute, and a
# program that asks for them in a try statement takes another path without them.
FUNCTIONS = ("compiler", "cuda", "distributed", "fx", "hub", "jit", "library", "multiprocessing", "onnx", "overrides",
             "serialization", "storage", "utils")  # fmt: skip
EXCEPT = ("", "_C", "utils.data")  # where programs ask for what is new


def modules() -> list[str]:
    found = ["" if package == "torch" else package for package in placeholders.packages()]
    for package, names in placeholders.packages().items():
        found += [name if package == "torch" else f"{package}.{name}" for name in sorted(names)]
    return sorted(dict.fromkeys(found))


def listed(path: str) -> list[str]:
    """The names of a module, or [] where norch has none of that path."""
    if path in EXCEPT or path.startswith(("nn", "optim")):  # layers and optimizers
        return []
    try:
        ours = importlib.import_module(f"norch.{path}")
        theirs = importlib.import_module(f"torch.{path}")
    except Exception:  # what needs other packages, or another device
        return []
    if not isinstance(ours, types.ModuleType) or vars(ours).get("_is_placeholder"):
        return []
    kinds: tuple[type, ...] = (type,)
    if path.startswith(FUNCTIONS):
        kinds = (type, types.FunctionType)
    own = [
        name
        for name, thing in vars(theirs).items()
        if isinstance(thing, kinds) and name.strip("_") and name[:2] != "__" and _is_of(thing, path)
    ]
    given = placeholders.table()[path].names if path in placeholders.table() else {}
    return sorted(n for n in own if n not in given and left_out.reason(path, n) is None and not hasattr(ours, n))


def _is_of(thing: object, path: str) -> bool:
    """Whether a module, one in it or C defines a class or function."""
    home = f"{getattr(thing, '__module__', '')}."
    return home.startswith(f"torch.{path}.") or (isinstance(thing, type) and home.startswith("torch._C."))


def main() -> None:
    warnings.simplefilter("ignore")
    placeholders.private_names = dict  # type: ignore[assignment]  # of before
    found = {path: names for path in modules() if (names := listed(path))}
    wrap = textwrap.TextWrapper(119, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False)
    FILE.write_text(HEAD + "".join(wrap.fill(f"{path}: {' '.join(names)}") + "\n" for path, names in found.items()))


if __name__ == "__main__":
    assert torch.__version__ < "3" or sys.exit("for PyTorch 2")
    main()
