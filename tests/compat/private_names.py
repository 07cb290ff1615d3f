"""Writes norch/compat/private_names.txt and imported_names.txt: what PyTorch has in modules that norch has too, beside
the public names that it defines there.

Beside PyTorch: python tests/compat/private_names.py
"""

from __future__ import annotations

import importlib
import sys
import textwrap
import types
import warnings
from pathlib import Path
from typing import Any

import torch

import norch
from norch._package import left_out
from norch.compat import placeholders

HEAD = """\
# What PyTorch 2.13 defines in its modules beside public names, and norch does not: classes, private functions, and
# functions of the parts that norch leaves out. Each is a placeholder (placeholders.py).
# Written by tests/compat/private_names.py; placeholders.txt says what others are.
"""
IMPORTED = """\
# What PyTorch 2.13 imports into its modules from others, and norch's modules do not: name=the path of the thing. In a
# line are those of a module.
# Written by tests/compat/private_names.py.
"""
COMPAT = Path(norch.__file__).parent / "compat"
FILE = COMPAT / "private_names.txt"
# Modules of which public functions are listed too: they export, print and distribute. Those of the others compute, and
# a program that asks for them in a try statement takes another path without them.
FUNCTIONS = ("compiler", "cuda", "distributed", "fx", "hub", "jit", "library", "multiprocessing", "onnx", "overrides",
             "serialization", "storage", "utils")  # fmt: skip
EXCEPT = ("", "_C")  # where programs ask for what is new
PRIVATE = ("nn", "optim", "utils.data")  # where programs ask for layers and optimizers: private names only


def modules() -> list[str]:
    found = ["" if package == "torch" else package for package in placeholders.packages()]
    for package, names in placeholders.packages().items():
        found += [name if package == "torch" else f"{package}.{name}" for name in sorted(names)]
    return sorted(dict.fromkeys(found))


def listed(path: str) -> list[str]:
    """The names of a module, or [] where norch has none of that path."""
    ours, theirs = both(path)
    if ours is None:
        return []
    own = [name for name, thing in vars(theirs).items() if _is_listed(path, name, thing) and _is_of(thing, path)]
    given = placeholders.table()[path].names if path in placeholders.table() else {}
    return sorted(n for n in own if n not in given and left_out.reason(path, n) is None and not hasattr(ours, n))


def both(path: str) -> tuple[Any, Any]:
    """The module of norch and that of PyTorch, or None twice."""
    if path in EXCEPT:
        return None, None
    try:
        ours = importlib.import_module(f"norch.{path}")
        theirs = importlib.import_module(f"torch.{path}")
    except Exception:  # what needs other packages, or another device
        return None, None
    if not isinstance(ours, types.ModuleType) or vars(ours).get("_is_placeholder"):
        return None, None
    return ours, theirs


def _is_listed(path: str, name: str, thing: object) -> bool:
    if name[:2] == "__" or not name.strip("_"):
        return False
    if name[0] == "_":
        return isinstance(thing, (type, types.FunctionType))
    if path.split(".")[0] in PRIVATE or path == "utils.data":
        return False
    return isinstance(thing, (type, types.FunctionType) if path.startswith(FUNCTIONS) else type)


def imported(path: str) -> list[str]:
    """name=path for each thing that PyTorch's module imports from another one, and norch's does not."""
    ours, theirs = both(path)
    found = []
    for name, thing in vars(theirs).items() if ours is not None else ():
        home = getattr(thing, "__module__", None) or ""
        places = [f"{home}.{getattr(thing, '__qualname__', name)}", f"torch.{name}"]
        if isinstance(thing, types.ModuleType):
            home, places = thing.__name__, [thing.__name__]
        elif not isinstance(thing, (type, types.FunctionType)) or home == f"torch.{path}":
            continue
        if name[:2] != "__" and home.partition(".")[0] == "torch" and name != "torch" and not hasattr(ours, name):
            found += [f"{name}={place[6:]}" for place in places if _has(place[6:])][:1]
    return sorted(found)


def _has(path: str) -> bool:
    """Whether norch has a thing of this path, which is no placeholder."""
    thing = norch
    try:
        for name in path.split(".") if path else ():
            thing = getattr(thing, name)
    except (AttributeError, ImportError):
        return False
    return not placeholders.is_placeholder(thing)


def _is_of(thing: object, path: str) -> bool:
    """Whether a module, one in it or C defines a class or function."""
    home = f"{getattr(thing, '__module__', '')}."
    return home.startswith(f"torch.{path}.") or (isinstance(thing, type) and home.startswith("torch._C."))


def main() -> None:
    warnings.simplefilter("ignore")
    placeholders.private_names = placeholders.imported_names = dict  # type: ignore[assignment]  # of before
    again = {path: names for path in modules() if (names := imported(path))}
    write(COMPAT / "imported_names.txt", IMPORTED, again)
    placeholders.imported_names = lambda: {  # type: ignore[assignment]
        path: dict(name.split("=") for name in names) for path, names in again.items()
    }
    write(FILE, HEAD, {path: names for path in modules() if (names := listed(path))})


def write(file: Path, head: str, found: dict[str, list[str]]) -> None:
    wrap = textwrap.TextWrapper(119, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False)
    file.write_text(head + "".join(wrap.fill(f"{path}: {' '.join(names)}") + "\n" for path, names in found.items()))


if __name__ == "__main__":
    assert torch.__version__ < "3" or sys.exit("for PyTorch 2")
    main()
