"""Translates calls of norch's functions to PyTorch's operators, aten::NAME, as a trace shows them: named().

Source: PyTorch's aten/src/ATen/native/native_functions.yaml. A call that is not listed here keeps the function's name,
which is PyTorch's, and its arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

from .._package.entries import entry_of
from ..tensor import Tensor

# PyTorch writes these functions in Python; a trace shows the operators that they call.
COMPOSED = frozenset(
    "gaussian_nll_loss gumbel_softmax local_response_norm lp_pool1d lp_pool2d lp_pool3d multi_head_attention_forward "
    "normalize softmin softsign tanhshrink upsample upsample_bilinear upsample_nearest".split()
)
DROPPED = frozenset("inplace out generator size_average reduce pin_memory return_indices".split())  # of no operator
# Operators whose names differ from the functions'.
NAMES = {
    "__floordiv__": "floor_divide", "__rsub__": "rsub", "__rtruediv__": "div", "__rpow__": "pow",
    "__setitem__": "copy_", "nll_loss": "nll_loss_nd",
    **{f"__{name}__": name for name in "eq ne lt le gt ge".split()},
}  # fmt: skip


def named(function: Any, args: Any, kwargs: Any) -> tuple[str, list[Any]]:
    """(the operator's name without "aten::", its arguments) for a call."""
    name = function_name(function)
    if name in _FORMS:
        return _FORMS[name](SimpleNamespace(**bound(function, args, kwargs)))
    place = _place_of_inplace(function)
    if place is not None:
        writes = kwargs.get("inplace", args[place] if len(args) > place else False)
        name, args = name + "_" * bool(writes), args[:place]
    if kwargs.get("return_indices"):
        name += "_with_indices"
    return NAMES.get(name, name), [*args, *(value for key, value in kwargs.items() if key not in DROPPED)]


def function_name(function: Any) -> str:
    """The name of a function as an override gets it, prefixed with linalg, fft or special if it is in that module."""
    name: str = getattr(function, "__name__", "")
    if name in ("__get__", "__set__"):
        name = getattr(getattr(function.__self__, "fget", None), "__name__", "")
    where = getattr(function, "__module__", "") or ""
    return f"{where.rpartition('.')[2]}_{name}" if where.endswith((".linalg", ".fft", ".special")) else name


def original(function: Any) -> Callable[..., Any]:
    """The function without its check for overrides."""
    return entry_of(function).original


@cache
def _signature(function: Any) -> inspect.Signature:
    return inspect.signature(function)


@cache
def _place_of_inplace(function: Any) -> int | None:
    """The position of the argument `inplace`. Operators say it in their names instead."""
    try:
        names = list(_signature(function).parameters)
    except (TypeError, ValueError):
        return None
    return names.index("inplace") if "inplace" in names else None


def bound(function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """{parameter: the argument, or the default} of a call; for *args a list."""
    binding = _signature(function).bind(*args, **kwargs)
    binding.apply_defaults()
    arguments = dict(binding.arguments)
    for name, value in arguments.items():
        if binding.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            arguments[name] = list(value[0]) if len(value) == 1 and isinstance(value[0], (list, tuple)) else list(value)
    return arguments


# ---- forms ---------------------------------------------------------------------------------------------------------


def _listed(value: Any, axes: int) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value] * axes


def convolution(a: Any, transposed: bool) -> list[Any]:
    """The arguments of aten::convolution for a call of F.conv2d() and its like."""
    axes = a.weight.ndim - 2
    stride, dilation, padding = _listed(a.stride, axes), _listed(a.dilation, axes), a.padding
    if isinstance(padding, str):
        spans = [step * (size - 1) for step, size in zip(dilation, a.weight.shape[2:])]
        padding = [span // 2 for span in spans] if padding == "same" else 0
    more = _listed(getattr(a, "output_padding", 0), axes)
    return [a.input, a.weight, a.bias, stride, _listed(padding, axes), dilation, transposed, more, a.groups]


def _convolution(transposed: bool) -> Any:
    def form(a: Any) -> tuple[str, list[Any]]:
        x, weight, bias, stride, padding, dilation, *more = convolution(a, transposed)
        if isinstance(a.padding, str):
            return "_convolution_mode", [x, weight, bias, stride, a.padding, dilation, a.groups]
        return "_convolution", [x, weight, bias, stride, padding, dilation, *more, False, False, True, True]

    return form


def _resized(a: Any) -> tuple[str, list[Any]]:
    """interpolate(): one operator for each mode and number of axes."""
    axes, mode, size, scales = a.input.ndim - 2, a.mode, a.size, a.scale_factor
    size = None if size is None else _listed(size, axes)
    if mode == "area":
        return f"adaptive_avg_pool{axes}d", [a.input, size]
    if scales is not None:
        scales = [float(x) for x in _listed(scales, axes)]
    name = "_upsample_nearest_exact" if mode == "nearest-exact" else f"upsample_{mode}"
    return f"{name}{axes}d", [a.input, size, *([] if "nearest" in mode else [bool(a.align_corners)]), scales]


def _read(a: Any) -> tuple[str, list[Any]]:
    """x[index]: the operator of the first part of the index that has an effect."""
    parts = a.index if isinstance(a.index, tuple) else (a.index,)
    tensors = [x for x in parts if isinstance(x, (Tensor, list))]
    if tensors:
        return "index", [a.x, tensors]
    for dim, x in enumerate(parts):
        if isinstance(x, slice) and x != slice(None):
            return "slice", [a.x, dim, x.start, x.stop, 1 if x.step is None else x.step]
        if x is None or isinstance(x, int):
            return ("unsqueeze", [a.x, dim]) if x is None else ("select", [a.x, dim, x])
    return "slice", [a.x, 0, None, None, 1]


def _grid_sampler(a: Any) -> tuple[str, list[Any]]:
    mode, ends = (
        ("bilinear", "nearest", "bicubic").index(a.mode),
        ("zeros", "border", "reflection").index(a.padding_mode),
    )
    return "grid_sampler", [a.input, a.grid, mode, ends, bool(a.align_corners)]


def layer_norm(a: Any) -> tuple[str, list[Any]]:
    return "layer_norm", [a.input, _listed(a.normalized_shape, 1), a.weight, a.bias, a.eps, True]


def _batch_norm(a: Any) -> tuple[str, list[Any]]:
    statistics = [a.running_mean, a.running_var, a.training, a.momentum, a.eps, True]
    return "batch_norm", [a.input, a.weight, a.bias, *statistics]


def _instance_norm(a: Any) -> tuple[str, list[Any]]:
    statistics = [a.running_mean, a.running_var, a.use_input_stats, a.momentum, a.eps, True]
    return "instance_norm", [a.input, a.weight, a.bias, *statistics]


def _cross_entropy(a: Any) -> tuple[str, list[Any]]:
    reduction = ("none", "mean", "sum").index(a.reduction)
    return "cross_entropy_loss", [a.input, a.target, a.weight, reduction, a.ignore_index, a.label_smoothing]


def _embedding(a: Any) -> tuple[str, list[Any]]:
    padding = -1 if a.padding_idx is None else a.padding_idx
    return "embedding", [a.weight, a.input, padding, a.scale_grad_by_freq, a.sparse]


_FORMS: dict[str, Callable[[Any], tuple[str, list[Any]]]] = {
    **{f"conv{n}d": _convolution(False) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _convolution(True) for n in (1, 2, 3)},
    "batch_norm": _batch_norm, "cross_entropy": _cross_entropy, "embedding": _embedding, "__getitem__": _read,
    "grid_sample": _grid_sampler, "instance_norm": _instance_norm, "interpolate": _resized,
    "einsum": lambda a: ("einsum", [a.equation, a.operands, None]),
    "group_norm": lambda a: ("group_norm", [a.input, a.num_groups, a.weight, a.bias, a.eps, True]),
    "layer_norm": layer_norm,
    "linear": lambda a: ("linear", [a.input, a.weight, a.bias]),
}  # fmt: skip
