"""The kernels of attention against their composed form in float64: layouts, sizes, causal or not, masks, dropout,
derivatives of derivatives, memory that runs out, and threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from checks import refusals
from conftest import DEVICE

import norch
import norch.nn.functional as F
from norch._binding.library import lib
from norch.ops.attention import _composed, _grouped
from norch.testing import assert_close, gradgradcheck

pytestmark = pytest.mark.kernel

# leading axes, queries, keys, width, width of values
SIZES = [
    ((), 1, 1, 1, 1),
    ((2, 3), 64, 64, 16, 16),
    ((2,), 7, 150, 9, 33),
    ((3,), 150, 7, 40, 1),
    ((1, 2), 130, 131, 5, 17),
]


def drawn(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def laid(array: Any, layout: str) -> Any:
    """The array as a leaf: in C order, with its rows apart as heads lie, its columns contiguous, or its samples in
    reverse order."""
    if layout == "heads" and array.ndim > 2:
        x = norch.tensor(np.ascontiguousarray(np.swapaxes(array, -2, -3))).transpose(-2, -3)
    elif layout == "columns":
        x = norch.tensor(np.ascontiguousarray(np.swapaxes(array, -2, -1))).mT
    elif layout == "reversed":
        x = norch.tensor(np.ascontiguousarray(array[::-1]))[::-1]
    else:
        x = norch.tensor(array)
    return x.detach().requires_grad_()


@pytest.mark.parametrize("layout", ["rows", "heads", "columns", "reversed"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_kernel_computes_the_composed_form(sizes: Any, dtype: str, causal: bool, layout: str) -> None:
    lead, queries, keys, width, values = sizes
    shapes = [(*lead, queries, width), (*lead, keys, width), (*lead, keys, values), (*lead, queries, values)]
    q, k, v, g = (drawn(i, *shape).astype(dtype) for i, shape in enumerate(shapes))
    ours = [laid(one, layout) for one in (q, k, v)]
    wide = [norch.tensor(one.astype(np.float64), requires_grad=True) for one in (q, k, v)]
    found = F.scaled_dot_product_attention(*ours, is_causal=causal, scale=0.4)
    wanted = _composed(*wide, 0.4, causal)
    padded = found.is_cuda and type(found._node).__name__ == "Region"  # rows of bytes that are no multiple of 16
    assert padded or type(found._node).__name__ == "Attention"
    if layout == "heads" and len(lead) > 0 and not padded:
        # the result, and each gradient, lies as the tensor beside it
        assert found.transpose(-2, -3).is_contiguous()
    found.backward(laid(g, layout).detach())
    wanted.backward(norch.tensor(g.astype(np.float64)))
    slack = 2e-5 if dtype == "float32" else 1e-12
    assert_close(found.double(), wanted, rtol=slack, atol=slack)
    for mine, exact in zip(ours, wide):
        assert_close(mine.grad.double(), exact.grad, rtol=slack, atol=slack * (1 + float(exact.grad.abs().amax())))


@pytest.mark.parametrize("causal", [False, True])
def test_derivatives_of_derivatives(causal: bool) -> None:
    inputs = [norch.tensor(drawn(i, 2, n, 3), requires_grad=True) for i, n in enumerate((3, 4, 4))]
    assert gradgradcheck(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), inputs)


@pytest.mark.parametrize("number", [-1e5, -1e30])
def test_a_mask_of_a_wider_dtype_stays_finite(number: float) -> None:
    q, v = norch.tensor(drawn(0, 3, 4)).half(), norch.tensor([[0.0], [3.0], [6.0]]).half()
    mask = norch.tensor([[number] * 3, [0.0, number, number], [-math.inf] * 3])
    out = F.scaled_dot_product_attention(q, q, v, attn_mask=mask)
    assert out.dtype is norch.float16 and out[1:].flatten().tolist() == [0, 0]
    assert abs(out[0].item() - 3) < 0.5  # -65504, to which the scores are added in float32 on a device


@pytest.mark.parametrize("number", [-1e4, -1e9, norch.finfo(norch.float32).min])
def test_gradients_of_rows_that_a_finite_mask_hides(number: float) -> None:
    """The scores of a row are then equal, or nearly (PyTorch 2.13 on CPUs has another gradient)."""
    hidden = norch.zeros(6, 6)
    hidden[:2] = hidden[3, 4:] = number
    q, k, v = ours = [norch.tensor(drawn(i, 2, 6, 8)).float().requires_grad_() for i in range(3)]
    wide = [x.detach().requires_grad_() for x in ours]
    g = norch.tensor(drawn(3, 2, 6, 8)).float()
    F.scaled_dot_product_attention(*ours, attn_mask=hidden).backward(g)
    (((wide[0] @ wide[1].mT) / 8**0.5 + hidden).softmax(-1) @ wide[2]).backward(g)
    for mine, wanted in zip((q, k, v), wide):
        assert_close(mine.grad, wanted.grad, rtol=1e-4, atol=1e-5)


def test_what_is_not_finite() -> None:
    """A row of scores with a NaN is NaN, and no other; a score of -infinity takes no part."""
    q, k, v = (norch.tensor(drawn(i, 20, 4)) for i in range(3))
    q[3, 0] = norch.nan
    out = F.scaled_dot_product_attention(q, k, v)
    assert out.isnan().any(1).nonzero().flatten().tolist() == [3]
    assert F.scaled_dot_product_attention(q, k, v, is_causal=True)[4:].isfinite().all()
    ones, far = norch.ones(2, 1), norch.tensor([[0.0], [-norch.inf]])
    assert F.scaled_dot_product_attention(ones, far, v[:2].float()).tolist() == [v[0].float().tolist()] * 2


def test_only_what_is_wanted_and_nothing_freed_twice() -> None:
    q, k, v = (norch.tensor(drawn(i, 2, 5, 4), requires_grad=i == 1) for i in range(3))
    out = F.scaled_dot_product_attention(q, k, v)
    out.sum().backward()
    assert q.grad is None and v.grad is None and k.grad is not None
    with pytest.raises(RuntimeError, match="second time"):
        out.sum().backward()


def test_memory_that_runs_out() -> None:
    q, k, v = (norch.tensor(drawn(i, 2, 70, 9), requires_grad=True) for i in range(3))
    assert refusals(lambda: F.scaled_dot_product_attention(q.mT.contiguous().mT, k, v).sum().backward())


def test_what_it_takes() -> None:
    x = norch.ones(2, 3, 4)
    with pytest.raises(TypeError, match="attn_mask: expected a tensor, not float"):
        F.scaled_dot_product_attention(x, x, x, 0.5)
    with pytest.raises(norch.ArgumentError, match="not both"):
        F.scaled_dot_product_attention(x, x, x, norch.ones(3, 3), is_causal=True)
    with pytest.raises(
        norch.DTypeError, match="attention: attn_mask must be of bools or of floats, not of norch.int64"
    ):
        F.scaled_dot_product_attention(x, x, x, norch.ones(3, 3).long())
    assert F.scaled_dot_product_attention(x, x[:1], x[:1], enable_gqa=True).shape == (2, 3, 4)
    for key in (x[:0], norch.ones(3, 3, 4)):
        with pytest.raises(norch.ShapeError, match=f"2 heads of query cannot share {len(key)} of key"):
            F.scaled_dot_product_attention(x, key, key, enable_gqa=True)
    for others in ((x, x[:, :2]), (x.double(), x), (x, x, norch.ones(5, 5))):
        with pytest.raises(norch.Error, match="^scaled_dot_product_attention: "):
            F.scaled_dot_product_attention(x, *others)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((norch.ones(2, 3), norch.ones(4, 2), norch.ones(4, 2)), "sizes 3 and 2 of queries and keys"),
        ((norch.ones(2, 3), norch.ones(4, 3), norch.ones(5, 2)), "4 keys and 5 values"),
        ((norch.ones(2, 3), norch.ones(1, 4, 3), norch.ones(4, 3)), r"key of shape \(1, 4, 3\)"),
        ((norch.ones(2, 3), norch.ones(4, 3), norch.ones(4, 3).double()), "value is float64"),
    ],
)
def test_bad_input(arguments: Any, message: str) -> None:
    with pytest.raises(norch.Error, match=message):
        lib.norch_attention(*arguments, None, None, 1.0, False, 0.0)
    g, grads = norch.ones(2, 3), [norch.empty(3, 3)] * 3
    with pytest.raises(norch.Error, match="attention_backward: .*does not fit"):
        lib.norch_attention_backward(g, g, g, g, None, None, 1.0, False, 0.0, grads)


def test_dropout_of_weights() -> None:
    norch.manual_seed(0)
    x = norch.zeros(2, 64, 4, requires_grad=True)
    out = norch.nn.functional.scaled_dot_product_attention(x, x, norch.ones(2, 64, 4), dropout_p=0.25)
    assert out.std() > 0.01 and abs(out.mean() - 1) < 0.05 and (out[..., :1] == out).all()
    out.sum().backward()
    assert x.grad is not None and x.grad.isfinite().all()
    assert not norch.nn.functional.scaled_dot_product_attention(x, x, x + 1, dropout_p=1.0).any()


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_rows_that_see_nothing_are_zeros(torch, kind):
    def run(lib):
        q, k, v = (lib.tensor((np.arange(24.0) * f).reshape(1, 6, 4)).cos().requires_grad_() for f in (1, 2, 3))
        mask = lib.ones(6, 6, dtype=lib.bool).tril(-1)
        if kind == "float":
            mask = lib.zeros(6, 6, dtype=lib.float64).masked_fill(~mask, -math.inf).requires_grad_()
        out = lib.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        (out * lib.tensor(np.arange(24.0).reshape(1, 6, 4))).sum().backward()
        given = [x.grad for x in (q, k, v, mask) if x.requires_grad]
        return [x.detach().numpy() for x in (out, *given)]

    for ours, theirs in zip(run(norch), run(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (norch.ones(4, 4), r"a mask of shape \(4, 4\), not \(2, 4, 4\)"),
        (norch.ones(2, 3, 4), r"\(2, 3, 4\).*\(2, 4, 4\)"),
        (norch.ones(1, 4, 4).double(), "a mask of float64 for a query of float32"),
        (norch.ones(1, 4, 4).long(), "a mask of int64"),
    ],
)
def test_bad_masks(mask: Any, message: str) -> None:
    x = norch.ones(2, 4, 3)
    with pytest.raises(norch.Error, match=message if DEVICE == "cpu" else "a mask"):
        lib.norch_attention(x, x, x, mask.to(x.device), None, 1.0, False, 0.0)
    with pytest.raises(norch.Error, match=message if DEVICE == "cpu" else "a mask"):
        lib.norch_attention_backward(x, x, x, x, mask.to(x.device), None, 1.0, False, 0.0, [norch.empty(2, 4, 3)] * 3)


MASKS = {
    "padding": (2, 1, 1, 37), "all": (2, 3, 21, 37), "rows": (21, 37), "queries": (21, 1), "samples": (2, 1, 21, 37),
    "one": (1, 1), "keys": (37,),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("dtype", [norch.float32, norch.float64])
def test_masks_are_those_of_products(name, kind, dtype):
    """The kernel and the products and the softmax that it stands for."""
    norch.manual_seed(1)
    q, k, v = (norch.randn(2, 3, n, 20, dtype=dtype) for n in (21, 37, 37))
    mask = norch.randn(MASKS[name], dtype=dtype)
    mask = mask > 0 if kind == "bool" else mask.masked_fill(mask > 0.5, -math.inf)
    if name in ("all", "rows"):
        mask[..., 3, :] = False if kind == "bool" else -math.inf
        v[..., 5, :] = 1.0
    found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.3)
    inputs, exact = [x.requires_grad_() for x in (q, k, v)], [x.detach().double().requires_grad_() for x in (q, k, v)]
    wanted = _composed(*exact, 0.3, False, mask if kind == "bool" else mask.double())
    assert_close(found.double(), wanted.detach(), rtol=1e-4, atol=1e-5)
    graph, g = F.scaled_dot_product_attention(*inputs, attn_mask=mask, scale=0.3), norch.randn(found.shape, dtype=dtype)
    assert graph.tolist() == found.tolist()
    assert DEVICE != "cpu" or type(graph._node).__name__ == "Attention"
    for mine, theirs in zip(norch.autograd.grad(graph, inputs, g), norch.autograd.grad(wanted, exact, g.double())):
        assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-5)
    q, k, v = (x.detach() for x in inputs)
    assert name not in ("all", "rows") or not found[..., 3, :].any()
    if mask.ndim > 1:
        turned = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.mT.contiguous().mT, scale=0.3)
        assert_close(turned, found, rtol=1e-5, atol=1e-6)
    given = mask if mask.ndim == 4 else mask.expand(2, *mask.shape)
    each = norch.vmap(lambda *x: F.scaled_dot_product_attention(*x, scale=0.3))(q, k, v, given)
    assert_close(each, found, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(DEVICE != "cpu", reason="the CPU's kernel")
def test_what_a_mask_hides():
    """Values that are not finite do not pass a mask of bools, nor into rows that see nothing."""
    q, k, v = norch.randn(6, 8), norch.randn(9, 8), norch.randn(9, 8)
    mask = norch.ones(6, 9, dtype=norch.bool)
    mask[:, 4], mask[2] = False, False
    plain = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    k[4], v[7] = norch.nan, norch.inf
    found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert not found[2].any() and not plain[2].any()
    assert found[0].isinf().all() and not plain.isnan().any()
    added = norch.zeros(6, 9).masked_fill(~mask, -norch.inf)
    assert F.scaled_dot_product_attention(q, k, v, attn_mask=added)[0].isnan().all()  # NaN - inf


@pytest.mark.parametrize("query, mask", [("bfloat16", "float32"), ("float64", "float32")])
def test_masks_of_another_dtype_are_added_in_that_of_query(torch, query, mask):
    def run(lib):
        q, k, v = (lib.tensor((np.arange(24.0) * f).reshape(1, 6, 4)).cos().to(getattr(lib, query)) for f in (1, 2, 3))
        added = lib.tensor(np.arange(36.0).reshape(6, 6)).sin().to(getattr(lib, mask)).requires_grad_()
        out = lib.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=added)
        assert out.dtype is q.dtype
        out.sum().backward()
        assert added.grad.dtype is added.dtype
        return out.detach().to(lib.float64).numpy()

    np.testing.assert_allclose(run(norch), run(torch), atol=0.02 if query == "bfloat16" else 1e-6)


@pytest.mark.parametrize("width", [8, 16, 20, 32, 48])
@pytest.mark.parametrize("beside", [0, 5, 16])
def test_heads_that_lie_apart_give_the_same_bits(width, beside):
    """Parts of a projection are read where they lie, if they lie well, and else packed."""
    wide = norch.randn(2, 40, 3 * 2 * width + beside)
    grad = norch.randn(2, 2, 40, width)
    found = []
    for dense in (False, True):
        parts = wide[:, :, : 6 * width].split(2 * width, -1)
        q, k, v = [part.reshape(2, 40, 2, width).transpose(1, 2).detach() for part in parts]
        heads = [(x.contiguous() if dense else x).requires_grad_() for x in (q, k, v)]
        out = F.scaled_dot_product_attention(*heads, is_causal=True)
        out.backward(grad)
        found.append([out.tolist(), *(x.grad.tolist() for x in heads)])
    assert found[0] == found[1]


# ---- dropout --------------------------------------------------------------------------------------------------------


def seed_of(out: Any) -> Any:
    """The seed of the numbers that made out, which its node saved."""
    return next(x for x in out._node._saved if isinstance(x, norch.Tensor) and x.dtype is norch.int64)


@pytest.mark.skipif(DEVICE != "cpu", reason="the CPU's kernel: test_cuda_attention has the other")
@pytest.mark.parametrize("mask", [None, "causal", "bool", "float"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_dropout_drops_what_the_stream_of_the_seed_says(sizes: Any, dtype: str, mask: str | None) -> None:
    """As the composed form of the same numbers, which CUDA's kernels are tested against, too."""
    lead, queries, keys, width, values = sizes
    shapes = [(*lead, queries, width), (*lead, keys, width), (*lead, keys, values), (*lead, queries, values)]
    *arrays, g = (norch.tensor(drawn(i, *shape)).to(getattr(norch, dtype)) for i, shape in enumerate(shapes))
    inputs, exact = [x.requires_grad_() for x in arrays], [x.detach().double().requires_grad_() for x in arrays]
    seen = norch.tensor(drawn(9, queries, keys) > -0.3)
    added = None if mask in (None, "causal") else seen if mask == "bool" else seen.to(g.dtype).log()
    causal = mask == "causal"
    norch.manual_seed(1)
    found = F.scaled_dot_product_attention(*inputs, attn_mask=added, dropout_p=0.3, is_causal=causal)
    seed = seed_of(found)
    wide = added if added is None or mask == "bool" else added.double()
    wanted = _grouped(*exact, width**-0.5, causal, wide, 0.3, seed)
    slack = 2e-5 if dtype == "float32" else 1e-12
    assert_close(found.double(), wanted, rtol=slack, atol=slack)
    for mine, theirs in zip(norch.autograd.grad(found, inputs, g), norch.autograd.grad(wanted, exact, g.double())):
        assert_close(mine.double(), theirs, rtol=slack, atol=slack * (1 + float(theirs.abs().amax())))
    with norch.no_grad():
        norch.manual_seed(1)
        again = F.scaled_dot_product_attention(*inputs, attn_mask=added, dropout_p=0.3, is_causal=causal)
    assert again.tolist() == found.tolist()


def test_threads_draw_the_same_numbers() -> None:
    inputs = [norch.tensor(drawn(i, 2, 3, 130, 32)).float().requires_grad_() for i in range(3)]
    mask = norch.tensor(drawn(5, 2, 1, 1, 130) > -1)
    before, found = norch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            norch.set_num_threads(threads)
            norch.manual_seed(2)
            out = F.scaled_dot_product_attention(*inputs, attn_mask=mask, dropout_p=0.4)
            found.append([x.tolist() for x in (out, *norch.autograd.grad(out.square().sum(), inputs))])
    finally:
        norch.set_num_threads(before)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("second", [False, True])
def test_captured_dropout_draws_as_it_does_eagerly(second: bool) -> None:
    x = norch.tensor(drawn(0, 2, 9, 8), requires_grad=True)

    def step(x: Any) -> Any:
        out = F.scaled_dot_product_attention(x, x, x, attn_mask=norch.ones(9, 9, dtype=norch.bool), dropout_p=0.5)
        (grad,) = norch.autograd.grad(out.square().sum(), x, create_graph=second)
        return out.detach(), norch.autograd.grad(grad.square().sum(), x)[0] if second else grad

    def runs(function: Any) -> list[Any]:
        norch.manual_seed(4)
        return [[part.tolist() for part in function(x)] for _ in range(6)]

    eager = runs(step)
    assert eager[0] != eager[1]
    captured = norch.capture(step)
    assert runs(captured) == eager
    assert captured.program is not None


def test_second_derivatives_of_dropout() -> None:
    """The numbers are those of the first pass."""
    inputs = [norch.tensor(drawn(i, 2, n, 3), requires_grad=True) for i, n in enumerate((3, 4, 4))]
    mask = norch.tensor(drawn(8, 3, 4) > -1)

    def attend(q: Any, k: Any, v: Any) -> Any:
        norch.manual_seed(3)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.4)

    assert gradgradcheck(attend, inputs)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_vmap_of_dropout(randomness: str) -> None:
    q, k, v = (norch.tensor(drawn(i, 3, 2, 6, 4)) for i in range(3))

    def attend(*x: Any) -> Any:
        return F.scaled_dot_product_attention(*x, dropout_p=0.5).sum()

    for function in (attend, norch.func.grad(attend)):
        equal = [x[:1].expand(3, 2, 6, 4) for x in (q, k, v)]
        found = norch.vmap(function, randomness=randomness)(*equal)
        assert found.shape[0] == 3
        assert (found[0] == found[1]).all() == (randomness == "same")


def test_gradients_in_batches_drop_the_same_weights() -> None:
    q, k, v = (norch.tensor(drawn(i, 2, 6, 4), requires_grad=True) for i in range(3))
    out = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    g = norch.tensor(drawn(4, 3, 2, 6, 4))
    batched = norch.autograd.grad(out, (q, k, v), g, is_grads_batched=True, retain_graph=True)
    each = [norch.autograd.grad(out, (q, k, v), one, retain_graph=True) for one in g]
    for i, one in enumerate(batched):
        assert_close(one, norch.stack([grads[i] for grads in each]))


def test_bad_dropout() -> None:
    x = norch.ones(2, 4, 3)
    for seed, p in ((norch.ones(1), 0.5), (norch.ones(2).long(), 0.5), (None, 1.5), (None, math.nan)):
        with pytest.raises(norch.Error, match="seed is one int64|probability|for the CPU"):
            lib.norch_attention(x, x, x, None, seed, 1.0, False, p)
