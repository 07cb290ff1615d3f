"""The fused kernels of attention against the composed form in float64: tiles that sizes straddle, layouts, masks, heads
that share keys, dropout, and what is not finite."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import norch
import norch.nn.functional as F
from norch import cuda
from norch._lib import lib
from norch.ops.attention import _composed, _grouped

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


def compared(dtype: str, arrays: Any, mask: Any = None, **options: Any) -> list[Any]:
    """Result and gradients on the device, each near those of the composed form."""
    *arrays, g = arrays
    ours, wide = leaves(dtype, *arrays)
    heads, shared = (x.shape[1] if x.ndim == 4 else 1 for x in (wide[0], wide[1]))
    key, value = (x.repeat_interleave(heads // shared, -3) if heads != shared else x for x in wide[1:])
    on_device = None if mask is None else mask.to("cuda", norch.bool if mask.dtype is norch.bool else ours[0].dtype)
    seen = mask if mask is None or mask.dtype is norch.bool else on_device.cpu().double()
    scale, causal = options.get("scale", 1 / math.sqrt(arrays[0].shape[-1])), options.get("is_causal", False)
    wanted = _composed(wide[0], key, value, scale, causal, seen)
    found = F.scaled_dot_product_attention(*ours, attn_mask=on_device, enable_gqa=heads != shared, **options)
    assert "logsumexp" in found._node.save_plan.others
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


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_widest(dtype: str) -> None:
    compared(dtype, operands(1, 2, 1, 20, 40, 256, 200), is_causal=True)


@pytest.mark.parametrize("causal", [False, True])
def test_what_is_not_finite_gives_what_ieee_says(causal: bool) -> None:
    """3xTF32 makes NaN of infinities and of what rounds to one; those blocks are computed once more."""

    q, k, v, g = (drawn(i, 70, 8).astype("float32") for i in range(4))
    q, g = np.abs(q), g * np.float32(1e-3)
    k[2, 0] = -np.inf  # takes no part
    largest = np.float32(3.4028e38)
    for which, row, number in ((0, 5, np.nan), (2, 1, np.inf), (2, 66, largest), (1, 30, -largest), (3, 40, -np.inf)):
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


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("keys", [64, 67])
def test_dropout(keys: int, dtype: str) -> None:
    """The weights that are dropped are those that the stream of the seed says, forward and backward."""
    q, k, v, g = operands(1, 2, 1, 40, keys, 16, 16)
    ours, wide = leaves(dtype, q, k, v)
    norch.manual_seed(3)
    found = F.scaled_dot_product_attention(*ours, dropout_p=0.25, is_causal=True, enable_gqa=True)
    norch.manual_seed(3)
    again = F.scaled_dot_product_attention(*ours, dropout_p=0.25, is_causal=True, enable_gqa=True)
    assert found.tolist() == again.tolist()
    seed = next(x for x in found._node._saved if isinstance(x, norch.Tensor) and x.dtype is norch.int64)
    wanted = _grouped(*wide, 0.25, True, None, 0.25, seed.cpu())
    whole = F.scaled_dot_product_attention(*ours, is_causal=True, enable_gqa=True)
    assert (found - whole).abs().amax() > 0.1
    factors = norch.tensor(g, dtype=found.dtype, device="cuda")
    found.backward(factors)
    wanted.backward(factors.cpu().double())
    for mine, exact in zip([found, *(x.grad for x in ours)], [wanted, *(x.grad for x in wide)]):
        assert_near(mine, exact, SLACK[dtype])
    assert not F.scaled_dot_product_attention(*ours, dropout_p=1.0, enable_gqa=True).any()


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


@pytest.mark.parametrize("case", ["odd width", "wide", "added mask that learns", "scale"])
def test_what_falls_back(case: str) -> None:
    width = {"odd width": 9, "wide": 160}.get(case, 8)
    arrays = operands(1, 2, 2, 6, 5, width, 8)
    q, k, v = (norch.tensor(x, dtype=norch.float32, device="cuda", requires_grad=True) for x in arrays[:3])
    mask = norch.zeros(6, 5, device="cuda", requires_grad=True) if case == "added mask that learns" else None
    scale = -0.5 if case == "scale" else 0.5
    out = F.scaled_dot_product_attention(q, k, v, mask, scale=scale)
    plan = getattr(out._node, "save_plan", None)
    assert plan is None or "logsumexp" not in plan.others
    out.sum().backward()
    assert mask is None or mask.grad is not None
    assert_near(out, _composed(*(x.detach().cpu().double() for x in (q, k, v)), scale, False), SLACK["float32"])


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
    ]
    for arguments, message in wrong:
        with pytest.raises(norch.Error, match=message):
            lib.norch_attention_fused(*arguments, 1.0, False, 0.0)
    with pytest.raises(norch.Error, match="probability 1.5"):
        lib.norch_attention_fused(x, x, x, None, None, None, 1.0, False, 1.5)
    rows, grads = norch.empty(2, 3, device="cuda"), [norch.empty(2, 3, 4, device="cuda")] * 3
    with pytest.raises(norch.Error, match="does not fit into shape"):
        lib.norch_attention_fused_backward(x, x, x, x, x, rows, None, None, 1.0, False, 0.0, grads)
