"""out=: writes the result of a function into tensors that the caller passes.

take_out() wraps the functions of norch, norch.linalg, norch.fft and norch.special that take out= in PyTorch, where
these modules collect their names. Methods and operators have no out= and no overhead. Functions with NumPy's argument
names handle out= in the wrapper that they already have (numpy_names() of _entry.py).
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from .._binding.library import lib
from .._package.typing import TYPE_CHECKING, Any
from .._tensor.handle import Handle
from ..autograd.autocast import autocast_off, current
from ..autograd.grad_mode import mode
from ..autograd.inplace import check_writable, finish_write
from ..autograd.record import gradient_edge
from ..dtype import can_cast
from ..errors import REFUSALS, CaptureError, DeviceError, DTypeError, Error, stacklevel_of_user
from ._instead import guarded, instead, is_row

if TYPE_CHECKING:
    from inspect import Signature

Function = Callable[..., Any]

# Those of norch itself.
NAMES = """
abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax angle any arange arccos
arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin asin asinh atan atan2 atanh baddbmm bernoulli bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm bucketize cat ceil chain_matmul clamp
clamp_max clamp_min clip column_stack complex concat concatenate conj_physical copysign cos cosh cross cummax cummin
cumprod cumsum deg2rad diag diff digamma div divide dot dstack empty eq erf erfc erfinv exp exp2 expm1 eye fix
float_power floor floor_divide fmax fmin fmod frac frexp full gather gcd ge ger greater greater_equal gt hardshrink
heaviside histc histogram hstack hypot i0 igamma igammac index_add index_copy index_reduce index_select inner isin
isneginf isposinf kron kthvalue lcm ldexp le lerp less less_equal lgamma linspace log log10 log1p log2 log_softmax
logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit logspace logsumexp lt
masked_select matmul matrix_power max maximum mean median min minimum mm mode msort mul multinomial multiply mv
mvlgamma nan_to_num nanmean nanmedian nanquantile nansum ne neg negative nextafter nonzero norm normal not_equal ones
outer polar polygamma pow prod quantile rad2deg rand randint randn randperm reciprocal remainder renorm round
row_stack rsqrt scatter scatter_add scatter_reduce searchsorted sgn sigmoid sign signbit sin sinc sinh slice_scatter
softmax sort sqrt square stack std sub subtract sum take take_along_dim tan tanh tensordot topk tril triu true_divide
trunc var vdot vstack where xlogy zeros
"""

# Those without out= that notice objects with __torch_function__ (_instead.py); functions with out= do anyway.
GUARDED = """
adjoint allclose argsort argwhere as_strided as_strided_scatter atleast_1d atleast_2d atleast_3d bincount broadcast_to
cholesky cholesky_inverse cholesky_solve chunk clone conj constant_pad_nd corrcoef count_nonzero cov det diag_embed
diagflat diagonal diagonal_scatter dist dsplit einsum empty_like equal fill flatten flip fliplr flipud full_like geqrf
hsplit imag index_fill index_put inverse is_complex is_floating_point is_nonzero is_same_size is_signed isclose
isfinite isinf isnan isreal istft lobpcg logdet lu lu_solve masked_fill masked_scatter matrix_exp moveaxis movedim
narrow numel ones_like orgqr ormqr pca_lowrank permute pinverse poisson positive prelu put qr ravel real relu
repeat_interleave reshape result_type roll rot90 select select_scatter slogdet split split_with_sizes squeeze stft svd
svd_lowrank swapaxes swapdims t tensor_split tile trace transpose triangular_solve unbind unflatten unique
unique_consecutive unsqueeze view_as_complex view_as_real vsplit zeros_like
"""


def take_out(namespace: dict[str, Any], names: str) -> None:
    """Replaces functions in the globals() of a module by functions that take out=, too."""
    wrapped: dict[Any, Any] = {}
    listed = names.split()
    for name in listed:
        function = namespace[name]
        if function not in wrapped:
            declared = function.__name__
            is_other = declared not in listed or namespace[declared] is not function
            wrapped[function] = _with_out(function, name if is_other else declared, namespace["__name__"])
        namespace[name] = wrapped[function]


def take_out_late(namespace: dict[str, Any], names: str, more: str) -> Callable[..., Any]:
    """take_out() of each function when it is first read: all at once would be a twentieth of the time of `import
    norch`. Removes the functions from the globals() of a module. Returns the function that puts the one of a name back;
    it takes those that were not there, too: f(name, function). more: those that are guarded() instead."""
    plain = {name: namespace.pop(name) for name in (names + more).split() if name in namespace}
    without_out = frozenset(more.split())

    def put(name: str, function: Any = None) -> Any:
        function = plain.get(name, function)
        if name in without_out:
            namespace[name] = guarded(function, namespace["__name__"])
            return namespace[name]
        alike = [one for one, other in plain.items() if other is function and one not in without_out] or [name]
        wrapped = {"__name__": namespace["__name__"], **dict.fromkeys(alike, function)}
        take_out(wrapped, " ".join(alike))
        namespace.update((one, wrapped[one]) for one in alike)
        return namespace[name]

    return put


def _with_out(function: Any, name: str, module: str) -> Function:
    """function(..., out=None) of that name in a module, with the same names and defaults of its arguments."""
    code: Any = code_of(function)
    count, options, inner = code.co_argcount, code.co_kwonlyargcount, function
    if hasattr(function, "has_out"):  # it needs no other wrapper, only to say so
        wrapper, inner = function.has_out(), function.__wrapped__
    elif code.co_flags & _TAKES_MORE or (count, options) not in _WRAPPERS:
        wrapper = _of_any(function)
    else:
        names = code.co_varnames[: count + options]
        wrapper = (_ROWS if is_row(function) else _WRAPPERS)[count, options](function, names[-1])
        rest = wrapper.__code__.co_varnames[count + options + 2 :]
        wrapper.__code__ = wrapper.__code__.replace(co_varnames=(*names[:count], "more", *names[count:], "out", *rest))
        wrapper.__defaults__ = (*(function.__defaults__ or ()), *wrapper.__defaults__)
    wrapper.__dict__.update(function.__dict__, __wrapped__=Signed(inner), takes_out=True)
    wrapper.__name__ = wrapper.__qualname__ = name
    wrapper.__doc__, wrapper.__module__ = function.__doc__, module
    return wrapper


_TAKES_MORE = 4 | 8  # of code.co_flags: *arguments, **named

# CPython calls a function faster where it has no keyword-only parameters: so out, and the one that function may have,
# are ordinary ones here, behind `more`. What is given by position in their places comes into it: _asked() refuses it.


# A TypeError may be of an object with __torch_function__: instead().


def _of_one(function: Function, name: str) -> Any:
    def wrapper(x: Any, more: Any = ..., out: Any = None) -> Any:
        try:
            return function(x) if out is None and more is ... else _asked(function, (x,), more, out)
        except TypeError as error:
            return instead(wrapper, (x,), {} if out is None else {"out": out}, error)

    return wrapper


def _of_two(function: Function, name: str) -> Any:
    def wrapper(x: Any, y: Any, more: Any = ..., out: Any = None) -> Any:
        try:
            return function(x, y) if out is None and more is ... else _asked(function, (x, y), more, out)
        except TypeError as error:
            return instead(wrapper, (x, y), {} if out is None else {"out": out}, error)

    return wrapper


def _of_three(function: Function, name: str) -> Any:
    def wrapper(x: Any, y: Any, z: Any, more: Any = ..., out: Any = None) -> Any:
        try:
            return function(x, y, z) if out is None and more is ... else _asked(function, (x, y, z), more, out)
        except TypeError as error:
            return instead(wrapper, (x, y, z), {} if out is None else {"out": out}, error)

    return wrapper


def _of_two_and_option(function: Function, name: str) -> Any:
    def wrapper(x: Any, y: Any, more: Any = ..., option: Any = ..., out: Any = None) -> Any:
        try:
            if out is None and more is ... and option is ...:
                return function(x, y)
            return _asked(function, (x, y), more, out, _options(name, option))
        except TypeError as error:
            return instead(wrapper, (x, y), _options(name, option, out), error)

    return wrapper


def _of_three_and_option(function: Function, name: str) -> Any:
    def wrapper(x: Any, y: Any, z: Any, more: Any = ..., option: Any = ..., out: Any = None) -> Any:
        try:
            if out is None and more is ... and option is ...:
                return function(x, y, z)
            return _asked(function, (x, y, z), more, out, _options(name, option))
        except TypeError as error:
            return instead(wrapper, (x, y, z), _options(name, option, out), error)

    return wrapper


def _options(name: str, option: Any, out: Any = None) -> dict[str, Any]:
    named = {} if option is ... else {name: option}
    return named if out is None else {**named, "out": out}


def _of_any(function: Function) -> Any:
    def wrapper(*arguments: Any, out: Any = None, **named: Any) -> Any:
        try:
            return function(*arguments, **named) if out is None else written(function, arguments, named, out)
        except TypeError as error:
            return instead(wrapper, arguments, named if out is None else {**named, "out": out}, error)

    return wrapper


def _row_of_one(function: Any, name: str) -> Any:
    call = function.call

    def wrapper(x: Any, more: Any = ..., out: Any = None) -> Any:
        try:
            if out is None and more is ... and (result := call(x)) is not NotImplemented:
                return result
            return _asked(function, (x,), more, out)
        except TypeError as error:
            return instead(wrapper, (x,), {} if out is None else {"out": out}, error)

    return wrapper


def _row_of_two(function: Any, name: str) -> Any:
    call = function.call

    def wrapper(x: Any, y: Any, more: Any = ..., out: Any = None) -> Any:
        try:
            if out is None and more is ... and (result := call(x, y)) is not NotImplemented:
                return result
            return _asked(function, (x, y), more, out)
        except TypeError as error:
            return instead(wrapper, (x, y), {} if out is None else {"out": out}, error)

    return wrapper


_ROWS = {(1, 0): _row_of_one, (2, 0): _row_of_two}
# By the numbers of parameters, and of keyword-only ones. The others are called less.
_WRAPPERS = {
    (1, 0): _of_one,
    (2, 0): _of_two,
    (3, 0): _of_three,
    (2, 1): _of_two_and_option,
    (3, 1): _of_three_and_option,
}


def code_of(function: Any) -> Any:
    """The code of a function without an entry (_package/entries.py)."""
    from .._package.entries import code_of  # lazy, for the time of `import norch`

    return code_of(function)


def _asked(function: Any, arguments: tuple[Any, ...], more: Any, out: Any, named: Any = MappingProxyType({})) -> Any:
    if more is not ...:
        return function(*arguments, more, **named)  # which says that it takes less
    return function(*arguments, **named) if out is None else written(function, arguments, named, out)


class Signed:
    """In the place of a wrapped function: inspect finds its signature with out= here, made when it is asked for."""

    __slots__ = ("__wrapped__",)

    def __init__(self, function: Function):
        self.__wrapped__ = function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.__wrapped__(*arguments, **named)

    @property
    def __signature__(self) -> Signature:
        import inspect

        return signature_with_out(inspect.signature(self.__wrapped__))


def signature_with_out(signature: Signature) -> Signature:
    """A signature with out= at its end."""
    import inspect

    kind = {"Tensor": "Tensor | None", "Any": "Any"}.get(signature.return_annotation, "tuple[Tensor, ...] | None")
    out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
    parameters = list(signature.parameters.values())
    rest = [parameters.pop()] if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    return signature.replace(parameters=[*parameters, out, *rest])


# ---- what is written -------------------------------------------------------------------------------------------------


def written(function: Function, arguments: tuple[Any, ...], named: dict[str, Any], out: Any) -> Any:
    """out, a tensor or a tuple of them, with what function gives in it. Nothing is written where an error is raised."""
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
    inner: Any = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    options, wants_grad = inner.__kwdefaults__ or (), False
    if "dtype" in options and isinstance(out, Handle):  # sums, and what makes tensors, compute in that of out
        named = {"dtype": out.dtype, **named}
    if "device" in options and isinstance(out, Handle):
        named = {"device": out.device, **named}
        wants_grad = named.pop("requires_grad", False)
        if wants_grad is not False:
            detached: Any = lib.norch_alias(out)
            detached.requires_grad_(wants_grad)  # an error before anything is written
    result = function(*arguments, **named)
    results = (result,) if isinstance(result, Handle) else tuple(result)
    if isinstance(result, Handle) is not isinstance(out, Handle) or len(results) != len(outs):
        kind = "" if isinstance(out, Handle) else f"a {type(out).__name__} of "
        raise TypeError(f"{name}: the result is {len(results)} tensors, out {kind}{len(outs)}")
    for x, value in zip(outs, results):
        _check(name, x, value)
    for x, value in zip(outs, results):
        if x.shape == value.shape:
            x.copy_(value)
        else:
            _resize(name, x, value)
        if wants_grad:
            x.requires_grad_()
    return out if result is results[0] else _tuple(result, outs)


def _tuple(result: Any, outs: tuple[Any, ...]) -> Any:
    """outs as a tuple of the kind of result, whose elements may have names."""
    kind = type(result)
    return kind(*outs) if hasattr(kind, "_fields") else outs


def _row_wrote(function: Any, arguments: tuple[Any, ...], out: Any) -> bool:
    """Whether the kernel of a row could write into out itself: it has the shape, and nothing requires grad."""
    form, opcode = getattr(function, "row", ("",))[0], getattr(function, "opcode", None)
    if opcode is None or form not in ("unary", "binary"):
        return False
    for x in arguments:
        if not isinstance(x, Handle) or (mode.enabled and gradient_edge(x) is not None):
            return False
    write = lib.norch_unary_into if form == "unary" else lib.norch_binary_into
    try:
        write(out, opcode, *arguments)
    except REFUSALS:  # of another shape, or it cannot be done: then the function says so
        return False
    finish_write(out, None)
    return True


def _not_differentiable(name: str) -> Error:
    return Error(
        f"{name}: functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad; do it under no_grad()"
    )


def _check(name: str, out: Any, value: Any) -> None:
    if gradient_edge(value) is not None:
        raise _not_differentiable(name)
    if not can_cast(value.dtype, out.dtype):
        raise DTypeError(
            f"{name}: a result of dtype {value.dtype.name} cannot be written into out of dtype {out.dtype.name}"
        )
    if value.device != out.device:
        raise DeviceError(f"{name}: a result on {value.device} cannot be written into out on {out.device}")


def _resize(name: str, out: Any, value: Any) -> None:
    """Gives out the elements of value, in a storage of its own; what shared memory with it keeps the former one."""
    if lib.norch_recording():
        raise CaptureError(
            f"{name}: out has shape {tuple(out.shape)}, the result {tuple(value.shape)}: a recording cannot resize it"
        )
    if out._numel:
        import warnings

        warnings.warn(
            f"{name}: an output with one or more elements was resized, since it had shape {tuple(out.shape)}, not "
            f"{tuple(value.shape)}. This is deprecated; resize it to zero elements first",
            stacklevel=stacklevel_of_user(),
        )
    fresh = value.clone() if value.dtype is out.dtype else value.to(out.dtype)
    lib.norch_set_data(out, fresh)
    out._version_counter = out._view = None
