"""The HTML of a module in notebooks: a collapsible tree with the number of parameters of each part."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

_OPEN = 2  # levels that are expanded at first


def _repr_html_(self: Any) -> str:
    """HTML for notebooks: a collapsible tree of the modules with the number of their parameters."""
    params = {id(p): p for p in self.parameters()}.values()
    total = sum(p.numel() for p in params)
    trainable = sum(p.numel() for p in params if p.requires_grad)
    note = "" if total == trainable else f", {trainable:,} of them trainable"
    head = f"<div>{total:,} parameters{note}</div>"
    return f'<div style="font-family:monospace">{"".join(_tree(self, "", 0))}{head}</div>'


def _tree(module: Any, name: str, depth: int) -> Iterator[str]:
    count = sum(p.numel() for p in module.parameters())
    bold = f"<b>{escape(name)}</b> " if name else ""
    title = f"{bold}{escape(module._get_name())}({escape(module.extra_repr())})"
    title += f' <span style="opacity:.65">{count:,}</span>' if count else ""
    tensors = [*_rows(module._parameters, "parameter"), *_rows(module._buffers, "buffer")]
    children = [(key, child) for key, child in module._modules.items() if child is not None]
    if not tensors and not children:
        yield f'<div style="margin-left:2.2em">{title}</div>'
        return
    yield f'<details style="margin-left:1em"{" open" if depth < _OPEN and children else ""}><summary>{title}</summary>'
    yield from tensors
    for key, child in children:
        yield from _tree(child, key, depth + 1)
    yield "</details>"


def _rows(tensors: dict[str, Any], kind: str) -> Iterator[str]:
    for name, x in tensors.items():
        if x is not None:
            note = "" if kind == "buffer" or x.requires_grad else ", fixed"
            described = escape(f"{name} {tuple(x.shape)} {x.dtype.name} {x.device}{note}")
            yield f'<div style="margin-left:2.2em;opacity:.65">{kind} {described}</div>'
