"""Attention (Vaswani et al., "Attention Is All You Need", 2017). It is one call if there is a kernel for the arguments
(csrc/ops/attention.c), and a composition of products and a softmax otherwise.
"""

from __future__ import annotations

import math
from typing import Any

from .._binding.library import constants, lib
from .._package.typing import Tensor
from .._tensor.handle import Handle
from ..autograd.differentiable import differentiable
from ..autograd.formula import formula_gradients, placeholder
from ..autograd.grad_mode import mode
from ..autograd.outlive import outlive_writes
from ..autograd.record import is_recorded
from ..dtype import bool_, check_numbers, finfo, float32
from ..dtype import dtype as DType
from ..errors import ArgumentError, DTypeError, ShapeError
from ..random import Generator
from ._autocast import in_autocast, policy
from ._entry import composed, rename_errors
from ._operand import tensor_of
from .composed.shape import broadcast_shapes
from .copy import padded
from .create import empty, eye
from .matmul import product
from .pointwise import where
from .random import rand, rand_like, randint
from .softmax import softmax

_DTYPES = (constants["FLOAT32"], constants["FLOAT64"])
_CPU = constants["CPU"]


# ---- the kernel, and its derivative ---------------------------------------------------------------------------------


def _attention_backward(
    g: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    seed: Tensor | None,
    scale: float,
    is_causal: bool,
    dropout_p: float,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Tensor, Tensor, Tensor]:
    """With P the probabilities and D = P * (g v^T): dv = P^T g, and the gradient of the scores is D - P sum(D)."""
    inputs = (query, key, _read(value, needs_input_grad))
    if mode.enabled:
        kept = None if seed is None else _kept(query, key, seed, dropout_p)
        return formula_gradients(_composed, g, inputs, needs_input_grad, scale, is_causal, mask, dropout_p, kept)
    grads = tuple(lib.norch_empty_like(x, x.shape[-1]) for x in inputs)
    lib.norch_attention_backward(g, *inputs, mask, seed, scale, is_causal, dropout_p, grads)
    return grads


def _kept(query: Any, key: Any, seed: Any, dropout_p: float) -> Any:
    """Whether the kernel's dropout keeps each weight. With equal scores and an identity as value the result is the
    weights.
    """
    queries, keys = query.shape[-2], key.shape[-2]
    q = query.new_zeros(1, 1).expand(*query.shape[:-1], 1)
    k = query.new_zeros(1, 1).expand(*key.shape[:-1], 1)
    identity = eye(keys, dtype=query.dtype, device=query.device).expand(*key.shape[:-1], keys)
    weights = lib.norch_attention(q, k, identity, None, seed, 1.0, False, dropout_p)
    return (weights != 0).reshape(*query.shape[:-2], queries, keys)


def _read(value: Any, needs_input_grad: tuple[bool, ...]) -> Any:
    """value, or zeros for its meta tensor, which a node saves if only the gradient of value is needed."""
    return value if needs_input_grad[0] or needs_input_grad[1] else placeholder(value, True)


_UNREAD = {"value": ("value",)}


def _composed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    is_causal: bool,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    kept: Any = None,
) -> Tensor:
    """Attention as recorded products and a softmax, with a mask or dropout if wanted. kept are the weights that dropout
    keeps, drawn if it is None.
    """
    scores = outlive_writes(product(query * scale, key, False, True), key)  # PyTorch scales both
    if is_causal:
        scores = scores.masked_fill(scores.new_ones(scores.shape[-2:], dtype=bool_).triu(1), -math.inf)
    if attn_mask is not None:
        # A fully masked row keeps its scores here, so that backward makes no NaN of it; its result is 0.
        if attn_mask.dtype is bool_:
            fully_masked = ~attn_mask.any(-1, keepdim=True)
            scores = where(attn_mask | fully_masked, scores, -math.inf)
        else:
            fully_masked = (attn_mask == -math.inf).all(-1, keepdim=True)
            scores = scores + where(fully_masked, 0.0, attn_mask)
    weights = softmax(scores, -1)
    if dropout_p:
        kept = rand_like(weights) >= dropout_p if kept is None else kept
        weights = weights * kept * (1 / (1 - dropout_p) if dropout_p < 1 else 0.0)
    out = product(weights, value)
    return out if attn_mask is None else where(fully_masked, 0.0, out)


@differentiable(
    "attention",
    inputs=("query", "key", "value"),
    backward=_attention_backward,
    unread=_UNREAD,
    tensors=("mask", "seed"),
)
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    seed: Tensor | None,
    scale: float,
    is_causal: bool,
    dropout_p: float,
) -> Tensor:
    """softmax(query key^T scale) value, for float32 or float64 with the same leading axes. is_causal: query i sees the
    keys up to i. On the CPU and without a gradient it takes a mask of as many axes, and dropout that draws from a seed.
    """
    return lib.norch_attention(query, key, value, mask, seed, scale, is_causal, dropout_p)


# ---- fused kernels: scores stay out of memory, forward and backward, with masks and dropout -------------------------


def _fused_backward(
    g: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    logsumexp: Any,
    mask: Any,
    seed: Any,
    scale: float,
    is_causal: bool,
    dropout_p: float,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Any, ...]:
    inputs = (query, key, _read(value, needs_input_grad))
    if mode.enabled:
        return formula_gradients(_grouped, g, inputs, needs_input_grad, scale, is_causal, mask, dropout_p, seed)
    grads = tuple(lib.norch_empty_like(x, x.shape[-1]) for x in inputs)
    lib.norch_attention_fused_backward(g, *inputs, out, logsumexp, mask, seed, scale, is_causal, dropout_p, grads)
    return grads


@composed
def _grouped(
    query: Any, key: Any, value: Any, scale: float, is_causal: bool, mask: Any, dropout_p: float, seed: Any
) -> Any:
    """The composed form of _fused, with the same draws."""
    kept = None
    if seed is not None:
        columns = -(-key.shape[-2] // 4) * 4  # whole blocks of the stream a row, as the kernel draws
        shape = (*query.shape[:-1], columns)
        generator = Generator(query.device).manual_seed(seed.item())
        drawn = rand(size=shape, generator=generator, dtype=float32, device=query.device)
        kept = drawn[..., : key.shape[-2]] >= dropout_p
    if query.ndim > 2:
        key, value = _repeated(query, key, value)
    return _composed(query, key, value, scale, is_causal, mask, dropout_p, kept)


def _repeated(query: Any, key: Any, value: Any) -> tuple[Any, Any]:
    """key and value repeated to the number of heads of query: so many neighbouring heads of query share one."""
    times = query.shape[-3] // key.shape[-3]
    return (key, value) if times == 1 else (key.repeat_interleave(times, -3), value.repeat_interleave(times, -3))


@differentiable(
    "attention",
    inputs=("query", "key", "value"),
    backward=_fused_backward,
    unread=_UNREAD,
    tensors=("logsumexp", "mask", "seed"),
    rounds_once=True,
)
def _fused(
    query: Any,
    key: Any,
    value: Any,
    logsumexp: Any,
    mask: Any,
    seed: Any,
    scale: float,
    is_causal: bool,
    dropout_p: float,
) -> Any:
    """attention() with a mask (..., L, S) and dropout that draws from a seed. Several heads of query may share a head
    of key and value. logsumexp, two numbers of each query whose sum it is, is written for backward, unless it is None.
    """
    return lib.norch_attention_fused(query, key, value, mask, seed, logsumexp, scale, is_causal, dropout_p)


# ---- arguments, as PyTorch takes them -------------------------------------------------------------------------------


def attention_mask(mask: Tensor, name: str) -> Tensor:
    """mask. TypeError unless it is a tensor of bools or floats: a 1 of an integer would be added to the scores."""
    if tensor_of(mask, name).dtype is not bool_ and not mask.is_floating_point():
        raise DTypeError(f"{name} must be of bools or of floats, not of {mask.dtype}")
    return mask


def cast_mask(mask: Tensor, dtype: DType) -> Tensor:
    """The mask in another dtype. Finite elements stay finite: a row of -1e30 is uniform in PyTorch, but as -inf of
    float16 it would mask all positions.
    """
    if dtype.is_floating_point and (most := finfo(dtype).max) < finfo(mask.dtype).max:
        mask = where(mask.isinf(), mask, mask.clamp(-most, most))
    return mask.to(dtype)


@policy("lower")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query key^T scale + mask) value, for query (..., L, E), key (..., S, E) and value (..., S, V); the result
    is (..., L, V) (Vaswani et al. 2017).

    attn_mask broadcasts to (..., L, S). It is a bool tensor, True where a key takes part, or floats in query's dtype,
    which are added. is_causal: position i sees positions up to i only. scale is 1 / sqrt(E) by default. dropout_p is
    the fraction of the weights of value that is zeroed; the others are multiplied by 1 / (1 - dropout_p), in training
    or not. A row in which no key takes part gives 0.

    >>> x = norch.eye(2)
    >>> norch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)[0]
    tensor([1., 0.])
    """
    if mode.casting:
        options = attn_mask, dropout_p, is_causal, scale, enable_gqa
        if (out := in_autocast(scaled_dot_product_attention, query, key, value, *options)) is not None:
            return out
    name = "scaled_dot_product_attention"
    for argument, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, Handle):
            raise TypeError(f"{name}: expected a tensor as {argument}, not {type(x).__name__}")
        if x.ndim < 2:
            raise ShapeError(f"{name}: expected {argument} of 2 or more dimensions, got shape {tuple(x.shape)}")
    if not 0.0 <= dropout_p <= 1.0:
        raise ArgumentError(f"{name}: dropout_p is a probability, not {dropout_p}")
    if attn_mask is not None:
        attention_mask(attn_mask, f"{name}: attn_mask")
        if is_causal:
            raise ArgumentError(f"{name}: give attn_mask or is_causal, not both")
        if attn_mask.dtype is not bool_ and attn_mask._dtype != query._dtype:
            attn_mask = cast_mask(attn_mask, query.dtype)
    grouped = enable_gqa and tuple(query.shape[-3:-2]) != tuple(key.shape[-3:-2])
    if grouped:
        heads, shared = query.shape[-3:-2].numel(), key.shape[-3:-2].numel()
        if shared == 0 or heads % shared:
            raise ShapeError(f"{name}: {heads} heads of query cannot share {shared} of key and value")
    if scale is not None and type(scale) is not float:
        check_numbers(name, scale=scale)
    size = query.shape[-1]
    factor = (1 / math.sqrt(size) if size else math.inf) if scale is None else scale
    if lib.norch_attention_fuses(query, key, value):
        operands = (query, key, value)
        fuses = _is_fused(*operands, attn_mask, factor, grouped)
        if not (fuses or grouped):
            operands = _broadcast(*operands, attn_mask)
            fuses = _is_fused(*operands, attn_mask, factor, False)
        if fuses:
            return _attend_fused(*operands, attn_mask, factor, is_causal, dropout_p)
    if grouped:
        key, value = _repeated(query, key, value)
    return _attend(query, key, value, factor, is_causal, attn_mask, dropout_p)


@composed(name="scaled_dot_product_attention")
def _attend(
    query: Any, key: Any, value: Any, scale: float, is_causal: bool, attn_mask: Any, dropout_p: float
) -> Tensor:
    plain = attn_mask is None and not dropout_p
    if _has_kernel(query, key, value) and (plain or _has_options(query, key, attn_mask)):
        if attn_mask is not None:
            attn_mask = attn_mask.detach()
            for _ in range(query.ndim - attn_mask.ndim):
                attn_mask = lib.norch_unsqueeze(attn_mask, 0)
        seed = _seed(query) if dropout_p else None
        out = attention(query, key, value, attn_mask, seed, scale, is_causal, dropout_p)
        return outlive_writes(out, query, key)
    return _composed(query, key, value, scale, is_causal, attn_mask, dropout_p)


def _has_options(query: Any, key: Any, mask: Any) -> bool:
    """Whether the kernel takes this mask and dropout. It does on the CPU, unless the mask needs a gradient."""
    if query._device_type != _CPU:
        return False
    return mask is None or (_fits(mask, query, key) and not is_recorded((mask,)))


def _has_kernel(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether there is a kernel for these tensors. Other dtypes, and tensors that broadcast, are computed by the
    composed form.
    """
    dtype = query._dtype
    return (
        dtype in _DTYPES
        and dtype == key._dtype == value._dtype
        and lib.norch_shape(query)[:-2] == lib.norch_shape(key)[:-2] == lib.norch_shape(value)[:-2]
        and query._numel > 0
        and key._numel > 0
    )


def _broadcast(query: Any, key: Any, value: Any, mask: Any) -> tuple[Any, ...]:
    """Views with the same leading axes, where these broadcast."""
    operands = (query, key, value)
    try:
        lead = broadcast_shapes(*(x.shape[:-2] for x in (*operands, mask) if x is not None))
    except ShapeError:
        return operands  # products tell of it
    return tuple(x.expand(*lead, *x.shape[-2:]) for x in operands)


def _is_fused(query: Any, key: Any, value: Any, mask: Any, scale: float, grouped: bool) -> bool:
    """Whether there are fused kernels for query, and they take these arguments."""
    lead, shared = lib.norch_shape(query)[:-2], lib.norch_shape(key)[:-2]
    if (
        not (query._dtype == key._dtype == value._dtype and math.isfinite(scale))
        or lib.norch_shape(value)[:-2] != shared
        or shared != ((*lead[:-1], *shared[-1:]) if grouped else lead)
    ):
        return False
    return mask is None or (_fits(mask, query, key) and not mask.requires_grad)


def _fits(mask: Any, query: Any, key: Any) -> bool:
    """Whether kernels take a mask, which broadcasts to the scores."""
    return (
        (mask.dtype is bool_ or mask._dtype == query._dtype)
        and mask.device == query.device
        and mask.ndim <= query.ndim
        and all(n in (1, m) for n, m in zip(mask.shape[::-1], (key.shape[-2], *query.shape[-2::-1])))
    )


@rename_errors(name="scaled_dot_product_attention")
def _attend_fused(query: Any, key: Any, value: Any, mask: Any, scale: float, is_causal: bool, dropout_p: float) -> Any:
    device, width = query.device, value.shape[-1]
    if query.shape[-1] % 8 or width % 8:
        query, key, value = (_whole(x) for x in (query, key, value))
    logsumexp = seed = None
    if mask is not None:
        mask = mask.detach().expand(*query.shape[:-1], key.shape[-2])
    if dropout_p:
        seed = _seed(query)
    if mode.enabled and (query.requires_grad or key.requires_grad or value.requires_grad):
        logsumexp = empty((2, *query.shape[:-1]), dtype=float32, device=device)
    out = _fused(query, key, value, logsumexp, mask, seed, scale, is_causal, dropout_p)
    outlive_writes(out, query, key)
    return out if out.shape[-1] == width else out[..., :width]


def _seed(query: Any) -> Any:
    return randint(0, 2**63 - 1, (1,), device=query.device)


def _whole(x: Any) -> Any:
    """x with zeros behind its rows to a multiple of 16 bytes, which kernels load at a time."""
    over = -x.shape[-1] % (16 // x.element_size())
    return padded(x, (0,), (over,), 0) if over else x
