"""Functions of torch that programs call beside those of nn.functional, Tensor and norch: losses with a number for the
reduction, dropouts, copies of views, simulated quantization, and a few private functions."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import norch

from ..autograd.differentiable import differentiable
from ..autograd.function import Function
from ..nn import functional as F
from ..nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from ..ops._out import takes_out
from ..ops._public import public_form
from ..tensor import Tensor

# ---- losses: reduction is a number, and without it none, whatever the documentation of torch._C says ----------------

REDUCTIONS = ("none", "mean", "sum")


def _loss(name: str, *arguments: str) -> Any:
    """nn.functional's loss, with torch's order of arguments. reduction is 0, 1 or 2: REDUCTIONS."""
    function = getattr(F, name)
    defaults = inspect.signature(function).parameters
    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=defaults[n].default)
                  for n in arguments]  # fmt: skip
    if name == "kl_div":
        parameters.append(inspect.Parameter("log_target", inspect.Parameter.KEYWORD_ONLY, default=False))
    signature = inspect.Signature([p.replace(default=0) if p.name == "reduction" else p for p in parameters])

    def loss(*args: Any, **kwargs: Any) -> Tensor:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return function(**{**bound.arguments, "reduction": REDUCTIONS[bound.arguments["reduction"]]})

    loss.__name__ = loss.__qualname__ = name
    loss.__signature__ = signature  # type: ignore[attr-defined]
    return loss


binary_cross_entropy_with_logits = _loss(
    "binary_cross_entropy_with_logits", "input", "target", "weight", "pos_weight", "reduction"
)
cosine_embedding_loss = _loss("cosine_embedding_loss", "input1", "input2", "target", "margin", "reduction")
ctc_loss = _loss(
    "ctc_loss", "log_probs", "targets", "input_lengths", "target_lengths", "blank", "reduction", "zero_infinity"
)
hinge_embedding_loss = _loss("hinge_embedding_loss", "input", "target", "margin", "reduction")
kl_div = _loss("kl_div", "input", "target", "reduction")
margin_ranking_loss = _loss("margin_ranking_loss", "input1", "input2", "target", "margin", "reduction")
poisson_nll_loss = _loss("poisson_nll_loss", "input", "target", "log_input", "full", "eps", "reduction")
triplet_margin_loss = _loss(
    "triplet_margin_loss", "anchor", "positive", "negative", "margin", "p", "eps", "swap", "reduction"
)

# ---- layers --------------------------------------------------------------------------------------------------------


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    return F.dropout(input, p, train, inplace=True)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    return F.alpha_dropout(input, p, train, inplace=True)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    return F.feature_alpha_dropout(input, p, train)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    return F.feature_alpha_dropout(input, p, train, inplace=True)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zeroes whole channels: all elements of one index of the first two axes."""
    return input * _kept_channels(input, p, train)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    return input.mul_(_kept_channels(input, p, train))


def _kept_channels(x: Tensor, p: float, train: bool) -> Tensor:
    return F.dropout(x.new_ones(tuple(x.shape[:2]) + (1,) * (x.ndim - 2)), p, train)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """(The result, whether each element is kept)."""
    scale = F.dropout(norch.ones_like(input), p, train is not False)
    return input * scale, scale != 0


MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """F.grid_sample()."""
    return F.grid_sample(input, grid, MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    return F.affine_grid(theta, list(size), align_corners)


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    return F.adaptive_max_pool1d(input, output_size, return_indices=True)


def max_pool1d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    return F.max_pool1d(input, kernel_size, stride or None, padding, dilation, ceil_mode, return_indices=True)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    return F.channel_shuffle(input, groups)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution of sequences (time, batch, channels) by a weight (time, channels in, channels out)."""
    return F.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


def _convolution(
    input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *settings: bool,
) -> Tensor:  # fmt: skip
    """torch.convolution(); settings of cuDNN change nothing."""
    return norch.convolution(  # type: ignore[attr-defined]
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:  # noqa: A002
    """Norms over all axes except dim, with keepdim; over all axes for dim -1."""
    if dim == -1:
        return v.norm(pow)
    return v.norm(pow, [axis for axis in range(v.ndim) if axis != dim % v.ndim], keepdim=True)


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    return v * (g / norm_except_dim(v, 2, dim))


def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    return norch.linalg.vector_norm(input, 2, dim or None, keepdim)


def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    if isinstance(dim, bool):  # (input, keepdim)
        dim, keepdim = (-2, -1), dim
    return norch.linalg.matrix_norm(input, "nuc", dim, keepdim)


def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return input.softmax(dim)


def _log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return input.log_softmax(dim)


def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    packed = pack_padded_sequence(input, lengths, batch_first)
    return packed.data, packed.batch_sizes


def _pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int
) -> tuple[Tensor, Tensor]:
    length = total_length if total_length > 0 else None
    return pad_packed_sequence(PackedSequence(data, batch_sizes), batch_first, padding_value, length)


# ---- quantization that is simulated --------------------------------------------------------------------------------


class _FakeQuantize(Function):
    """Rounds to the numbers that the integers from low to high represent. Gradients pass where nothing was clamped."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Any, zero: Any, low: int, high: int) -> Any:
        index = (x * (1.0 / scale)).round() + zero
        ctx.save_for_backward((index >= low) & (index <= high))
        return (index.clamp(low, high) - zero) * scale

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0], None, None, None, None


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    return _FakeQuantize.apply(input, scale, zero_point, quant_min, quant_max)


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    shape = [-1 if i == axis % input.ndim else 1 for i in range(input.ndim)]
    of_axis = scale.reshape(shape), zero_point.reshape(shape)
    return _FakeQuantize.apply(input, *of_axis, quant_min, quant_max)


# ---- copies of what are views --------------------------------------------------------------------------------------


def _copied(result: Any) -> Any:
    return result.clone() if isinstance(result, Tensor) else tuple(x.clone() for x in result)


def _copies(name: str) -> Any:
    def copies(*args: Any, **kwargs: Any) -> Any:
        of_tensor = hasattr(Tensor, name)
        function = getattr(Tensor, name) if of_tensor else getattr(norch, name)
        if of_tensor and "input" in kwargs:
            args = kwargs.pop("input"), *args
        return _copied(function(*args, **kwargs))

    copies.__name__ = copies.__qualname__ = f"{name}_copy"
    return public_form(takes_out(copies), copies.__name__, __name__)


as_strided_copy, detach_copy, diagonal_copy, narrow_copy, permute_copy, select_copy = map(
    _copies, "as_strided detach diagonal narrow permute select".split()
)
split_copy, split_with_sizes_copy, squeeze_copy, t_copy, transpose_copy, unbind_copy, unfold_copy = map(
    _copies, "split split_with_sizes squeeze t transpose unbind unfold".split()
)
unsqueeze_copy, view_copy, view_as_complex_copy, view_as_real_copy = map(
    _copies, "unsqueeze view view_as_complex view_as_real".split()
)


def alias_copy(input: Tensor) -> Tensor:
    return input.clone()


def slice_copy(input: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    return input.movedim(dim, 0)[start:end:step].movedim(0, dim).clone()


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    return input.chunk(chunks, dim)


def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> Any:
    return input.split(split_size, dim)


def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> Any:
    return input.split_with_sizes(split_sizes, dim)


# ---- others --------------------------------------------------------------------------------------------------------


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` indices of nonzero(), and rows of fill_value behind them."""
    found = input.nonzero()[:size]
    return norch.cat([found, found.new_full((size - found.shape[0], found.shape[1]), fill_value)])


histogramdd_result = NamedTuple("histogramdd_result", [("hist", Tensor), ("bin_edges", tuple[Tensor, ...])])


def histogramdd(input: Tensor, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:  # noqa: A002
    """(The counts of points in boxes, edges of the boxes), of NumPy."""
    import numpy as np

    points = input.detach().cpu().flatten(0, -2)
    edges = bins if isinstance(bins, int) else [b.numpy() if isinstance(b, Tensor) else b for b in bins]
    pairs = None if range is None else list(zip(range[::2], range[1::2], strict=True))
    weights = None if weight is None else weight.detach().cpu().reshape(-1).numpy()
    counts, found = np.histogramdd(points.numpy(), edges, pairs, density, weights)
    hist, *bounds = (norch.as_tensor(x, dtype=input.dtype) for x in (counts, *found))
    return histogramdd_result(hist, tuple(bounds))


def _combined(data: Any, axis: int, index: Any, kind: str, start: Any) -> Any:
    return start.scatter_reduce(axis, index, data, kind, include_self=True)


def _extreme_grad(g: Any, data: Any, out: Any, axis: int, index: Any) -> Any:
    """Shares g among the elements that are a segment's extreme, or NaN; none goes to the initial value."""
    wins = (data == out.gather(axis, index)) | data.isnan()
    shared = g / norch.zeros_like(g).scatter_add(axis, index, wins.to(g.dtype))
    return norch.where(wins, shared.gather(axis, index), 0.0)


_extreme = differentiable("segment_reduce", tensors=("index",), grad=_extreme_grad)(_combined)


def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: int = 0,
    unsafe: bool = False, initial: Any = None,
) -> Tensor:  # fmt: skip
    """Reductions ("sum", "mean", "max", "min" or "prod") of runs along an axis, whose lengths or offsets are given for
    each index of the axes before it."""
    if offsets is not None:
        lengths = offsets.diff(dim=-1)
    ends = lengths.cumsum(-1).contiguous()
    places = norch.arange(data.shape[axis], device=data.device).expand(*lengths.shape[:-1], -1).contiguous()
    index = norch.searchsorted(ends, places, right=True)
    index = index.reshape(*index.shape, *(1,) * (data.ndim - index.ndim)).expand_as(data)
    kind = {"max": "amax", "min": "amin", "mean": "sum"}.get(reduce, reduce)
    empty = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}[reduce]
    shape = (*data.shape[:axis], lengths.shape[-1], *data.shape[axis + 1 :])
    out = data.new_full(shape, empty if initial is None else initial)
    out = (_extreme if kind[0] == "a" else _combined)(data, axis, index, kind, out)
    if reduce == "mean":
        counts = lengths.reshape(*lengths.shape, *(1,) * (data.ndim - lengths.ndim))
        out = out / (counts if initial is None else counts.clamp(min=1)).to(out.dtype)
    return out


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """A draw of the binomial distribution for each element, from norch's generator."""
    return norch.distributions.Binomial(count, prob, validate_args=False).sample()


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], **options: Any) -> Tensor:
    """An empty tensor whose axes have another order in memory."""
    order = list(physical_layout)
    stored = norch.empty([size[axis] for axis in order], **options)
    return stored.permute([order.index(axis) for axis in range(len(order))])


def _unique2(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False  # noqa: A002
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(Values, inverse indices, counts); results that were not requested are empty."""
    values, inverse, counts = input.unique(sorted=True, return_inverse=True, return_counts=True)
    none = counts.new_empty(0)
    return values, inverse if return_inverse or return_counts else none, counts if return_counts else none


def _aminmax(input: Tensor, dim: Any = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    least, most = norch.aminmax(input, dim=dim, keepdim=keepdim)
    return least, most


def _stack(tensors: Any, dim: int = 0) -> Tensor:
    return norch.stack(tensors, dim)


def _int_mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of matrices of int8, in int32."""
    return input.to(norch.int32) @ mat2.to(norch.int32)


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """The start of each row in sorted indices of rows, and the end of the last row."""
    rows = norch.arange(size + 1, device=input.device, dtype=input.dtype)
    return norch.searchsorted(input.contiguous(), rows, out_int32=out_int32)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    rows = norch.arange(crow_indices.shape[-1] - 1, device=crow_indices.device).repeat_interleave(crow_indices.diff())
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    return norch.stack([x.to(norch.int32 if out_int32 else norch.int64) for x in pair])


def _is_zerotensor(input: Tensor) -> bool:
    return False
