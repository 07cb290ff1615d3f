"""Imports within norch run one way: there is no circle of modules but those that ALLOWED gives a reason for.

The graph comes from the sources, so imports inside functions and under TYPE_CHECKING count as others do. A package
stands for its __init__.py; that importing a module imports its packages first is left out, as the root imports all.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import norch

pytestmark = pytest.mark.host

ROOT = Path(norch.__file__).resolve().parents[1]  # of an installed norch, too

# reason: modules. A circle that is found has to be a part of one of these.
ALLOWED: dict[str, str] = {}


def modules(package: Path) -> dict[str, Path]:
    """Names of a package's modules, and their files."""
    found = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path, paths: dict[str, Path]) -> Iterator[str]:
    """What one of them imports of the others, wherever in its text."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in paths)
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(filter(None, (above, node.module)))
            if base in paths:  # and not of the standard library
                inside = [f"{base}.{alias.name}" for alias in node.names]
                yield from (module if module in paths else base for module in inside)


def graph(package: Path) -> dict[str, set[str]]:
    """module: those it imports."""
    paths = modules(package)
    return {name: set(imported(name, path, paths)) - {name} for name, path in paths.items()}


def reachable(edges: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = edges[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Sets of modules each of which imports the others, by whatever way; the largest first."""
    ahead = {name: reachable(edges, name) for name in edges}
    sets = {frozenset(other for other in ahead[name] if name in ahead[other]) for name in edges if name in ahead[name]}
    return sorted((sorted(found) for found in sets), key=len, reverse=True)


def test_no_circle_but_those_with_a_reason() -> None:
    found = circles(graph(ROOT / "norch"))
    new = [circle for circle in found if not any(set(circle) <= set(names.split()) for names in ALLOWED.values())]
    assert new == [], "a new circle of imports"


def test_a_circle_that_is_gone_leaves_the_list() -> None:
    found = circles(graph(ROOT / "norch"))
    for reason, names in ALLOWED.items():
        assert any(set(circle) <= set(names.split()) for circle in found), reason


def test_imports_of_every_kind_are_found(tmp_path: Path) -> None:
    package = tmp_path / "p"
    (package / "sub").mkdir(parents=True)
    for name, text in {
        "__init__": "import os\nfrom .a import *",
        "a": "def f():\n    from .sub import b",
        "c": "import p.sub.b as b\nfrom . import a, missing",
        "sub/__init__": "",
        "sub/b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..a import f\nfrom .. import name",
    }.items():
        (package / f"{name}.py").write_text(text)
    edges = graph(package)
    assert edges == {
        "p": {"p.a"},
        "p.a": {"p.sub.b"},
        "p.c": {"p.sub.b", "p.a", "p"},
        "p.sub": set(),
        "p.sub.b": {"p.a", "p"},
    }
    assert circles(edges) == [["p", "p.a", "p.sub.b"]]


def test_importing_norch_is_cheap() -> None:
    """No third-party module, and none of the standard library's that take long and that few programs need."""
    code = "import sys; before = set(sys.modules); import norch; print(*sorted(set(sys.modules) - before))"
    bare = [sys.executable, "-S", "-c", code]  # without site, which imports some for editable installs
    done = subprocess.run(bare, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"dataclasses", "inspect", "asyncio", "subprocess", "logging"}
    assert not {name for name in loaded - {"norch"} if name not in sys.stdlib_module_names}


def test_a_training_step_reads_no_placeholders() -> None:
    """`from . import name` of a module that is not imported yet looks for the name among them first."""
    code = """
import sys, norch
model = norch.nn.Sequential(norch.nn.Linear(2, 3), norch.nn.ReLU())
optimizer = norch.optim.Adam(model.parameters())
model(norch.ones(1, 2)).sum().backward()
optimizer.step()
assert "norch.compat.placeholders" not in sys.modules
class Subclass(norch.Tensor): ...
assert "norch.compat.placeholders" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_deferred_modules() -> None:
    """`import norch` leaves them alone; each declares the methods that wait for it, and has the functions."""
    code = """
import sys, norch
from importlib import import_module
from norch.ops import _deferred
from norch.ops.op import METHODS
assert not {"norch" + module for module in _deferred.FUNCTIONS} & {*sys.modules}
before, waiting = dict(METHODS), []
for module, (_, both, methods) in _deferred._DECLARED.items():
    waiting += both + methods if module.startswith(".ops.") and "linalg" not in module else []
for module, names in _deferred.FUNCTIONS.items():
    found = import_module("norch" + module)
    assert all(hasattr(found, name) for name in names.split()), module
declared = {name for name in METHODS if METHODS[name] is not before.get(name)}
assert declared == {*waiting}, declared ^ {*waiting}
import pkgutil, norch.ops
for module in pkgutil.walk_packages(norch.ops.__path__, "norch.ops."):
    import_module(module.name)
late = METHODS.keys() - vars(norch.Tensor).keys()
assert not late, f"declared after Tensor was made: {late}"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_what_a_star_takes_does_not_depend_on_what_was_asked_for() -> None:
    listed = "; print(norch.__all__)"
    fresh, asked = (
        subprocess.run([sys.executable, "-c", code + listed], capture_output=True, text=True, check=True).stdout
        for code in ("import norch", "import norch; norch.capture, norch.load, norch.nn")
    )
    assert fresh == asked and "'exp'" in fresh
