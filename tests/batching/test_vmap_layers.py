"""Layers, losses and linear algebra under norch.vmap, against a loop over the samples."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest
from vmap_checks import check, check_nested, floats, positive

import norch
from norch import func, nn, vmap
from norch.nn import functional as F
from norch.testing import assert_close


@pytest.fixture(autouse=True)
def no_sample_by_sample() -> Any:
    """What is tried here batches."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "vmap: there is no batching rule")
        yield


# ---- layers ----------------------------------------------------------------------------------------------------------

X4, X3 = floats(3, 2, 4, 6, 6), floats(3, 2, 4, 7)
LAYERS: Any = {
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, padding=1), X4, floats(3, 5, 4, 3, 3), floats(3, 5)),
    "conv2d unbatched": (lambda x, w, b: F.conv2d(x, w, b, stride=2), X4[:, 0], floats(3, 5, 4, 3, 3), floats(3, 5)),
    "conv2d groups": (lambda x, w: F.conv2d(x, w, groups=2, dilation=2), X4, floats(3, 6, 2, 2, 2)),
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, padding="same"), X3, floats(3, 5, 4, 3), floats(3, 5)),
    "conv3d": (lambda x, w, b: F.conv3d(x, w, b), floats(3, 2, 2, 4, 4, 4), floats(3, 3, 2, 2, 2, 2), floats(3, 3)),
    "conv_transpose2d": (lambda x, w, b: F.conv_transpose2d(x, w, b, 2), X4, floats(3, 4, 3, 2, 2), floats(3, 3)),
    "conv_transpose1d": (lambda x, w: F.conv_transpose1d(x, w, groups=2), X3, floats(3, 4, 2, 2)),
    "linear": (F.linear, floats(3, 2, 4), floats(3, 5, 4), floats(3, 5)),
    "linear vector": (F.linear, floats(3, 4), floats(3, 5, 4), floats(3, 5)),
    "linear deep": (F.linear, floats(3, 2, 2, 4), floats(3, 5, 4), floats(3, 5)),
    "bilinear": (F.bilinear, floats(3, 2, 4), floats(3, 2, 3), floats(3, 5, 4, 3), floats(3, 5)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2, stride=1, padding=1), X4),
    "max_pool1d indices": (lambda x: F.max_pool1d(x, 3, return_indices=True)[0], X3),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, padding=1, count_include_pad=False), X4),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), floats(3, 1, 2, 4, 4, 4)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 4), X4),
    "adaptive_max_pool1d": (lambda x: F.adaptive_max_pool1d(x, 3), X3),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4, 7), w, b), X3, floats(3, 4, 7), floats(3, 4, 7)),
    "layer_norm vector": (lambda x, w, b: F.layer_norm(x, (7,), w, b), X3[:, 0, 0], floats(3, 7), floats(3, 7)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (7,), w), X3, floats(3, 7)),
    "rms_norm vector": (lambda x, w: F.rms_norm(x, (7,), w), X3[:, 0, 0], floats(3, 7)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), X4, floats(3, 4), floats(3, 4)),
    "instance_norm": (lambda x, w: F.instance_norm(x, weight=w), X4, floats(3, 4)),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), X4, floats(3, 4), floats(3, 4)),
    "batch_norm eval": (
        lambda x, m, v, w, b: F.batch_norm(x, m.detach(), v.detach() ** 2 + 1, w, b),
        X4, floats(3, 4), floats(3, 4), floats(3, 4), floats(3, 4),
    ),
    "softmax": (lambda x: F.softmax(x, 0) + F.log_softmax(x, -1), X3),
    "activations": (lambda x: F.gelu(x) + F.silu(x) + F.elu(x) + F.glu(x, 0).sum() + F.softplus(x), X3),
    "prelu": (F.prelu, X3, floats(3, 4)),
    "embedding": (lambda i, w: F.embedding(i, w, padding_idx=1), norch.randint(0, 5, (3, 2, 4)), floats(3, 5, 2)),
    "attention": (F.scaled_dot_product_attention, floats(3, 2, 5, 4), floats(3, 2, 6, 4), floats(3, 2, 6, 3)),
    "attention causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        floats(3, 2, 2, 5, 4), floats(3, 2, 2, 5, 4), floats(3, 2, 2, 5, 4),
    ),
    "attention mask": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
        floats(3, 2, 5, 4), floats(3, 2, 6, 4), floats(3, 2, 6, 3), floats(3, 5, 6),
    ),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), X4),
    "grid_sample": (F.grid_sample, X4, floats(3, 2, 3, 3, 2).tanh()),
    "unfold": (lambda x: F.unfold(x, 3), X4),
    "pad": (lambda x: F.pad(x, (1, 2), mode="reflect") + F.pad(x, (1, 2)), X3),
    "cosine_similarity": (F.cosine_similarity, X3, floats(3, 2, 4, 7)),
    "cdist": (norch.cdist, floats(3, 4, 2), floats(3, 5, 2)),
    "einsum": (lambda a, b: norch.einsum("ij,kj->ik", a, b), floats(3, 4, 2), floats(3, 5, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    call, *inputs = LAYERS[name]
    check(call, *inputs)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_at_two_levels(name: str) -> None:
    call, *inputs = LAYERS[name]
    check_nested(call, *inputs)


CLASSES = norch.tensor([[1, 0, 3], [2, 2, 1], [0, 3, -100]])
REDUCTIONS = "mean", "sum", "none"
LOSSES: Any = {
    "mse": (F.mse_loss, floats(3, 2, 4), floats(3, 2, 4)),
    "l1": (F.l1_loss, floats(3, 2, 4), floats(3, 2, 4)),
    "smooth_l1": (F.smooth_l1_loss, floats(3, 2, 4), floats(3, 2, 4)),
    "huber": (F.huber_loss, floats(3, 2, 4), floats(3, 2, 4)),
    "bce logits": (F.binary_cross_entropy_with_logits, floats(3, 2, 4), norch.rand(3, 2, 4).double()),
    "kl_div": (F.kl_div, floats(3, 2, 4), norch.rand(3, 2, 4).double()),
    "margin": (F.soft_margin_loss, floats(3, 2, 4), floats(3, 2, 4).sign()),
    "triplet": (F.triplet_margin_loss, floats(3, 2, 4), floats(3, 2, 4), floats(3, 2, 4)),
    "nll": (lambda x, y: F.nll_loss(x.log_softmax(-1), y), floats(3, 3, 5), CLASSES),
    "nll of one row": (F.nll_loss, floats(3, 5), CLASSES[:, 0]),
    "nll of weights": (F.nll_loss, floats(3, 3, 5), CLASSES, floats(3, 5)),
    "nll of one row of weights": (F.nll_loss, floats(3, 5), CLASSES[:, 0], floats(3, 5)),
    "nll of images": (
        lambda x, y: sum(F.nll_loss(x, y, norch.arange(5.0).double(), reduction=how).sum() for how in REDUCTIONS),
        floats(3, 3, 5, 2),
        CLASSES.unsqueeze(-1).expand(3, 3, 2),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str) -> None:
    call, *inputs = LOSSES[name]
    check(call, *inputs)
    check_nested(call, *inputs)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy(reduction: str, smoothing: float) -> None:
    loss = functools.partial(F.cross_entropy, reduction=reduction, label_smoothing=smoothing)
    check(loss, floats(3, 3, 5), CLASSES)
    check_nested(loss, floats(3, 3, 5), CLASSES)
    check(loss, floats(3, 5), CLASSES[:, 0])
    check(lambda x, y: loss(x.unsqueeze(0), y.unsqueeze(0)), floats(3, 5), CLASSES[:, 0])
    check(loss, floats(3, 3, 5, 2), CLASSES.unsqueeze(-1).expand(3, 3, 2).clamp(0))
    check(loss, floats(3, 3, 5), floats(3, 3, 5).softmax(-1))


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent_layers(kind: Any) -> None:
    layer = kind(3, 4, bidirectional=True).double()
    names = [name for name, _ in layer.named_parameters()]
    weights = [floats(3, *p.shape) * 0.5 for p in layer.parameters()]

    def call(x, *w):
        return func.functional_call(layer, dict(zip(names, w, strict=True)), (x,))[0]

    x, shared = floats(3, 5, 2, 3), [w[0] for w in weights]
    check(lambda x: call(x, *shared), x)
    with warnings.catch_warnings(record=kind is not nn.RNN) as told:
        warnings.simplefilter("always")
        check(lambda *w: call(x[0], *w), *weights, dims=[0] * len(weights))
        check(call, x, *weights, dims=[0] * (1 + len(weights)))
        check_nested(call, x, *weights)
    assert told is None or "a recurrent layer whose weights are batched; it runs once" in str(told[0].message)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("batch_first", [False, True])
def test_stacked_recurrent_layers(kind: Any, rows: int, batch_first: bool) -> None:
    """The outputs of a layer, which are strided where they are one row of each sample, are the inputs of the next."""
    layer = kind(3, 4, num_layers=2, bias=False, batch_first=batch_first).double()
    check(lambda x: layer(x)[0], floats(3, 5, rows, 3))
    check_nested(lambda x: layer(x)[0], floats(3, 5, rows, 3))


def test_transformer_layer() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).double()
    check(lambda x: layer(x), floats(3, 2, 5, 8))
    parameters = {name: norch.stack([p.detach() * s for s in (1.0, 0.5, 2.0)]) for name, p in layer.named_parameters()}
    names = list(parameters)

    def call(x, *w):
        return func.functional_call(layer, dict(zip(names, w, strict=True)), (x,))

    check(call, floats(3, 2, 5, 8), *parameters.values(), dims=[0] * (1 + len(names)))


def test_batch_norm_moves_running_statistics_of_each_sample() -> None:
    x, mean, variance = floats(3, 4, 2), floats(3, 2), norch.rand(3, 2).double()
    wanted = [(mean[i].clone(), variance[i].clone()) for i in range(3)]
    vmap(lambda x, m, v: F.batch_norm(x, m, v, training=True))(x, mean, variance)
    for i, (m, v) in enumerate(wanted):
        F.batch_norm(x[i], m, v, training=True)
        assert_close(mean[i], m)
        assert_close(variance[i], v)
    with pytest.raises(RuntimeError, match="batch_norm: in training vmap computes the running statistics"):
        vmap(lambda x: F.batch_norm(x, norch.zeros(2).double(), norch.ones(2).double(), training=True))(x)


LINALG: Any = {
    "inv": norch.linalg.inv,
    "det": norch.linalg.det,
    "slogdet": lambda a: norch.linalg.slogdet(a)[1],
    "cholesky": norch.linalg.cholesky,
    "eigvalsh": norch.linalg.eigvalsh,
    "svdvals": norch.linalg.svdvals,
    "qr": lambda a: norch.linalg.qr(a)[1],
    "pinv": norch.linalg.pinv,
    "matrix_exp": norch.linalg.matrix_exp,
    "norm": lambda a: norch.linalg.norm(a) + norch.linalg.matrix_norm(a, 2),
    "fft": lambda a: norch.fft.rfft2(a).abs(),
}


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra(name: str) -> None:
    check(LINALG[name], positive(3, 4, 4))


@pytest.mark.parametrize(
    ("call", "shapes"),
    [
        (norch.linalg.householder_product, [(4, 2), (2,)]),
        (norch.linalg.householder_product, [(3, 4, 2), (3, 2)]),
        (norch.ormqr, [(4, 2), (2,), (4, 3)]),
        (functools.partial(norch.ormqr, left=False, transpose=True), [(4, 2), (2,), (3, 4)]),
    ],
)
def test_reflections(call: Any, shapes: list[tuple[int, ...]]) -> None:
    inputs = [floats(3, *shape) for shape in shapes]
    check(call, *inputs)
    check_nested(call, *inputs)


def test_solvers() -> None:
    check(norch.linalg.solve, positive(3, 4, 4), floats(3, 4, 2))
    check(norch.linalg.solve, positive(3, 4, 4), floats(3, 4))
    check(lambda a, b: norch.linalg.solve_triangular(a.tril(), b, upper=False), positive(3, 4, 4), floats(3, 4, 2))
    check(lambda a, b: norch.linalg.lstsq(a, b).solution, floats(3, 5, 3), floats(3, 5, 2))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_jacobians_of_padding(torch: Any, mode: str) -> None:
    """Its gradient writes into a tensor that vmap batches."""
    values, found = np.random.default_rng(0).normal(size=(1, 2, 4, 5)), []
    for m in (norch, torch):
        pad = functools.partial(m.nn.functional.pad, pad=(2, 1, 1, 2), mode=mode)
        x = m.tensor(values, requires_grad=True)
        y = pad(x)
        basis = m.eye(y.numel(), dtype=m.float64).reshape(-1, *y.shape)
        jacobians = [m.func.jacrev(pad)(x), m.func.jacfwd(pad)(x)]
        jacobians += m.autograd.grad(y, x, basis, is_grads_batched=True)
        found.append([jacobian.detach().numpy().reshape(y.numel(), -1) for jacobian in jacobians])
    for ours, theirs in zip(*found):
        np.testing.assert_array_equal(ours, theirs)
