"""Whole modules, optimizers and other objects in files of PyTorch, read with weights_only=False and by plain pickle
through the door: norch's compute what PyTorch's do."""

import argparse
import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import norch
from norch.utils import _pytree

pytestmark = pytest.mark.host


def array(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype("float32")


LONGS = np.array([[0, 1], [4, 2]])
MODELS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "sequential": (lambda nn: nn.Sequential(nn.Linear(3, 4), nn.ReLU(True), nn.BatchNorm1d(4)), [array(4, 3)]),
    "conv1d": (lambda nn: nn.Conv1d(3, 4, 3, padding=1), [array(2, 3, 8)]),
    "conv2d": (lambda nn: nn.Conv2d(3, 4, 3, padding="same", dilation=2), [array(2, 3, 8, 8)]),
    "circular": (lambda nn: nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), [array(2, 3, 8, 8)]),
    "transposed": (lambda nn: nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1), [array(2, 3, 5, 5)]),
    "norms": (lambda nn: nn.Sequential(nn.LayerNorm(3), nn.GroupNorm(1, 4), nn.RMSNorm(3)), [array(2, 4, 3)]),
    "instance norm": (lambda nn: nn.InstanceNorm2d(3, affine=True, track_running_stats=True), [array(4, 3, 5, 5)]),
    "LSTM": (lambda nn: nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), [array(2, 5, 3)]),
    "GRU": (lambda nn: nn.GRU(3, 4), [array(5, 2, 3)]),
    "RNN": (lambda nn: nn.RNN(3, 4, nonlinearity="relu"), [array(5, 2, 3)]),
    "LSTMCell": (lambda nn: nn.LSTMCell(3, 4), [array(2, 3)]),
    "GRUCell": (lambda nn: nn.GRUCell(3, 4), [array(2, 3)]),
    "RNNCell": (lambda nn: nn.RNNCell(3, 4, nonlinearity="relu"), [array(2, 3)]),
    "embedding": (lambda nn: nn.Embedding(5, 3, padding_idx=1), [LONGS]),
    "bag": (lambda nn: nn.EmbeddingBag(5, 3, mode="sum"), [LONGS]),
    "attention": (lambda nn: nn.MultiheadAttention(4, 2, batch_first=True), [array(2, 5, 4)] * 3),
    "attention, further keys": (
        lambda nn: nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True, kdim=3, vdim=3),
        [array(5, 2, 4), array(6, 2, 3), array(6, 2, 3)],
    ),
    "transformer": (lambda nn: nn.Transformer(4, 2, 1, 1, 8, 0.0, "gelu"), [array(5, 2, 4), array(6, 2, 4)]),
    "pools": (
        lambda nn: nn.Sequential(nn.MaxPool2d(2, 1, 1), nn.AvgPool2d(2, ceil_mode=True), nn.AdaptiveMaxPool2d(2)),
        [array(1, 2, 7, 7)],
    ),
    "padding": (lambda nn: nn.Sequential(nn.ReflectionPad2d(1), nn.Upsample(scale_factor=2)), [array(1, 2, 4, 4)]),
    "activations": (
        lambda nn: nn.Sequential(nn.ELU(), nn.GELU(), nn.SiLU(), nn.Mish(), nn.PReLU(), nn.Softplus(), nn.Dropout()),
        [array(3, 4)],
    ),
    "norms by hooks": (
        lambda nn: nn.Sequential(nn.utils.spectral_norm(nn.Linear(3, 4)), nn.utils.weight_norm(nn.Linear(4, 2))),
        [array(5, 3)],
    ),
    "loss": (lambda nn: nn.CrossEntropyLoss(label_smoothing=0.1), [array(4, 3), np.array([0, 1, 2, 0])]),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_modules_compute_as_in_pytorch(torch: Any, name: str) -> None:
    make, arrays = MODELS[name]
    theirs, file = make(torch.nn).eval(), io.BytesIO()
    torch.save(theirs, file)
    file.seek(0)
    ours = norch.load(file, weights_only=False)
    expected = [x for x in _pytree.tree_leaves(theirs(*map(torch.from_numpy, arrays))) if x is not None]
    found = [x for x in _pytree.tree_leaves(ours(*map(norch.from_numpy, arrays))) if x is not None]
    for a, b in zip(found, expected, strict=True):
        assert np.allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)
    assert list(ours.state_dict()) == list(theirs.state_dict()) and not ours.training
    again = pickle.loads(pickle.dumps(ours.double()))
    assert repr(again) == repr(ours) and all(p.dtype is norch.float64 for p in again.parameters())


WRITE = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
import torch
from test_pytorch_objects import MODELS, add_named, add_one, hooked
from torch.utils._pytree import tree_leaves
for name, (make, arrays) in MODELS.items():
    model = make(torch.nn).eval()
    outputs = [x for x in tree_leaves(model(*map(torch.from_numpy, arrays))) if x is not None]
    data = pickle.dumps((model, outputs))
    assert b"norch" not in data, data
    open(f"{sys.argv[2]}/{name}.pickle", "wb").write(data)
    torch.save((model, outputs), f"{sys.argv[2]}/{name}.file")
torch.save(hooked(torch), f"{sys.argv[2]}/hooked.file")
packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.zeros(2)])
parameters = torch.nn.ParameterList([torch.ones(2)]), torch.nn.ParameterDict({"a": torch.ones(1)})
torch.save((packed, *parameters, torch.nn.functional.gelu, torch.channels_last), f"{sys.argv[2]}/others.file")
for name in OPTIMIZERS:
    model = torch.nn.Linear(2, 2)
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
    results = []
    for _ in range(2):
        if results:
            torch.save((model, optimizer), f"{sys.argv[2]}/{name}.file")
        optimizer.zero_grad()
        (model(torch.ones(1, 2)) ** 2).sum().backward()
        optimizer.step()
        results.append(model.weight.detach().clone())
    torch.save(results[1], f"{sys.argv[2]}/{name}.result")
"""
OPTIMIZERS = "SGD Adam AdamW RMSprop Adagrad NAdam RAdam Adadelta ASGD Rprop Adamax".split()


@pytest.fixture(scope="module")
def written(tmp_path_factory: Any) -> Any:
    """The folder of what the door has written of each model and optimizer, with what they computed."""
    folder, code = tmp_path_factory.mktemp("written"), WRITE.replace("OPTIMIZERS", repr(OPTIMIZERS))
    command = [sys.executable, "-m", "norch", "-c", code, str(Path(__file__).parent), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return folder


@pytest.mark.parametrize("kind", ["pickle", "file"])
@pytest.mark.parametrize("name", MODELS)
def test_pytorch_computes_what_the_door_wrote(torch: Any, written: Any, name: str, kind: str) -> None:
    path = written / f"{name}.{kind}"
    model, outputs = pickle.loads(path.read_bytes()) if kind == "pickle" else torch.load(path, weights_only=False)
    expected = MODELS[name][0](torch.nn)
    assert type(model) is type(expected) and not model.training
    assert list(model.state_dict()) == list(expected.state_dict())
    for theirs, ours in zip(model.modules(), expected.modules(), strict=True):
        assert all(hasattr(theirs, attribute) for attribute in vars(ours))
    found = _pytree.tree_leaves(model(*map(torch.from_numpy, MODELS[name][1])))
    for a, b in zip([x for x in found if x is not None], outputs, strict=True):
        assert np.allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)
    model.train().double().register_forward_hook(add_one, prepend=True)


def hooked(torch: Any) -> Any:
    model = torch.nn.Linear(2, 2)
    torch.nn.init.ones_(model.weight)
    torch.nn.init.zeros_(model.bias)
    model.register_forward_hook(add_one)
    model.register_forward_pre_hook(add_named, with_kwargs=True)
    return model


def test_pytorch_calls_hooks_that_the_door_wrote(torch: Any, written: Any) -> None:
    sys.modules.setdefault("test_pytorch_objects", sys.modules[__name__])  # the name of the hooks' module there
    model = torch.load(written / "hooked.file", weights_only=False)
    assert model(input=torch.ones(1, 2)).tolist() == hooked(torch)(input=torch.ones(1, 2)).tolist() == [[5, 5]]


def test_pytorch_reads_other_objects_that_the_door_wrote(torch: Any, written: Any) -> None:
    packed, parameters, named, function, order = torch.load(written / "others.file", weights_only=False)
    assert type(packed) is torch.nn.utils.rnn.PackedSequence and packed.batch_sizes.tolist() == [2, 2, 1]
    assert torch.nn.utils.rnn.pad_packed_sequence(packed)[0].T.tolist() == [[1, 1, 1], [0, 0, 0]]
    assert type(parameters) is torch.nn.ParameterList and parameters[0].tolist() == [1, 1]
    assert dict(named.items()).keys() == {"a"} and function is torch.nn.functional.gelu
    assert order is torch.channels_last


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_pytorch_continues_optimizers_that_the_door_wrote(torch: Any, written: Any, name: str) -> None:
    model, optimizer = torch.load(written / f"{name}.file", weights_only=False)
    optimizer.zero_grad()
    (model(torch.ones(1, 2)) ** 2).sum().backward()
    optimizer.step()
    assert np.allclose(model.weight.detach(), torch.load(written / f"{name}.result"), atol=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_continue(torch: Any, name: str) -> None:
    def step(model: Any, optimizer: Any, ones: Any) -> Any:
        optimizer.zero_grad()
        (model(ones) ** 2).sum().backward()
        optimizer.step()
        return model.weight.detach().numpy()

    model, file = torch.nn.Linear(2, 2), io.BytesIO()
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
    step(model, optimizer, torch.ones(1, 2))
    torch.save((model, optimizer), file)
    file.seek(0)
    ours = norch.load(file, weights_only=False)
    assert np.allclose(step(*ours, norch.ones(1, 2)), step(model, optimizer, torch.ones(1, 2)), atol=1e-6)


def add_one(module: Any, args: Any, *result: Any) -> Any:
    return result[0] + 1 if result else (args[0] + 1,)


def add_named(module: Any, args: Any, named: Any) -> Any:
    return args, {"input": named["input"] + 1}


@pytest.mark.parametrize("legacy", [False, True])
def test_hooks_and_other_objects(torch: Any, legacy: bool) -> None:
    model = torch.nn.Linear(2, 2)
    model.register_forward_hook(add_one)
    model.register_forward_pre_hook(add_named, with_kwargs=True)
    file = io.BytesIO()
    held = {"model": model, "args": argparse.Namespace(lr=0.1), "size": torch.Size([1]), "f": torch.nn.functional.gelu}
    torch.save(held, file, _use_new_zipfile_serialization=not legacy)
    file.seek(0)
    found = norch.load(file, weights_only=False)
    assert found["args"].lr == 0.1 and found["size"] == (1,) and found["f"] is norch.nn.functional.gelu
    expected = model(input=torch.ones(1, 2)).detach().numpy()
    assert np.allclose(found["model"](input=norch.ones(1, 2)).detach().numpy(), expected)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False"):
        norch.load(file)


def test_spectral_norm_reads_older_state_dicts(torch: Any) -> None:
    """Those before PyTorch 1.0 have the weight, and not the right vector."""
    torch.manual_seed(0)
    model, file = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 3)), io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    ours = norch.load(file, weights_only=False)
    assert norch.nn.Module.state_dict(ours)._metadata[""]["spectral_norm"] == {"weight.version": 1}
    older = {name: x.detach().numpy() for name, x in model.state_dict().items() if name != "weight_v"}
    older["weight_u"] = older["weight_u"][::-1].copy()
    older["weight"] = older["weight_orig"] / 1.5
    model.load_state_dict({name: torch.tensor(x) for name, x in older.items()})
    ours.load_state_dict({name: norch.tensor(x) for name, x in older.items()})
    assert np.allclose(ours.weight_v.numpy(), model.weight_v.numpy(), rtol=1e-4)
    del older["weight_u"]
    with pytest.raises(RuntimeError, match="weight_u"):
        ours.load_state_dict({name: norch.tensor(x) for name, x in older.items()})


@pytest.mark.parametrize("zipped", [True, False])
def test_what_norch_has_no_dtype_for_is_refused_by_name(torch: Any, zipped: bool) -> None:
    ones = torch.ones(2)
    held = [(torch.float8_e4m3fn, "float8_e4m3fn"), (ones.to(torch.float8_e5m2), "float8_e5m2")]
    held += [(ones.to(torch.uint16), "uint16"), (torch.quantize_per_tensor(ones, 1.0, 0, torch.qint8), "qint8")]
    for value, dtype in held:
        torch.save({"value": value}, file := io.BytesIO(), _use_new_zipfile_serialization=zipped)
        for weights_only in (True, False):
            file.seek(0)
            with pytest.raises(pickle.UnpicklingError, match=rf"torch\.{dtype}\b.*, which norch lacks$"):
                norch.load(file, weights_only=weights_only)


def test_plain_pickles_are_read_through_the_door(torch: Any, tmp_path: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    x = torch.arange(6.0).reshape(2, 3).to(torch.bfloat16)
    held = {"model": model.eval(), "sd": model.state_dict(), "x": x.T, "layout": x.layout, "device": x.device}
    (tmp_path / "held.pkl").write_bytes(pickle.dumps(held))
    code = f"""
import pickle, torch
held = pickle.load(open({str(tmp_path / "held.pkl")!r}, "rb"))
assert held["x"].dtype is torch.bfloat16 and held["x"].tolist() == [[0, 3], [1, 4], [2, 5]], held["x"]
assert held["layout"] is torch.strided and list(held["sd"]) == list(held["model"].state_dict())
print(*held["model"](torch.ones(1, 2)).tolist()[0])
"""
    done = subprocess.run([sys.executable, "-m", "norch", "-c", code], check=True, capture_output=True, text=True)
    assert np.allclose([float(word) for word in done.stdout.split()], model(torch.ones(1, 2)).detach().numpy()[0])


@pytest.mark.parametrize(
    "module, name", [("_C._nn", "gelu"), ("_C._linalg", "linalg_det"), ("nn.modules.linear", "Linear")]
)
def test_names_are_found_whatever_was_imported_before(module: str, name: str) -> None:
    """In a process of its own: norch._C is one file, and modules of PyTorch stand below it."""
    code = f"from norch._files.pytorch import _counterpart; assert _counterpart('torch.{module}', '{name}') is not None"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
