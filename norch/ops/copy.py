"""Copies: clone, casts, joining tensors, writing one into another (csrc/ops/copy.c), with their derivatives."""

from __future__ import annotations

from collections.abc import Sequence

from .._binding.library import constants, lib
from .._binding.numbers import flag
from .._package.typing import Any, DeviceLike, Operand, Tensor
from .._tensor.handle import Handle
from ..autograd.derivative import derivative, write_derivative
from ..autograd.grad_mode import mode
from ..autograd.inplace import check_writable, finish_write
from ..autograd.levels import BatchedBase, holds, zeros_of
from ..autograd.record import gradient_edge, record, record_sequence, record_write
from ..device import cuda_device_count, device_code
from ..device import device as Device
from ..dtype import DTYPES, check_fits, check_format, dtype_named, fits, iinfo
from ..dtype import dtype as DType
from ..errors import ArgumentError, Error, rename_error
from ._arguments import named_function, tensors_of
from ._autocast import in_autocast, policy
from ._cast import Cast, cast
from ._operand import as_operand, kernel_operand, operand, tensor_of
from ._out import takes_out
from .op import METHODS, method
from .view import select, slice_

_Clone = derivative("clone", grad=lambda g: g, shares_grad=True)


@method
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy in C order. The gradient passes through it.

    >>> x = norch.ones(2)
    >>> norch.clone(x).add_(1), x
    (tensor([2., 2.]), tensor([1., 1.]))
    """
    if memory_format is not None:
        check_format(memory_format, "clone")
    return record(_Clone, lib.norch_clone(input), (input,))


def clone_for(x: Tensor, *values: Any) -> Tensor:
    """clone(x), to write values to. If vmap batches one of the values, each sample has its copy."""
    for value in values:
        if isinstance(value, BatchedBase):
            x = value.batched(x)
    return clone(x)


@method
def contiguous(x: Tensor, memory_format: Any = None) -> Tensor:
    """x, unchanged, if its elements lie in C order, else a clone.

    >>> norch.zeros(2, 3).T.contiguous().stride()
    (2, 1)
    """
    if memory_format is not None:
        check_format(memory_format, "contiguous")
    return x if x._contiguous else clone(x)


def parse_to(
    *arguments: Any,
    dtype: DType | None = None,
    device: DeviceLike = None,
    non_blocking: bool = False,
    copy: bool = False,
) -> tuple[Any, Any, bool, bool]:
    """dtype, device, non_blocking and copy, from the arguments of to(); None: unchanged."""
    flags = [argument for argument in arguments if isinstance(argument, bool)]  # non_blocking, copy
    copy = copy or len(flags) > 1 and flags[1]
    non_blocking = non_blocking or bool(flags and flags[0])
    for argument in arguments:
        if isinstance(argument, Handle):
            dtype, device = argument.dtype, argument.device
        elif isinstance(argument, DType) or argument in (float, int, bool, complex):
            dtype = argument
        elif argument is not None and not isinstance(argument, bool):
            device = argument
    return dtype, device, non_blocking, copy


@method
def to(
    x: Tensor,
    *arguments: Any,
    dtype: DType | None = None,
    device: DeviceLike = None,
    copy: bool = False,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """x in another dtype, on another device, or like another tensor: to(norch.float64), to("cuda"), to(other).

    Returns x itself if nothing differs, unless copy is True. The gradient goes back the same way, so the result for a
    leaf is no leaf. With non_blocking a copy from pinned memory (pin_memory()) to a device may still run when to()
    returns; x must not be written to before norch.cuda.synchronize(). All other copies have finished. DeviceError if
    the device is not there.

    >>> norch.ones(2, requires_grad=True).to(norch.float64)
    tensor([1., 1.], dtype=norch.float64, grad_fn=<CastBackward>)
    """
    like = arguments[0] if len(arguments) == 1 else None
    if isinstance(like, Handle):
        dtype, device = like.dtype, like.device
    elif isinstance(like, DType):
        dtype = like
    elif isinstance(like, (Device, str)):
        if like == "cpu" and not x._device_type and dtype is device is memory_format is None:
            if copy is non_blocking is False:
                return x
        device = like
    elif arguments:
        dtype, device, non_blocking, copy = parse_to(
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
            record(Cast, out, (x,), (), True)
    if dtype is not None:
        out = cast(out, dtype_named(dtype))
    return clone(out) if copy and out is x else out


@method
def copy_(x: Tensor, other: Operand, non_blocking: bool = False) -> Tensor:
    """Writes other, broadcast and cast, into x."""
    src = kernel_operand(other, "copy_")
    check_writable(x, "copy_", src)
    node = None
    to_src = src._node if src._view is None or not mode.enabled else gradient_edge(src)
    if to_src is not None and x.dtype.kind in "fc":
        node = record_write(_CopyInto, x if x._view is None else None, src)
    lib.norch_copy(x, src)
    finish_write(x, node)
    return x


# The values that x had before have the gradient 0.
_CopyInto = write_derivative("copy_into", grad_x=zeros_of, grad_values=lambda g: g, shares_grad=True)


def check_scalar(value: Any, x: Tensor, name: str) -> None:
    """check_fits() of an operand that is to be written into x: a number, or into integers a 0-d tensor of floats or of
    a wider integer dtype on the CPU. Elsewhere reading it would wait for the device, and what does not fit wraps."""
    kind, wanted = value.dtype, x.dtype
    if value._weak:
        if not value.is_complex():
            check_fits(value.item(), wanted, name)
    elif not value.ndim and kind is not wanted and wanted.kind in "iu" and kind.kind in "iuf":
        whole = kind.kind != "f" and fits(iinfo(kind).min, wanted) and fits(iinfo(kind).max, wanted)
        if value.is_cpu and x.is_cpu and not whole:
            if not isinstance(value, BatchedBase):
                check_fits(value.item(), wanted, name)
            elif not holds(lib.norch_cast(value, wanted.code) == value):
                raise ArgumentError(f"{name}: a sample of vmap does not fit {wanted.name}")


@method
def fill_(x: Tensor, value: Any) -> Tensor:
    """Sets every element of x to value, a number or a 0-d tensor."""
    number, value = value, kernel_operand(value, "fill_")
    if isinstance(number, (int, float)):
        check_fits(number, x.dtype, "fill_")
        return _written_everywhere(x, value, "fill_")
    check_scalar(value, x, "fill_")
    if value.ndim:
        raise ArgumentError(f"fill_: expected a number or a 0-d tensor, got shape {tuple(value.shape)}")
    return copy_(x, value)


@method
def zero_(x: Tensor) -> Tensor:
    """Sets every element of x to 0."""
    check_writable(x, "zero_")
    if mode.enabled and (x._node is not None or x._view is not None):
        return _written_everywhere(x, operand(0), "zero_")
    _write_number(x, operand(0), "zero_")
    lib.norch_bump(x)
    return x


def _written_everywhere(x: Tensor, number: Tensor, name: str) -> Tensor:
    """x with a number in every element."""
    check_writable(x, name)
    _write_number(x, number, name)
    finish_write(x, None)
    return x


def _write_number(x: Any, number: Tensor, name: str) -> None:
    """Writes a number to every element of x, of which an expanded tensor has several in one place."""
    try:
        lib.norch_copy(x, number)
    except Error as error:
        shared = shared_axes(x)
        if not shared:
            rename_error(error, name)
            raise
        lib.norch_copy(once_along(x, shared), number)


def shared_axes(x: Any) -> list[int]:
    """The axes along which an expanded tensor has all elements in one place."""
    return [axis for axis, step in enumerate(x.stride()) if step == 0]


def once_along(x: Any, axes: Sequence[int]) -> Tensor:
    """The first elements of x along these axes, without history."""
    for axis in axes:
        x = lib.norch_slice(x, axis, 0, 1, 1)
    return x


@takes_out
@policy("widest -")
def cat(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Joins tensors along dim (NumPy's name: axis). All other sizes must agree. Dtypes are promoted.

    >>> norch.cat([norch.zeros(1), norch.ones(2)])
    tensor([0., 1., 1.])
    """
    if mode.casting and (out := in_autocast(cat, tensors, dim, axis=axis)) is not None:
        return out
    listed = tensors if type(tensors) in (list, tuple) else tensors_of(tensors, "cat")  # C checks each
    dim = dim if axis is None else axis
    out = lib.norch_cat(listed, dim)
    return record_sequence(_Cat, out, listed, dim % out.ndim)


def _cat_grad(g: Tensor, needs_input_grad: tuple[bool, ...], metas: Any, dim: int) -> tuple[Any, ...]:
    parts, start = [], 0
    for wanted, meta in zip(needs_input_grad, metas):
        if meta.ndim < g.ndim:  # an empty tensor of one dimension, skipped by cat
            parts.append(g.new_zeros(0) if wanted else None)
            continue
        size = meta.shape[dim]
        parts.append(slice_(g, dim, start, start + size, 1) if wanted else None)
        start += size
    return tuple(parts)


_Cat = derivative("cat", (), backward=_cat_grad, shares_grad=True)


@takes_out
@policy("widest -")
def stack(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Joins tensors of the same shape along a new axis dim (NumPy's name: axis).

    >>> norch.stack((norch.tensor([1, 2]), norch.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    """
    if mode.casting and (out := in_autocast(stack, tensors, dim, axis=axis)) is not None:
        return out
    listed = tensors if type(tensors) in (list, tuple) else tensors_of(tensors, "stack")  # C checks each
    dim = dim if axis is None else axis
    return record_sequence(_Stack, lib.norch_stack(listed, dim), listed, dim)


def _stack_grad(g: Tensor, needs_input_grad: tuple[bool, ...], dim: int) -> tuple[Any, ...]:
    return tuple(select(g, dim, i) if wanted else None for i, wanted in enumerate(needs_input_grad))


_Stack = derivative("stack", (), backward=_stack_grad, saves=("metas", "dim"), shares_grad=True)


def padded(x: Tensor, before: Sequence[int], after: Sequence[int], value: float, least: int | None = None) -> Tensor:
    """A copy of x with elements of one value added at the ends of its last axes. Negative numbers remove elements.
    least: the least of the numbers, where it is known."""
    inner, first, last = x, before, after
    if (min((*before, *after), default=0) if least is None else least) < 0:
        for dim, (low, high) in enumerate(zip(before, after), x.ndim - len(before)):
            inner = lib.norch_slice(inner, dim, max(-low, 0), lib.norch_shape(x)[dim] + min(high, 0), 1)
        first, last = [max(n, 0) for n in before], [max(n, 0) for n in after]
    return record(_Pad, lib.norch_pad(inner, first, last, _CONSTANT, operand(value)), (x,), (before, after))


def _pad_grad(g: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
    """The gradient of padded(): added elements have none, removed elements have 0."""
    return padded(g, [-n for n in before], [-n for n in after], 0)


_CONSTANT = constants["PAD_CONSTANT"]
_Pad = derivative("pad", grad=_pad_grad)


_NAMES_OF_OPERANDS = {"tensor1", "tensor2", "tensor", "other", "scalar", "scalar1", "scalar2", "scalar_or_tensor"}


def result_type(*operands: Operand, **named: Any) -> DType:
    """The dtype of the result of an operation on two tensors or numbers. The arguments may have any names.

    >>> norch.result_type(norch.ones(2, dtype=norch.float16), 1.5)
    norch.float16
    """
    if named:
        operands = (*operands, *named.values())
    if len(operands) != 2 or named.keys() - _NAMES_OF_OPERANDS:
        raise TypeError(f"result_type: takes two tensors or numbers, not {len(operands)} arguments {', '.join(named)}")
    a, b = operands
    if not (isinstance(a, Handle) and isinstance(b, Handle)):
        operands = (as_operand(a, "result_type"), as_operand(b, "result_type"))
    return DTYPES[lib.norch_result_type(operands)]


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype of a tensor is a float.

    >>> norch.is_floating_point(norch.tensor([1]))
    False
    """
    return tensor_of(input, "is_floating_point").dtype.is_floating_point


# ---- what Tensor alone has ------------------------------------------------------------------------------------------


@method
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of other.

    >>> norch.tensor([1, 2]).type_as(norch.ones(1))
    tensor([1., 2.])
    """
    return cast(self, tensor_of(other, "type_as").dtype)


def _to_dtype(name: str, dtype: str) -> Any:
    def function(self: Tensor, memory_format: Any = None) -> Tensor:
        if memory_format is not None:
            check_format(memory_format, name)
        return cast(self, dtype_named(dtype))

    return named_function(function, name, f"In dtype {dtype}.\n\n>>> norch.ones(2).{name}().dtype\nnorch.{dtype}\n")


_DTYPE_OF = {
    "half": "float16",
    "bfloat16": "bfloat16",
    "cdouble": "complex128",
    "cfloat": "complex64",
    "float": "float32",
    "double": "float64",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "bool": "bool",
    "byte": "uint8",
}
METHODS.update({name: _to_dtype(name, dtype) for name, dtype in _DTYPE_OF.items()})


@method
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor on the CPU; the tensor itself if it is there.

    >>> norch.ones(2).cpu().device
    device(type='cpu')
    """
    check_format(memory_format, "cpu")
    return to(self, "cpu")


@method
def cuda(self: Tensor, device: DeviceLike = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """The tensor on a CUDA device, by default the current one; the tensor itself if it is there. See to().

    >>> norch.ones(2).cuda().device  # doctest: +SKIP
    device(type='cuda', index=0)
    """
    check_format(memory_format, "cuda")
    return to(self, "cuda" if device is None else device, non_blocking=non_blocking)


@method
def pin_memory(self: Tensor, device: DeviceLike = None) -> Tensor:
    """A copy in page-locked memory of the host, from which to(device, non_blocking=True) copies to a CUDA device in the
    background. Returns the tensor itself if it is pinned, or if there is no CUDA device. DeviceError for a tensor that
    is not on the CPU.
    """
    if not self.is_cpu or (not is_pinned(self) and cuda_device_count()):
        return lib.norch_pin(self, device_code(device or "cuda"))
    return self


@method
def record_stream(self: Any, s: Any) -> None:
    """Says that the stream s (norch.cuda.Stream) uses this tensor, which was allocated in another stream. After the
    tensor is freed, its memory is reused only when s has finished the work that it has at that time. DeviceError on the
    CPU.
    """
    number = getattr(s, "stream_id", None)
    if number is None:
        raise TypeError(f"record_stream: expected a norch.cuda.Stream, not {type(s).__name__}")
    lib.norch_record_stream(tensor_of(self, "record_stream"), number)


@method
def is_pinned(self: Tensor, device: DeviceLike = None) -> bool:
    """Whether pin_memory() allocated its memory.

    >>> norch.ones(2).is_pinned()
    False
    """
    return bool(lib.norch_is_pinned(tensor_of(self, "is_pinned")))
