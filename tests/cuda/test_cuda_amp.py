"""Autocast and GradScaler on CUDA, whose lists PyTorch's header has: what comes of float32 and of float16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import norch
from norch import nn, optim
from norch.nn import functional as F

pytestmark = pytest.mark.skipif(not norch.cuda.is_available(), reason="no CUDA device")

# Calls by the dtype of what they give: x, y: (4, 4); v: (4); b: (2, 4, 4); image: (2, 4, 4, 4); p: (4, 4) in 0 .. 1.
GIVES = {
    "half": """
        x @ y; x @ v; norch.mm(x, y); norch.bmm(b, b); F.linear(x, y, v); norch.mv(x, v); norch.addmm(v, x, y)
        norch.addmv(v, x, v); norch.addr(x, v, v); norch.einsum("ij,jk->ik", x, y); norch.einsum("ij,ij->ij", x, y)
        norch.linalg.multi_dot([x, y, x]); F.conv2d(image, kernel); F.conv_transpose2d(image, kernel); F.prelu(x, v)
        F.scaled_dot_product_attention(b, b, b); norch.linalg.vecdot(x, y); nn.LSTMCell(4, 4)(x)[0]; nn.GRU(4, 4)(b)[0]
        nn.RNNCell(4, 4)(x)
    """,
    "float32": """
        x.exp(); p.log(); p.rsqrt(); x.reciprocal(); 1 / x; x ** 2; x.square(); 2 ** x; norch.pow(p, 0.5); x.sum()
        norch.sum(x, 0); x.prod(); x.cumsum(0); x.softmax(1); F.log_softmax(x, 1); x.norm(); norch.logsumexp(x, 1)
        norch.linalg.vector_norm(x); F.layer_norm(x, (4,)); F.group_norm(x, 2); F.rms_norm(x, (4,)); F.softplus(x)
        F.mse_loss(x, y); F.cross_entropy(x, i); F.nll_loss(x, i); F.binary_cross_entropy_with_logits(x, p)
        F.interpolate(image, scale_factor=2); F.cosine_similarity(x, y); norch.cdist(x, y); norch.dist(x, y); x.tan()
        nn.LayerNorm(4)(x); x.cumprod(0); x.cosh(); F.softmin(x, 1)
    """,
    "as given": """
        x + y; x * 2; x.sqrt(); x.tanh(); x.sigmoid(); F.relu(x); F.gelu(x); F.silu(x); F.elu(x); F.mish(x)
        F.hardswish(x); x.mean(); x.var(); x.std(); x.max(); F.max_pool2d(image, 2); F.avg_pool2d(image, 2)
        F.dropout(x); F.batch_norm(image, v, p[0]); F.instance_norm(image); norch.cat([x, y]); norch.stack([x, y])
        norch.dot(v, v); norch.atan2(x, y); norch.addcmul(x, x, y); norch.tensordot(x, y, 1); x.clamp(0, 1)
        norch.scatter_add(x, 0, i[None], x); norch.quantile(p, 0.5) if x.dtype is norch.float32 else x; x.lerp(y, 0.5)
        F.logsigmoid(x); F.leaky_relu(x); F.embedding(i, x); x.logcumsumexp(0); F.selu(x); F.pad(b, (1, 1))
    """,
}
WIDEST = """
norch.dot(v, w[0]); norch.atan2(x, w); norch.addcmul(x, w, y); norch.cross(x[:, :3], w[:, :3], dim=1)
norch.tensordot(x, w, 1); F.bilinear(x, w, b.new_ones(3, 4, 4)); norch.scatter_add(w, 0, i[None], x)
norch.index_put(w, (i,), x)
"""


def inputs(dtype: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {"x": (4, 4), "y": (4, 4), "v": (4,), "b": (2, 4, 4), "image": (2, 4, 4, 4), "kernel": (4, 4, 3, 3)}
    made: dict[str, Any] = {name: norch.tensor(rng.normal(size=shape)).to(dtype) for name, shape in shapes.items()}
    made |= {"p": norch.tensor(rng.uniform(0.1, 0.9, size=(4, 4))).to(dtype), "i": norch.tensor([0, 1, 2, 3])}
    made["w"] = norch.ones(4, 4)
    return made | {"norch": norch, "F": F, "nn": nn}


@pytest.fixture(autouse=True)
def on_the_device() -> Any:
    with norch.device("cuda"):
        yield


def listed(calls: str) -> list[str]:
    return [call.strip() for line in calls.strip().splitlines() for call in line.split(";")]


@pytest.mark.parametrize("dtype", [norch.float32, norch.float16], ids=str)
def test_dtypes(dtype: Any) -> None:
    wrong = []
    names = inputs(dtype)
    for gives, calls in GIVES.items():
        wanted = {"half": norch.float16, "float32": norch.float32, "as given": dtype}[gives]
        for call in listed(calls):
            with norch.autocast("cuda"):
                found = eval(call, names)
            if found.dtype is not wanted or not found.is_cuda:
                wrong.append(f"{call}: {found.dtype}, not {wanted}")
    with norch.autocast("cuda"):
        wrong += [call for call in listed(WIDEST) if eval(call, names).dtype is not norch.float32]
    assert not wrong, "\n" + "\n".join(wrong)


def test_what_is_refused_and_what_stays() -> None:
    names = inputs(norch.float32)
    with norch.autocast("cuda"):
        with pytest.raises(norch.Error, match="binary_cross_entropy_with_logits"):
            F.binary_cross_entropy(names["p"], names["p"])
        assert (names["x"].double() @ names["y"].double()).dtype is norch.float64
        assert (names["x"].cpu() @ names["y"].cpu()).dtype is norch.float32
        with norch.autocast("cpu"):
            assert (names["x"].cpu() @ names["y"].cpu()).dtype is norch.bfloat16
            assert (names["x"] @ names["y"]).dtype is norch.float16
    with norch.cuda.amp.autocast(dtype=norch.bfloat16):
        assert (names["x"] @ names["y"]).dtype is norch.bfloat16


def test_a_model_trains() -> None:
    model = nn.Sequential(nn.Linear(4, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
    optimizer, scaler = optim.Adam(model.parameters(), lr=0.02), norch.cuda.amp.GradScaler(init_scale=2.0**12)
    x, target = norch.rand(12, 4), norch.arange(12) % 3
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        with norch.autocast("cuda"):
            loss = F.cross_entropy(model(x), target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0] and scaler.get_scale() > 0
