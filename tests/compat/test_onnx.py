"""norch.onnx: exported models, run by onnxruntime on other sizes of their dynamic axes, equal the models.

Needs the packages onnx and onnxruntime."""

from __future__ import annotations

import inspect
import io
import math
from typing import Any

import pytest

import norch
import norch.nn.functional as F
from norch import nn

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.host


def flat(out: Any) -> list[Any]:
    from norch.utils._pytree import tree_flatten

    return [x for x in tree_flatten(out)[0] if x is not None]


def exported(model: Any, *inputs: Any, others: Any = (), **options: Any) -> Any:
    """The program, after it gave what the model gives for the inputs, and for others of other sizes."""
    program = norch.onnx.export(model, inputs, **options)
    onnx.checker.check_model(program.model_proto, full_check=True)
    model.eval()
    for given in [inputs, *others]:
        with norch.no_grad():
            wanted = flat(model(*given))
        found = program(*given)
        assert len(found) == len(wanted)
        for x, y in zip(found, wanted):
            assert x.shape == y.shape and x.dtype == y.dtype
            assert norch.allclose(x.double(), y.double(), rtol=1e-4, atol=1e-4, equal_nan=True)
    return program


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (5, 7), (1, 1, 1, 7), (2, 1, 5, 1)])
def test_masks_of_attention(kind: str, shape: tuple[int, ...]) -> None:
    class Attend(nn.Module):
        def forward(self, q: Any, k: Any, v: Any, mask: Any) -> Any:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    q, k, v = (norch.randn(2, 3, n, 8) for n in (5, 7, 7))
    mask = norch.randn(shape)
    mask = mask > 0 if kind == "bool" else mask.masked_fill(mask > 0.5, -math.inf)
    mask[..., -1, :] = False if kind == "bool" else -math.inf  # a query that sees nothing
    exported(Attend(), q, k, v, mask)


# ---- architectures ---------------------------------------------------------------------------------------------------


class Residual(nn.Module):
    def __init__(self, a: int, b: int, stride: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.conv2, self.bn2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        self.down = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)) if a != b else None

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        y += x if self.down is None else self.down(x)
        return y.relu_()


def resnet() -> Any:
    stem = [nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    blocks = [Residual(8, 8, 1), Residual(8, 16, 2), Residual(16, 16, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))


class Inverted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(8, 24, 1),
            nn.BatchNorm2d(24),
            nn.ReLU6(),
            nn.Conv2d(24, 24, 3, 1, 1, groups=24),
            nn.BatchNorm2d(24),
            nn.ReLU6(),
            nn.Conv2d(24, 8, 1),
            nn.BatchNorm2d(8),
        )

    def forward(self, x: Any) -> Any:
        return x + self.body(x)


class Pool(nn.Module):
    def forward(self, x: Any) -> Any:
        return F.adaptive_avg_pool2d(x, (1, 1)).view(x.shape[0], -1)


def mobilenet() -> Any:
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.Hardswish(), Inverted(), Inverted(), Pool(), nn.Linear(8, 4))


def cnn() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding="same"),
        nn.BatchNorm2d(6),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 8, 3, dilation=2),
        nn.LeakyReLU(0.1),
        nn.MaxPool2d(2, ceil_mode=True),
        nn.Dropout(),
        nn.Flatten(),
        nn.Linear(8 * 25, 3),
        nn.LogSoftmax(1),
    )


class UNet(nn.Module):
    def __init__(self, mode: str):
        super().__init__()
        self.down, self.inner = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.up, self.out = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(8, 1, 1)
        self.mode = mode

    def forward(self, x: Any) -> Any:
        a = F.silu(self.down(x))
        b = F.gelu(self.inner(a))
        y = self.out(norch.cat([a, self.up(b)], 1))
        return F.interpolate(y, scale_factor=2, mode=self.mode).sigmoid()


class Recurrent(nn.Module):
    def __init__(self, kind: Any, **options: Any):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(11, 6), kind(6, 5, num_layers=2, batch_first=True, **options)
        self.head = nn.Linear(5 * (2 if options.get("bidirectional") else 1), 3)

    def forward(self, x: Any) -> Any:
        out, state = self.rnn(self.embed(x))
        return self.head(out[:, -1]), state


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm = nn.Linear(5, 8), nn.LayerNorm(8)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)

    def forward(self, x: Any, padding: Any) -> Any:
        y = self.layers(self.embed(x), src_key_padding_mask=padding)
        weight = (~padding).unsqueeze(-1).float()
        return self.norm((y * weight).sum(1) / weight.sum(1))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.RMSNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.mlp = nn.Sequential(nn.Linear(8, 32), nn.GELU("tanh"), nn.Linear(32, 8))

    def forward(self, x: Any) -> Any:
        rows, steps, size = x.shape
        q, k, v = (y.view(rows, steps, 2, 4).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(rows, steps, size))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(13, 8), nn.Embedding(20, 8)
        self.blocks, self.norm = nn.ModuleList([Block(), Block()]), nn.LayerNorm(8)
        self.head = nn.Linear(8, 13, bias=False)
        self.head.weight = self.token.weight
        self.register_buffer("seen", norch.ones(20, 20).tril().bool())

    def forward(self, tokens: Any) -> Any:
        steps = tokens.size(1)
        x = self.token(tokens) + self.place(norch.arange(steps))
        mask = norch.triu(norch.full((steps, steps), -math.inf), diagonal=1)
        scores = (x @ x.transpose(-2, -1) / math.sqrt(steps) + mask).masked_fill(~self.seen[:steps, :steps], -1e9)
        x = x + scores.softmax(-1) @ x
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def autoencoder() -> Any:
    return nn.Sequential(
        nn.Conv1d(2, 8, 3, 2, 1),
        nn.GroupNorm(2, 8),
        nn.ELU(),
        nn.Conv1d(8, 8, 3, 2, 1),
        nn.InstanceNorm1d(8),
        nn.Softplus(),
        nn.ConvTranspose1d(8, 8, 4, 2, 1),
        nn.LayerNorm([8, 8]),
        nn.Mish(),
        nn.ConvTranspose1d(8, 2, 3, 2, 1, output_padding=1),
    )


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(17, 6, mode="mean"), nn.Linear(6, 4)

    def forward(self, words: Any) -> Any:
        return {"scores": self.head(self.bag(words)), "best": self.head(self.bag(words)).argmax(-1)}


def ids(*shape: int) -> Any:
    return norch.arange(math.prod(shape)).reshape(shape) * 7 % 11


def images(rows: int, channels: int, size: int) -> Any:
    return norch.randn(rows, channels, size, size)


def padded(rows: int, steps: int) -> Any:
    return norch.randn(rows, steps, 5), norch.arange(steps).expand(rows, steps) >= steps - norch.arange(rows)[
        :, None
    ] % 2


BATCH = {"x": {0: "batch"}, "input": {0: "batch"}, "tokens": {0: "batch"}, "words": {0: "batch"}}
STEPS = {"x": {0: "batch", 1: "steps"}, "tokens": {0: "batch", 1: "steps"}, "padding": {0: "batch", 1: "steps"}}
ARCHITECTURES: dict[str, Any] = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(-1)),
        lambda n: (norch.randn(n, 4),),
        BATCH,
    ),
    "cnn": (cnn, lambda n: (images(n, 1, 28),), BATCH),
    "resnet": (resnet, lambda n: (images(n, 3, 32),), BATCH),
    "mobilenet": (mobilenet, lambda n: (images(n, 3, 16),), BATCH),
    "unet nearest": (lambda: UNet("nearest"), lambda n: (images(n, 1, 8),), BATCH),
    "unet bilinear": (lambda: UNet("bilinear"), lambda n: (images(n, 1, 8),), BATCH),
    "lstm": (lambda: Recurrent(nn.LSTM, bidirectional=True), lambda n: (ids(n, 4 + n),), STEPS),
    "gru": (lambda: Recurrent(nn.GRU), lambda n: (ids(n, 3 + n),), STEPS),
    "encoder": (Encoder, lambda n: padded(n, 4 + n), STEPS),
    "gpt": (GPT, lambda n: (ids(n, 3 + n),), STEPS),
    "autoencoder": (autoencoder, lambda n: (norch.randn(n, 2, 16),), BATCH),
    "bag": (Bag, lambda n: (ids(n, 5),), BATCH),
}


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_architecture_runs_on_other_sizes(name: str, rows: int) -> None:
    make, inputs, axes = ARCHITECTURES[name]
    norch.manual_seed(0)
    model = make().train()
    axes = {key: of for key, of in axes.items() if key in inspect.signature(model.forward).parameters}
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    before = {key: x.clone() for key, x in model.state_dict().items()}
    program = norch.onnx.export(model, inputs(rows), dynamic_axes=axes)
    assert all(module.training for module in model.modules())
    assert all(norch.equal(x, before[key]) for key, x in model.state_dict().items())
    exported(model, *inputs(rows), others=[inputs(n) for n in (1, 3, 6)], dynamic_axes=axes)
    held = {one.name for one in program.model_proto.graph.initializer}
    assert {key for key, _ in model.named_parameters()} <= held


# ---- operations ------------------------------------------------------------------------------------------------------


class Of(nn.Module):
    """A function as a module."""

    def __init__(self, function: Any):
        super().__init__()
        self.function = function

    def forward(self, *xs: Any) -> Any:
        return self.function(*xs)


UNARY = (
    "neg abs sign square reciprocal exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh "
    "cosh tanh asinh atanh erf erfc sigmoid logit relu floor ceil round trunc isnan isinf isfinite signbit logical_not "
    "sinc argmax argmin all any amax amin var std mean sum prod softmax logsumexp cumsum norm"
).split()
LAYERS = (
    "gelu silu mish hardswish softsign logsigmoid softplus elu selu celu hardtanh hardsigmoid leaky_relu hardshrink "
    "softshrink tanhshrink relu6 normalize"
).split()
BINARY = (
    "add sub mul div maximum minimum remainder fmod floor_divide hypot logaddexp xlogy eq ne lt le gt ge logical_and "
    "logical_or logical_xor pow"
).split()
REDUCTIONS = ("none", "sum", "mean")
CALLED: dict[str, Any] = {
    **{
        name: (lambda x, name=name: getattr(x, name)(*([-1] if name in ("softmax", "cumsum", "logsumexp") else [])))
        for name in UNARY
    },
    **{f"F.{name}": (lambda x, name=name: getattr(F, name)(x)) for name in LAYERS},
    **{f"{name} of two": (lambda x, name=name: getattr(norch, name)(x, x.flip(0) - 0.5)) for name in BINARY},
    "integers": lambda x: (lambda i: (i // 3, i % 3, i & 3, i | 1, ~i, i.div(4, rounding_mode="trunc")))(
        (x * 9).int() - 4
    ),
    "bools": lambda x: ((x > 0.3) & (x < 0.6), ~(x > 0.5), (x > 0.3).sum(-1), (x > 0.3) ^ (x > 0.5)),
    "casts": lambda x: (x.half() * 2, x.int() + 0.5, x.double() + x, x.long(), x.bool()),
    "where": lambda x: norch.where(x > 0.5, x, 0.0),
    "clamp": lambda x: (x.clamp(0.2, 0.6), x.clamp(min=0.3), x.lerp(x * 2, 0.3)),
    "einsum": lambda x: (norch.einsum("bij,bkj->bik", x, x), norch.einsum("bij->bj", x)),
    "views": lambda x: (
        x[:, 1:, ::2],
        x[:, -1],
        x[..., None, 0],
        x.transpose(1, 2).flatten(1),
        x.unfold(2, 2, 1),
        x[0],
    ),
    "more views": lambda x: (
        x.diagonal(0, 1, 2),
        x.unsqueeze(1).expand(-1, 2, -1, -1),
        x.repeat(1, 2, 1),
        x.narrow(0, 1, x.shape[0] - 1),
    ),
    "sizes": lambda x: (
        x.reshape(x.shape[0] * 3, 4),
        norch.zeros(x.shape[0], 2) + 1,
        x.new_ones(len(x)),
        x / x.shape[0],
        norch.arange(x.shape[0]),
        norch.eye(4) + x[:, :1],
        x.view(-1, 12),
        x.sum() / x.numel(),
    ),
    "splits": lambda x: (*x.split(2, 1), *x.chunk(2, -1), *x.unbind(1)),
    "joins": lambda x: (
        norch.stack([x, x + 1], 1),
        norch.cat([x, x.int()], 0),
        F.pad(x, (1, 2), value=3.0),
        x.roll(1, 2),
    ),
    "paddings": lambda x: (
        F.pad(x, (1, -2, 0, 3)),
        F.pad(x > 0, (2, 1), value=True),
        *(F.pad(x, (2, 1), mode=mode) for mode in ("reflect", "replicate", "circular")),
        F.pad(x[None], (1, 2, 0, 2), mode="circular"),
    ),
    "reductions": lambda x: (
        x.mean((0, 2), keepdim=True),
        x.var(0, unbiased=False),
        x.std(),
        x.argmax(1, keepdim=True),
        x.amax((1, 2)),
    ),
    "order": lambda x: (*x.sort(-1), *x.topk(2, 1), x.argsort(-1, descending=True), *x.max(-1)),
    "indices": lambda x: (
        x[:, [2, 0]],
        x[[0, 1], [1, 1]],
        x[:, [0, 2], [1, 3]],
        x.gather(2, norch.tensor([[[0, 3]]]).expand(len(x), 3, 2)),
        x.index_select(1, norch.tensor([1, 1])),
        x.take_along_dim(x.argsort(-1), -1),
    ),
    "scatters": lambda x: (
        x.scatter(2, x.argsort(-1)[..., :1], 9.0),
        x.scatter_add(2, x.argsort(-1), x),
        x.index_add(1, norch.tensor([0, 0]), x[:, :2]),
        x.masked_fill(x > 0.5, -1.0),
        x.index_fill(2, norch.tensor([1]), 5.0),
    ),
    "parts in place": lambda x: write_parts(x),
    "in place": lambda x: (x * 2).add_(1).mul_(x).clamp_(0.1, 1.5).sqrt_(),
    "outputs": lambda x: {"same": x, "twice": (x, x + 1), "constant": norch.ones(2)},
    "products": lambda x: (
        x @ x.mT,
        x @ norch.ones(4),
        x.bmm(x.mT),
        x[0].mm(x[0].T),
        x[0].mv(x[0, 0]),
        F.bilinear(x, x, norch.ones(2, 4, 4)),
        x.cross(x, 1),
    ),
    "pools of volumes": lambda x: (
        F.max_pool3d(x[:, None, None], (1, 2, 2)),
        F.avg_pool3d(x[:, None], (1, 3, 2), 1, padding=(0, 1, 1)),
        F.max_pool3d(x[None, None], (1, 2, 2), return_indices=True),
    ),
    "windows that divide": lambda x: (
        F.adaptive_avg_pool2d(x[:, None], (3, 2)),
        F.adaptive_max_pool2d(x[:, None], (3, 2), return_indices=True),
        F.adaptive_avg_pool2d(x[:, None], (2, 3)),
        F.adaptive_max_pool2d(x[:, None], 3),
        F.adaptive_avg_pool1d(x, 3),
        F.adaptive_max_pool3d(x[:, None, None], (1, 2, 2)),
        F.adaptive_avg_pool3d(x[:, None, None], (1, 2, 2)),
    ),
    "entropies": lambda x: tuple(
        loss
        for how in REDUCTIONS
        for loss in (
            F.cross_entropy(x[:, 0], x[:, 1].argmax(-1), reduction=how),
            F.cross_entropy(x.mT, x.flip(1).argmax(-1), ignore_index=2, reduction=how),
            F.cross_entropy(x[:, 0], x[:, 1].argmax(-1), ignore_index=1, label_smoothing=0.1, reduction=how),
            F.nll_loss(x[:, 0], x[:, 1].argmax(-1), ignore_index=1, reduction=how),
            F.cross_entropy(x, x.flip(1).argmax(1), norch.arange(3) + 0.5, reduction=how, label_smoothing=0.1),
        )
    ),
    "running products": lambda x: (x.cumprod(-1), x.cumprod(1), x.flip(1).cumprod(1), x[:, 0, 0].cumprod(0)),
    "ranks": lambda x: (*x.median(1), *x.kthvalue(2, -1), x.median(2, keepdim=True)[0]),
    "places in order": lambda x: (
        norch.searchsorted(norch.tensor([0.2, 0.5, 0.5, 0.8]), x),
        norch.searchsorted(x.sort(-1)[0], x, right=True),
        norch.bucketize(x.round(decimals=1), norch.tensor([0.2, 0.5, 0.8]), right=True),
        norch.isin(x, x[:, :1, 0]),
    ),
    "signs": lambda x: (
        lambda y: (
            norch.atan2(y, y.roll(1, -1)),
            norch.atan2(y, y.roll(2, -1)),
            norch.copysign(x[..., :1], y),
            norch.signbit(y),
            norch.fmax(y, y.roll(3, -1)),
            norch.fmin(y.roll(3, -1), y),
            norch.nansum(y, -1),
            norch.heaviside(x - 0.5, x),
        )
    )(x[..., :1] * norch.tensor([1.0, -1.0, 0.0, -0.0, math.inf, -math.inf, math.nan])),
    "promoted": lambda x: (norch.logaddexp2(x, x * 2), norch.block_diag(x[0], x[1]), norch.special.xlog1py(x, x)),
    "pools": lambda x: (
        F.max_pool1d(x, 2, 1, 1),
        F.avg_pool1d(x, 3, 1, 1),
        F.max_pool1d(x, 2, return_indices=True),
        F.lp_pool1d(x, 2.0, 2),
        F.grid_sample(x[:, None], x[:, :, None, :2], align_corners=True),
        F.grid_sample(x[:, None], x[:, :, None, :2], "nearest", "border", False),
        F.grid_sample(x[:, None], x[:, :, None, :2], "bicubic", "reflection", False),
    ),
    "norms": lambda x: (
        F.layer_norm(x, (4,)),
        F.group_norm(x, 3),
        F.rms_norm(x, (4,)),
        F.instance_norm(x),
        F.local_response_norm(x, 2),
    ),
    "losses": lambda x: (F.mse_loss(x, x * 2), F.smooth_l1_loss(x, x * 3), F.binary_cross_entropy(x, x.round())),
    "vmap": lambda x: norch.func.vmap(lambda row: row.softmax(-1) @ row.T)(x),
}


def test_a_function_is_exported_by_its_forward() -> None:
    class Tripled(norch.autograd.Function):
        forward = staticmethod(lambda ctx, x: 3 * x)
        vmap = staticmethod(lambda info, in_dims, x: pytest.fail("this is no vmap"))

    exported(Of(Tripled.apply), norch.ones(2))


@pytest.mark.parametrize("name", CALLED)
def test_an_operation(name: str) -> None:
    norch.manual_seed(1)
    others = [(norch.rand(n, 3, 4) * 0.9 + 0.05,) for n in (2, 5)]
    exported(Of(CALLED[name]), norch.rand(3, 3, 4) * 0.9 + 0.05, others=others, dynamic_axes={"xs_0": {0: "n"}})


def test_any_axis_may_be_dynamic() -> None:
    def attend(q: Any, k: Any) -> Any:
        mask = norch.tril(norch.ones(q.shape[-2], k.shape[-2], dtype=norch.bool))
        half = q[:, : q.shape[1] // 2]
        return F.scaled_dot_product_attention(q, k, k, attn_mask=mask), half, (q.shape[1] + k.shape[1]) * q

    shapes = {"xs": ({0: "b", 1: "steps"}, {0: "b", 1: "keys"})}
    others = [(norch.randn(b, i, 4), norch.randn(b, j, 4)) for b, i, j in ((1, 2, 7), (3, 6, 6), (2, 9, 3))]
    exported(Of(attend), norch.randn(2, 4, 4), norch.randn(2, 5, 4), others=others, dynamic_shapes=shapes)


def test_dynamic_shapes_of_dims() -> None:
    Dim = norch.export.Dim  # noqa: N806
    batch, steps = norch.export.dims("batch", "steps", max=99)
    assert norch.export.dynamic_shapes.Dim is Dim and isinstance(batch, Dim) and not isinstance(Dim.AUTO, Dim)
    x = norch.randn(2, 4, 5, 3, 6)
    others = [(norch.randn(b, s, i, j, 6),) for b, s, i, j in ((3, 7, 2, 4), (4, 1, 6, 5))]
    shapes = ({0: batch, 1: steps, 2: Dim.AUTO, 3: Dim.DYNAMIC(min=2, max=9), 4: Dim.STATIC},)
    model = Of(lambda x: x.reshape(x.shape[0] * x.shape[1], -1, x.shape[3], 6).softmax(1))
    program = exported(model, x, others=others, dynamic_shapes={"xs": shapes})
    names = [d.dim_param or d.dim_value for d in program.model_proto.graph.input[0].type.tensor_type.shape.dim]
    assert names == ["batch", "steps", "xs_0_axis_2", "xs_0_axis_3", 6]


@pytest.mark.parametrize("dtype", [norch.float16, norch.float64])
def test_halves_and_doubles(dtype: Any) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.ReLU()).to(dtype)
    program = norch.onnx.export(model, (norch.ones(2, 4, dtype=dtype),))
    found = program(norch.ones(2, 4, dtype=dtype))[0]
    assert found.dtype is dtype and norch.allclose(found, model(norch.ones(2, 4, dtype=dtype)), atol=2e-3)


# ---- the file --------------------------------------------------------------------------------------------------------


class Nested(nn.Module):
    def forward(self, pair: Any, scale: float = 2.0, *, extra: Any = None) -> Any:
        return {"sum": pair[0] + pair[1]["b"], "rest": [extra * scale, None]}


def test_names_of_nested_inputs_and_outputs(tmp_path: Any) -> None:
    one = norch.ones(2)
    path = tmp_path / "model.onnx"
    program = norch.onnx.export(Nested(), ((one, {"b": one}), 3.0), path, kwargs={"extra": one})
    graph = onnx.load(path).graph
    assert [x.name for x in graph.input] == ["pair_0", "pair_1_b", "extra"]
    assert [x.name for x in graph.output] == ["sum", "rest_0", "rest_1"][: len(graph.output)]
    assert [x.tolist() for x in program((one, {"b": one}), 3.0, extra=one)] == [[2, 2], [3, 3]]
    held = io.BytesIO()
    named = norch.onnx.export(nn.Linear(2, 1), one, held, input_names=["in"], output_names=["out"], verify=True)
    assert held.getvalue() == named.model_proto.SerializeToString()
    assert "inputs=['in'], outputs=['out']" in repr(named)


def test_it_is_exporting_only_while_the_model_runs() -> None:
    seen = []
    norch.onnx.export(Of(lambda x: seen.append(norch.onnx.is_in_onnx_export()) or x + 1), norch.ones(1))
    assert seen == [True] and not norch.onnx.is_in_onnx_export()


def write_parts(x: Any) -> Any:
    y, z = x * 2, x.new_zeros(len(x), 5, 4)
    row = y[:, 0]
    row += 1
    y[:, 1:, 2] = x[:, :2, 0]
    z[:, 1:4].copy_(y).mul_(2)
    return y, row, z, y.view(-1)


def rotated(x: Any) -> Any:
    rows, steps, size = x.shape
    angles = norch.outer(norch.arange(steps).float(), 1 / 100 ** (norch.arange(0, size, 2).float() / size))
    angles = norch.cat([angles, angles], -1)
    half = norch.zeros(rows, steps, size)
    half[..., : size // 2] = -x[..., size // 2 :]
    half[..., size // 2 :] = x[..., : size // 2]
    return x * angles.cos() + half * angles.sin()


def test_what_is_made_of_sizes_is_noted() -> None:
    axes = {"xs_0": {0: "batch", 1: "steps"}}
    exported(Of(rotated), norch.randn(2, 3, 4), others=[(norch.randn(5, 9, 4),)], dynamic_axes=axes)


def test_dynamic_axes_of_no_input_are_refused() -> None:
    with pytest.raises(ValueError, match="dynamic_axes names y, which is not an input"):
        norch.onnx.export(nn.Linear(2, 2), norch.ones(1, 2), dynamic_axes={"y": {0: "n"}})


REFUSED: dict[str, Any] = {
    "at .*test_onnx.py:[0-9]+ computes erfinv of float32": lambda x: x.erfinv(),
    "item at .*test_onnx.py:[0-9]+ asks": lambda x: x * x.sum().item(),
    "dropout at .* draws": lambda x: F.dropout(x, 0.5, True),
    "takes a result of pool_max at .* that its ONNX operator does not give": lambda x: F.adaptive_max_pool1d(
        x, 3, return_indices=True
    )[1],
    "mask_get at .*test_onnx.py:[0-9]+ has no": lambda x: x[x > 0],
    "depends on the size|calls for one": lambda x: x + 1 if len(x) == 3 else x * 2,
    "randn at .* draws": lambda x: x + norch.randn(x.shape[0], 4),
    "returns float": lambda x: (x, 1.0),
    "outside norch|inv at|has no ONNX": lambda x: norch.linalg.inv(x[:1].T @ x[:1] + norch.eye(4)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_has_no_operator_is_refused_by_a_sentence(message: str) -> None:
    with pytest.raises(norch.onnx.OnnxExporterError, match=message):
        norch.onnx.export(Of(REFUSED[message]), norch.rand(3, 4), dynamic_axes={"xs_0": {0: "n"}})


@pytest.mark.parametrize(
    "options",
    [{"opset_version": 11}, {"training": 2}, {"report": True}, {"custom_opsets": {"a": 1}}, {"export_params": False}],
)
def test_options_that_norch_does_not_know_are_refused(options: Any) -> None:
    with pytest.raises(norch.onnx.OnnxExporterError, match=rf"^onnx.export: {next(iter(options))}=.*not supported"):
        norch.onnx.export(nn.Linear(1, 1), norch.ones(1), **options)


def test_tensors_of_2_gb_are_refused() -> None:
    from norch.onnx import _graph

    before, _graph.LIMIT = _graph.LIMIT, 100
    try:
        with pytest.raises(norch.onnx.OnnxExporterError, match="need at least 256 bytes.*2 GB"):
            norch.onnx.export(nn.Linear(8, 8), norch.ones(8))
    finally:
        _graph.LIMIT = before
