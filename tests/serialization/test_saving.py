"""Copies, pickles and files: what is shared stays shared, and nothing runs that was not meant to."""

import io
import os
import pickle
import subprocess
import sys
from collections import Counter, OrderedDict, defaultdict
from copy import copy, deepcopy
from fractions import Fraction

import numpy as np
import pytest

import norch
from norch import nn


class Named(norch.Tensor):
    pass


def pickled(x):
    return pickle.loads(pickle.dumps(x))


def saved(x, **options):
    file = io.BytesIO()
    norch.save(x, file)
    file.seek(0)
    return norch.load(file, **options)


# ---- storages ------------------------------------------------------------------------------------------------------


def test_storages_are_the_same_where_memory_is_shared():
    x = norch.zeros(2, 3)
    storage = x.untyped_storage()
    assert storage is x.t()[1:].untyped_storage() and storage.data_ptr() == x.data_ptr()
    assert storage.nbytes() == len(storage) == storage.size() == 24 and storage.device == x.device
    assert x.clone().untyped_storage() is not storage
    array = np.zeros(4, np.float32)
    whole, half = norch.from_numpy(array), norch.from_numpy(array[:2])
    assert whole.untyped_storage().nbytes() == 16 and half.untyped_storage().nbytes() == 8


@pytest.mark.parametrize("again", [deepcopy, pickled, saved])
def test_views_stay_views(again):
    x = norch.arange(10.0)
    whole, steps, turned, other = again([x, x[2:8:3], x.view(2, 5).t(), x.clone()])
    whole[2] = 99
    assert steps.tolist() == [99, 5] and turned[2].tolist() == [99, 7] and other[2] == 2 and x[2] == 2
    assert steps.stride() == (3,) and steps.storage_offset() == 2 and turned.stride() == (1, 5)
    version = steps._version
    whole.add_(1)
    assert steps._version > version


@pytest.mark.parametrize("again", [deepcopy, pickled, saved, copy])
@pytest.mark.parametrize(
    "make",
    [
        lambda: norch.zeros(0, 3),
        lambda: norch.tensor(3),
        lambda: norch.tensor([True, False]),
        lambda: norch.tensor([1.5, 2.5], dtype=norch.bfloat16),
        lambda: norch.ones(1).expand(4),
        lambda: norch.from_numpy(np.arange(6.0)[::-2]),
        lambda: norch.ones(2, requires_grad=True) * 2,
        lambda: nn.Parameter(norch.ones(2)),
        lambda: nn.Parameter(norch.ones(2, dtype=norch.int64), requires_grad=False),
    ],
)
def test_round_trips(again, make):
    x = make()
    if again is deepcopy and not x.is_leaf:
        pytest.skip("raises")
    y = again(x)
    assert type(y) is type(x) and y.dtype is x.dtype and y.shape == x.shape and y.tolist() == x.tolist()
    assert y.stride() == x.stride() and y.is_leaf and y.requires_grad == x.requires_grad


def test_a_shallow_copy_shares_the_elements():
    x = norch.ones(2, requires_grad=True)
    y = x * 1
    z = y * y
    shared = copy(y)
    assert shared.data_ptr() == y.data_ptr() and shared.is_leaf
    shared.detach().add_(1)
    with pytest.raises(norch.Error, match="in place"):
        z.sum().backward()


def test_deepcopy_takes_leaves_and_their_gradients():
    x = norch.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    y = deepcopy(x)
    y.grad.zero_()
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(norch.Error, match="deepcopy"):
        deepcopy(x * 2)


# ---- attributes ----------------------------------------------------------------------------------------------------


def test_tensors_take_attributes():
    x = norch.ones(2)
    assert x.__dict__ == {} and not hasattr(x, "tag")
    x.tag = [1]
    x.itself = x
    assert vars(x).keys() == {"tag", "itself"} and not hasattr(x + 1, "tag") and not hasattr(x[0], "tag")
    with pytest.raises(AttributeError):
        x.shape = (1, 2)
    y = deepcopy(x)
    assert y.tag == [1] and y.tag is not x.tag and y.itself is y
    del x.tag
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'tag'"):
        _ = x.tag


@pytest.mark.parametrize("again", [deepcopy, pickled, copy, lambda x: saved(x, weights_only=False)])
def test_attributes_come_along(again):
    p = nn.Parameter(norch.ones(2))
    p._no_weight_decay = True
    x = Named([1.0, 2.0])
    x.name = "x"
    x.unit = ["m"]
    p, x = again(p), again(x)
    assert p._no_weight_decay and type(p) is nn.Parameter
    assert (x.name, x.unit, type(x)) == ("x", ["m"], Named)


# ---- files ---------------------------------------------------------------------------------------------------------


def test_save_and_load(tmp_path):
    net, again = (nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)) for _ in range(2))
    optimizer, other = (norch.optim.Adam(one.parameters()) for one in (net, again))
    net(norch.randn(4, 3)).square().sum().backward()
    optimizer.step()
    loss = net(norch.ones(2, 3)).sum()
    path = tmp_path / "checkpoint.pt"
    norch.save(
        {"epoch": 3, "model": net.state_dict(), "optimizer": optimizer.state_dict(), "loss": loss, "seed": b"x"}, path
    )
    loaded = norch.load(str(path), map_location="cpu")
    again.load_state_dict(loaded["model"])
    other.load_state_dict(loaded["optimizer"])
    assert all(norch.equal(a, b) for a, b in zip(net.state_dict().values(), again.state_dict().values(), strict=True))
    assert other.state_dict()["state"][0]["step"] == 1 and loaded["epoch"] == 3 and loaded["seed"] == b"x"
    assert loaded["loss"].is_leaf and loaded["loss"].item() == loss.item()


def test_what_load_takes():
    counts = defaultdict(list, a=[1])
    for x in (
        OrderedDict(a=1, b=(2.5, None, True)),
        counts,
        Counter("abca"),
        {1, 2},
        [norch.float16, norch.device("cpu"), norch.Size([1, 2]), slice(1, 2), 1j],
    ):
        y = saved(x)
        assert y == x and type(y) is type(x)


def test_load_refuses_what_could_run_code(tmp_path):
    class Evil:
        def __reduce__(self):
            return open, (str(tmp_path / "made"), "w")

    for bad in (Evil(), nn.Linear(1, 1), [Named([1.0])], norch.save, np.zeros(2)):
        file = io.BytesIO()
        norch.save(bad, file)
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError, match=r"load: the file names .*weights_only=False"):
            norch.load(file)
    assert not (tmp_path / "made").exists()
    assert type(saved(nn.Linear(1, 1), weights_only=False)) is nn.Linear


@pytest.mark.parametrize(
    "program",
    [
        b"cnorch.dtype\ndtype_named\n(Vfloat32\ntR(N}Vitemsize\nI100\nstb.",  # dtype("float32").itemsize = 100
        b"cnorch.tensor\nTensor\n(N}V__add__\nI1\nstb.",  # Tensor.__add__ = 1
        b"cnorch.storage\nrestored\n(Vtext\ntR.",
        b"cnorch.tensor\nrebuilt\n(cnorch.storage\nrestored\n(Vtext\ntRI1\nI1\nI1\nI1\nI1\nI1\ntR.",
        b"cnorch.tensor\nTensor.numpy\n.",
        b"cos\nsystem\n(Vtrue\ntR.",
    ],
)
def test_load_of_files_that_mean_ill(program):
    with pytest.raises((pickle.UnpicklingError, norch.Error)):
        norch.load(io.BytesIO(b"norch file 1\n" + program))
    assert norch.float32.itemsize == 4 and (norch.ones(1) + 1).item() == 2


def test_what_is_rebuilt_is_checked():
    parts = list(norch.arange(4.0).__reduce__()[1])
    for place, bad in ((5, 5), (5, int), (2, (5,)), (4, 1), (3, (2,)), (3, "a"), (1, "float32")):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            norch.tensor(1).__reduce__()[0](*parts[:place], bad, *parts[place + 1 :])


def test_load_of_other_files():
    for content in (b"PK\3\4and so on", b"hello", b""):
        with pytest.raises(norch.Error, match="no file of norch.save, torch.save or safetensors"):
            norch.load(io.BytesIO(content))
    with pytest.raises(FileNotFoundError):
        norch.load("no such file")


@pytest.mark.parametrize("weights_only", [True, False])
def test_load_of_damaged_files(tmp_path, weights_only):
    file = io.BytesIO()
    norch.save({"w": norch.ones(3), "names": ["a", 1, 2.5]}, file)
    whole = file.getvalue()
    path = tmp_path / "cut.pt"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(
            norch.Error, match="cut.pt' is no file of norch.save, torch.save or safetensors, or it is damaged"
        ) as raised:
            norch.load(path, weights_only=weights_only)
        assert length < 13 or raised.value.__cause__ is not None
    other = b"norch file 1\n\x80\x04\x8c\x02\xff\xff."  # text that is no UTF-8
    with pytest.raises(
        norch.Error,
        match="this is no file of norch.save, torch.save or safetensors, or it is damaged .UnicodeDecodeError",
    ):
        norch.load(io.BytesIO(other), weights_only=weights_only)


def test_what_a_trusted_file_lacks_is_no_damage():
    file = io.BytesIO(b"norch file 1\ncno_such_module\nthing\n.")
    with pytest.raises(ModuleNotFoundError):
        norch.load(file, weights_only=False)


def test_a_save_that_fails_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "w.pt"
    for bad in (False, True):
        if bad:
            norch.save({"w": norch.ones(2)}, path)
        with pytest.raises((AttributeError, pickle.PicklingError)):
            norch.save({"w": norch.zeros(2), "f": lambda: 1}, path)
        assert [each.name for each in tmp_path.iterdir()] == ["w.pt"] * bad
    assert norch.load(path)["w"].tolist() == [1, 1]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
def test_a_saved_file_is_as_open_makes_it(tmp_path):
    before = os.umask(0o027)
    try:
        norch.save(1, tmp_path / "new")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640
    (tmp_path / "new").chmod(0o604)
    (tmp_path / "link").symlink_to("new")
    norch.save(2, os.fsencode(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink() and norch.load(tmp_path / "new") == 2
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o604
    norch.save(3, os.devnull)
    assert not os.path.isfile(os.devnull)
    with pytest.raises(IsADirectoryError):
        norch.save(4, tmp_path)
    with pytest.raises(FileNotFoundError, match="none"):
        norch.save(4, tmp_path / "none" / "x")
    with pytest.raises(TypeError):
        norch.save(4, None)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "new"]


# ---- classes that a program allows -----------------------------------------------------------------------------------


class Settings:
    def __init__(self, rate):
        self.rate = rate


class Moved(Settings):
    pass


def test_safe_globals_are_loaded():
    serialization = norch.serialization
    thing = {"settings": Settings(0.5), "w": norch.ones(2), "third": Fraction(1, 3)}
    with pytest.raises(pickle.UnpicklingError, match=r"names \S*Settings.*\.add_safe_globals\(\)"):
        saved(thing)
    with serialization.safe_globals([Settings, Fraction]):
        assert serialization.get_safe_globals() == [Settings, Fraction]
        found = saved(thing)
    assert found["settings"].rate == 0.5 and type(found["settings"]) is Settings and found["third"] == Fraction(1, 3)
    with pytest.raises(pickle.UnpicklingError, match="Settings"):
        saved(thing)
    with serialization.safe_globals([]):
        serialization.add_safe_globals([(Moved, f"{__name__}.Settings")])  # another class by the name in the file
        assert type(saved(Settings(0.5))) is Moved
        serialization.clear_safe_globals()
        assert serialization.get_safe_globals() == []
    with pytest.raises(TypeError, match="expected classes and functions, not 3"):
        serialization.add_safe_globals([(3, "a.b")])
    assert serialization.get_safe_globals() == []


def test_safe_globals_of_files_of_pytorch(torch):
    file = io.BytesIO()
    torch.save({"settings": Settings(0.25), "w": torch.ones(2)}, file)
    file.seek(0)
    with norch.serialization.safe_globals([Settings]):
        assert norch.load(file)["settings"].rate == 0.25


def test_a_safe_global_lets_nothing_else_in():
    with norch.serialization.safe_globals([Settings]):
        with pytest.raises(pickle.UnpicklingError, match="Fraction"):
            saved([Settings(1), Fraction(1, 2)])


WHOLE_MODEL = """
import sys, torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head, self.size = nn.LSTM(3, 4), nn.Linear(4, 2), torch.Size([2])
        self.register_buffer("scale", torch.ones(2), persistent=False)
net = Net()
torch.save(net, sys.argv[1])
with torch.serialization.safe_globals([Net, nn.modules.rnn.LSTM, nn.modules.linear.Linear]):
    again = torch.load(sys.argv[1])
assert all((a == b).all() for a, b in zip(net.state_dict().values(), again.state_dict().values(), strict=True))
assert again.size == (2,) and again.scale.tolist() == [1, 1] and type(again.head.weight) is nn.Parameter
"""


@pytest.mark.host
def test_a_whole_model_under_safe_globals(tmp_path):
    """Saved and loaded where norch has PyTorch's names; and what was saved there is loaded where it has its own."""
    script, path = tmp_path / "script.py", tmp_path / "net.pt"
    script.write_text(WHOLE_MODEL)
    done = subprocess.run([sys.executable, "-m", "norch", script, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    net = type("Net", (norch.nn.Module,), {})
    classes = [(net, "__main__.Net"), (norch.nn.LSTM, "torch.nn.modules.rnn.LSTM")]
    with pytest.raises(pickle.UnpicklingError, match="__main__.Net, which is no tensor"):
        norch.load(path)
    with norch.serialization.safe_globals([*classes, (norch.nn.Linear, "torch.nn.modules.linear.Linear")]):
        assert [name for name, _ in norch.load(path).named_children()] == ["rnn", "head"]


@pytest.mark.parametrize("kind", ["norch", "torch"])
def test_an_open_file_can_be_read_by_its_name(tmp_path, kind):
    """What was written lies in no buffer of the file."""
    with open(path := tmp_path / "open.pt", "wb") as file:
        norch.save({"x": norch.arange(3)}, file, format=kind)
        assert norch.load(path)["x"].tolist() == [0, 1, 2]
