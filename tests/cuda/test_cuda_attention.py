"""The fused kernels of attention against the composed form in float64: tiles that sizes straddle, layouts, masks, heads
that share keys, dropout, and what is not finite."""

from __future__ import annotations

import ctypes
import math
import os
from typing import Any

import numpy as np
import pytest

import norch
import norch.nn.functional as F
from norch import cuda
from norch._binding.library import lib
from norch.ops.attention import _composed, _grouped

SIMULATION = cuda.is_available() and cuda.get_device_properties().simulated
pytestmark = [
    pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device"),
    pytest.mark.skipif(
        cuda.is_available() and cuda.get_device_capability() < (8, 0), reason="needs compute capability 8.0"
    ),
]

# dtype: largest error, relative to the largest element
SLACK = {"float32": 4e-6, "float16": 3e-3, "bfloat16": 2e-2}


def drawn(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def leaves(dtype: str, *arrays: Any) -> tuple[list[Any], list[Any]]:
    """The arrays on the device in a dtype, and the same numbers on the CPU in float64, both as leaves."""
    ours = [norch.tensor(x, dtype=getattr(norch, dtype), device="cuda").requires_grad_() for x in arrays]
    return ours, [x.detach().cpu().double().requires_grad_() for x in ours]


def assert_near(found: Any, wanted: Any, slack: float) -> None:
    a, b = (x.detach().cpu().double().numpy() for x in (found, wanted))
    np.testing.assert_allclose(a, b, rtol=0, atol=slack * (0.1 + float(np.abs(b).max(initial=0))))


def is_fused(out: Any) -> bool:
    """Whether the fused kernel made it, perhaps of rows with zeros behind them."""
    plans = (getattr(node, "save_plan", None) for node in (out._node, out._node.next_functions[0][0]))
    return any("logsumexp" in plan.others for plan in plans if plan)


def compared(dtype: str, arrays: Any, mask: Any = None, **options: Any) -> list[Any]:
    """Result and gradients on the device, each near those of the composed form."""
    *arrays, g = arrays
    ours, wide = leaves(dtype, *arrays)
    heads, shared = (x.shape[1] if x.ndim == 4 else 1 for x in (wide[0], wide[1]))
    grouped = heads != shared and shared > 1
    key, value = (x.repeat_interleave(heads // shared, -3) if grouped else x for x in wide[1:])
    on_device = None if mask is None else mask.to("cuda", norch.bool if mask.dtype is norch.bool else ours[0].dtype)
    seen = mask if mask is None or mask.dtype is norch.bool else on_device.cpu().double()
    scale, causal = options.get("scale", 1 / math.sqrt(arrays[0].shape[-1])), options.get("is_causal", False)
    wanted = _composed(wide[0], key, value, scale, causal, seen)
    found = F.scaled_dot_product_attention(*ours, attn_mask=on_device, enable_gqa=grouped, **options)
    assert is_fused(found)
    factors = norch.tensor(g, dtype=found.dtype, device="cuda")
    found.backward(factors)
    wanted.backward(factors.cpu().double())
    everything = [found, *(x.grad for x in ours)]
    for mine, exact in zip(everything, [wanted, *(x.grad for x in wide)], strict=True):
        assert_near(mine, exact, SLACK[dtype])
    return everything


def operands(batch: int, heads: int, shared: int, queries: int, keys: int, width: int, values: int) -> list[Any]:
    shapes = [(heads, queries, width), (shared, keys, width), (shared, keys, values), (heads, queries, values)]
    return [drawn(i, batch, *shape) for i, shape in enumerate(shapes)]


# batch, heads of query, of key, queries, keys, width, width of values
SIZES = [(2, 1, 1, 1, 1, 8, 8), (1, 2, 2, 65, 64, 32, 16), (1, 4, 2, 33, 130, 40, 64), (1, 1, 1, 66, 31, 128, 72)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_it_computes_the_composed_form(sizes: Any, dtype: str, causal: bool) -> None:
    compared(dtype, operands(*sizes), is_causal=causal)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["bool", "padding", "added"])
def test_masks(kind: str, dtype: str) -> None:
    """A query that sees nothing gives 0, and so do its gradients; masks are read by their strides."""
    arrays = operands(2, 2, 1, 35, 70, 16, 24)
    seen = drawn(9, 1, 2, 35, 70) > 0.3
    seen[..., 3, :] = False
    if kind == "bool":
        mask = norch.tensor(seen)
    elif kind == "padding":
        mask = norch.tensor(np.arange(70) < np.array([50, 0])[:, None]).reshape(2, 1, 1, 70)
    else:
        mask = norch.tensor(np.where(seen, drawn(8, *seen.shape), -np.inf))[0, 0]
    found, *_ = compared(dtype, arrays, mask)
    nothing = found[1] if kind == "padding" else found[:, 0, 3]
    assert not nothing.any() and found.any()


def test_views_of_one_projection() -> None:
    """Query, key and value as a model makes them: no copies, and gradients that lie as they do."""
    x = norch.tensor(drawn(0, 2, 37, 3 * 2 * 16), dtype=norch.float32, device="cuda")
    views = [part.unflatten(-1, (2, 16)).transpose(1, 2) for part in x.split(32, -1)]
    found = F.scaled_dot_product_attention(*views, is_causal=True)
    assert found.transpose(1, 2).is_contiguous()
    wide = [view.cpu().double() for view in views]
    assert_near(found, _composed(*wide, 0.25, True), SLACK["float32"])
    odd = norch.tensor(drawn(0, 1 + 3 * 5 * 8), dtype=norch.float32, device="cuda")[1:].view(3, 5, 8)
    wanted = _composed(*odd.cpu().double(), 0.5, False)  # not at 16 bytes: copied
    assert_near(F.scaled_dot_product_attention(*odd, scale=0.5), wanted, SLACK["float32"])


@pytest.mark.parametrize(
    "sizes", [(1, 4, 2, 20, 40, 256, 200), (1, 1, 1, 70, 33, 200, 256)], ids=["one block", "some blocks"]
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_widest(dtype: str, sizes: Any) -> None:
    compared(dtype, operands(*sizes), is_causal=True)


def test_the_widest_with_a_mask_and_long_sums() -> None:
    """Keys that a block of queries does not see; sums of 256 products, which tensor cores cut."""
    mask = norch.tensor(drawn(9, 2, 1, 40) > 0.5)
    mask[0] = False
    compared("float32", operands(1, 2, 2, 5, 40, 256, 136), mask)
    compared("float32", operands(1, 1, 1, 5, 80, 256, 256))


@pytest.mark.parametrize("dtype, width, values", [("float32", 9, 131), ("float16", 12, 3), ("bfloat16", 100, 100)])
def test_widths_of_no_whole_pieces(dtype: str, width: int, values: int) -> None:
    found, *grads = compared(dtype, operands(1, 2, 1, 5, 7, width, values), is_causal=True)
    assert [x.shape[-1] for x in (found, *grads)] == [values, width, width, values]


MASKS = [(5, 7), (1, 7), (5, 1), (1, 1), (7,), (2, 1, 1, 7), (1, 2, 5, 7), (2, 2, 5, 1), (2, 1, 7)]


@pytest.mark.parametrize("shape", MASKS, ids=str)
def test_masks_are_read_as_they_broadcast(shape: Any) -> None:
    """The same bits as from a mask of all elements, of rows that lie apart, too."""
    arrays = operands(2, 2, 2, 5, 7, 8, 8)
    for dtype, mask in (
        ("float16", norch.tensor(drawn(4, *shape) > -0.5)),
        ("float32", norch.tensor(drawn(4, *shape[:-1], 2 * shape[-1]))[..., ::2]),
    ):
        found = compared(dtype, arrays, mask)
        for a, b in zip(found, compared(dtype, arrays, mask.expand(2, 2, 5, 7).contiguous()), strict=True):
            assert (a == b).all()


@pytest.mark.parametrize("shapes", [((2, 3), (1, 3)), ((2, 3), (2, 1)), ((1, 3), (2, 1)), ((2, 3), ())], ids=str)
def test_leading_axes_broadcast(shapes: Any) -> None:
    query, key = ((*lead, rows, 8) for lead, rows in zip(shapes, (5, 7)))
    arrays = drawn(0, *query), drawn(1, *key), drawn(2, *key), drawn(3, 2, 3, 5, 8)
    compared("float32", arrays)
    compared("float32", arrays, norch.tensor(drawn(4, 2, 1, 1, 7) > 0))


def test_a_mask_adds_leading_axes() -> None:
    found, *_ = compared("float32", [*operands(1, 1, 1, 5, 7, 8, 8)[:3], drawn(3, 2, 3, 5, 8)], norch.ones(2, 3, 5, 7))
    assert found.shape == (2, 3, 5, 8)


@pytest.mark.parametrize("scale", [-0.5, 0.0])
def test_scales_that_are_not_positive(scale: float) -> None:
    compared("float32", operands(1, 2, 1, 5, 7, 8, 8), scale=scale)
    compared("float32", operands(1, 2, 2, 5, 7, 8, 8), scale=scale, is_causal=True)


def test_masks_of_another_dtype() -> None:
    """They are added in the dtype of query, on the CPU as here."""
    q, k, v, _ = (norch.tensor(x, device="cuda").bfloat16() for x in operands(1, 2, 2, 5, 7, 8, 8))
    mask = norch.tensor(drawn(4, 5, 7), dtype=norch.float32, device="cuda")
    found = F.scaled_dot_product_attention(q, k, v, mask)
    assert found.dtype is norch.bfloat16
    assert (found == F.scaled_dot_product_attention(q, k, v, mask.bfloat16())).all()
    assert_near(found, F.scaled_dot_product_attention(*(x.cpu() for x in (q, k, v, mask))), SLACK["bfloat16"])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_masks_that_are_not_finite(dtype: str) -> None:
    """A row of a NaN, or of an infinity that is added, is NaN, as on the CPU; the other rows are not."""
    q, k, v, _ = (norch.tensor(x, dtype=getattr(norch, dtype)) for x in operands(1, 1, 1, 6, 7, 8, 8))
    mask = norch.zeros(6, 7, dtype=q.dtype)
    mask[1, 2], mask[2, 3], mask[3, 4], mask[4] = math.nan, math.inf, -math.inf, -math.inf
    wanted = F.scaled_dot_product_attention(q, k, v, mask)
    found = F.scaled_dot_product_attention(q.cuda(), k.cuda(), v.cuda(), mask.cuda()).cpu()
    assert found.isnan().any(-1).tolist() == wanted.isnan().any(-1).tolist() == [[[False, True, True] + [False] * 3]]
    assert not found[..., 4, :].any()


@pytest.mark.parametrize("at", [(0, 2), (1, 2), (2, 2)], ids=["no batch", "no heads", "no queries"])
def test_empty_axes(at: tuple[int, int]) -> None:
    sizes = [2, 2, 5, 7]
    sizes[at[0]] = 0
    batch, heads, queries, keys = sizes
    for keys in (7, 0):
        arrays = operands(batch, heads, heads, queries, keys, 8, 8)
        ours = [norch.tensor(x, dtype=norch.float32, device="cuda", requires_grad=True) for x in arrays[:3]]
        mask = norch.ones(queries, keys, dtype=norch.bool, device="cuda")
        out = F.scaled_dot_product_attention(*ours, mask)
        assert out.shape == arrays[3].shape
        out.sum().backward()
        assert all(x.grad.shape == x.shape and not x.grad.any() for x in ours)


def test_no_keys_give_zeros() -> None:
    q, k, v, _ = (norch.tensor(x, dtype=norch.float32) for x in operands(1, 2, 2, 5, 0, 8, 8))
    for causal in (False, True):
        found = F.scaled_dot_product_attention(q.cuda(), k.cuda(), v.cuda(), is_causal=causal)
        assert found.shape == (1, 2, 5, 8) and not found.any()


@pytest.mark.parametrize("rows, width, causal", [(70, 8, False), (70, 8, True), (40, 136, False)])
def test_what_is_not_finite_gives_what_ieee_says(rows: int, width: int, causal: bool) -> None:
    """3xTF32 makes NaN of infinities and of what rounds to one; those blocks are computed once more."""

    q, k, v, g = (drawn(i, rows, width).astype("float32") for i in range(4))
    q, g = np.abs(q), g * np.float32(1e-3)
    k[2, 0] = -np.inf  # takes no part
    largest = np.float32(3.4028e38)
    cases = ((0, 5, np.nan), (2, 1, np.inf), (2, rows - 4, largest), (1, 30, -largest), (3, rows - 30, -np.inf))
    for which, row, number in cases if width == 8 else cases[2:4]:
        given = [x.copy() for x in (q, k, v, g)]
        given[which][row, 3] = number
        ours, wide = leaves("float32", *given)
        found = F.scaled_dot_product_attention(*ours[:3], scale=0.5, is_causal=causal)
        wanted = _composed(*wide[:3], 0.5, causal)
        found.backward(ours[3].detach())
        wanted.backward(wide[3].detach())
        for a, b in zip([found, *(x.grad for x in ours[:3])], [wanted, *(x.grad for x in wide[:3])]):
            a, b = a.detach().cpu().numpy(), b.detach().numpy().astype("float32")
            if causal:  # the composed form multiplies what a query does not see by 0
                assert not (np.isnan(a) & ~np.isnan(b)).any()
            else:
                np.testing.assert_array_equal(np.isnan(a), np.isnan(b), str((which, number)))
                np.testing.assert_array_equal(np.isinf(a), np.isinf(b), str((which, number)))


@pytest.mark.parametrize(
    "dtype, keys, width", [("float32", 64, 16), ("float32", 67, 16), ("bfloat16", 67, 16), ("float32", 21, 136)]
)
def test_dropout(dtype: str, keys: int, width: int) -> None:
    """The weights that are dropped are those that the stream of the seed says, forward and backward."""
    q, k, v, g = operands(1, 2, 1, 40, keys, width, 16)
    ours, wide = leaves(dtype, q, k, v)
    norch.manual_seed(3)
    found = F.scaled_dot_product_attention(*ours, dropout_p=0.25, is_causal=True, enable_gqa=True)
    norch.manual_seed(3)
    again = F.scaled_dot_product_attention(*ours, dropout_p=0.25, is_causal=True, enable_gqa=True)
    assert found.tolist() == again.tolist()
    seed = next(x for x in found._node._saved if isinstance(x, norch.Tensor) and x.dtype is norch.int64)
    wanted = _grouped(*wide, width**-0.5, True, None, 0.25, seed.cpu())
    whole = F.scaled_dot_product_attention(*ours, is_causal=True, enable_gqa=True)
    assert (found - whole).abs().amax() > 0.1
    factors = norch.tensor(g, dtype=found.dtype, device="cuda")
    found.backward(factors)
    wanted.backward(factors.cpu().double())
    for mine, exact in zip([found, *(x.grad for x in ours)], [wanted, *(x.grad for x in wide)]):
        assert_near(mine, exact, SLACK[dtype])
    assert not F.scaled_dot_product_attention(*ours, dropout_p=1.0, enable_gqa=True).any()


@pytest.mark.parametrize("keys", [7, 64, 130])
def test_dropout_is_that_of_the_cpu(keys: int) -> None:
    """The same seed drops the same weights, with a mask and without."""
    arrays = [norch.tensor(x, dtype=norch.float32) for x in operands(2, 2, 2, 9, keys, 8, 8)[:3]]
    for mask in (None, norch.tensor(drawn(9, 9, keys) > 0)):
        norch.manual_seed(5)
        wanted = F.scaled_dot_product_attention(*arrays, attn_mask=mask, dropout_p=0.4)
        norch.manual_seed(5)
        on_device = None if mask is None else mask.cuda()
        found = F.scaled_dot_product_attention(*(x.cuda() for x in arrays), attn_mask=on_device, dropout_p=0.4)
        assert_near(found, wanted, SLACK["float32"])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_dropout_drops_the_same_weights_in_both_passes(dtype: str) -> None:
    """Of equal scores: values of an identity show the weights, and so does the gradient of values."""
    like = {"dtype": getattr(norch, dtype), "device": "cuda"}
    zeros, eye = norch.zeros(2, 64, 8, **like), norch.eye(64, **like).expand(2, 64, 64)
    value = eye.clone().requires_grad_()
    norch.manual_seed(0)
    weights = F.scaled_dot_product_attention(zeros, zeros, value, norch.ones(64, 64, device="cuda") > 0, 0.25)
    weights.backward(eye)
    assert (weights.mT == value.grad).all()
    kept = weights[weights != 0]
    assert abs(kept.numel() / weights.numel() - 0.75) < 0.02
    assert_near(kept, norch.full_like(kept, 1 / (64 * 0.75)), SLACK[dtype])


@pytest.mark.skipif(not SIMULATION, reason="the simulation counts launches")
@pytest.mark.parametrize(
    "dtype, width, forward, backward",
    [("bfloat16", 16, 1, 2), ("float16", 256, 1, 3), ("float32", 16, 2, 4), ("float32", 200, 2, 6)],
)
def test_masks_and_dropout_take_no_launches(dtype: str, width: int, forward: int, backward: int) -> None:
    """Nor do heads that share keys: all are read as they lie. Wide gradients of keys and values take a kernel each,
    and each kernel of 3xTF32 a second one, for blocks that met a NaN."""
    q, k, v, g = (
        norch.tensor(x, dtype=getattr(norch, dtype), device="cuda", requires_grad=True)
        for x in operands(2, 4, 2, 5, 7, width, width)
    )
    mask = norch.ones(2, 1, 1, 7, dtype=norch.bool, device="cuda")
    simulation = ctypes.CDLL(os.environ["NORCH_CUDA_LIBRARY"])
    simulation.cudasim_fail.argtypes, simulation.cudasim_fail.restype = [ctypes.c_int, ctypes.c_int64], ctypes.c_int64
    for options, more in ({}, 0), ({"attn_mask": mask}, 0), ({"attn_mask": mask.to(q.dtype), "dropout_p": 0.5}, 1):
        simulation.cudasim_fail(1, -1)
        out = F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)
        assert simulation.cudasim_fail(1, -1) == forward + more  # the seed
        norch.autograd.grad(out, (q, k, v), g)
        assert simulation.cudasim_fail(1, -1) == backward


def test_captured_dropout_draws_as_it_does_eagerly() -> None:
    x = norch.tensor(drawn(0, 2, 9, 8), dtype=norch.float32, device="cuda", requires_grad=True)

    def step(x: Any) -> Any:
        out = F.scaled_dot_product_attention(x, x, x, dropout_p=0.5, is_causal=True)
        (grad,) = norch.autograd.grad(out.square().sum(), x)
        return out.detach(), grad

    def runs(function: Any) -> list[Any]:
        norch.manual_seed(4)
        return [[part.tolist() for part in function(x)] for _ in range(5)]

    eager = runs(step)
    assert eager[0] != eager[1]
    assert runs(norch.capture(step)) == eager


def test_second_derivatives() -> None:
    def second(q: Any, k: Any, v: Any, attend: Any) -> list[Any]:
        (by_q,) = norch.autograd.grad(attend(q, k, v).sin().sum(), q, create_graph=True)
        return list(norch.autograd.grad(by_q.square().sum(), (q, k, v)))

    ours, wide = leaves("float32", *operands(1, 2, 1, 9, 7, 8, 8)[:3])
    mask = norch.tensor(drawn(5, 9, 7) > 0)
    mask[:, 0] = True
    norch.manual_seed(1)
    found = second(*ours, lambda *x: F.scaled_dot_product_attention(*x, mask.cuda(), 0.3, enable_gqa=True))
    norch.manual_seed(1)
    seed = norch.randint(0, 2**63 - 1, (1,), device="cuda")
    wanted = second(*wide, lambda *x: _grouped(*x, 8**-0.5, False, mask, 0.3, seed.cpu()))
    for mine, exact in zip(found, wanted):
        assert_near(mine, exact, 2e-5)


def test_equal_inputs_give_equal_bits() -> None:
    arrays = operands(1, 4, 2, 70, 70, 16, 16)
    first, second = (compared("float32", arrays, is_causal=True) for _ in range(2))
    assert all((a == b).all() for a, b in zip(first, second))


@pytest.mark.parametrize("case", ["wide", "added mask that learns"])
def test_what_falls_back(case: str) -> None:
    arrays = operands(1, 2, 2, 6, 5, 260 if case == "wide" else 8, 8)
    q, k, v = (norch.tensor(x, dtype=norch.float32, device="cuda", requires_grad=True) for x in arrays[:3])
    mask = norch.zeros(6, 5, device="cuda", requires_grad=True) if case == "added mask that learns" else None
    out = F.scaled_dot_product_attention(q, k, v, mask, scale=0.5)
    assert not is_fused(out)
    out.sum().backward()
    assert mask is None or mask.grad is not None
    assert_near(out, _composed(*(x.detach().cpu().double() for x in (q, k, v)), 0.5, False), SLACK["float32"])


def test_bad_input() -> None:
    x = norch.ones(2, 3, 8, device="cuda")
    wrong = [
        ((x, x[:, :, :4].contiguous(), x, None, None, None), "sizes 8 and 4 of queries and keys"),
        ((x, x, x.half(), None, None, None), "the value is float16"),
        ((x, x[:1].expand(3, 3, 8), x, None, None, None), "2 heads of query cannot share 3|value of shape"),
        ((x, x, x, norch.ones(3, 3, device="cuda"), None, None), "a mask of shape"),
        ((x, x, x, None, norch.ones(1), None), "the seed is one int64"),
        ((x, x, x, None, None, norch.ones(2, 4, device="cuda")), "logsumexp is float32 of shape"),
        ((x.double(), x.double(), x.double(), None, None, None), "no kernel on cuda:0 for float64"),
        ((x.cpu(), x, x, None, None, None), "no kernel on cpu|tensors on"),
        ((x[:, :, :5], x[:, :, :5], x, None, None, None), "rows of 5 and 8 float32 are not whole pieces of 16 bytes"),
    ]
    for arguments, message in wrong:
        with pytest.raises(norch.Error, match=message):
            lib.norch_attention_fused(*arguments, 1.0, False, 0.0)
    with pytest.raises(norch.Error, match="probability 1.5"):
        lib.norch_attention_fused(x, x, x, None, None, None, 1.0, False, 1.5)
    rows, grads = norch.empty(2, 2, 3, device="cuda"), [norch.empty(2, 3, 4, device="cuda")] * 3
    with pytest.raises(norch.Error, match="does not fit into shape"):
        lib.norch_attention_fused_backward(x, x, x, x, x, rows, None, None, 1.0, False, 0.0, grads)
