"""PyTorch's private functions for layers, derivatives and distributions that libraries import."""

from __future__ import annotations

import copy
import functools
import inspect
from abc import ABCMeta
from typing import Any

import norch

from ..autograd.grad_mode import decorated
from ..nn import functional as F
from ..nn.container import ModuleList
from ..nn.extras.fractional_pool import _FractionalMaxPool
from ..nn.module import Module
from ..tensor import Tensor

# ---- layers --------------------------------------------------------------------------------------------------------


class _Group(ABCMeta):
    """A stand-in for PyTorch's private base of a group of layers: norch's layers are instances of it."""


def _group(name: str, *layers: str) -> Any:
    group = _Group(name, (Module,), {"__doc__": f"What {', '.join(layers)} are instances of.", "__module__": __name__})
    for layer in layers:
        group.register(getattr(norch.nn, layer))
    return group


_AvgPoolNd = _group("_AvgPoolNd", "AvgPool1d", "AvgPool2d", "AvgPool3d")
_AdaptiveAvgPoolNd = _group("_AdaptiveAvgPoolNd", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d")
_ReflectionPadNd = _group("_ReflectionPadNd", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d")
_ReplicationPadNd = _group("_ReplicationPadNd", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d")
_CircularPadNd = _group("_CircularPadNd", "CircularPad1d", "CircularPad2d", "CircularPad3d")
_FractionalMaxPoolNd = _FractionalMaxPool


def _get_clones(module: Module, N: int) -> ModuleList:  # noqa: N803
    """A ModuleList of N copies of a module."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation: str) -> Any:
    """functional.relu or functional.gelu, by name. RuntimeError for another one."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """The causal mask (sz, sz) to add to scores: -inf above the diagonal."""
    return norch.triu(norch.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _addindent(s_: str, numSpaces: int) -> str:  # noqa: N803
    """Indents all lines of a text but the first."""
    return s_.replace("\n", "\n" + " " * numSpaces)


# ---- contexts ------------------------------------------------------------------------------------------------------


def _within(function: Any, make: Any) -> Any:
    """function in a context: each call, or each step of a generator, enters a new make()."""
    if inspect.isgeneratorfunction(function):
        return decorated(function, make)

    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with make():
            return function(*args, **kwargs)

    return inside


class _DecoratorContextManager:
    """The base of contexts that also decorate functions: each call enters a clone() of it."""

    def __call__(self, orig_func: Any) -> Any:
        return _within(orig_func, self.clone)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """A new object of the class, made without arguments."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context that decorates with or without parentheses."""

    def __new__(cls, orig_func: Any = None) -> Any:
        context = super().__new__(cls)
        return context if orig_func is None else _within(orig_func, cls)


def context_decorator(ctx: Any, func: Any) -> Any:
    """func, with each call in the context ctx(), or in ctx if that cannot be called."""
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise ValueError(f"context_decorator: {ctx} is a context and can be called")
    return _within(func, ctx if callable(ctx) else lambda: ctx)


# ---- functional ----------------------------------------------------------------------------------------------------


def _none_or_dtype(input: Any) -> Any:  # noqa: A002
    """The dtype of a tensor, or None."""
    return None if input is None else input.dtype


def _canonical_mask(
    mask: Any, mask_name: str, other_type: Any, other_name: str, target_type: Any, check_other: bool = True
) -> Any:
    """Converts a bool mask, True for what is masked out, to floats to add to scores."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype is not norch.bool:
        raise RuntimeError(f"only bool and floating types of {mask_name} are supported")
    return norch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Any = None) -> list[Tensor]:
    """q, k and v projected by the three parts of w (3 * E, E) and b (3 * E,)."""
    biases = (None,) * 3 if b is None else b.chunk(3)
    return [F.linear(x, part, bias) for x, part, bias in zip((q, k, v), w.chunk(3), biases, strict=True)]


def _in_projection(
    q: Tensor, k: Tensor, v: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, b_q: Any = None, b_k: Any = None,
    b_v: Any = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """q, k and v projected by separate weights."""
    return F.linear(q, w_q, b_q), F.linear(k, w_k, b_k), F.linear(v, w_v, b_v)


# ---- derivatives ---------------------------------------------------------------------------------------------------


def _as_tuple(inp: Any, arg_name: Any = None, fn_name: Any = None) -> tuple[bool, tuple[Any, ...]]:
    """(whether inp is a tuple, inp as a tuple). TypeError for objects other than tensors, if names are passed."""
    several = isinstance(inp, tuple)
    values = inp if several else (inp,)
    for x in values:
        if arg_name is not None and not isinstance(x, Tensor):
            raise TypeError(f"{fn_name}: {arg_name} must be a tensor or a tuple of tensors, not {type(x).__name__}")
    return several, values


def _tuple_postprocess(res: Any, to_unpack: Any) -> Any:
    """Undoes _as_tuple() of a result; to_unpack: its first value, for one level or two."""
    outer, inner = to_unpack if isinstance(to_unpack, tuple) else (to_unpack, True)
    res = res if inner else tuple(x[0] for x in res)
    return res if outer else res[0]


def _grad_preprocess(inputs: Any, create_graph: bool, need_graph: bool) -> tuple[Tensor, ...]:
    """New tensors that share the elements; they require gradients if need_graph."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(need_graph) for x in inputs
    )


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """Tensors in tuples, detached unless create_graph."""
    if isinstance(inputs, Tensor):
        return inputs if create_graph else inputs.detach()
    return tuple(_grad_postprocess(x, create_graph) for x in inputs)


def _construct_standard_basis_for(tensors: Any, tensor_numels: Any) -> tuple[Tensor, ...]:
    """The rows of the identity matrix over all elements, split into columns for each tensor."""
    total, columns, start = sum(tensor_numels), [], 0
    for x, count in zip(tensors, tensor_numels, strict=True):
        columns.append(x.new_zeros(total, count))
        columns[-1].diagonal(-start).fill_(1)
        start += count
    return tuple(columns)


# ---- distributions -------------------------------------------------------------------------------------------------


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """sigmoid(x) clamped into (0, 1)."""
    limits = norch.finfo(x.dtype)
    return x.sigmoid().clamp(min=limits.tiny, max=1.0 - limits.eps)


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Products of matrices and vectors with broadcast batches."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:  # noqa: N803
    """Squared Mahalanobis distances of bx (..., n) for the covariance L L^T, with bL (..., n, n) lower triangular."""
    return norch.linalg.solve_triangular(bL, bx.unsqueeze(-1), upper=False).square().sum((-2, -1))


def _precision_to_scale_tril(P: Tensor) -> Tensor:  # noqa: N803
    """The lower triangular L with L L^T = P^-1."""
    inverse = norch.linalg.cholesky(P.flip(-2, -1)).flip(-2, -1).mT
    return norch.linalg.solve_triangular(inverse, norch.eye(P.shape[-1], dtype=P.dtype, device=P.device), upper=False)


def _standard_gamma(concentration: Tensor) -> Tensor:
    """A draw of the gamma distribution of rate 1 for each element, with gradients."""
    return norch.distributions.Gamma(concentration, norch.ones_like(concentration)).rsample()


def _sample_dirichlet(concentration: Tensor, generator: Any = None) -> Tensor:
    """A draw of the Dirichlet distribution for each vector."""
    return norch.distributions.Dirichlet(concentration).sample()
