"""Every case backward: first and second derivatives, gradients in place, and the tools that check them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from case import HALF_NAMES, Case, as_tensor, draw, laid_out, source
from cases import CASES
from checks import ROUNDING, assert_same, each, legal, listed, scale_of, some_edges, with_dtypes
from conftest import DEVICE, is_older

import norch
from norch._binding.library import lib
from norch.testing import assert_close, gradcheck, gradgradcheck

pytestmark = [
    pytest.mark.filterwarnings("ignore:Mean of empty slice"),
    pytest.mark.filterwarnings("ignore:(var|std)\\(\\)"),
]

# ---- derivatives ----------------------------------------------------------------------------------------------------

TIED = (
    "amax",
    "amin",
    "max",
    "min",
    "std",
    "scatter",
    "scatter_reduce",
    "index_copy",
    "index_put",
    "put",
    "index_reduce",
    "masked_scatter",
)
DIFFERENTIABLE = [case for case in CASES if case.grad]


def variables(case: Case, tensors: Sequence[Any]) -> list[int]:
    """Which inputs get gradients."""
    chosen = range(len(tensors)) if case.inputs is None else case.inputs
    return [i for i in chosen if tensors[i].is_floating_point()]


def beside_pytorch(torch: Any, case: Case, arrays: Sequence[Any]) -> tuple[list[Any], list[Any], list[int]]:
    """The inputs as tensors of norch and of PyTorch, and which of them got requires_grad."""
    ours = [norch.tensor(x) for x in arrays]
    theirs = [torch.from_numpy(np.array(x)) for x in arrays]
    chosen = variables(case, ours)
    for i in chosen:
        ours[i].requires_grad_()
        theirs[i].requires_grad_()
    return ours, theirs, chosen


def small_samples(case: Case, text: str) -> list[list[Any]]:
    """Inputs to check derivatives on: few elements, and no variance of a single one."""
    rng = source(case.name + text)
    least = 2 if case.row in ("var", "std", "var_mean", "std_mean") else 0
    found = [
        draw(case, shapes, "float64", rng)
        for shapes in case.shapes
        if all(np.prod(s) <= 30 for s in shapes) and not 0 < np.prod(shapes[0]) < least
    ]
    assert found, "a case needs a small sample to check derivatives on"
    return found


def leaves(case: Case, arrays: Sequence[Any], layout: str = "contiguous") -> list[Any]:
    tensors = [laid_out(x, layout)[0] for x in arrays]
    for i in variables(case, tensors):
        tensors[i].requires_grad_()
    return tensors


@each(DIFFERENTIABLE)
def test_gradients(case: Case) -> None:
    for k, arrays in enumerate(small_samples(case, "gradients")):
        for layout in ("contiguous", ("transposed", "strided", "flipped", "expanded")[k % 4]):
            if layout == "expanded" and case.row in TIED:
                continue  # equal elements have no derivative there
            tensors = leaves(case, arrays, layout)
            assert gradcheck(lambda *xs: case.call(norch, *xs), tensors)


@each([case for case in DIFFERENTIABLE if case.grad > 1])
def test_second_derivatives(case: Case) -> None:
    samples = [arrays for arrays in small_samples(case, "second") if all(x.size for x in arrays)]
    samples.sort(key=lambda arrays: sum(x.size for x in arrays))
    for arrays in samples[:3:2] or samples[:1]:
        assert gradgradcheck(lambda *xs: case.call(norch, *xs), leaves(case, arrays), atol=1e-4)


def backward_of(library: Any, call: Any, tensors: Sequence[Any], weights: Sequence[Any]) -> None:
    """Gradients of all floating results, weighted."""
    results = [x for x in listed(call(library, *tensors)) if x.is_floating_point() and x.requires_grad]
    for k, out in enumerate(results):
        weight = np.broadcast_to(
            np.resize(weights, int(np.prod(tuple(out.shape)))).reshape(tuple(out.shape)), tuple(out.shape)
        )
        make = library.tensor if library is norch else library.from_numpy
        out.backward(make(np.array(weight)).to(out.dtype), retain_graph=k + 1 < len(results))


@each(DIFFERENTIABLE)
def test_gradients_share_no_memory(case: Case) -> None:
    """Neither with the gradient that backward() gets, nor with inputs, results or each other."""
    tensors = leaves(case, small_samples(case, "memory")[0])
    results = [x for x in listed(case.call(norch, *tensors)) if x.is_floating_point() and x.requires_grad]
    weights = [norch.ones_like(x) for x in results]
    norch.autograd.backward(results, weights)
    found = [x.grad for x in tensors if x.grad is not None]
    before = [x.clone() for x in found]
    with norch.no_grad():
        for x in (*weights, *tensors):
            x.fill_(1 if x.dtype is norch.bool else 77)
    for k, (x, old) in enumerate(zip(found, before)):
        assert_close(x, old, equal_nan=True)
        x.fill_(100 + k)
    assert all((x == 100 + k).all() for k, x in enumerate(found))


@each(DIFFERENTIABLE)
def test_views_that_got_a_graph_by_a_write(case: Case) -> None:
    """The input is a view that was made before a tensor with a gradient was written to its base."""
    arrays = small_samples(case, "written")[0]
    wanted, tensors = leaves(case, arrays), [norch.tensor(x) for x in arrays]
    written = {}
    for i in variables(case, tensors):
        base = norch.zeros_like(tensors[i])
        written[i] = tensors[i].clone().requires_grad_()
        tensors[i] = base[...]
        base.copy_(written[i])
    for given in (wanted, tensors):
        results = [x for x in listed(case.call(norch, *given)) if x.is_floating_point()]
        norch.autograd.backward(
            [x for x in results if x.requires_grad], [norch.ones_like(x) for x in results if x.requires_grad]
        )
    for i, x in written.items():
        assert (x.grad is None) == (wanted[i].grad is None)
        if x.grad is not None:
            assert_close(x.grad, wanted[i].grad, rtol=0, atol=0, equal_nan=True)


# What PyTorch can do without derivatives, or only for some shapes.
UNFINISHED_IN_TORCH = (
    "remainder",
    "clamp_min",
    "clamp_max",
    "clamp",
    "gelu_backward",
    "gelu_tanh_backward",
    "mish_backward",
    "silu_backward",
    "hardswish_backward",
    "scatter_add",
    "scatter",
    "scatter_reduce",
    "",
)


# Which of several equal elements PyTorch takes, and with it the gradient, is chance.
ANY_OF_EQUALS = ("topk", "quantile", "nanquantile", "mode", "kthvalue")


@with_dtypes(
    [case for case in DIFFERENTIABLE if case.torch is not False and case.torch_grad is True], ("float32", "float64")
)
def test_gradients_like_torch(torch: Any, case: Case, dtype: str) -> None:
    """Also where a formula has a kink, a tie or a pole."""
    rng = source(case.name + dtype + "torch gradients")
    samples = [draw(case, shapes, dtype, rng) for shapes in case.shapes if sum(np.prod(s) for s in shapes) < 400]
    # PyTorch counts what "alone" leaves out among the equal ones
    if case.row not in ANY_OF_EQUALS and not case.name.endswith(" alone"):
        samples += [[np.round(x).astype(x.dtype) for x in arrays] for arrays in samples]  # ties and zeros
    if case.edges and case.torch_edges is True:
        samples += [legal(case, arrays) for arrays in some_edges(case, dtype)]
    weights = rng.uniform(0.5, 2, 97)
    for k, arrays in enumerate(samples):
        ours, theirs, chosen = beside_pytorch(torch, case, arrays)
        try:
            backward_of(torch, case.torch_call(), theirs, weights)
        except RuntimeError:
            known = is_older(torch) and case.row == "aminmax"
            assert known or case.row in UNFINISHED_IN_TORCH, "PyTorch has no derivative for this case"
            continue
        backward_of(norch, case.call, ours, weights)
        for i in chosen:
            found, wanted = ours[i].grad, theirs[i].grad
            assert (found is None) == (wanted is None), f"{case}, sample {k}, input {i}: {found} and {wanted}"
            if found is not None:
                about = f"{case}, sample {k}, gradient of input {i}, against PyTorch"
                tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype] * case.slack
                assert_same(found, wanted.numpy(), dtype, tolerance, scale_of(case, arrays), about)


@with_dtypes(DIFFERENTIABLE, HALF_NAMES)
def test_gradients_of_halves(case: Case, dtype: str) -> None:
    """They are those of float64 at the same place, to the precision that rounding between operations leaves."""
    arrays = draw(case, case.shapes[0], dtype, source(case.name + dtype))
    weights = np.round(source(case.name).uniform(0.5, 2, 97), 1)
    found = [as_tensor(x, dtype) for x in arrays]
    wanted = [x.double() if x.is_floating_point() else x for x in found]
    for tensors in (found, wanted):
        for i in variables(case, tensors):
            tensors[i].requires_grad_()
        backward_of(norch, case.call, tensors, weights)
    for i in variables(case, found):
        a, b = found[i].grad, wanted[i].grad
        assert a.dtype is found[i].dtype and a.shape == b.shape
        scale = float(b.abs().amax()) if b.numel() else 0.0
        tolerance = 8 * ROUNDING[dtype]
        assert_close(a.double(), b, rtol=tolerance, atol=tolerance * scale)


@each(DIFFERENTIABLE)
def test_gradients_own_their_memory(case: Case) -> None:
    """No two of the gradients of leaves, nor the one that was given, share an element; each can be written to."""
    for arrays in small_samples(case, "memory"):
        tensors = leaves(case, arrays)
        for out in listed(case.call(norch, *tensors)):
            if not out.is_floating_point() or not out.requires_grad:
                continue
            weight = norch.ones(out.shape, dtype=out.dtype)
            out.backward(weight, retain_graph=True)
            grads = [tensors[i].grad for i in variables(case, tensors) if tensors[i].grad is not None]
            for i, g in enumerate(grads):
                g.add_(1)  # raises where elements share memory
                for other in (*grads[:i], weight, *tensors):
                    assert not lib.norch_overlaps(g, other), f"{case}: gradients share memory"
            assert_close(weight, norch.ones(out.shape, dtype=out.dtype))


ONE_DTYPE = (
    *("mm", "bmm", "mv", "dot", "vdot", "inner", "einsum", "tensordot", "chain_matmul", "bilinear"),
    *("addmm", "addmv", "addbmm", "baddbmm", "scatter_add", "index_add", "meshgrid", "cartesian_prod"),
    *("scatter", "scatter_reduce", "index_copy", "index_put", "put", "index_reduce", "masked_scatter", "prelu"),
)


@each([case for case in DIFFERENTIABLE if len(case.domains) > 1 and case.row not in ("linear", "matmul")])
def test_gradients_take_the_dtype_of_their_input(case: Case) -> None:
    if {case.row, case.name.split()[0]} & set(ONE_DTYPE) or case.name in (
        "quantile of several",
        "linalg.vecdot",
        "linalg.multi_dot",
    ):
        pytest.skip("takes no mixed dtypes")
    for arrays in small_samples(case, "mixed"):
        exact = leaves(case, arrays)
        chosen = variables(case, exact)
        mixed = [x.detach().clone() for x in exact]
        for k, i in enumerate(chosen):
            mixed[i] = (mixed[i].float() if k % 2 == 0 else mixed[i]).requires_grad_()
            exact[i] = mixed[i].detach().double().requires_grad_()
        weights = source(case.name).uniform(0.5, 2, 97)
        backward_of(norch, case.call, exact, weights)
        backward_of(norch, case.call, mixed, weights)
        for i in chosen:
            if exact[i].grad is None:
                continue
            assert mixed[i].grad.dtype is mixed[i].dtype
            assert_close(mixed[i].grad.double(), exact[i].grad, rtol=1e-4, atol=1e-5)


# ---- in place -------------------------------------------------------------------------------------------------------

IN_PLACE = [case for case in CASES if case.in_place]


@with_dtypes(IN_PLACE)
def test_in_place_like_out_of_place(case: Case, dtype: str) -> None:
    rng = source(case.name + dtype + "in place")
    for shapes in case.shapes:
        arrays = draw(case, shapes, dtype, rng)
        others = [norch.tensor(x) for x in arrays[1:]]
        for layout in ("contiguous", "transposed", "strided", "offset", "flipped"):
            x, _ = laid_out(arrays[0], layout)
            old, place = x.clone(), x.data_ptr()
            wanted = case.call(norch, x, *others)
            if wanted.shape != x.shape:
                with pytest.raises(norch.ShapeError):
                    case.write(x, *others)
                assert_close(x, old)
                continue
            if not norch.can_cast(wanted.dtype, x.dtype):
                with pytest.raises(norch.DTypeError):
                    case.write(x, *others)
                assert_close(x, old)
                continue
            assert case.write(x, *others) is x
            assert x.data_ptr() == place
            assert_close(x, wanted.to(x.dtype), rtol=0, atol=0, equal_nan=True)


@each([case for case in IN_PLACE if case.grad])
def test_in_place_gradients(case: Case) -> None:
    for arrays in small_samples(case, "in place gradients"):
        if case.call(norch, *map(norch.tensor, arrays)).shape != arrays[0].shape:
            continue
        plain, written = leaves(case, arrays), leaves(case, arrays)
        weights = source(case.name).uniform(0.5, 2, 97)
        backward_of(norch, case.call, plain, weights)
        backward_of(norch, lambda m, x, *rest: case.write(x.clone(), *rest), written, weights)
        for x, y in zip(plain, written):
            assert (x.grad is None) == (y.grad is None)
            if x.grad is not None:
                assert_close(y.grad, x.grad)
        if len(arrays) == 2 and arrays[0].shape == arrays[1].shape and case.inputs is None:  # with itself: x op x
            if case.row in ("remainder", "floor_divide", "pow"):
                continue  # 0 or a tie everywhere
            a, b = plain[0].detach().requires_grad_(), plain[0].detach().requires_grad_()
            backward_of(norch, case.call, [a, a], weights)

            def write(m: Any, x: Any) -> Any:
                y = x.clone()
                return case.write(y, y)  # noqa: B023

            backward_of(norch, write, [b], weights)
            assert_close(b.grad, a.grad, equal_nan=True)


@each([case for case in IN_PLACE if case.name != "index_fill by a tensor"])  # one number for all
def test_in_place_refuses_shared_elements(case: Case) -> None:
    """A tensor that is expanded holds one element many times: numbers that differ cannot be written to it."""
    dtype = "float64" if "float64" in case.dtypes else "int64"
    shapes = case.shapes[0] if case.index_below else [(3, 4)] * len(case.domains)
    arrays = draw(case, shapes, dtype, source(case.name))
    x, _ = laid_out(arrays[0], "expanded")
    old = x.clone()
    with pytest.raises(norch.Error):
        case.write(x, *[norch.tensor(a) for a in arrays[1:]])
    assert_close(x, old)


def test_every_in_place_method_has_a_case() -> None:
    written = {name for name in dir(norch.Tensor) if re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]_", name)}
    written = {name for name in written if hasattr(norch.Tensor, name)}  # less what is left out
    elsewhere = {
        "conj_physical_",  # test_complex.py
        "sgn_",
        "copy_",
        "fill_",
        "zero_",
        "uniform_",
        "normal_",
        "bernoulli_",
        "requires_grad_",
        "detach_",
        "clip_",
        "cumsum_",
        "cumprod_",
    }
    elsewhere |= {"apply_", "map_", "cauchy_", "exponential_", "geometric_", "log_normal_", "random_"}
    elsewhere |= {"index_put_"}  # test_getitem.py
    elsewhere |= {"gcd_", "heaviside_", "lcm_", "nextafter_"}  # test_numeric.py
    elsewhere |= {"igamma_", "igammac_"}  # test_special.py
    elsewhere |= {"share_memory_"}  # test_shared_memory.py
    elsewhere |= {"addmm_", "addmv_", "addbmm_", "baddbmm_", "addr_"}  # test_products.py
    elsewhere |= {"float_power_", "mvlgamma_", "polygamma_"}  # test_pointwise.py
    elsewhere |= {"fill_diagonal_", "renorm_"}  # test_statistics.py
    elsewhere |= {
        f"{turn}_" for turn in "as_strided squeeze swapaxes swapdims t transpose unsqueeze".split()
    }  # test_inplace.py
    covered = {case.in_place for case in IN_PLACE}
    same = {id(getattr(norch.Tensor, name)) for name in covered}
    covered |= {name for name in written if id(getattr(norch.Tensor, name)) in same}  # other names of theirs
    assert written - elsewhere - covered == set()


def test_in_place_with_overlapping_inputs() -> None:
    """An input that shares memory with the output in another order is read as it was before."""
    for op in ("add_", "sub_", "mul_"):
        x = norch.arange(40, dtype=norch.float64)
        plain = x.numpy().copy()
        getattr(x[1:], op)(x[:-1])
        wanted = {"add_": np.add, "sub_": np.subtract, "mul_": np.multiply}[op](plain[1:], plain[:-1])
        assert_close(x[1:], wanted)
    square = norch.arange(16, dtype=norch.float64).view(4, 4)
    wanted = square.numpy() + square.numpy().T
    square.add_(square.T)
    assert_close(square, wanted)


def test_powers_by_numbers_are_exact() -> None:
    """The exponent less 1 is no float32 where the base is a float64."""
    x = norch.tensor(2.0, dtype=norch.float64, requires_grad=True)
    (g,) = norch.autograd.grad(x ** (1 / 3), x)
    assert abs(g.item() - 2 ** (-2 / 3) / 3) < 1e-15


# ---- the tools ------------------------------------------------------------------------------------------------------


class _Wrong(norch.autograd.Function):
    """A square whose derivative is off by a thousandth, and whose second derivative is 0."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * (x.detach() * 2.01)


class _Moody(norch.autograd.Function):
    """The identity, whose derivative is a little more every time."""

    walks = 0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        _Moody.walks += 1
        return g * (1 + _Moody.walks * 1e-4)


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize(("given", "gradient"), [({"dim": 0}, "nan"), ({"dim": -1, "correction": 0}, "0.0")])
def test_the_spread_of_a_number(name: str, given: dict[str, int], gradient: str) -> None:
    x = norch.tensor(3.0, requires_grad=True)
    getattr(norch, name)(x, **given).backward()
    assert str(x.grad.item()) == gradient


def test_gradcheck_finds_faults() -> None:
    x = norch.tensor([0.5, -1.0], dtype=norch.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="backward says"):
        gradcheck(_Wrong.apply, x)
    assert gradcheck(_Wrong.apply, x, rtol=0.1)
    with pytest.raises(AssertionError, match="backward says"):
        gradgradcheck(_Wrong.apply, x, rtol=0.1)
    with pytest.raises(ValueError, match="requires grad"):
        gradcheck(norch.sin, x.detach())
    with pytest.warns(UserWarning, match="input 0 is float32"):
        assert gradcheck(norch.sin, norch.ones(1, requires_grad=True), eps=1e-3, atol=1e-3)
    assert gradcheck(_Wrong.apply, x, raise_exception=False) is False


def test_gradcheck_of_parameters_that_a_module_reads() -> None:
    """As tests written for PyTorch ask: the function ignores the arguments, whose memory is varied."""
    layer = norch.nn.Linear(3, 2, dtype=norch.float64)
    layer.weight.data = layer.weight.data.t().contiguous().t()
    x = norch.randn(2, 3, dtype=norch.float64, requires_grad=True)
    before = layer.weight.tolist()
    assert gradcheck(lambda x, *_: layer(x).tanh(), (x, *layer.parameters()))
    assert layer.weight.tolist() == before and layer.weight._version == 0
    wide = norch.ones(1, dtype=norch.float64).expand(3).requires_grad_()
    assert gradcheck(norch.sin, wide)  # its elements are in one place
    assert gradgradcheck(lambda x, *_: layer(x).tanh(), (x, *layer.parameters()))
    with pytest.raises(norch.testing.GradcheckError):
        gradcheck(lambda weight: norch.nn.functional.linear(x, weight.detach()), layer.weight)


def test_make_tensor() -> None:
    for dtype in (norch.float32, norch.bfloat16, norch.int8, norch.uint8, norch.bool):
        x = norch.testing.make_tensor((4, 50), dtype=dtype, device=DEVICE, noncontiguous=True, exclude_zero=True)
        assert x.dtype is dtype and x.shape == (4, 50) and not x.is_contiguous() and bool((x != 0).all())
        assert -9 <= x.double().amin() and x.double().amax() <= 9
    x = norch.testing.make_tensor(100, dtype=norch.float64, low=2, high=3, requires_grad=True)
    assert x.requires_grad and x.amin() >= 2 and x.amax() <= 3
    assert norch.testing.make_tensor((), dtype=norch.int64, low=4, high=5).item() == 4


def test_assert_close_names_the_worst() -> None:
    assert_close(norch.tensor([1.0, float("inf"), math.nan]), [1.000001, float("inf"), math.nan], equal_nan=True)
    with pytest.raises(AssertionError, match=r"2 of 4 elements .* worst at \[1, 0\]: 7.0, expected 3.0"):
        assert_close(norch.tensor([[1.0, 2.5], [7.0, 4.0]]), [[1.0, 2.0], [3.0, 4.0]])
    for wrong in ([float("nan")], [float("inf")], [-1.0]):
        with pytest.raises(AssertionError, match="1 of 1"):
            assert_close(norch.tensor([1.0]), wrong)
    with pytest.raises(AssertionError, match="1 of 1"):
        assert_close(norch.tensor([math.nan]), [math.nan])
    with pytest.raises(AssertionError, match="shapes differ"):
        assert_close(norch.zeros(2), norch.zeros(1, 2))
    with pytest.raises(AssertionError, match="dtypes differ"):
        assert_close(norch.zeros(2), norch.zeros(2, dtype=norch.float64))
    with pytest.raises(AssertionError, match="must be equal"):
        assert_close(norch.tensor([2**53 + 1]), norch.tensor([2**53]))
    with pytest.raises(ValueError, match="both"):
        assert_close(1.0, 1.0, rtol=0.1)
    assert_close(norch.tensor([5]), norch.tensor([6]), rtol=0, atol=1)


def test_assert_close_of_containers_and_its_switches() -> None:
    one, two = norch.ones(2), norch.ones(2, dtype=norch.float64)
    assert_close({"a": [one, (one, 3)]}, {"a": [one, (one, 3)]})
    with pytest.raises(AssertionError, match=r"\['a'\]\[1\]\[0\]: dtypes differ"):
        assert_close({"a": [one, (one, 3)]}, {"a": [one, (two, 3)]})
    with pytest.raises(AssertionError, match="keys differ"):
        assert_close({"a": one}, {"b": one})
    with pytest.raises(AssertionError, match="lengths differ"):
        assert_close([one], [one, one])
    assert_close(one, two, check_dtype=False, check_device=False)
    with pytest.raises(AssertionError, match="^mine: dtypes differ"):
        assert_close(one, two, msg=lambda text: f"mine: {text}")
    with pytest.raises(AssertionError, match="^no$"):
        assert_close(one, one + 1, msg="no")
    with pytest.raises(AssertionError, match="strides differ"):
        assert_close(norch.ones(2, 3).t(), norch.ones(3, 2), check_stride=True)
