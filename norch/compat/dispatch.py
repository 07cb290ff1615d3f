"""``torch.utils._python_dispatch``: TorchDispatchMode, which gets PyTorch's operators, "aten", for each call.

norch has no dispatcher below autograd: the mode uses norch's one entry for calls, above autograd. So results get the
derivatives of what the mode computes, and the operators of backward() are not seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import copysign, prod
from types import SimpleNamespace
from typing import Any

import norch

from .._package.exports import publish
from ..nn import functional as F
from ..overrides import TorchFunctionMode
from ..tensor import Tensor
from . import aten
from .operators import Builtin, namespace

__all__ = ["TorchDispatchMode"]


class TorchDispatchMode(TorchFunctionMode):
    """A context whose subclasses define ``__torch_dispatch__(self, func, types, args=(), kwargs=None)``. It gets the
    operators of the calls inside, torch.ops.aten.NAME.OVERLOAD; func(*args, **kwargs) computes one.

    Linear layers and products arrive as t, mm, addmm and bmm, convolutions as convolution, normalizations and softmax
    as PyTorch's operators below autograd, other calls as one operator of the function's name. Operators of
    Tensor.backward() are not seen; a RuntimeWarning says so.

    >>> class Counted(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> layer = norch.nn.Linear(3, 2)
    >>> with Counted():
    ...     y = layer(norch.ones(4, 3))
    aten.ones.default
    aten.t.default
    aten.addmm.default
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __torch_dispatch__")

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = aten.function_name(func)
        if name == "backward":
            warnings.warn(
                f"{type(self).__name__}: norch shows no operators of backward() to a TorchDispatchMode",
                RuntimeWarning, stacklevel=2,
            )  # fmt: skip
        if name in _NO_OPERATORS or not name:
            return func(*args, **kwargs)
        if name in aten.COMPOSED or name == "einsum":
            super().__enter__()
            try:
                return aten.original(func)(*args, **kwargs)
            finally:
                super().__exit__()
        if name in _LOWERED:
            return _LOWERED[name](self._call, SimpleNamespace(**aten.bound(func, args, kwargs)))
        if name in ("flatten", "reshape"):
            return _reshaped(self._call, args[0], list(func(*args, **kwargs).shape))
        if name in _TAKING_SIZES:
            sizes = next(x for x in [*aten.bound(func, args, kwargs).values()][1:] if x)
            return self._call(name, args[0], list(sizes))
        if name in _CASTS:
            if func(*args, **kwargs) is args[0]:
                return args[0]
            name = "clone" if name == "contiguous" else "_to_copy"
        name = _BELOW.get(name) or aten.named(func, args, kwargs)[0]
        operator = Builtin(f"aten::{name}", func, _overload_of(name, args))
        return self.__torch_dispatch__(operator, types, args, kwargs)

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        packet = getattr(namespace("aten"), name)
        return self.__torch_dispatch__(getattr(packet, _overload_of(name, args)), (), args, kwargs)


# Functions that are not operators: they return no tensor, or the tensor itself.
_NO_OPERATORS = frozenset(
    "__bool__ __contains__ __deepcopy__ __float__ __index__ __int__ __iter__ __len__ __repr__ __reduce_ex__ "
    "__format__ __hash__ backward data_ptr device dim dtype element_size get_device grad is_complex is_contiguous "
    "is_conj is_cuda is_floating_point is_inference is_leaf is_same_size is_shared is_signed item layout ndim "
    "ndimension nelement numel numpy register_hook requires_grad requires_grad_ retain_grad shape share_memory_ size "
    "storage storage_offset stride tolist type_as untyped_storage __array__ typename is_nonzero is_storage".split()
)
_OVERLOADS = {
    **dict.fromkeys("add sub mul div add_ sub_ mul_ div_ rsub floor_divide remainder index slice".split(), "Tensor"),
    "split": "Tensor", "select": "int", "transpose": "int", "where": "self",
}  # fmt: skip
_CASTS = frozenset("to type float double half bfloat16 long int short char byte bool cpu contiguous".split())
_BELOW = {"_to_copy": "_to_copy", "clone": "clone", "pad": "constant_pad_nd"}  # names that differ from those in a trace
_TAKING_SIZES = frozenset("view permute expand repeat".split())


def _overload_of(name: str, args: Any = ()) -> str:
    """The overload of an operator. Several operators have one overload for tensors and another for numbers."""
    if name in _OVERLOADS:
        return _OVERLOADS[name]
    if name in ("eq", "ne", "lt", "le", "gt", "ge") and len(args) > 1:
        return "Tensor" if isinstance(args[1], Tensor) else "Scalar"
    if name in ("pow", "pow_") and len(args) > 1:
        return "Tensor_Tensor" if isinstance(args[1], Tensor) else "Tensor_Scalar"
    of_dims = ("mean", "sum", "max", "min", "any", "all", "squeeze")
    return "dim" if name in of_dims and len(args) > 1 else "default"


# ---- what calls come to --------------------------------------------------------------------------------------------


def _linear(call: Any, a: Any) -> Any:
    x = a.input
    if a.bias is None or x.ndim == 1 or not (x.ndim == 2 or x.is_contiguous()):
        out = _product(call, x, call("t", a.weight))
        return out if a.bias is None else call("add", out, a.bias)
    rows = x if x.ndim == 2 else call("view", x, [-1, x.shape[-1]])
    out = call("addmm", a.bias, rows, call("t", a.weight))
    return out if x.ndim == 2 else call("view", out, [*x.shape[:-1], out.shape[-1]])


def _product(call: Any, a: Tensor, b: Tensor) -> Any:
    """matmul(): mm, mv, dot, or bmm of the broadcast operands, as in PyTorch."""
    if a.ndim <= 2 and b.ndim <= 2:
        if b.ndim == 1:
            return call("dot" if a.ndim == 1 else "mv", a, b)
        return call("mm", a, b) if a.ndim == 2 else call("squeeze", call("mm", call("unsqueeze", a, 0), b), 0)
    if a.ndim > 2 and b.ndim <= 2:
        rows = call("view", a, [-1, a.shape[-1]]) if a.is_contiguous() else call("_unsafe_view", a, [-1, a.shape[-1]])
        out = call("mv" if b.ndim == 1 else "mm", rows, b)
        return call("_unsafe_view", out, [*a.shape[:-1], *b.shape[1:]])
    first = call("unsqueeze", a, 0) if a.ndim == 1 else a
    batch = norch.broadcast_shapes(first.shape[:-2], b.shape[:-2])
    sides = []
    for x in (first, b):
        wide = call("expand", x, [*batch, *x.shape[-2:]])
        kind = "view" if wide.is_contiguous() else "_unsafe_view"
        sides.append(call(kind, wide, [prod(batch), *x.shape[-2:]]))
    out = call("_unsafe_view", call("bmm", *sides), [*batch, first.shape[-2], b.shape[-1]])
    return call("squeeze", out, -2) if a.ndim == 1 else out


def _convolution(transposed: bool) -> Any:
    def lowered(call: Any, a: Any) -> Any:
        x, weight, bias, stride, padding, dilation, *more = aten.convolution(a, transposed)
        if isinstance(a.padding, str) and a.padding != "valid" and (a.padding != "same" or {*stride} != {1}):
            refusing = getattr(F, f"conv{len(stride)}d")
            return refusing(x, weight, bias, a.stride, a.padding, a.dilation, a.groups)
        batched = x.ndim == weight.ndim
        x = x if batched else call("unsqueeze", x, 0)
        if a.padding == "same" and any(odd := [step * (n - 1) % 2 for step, n in zip(dilation, weight.shape[2:])]):
            x = call("constant_pad_nd", x, [n for one in reversed(odd) for n in (0, one)], 0.0)
        out = call("convolution", x, weight, bias, stride, padding, dilation, *more)
        return out if batched else call("squeeze", out, 0)

    return lowered


def _attention(call: Any, a: Any) -> Any:
    mask, same_width = a.attn_mask, a.query.shape[-1] == a.key.shape[-1] == a.value.shape[-1]
    plain = mask is None or not mask.requires_grad
    if a.query.ndim == a.key.ndim == 4 and same_width and not a.dropout_p and plain and not a.enable_gqa:
        kernel = "_scaled_dot_product_flash_attention_for_cpu"
        return call(kernel, a.query, a.key, a.value, 0.0, a.is_causal, attn_mask=mask, scale=a.scale)[0]
    if a.is_causal and mask is not None:  # is refused
        return F.scaled_dot_product_attention(a.query, a.key, a.value, mask, is_causal=True)
    product = a.query.shape[-1] ** -0.5 if a.scale is None else a.scale
    scale = abs(product) ** 0.5
    key, value = a.key, a.value
    if a.enable_gqa:
        key, value = (x.repeat_interleave(a.query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    query = call("mul", a.query, copysign(scale, product))
    scores = _product(call, query, call("mul", call("transpose", key, -2, -1), scale))
    if a.is_causal:
        mask = scores.new_ones(scores.shape[-2:], dtype=norch.bool).tril()
    if mask is not None:
        hidden = mask.dtype is norch.bool
        scores = call("masked_fill", scores, ~mask, float("-inf")) if hidden else call("add", scores, mask)
    weights = call("_safe_softmax", scores, -1)
    weights = call("dropout", weights, a.dropout_p, True) if a.dropout_p else weights
    return _product(call, weights, value)


def _batch_norm(call: Any, a: Any) -> Any:
    inputs = a.input, a.weight, a.bias, a.running_mean, a.running_var, a.training, a.momentum, a.eps
    return call("native_batch_norm", *inputs)[0]


def _group_norm(call: Any, a: Any) -> Any:
    n, c, *sizes = a.input.shape
    return call("native_group_norm", a.input, a.weight, a.bias, n, c, prod(sizes), a.num_groups, a.eps)[0]


def _reshaped(call: Any, x: Tensor, shape: list[int]) -> Any:
    if x.is_contiguous():
        return x if list(x.shape) == shape else call("view", x, shape)
    return call("_unsafe_view", call("clone", x), shape)


def _cast(call: Any, a: Any) -> Any:
    dtype = getattr(a, "dtype", None)
    return a.input if dtype in (None, a.input.dtype) else call("_to_copy", a.input, dtype=dtype)


_LOWERED: dict[str, Callable[[Any, Any], Any]] = {
    **{f"conv{n}d": _convolution(False) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _convolution(True) for n in (1, 2, 3)},
    "linear": _linear, "matmul": lambda call, a: _product(call, a.input, a.other), "batch_norm": _batch_norm,
    "group_norm": _group_norm, "scaled_dot_product_attention": _attention,
    "layer_norm": lambda call, a: call("native_layer_norm", *aten.layer_norm(a)[1][:5])[0],
    "dropout": lambda call, a: call("dropout", a.input, a.p, True) if a.training and a.p else a.input,
    "softmax": lambda call, a: call("_softmax", _cast(call, a), a.dim, False),
    "log_softmax": lambda call, a: call("_log_softmax", _cast(call, a), a.dim, False),
}  # fmt: skip
publish(globals())
