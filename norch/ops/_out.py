"""out=: writes the result of a function into tensors of the caller. _public.py makes the functions that take it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from .._binding.library import lib
from .._package.typing import Any, Tensor, TypeVar, overload
from .._tensor.handle import Handle
from ..autograd.autocast import autocast_off, current
from ..autograd.grad_mode import mode
from ..autograd.inplace import check_writable, finish_write
from ..autograd.record import gradient_edge
from ..dtype import can_cast, dtype_named
from ..errors import REFUSALS, CaptureError, DeviceError, DTypeError, Error, stacklevel_of_user

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


def takes_out(function: F) -> F:
    """Declares that the public form of a function takes out=. op(), @method and entry() have a column for it."""
    function.out = True  # type: ignore[attr-defined]
    return function


@overload
def makes(function: F) -> F: ...
@overload
def makes(function: None = ..., *, out: bool = ..., line: bool = ..., undefined: bool = ...) -> Callable[[F], F]: ...
def makes(function: Any = None, *, out: bool = True, line: bool = False, undefined: bool = False) -> Any:
    """Declares that a function makes tensors: its public form takes requires_grad=, layout= and pin_memory= as well,
    and out= by default; errors name it. line: an out of as many elements keeps its shape, as in arange(). undefined: an
    out of the shape keeps its elements, as in empty()."""

    def declare(function: Any) -> Any:
        function.makes, function.out, function.line, function.undefined = True, out, line, undefined
        return function

    return declare if function is None else declare(function)


def with_options(out: Any, requires_grad: bool, layout: Any, pin_memory: bool) -> Tensor:
    """A new tensor in page-locked memory with pin_memory, and as a leaf with requires_grad."""
    if layout is not None:
        check_layout(layout)
    if pin_memory:
        out = out.pin_memory()
    return out.requires_grad_(requires_grad) if requires_grad else out


def check_layout(layout: Any) -> None:
    """NotImplementedError for a layout other than norch.strided (or None), which all tensors have."""
    if layout is not None and str(layout).rpartition(".")[2] != "strided":
        raise NotImplementedError(f"layout={layout}: norch has strided tensors alone")


def make_with_options(
    make: Function,
    *arguments: Any,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
    **named: Any,
) -> Tensor:
    """The result of make, with the options of makes() applied."""
    return with_options(make(*arguments, **named), requires_grad, layout, pin_memory)


def written(function: Function, arguments: tuple[Any, ...], named: dict[str, Any], out: Any) -> Any:
    """Writes the result of function into out, a tensor or a tuple of tensors, and returns out. If function raises an
    error, out is unchanged.
    """
    if mode.casting and current().active:
        with autocast_off():
            return written(function, arguments, named, out)
    name = function.__name__
    outs = (out,) if isinstance(out, Handle) else tuple(out) if isinstance(out, (tuple, list)) else (None,)
    for x in outs:
        if not isinstance(x, Handle):
            raise TypeError(f"{name}: out must be a tensor, or a tuple of them, not {type(out).__name__}")
        if mode.enabled and gradient_edge(x) is not None:
            raise _not_differentiable(name)
        check_writable(x, name)
    if isinstance(out, Handle) and not named and _row_wrote(function, arguments, out):
        return out
    takes_dtype, takes_device = _options_of(function)
    wants_grad = False
    if takes_dtype and isinstance(out, Handle):
        if (dtype := named.get("dtype")) is not None:
            if dtype_named(dtype) is not out.dtype:
                raise DTypeError(f"{name}: dtype={dtype_named(dtype).name}, but out has dtype {out.dtype.name}")
        elif takes_device or not _is_float_like(out, arguments):
            named = {**named, "dtype": out.dtype}  # sums, and functions that make tensors, compute in the dtype of out
    if takes_device:
        named = {**named}
        if isinstance(out, Handle) and named.get("device") is None:
            named["device"] = out.device
        wants_grad = named.pop("requires_grad", False)
        if wants_grad is not False:
            detached: Any = lib.norch_alias(outs[0])
            detached.requires_grad_(wants_grad)  # an error before anything is written
    result = function(*arguments, **named)
    results = (result,) if isinstance(result, Handle) else tuple(result)
    if isinstance(result, Handle) is not isinstance(out, Handle) or len(results) != len(outs):
        kind = "" if isinstance(out, Handle) else f"a {type(out).__name__} of "
        raise TypeError(f"{name}: the result is {len(results)} tensors, out {kind}{len(outs)}")
    for x, value, field in zip(outs, results, getattr(result, "_fields", (name,) * len(outs))):
        _check(name, x, value, field in _INDICES)
    for x, value in zip(outs, results):
        if x.shape != value.shape and x._numel == value._numel and getattr(function, "line", False):
            value = lib.norch_view(value, x.shape)
        if x.shape != value.shape:
            _resize(name, x, value, warns=getattr(function, "line", True))
        else:
            if not getattr(function, "undefined", False):
                lib.norch_copy(x, value)
            finish_write(x, None)
        if wants_grad:
            x.requires_grad_()
    return out if result is results[0] else _tuple(result, outs)


@cache
def _options_of(function: Any) -> tuple[bool, bool]:
    """Whether a function, below its wrappers, has the keyword-only parameters dtype and device."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    options = function.__kwdefaults__ or ()
    return "dtype" in options, "device" in options


def _is_float_like(out: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether the result of a sum or a similar function has the dtype of out even without dtype=: inputs and out are
    floats of one dtype. Functions that make tensors, such as linspace(), have the default dtype, whatever the dtypes of
    their arguments.
    """
    x = arguments[0] if arguments else None
    return isinstance(x, Handle) and x._dtype == out._dtype and out.dtype.is_floating_point


def _tuple(result: Any, outs: tuple[Any, ...]) -> Any:
    """outs as a tuple of the kind of result, whose elements may have names."""
    kind = type(result)
    return kind(*outs) if hasattr(kind, "_fields") else outs


def _row_wrote(function: Any, arguments: tuple[Any, ...], out: Any) -> bool:
    """Whether the kernel of a row could write into out directly: out has the shape of the result, and nothing requires
    grad.
    """
    form, opcode = getattr(function, "row", ("",))[0], getattr(function, "opcode", None)
    if opcode is None or form not in ("unary", "binary"):
        return False
    for x in arguments:
        if not isinstance(x, Handle) or (mode.enabled and gradient_edge(x) is not None):
            return False
    write = lib.norch_unary_into if form == "unary" else lib.norch_binary_into
    try:
        write(out, opcode, *arguments)
    except REFUSALS:  # of another shape, or an error, which the function itself will raise
        return False
    finish_write(out, None)
    return True


def _not_differentiable(name: str) -> Error:
    return Error(
        f"{name}: functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad; do it under no_grad()"
    )


_INDICES = ("indices", "argmax", "argmin", "nonzero")  # results whose dtype out must have: none that may round them
_TRUTHS = ("any", "all")  # functions whose out may have the dtype uint8 whatever the result's, and no others


def _check(name: str, out: Any, value: Any, is_index: bool) -> None:
    if gradient_edge(value) is not None:
        raise _not_differentiable(name)
    if name in _TRUTHS:
        fits = out.dtype.name in ("bool", "uint8")
    else:
        fits = value._dtype == out._dtype or not is_index and can_cast(value.dtype, out.dtype)
    if not fits:
        raise DTypeError(
            f"{name}: a result of dtype {value.dtype.name} cannot be written into out of dtype {out.dtype.name}"
        )
    if value.device is not out.device and value.device != out.device:
        raise DeviceError(f"{name}: a result on {value.device} cannot be written into out on {out.device}")


def _resize(name: str, out: Any, value: Any, warns: bool) -> None:
    """Stores the elements of value in out, in new storage. Tensors that shared memory with out keep the old storage.
    warns: a warning if out had elements. Functions that make tensors do not warn, unless the number of elements may
    surprise.
    """
    if lib.norch_recording():
        raise CaptureError(
            f"{name}: out has shape {tuple(out.shape)}, the result {tuple(value.shape)}: a recording cannot resize it"
        )
    if out._numel and warns:
        import warnings

        warnings.warn(
            f"{name}: an output with one or more elements was resized, since it had shape {tuple(out.shape)}, not "
            f"{tuple(value.shape)}. This is deprecated; resize it to zero elements first",
            stacklevel=stacklevel_of_user(),
        )
    fresh = value.clone() if value.dtype is out.dtype else value.to(out.dtype)
    lib.norch_set_data(out, fresh)
    out._version_counter = out._view = None
