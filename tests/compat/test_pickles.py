"""Plain pickles (pickle.dumps, joblib, copy) and files of whole objects through the door: PyTorch reads
what norch writes, and norch what PyTorch writes. norch runs in a process of its own."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import norch

pytestmark = pytest.mark.host

ROOT = Path(norch.__file__).resolve().parents[1]
ENV = {**os.environ, "PYTHONPATH": str(ROOT)}
DTYPES = "float32 float64 float16 bfloat16 bool uint8 int8 int16 int32 int64 complex64 complex128".split()

# Runs in norch and in PyTorch.
MAKE = f"""
import torch
from torch import nn
whole = torch.arange(12.0).view(3, 4)
note, tag = torch.ones(2, requires_grad=True), nn.Parameter(torch.ones(2))
note.note, tag.tag = [1], "a"
made = dict(
    views=(whole[1:, ::2], whole.T, whole[0]), bits=(whole, whole.view(torch.int32)), note=note, tag=tag,
    dtypes=[torch.tensor([0, 1, 3]).to(getattr(torch, name)) for name in {DTYPES}],
    scalar=torch.tensor(3.5), empty=torch.empty(0, 3), meta=torch.empty(2, 3, device="meta"),
    parameter=nn.Parameter(torch.ones(2, 3)), frozen=nn.Parameter(torch.zeros(2), requires_grad=False),
)
"""

# What there is to be compared of all that was made, in plain Python.
SAID = """
def said(x):
    if isinstance(x, dict):
        return {name: said(value) for name, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [said(value) for value in x]
    values = None if x.device.type == "meta" else x.tolist()
    facts = str(x.dtype), tuple(x.shape), tuple(x.stride()), x.storage_offset(), x.requires_grad, x.is_leaf
    return type(x).__name__, facts, values, vars(x)
"""


def door(code: str) -> None:
    command = [sys.executable, "-m", "norch", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=ENV)
    assert not done.returncode, done.stderr


def shared(x: Any) -> bool:
    return len({part.untyped_storage().data_ptr() for part in x}) == 1


@pytest.fixture(scope="module")
def written(tmp_path_factory: Any) -> Path:
    """The folder of what norch has pickled, by each protocol."""
    folder: Path = tmp_path_factory.mktemp("pickles")
    door(f"""{MAKE}
import pickle
for protocol in range(6):
    data = pickle.dumps(made, protocol)
    assert b"norch" not in data, data
    open(f"{folder}/{{protocol}}", "wb").write(data)
""")
    return folder


@pytest.mark.parametrize("protocol", range(6))
def test_pytorch_reads_what_the_door_wrote(torch: Any, written: Path, protocol: int) -> None:
    read = pickle.loads((written / str(protocol)).read_bytes())
    names: dict[str, Any] = {}
    exec(MAKE + SAID, names)
    assert names["said"](read) == names["said"](names["made"])
    assert shared(read["views"]) and shared(read["bits"])


def test_the_door_reads_what_pytorch_wrote(torch: Any, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(MAKE + SAID, names)
    (tmp_path / "made").write_bytes(pickle.dumps(names["made"]))
    (tmp_path / "said").write_bytes(pickle.dumps(names["said"](names["made"])))
    door(f"""{SAID}
import pickle
made, expected = (pickle.load(open({str(tmp_path)!r} + name, "rb")) for name in ("/made", "/said"))
assert said(made) == expected, said(made)
""")


OF_A_CLASS = """
class Named(torch.Tensor): ...
class Weight(nn.Parameter): ...
class Own(torch.Tensor):
    def __reduce__(self):
        return torch.Tensor.as_subclass, (torch.full((2,), 7.0), Own)
named = torch.ones(2, requires_grad=True).as_subclass(Named).detach().requires_grad_()
named.name = "a"
"""


def test_the_door_reads_its_own(tmp_path: Path) -> None:
    """Sharing, subclasses, attributes, copies; norch's own files keep norch's form."""
    door(f"""{MAKE}{SAID}{OF_A_CLASS}
import copy, io, pickle
read = pickle.loads(pickle.dumps(made))
assert said(read) == said(made)
for name in ("views", "bits"):
    assert all(x.untyped_storage() is read[name][0].untyped_storage() for x in read[name])
for x in (named, Weight(torch.ones(2))):
    for again in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert said(again) == said(x) and type(again) is type(x), again
assert copy.copy(whole).untyped_storage() is whole.untyped_storage()
assert copy.deepcopy(whole).untyped_storage() is not whole.untyped_storage()
assert pickle.loads(pickle.dumps(whole[1:].storage())).tolist() == whole.flatten().tolist()
own = pickle.loads(pickle.dumps(torch.ones(2).as_subclass(Own)))
assert type(own) is Own and own.tolist() == [7, 7]
torch.save(made["views"], file := io.BytesIO(), format="norch")
assert b"_load_from_bytes" not in file.getvalue() and b"rebuilt" in file.getvalue()
file.seek(0)
assert said(torch.load(file)) == said(made["views"])
""")


MODULES = """
import copy, io, pickle
import torch
from torch import nn
def hook(module, args, kwargs, result):
    return result + 1
class Falsy(list):  # a hook
    def __call__(self, module, args, result):
        return result * 2
class Named(torch.Tensor): ...
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.rnn = nn.Conv1d(3, 4, 3, padding="same"), nn.LSTM(8, 4)
        self.register_buffer("kept", torch.ones(1), persistent=False)
        self.register_forward_hook(hook, with_kwargs=True)
        self.my_hooks, self.conv.padding = [hook], 1  # of the program
        self.register_forward_hook(Falsy())
    def forward(self, x):
        return self.rnn(self.conv(x))[0] * self.kept
def saved(x):
    torch.save(x, file := io.BytesIO())
    file.seek(0)
    return torch.load(file, weights_only=False), file.getvalue()[:2]
net, x = Net(), torch.ones(2, 3, 8)
"""


def test_modules_are_copied_and_read(tmp_path: Path) -> None:
    """Hooks, buffers and registries after each way; a shallow copy shares its hooks, as in PyTorch."""
    (tmp_path / "program.py").write_text(
        MODULES
        + """
for again in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net), saved(net)[0]):
    assert (again(x) == net(x)).all() and again.my_hooks == [hook] and len(again._forward_hooks) == 2
    assert len(again.state_dict()) == len(net.state_dict()) == 6
    again.conv.weight = nn.Parameter(torch.zeros(4, 3, 3))
    assert again._modules["conv"]._parameters["weight"] is again.conv.weight and "kept" in again._buffers
    assert pickle.loads(pickle.dumps(again)).conv.weight.sum() == 0
assert (copy.copy(net)(x) == net(x)).all()
net.register_forward_hook(lambda *_: None)
assert copy.copy(net)._forward_hooks is net._forward_hooks
assert copy.deepcopy(net)._forward_hooks is not net._forward_hooks
named = torch.ones(2).as_subclass(Named)
named.tag = "a"
read, head = saved([named, nn.Linear(1, 1)])
assert head == b"PK" and type(read[0]) is Named and read[0].tag == "a"
views, head = saved([nn.ReLU(), (whole := torch.arange(4)), whole[1:]])
assert head == b"PK" and views[1].untyped_storage() is views[2].untyped_storage()
for x in (nn.LazyLinear(2), torch.Generator(), torch.finfo(torch.float32)):  # whose state is another one in PyTorch
    read, head = saved([x])
    assert head == b"no" and type(read[0]) is type(x)
"""
    )
    command = [sys.executable, "-m", "norch", tmp_path / "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, env=ENV)
    assert not done.returncode, done.stderr


PROCESSES = """
import multiprocessing, sys, norch
norch.as_torch()
import torch, torch.multiprocessing
from torch.utils.data import DataLoader, TensorDataset
def child(taken, given):
    x, view = taken.get()
    x.add_(1)
    given.put((x.sum().item(), view[0].item(), torch.nn.Parameter(x[:2])))
    taken.get()
if __name__ == "__main__":
    for module, how in (torch.multiprocessing, "spawn"), (multiprocessing, "fork"):  # the first pickle is shared, too
        if how not in multiprocessing.get_all_start_methods():
            continue
        context = module.get_context(how)
        taken, given = context.Queue(), context.Queue()
        process = context.Process(target=child, args=(taken, given), daemon=True)
        process.start()
        x = torch.zeros(100_000)
        if module is not multiprocessing:
            x.share_memory_()
        taken.put((x, x[5:]))
        total, seen, parameter = given.get()
        assert (total, seen, parameter.tolist()) == (100_000, 1, [1, 1]) and type(parameter) is torch.nn.Parameter
        assert x.sum().item() == (0 if module is multiprocessing else total)
        taken.put(None)
        process.join()
    batches = DataLoader(TensorDataset(torch.arange(40.0).view(20, 2)), batch_size=5, num_workers=2)
    assert torch.cat([x for x, in batches]).tolist() == torch.arange(40.0).view(20, 2).tolist()
"""


def test_processes_share_memory(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROCESSES)
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, env=ENV)
    assert not done.returncode, done.stderr


def test_a_typed_storage_is_made_of_bytes_and_their_dtype() -> None:
    whole = norch.arange(4.0)
    bits = norch.TypedStorage(wrap_storage=whole.untyped_storage(), dtype=norch.int32)
    assert bits.tolist() == whole.view(norch.int32).tolist() and bits.data_ptr() == whole.data_ptr()
    for given in ({}, {"dtype": norch.int32}, {"wrap_storage": bits.untyped()}, {"x": whole, "device": "cpu"}):
        with pytest.raises(TypeError, match="TypedStorage"):
            norch.TypedStorage(**given)


# Runs in norch and in PyTorch: lazy layers, hooks on state dicts, functions, generators and scalers.
OTHERS = """
import functools, pickle, torch
from torch import nn
hooked = nn.Linear(2, 2)
for add in (hooked.register_state_dict_pre_hook, hooked.register_load_state_dict_post_hook,
            hooked._register_load_state_dict_pre_hook):
    add(dict)  # dict(module, prefix, keep_vars) raises: these are called
made = {
    "lazy": [nn.LazyLinear(3, bias=False), nn.LazyConv2d(4, 3, padding=1), nn.LazyBatchNorm1d(momentum=0.5)],
    "functions": [torch.relu, nn.functional.gelu, torch.fft.fft, torch.linalg.norm, torch.special.expm1,
                  nn.init.ones_, functools.partial(nn.init.constant_, val=2.0), torch.Tensor.add],
    "generator": torch.Generator().manual_seed(3), "scaler": torch.amp.GradScaler("cpu"), "hooked": hooked,
}
"""
USED = """
import functools, pickle, sys, torch
with open(sys.argv[1], "rb") as file:
    found = pickle.load(file)
lazy, (relu, gelu, fft, norm, expm1, ones, twos, add) = found["lazy"], found["functions"]
assert [tuple(layer(torch.ones(2, 3, 5, 5)[:, :, :, 0] if i != 1 else torch.ones(2, 3, 5, 5)).shape)
        for i, layer in enumerate(lazy)] == [(2, 3, 3), (2, 4, 5, 5), (2, 3, 5)]
assert lazy[0].bias is None and lazy[1].bias is not None and lazy[2].momentum == 0.5 and lazy[1].padding == (1, 1)
x = torch.ones(2)
assert relu is torch.relu and ones is torch.nn.init.ones_ and twos(torch.ones(1)).item() == 2
assert add(x, 1).tolist() == [2, 2] and norm(x).item() > 1 and fft(x).dtype == torch.complex64
assert gelu(x).shape == expm1(x).shape == (2,)
assert found["generator"].initial_seed() == 3 and found["scaler"].get_scale() == 65536.0
for call in (found["hooked"].state_dict, lambda: found["hooked"].load_state_dict({})):
    try:
        call()
    except TypeError:
        continue
    raise AssertionError("no hook was called")
"""


@pytest.mark.parametrize("writer", ["norch", "torch"])
def test_lazy_layers_hooks_functions_and_generators(torch: Any, tmp_path: Path, writer: str) -> None:
    path = tmp_path / "made"
    code = f"{OTHERS}\nwith open({str(path)!r}, 'wb') as file:\n    pickle.dump(made, file)"
    if writer == "norch":
        door(code)
        assert b"norch.compat" in path.read_bytes()  # of the generator, whose state PyTorch would not check
    else:
        exec(code, {})  # noqa: S102
    (tmp_path / "use.py").write_text(USED)
    command = [sys.executable, "-m", "norch", str(tmp_path / "use.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENV)
    assert not done.returncode, done.stderr


def test_functions_of_pytorchs_modules_in_c_are_norchs() -> None:
    _C, x = norch._C, norch.ones(2)
    pairs = ((_C._nn.gelu, norch.nn.functional.gelu), (_C._fft.fft_rfft, norch.fft.rfft), (norch._VF.tanh, norch.tanh))
    for one, other in (*pairs, (_C._linalg.linalg_norm, norch.linalg.norm), (_C._special.special_i0, norch.special.i0)):
        assert one is other
    assert _C._VariableFunctions.relu(x).tolist() == [1, 1] and _C.TensorBase is norch.Tensor
