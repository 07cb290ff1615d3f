"""norch.quantize: weights of 8 and 4 bits of linear layers, embeddings and convolutions. Results are those of the
weight that the integers stand for, computed here from the bytes; and the same bits captured and by any number of
threads."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
import norch.nn.functional as F
from norch import nn
from norch._binding.library import lib
from norch.nn.quantization import QuantizedConv2d, QuantizedEmbedding, QuantizedLinear
from norch.ops.quantized import quantized_linear, quantized_weight
from norch.utils import safetensors

BITS = {"int8": 8, "int4": 4}


@pytest.fixture(autouse=True)
def seeded() -> None:
    norch.manual_seed(0)


def drawn(seed: int, *shape: int) -> Any:
    return norch.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def weight_of(packed: Any, scale: Any, columns: int) -> Any:
    """The weight as float64, from the bytes."""
    packed, scale = packed.numpy(), scale.numpy().astype("float64")
    integers = packed.astype(int)
    if packed.dtype == np.uint8:
        blocks = integers.reshape(len(packed), packed.shape[1] // 16, 16)
        integers = np.concatenate([blocks % 16, blocks // 16], 2).reshape(len(packed), 2 * packed.shape[1]) - 8
    group = 32
    while -(-columns // group) > scale.shape[1]:
        group *= 2
    return (
        integers[:, :columns] * scale.repeat(group, 1)[:, :columns]
        if scale.shape[1] > 1
        else integers[:, :columns] * scale
    )


def linear(dtype: str, columns: int, rows: int, group: int | None = None, bias: bool = True) -> tuple[Any, Any]:
    """A layer, and what is made of it."""
    layer = nn.Linear(columns, rows, bias=bias)
    with norch.no_grad():
        layer.weight.copy_(drawn(0, rows, columns))
    return layer, norch.quantize(copy.deepcopy(layer), dtype, group)


# ---- values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("group", [None, 32, 128])
@pytest.mark.parametrize(("columns", "rows"), [(64, 5), (33, 1), (1, 3), (300, 70), (512, 17), (0, 3), (40, 0)])
def test_linear_is_that_of_the_weight(dtype: str, group: int | None, columns: int, rows: int) -> None:
    layer, made = linear(dtype, columns, rows, group)
    assert isinstance(made, QuantizedLinear) and made.bits == BITS[dtype] and made.bias is not None
    weight, bias = weight_of(made.packed, made.scale, columns), layer.bias.detach().numpy().astype("float64")
    np.testing.assert_allclose(made.weight.numpy(), weight, rtol=1e-6)
    for shape in [(), (1,), (2,), (3,), (7,), (8,), (9,), (50,), (0,), (2, 3), (3, 0, 2)]:
        x = drawn(1, *shape, columns)
        wanted = x.numpy().astype("float64") @ weight.T + bias
        found = made(x).detach().numpy()
        assert found.shape == wanted.shape and found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, atol=1e-5 * max(1, columns) ** 0.5)


@pytest.mark.parametrize(
    ("dtype", "group", "scales"),
    [("int8", None, 1), ("int8", 32, 8), ("int8", 128, 2), ("int4", None, 4), ("int4", 32, 8), ("int4", 256, 1)],
)
def test_groups_of_columns(dtype: str, group: int | None, scales: int) -> None:
    for bias in (True, False):
        made = linear(dtype, 256, 3, group, bias)[1]
        assert made.scale.shape == (3, scales)
        assert repr(made) == f"QuantizedLinear(in_features=256, out_features=3, bias={bias}, bits={BITS[dtype]})"


@pytest.mark.parametrize(("dtype", "group", "bound"), [("int8", None, 0.004), ("int8", 64, 0.004), ("int4", 64, 0.19)])
def test_integers_are_the_nearest(dtype: str, group: int | None, bound: float) -> None:
    layer, made = linear(dtype, 256, 20, group)
    weight, error = layer.weight.detach(), (made.weight - layer.weight.detach()).abs()
    groups = weight.reshape(20, -1, group or 256).abs().amax(-1, keepdim=True)
    assert (error.reshape(20, -1, group or 256) / groups).max() < bound
    assert error.square().mean().sqrt() / weight.square().mean().sqrt() < (0.01 if dtype == "int8" else 0.1)


def test_weights_that_divide_by_nothing() -> None:
    for dtype in BITS:
        layer = nn.Linear(64, 3, bias=False)
        with norch.no_grad():
            layer.weight.copy_(norch.tensor([[0.0], [1e-44], [3e38]]).expand(3, 64))
        weight = norch.quantize(layer, dtype).weight
        assert weight.isfinite().all() and (weight[0] == 0).all()
        assert (weight[2] / 3e38 - 1).abs().max() < 0.1


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("of", ["float16", "bfloat16", "float64"])
def test_other_floats(dtype: str, of: str) -> None:
    _, made = linear(dtype, 96, 11)
    for rows in (1, 20):
        x = drawn(1, rows, 96).to(getattr(norch, of))
        wanted = x.double().cpu().numpy() @ weight_of(made.packed, made.scale, 96).T + made.bias.detach().numpy()
        found = made(x)
        assert found.dtype is x.dtype
        step = {"float16": 1e-3, "bfloat16": 8e-3, "float64": 1e-6}[of]
        np.testing.assert_allclose(found.detach().double().numpy(), wanted, rtol=step, atol=step)
    half = norch.quantize(copy.deepcopy(made).to(x.dtype))  # its buffers are of that dtype, too
    assert half(x).dtype is x.dtype and half.scale.dtype is x.dtype is half.weight.dtype
    assert (half(x).float() - found.float()).abs().max() < 0.02 * found.abs().max()


@pytest.mark.parametrize("dtype", BITS)
def test_layouts(dtype: str) -> None:
    _, made = linear(dtype, 64, 40)
    wide, packed, scale = drawn(1, 128, 6), made.packed, made.scale
    for x in (wide[::2].t(), wide.t()[:, 64:], drawn(2, 64).expand(4, 64), drawn(2, 5, 64).flip(0)):
        assert norch.equal(made(x), made(x.contiguous()))
    turned = packed.t().contiguous().t(), norch.cat([scale, scale], 1)[:, : scale.shape[1]]
    x = drawn(3, 5, 64)
    assert norch.equal(quantized_linear(x, *turned, made.bias), made(x))
    assert norch.equal(quantized_weight(*turned, 64), made.weight)


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("outputs", [3, 33, 35, 3000])
def test_a_row_has_the_bits_that_it_has_alone(dtype: str, outputs: int) -> None:
    _, made = linear(dtype, 200, outputs)
    x = drawn(1, 7, 200)
    assert norch.equal(made(x), norch.stack([made(row) for row in x]))


# ---- gradients, threads, recordings, vmap, autocast ----------------------------------------------------------------


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("shape", [(96,), (4, 96), (2, 3, 96), (20, 96)])
def test_gradients_of_input_and_bias(dtype: str, shape: Any) -> None:
    _, made = linear(dtype, 96, 7)
    results = []
    for call in (made, lambda x: F.linear(x, made.weight, made.bias)):
        x = drawn(1, *shape).requires_grad_()
        g = norch.autograd.grad(call(x).square().sum(), (x, made.bias), create_graph=True)
        results.append([*g, *norch.autograd.grad(g[0].square().sum(), x)])
    for found, wanted in zip(*results):
        assert (found - wanted).abs().max() < 1e-5 * wanted.abs().max()
    assert [name for name, _ in made.named_parameters()] == ["bias"]


def check_threads_and_recordings(made: Any, rows: int) -> None:
    """A layer of 1,000 columns gives the same bits by any number of threads, eagerly and captured."""
    captured, before, found = norch.capture(norch.no_grad()(made)), norch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            norch.set_num_threads(threads)
            for seed in range(5):
                x = drawn(seed, rows, 1000)
                assert norch.equal(captured(x), made(x))
            found.append(made(x))
    finally:
        norch.set_num_threads(before)
    assert captured.recordings() and norch.equal(found[0], found[1]) and norch.equal(found[0], found[2])


@pytest.mark.host
@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("rows", [1, 8, 50])
def test_threads_and_recordings_change_no_bit(dtype: str, rows: int) -> None:
    check_threads_and_recordings(linear(dtype, 1000, 1500)[1], rows)


def test_a_network_captured() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)).eval()
    wanted = model(drawn(0, 2, 3, 8, 8))
    norch.quantize(model)
    captured = norch.capture(norch.no_grad()(model))
    for seed in (3, 2, 1, 0):
        x = drawn(seed, 2, 3, 8, 8)
        assert norch.equal(captured(x), model(x))
    assert (model(x) - wanted).abs().max() < 0.02


def test_a_captured_step_trains_what_is_in_front() -> None:
    front, head = nn.Linear(6, 64), norch.quantize(nn.Linear(64, 2), "int4")
    optimizer = norch.optim.SGD([*front.parameters(), *head.parameters()], lr=0.1)

    @norch.capture
    def step(x: Any) -> Any:
        loss = head(front(x)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    x = drawn(1, 8, 6)
    losses = [step(x).item() for _ in range(20)]
    assert losses[-1] < losses[0] / 2


def test_vmap() -> None:
    _, made = linear("int4", 64, 5)
    x = drawn(1, 3, 4, 64)
    assert (norch.vmap(made)(x) - made(x)).abs().max() < 1e-5
    assert (norch.vmap(made, 1)(x[0].t().contiguous()) - made(x[0])).abs().max() < 1e-5
    grad = norch.vmap(norch.func.grad(lambda row: made(row).square().sum()))(x[0])
    wanted = norch.autograd.grad(made(y := x[0].clone().requires_grad_()).square().sum(), y)[0]
    assert (grad - wanted).abs().max() < 1e-3
    with pytest.raises(norch.errors.ShapeError, match="quantized_linear: the input needs at least 1 dimension"):
        norch.vmap(made)(drawn(1, 64))
    table = norch.quantize(nn.Embedding(20, 50), "int4")
    for index in (norch.tensor([[1, 2], [3, 19]]), norch.tensor([4, 5])):
        assert norch.equal(norch.vmap(table)(index), table(index))
    scales = made.scale.expand(3, *made.scale.shape)
    with pytest.raises(NotImplementedError, match="quantized_linear: vmap can batch only the input"):
        norch.vmap(lambda scale: quantized_linear(x[0], made.packed, scale))(scales)


def test_autocast_leaves_the_dtype() -> None:
    _, made = linear("int8", 64, 5)
    x = drawn(1, 3, 64)
    with norch.autocast(DEVICE, norch.bfloat16):
        assert norch.equal(made(x), made(x.clone())) and made(x).dtype is norch.float32
        assert made(x.bfloat16()).dtype is norch.bfloat16
    assert norch.equal(made(x), norch.stack([made(row) for row in x]))


# ---- models --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", BITS)
def test_embedding(dtype: str) -> None:
    table = nn.Embedding(20, 50, padding_idx=3)
    made = norch.quantize(copy.deepcopy(table), dtype)
    assert isinstance(made, QuantizedEmbedding) and repr(made) == f"QuantizedEmbedding(20, 50, bits={made.bits})"
    weight = weight_of(made.packed, made.scale, 50).astype("float32")
    for index in ([3, 19, 0, 3], [[1, 2], [3, 4]], 7, []):
        found = made(norch.tensor(index, dtype=norch.int64))
        np.testing.assert_allclose(found.numpy(), weight[np.array(index, int)], rtol=1e-6)
    assert (made(norch.tensor(3)) == 0).all()
    with pytest.raises(IndexError, match="20 is out of"):
        made(norch.tensor([20])).tolist()  # a device tells when it is waited for


@pytest.mark.parametrize(
    "options", [{"padding": 1, "groups": 2}, {"padding": 2, "padding_mode": "reflect", "bias": False}]
)
def test_convolutions(options: Any) -> None:
    for dtype in BITS:  # 8 bits, both times
        layer = nn.Conv2d(4, 6, 3, stride=2, **options)
        made = norch.quantize(copy.deepcopy(layer), dtype)
        assert isinstance(made, QuantizedConv2d) and made.packed.dtype is norch.int8 and made.packed.shape[1] % 32 == 0
        x = drawn(1, 2, 4, 9, 9).requires_grad_()
        with norch.no_grad():
            layer.weight.copy_(made.weight)
        assert norch.equal(made(x), layer(x)) and norch.equal(made(x[0]), layer(x[0]))
        made(x).sum().backward()
        assert x.grad is not None and repr(made)[9:-9] == repr(layer)[:-1] and repr(made).endswith(", bits=8)")
    made = norch.quantize(one := nn.Conv1d(30, 5, 4), group=32)  # which convolutions do not have
    assert made.scale.shape == (5, 1) and (made(drawn(1, 2, 30, 8)) - one(drawn(1, 2, 30, 8))).abs().max() < 0.05


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word, self.head = nn.Embedding(30, 64), nn.Linear(64, 30, bias=False)
        self.head.weight = self.word.weight
        self.again = self.body = nn.Linear(64, 64)

    def forward(self, index: Any) -> Any:
        return self.head(self.again(self.body(self.word(index))))


def test_what_is_shared_stays_shared() -> None:
    model = norch.quantize(Tied(), "int4")
    assert model.word.packed is model.head.packed and model.word.scale is model.head.scale and model.again is model.body
    index = norch.tensor([1, 2])
    wanted = model.word(index)
    for layer in (model.body, model.body, model.head):
        wanted = F.linear(wanted, layer.weight, layer.bias)
    assert (model(index) - wanted).abs().max() < 1e-3


def test_what_stays_as_it_is() -> None:
    class Own(nn.Linear):
        pass

    class Conv1D(nn.Module):  # transformers' has the name, too
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = nn.Parameter(drawn(0, 64, 64)), None

    attention = nn.MultiheadAttention(64, 2)
    model = nn.Sequential(
        Own(64, 64), nn.utils.parametrizations.weight_norm(nn.Linear(64, 64)), nn.Embedding(3, 4, max_norm=1.0)
    )
    model.append(nn.utils.weight_norm(nn.Linear(64, 64))).append(attention).append(nn.LazyLinear(3)).append(Conv1D())
    before = [type(layer) for layer in model.modules()]
    assert norch.quantize(model) is model and [type(layer) for layer in model.modules()] == before


def test_hooks_and_modes_move_along() -> None:
    seen: list[Any] = []
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 2)).eval()
    handle = model[0].register_forward_hook(lambda layer, given, found: seen.append(type(layer)))
    norch.quantize(model)
    model(drawn(0, 1, 64))
    assert seen == [QuantizedLinear] and not any(layer.training for layer in model.modules())
    handle.remove()
    model(drawn(0, 1, 64))
    assert len(seen) == 1
    assert norch.quantize(model) is model and type(model[0]) is QuantizedLinear  # again: nothing to do


def test_conv1d_of_transformers() -> None:
    conv1d = type("Conv1D", (nn.Module,), {"__module__": "transformers.pytorch_utils"})
    layer = conv1d()
    layer.weight, layer.bias = nn.Parameter(drawn(0, 64, 96)), nn.Parameter(drawn(1, 96))
    made = norch.quantize(nn.ModuleList([layer]))[0]
    x = drawn(2, 3, 64)
    assert type(made) is QuantizedLinear and (made.in_features, made.out_features) == (64, 96)
    assert (made(x) - (x @ layer.weight + layer.bias)).abs().max() < 0.2


@pytest.mark.parametrize("dtype", BITS)
def test_files(dtype: str, tmp_path: Path) -> None:
    norch.manual_seed(0)
    model, index = norch.quantize(Tied(), dtype), norch.tensor([[1, 2, 29]])
    state = model.state_dict()
    assert {"word.packed", "word.scale", "body.bias", "head.packed"} < set(state)
    for name in ("model.norch", "model.pt"):
        norch.save(state, tmp_path / name, format="torch" if name.endswith("pt") else "norch")
        other = norch.quantize(Tied(), dtype)
        assert not norch.equal(other(index), model(index))
        other.load_state_dict(norch.load(tmp_path / name))
        assert norch.equal(other(index), model(index))
    safetensors.save_model(model, tmp_path / "model.safetensors")
    with norch.device("meta"):
        empty = norch.quantize(Tied(), dtype)
    other = norch.quantize(Tied(), dtype)
    safetensors.load_model(other, tmp_path / "model.safetensors")
    assert norch.equal(other(index), model(index))
    if DEVICE == "cpu":
        empty.load_state_dict(state, assign=True)
        assert norch.equal(empty(index), model(index))
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert norch.equal(again.to(index.device)(index), model(index))
    whole = io.BytesIO()
    norch.save(model, whole)
    whole.seek(0)
    assert norch.equal(norch.load(whole, weights_only=False).to(index.device)(index), model(index))
    wrong = norch.quantize(Tied(), "int4" if dtype == "int8" else "int8")
    with pytest.raises(RuntimeError, match="word.packed"):
        wrong.load_state_dict(state)


# ---- what is refused -----------------------------------------------------------------------------------------------


def test_bad_arguments() -> None:
    model = nn.Sequential(nn.Linear(64, 3), nn.Linear(3, 3))
    for wrong, message in [
        (lambda: norch.quantize(model, "int3"), "quantize: dtype is 'int8' or 'int4', not 'int3'"),
        (lambda: norch.quantize(model, "int4", 48), "quantize: group is a power of two from 32, not 48"),
        (lambda: norch.quantize(model, "int4", 16), "quantize: group is a power of two from 32, not 16"),
        (lambda: norch.quantize(model, "int4", 64.0), "quantize: group is a power of two from 32, not 64.0"),  # type: ignore[arg-type]
    ]:
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(TypeError, match="quantize: a Module is quantized, not Tensor"):
        norch.quantize(norch.ones(2))  # type: ignore[arg-type]
    with norch.no_grad():
        model[1].weight[0, 0] = float("nan")
    with pytest.raises(ValueError, match="quantize: the weight of '1' has elements that are not finite"):
        norch.quantize(model)
    assert type(model[0]) is nn.Linear
    with pytest.raises(ValueError, match="quantize: the weight of 'Linear' has elements that are not finite"):
        norch.quantize(model[1])


def test_operands_that_do_not_fit() -> None:
    _, made = linear("int8", 96, 5, 32)
    x, packed, scale = drawn(0, 2, 96), made.packed, made.scale
    for call, error, message in [
        (
            (x[:, :64], packed, scale),
            norch.errors.ShapeError,
            r"64 columns in 8 bits are a weight .*\(rows, 64\), not \(5, 96\)",
        ),
        ((x, packed.byte(), scale), norch.errors.ShapeError, r"96 columns in 4 bits .*\(rows, 48\), not \(5, 96\)"),
        ((x, packed[0], scale), norch.errors.ShapeError, r"not \(96,\)"),
        ((x, packed.int(), scale), norch.errors.DTypeError, "int8 .8 bits. or uint8 .4 bits., not int32"),
        ((x.int(), packed, scale), norch.errors.DTypeError, "computes in float32, not int32"),
        ((x, packed, scale.int()), norch.errors.DTypeError, "scales are floats, not int32"),
        ((x, packed, scale[:4]), norch.errors.ShapeError, r"scales of shape \(4, 3\) for a weight of 5 rows"),
        ((x, packed, scale[:, :0]), norch.errors.ShapeError, "0 scales a row for 96 columns"),
        ((x, packed, norch.cat([scale, scale], 1)), norch.errors.ShapeError, "6 scales a row for 96 columns"),
        ((x, packed, scale, drawn(0, 4)), norch.errors.ShapeError, r"the bias needs shape \(5,\) .* not \(4,\)"),
        ((x[0, 0], packed, scale), norch.errors.ShapeError, "the input needs at least 1 dimension"),
    ]:
        with pytest.raises(error, match=f"quantized_linear: .*{message}"):
            quantized_linear(*call)
    with pytest.raises(TypeError, match="quantized_linear"):
        quantized_linear(x, packed, [1.0])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="quantized_linear"):
        made([1.0])
    with pytest.raises(norch.errors.ShapeError, match="quantized_weight: -1 columns"):
        lib.norch_quantized_weight(packed, scale, -1)
