"""Copies: clone, casts, joining tensors, writing one into another (csrc/ops/copy.c)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._handle import Handle
from .._lib import flag, lib
from ..autograd import derivatives as d
from ..autograd.grad_mode import mode
from ..autograd.inplace import check_writable, edge, meta_of, written
from ..device import cuda_device_count, device_code
from ..device import device as Device  # noqa: N812
from ..dtype import DTYPES, check_fits, check_format, dtype_named
from ..dtype import dtype as DType  # noqa: N812
from ..errors import ArgumentError
from ._operand import as_operand, kernel_operand, tensor_of, tensors_of


def _recorded(out: Any, x: Any, node_class: type[d.Clone] | type[d.Cast]) -> Any:
    if mode.enabled and (to_x := edge(x)) is not None:
        node = node_class(to_x)
        node._out = node.likes = None
        if node_class is d.Cast:
            node.like = meta_of(x)
        out._node = node
    return out


def clone(input: Any, *, memory_format: Any = None) -> Any:
    """A copy of its own elements, C-ordered; the gradient passes through."""
    if memory_format is not None:
        check_format(memory_format, "clone")
    return _recorded(lib.norch_clone(input), input, d.Clone)


def contiguous(x: Any, memory_format: Any = None) -> Any:
    """x itself when its elements lie in C order, else a clone."""
    if memory_format is not None:
        check_format(memory_format, "contiguous")
    return x if x.is_contiguous() else clone(x)


def cast(x: Any, dtype: DType) -> Any:
    """x in another dtype; x itself if it has it. Between floats the gradient passes, cast back."""
    if x.dtype is dtype:
        return x
    out = lib.norch_cast(x, dtype.code)
    return _recorded(out, x, d.Cast) if dtype.is_floating_point else out


def goal(
    *arguments: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, copy: bool = False
) -> tuple[Any, Any, bool, bool]:
    """dtype, device, non_blocking and copy as the arguments of to() say them; None: it stays as it is."""
    flags = [argument for argument in arguments if isinstance(argument, bool)]  # non_blocking, copy
    copy = copy or len(flags) > 1 and flags[1]
    non_blocking = non_blocking or bool(flags and flags[0])
    for argument in arguments:
        if isinstance(argument, Handle):
            dtype, device = argument.dtype, argument.device
        elif isinstance(argument, DType) or argument in (float, int, bool):
            dtype = argument
        elif argument is not None and not isinstance(argument, bool):
            device = argument
    return dtype, device, non_blocking, copy


def to(
    x: Any,
    *arguments: Any,
    dtype: Any = None,
    device: Any = None,
    copy: bool = False,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Any:
    """x in another dtype, on another device, or like another tensor: to(norch.float64), to("cuda"), to(other).

    Gives x itself when nothing differs, unless copy. The gradient goes back the same way, so what comes of a leaf is no
    leaf. non_blocking: a copy from pinned memory (pin_memory()) to a device may still be under way on return, and
    nobody should write to x before norch.cuda.synchronize(); all other copies have been made. DeviceError when the
    device is not there.

    >>> norch.ones(2, requires_grad=True).to(norch.float64)
    tensor([1., 1.], dtype=norch.float64, grad_fn=<CastBackward>)
    """
    kind = type(arguments[0]) if len(arguments) == 1 else None
    if kind is DType:
        dtype = arguments[0]
    elif kind is Device or kind is str:
        device = arguments[0]
    elif arguments:
        dtype, device, non_blocking, copy = goal(
            *arguments, dtype=dtype, device=device, non_blocking=non_blocking, copy=copy
        )
    if memory_format is not None:
        check_format(memory_format, "to")
    if non_blocking is not False or copy is not False:
        flag(non_blocking, "to: non_blocking")
        flag(copy, "to: copy")
    out = x
    if device is not None:
        out = lib.norch_to_device(x, device_code(device), non_blocking)
        if out is not x:
            _recorded(out, x, d.Cast)
    if dtype is not None:
        out = cast(out, dtype_named(dtype))
    return clone(out) if copy and out is x else out


def copy_(x: Any, src: Any, non_blocking: bool = False) -> Any:
    """Writes src, broadcast and cast, into x."""
    src = kernel_operand(src, "copy_")
    check_writable(x, "copy_")
    node = None
    if mode.enabled:
        to_x = edge(x)  # what can fail comes before the write
        if (to_src := edge(src)) is not None and x.dtype.is_floating_point:
            node = d.CopyInto(to_src, to_x if x._view is None else None)
            node.like = meta_of(src)
    lib.norch_copy(x, src)
    written(x, node)
    return x


def fill_(x: Any, value: Any) -> Any:
    """Sets every element of x to value, a number or a 0-d tensor."""
    number, value = value, kernel_operand(value, "fill_")
    if isinstance(number, (int, float)):
        check_fits(number, x.dtype, "fill_")
    if value.ndim:
        raise ArgumentError(f"fill_: expected a number or a 0-d tensor, got shape {tuple(value.shape)}")
    return copy_(x, value)


def zero_(x: Any) -> Any:
    """Sets every element of x to 0."""
    return copy_(x, 0)


def cat(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Any:
    """The tensors one after the other along dim (axis, as NumPy says); all other sizes must agree, dtypes are promoted.

    >>> norch.cat([norch.zeros(1), norch.ones(2)])
    tensor([0., 1., 1.])
    """
    listed = tensors if type(tensors) in (list, tuple) else tensors_of(tensors, "cat")  # C looks at each
    dim = dim if axis is None else axis
    out = lib.norch_cat(listed, dim)
    if mode.enabled and out.dtype.is_floating_point:
        edges = [edge(x) for x in listed]
        if edges.count(None) < len(edges):
            node = d.Cat(*edges)
            node.dim = dim % out.ndim
            node.sizes = [None if x.shape == (0,) and out.ndim > 1 else x.shape[node.dim] for x in listed]
            node.dtypes = [x.dtype for x in listed]
            out._node = node
    return out


def stack(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Any:
    """Tensors of one shape along a new axis dim (or axis, as NumPy says)."""
    listed = tensors if type(tensors) in (list, tuple) else tensors_of(tensors, "stack")  # C looks at each
    dim = dim if axis is None else axis
    out = lib.norch_stack(listed, dim)
    if mode.enabled and out.dtype.is_floating_point:
        edges = [edge(x) for x in listed]
        if edges.count(None) < len(edges):
            node = d.Stack(*edges)
            node.dim = dim
            node.dtypes = [x.dtype for x in listed]
            out._node = node
    return out


def padded(x: Any, ends: Sequence[tuple[int, int, int]], value: float) -> Any:
    """A copy of x with so many elements of a value before and after each axis: ends holds (axis, before, after), and
    negative numbers cut off."""
    shape = list(x.shape)
    for dim, before, after in ends:
        shape[dim] += before + after
    if type(value) is int and value == 0:
        out = lib.norch_full(shape, x._dtype, 0.0, 0, (x._device_type, x._device_index))
    else:
        out = x.new_full(shape, value)
    inside, kept = out, x
    for dim, before, after in ends:
        inside = lib.norch_slice(inside, dim, max(before, 0), shape[dim] - max(after, 0), 1)
        if before < 0 or after < 0:
            kept = lib.norch_slice(kept, dim, max(-before, 0), x.shape[dim] + min(after, 0), 1)
    lib.norch_copy(inside, kept)
    if mode.enabled and (to_x := edge(x)) is not None:
        node = d.Pad(to_x)
        node.ends = ends
        out._node = node
    return out


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype of an operation on two tensors or numbers.

    >>> norch.result_type(norch.ones(2, dtype=norch.float16), 1.5)
    norch.float16
    """
    a, b = as_operand(tensor1, "result_type"), as_operand(tensor2, "result_type")
    return DTYPES[lib.norch_result_type(a, b)]


def is_floating_point(input: Any) -> bool:  # noqa: A002
    """Whether the dtype of a tensor is a floating one."""
    return tensor_of(input, "is_floating_point").dtype.is_floating_point


class CopyMethods(Handle):
    """The copies and casts of Tensor."""

    __slots__ = ()

    clone, contiguous, to, copy_, fill_, zero_ = clone, contiguous, to, copy_, fill_, zero_
    _padded = padded

    def type_as(self, other: Any) -> Any:
        """In the dtype of other."""
        return cast(self, tensor_of(other, "type_as").dtype)

    def _named(own: str, name: str) -> Any:  # type: ignore[misc]  # noqa: N805  (runs while the class is made)
        def method(self: Any, memory_format: Any = None) -> Any:
            if memory_format is not None:
                check_format(memory_format, own)
            return cast(self, dtype_named(name))

        method.__doc__, method.__name__ = f"In dtype {name}.", own
        return method

    half, bfloat16 = _named("half", "float16"), _named("bfloat16", "bfloat16")
    float, double = _named("float", "float32"), _named("double", "float64")
    char, short = _named("char", "int8"), _named("short", "int16")
    int, long = _named("int", "int32"), _named("long", "int64")
    bool, byte = _named("bool", "bool"), _named("byte", "uint8")
    del _named

    def cpu(self, memory_format: Any = None) -> Any:
        """On the CPU; itself if it is there."""
        check_format(memory_format, "cpu")
        return to(self, "cpu")

    def cuda(self, device: Any = None, non_blocking: Any = False, memory_format: Any = None) -> Any:
        """On a CUDA device, the current one unless another is named; itself if it is there. See to()."""
        check_format(memory_format, "cuda")
        return to(self, "cuda" if device is None else device, non_blocking=non_blocking)

    def pin_memory(self, device: Any = None) -> Any:
        """A copy in page-locked memory of the host, which a CUDA device reads by itself: to(device, non_blocking=True)
        returns while it does. This tensor itself where it lies there already, or where there is no CUDA device.
        DeviceError for a tensor that is not on the CPU."""
        if not self.is_cpu or (not self.is_pinned() and cuda_device_count()):
            return lib.norch_pin(self, device_code(device or "cuda"))
        return self

    def is_pinned(self, device: Any = None) -> Any:
        """Whether its memory is that of pin_memory()."""
        return bool(lib.norch_is_pinned(tensor_of(self, "is_pinned")))
