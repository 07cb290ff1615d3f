"""The device "meta": each case of the table gives there the shapes, dtypes and strides of the CPU, without elements."""

from __future__ import annotations

import copy
import io
import pickle
import tracemalloc
from typing import Any

import pytest
from case import draw, laid_out, source
from cases import CASES

import norch

nn = norch.nn

# The shape of the result depends on elements.
DATA_DEPENDENT = {
    "masked_select", "nonzero", "argwhere", "nonzero as_tuple", "where alone", "bincount", "bincount weights", "unique",
    "unique_consecutive", "unique dim=1",
}  # fmt: skip


def cases(*but: str) -> Any:
    return pytest.mark.parametrize("case", [case for case in CASES if case.name not in but], ids=str)


def listed(found: Any) -> list[Any]:
    return [leaf for part in found for leaf in listed(part)] if isinstance(found, (tuple, list)) else [found]


def headers(found: Any) -> list[Any]:
    """What is known of results without their elements; other results, as they are."""
    tensors = [x for x in listed(found) if isinstance(x, norch.Tensor)]
    others = [x for x in listed(found) if not isinstance(x, norch.Tensor)]
    return others + [(tuple(x.shape), x.dtype, x.stride() if x.numel() else None) for x in tensors]


def there(x: Any) -> Any:
    return norch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


def inputs_of(case: Any, layout: str) -> list[list[Any]]:
    """Inputs on the CPU, for each of the shapes of a case."""
    dtype = next(name for name in ("float64", "float32", "int64", "bool", *case.dtypes) if name in case.dtypes)
    rng = source(f"meta {case.name}")
    drawn = [draw(case, shapes, dtype, rng) for shapes in case.shapes]
    return [[laid_out(array, layout, dtype)[0] for array in arrays] for arrays in drawn]


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided"])
@cases(*DATA_DEPENDENT, "cov weighted")  # whose weights are tensors of the CPU
def test_like_the_cpu(case: Any, layout: str) -> None:
    for inputs in inputs_of(case, layout):
        meta = [there(x) for x in inputs]
        state = norch.get_rng_state()
        found = case.call(norch, *meta)
        assert norch.get_rng_state().tolist() == state.tolist()
        assert all(x.is_meta for x in listed(found) if isinstance(x, norch.Tensor))
        assert headers(found) == headers(case.call(norch, *inputs))
        if case.in_place is not None and layout == "contiguous":
            try:
                wanted = case.write(*inputs)
            except norch.Error as error:
                with pytest.raises(type(error)):
                    case.write(*meta)
            else:
                assert headers(case.write(*meta)) == headers(wanted)


@cases(*DATA_DEPENDENT, "cov weighted", *(case.name for case in CASES if not case.grad))
def test_gradients_like_the_cpu(case: Any) -> None:
    real = inputs_of(case, "contiguous")[0]
    found = []
    for inputs in (real, [there(x) for x in real]):
        wanted = [x.requires_grad_() for x in inputs if x.is_floating_point()]
        results = [x for x in listed(case.call(norch, *inputs)) if x.requires_grad]
        found.append(norch.autograd.grad(results, wanted, [norch.ones_like(x) for x in results], allow_unused=True))
    assert [None if g is None else g.shape for g in found[1]] == [None if g is None else g.shape for g in found[0]]
    assert all(g is None or g.is_meta for g in found[1])


@cases(*(case.name for case in CASES if case.name not in DATA_DEPENDENT))
def test_shapes_that_depend_on_elements_are_refused(case: Any) -> None:
    for inputs in inputs_of(case, "contiguous"):
        if all(x.numel() for x in inputs):
            with pytest.raises(NotImplementedError):
                case.call(norch, *map(there, inputs))


LINALG = {
    "solve": lambda a: norch.linalg.solve(a, a[..., :2]),
    "svd": lambda a: norch.linalg.svd(a[..., :2]),
    "lu_solve": lambda a: norch.linalg.lu_solve(*norch.linalg.lu_factor(a), a),
    "cholesky_inverse": norch.cholesky_inverse,
    "ormqr": lambda a: norch.ormqr(a, a[..., 0], a),
    "lstsq": lambda a: norch.linalg.lstsq(a[..., :2], a),
    "eig": norch.linalg.eig,
    "matrix_exp": norch.linalg.matrix_exp,
    "rfft": norch.fft.rfft,
    "irfft": lambda a: norch.fft.irfft(norch.fft.rfft(a, dim=1), dim=1),
    "stft": lambda a: norch.istft(norch.stft(a.reshape(1, -1), 8, return_complex=True), 8),
    "poisson": lambda a: norch.poisson(a.abs()),
    "multinomial": lambda a: norch.multinomial(a[0].abs() + 1, 2),
}


@pytest.mark.parametrize("name", LINALG)
def test_what_numpy_computes(name: str) -> None:
    pytest.importorskip("scipy")
    a = norch.eye(4).expand(3, 4, 4) + 0.1
    assert headers(LINALG[name](a.to("meta"))) == headers(LINALG[name](a))


def test_no_memory() -> None:
    tracemalloc.start()
    before = norch.memory.memory_allocated()
    x = norch.empty(1 << 20, 1 << 20, device="meta")
    y = (x @ x).softmax(-1)[::2]
    assert norch.memory.memory_allocated() == before
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert (y.shape, y.data_ptr(), y.untyped_storage().data_ptr()) == ((1 << 19, 1 << 20), 0, 0)
    assert y.untyped_storage().nbytes() == 1 << 42


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.to("cpu"),
        lambda x: x.tolist(),
        lambda x: x.sum().item(),
        lambda x: bool(x.sum()),
        lambda x: x.numpy(),
        lambda x: x.__dlpack__(),
        lambda x: norch.empty(2, 3).copy_(x),
        lambda x: x + norch.ones(2, 3),
        lambda x: norch.ones(2, 3).add_(x),
        lambda x: norch.ones(2, 3)[x.sum().long()],
        lambda x: norch.save({"x": x}, io.BytesIO(), format="safetensors"),
        lambda x: [captured(x) for captured in [norch.capture(lambda y: y + 1)] for _ in range(3)],
    ],
)
def test_elements_are_refused(read: Any) -> None:
    with pytest.raises((RuntimeError, TypeError, BufferError)):
        read(norch.empty(2, 3, device="meta"))
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        norch.empty(2, 3, device="meta").cpu()


def test_like_torch(torch: Any) -> None:
    for lib in (torch, norch):
        x, one = lib.empty(2, 3, device="meta"), lib.tensor(2.0)
        for y in (x + one, one + x, x * 2, x[lib.tensor([0, 1])], x.copy_(lib.ones(2, 3)), x.masked_fill(x > 0, 1)):
            assert (tuple(y.shape), str(y.device)) == ((2, 3), "meta")
        assert (one + x.sum()).is_meta
        assert lib.empty_like(x, device="cpu").device.type == "cpu"
        assert lib.ones(3, 2).t().to("meta").stride() == (1, 2)
        assert str(lib.device("meta")) == "meta"
        assert x.get_device() == -1
    for x in (torch.empty(2, 3, device="meta"), torch.empty(0, device="meta", dtype=torch.int64).double()):
        dtype = getattr(norch, str(x.dtype)[6:])
        ours = norch.empty(x.shape, dtype=dtype, device="meta")
        assert repr(ours) == repr(x).replace("torch.", "norch.")
        assert repr(ours.requires_grad_()) == repr(x.requires_grad_()).replace("torch.", "norch.")


LAYERS = {
    "Linear": (3, 4), "Bilinear": (2, 3, 4), "Conv1d": (2, 4, 3), "Conv2d": (2, 4, 3), "Conv3d": (2, 4, 3),
    "ConvTranspose1d": (2, 4, 3), "ConvTranspose2d": (2, 4, 3), "ConvTranspose3d": (2, 4, 3), "BatchNorm1d": (4,),
    "BatchNorm2d": (4,), "BatchNorm3d": (4,), "SyncBatchNorm": (4,), "InstanceNorm1d": (4,), "InstanceNorm2d": (4,),
    "InstanceNorm3d": (4,), "LayerNorm": (4,), "GroupNorm": (2, 4), "RMSNorm": (4,), "Embedding": (5, 3),
    "EmbeddingBag": (5, 3), "RNN": (3, 4), "LSTM": (3, 4), "GRU": (3, 4), "RNNCell": (3, 4), "LSTMCell": (3, 4),
    "GRUCell": (3, 4), "MultiheadAttention": (4, 2), "TransformerEncoderLayer": (4, 2),
    "TransformerDecoderLayer": (4, 2), "Transformer": (4, 2, 1, 1, 8), "PReLU": (),
    "AdaptiveLogSoftmaxWithLoss": (4, 10, [3]),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    make, arguments = getattr(nn, name), LAYERS[name]
    state = norch.get_rng_state().tolist()
    layer = make(*arguments, device="meta")
    with norch.device("meta"):
        other = make(*arguments)
    skipped = nn.utils.skip_init(make, *arguments)
    assert norch.get_rng_state().tolist() == state
    assert all(x.is_meta for one in (layer, other) for x in (*one.parameters(), *one.buffers()))
    real = make(*arguments)
    assert layer.load_state_dict(real.state_dict(), assign=True)
    assert all(norch.equal(x, y) for x, y in zip(layer.parameters(), real.parameters()))
    for built in (other.to_empty(device="cpu"), skipped):
        assert [tuple(x.shape) for x in built.parameters()] == [tuple(x.shape) for x in real.parameters()]
        assert not any(x.is_meta for x in (*built.parameters(), *built.buffers()))


def test_skip_init_refuses() -> None:
    with pytest.raises(norch.Error, match="skip_init: ReLU takes no device"):
        nn.utils.skip_init(nn.ReLU)
    with pytest.raises(norch.Error, match="class of modules"):
        nn.utils.skip_init(norch.zeros, 2)


@pytest.mark.parametrize(
    "name", "SGD Adam AdamW Adagrad RMSprop NAdam RAdam Adamax Adadelta ASGD Rprop Adafactor".split()
)
def test_training(name: str) -> None:
    with norch.device("meta"):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))
        x, y = norch.randn(4, 3, 8, 8), norch.randint(0, 10, (4,))
    optimizer = getattr(norch.optim, name)(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    assert all(p.grad.is_meta and p.grad.shape == p.shape for p in model.parameters())
    assert norch.get_default_device().type == "cpu"


@pytest.mark.parametrize("way", ["deepcopy", "pickle", "norch", "torch"])
def test_copies_and_files(way: str) -> None:
    x = norch.empty(3, 2, device="meta").t()
    tensors = {"x": x, "view": x[1:], "p": nn.Parameter(norch.empty(2, device="meta"))}
    if way == "deepcopy":
        found = copy.deepcopy(tensors)
    elif way == "pickle":
        found = pickle.loads(pickle.dumps(tensors))
    else:
        file = io.BytesIO()
        norch.save(tensors, file, format=way)
        assert len(file.getvalue()) < 2000
        file.seek(0)
        found = norch.load(file)
    assert headers(list(found.values())) == headers(list(tensors.values()))
    assert all(one.is_meta for one in found.values())
    assert type(found["p"]) is nn.Parameter
    if way != "torch":  # which has no storages of such tensors
        assert found["x"].untyped_storage() is found["view"].untyped_storage()


def test_files_of_torch(torch: Any) -> None:
    file = io.BytesIO()
    torch.save({"x": torch.empty(3, 2, device="meta").t()}, file)
    file.seek(0)
    assert headers([norch.load(file)["x"]]) == [((2, 3), norch.float32, (1, 2))]
    file = io.BytesIO()
    norch.save({"x": norch.empty(3, 2, device="meta").t()}, file, format="torch")
    file.seek(0)
    found = torch.load(file)["x"]
    assert found.is_meta
    assert found.stride() == (1, 2)


@pytest.mark.parametrize("kind", ["norch", "safetensors"])
def test_mapped_files(tmp_path: Any, kind: str) -> None:
    model = nn.TransformerEncoderLayer(8, 2, 16)
    norch.save(model.state_dict(), tmp_path / "model", format=kind)
    with norch.device("meta"):
        other = nn.TransformerEncoderLayer(8, 2, 16)
    other.load_state_dict(norch.load(tmp_path / "model", mmap=True), assign=True)
    x = norch.randn(3, 1, 8)
    assert norch.equal(other.eval()(x), model.eval()(x))


def test_other_modes() -> None:
    x = norch.empty(3, 2, device="meta")
    assert norch.func.grad(lambda x: (x**2).sum())(x).is_meta
    assert norch.vmap(lambda x: x * 2)(x).shape == (3, 2)
    with norch.autocast("cpu"):
        assert (x @ x.t()).dtype is norch.float32
    compiled = norch.compile(lambda x: x + 1)
    with pytest.warns(UserWarning, match="it computes on meta tensors"):
        assert [compiled(x).is_meta for _ in range(3)] == [True] * 3


def test_a_refused_recording_of_long_calls() -> None:
    compiled = norch.compile(lambda x: x + 1)
    with pytest.warns(UserWarning, match="it computes on meta tensors"):
        assert compiled(norch.empty(10**6, device="meta")).is_meta  # calls of this size give up the lock on the CPU
        assert compiled(norch.empty(10**6, device="meta")).is_meta
