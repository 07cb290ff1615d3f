"""MultiheadAttention: against PyTorch, with its weights, and what it refuses."""

from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import nn
from norch.testing import assert_close


def of(array: Any) -> Any:
    return norch.tensor(np.asarray(array), device=DEVICE)


CAUSAL = np.triu(np.ones((5, 5), bool), 1)
PADDING = np.arange(5) > np.array([[2], [4], [3]])
CALLS: Any = {
    "plain": ({}, {}, False),
    "heads": ({"batch_first": True, "bias": False}, {"average_attn_weights": False}, False),
    "no weights": ({}, {"need_weights": False}, False),
    "masks": ({"batch_first": True}, {"attn_mask": CAUSAL, "key_padding_mask": PADDING}, False),
    "masks, no weights": ({}, {"attn_mask": CAUSAL, "need_weights": False, "is_causal": True}, False),
    "floats": ({}, {"attn_mask": np.linspace(-1, 1, 3 * 2 * 25).reshape(6, 5, 5)}, False),
    "other sizes": ({"kdim": 3, "vdim": 7}, {}, True),
    "a further key": ({"add_bias_kv": True}, {"attn_mask": CAUSAL, "key_padding_mask": PADDING}, False),
    "a key of zeros": ({"add_zero_attn": True, "batch_first": True}, {"need_weights": False}, False),
    "both, masks": (
        {"add_zero_attn": True, "add_bias_kv": True, "kdim": 3, "vdim": 7},
        {"attn_mask": np.linspace(-1, 1, 3 * 2 * 25).reshape(6, 5, 5), "average_attn_weights": False},
        True,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_like_torch(torch: Any, name: str) -> None:
    options, how, others = CALLS[name]
    theirs = torch.nn.MultiheadAttention(4, 2, **options, dtype=torch.float64)
    ours = nn.MultiheadAttention(4, 2, **options, dtype=norch.float64, device=DEVICE)
    assert {k: tuple(v.shape) for k, v in ours.state_dict().items()} == {
        k: tuple(v.shape) for k, v in theirs.state_dict().items()
    }
    ours.load_state_dict({key: of(value.numpy()) for key, value in theirs.state_dict().items()})
    rng = np.random.default_rng(0)
    arrays = [
        rng.normal(size=(3, 5, n) if ours.batch_first else (5, 3, n)) for n in ((4, 3, 7) if others else (4,) * 3)
    ]
    for take in (lambda a: a, lambda a: a[:, 0] if not ours.batch_first else a[0]):
        single = take(arrays[0]).ndim == 2
        if single and "mask" in str(how) + name or single and name == "floats":
            continue
        x, y = ([make(take(a)).requires_grad_() for a in arrays] for make in (of, torch.tensor))
        given = [
            {k: make(v) if isinstance(v, np.ndarray) else v for k, v in how.items()} for make in (of, torch.tensor)
        ]
        (a, u), (b, w) = ours(*x, **given[0]), theirs(*y, **given[1])
        assert_close(a.detach(), of(b.detach().numpy()), rtol=1e-9, atol=1e-10)
        assert (u is None) == (w is None)
        if u is not None:
            assert_close(u.detach(), of(w.detach().numpy()), rtol=1e-9, atol=1e-10)
        ours.zero_grad(), theirs.zero_grad()
        a.square().sum().backward()
        b.square().sum().backward()
        for p, q in zip([*x, *ours.parameters()], [*y, *theirs.parameters()], strict=True):
            assert_close(p.grad, of(q.grad.numpy()), rtol=1e-8, atol=1e-9)


def test_errors_and_dropout() -> None:
    layer, x = nn.MultiheadAttention(4, 2, dropout=0.5), norch.ones(5, 3, 4)
    assert not norch.equal(layer(x, x, x)[0], layer(x, x, x)[0])
    layer.eval()
    assert norch.equal(layer(x, x, x)[0], layer(x, x, x)[0])
    for call, error, message in (
        (lambda: nn.MultiheadAttention(4, 3), ValueError, "embed_dim 4 is not divisible by num_heads 3"),
        (lambda: layer(x, x[0], x), norch.ShapeError, r"of two or of three dimensions, got \(5, 3, 4\), \(3, 4\)"),
        (lambda: layer(x, x[..., :3], x), norch.ShapeError, "expected last sizes of 4, 4 and 4"),
        (lambda: layer(x, x, x, is_causal=True), ValueError, "is_causal"),
        (lambda: layer(x, x, x, norch.ones(2, 5)), norch.ShapeError, r"a mask of shape \(2, 5\), expected \(3, 5\)"),
    ):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize("how", ["packed", "separate", "static", "one sample"])
def test_as_a_function_of_its_weights(torch: Any, how: str) -> None:
    rng = np.random.default_rng(1)
    x, k, v = (rng.normal(size=(5, 3, 4)) for _ in range(3))
    weights = {"in_proj_weight": rng.normal(size=(12, 4)), "in_proj_bias": rng.normal(size=12), "bias_k": None}
    weights |= {"bias_v": None, "out_proj_weight": rng.normal(size=(4, 4)), "out_proj_bias": rng.normal(size=4)}
    more: dict[str, Any] = {"attn_mask": CAUSAL}
    if how == "separate":
        k, v, more = rng.normal(size=(5, 3, 2)), rng.normal(size=(5, 3, 6)), {"key_padding_mask": PADDING}
        sizes = {"q_proj_weight": 4, "k_proj_weight": 2, "v_proj_weight": 6}
        more |= {name: rng.normal(size=(4, size)) for name, size in sizes.items()} | {"use_separate_proj_weight": True}
    elif how == "static":
        more = {"static_k": rng.normal(size=(6, 7, 2)), "static_v": rng.normal(size=(6, 7, 2)), "need_weights": False}
    elif how == "one sample":
        x, k, v, more = x[:, 0], k[:, 0], v[:, 0], {"key_padding_mask": PADDING[0]}
    arguments = {"query": x, "key": k, "value": v, "embed_dim_to_check": 4, "num_heads": 2, "add_zero_attn": True}
    arguments |= weights | more | {"dropout_p": 0.0}
    found = []
    for make, F in ((of, nn.functional), (torch.tensor, torch.nn.functional)):
        given = {key: make(a) if isinstance(a, np.ndarray) else a for key, a in arguments.items()}
        found.append(F.multi_head_attention_forward(**given))
    (a, u), (b, w) = found
    assert_close(a, of(b.numpy()), rtol=1e-9, atol=1e-10)
    assert (u is None) == (w is None)
    if u is not None:
        assert_close(u, of(w.numpy()), rtol=1e-9, atol=1e-10)


def test_the_function_refuses_what_does_not_fit() -> None:
    x, w = norch.ones(5, 3, 4, device=DEVICE), norch.ones(12, 4, device=DEVICE)
    given: dict[str, Any] = {"query": x, "key": x, "value": x, "embed_dim_to_check": 4, "num_heads": 2}
    given |= {"in_proj_weight": w, "in_proj_bias": None, "bias_k": None, "bias_v": None, "add_zero_attn": False}
    given |= {"dropout_p": 0.0, "out_proj_weight": w[:4], "out_proj_bias": None}
    for changed in (
        {"embed_dim_to_check": 5}, {"num_heads": 3}, {"num_heads": 0}, {"bias_k": x[:1, :1]}, {"in_proj_weight": None},
        {"is_causal": True}, {"attn_mask": x[0]}, {"query": x[0]}, {"query": x[:, :1]}, {"key": x[:, :1]},
        {"value": x[:, :1]}, {"value": x[:1]}, {"key": x[:, :1], "value": x[:, :1]}, {"static_k": norch.ones(5, 6, 2)},
        {"static_k": norch.ones(6, 5, 2), "static_v": norch.ones(5, 6, 2)}, {"in_proj_weight": w[:9]},
        {"use_separate_proj_weight": True, "q_proj_weight": w[:2], "k_proj_weight": w[:4], "v_proj_weight": w[:4]},
        {"in_proj_bias": w[:9, 0]},
    ):  # fmt: skip
        for need_weights in (True, False):
            with pytest.raises((norch.ShapeError, norch.ArgumentError), match="multi_head_attention_forward"):
                nn.functional.multi_head_attention_forward(**given | changed, need_weights=need_weights)
    layer = nn.MultiheadAttention(4, 2, batch_first=True, device=DEVICE)
    with pytest.raises(norch.ShapeError, match=r"MultiheadAttention: as many keys .* got \(5, 3, 4\), \(1, 3, 4\)"):
        layer(x, x[:1], x[:1])


@pytest.mark.parametrize("masked", ["attn_mask", "key_padding_mask"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_mask_of_float32_in_autocast(torch: Any, dtype: str, masked: str) -> None:
    """The weights have autocast's dtype, as without a mask."""
    found = []
    for lib in (norch, torch):
        layer = lib.nn.MultiheadAttention(4, 2, batch_first=True)
        layer.load_state_dict({name: lib.ones_like(x) for name, x in layer.state_dict().items()})
        x, mask = lib.ones(3, 3, 4), lib.zeros(3, 3)
        mask[0, 1] = -1e9
        with lib.autocast("cpu", getattr(lib, dtype)):
            out, weights = layer(x, x, x, **{masked: mask})
        found.append((str(out.dtype)[-8:], str(weights.dtype)[-8:], weights.float().tolist()))
    assert found[0][:2] == found[1][:2]
    assert_close(norch.tensor(found[0][2]), norch.tensor(found[1][2]), rtol=1e-2, atol=1e-2)
