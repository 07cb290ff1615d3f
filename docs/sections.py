"""The headings under which the functions of norch stand, in docs/operations.md and in the reference."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any

SETTINGS_TITLE = "Settings and questions"

# Sections, by the module that a function comes from.
SECTIONS = {
    "norch.ops.values": "Creation",
    "norch.ops.create": "Creation",
    "norch.ops.random": "Random numbers",
    "norch.random": "Random numbers",
    "norch.ops.pointwise": "Pointwise",
    "norch.ops.transcendental": "Pointwise",
    "norch.ops.sums": "Pointwise",
    "norch.ops.composed.pointwise": "Pointwise",
    "norch.ops.composed.activation": "Pointwise",
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
    "norch.ops.composed.split": "Shape",
    "norch.ops.composed.diagonal": "Shape",
    "norch.ops.composed.pad": "Shape",
    "norch.ops.composed.grid": "Shape",
    "norch.ops.composed.repeat": "Shape",
    "norch.ops.copy": "Copies and casts",
    "norch.ops.index": "Indexing",
    "norch.ops.scatter": "Indexing",
    "norch.ops.getitem": "Indexing",
    "norch.ops.composed.statistics": "Statistics and distances",
    "norch.ops.composed.distance": "Statistics and distances",
    "norch.fft._stft": "Signals",
    "norch.ops.complex": "Complex numbers",
    "norch.ops.composed.numeric": "Pointwise",
    "norch.ops.composed.histogram": "Statistics and distances",
    "norch.ops.linalg": "Linear algebra",
    "norch.ops.conv": "Layers, as functions",
    "norch.ops.pool": "Layers, as functions",
    "norch.ops.composed.adaptive_pool": "Layers, as functions",
    "norch.ops.normalization": "Layers, as functions",
    "norch.nn.functional": "Layers, as functions",
    "norch.ops.composed.type_properties": "Types and questions",
}
SETTINGS = (
    "norch.autograd",
    "norch.dtype",
    "norch._binding.threads",
    "norch.device",
    "norch.errors",
    "norch._tensor.representation",
)


def operations(module: Any) -> Iterator[tuple[str, Any]]:
    """(name, itself) of the public functions of a module."""
    for name in dir(module):
        thing = getattr(module, name)
        if name[0] != "_" and callable(thing) and not isinstance(thing, (type, types.ModuleType)):
            yield name, thing


def classes(module: Any) -> dict[str, str]:
    """The names of the public classes of norch, but for Tensor and exceptions, which have pages of their own; for those
    that norch.autograd or norch.amp has, too, the name there."""
    found: dict[str, str] = {}
    for name in dir(module):
        thing = getattr(module, name)
        if name[0] == "_" or not isinstance(thing, type) or issubclass(thing, BaseException) or name == "Tensor":
            continue
        there = [room.__name__ for room in (module.autograd, module.amp) if vars(room).get(name) is thing]
        found[name] = f"{there[0]}.{name}" if there else ""
    return found


def section(function: Any) -> str | None:
    """The heading of a function of norch; None for what computes nothing of tensors."""
    module = getattr(inspect.unwrap(function), "__module__", "")
    if module.startswith(SETTINGS):
        return None
    return next((title for begin, title in SECTIONS.items() if f"{module}.".startswith(f"{begin}.")), None)


def sections(module: Any) -> dict[str, list[str]]:
    """{heading: names of functions}, with those of no heading at the end."""
    found: dict[str, list[str]] = {title: [] for title in [*SECTIONS.values(), SETTINGS_TITLE]}
    for name, function in operations(module):
        found[section(function) or SETTINGS_TITLE].append(name)
    return {title: names for title, names in found.items() if names}
