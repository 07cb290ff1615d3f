"""The gradient of a broadcast or promoted input, summed and cast back to the input's shape and dtype.

The engine calls unbroadcast() for nodes with metas. sum_to() and expand_to() are recorded operations, each the
derivative of the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._binding.library import lib
from .._package.typing import Any
from .._tensor.handle import Handle
from .derivative import derivative, view_derivative
from .record import record, record_view


def unbroadcast(grads: Sequence[Any], metas: tuple[Any, ...]) -> list[Any]:
    """The gradients in the shapes, dtypes and devices of metas, the meta tensors of the inputs."""
    return [g if g is None or meta is None else sum_to(g, meta) for g, meta in zip(grads, metas)]  # equal lengths


def sum_to(x: Any, meta: Handle) -> Any:
    """Sums x over the axes that broadcasting from meta added or repeated, and moves it to the dtype and device of meta;
    returns x if nothing differs."""
    out = lib.norch_sum_to(x, meta)
    return out if out is x else record(_SumTo, out, (x,))


def expand_to(x: Any, meta: Handle) -> Any:
    """x broadcast to the shape of meta, in its dtype and on its device."""
    if x._device_type != meta._device_type or x._device_index != meta._device_index:
        x = x.to(meta.device)
    out = record_view(Expand, lib.norch_expand_as(x, meta), x, expand_to, (meta,))
    return out if out._dtype == meta._dtype else out.to(meta.dtype)


_SumTo = derivative("sum_to", grad=lambda g, x_meta: expand_to(g, x_meta), shares_grad=True)
Expand = view_derivative("expand", grad=lambda g, x_meta: sum_to(g, x_meta))
