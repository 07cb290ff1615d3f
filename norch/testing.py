"""``norch.testing``: random tensors, comparison within tolerances, derivatives checked by finite differences.

The checks raise an AssertionError with the numbers that differ.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ._binding.library import lib
from ._package.exports import publish
from .autograd.grad_mode import enable_grad, no_grad
from .autograd.gradients import grad
from .dtype import check_format, complex128, dtype_named, finfo, float64, promote_types
from .errors import Error
from .ops.complex import view_as_complex, view_as_real
from .ops.composed.grid import unravel_index
from .ops.copy import stack
from .ops.create import empty
from .ops.create import ones_like as _ones_like
from .ops.create import zeros_like as _zeros_like
from .ops.pointwise import isclose
from .ops.random import randint, randn
from .ops.values import tensor
from .random import Generator
from .tensor import Tensor

__all__ = ["GradcheckError", "assert_close", "gradcheck", "gradgradcheck", "make_tensor"]
publish(globals())

# Relative and absolute tolerance by floating dtype; integers and bool must be equal.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


# ---- random tensors --------------------------------------------------------------------------------------------------


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of uniform random numbers from [low, high): by default from [-9, 9], for uint8 from [0, 9].

    noncontiguous leaves gaps between the elements of a tensor of two or more. exclude_zero replaces 0 by 1, or for
    floats by the smallest normal number.

    >>> norch.testing.make_tensor(2, 3, dtype=norch.int64, low=0, high=5).shape
    norch.Size([2, 3])
    """
    if memory_format is not None:
        check_format(memory_format, "make_tensor")
    kind, out = dtype_named(dtype), empty(*shape, dtype=dtype, device=device)
    if noncontiguous and out.numel() > 1:
        out = empty(*out.shape, 2, dtype=dtype, device=device).select(-1, 0)
    if kind.is_floating_point:
        low, high = -9.0 if low is None else low, 9.0 if high is None else high
        out.uniform_(low, high)
    else:
        least, most = (0, 2) if kind.kind == "b" else (0, 10) if kind.kind == "u" else (-9, 10)
        low, high = least if low is None else int(low), most if high is None else int(high)
        out.copy_(randint(low, high, out.shape, device=device))
    if exclude_zero:
        out[out == 0] = finfo(kind).tiny if kind.is_floating_point else 1
    return out.requires_grad_(requires_grad)


# ---- comparison -----------------------------------------------------------------------------------------------------


def assert_close(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    *,
    allow_subclasses: bool = True,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Asserts that |actual - expected| <= atol + rtol * |expected| everywhere, and that shapes and dtypes agree.

    actual and expected are tensors or arguments of norch.tensor(); expected gets the dtype of actual unless it is a
    tensor. Sequences and mappings of them are compared part by part. rtol and atol must be given together; the defaults
    depend on the dtype: 1.3e-6 and 1e-5 for float32, 1e-7 and 1e-7 for float64, the values of the parts for complex
    numbers, 0 for integers. Infinities are compared exactly; a NaN differs from everything, with equal_nan from
    everything but NaN. check_dtype=False compares in the dtype that both promote to; check_stride=True compares strides
    as well. msg is the text of the error, or a function of the default text. The AssertionError names the worst
    element.

    >>> norch.testing.assert_close(norch.tensor([1.0, 2.0]), [1.0, 2.0000001])
    >>> norch.testing.assert_close({"w": norch.ones(2)}, {"w": norch.ones(2)})
    >>> norch.testing.assert_close(norch.tensor([1.0, 2.0]), [1.0, 2.5])
    Traceback (most recent call last):
    AssertionError: 1 of 2 elements differ by more than atol 1e-05 + rtol 1.3e-06 * |expected|; the worst at [1]: ...
    """
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close: give both rtol and atol, or none")
    try:
        for where, a, b in _pairs(actual, expected, ""):
            try:
                _assert_close(a, b, rtol, atol, equal_nan, check_dtype, check_stride)
            except AssertionError as error:
                raise AssertionError(f"{where}: {error}" if where else str(error)) from None
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None


def _pairs(actual: Any, expected: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    """(where, actual, expected) for the parts of containers, or for the two themselves."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        assert actual.keys() == expected.keys(), f"{where}keys differ: {list(actual)}, expected {list(expected)}"
        keys: Iterable[Any] = actual.keys()
    elif _holds_tensors(actual) and isinstance(expected, Sequence):
        assert len(actual) == len(expected), f"{where}lengths differ: {len(actual)}, expected {len(expected)}"
        keys = range(len(actual))
    else:
        yield where, actual, expected
        return
    for key in keys:
        yield from _pairs(actual[key], expected[key], f"{where}[{key!r}]")


def _holds_tensors(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and any(
        isinstance(part, (Tensor, Mapping)) or _holds_tensors(part) for part in x
    )


def _assert_close(
    actual: Any,
    expected: Any,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    check_dtype: bool,
    check_stride: bool,
) -> None:
    actual = actual.detach() if isinstance(actual, Tensor) else tensor(actual)
    expected = (
        expected.detach() if isinstance(expected, Tensor) else tensor(expected, device=actual.device).to(actual.dtype)
    )
    assert tuple(actual.shape) == tuple(expected.shape), (
        f"shapes differ: {tuple(actual.shape)}, expected {tuple(expected.shape)}"
    )
    if check_stride:
        assert actual.stride() == expected.stride(), f"strides differ: {actual.stride()}, expected {expected.stride()}"
    if not check_dtype:
        dtype = promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(dtype), expected.to(dtype)
    assert actual.dtype is expected.dtype, f"dtypes differ: {actual.dtype}, expected {expected.dtype}"
    inexact = actual.is_floating_point() or actual.is_complex()
    if rtol is None or atol is None:
        rtol, atol = _TOLERANCES[actual.dtype.name] if inexact else (0.0, 0.0)
    if inexact or rtol or atol:
        wide = complex128 if actual.is_complex() else float64
        close = isclose(actual.to(wide), expected.to(wide), rtol, atol, equal_nan)
    else:
        close = actual == expected  # all bits of large integers
    if not bool(close.all()):
        raise AssertionError(_report(actual, expected, close, rtol, atol))


def _report(actual: Tensor, expected: Tensor, close: Tensor, rtol: float, atol: float) -> str:
    """The text of the error: the number of elements that differ, and the worst of them."""
    flat_close = close.reshape(-1).tolist()
    pairs = list(zip(actual.reshape(-1).tolist(), expected.reshape(-1).tolist(), strict=True))
    wrong = [i for i, good in enumerate(flat_close) if not good]

    def excess(i: int) -> float:
        difference = abs(pairs[i][0] - pairs[i][1])
        return difference if difference == difference else float("inf")  # NaN against a number is the worst

    worst = max(wrong, key=excess)
    index = [int(i) for i in unravel_index(tensor(worst), actual.shape)]
    got, wanted = pairs[worst]
    limit = f"by more than atol {atol:g} + rtol {rtol:g} * |expected|" if rtol or atol else "(they must be equal)"
    return (
        f"{len(wrong)} of {len(pairs)} elements differ {limit}; the worst at {index}: {got!r}, expected {wanted!r}, "
        f"difference {abs(got - wanted):g}"
    )


# ---- derivatives ----------------------------------------------------------------------------------------------------


class GradcheckError(Error, AssertionError):
    """Raised by gradcheck() and gradgradcheck() for wrong derivatives; the message has the numbers."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compares the derivatives of func(*inputs) that backward computes with central differences.

    inputs is a tensor or a sequence of arguments. The tensors in it that require grad are the variables. They should be
    float64, because differences in float32 are too inexact, or complex128, whose real and imaginary parts are varied
    separately. func returns a tensor or a tuple of tensors, of which the floating and complex ones are checked, and
    must be differentiable at inputs.

    Each derivative must satisfy |backward - difference| <= atol + rtol * |difference|, and two walks may differ by at
    most nondet_tol. Returns True if all do; otherwise raises a GradcheckError, or with raise_exception=False returns
    False. check_batched_grad also compares a walk that vmap batches with walks one by one.

    ValueError if no input requires grad. NotImplementedError for the options of forward mode. fast_mode, masked and
    check_undefined_grad have no effect: the whole Jacobian is compared.

    >>> x = norch.tensor([0.5, 1.0], dtype=norch.float64, requires_grad=True)
    >>> norch.testing.gradcheck(norch.sin, x)
    True
    """
    if check_batched_forward_grad or check_forward_ad:
        raise NotImplementedError("gradcheck: norch has no forward mode to check")
    func, arguments = _in_parts(func, _arguments(inputs))
    variables = [i for i, x in enumerate(arguments) if isinstance(x, Tensor) and x.requires_grad]
    if not variables:
        raise ValueError("gradcheck: no input requires grad")
    for i in variables:
        if arguments[i].dtype is not float64:
            warnings.warn(
                f"gradcheck: input {i} is {arguments[i].dtype.name}; differences are exact enough for float64 only",
                stacklevel=2,
            )
    try:
        with enable_grad():
            outputs = _floating(func(*arguments))
        for i in variables if check_backward_ad else ():
            numeric = _differences(func, arguments, i, eps)
            if len(numeric) != len(outputs):
                raise GradcheckError(f"the function gave {len(outputs)} outputs, and {len(numeric)} at another point")
            for k, output in enumerate(outputs):
                derivatives = _derivatives(output, arguments[i], check_grad_dtypes)
                _compare(derivatives, numeric[k], f"of output {k} by input {i}", atol, rtol)
                first, second = (_walk(output, arguments[i], _ones_like(output)) for _ in range(2))
                if first is not None and not bool(((first - second).abs() <= nondet_tol).all()):
                    raise GradcheckError(f"the derivative of output {k} by input {i} differs from walk to walk")
                if first is not None and check_batched_grad:
                    _check_batched(output, arguments[i], f"of output {k} by input {i}", atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_batched(output: Tensor, x: Tensor, place: str, atol: float, rtol: float) -> None:
    """GradcheckError unless a batched walk gives the rows of two."""
    rows = randn((2, *output.shape), generator=Generator().manual_seed(0), dtype=output.dtype, device=output.device)
    (batched,) = grad(output, x, rows, retain_graph=True, is_grads_batched=True)
    for g, row in zip(batched, rows, strict=True):
        if not bool(((g - _walk(output, x, row)).abs() <= atol + rtol * g.abs()).all()):
            raise GradcheckError(f"the derivative {place} is another one where vmap batches it")


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Checks second derivatives: gradcheck() of the gradient, as a function of inputs and grad_outputs.

    grad_outputs are the gradients of the outputs, by default random.

    >>> x = norch.tensor([0.5, 1.0], dtype=norch.float64, requires_grad=True)
    >>> norch.testing.gradgradcheck(norch.sin, x)
    True
    """
    if check_fwd_over_rev:
        raise NotImplementedError("gradgradcheck: norch has no forward mode to check")
    arguments = _arguments(inputs)
    variables = [i for i, x in enumerate(arguments) if isinstance(x, Tensor) and x.requires_grad]
    if grad_outputs is None:
        source = Generator().manual_seed(0)
        outputs = _floating(func(*arguments))
        grad_outputs = [randn(out.shape, generator=source, dtype=out.dtype, device=out.device) for out in outputs]
        if gen_non_contig_grad_outputs:
            grad_outputs = [stack([g, g], -1).select(-1, 0) for g in grad_outputs]
    weights = [g.detach().requires_grad_() for g in _arguments(grad_outputs)]

    def first_derivatives(*values: Any) -> tuple[Tensor, ...]:
        now, g = values[: len(arguments)], values[len(arguments) :]
        with enable_grad():
            # gradcheck() computes differences under no_grad(), with plain values
            points = [x if not isinstance(x, Tensor) or x.requires_grad else _variable(x, i) for i, x in enumerate(now)]
            outputs = _floating(func(*points))
            pairs = [(out, w) for out, w in zip(outputs, g, strict=True) if out.requires_grad]
            if not pairs:
                return tuple(_zeros_like(points[i]) for i in variables)
            outs, ws = zip(*pairs, strict=True)
            return grad(
                outs, [points[i] for i in variables], ws, create_graph=True, allow_unused=True, materialize_grads=True
            )

    def _variable(x: Tensor, position: int) -> Tensor:
        return x.detach().requires_grad_() if position in variables else x

    return gradcheck(
        first_derivatives,
        (*arguments, *weights),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_backward_ad=check_rev_over_rev,
    )


def _arguments(inputs: Any) -> list[Any]:
    return list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]


def _floating(outputs: Any) -> list[Tensor]:
    listed = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    real = [view_as_real(out) if isinstance(out, Tensor) and out.is_complex() else out for out in listed]
    return [out for out in real if isinstance(out, Tensor) and out.is_floating_point()]


def _in_parts(func: Callable[..., Any], arguments: list[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """func and arguments with the parts of complex numbers in place of these."""
    whole = [isinstance(x, Tensor) and x.is_complex() for x in arguments]
    if not any(whole):
        return func, arguments

    def of_parts(*parts: Any) -> Any:
        return func(*(view_as_complex(x) if joined else x for x, joined in zip(parts, whole, strict=True)))

    parts = [
        view_as_real(x.detach()).clone().requires_grad_(x.requires_grad) if joined else x
        for x, joined in zip(arguments, whole, strict=True)
    ]
    return of_parts, parts


def _differences(function: Callable[..., Any], arguments: list[Any], i: int, eps: float) -> list[list[list[float]]]:
    """result[output][element of argument i]: the derivatives of all elements of the output, by central differences.
    The argument's own memory is varied, as function may know it otherwise: as a parameter of a module."""
    point, inputs = arguments[i].data, list(arguments)
    if lib.norch_overlaps_itself(point):
        point = inputs[i] = point.clone()

    def values() -> list[list[float]]:
        with no_grad():
            return [out.reshape(-1).tolist() for out in _floating(function(*inputs))]

    result: list[list[list[float]]] = [[] for _ in values()]
    for at in itertools.product(*map(range, point.shape)):
        value = point[at].item()
        try:
            point[at] = value + eps
            above = values()
            point[at] = value - eps
            below = values()
        finally:
            point[at] = value
        for k, (high, low) in enumerate(zip(above, below, strict=True)):
            result[k].append([(a - b) / (2 * eps) for a, b in zip(high, low, strict=True)])
    return result


def _derivatives(output: Tensor, x: Tensor, check_dtype: bool) -> list[list[float]]:
    """result[element of x]: the derivatives of all elements of the output, with a walk for each of them."""
    columns = []
    for k in range(output.numel()):
        weight = output.new_zeros(output.shape)
        weight.view(-1)[k] = 1
        g = _walk(output, x, weight)
        if g is None:
            columns.append([0.0] * x.numel())
            continue
        if tuple(g.shape) != tuple(x.shape):
            raise GradcheckError(f"a gradient of shape {tuple(g.shape)} for shape {tuple(x.shape)}")
        if check_dtype and g.dtype is not x.dtype:
            raise GradcheckError(f"a gradient of {g.dtype} for {x.dtype}")
        columns.append(g.reshape(-1).tolist())
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(x.numel())]


def _walk(output: Tensor, x: Tensor, weight: Tensor) -> Any:
    return grad(output, [x], [weight], retain_graph=True, allow_unused=True)[0] if output.requires_grad else None


def _compare(analytic: list[list[float]], numeric: list[list[float]], place: str, atol: float, rtol: float) -> None:
    worst, message = -1.0, ""
    for i, (row, wanted) in enumerate(zip(analytic, numeric, strict=True)):
        for k, (a, n) in enumerate(zip(row, wanted, strict=True)):
            excess = abs(a - n) - (atol + rtol * abs(n))
            if not excess <= 0 and (excess != excess or excess > worst):
                worst = excess if excess == excess else float("inf")
                message = f"element {k} by element {i}: backward says {a!r}, differences say {n!r}"
    if message:
        raise GradcheckError(
            f"the derivative {place} is wrong, {message}\nbackward    {analytic}\ndifferences {numeric}"
        )
