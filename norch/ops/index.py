"""Indexing by tensors of indices (csrc/ops/index.c). Every index is checked before anything is read or written."""

from __future__ import annotations

from typing import Any

from .._handle import Handle
from .._lib import lib
from ..autograd import derivatives as d
from ..autograd.grad_mode import mode
from ..autograd.inplace import edge, like_of


def gather(x: Any, dim: int, index: Any) -> Any:
    """out[i][j] = x[index[i][j]][j] for dim 0, and so on; the shape of index (integers)."""
    out = lib.norch_gather(x, dim, index)
    if mode.enabled and (to_x := edge(x)) is not None:
        node = d.Gather(to_x)
        node.dim, node.index, node.like = dim, index, like_of(x)
        out._node = node
    return out


def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    """A copy of x with out[index[i][j]][j] += src[i][j] for dim 0, and so on."""
    out = lib.norch_scatter_add(x, dim, index, src)
    if mode.enabled and ((to_x := edge(x)) is not None) | ((to_src := edge(src)) is not None):
        node = d.ScatterAdd(to_x, to_src)
        node.dim, node.index, node.like = dim, index, like_of(src)
        out._node = node
    return out


def index_select(x: Any, dim: int, index: Any) -> Any:
    """The parts of x at the given indices (1-d) of an axis, in their order.

    >>> norch.index_select(norch.arange(4), 0, norch.tensor([2, 0]))
    tensor([2, 0])
    """
    out = lib.norch_index_select(x, dim, index)
    if mode.enabled and (to_x := edge(x)) is not None:
        node = d.IndexSelect(to_x)
        node.dim, node.index, node.like = dim, index, like_of(x)
        out._node = node
    return out


def index_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    """A copy of x to whose parts at the given indices (1-d) of an axis those of source are added."""
    out = lib.norch_index_add(x, dim, index, source)
    if mode.enabled and ((to_x := edge(x)) is not None) | ((to_source := edge(source)) is not None):
        node = d.IndexAdd(to_x, to_source)
        node.dim, node.index = dim, index
        out._node = node
    return out


class IndexMethods(Handle):
    """The indexing of Tensor by tensors."""

    __slots__ = ()

    gather, scatter_add, index_select, index_add = gather, scatter_add, index_select, index_add
