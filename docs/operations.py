"""Writes docs/operations.md: every operation, what it takes and where it runs. `make docs` runs it from the sources.

The rows are the public functions of norch, the methods that Tensor alone has, and those of nn.functional and linalg.
The dtypes are found by asking: each operation that has a case in tests/cases.py is called with every dtype, and has a
derivative when its result requires grad. It runs on CUDA when each function of the library that it calls is of a family
(csrc/ops/x.c) that has kernels there (csrc/cuda/x.cu), or needs none.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]

import cases  # noqa: E402, F401  (fills CASES)
import numpy as np  # noqa: E402
from case import CASES, draw, source  # noqa: E402

import norch  # noqa: E402
from norch import _left_out  # noqa: E402
from norch._lib import lib  # noqa: E402
from norch.dtype import DTYPES  # noqa: E402
from norch.nn import functional  # noqa: E402

HEAD = """# Operations

Written by `make docs` from the code; a test fails when it is out of date. A function is a method of Tensor too, and
works in place, where the second column says so. The dtypes are those with which it was tried and did its work, out of
{dtypes}.
What has a derivative has that of the derivative too. All of it runs on the CPU; the column CUDA says what runs there.

`out=` says that a function takes tensors to write its result into, as PyTorch's does. Of another shape they are
resized, with a warning where they had elements. The result must be castable to their dtype, and nothing may require
grad; they may overlap the inputs. What PyTorch has beyond this is [at the end](#left-out), with the reason.
"""

# Sections, by the module that a function comes from.
SECTIONS = {
    "norch.ops.values": "Creation",
    "norch.ops.create": "Creation",
    "norch.ops.random": "Random numbers",
    "norch.random": "Random numbers",
    "norch.ops.pointwise": "Pointwise",
    "norch.ops.composed.pointwise": "Pointwise",
    "norch.ops.activation": "Pointwise",
    "norch.ops.special": "Pointwise",
    "norch.ops.reduce": "Reductions",
    "norch.ops.norm": "Reductions",
    "norch.ops.softmax": "Reductions",
    "norch.ops.scan": "Scans and order",
    "norch.ops.sort": "Scans and order",
    "norch.ops.composed.order": "Scans and order",
    "norch.ops.matmul": "Products",
    "norch.ops.composed.einsum": "Products",
    "norch.ops.composed.products": "Products",
    "norch.ops.view": "Shape",
    "norch.ops.composed.shape": "Shape",
    "norch.ops.composed.diagonal": "Shape",
    "norch.ops.composed.pad": "Shape",
    "norch.ops.composed.grid": "Shape",
    "norch.ops.copy": "Copies and casts",
    "norch.ops.index": "Indexing",
    "norch.ops.scatter": "Indexing",
    "norch.ops.getitem": "Indexing",
    "norch.ops.composed.statistics": "Statistics and distances",
    "norch.ops.composed.distance": "Statistics and distances",
    "norch._stft": "Signals",
    "norch.ops.composed.type_properties": "Types and questions",
}
SETTINGS = ("norch.autograd", "norch.dtype", "norch._threads", "norch.device", "norch.errors", "norch._repr")

# How a function of no tensor is called to learn its dtypes.
MADE: dict[str, Callable[[Any], Any]] = {
    name: lambda d, name=name: getattr(norch, name)(2, 2, dtype=d)
    for name in ("empty", "ones", "zeros", "rand", "randn")
} | {
    "arange": lambda d: norch.arange(2, dtype=d),
    "eye": lambda d: norch.eye(2, dtype=d),
    "full": lambda d: norch.full((2,), 1, dtype=d),
    "linspace": lambda d: norch.linspace(0, 1, 3, dtype=d),
    "logspace": lambda d: norch.logspace(0, 1, 3, dtype=d),
    "tensor": lambda d: norch.tensor([1], dtype=d),
    "as_tensor": lambda d: norch.as_tensor([1], dtype=d),
    "asarray": lambda d: norch.asarray([1], dtype=d),
    "scalar_tensor": lambda d: norch.scalar_tensor(1, dtype=d),
    "randint": lambda d: norch.randint(0, 2, (2,), dtype=d),
    "randperm": lambda d: norch.randperm(2, dtype=d),
    "tril_indices": lambda d: norch.tril_indices(2, 2, dtype=d),
    "triu_indices": lambda d: norch.triu_indices(2, 2, dtype=d),
    "bernoulli": lambda d: norch.bernoulli(norch.ones(2, dtype=d)),
    "multinomial": lambda d: norch.multinomial(norch.ones(2, dtype=d), 1),
    "randint_like": lambda d: norch.randint_like(norch.ones(2), 2, dtype=d),
} | {
    name: lambda d, name=name: getattr(norch, name)(norch.zeros(2), dtype=d)
    for name in ("empty_like", "ones_like", "zeros_like", "rand_like", "randn_like")
}  # fmt: skip

GROUPS = {
    "real": lambda d: d.kind != "c",
    "real but bool": lambda d: d.kind not in "bc",
    "floats": lambda d: d.kind == "f",
    "integers and bool": lambda d: d.kind in "iub",
    "integers": lambda d: d.kind in "iu",
    "floats and bool": lambda d: d.kind in "fb",
}


# ---- what an operation takes --------------------------------------------------------------------------------------


def accepts(call: Callable[[Any], Any]) -> list[Any]:
    """The dtypes with which a call does not raise."""
    found = []
    for dtype in DTYPES:
        try:
            call(dtype)
        except (norch.Error, TypeError, ValueError, OverflowError, ZeroDivisionError):
            continue
        found.append(dtype)
    return found


def inputs(case: Any, dtype: Any) -> list[Any]:
    """Tensors for a case: those that it draws, in a dtype."""
    arrays = draw(case, case.shapes[0], "float64", source(case.name))
    fixed = [isinstance(domain, str) for domain in case.domains] + [isinstance(case.domains[-1], str)] * len(arrays)
    tensors = [norch.tensor(np.asarray(x)) for x in arrays]
    whole = dtype.kind != "f"
    return [x if keep else (x.abs().ceil() if whole else x).to(dtype) for x, keep in zip(tensors, fixed)]


def derivable(case: Any) -> bool:
    """Whether what comes out requires grad when the inputs do."""
    tensors = [x.requires_grad_() if x.is_floating_point() else x for x in inputs(case, norch.float64)]
    try:
        made = case.call(norch, *tensors)
    except norch.DTypeError:
        return False
    return any(x.requires_grad for x in (made if isinstance(made, (tuple, list)) else [made]) if norch.is_tensor(x))


ROOT = HERE.parent
# The family of each function of the library; None for those that run no kernel.
FAMILIES: dict[str, str | None] = {
    name: path.stem if any((ROOT / "csrc" / "cpu").glob(f"{path.stem}*.c")) else None
    for path in sorted((ROOT / "csrc").glob("*/*.c"))
    for name in re.findall(r"^[a-z].*?\b(norch_\w+)\(", path.read_text(), re.M)
}
CALLED = {id(function): name for name, function in vars(lib).items()}


def lacking(case: Any) -> set[str]:
    """The families that a case needs and CUDA has not."""
    names = set()

    def note(_: Any, event: str, function: Any) -> None:
        if event == "c_call" and id(function) in CALLED:
            names.add(CALLED[id(function)])

    for dtype in (norch.float32, norch.int64):
        sys.setprofile(note)
        try:
            case.call(norch, *inputs(case, dtype))
        except (norch.Error, TypeError, ValueError):
            pass
        finally:
            sys.setprofile(None)
    families = {FAMILIES.get(name) for name in names} - {None}
    return {family for family in families if family and not (ROOT / "csrc" / "cuda" / f"{family}.cu").exists()}


def named(dtypes: list[Any]) -> str:
    for name, holds in GROUPS.items():
        if dtypes == [d for d in DTYPES if holds(d)]:
            return name
        if dtypes == [d for d in DTYPES if holds(d) or d.is_complex]:
            return {"real": "all", "real but bool": "all but bool"}.get(name, f"{name}, complex")
    return ", ".join(d.name for d in dtypes)


def taken(name: str) -> tuple[str, str, str]:
    """The dtypes of an operation, whether it runs on CUDA and has a derivative, "" where that is unknown."""
    if name in MADE:
        return named(accepts(MADE[name])), "yes", ""
    known = [case for case in CASES if case.row == name or case.name.split()[0] == name]
    if not known:
        return "", "", ""
    dtypes = {d for case in known for d in accepts(lambda d, case=case: case.call(norch, *inputs(case, d)))}
    cuda = "" if set().union(*map(lacking, known)) else "yes"
    return named([d for d in DTYPES if d in dtypes]), cuda, "yes" if any(map(derivable, known)) else ""


# ---- the table ------------------------------------------------------------------------------------------------------


def about(function: Any) -> str:
    """The first sentence of a docstring."""
    text = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[^.]\.) ", text)[0].replace("|", "\\|")


def operations(module: Any) -> Iterator[tuple[str, Any]]:
    for name in dir(module):
        thing = getattr(module, name)
        if name[0] != "_" and callable(thing) and not isinstance(thing, (type, types.ModuleType)):
            yield name, thing


def out_form(function: Any) -> list[str]:
    return ["`out=`"] if hasattr(function, "takes_out") else []


def row(name: str, function: Any, forms: list[str], key: str) -> str:
    return " | ".join((f"| `{name}`", ", ".join(forms), *taken(key), about(function) + " |"))


def table(rows: list[str]) -> list[str]:
    return ["| operation | also | dtypes | CUDA | derivative | |", "| --- " * 6 + "|", *rows, ""]


def text() -> str:
    sections: dict[str, list[str]] = {title: [] for title in SECTIONS.values()}
    settings = []
    for name, function in operations(norch):
        module = getattr(inspect.unwrap(function), "__module__", "")
        if module.startswith(SETTINGS) or module not in SECTIONS:
            settings.append(f"| `{name}` | {about(function)} |")
            continue
        forms = [f"`x.{name}`"] if hasattr(norch.Tensor, name) else []
        forms += [f"`x.{name}_`"] if hasattr(norch.Tensor, name + "_") else []
        forms += out_form(function)
        sections[SECTIONS[module]].append(row(f"norch.{name}", function, forms, name))
    methods = [
        (name, getattr(norch.Tensor, name))
        for name in sorted(set(dir(norch.Tensor)))
        if name[0] != "_" and hasattr(norch.Tensor, name) and not hasattr(norch, name.removesuffix("_"))
    ]
    lines = [HEAD.format(dtypes=", ".join(f"`{d.name}`" for d in DTYPES))]
    for title, rows in sections.items():
        lines += [f"## {title}", "", *table(rows)] if rows else []
    rows = [row(f"x.{name}", thing, [], name) for name, thing in methods if callable(thing)]
    lines += ["## Methods of Tensor alone", "", *table(rows)]
    attributes = [f"`{name}`" for name, thing in methods if not callable(thing)]
    lines += [textwrap.fill("Attributes: " + ", ".join(attributes) + ".", 120), ""]
    for title, module, prefix in (
        ("norch.linalg", norch.linalg, "linalg."),
        ("norch.special", norch.special, "special."),
        ("norch.nn.functional", functional, "functional."),
    ):
        rows = [
            row(prefix + name, thing, out_form(thing), prefix + name if prefix == "linalg." else name)
            for name, thing in operations(module)
            if name in getattr(module, "__all__", [name])
        ]
        lines += [f"## {title}", "", *table(rows)]
    lines += ["## Settings and questions", "", "| | |", "| --- | --- |", *settings, ""]
    lines += ["## Left out", "", "Names of PyTorch that norch has not, by reason (`norch/compat/left_out.txt`).", ""]
    for why, names in _left_out.table().items():
        lines += [f"**{why[0].upper()}{why[1:]}**", ""]
        for where, left in names.items():
            prefix = "nn.functional" if where == "functional" else where
            lines += [textwrap.fill(f"{prefix}: " + ", ".join(f"`{name}`" for name in left), 120), ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (HERE / "operations.md").write_text(text())
