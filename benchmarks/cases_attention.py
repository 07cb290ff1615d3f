"""Attention of 8 x 8 heads of 64, with masks and dropout: forward, and with the gradients of query, key and value."""

from __future__ import annotations

from typing import Any

from .library import Case, Library, Run, Setup

KINDS = ("no mask", "causal", "bools", "padding", "floats", "dropout", "dropout, causal")
BATCH, HEADS, WIDTH = 8, 8, 64


def options(lib: Library, kind: str, length: int) -> dict[str, Any]:
    """The arguments beside query, key and value."""
    if kind in ("bools", "padding"):
        return {"attn_mask": lib.random(BATCH, 1, length if kind == "bools" else 1, length) > -0.4}
    if kind == "floats":
        return {"attn_mask": lib.random(length, length)}
    given = {"dropout_p": 0.1} if "dropout" in kind else {}
    return {**given, "is_causal": True} if "causal" in kind else given


def attention(kind: str, length: int, backward: bool) -> Setup:
    """One call, or one call and its gradients."""

    def setup(lib: Library) -> Run:
        inputs = [lib.random(BATCH, HEADS, length, WIDTH, grad=backward) for _ in range(3)]
        g, more = lib.random(BATCH, HEADS, length, WIDTH), options(lib, kind, length)
        attend = lib.module.nn.functional.scaled_dot_product_attention
        if not backward:
            return lambda: attend(*inputs, **more)
        return lambda: lib.module.autograd.grad(attend(*inputs, **more), inputs, g)[0]

    return setup


CASES = [
    Case(
        "attention",
        f"{'forward and backward' if backward else 'forward'}, {kind}, {length} positions",
        attention(kind, length, backward),
        None,
        tolerance=10.0 if "dropout" in kind else 1e-4,  # each library drops others
    )
    for length in (128, 512)
    for kind in KINDS
    for backward in (False, True)
]
