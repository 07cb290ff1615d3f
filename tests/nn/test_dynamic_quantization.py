"""norch.quantize(..., activations="int8"): rows of the input as 8-bit integers, whose products with those of the weight
are summed exactly. So results are compared bit by bit: with the formula in NumPy, with other sets of instructions,
captured and by any number of threads."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE
from test_quantization import check_threads_and_recordings, drawn

import norch
import norch.nn.functional as F
from norch import nn
from norch._binding.library import lib
from norch.nn.quantization import QuantizedLinear
from norch.ops.quantized import packed_weight, quantized_linear, quantized_weight
from norch.utils import safetensors

PART = 2048  # columns that are summed as integers at most (csrc/families/quantized.h)
kernel = pytest.mark.kernel


def operands(m: int, n: int, k: int, bits: int, group: int = 1 << 40) -> tuple[Any, Any, Any, Any]:
    return drawn(0, m, k), *packed_weight(drawn(1, n, k), bits, group), drawn(2, n)


def integers_of(packed: Any) -> Any:
    """Those of a weight, (rows, columns)."""
    found = packed.numpy().astype(np.int64)
    if packed.dtype is norch.int8:
        return found
    blocks = found.reshape(len(found), found.shape[1] // 16, 16)
    return np.concatenate([blocks % 16, blocks // 16], 2).reshape(len(found), 2 * found.shape[1]) - 8


def formula(x: Any, packed: Any, scale: Any, bias: Any = None, group: int = 1 << 40) -> Any:
    """Each step rounded to float32, but for sums of integers."""
    x, scale = x.numpy(), scale.numpy()
    rows = np.maximum(np.abs(x).max(1, keepdims=True) / np.float32(127), np.float32(2.0**-126))
    left = np.rint(x * (np.float32(1) / rows)).astype(np.int64)
    right, total = integers_of(packed), np.zeros((len(x), len(scale)), "float32")
    assert rows.dtype == np.float32 and abs(left).max() <= 127
    for at in range(0, x.shape[1], min(group, PART)):
        part = slice(at, min(at + min(group, PART), x.shape[1]))
        total += (left[:, part] @ right[:, part].T).astype("float32") * scale[:, at // group]
    return total * rows + (0 if bias is None else bias.numpy())


# ---- values --------------------------------------------------------------------------------------------------------


@kernel
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize(
    ("n", "k"), [(1, 1), (3, 33), (4, 64), (5, 96), (16, 100), (19, 257), (40, 384), (2, PART + 40)]
)
def test_the_bits_are_those_of_the_formula(bits: int, n: int, k: int) -> None:
    for m in (1, 2, 3, 4, 7, 33):
        for group in (1 << 40, 32, 128):
            x, packed, scale, bias = operands(m, n, k, bits, group)
            for added in (bias, None):
                found = quantized_linear(x, packed, scale, added, True)
                np.testing.assert_array_equal(found.numpy(), formula(x, packed, scale, added, group))


@kernel
def test_the_largest_sums_do_not_overflow() -> None:
    """127 times -128 in each of so many columns is more than 32 bits hold."""
    k = 140_000
    x, packed = norch.ones(3, k), norch.full((5, k), -128, dtype=norch.int8)
    found = quantized_linear(x, packed, norch.ones(5, 1), None, True)
    np.testing.assert_allclose(found.numpy(), np.full((3, 5), -128.0 * k), rtol=1e-6)
    for weight in ([-128, 127], [-127, -128]):
        packed = norch.tensor([[*weight, *[0] * 30]], dtype=norch.int8)
        found = quantized_linear(norch.tensor([[-127.0, -127.0]]), packed, norch.ones(1, 1), None, True)
        assert found.item() == -127 * sum(weight)


@kernel
def test_rows_of_all_magnitudes() -> None:
    x, packed, scale, bias = operands(8, 20, 70, 8)
    x *= norch.tensor([[0.0], [1e-44], [1e-37], [1e-30], [1.0], [1e30], [3e36], [-5.0]])
    found = quantized_linear(x, packed, scale, None, True)
    np.testing.assert_array_equal(found.numpy(), formula(x, packed, scale))
    exact = x.double() @ quantized_weight(packed, scale, 70).double().t()
    assert ((found[3:] - exact[3:]).abs().amax(1) < 0.02 * exact[3:].abs().amax(1)).all()
    assert not found[0].any() and norch.equal(quantized_linear(x, packed, scale, bias, True)[0], bias)


@kernel
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_row_that_is_not_finite_is_nan_and_others_are_as_without_it(bad: float) -> None:
    for k in (5, 100):
        x, packed, scale, bias = operands(9, 6, k, 8)
        wanted = quantized_linear(x, packed, scale, bias, True)
        x[2, 3] = bad
        found = quantized_linear(x, packed, scale, bias, True)
        assert found[2].isnan().all()
        rest = [0, 1, *range(3, 9)]
        assert norch.equal(found[rest], wanted[rest])


def test_sizes_of_nothing() -> None:
    bias = drawn(0, 3)
    for shape in ((0, 40), (2, 0, 40), (2, 0)):
        packed, scale = packed_weight(drawn(1, 3, shape[-1]), 8, 1 << 40)
        found = quantized_linear(norch.ones(shape), packed, scale, bias, True)
        assert norch.equal(found, bias.expand(*shape[:-1], 3))
    assert quantized_linear(norch.ones(2, 40), *packed_weight(norch.ones(0, 40), 8, 64), None, True).shape == (2, 0)


@pytest.mark.parametrize("of", ["float16", "bfloat16", "float64"])
def test_other_floats_are_rounded_after_the_product_of_float32(of: str) -> None:
    x, packed, scale, bias = operands(5, 11, 96, 8)
    x = x.to(getattr(norch, of))
    found = quantized_linear(x, packed, scale, bias, True)
    assert found.dtype is x.dtype
    assert norch.equal(found, quantized_linear(x.float(), packed, scale, bias, True).to(x.dtype))


@kernel
def test_layouts_and_rows_alone() -> None:
    _, packed, scale, bias = operands(1, 40, 64, 8)
    wide = drawn(1, 128, 6)
    for x in (wide[::2].t(), wide.t()[:, 64:], drawn(2, 64).expand(4, 64), drawn(2, 5, 64).flip(0)):
        found = quantized_linear(x, packed, scale, bias, True)
        assert norch.equal(found, quantized_linear(x.contiguous(), packed, scale, bias, True))
        assert norch.equal(found, norch.stack([quantized_linear(row, packed, scale, bias, True) for row in x]))
    turned = packed.t().contiguous().t()
    assert norch.equal(quantized_linear(x, turned, scale, bias, True), found)


@pytest.mark.slow
@pytest.mark.host
@pytest.mark.parametrize("vnni", [pytest.param("", marks=pytest.mark.long), "0"])  # make test-isa has the others
@pytest.mark.parametrize("isa", lib.norch_isa_builds().decode().split())
def test_every_set_of_instructions(isa: str, vnni: str) -> None:
    """The tests above again: all have the bits of the formula."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "kernel", __file__],
        capture_output=True,
        env=dict(os.environ, NORCH_ISA=isa, NORCH_VNNI=vnni),
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stdout.decode()


def test_another_value_of_the_setting_is_refused() -> None:
    run = [sys.executable, "-c", "import norch"]
    done = subprocess.run(run, capture_output=True, env=dict(os.environ, NORCH_VNNI="1"))
    assert b"NORCH_VNNI=1 is not 0" in done.stderr and done.returncode


# ---- gradients, threads, recordings, vmap, autocast ----------------------------------------------------------------


@pytest.mark.parametrize("shape", [(96,), (4, 96), (2, 3, 96)])
def test_the_gradients_are_those_of_the_product_of_floats(shape: Any) -> None:
    made = norch.quantize(nn.Linear(96, 7), activations="int8")
    g, results = drawn(3, *shape[:-1], 7), []
    for call in (made, lambda x: F.linear(x, made.weight, made.bias)):
        x = drawn(1, *shape).requires_grad_()
        results.append(norch.autograd.grad(call(x), (x, made.bias), g))
    for found, wanted in zip(*results):
        assert (found - wanted).abs().max() < 1e-5 * wanted.abs().max()


@pytest.mark.host
@pytest.mark.parametrize("dtype", ["int8", "int4"])
@pytest.mark.parametrize("rows", [1, 50, 700])
def test_threads_and_recordings_change_no_bit(dtype: str, rows: int) -> None:
    check_threads_and_recordings(norch.quantize(nn.Linear(1000, 1500), dtype, activations="int8"), rows)


def test_recordings_follow_writes_and_the_option() -> None:
    model = norch.quantize(nn.Sequential(nn.Linear(64, 48), nn.GELU(), nn.Linear(48, 5)), activations="int8").eval()
    captured = norch.capture(norch.inference_mode()(model))
    for seed in range(8):
        x = drawn(seed, 3, 64)
        assert norch.equal(captured(x), model(x))
        if seed == 4:
            model[0].packed[1].fill_(3)
            model[2].scale.mul_(1.5)
        if seed == 5:
            before = model(x)
            model[0].activations = None
            assert not norch.equal(model(x), before)
    names = [name for name, *_ in captured.program.calls()]
    assert names[-1] == "quantized dynamic" and names[0] == "quantized linear"


def test_vmap_and_autocast() -> None:
    made = norch.quantize(nn.Linear(64, 5), "int4", activations="int8")
    x = drawn(1, 3, 4, 64)
    assert norch.equal(norch.vmap(made)(x), made(x))
    with norch.autocast(DEVICE, norch.bfloat16):
        assert made(x).dtype is norch.float32 and norch.equal(made(x), made(x.clone()))


# ---- models --------------------------------------------------------------------------------------------------------


def test_quantize_sets_it_on_linear_layers() -> None:
    model = nn.Sequential(nn.Conv1d(3, 4, 1), nn.Flatten(), nn.Linear(32, 40), nn.Linear(40, 2, bias=False))
    x = drawn(0, 2, 3, 8)
    wanted = model(x)
    assert norch.quantize(model, activations="int8") is model
    assert repr(model[2]).endswith("(in_features=32, out_features=40, bias=True, bits=8, activations=int8)")
    assert [getattr(layer, "activations", None) for layer in model] == [None, None, "int8", "int8"]
    assert (model(x) - wanted).abs().max() < 0.03 * wanted.abs().max()
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert norch.equal(again.to(x.device)(x), model(x)) and again[3].activations == "int8"
    exact = norch.quantize(nn.Linear(4, 4))
    assert isinstance(exact, QuantizedLinear) and exact.activations is None and "activations" not in repr(exact)


def test_files_serve_models_with_and_without_it(tmp_path: Path) -> None:
    def made(activations: str | None) -> Any:
        return norch.quantize(nn.Sequential(nn.Linear(64, 48), nn.Linear(48, 5)), "int8", 32, activations)

    one, other, x = made("int8"), made(None), drawn(0, 3, 64)
    norch.save(one.state_dict(), tmp_path / "model.pt")
    safetensors.save_model(one, tmp_path / "model.safetensors")
    other.load_state_dict(norch.load(tmp_path / "model.pt"))
    assert not norch.equal(other(x), one(x)) and (other(x) - one(x)).abs().max() < 0.02 * one(x).abs().max()
    for layer in other:
        layer.activations = "int8"
    assert norch.equal(other(x), one(x))
    safetensors.load_model(again := made("int8"), tmp_path / "model.safetensors")
    assert norch.equal(again(x), one(x))
    with norch.device("meta"):
        empty = made("int8")
    assert empty(norch.empty(3, 64, device="meta")).shape == (3, 5)
    empty.load_state_dict(norch.load(tmp_path / "model.pt"), assign=True)
    assert norch.equal(empty.to(DEVICE)(x), one(x))


@pytest.mark.host
def test_embeddings_of_a_transformer_stay_near() -> None:
    from benchmarks.transformers import encoder

    norch.manual_seed(0)
    model, tokens = encoder(nn, layers=4, words=1000).eval(), norch.randint(0, 1000, (6, 40))
    with norch.no_grad():
        wanted = model(tokens, norch.ones(6, 40))
        near = F.cosine_similarity(norch.quantize(model, activations="int8")(tokens, norch.ones(6, 40)), wanted)
    assert near.min() > 0.995


# ---- what is refused -----------------------------------------------------------------------------------------------


def test_other_values_are_refused_and_change_nothing() -> None:
    model = nn.Sequential(nn.Linear(64, 3))
    for wrong in ("int4", "", 8, True, norch.int8):
        with pytest.raises(ValueError, match="quantize: activations is 'int8' or None, not "):
            norch.quantize(model, activations=wrong)  # type: ignore[arg-type]
    assert type(model[0]) is nn.Linear
    made = norch.quantize(model, activations="int8")[0]
    with pytest.raises(ValueError, match="activations is 'int8' or None, not 'int4'"):
        made.activations = "int4"
    assert made.activations == "int8"
    with pytest.raises(norch.errors.ShapeError, match=r"quantized_linear: 30 columns in 8 bits .* not \(3, 64\)"):
        made(drawn(0, 2, 30))
    with pytest.raises(norch.errors.DTypeError, match="quantized_linear: computes in float32, not int32"):
        made(norch.ones(2, 64).int())
