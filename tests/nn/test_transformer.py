"""Transformers: against PyTorch, with its weights; against their formulas in NumPy; and what they refuse."""

from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import nn
from norch.ops import attention as page
from norch.testing import assert_close

Mask = nn.Transformer.generate_square_subsequent_mask
SIZES = {"d_model": 8, "nhead": 2, "dim_feedforward": 12}
DEEP = {**SIZES, "num_encoder_layers": 2, "num_decoder_layers": 2}
CAUSAL = np.triu(np.full((5, 5), -np.inf), 1)
PADDING = np.arange(5) > np.array([[2], [4], [3]])


def of(array: Any) -> Any:
    return norch.tensor(np.asarray(array), device=DEVICE)


def arrays(shapes: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape) for shape in shapes]


ENCODERS: Any = {
    "plain": ({}, {}),
    "norm first, gelu, no bias": ({"norm_first": True, "activation": "gelu", "bias": False}, {}),
    "batch first, causal": ({"batch_first": True}, {"mask": CAUSAL}),
    "told": ({"layer_norm_eps": 0.1}, {"mask": CAUSAL, "is_causal": True}),
    "bools": ({"batch_first": True}, {"mask": CAUSAL < 0, "src_key_padding_mask": PADDING}),
    "floats": ({}, {"mask": np.linspace(-1, 1, 150).reshape(6, 5, 5)}),
}
DECODED: Any = {
    "plain": ({}, {}),
    "batch first": ({"batch_first": True, "norm_first": True}, {"tgt_mask": CAUSAL[:4, :4]}),
    "all masks": (
        {"activation": "gelu"},
        {
            "src_mask": CAUSAL < 0,
            "tgt_mask": CAUSAL[:4, :4] < 0,
            "memory_mask": CAUSAL[:4] < 0,
            "src_key_padding_mask": PADDING,
            "tgt_key_padding_mask": PADDING[:, :4],
            "memory_key_padding_mask": PADDING,
        },
    ),
}


def compared(torch: Any, ours: Any, theirs: Any, inputs: list[Any], how: dict[str, Any]) -> None:
    """The same names, results and gradients with the same weights."""
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for number, weight in enumerate(theirs.parameters()):  # biases and factors, too, that are not 0 and 1
        weight.data += torch.linspace(-0.1, 0.1, weight.numel(), dtype=torch.float64).view(weight.shape) * (number % 3)
    ours.load_state_dict({key: of(value.numpy()) for key, value in theirs.state_dict().items()})
    x, y = ([make(a).requires_grad_() for a in inputs] for make in (of, torch.tensor))
    given = [{k: make(v) if isinstance(v, np.ndarray) else v for k, v in how.items()} for make in (of, torch.tensor)]
    a, b = ours(*x, **given[0]), theirs(*y, **given[1])
    assert_close(a.detach(), of(b.detach().numpy()), rtol=1e-9, atol=1e-10)
    a.square().sum().backward()
    b.square().sum().backward()
    for p, q in zip([*x, *ours.parameters()], [*y, *theirs.parameters()], strict=True):
        assert_close(p.grad, of(q.grad.numpy()), rtol=1e-7, atol=1e-8)


@pytest.mark.filterwarnings("ignore")  # PyTorch tells of its fast paths
@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_like_torch(torch: Any, name: str) -> None:
    options, how = ENCODERS[name]

    def made(lib: Any, **where: Any) -> Any:
        layer = lib.nn.TransformerEncoderLayer(**SIZES, **options, dropout=0.0, dtype=lib.float64, **where)
        return lib.nn.TransformerEncoder(layer, 2, lib.nn.LayerNorm(8, dtype=lib.float64, **where))

    for shape in ((3, 5, 8) if options.get("batch_first") else (5, 3, 8), (5, 8)):
        if len(shape) == 2 and name in ("bools", "floats"):
            continue
        compared(torch, made(norch, device=DEVICE), made(torch), arrays([shape]), how)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DECODED)
def test_transformers_like_torch(torch: Any, name: str) -> None:
    options, how = DECODED[name]
    ours = nn.Transformer(**DEEP, **options, dropout=0.0, dtype=norch.float64, device=DEVICE)
    theirs = torch.nn.Transformer(**DEEP, **options, dropout=0.0, dtype=torch.float64)
    shapes = [(3, 5, 8), (3, 4, 8)] if ours.batch_first else [(5, 3, 8), (4, 3, 8)]
    compared(torch, ours, theirs, arrays(shapes), how)


def normal(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("first", [False, True], ids=["norm behind", "norm first"])
def test_a_layer_is_its_formula(first: bool) -> None:
    """One head, and weights at hand: attention of x to itself, and a perceptron, each beside what it adds to."""
    layer = nn.TransformerEncoderLayer(4, 1, 6, 0.0, "relu", norm_first=first, dtype=norch.float64, device=DEVICE)
    w = {name: value.cpu().numpy() for name, value in layer.state_dict().items()}

    def attend(x: Any) -> Any:
        q, k, v = np.split(x @ w["self_attn.in_proj_weight"].T + w["self_attn.in_proj_bias"], 3, -1)
        scores = np.exp(q @ k.T / 2 + np.triu(np.full((5, 5), -np.inf), 1))
        out = scores / scores.sum(-1, keepdims=True) @ v
        return out @ w["self_attn.out_proj.weight"].T + w["self_attn.out_proj.bias"]

    def think(x: Any) -> Any:
        return np.maximum(x @ w["linear1.weight"].T + w["linear1.bias"], 0) @ w["linear2.weight"].T + w["linear2.bias"]

    (x,) = arrays([(5, 4)])
    found = layer(of(x), Mask(5, DEVICE, norch.float64), is_causal=True)
    for part in (attend, think):
        x = x + part(normal(x)) if first else normal(x + part(x))
    assert_close(found.detach(), of(x), rtol=1e-9, atol=1e-10)


def test_one_kernel_attends_where_it_may(monkeypatch: Any) -> None:
    """In float64, which has no fused kernels on a device. The CPU's kernel takes masks."""
    calls = []
    kernel = page.attention
    monkeypatch.setattr(page, "attention", lambda *a: calls.append("causal" if a[6] else a[3]) or kernel(*a))
    layer = nn.TransformerEncoderLayer(**SIZES, dropout=0.0, device=DEVICE, dtype=norch.float64)
    encoder, x = nn.TransformerEncoder(layer, 2), norch.ones(5, 3, 8, device=DEVICE, dtype=norch.float64)
    mask = Mask(5, DEVICE)
    for how, wanted in (
        ({}, None),
        ({"mask": mask}, "causal"),  # found to be so
        ({"mask": mask < 0}, "causal"),
        ({"mask": mask, "is_causal": False}, "mask"),
        ({"mask": mask * 0}, "mask"),
        ({"mask": mask, "src_key_padding_mask": of(PADDING)}, "mask"),
    ):
        calls.clear()
        encoder(x, **how)
        found = [one if one in (None, "causal") else "mask" for one in calls]
        assert found == ([] if wanted == "mask" and DEVICE != "cpu" else [wanted] * 2), how


def test_layers_are_copies_and_dropout_is_random() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**SIZES, dropout=0.5), 2)
    x = norch.ones(5, 3, 8)
    assert not norch.equal(encoder(x), encoder(x))
    assert norch.equal(encoder.eval()(x), encoder(x))
    first, second = encoder.layers
    assert norch.equal(first.linear1.weight, second.linear1.weight) and first.linear1 is not second.linear1
    assert encoder.norm is None and "activation" not in repr(first)
    own = nn.TransformerEncoderLayer(**SIZES, activation=nn.PReLU())
    assert "activation.weight" in own.state_dict()


@pytest.mark.host  # in 120 steps, which take the simulation half a minute
def test_it_learns_to_reverse() -> None:
    """Four letters, and the same backwards, as translations are learnt: each letter from the ones before it."""
    norch.manual_seed(0)
    model = nn.Transformer(16, 2, 1, 1, 32, 0.0, batch_first=True)
    table, place, head = nn.Embedding(6, 16), nn.Parameter(norch.randn(4, 16)), nn.Linear(16, 6)
    params = [*model.parameters(), *table.parameters(), place, *head.parameters()]
    optimizer, mask = norch.optim.Adam(params, lr=0.01), Mask(4)
    for _ in range(120):
        letters = norch.randint(1, 6, (32, 4))
        target = letters.flip(1)
        before = norch.cat([target.new_zeros(32, 1), target[:, :-1]], 1)  # 0 begins
        out = head(model(table(letters) + place, table(before) + place, tgt_mask=mask))
        loss = nn.functional.cross_entropy(out.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


def test_errors() -> None:
    model, x = nn.Transformer(8, 2, 1, 1, 12), norch.ones(5, 3, 8)
    for call, error, message in (
        (lambda: nn.TransformerEncoderLayer(8, 3), ValueError, "embed_dim 8 is not divisible by num_heads 3"),
        (lambda: nn.TransformerEncoderLayer(8, 2, activation="sin"), RuntimeError, "'relu', 'gelu' or .*, not 'sin'"),
        (lambda: model(x, None), TypeError, "Transformer: expected a tensor, not NoneType"),
        (lambda: model(x, x[:, :2]), norch.ShapeError, r"one batch, the last 8, got \(5, 3, 8\) and \(5, 2, 8\)"),
        (lambda: model(x, x[..., :4]), norch.ShapeError, r"the last 8, got \(5, 3, 8\) and \(5, 3, 4\)"),
        (lambda: model(x, x, norch.ones(4, 4)), norch.ShapeError, r"mask of shape \(4, 4\), expected \(5, 5\)"),
        (lambda: model.encoder(x, is_causal=True), ValueError, "is_causal needs an attn_mask"),
        (
            lambda: model.encoder(x, Mask(5).long(), is_causal=True),
            norch.DTypeError,
            "Attention: attn_mask .* not of norch.int64",
        ),
        (
            lambda: model.encoder(x, None, norch.ones(3, 5).byte()),
            norch.DTypeError,
            "key_padding_mask .* not of norch.uint8",
        ),
    ):
        with pytest.raises(error, match=message):
            call()


def test_an_encoder_without_a_last_normalization_is_written_as_pytorchs(torch):
    made = (lib.nn.TransformerEncoder(lib.nn.TransformerEncoderLayer(8, 2, 16), 2) for lib in (torch, norch))
    assert len({repr(encoder) for encoder in made}) == 1
