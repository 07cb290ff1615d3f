"""TorchScript archives: load() gives their state dict, attributes and constants, and runs no code of them."""

import io
import pickle
import warnings
import zipfile
from pathlib import Path

import pytest

import norch
from norch import nn

STORED = Path(__file__).resolve().parents[1] / "files" / "script.pth"
NAMES = [f"layer.{name}" for name in ("weight", "bias")]
NAMES += [f"norm.{name}" for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")]


@pytest.mark.parametrize("options", [{}, {"mmap": True}, {"weights_only": False}, {"map_location": lambda s, place: s}])
def test_a_stored_archive(options):
    state = norch.load(STORED, **options)
    assert list(state) == NAMES and state["layer.weight"].tolist() == [[1, 2]] and not state["layer.bias"].requires_grad
    assert [1, 1] in [each.tolist() for each in state.constants] and state.attributes["layer"]["training"] is False
    net = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1)).eval()
    net.load_state_dict({name.replace("layer", "0").replace("norm", "1"): value for name, value in state.items()})
    assert abs(net(norch.ones(1, 2)).item() - 6) < 1e-3


def archive_of(program, code=None, constants=b")."):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in (("data.pkl", program), ("constants.pkl", constants), ("data/0", bytes(8))):
            archive.writestr(f"a/{name}", content)
        if code is not None:
            archive.writestr("a/code/__torch__.py", code, zipfile.ZIP_DEFLATED)
    file.seek(0)
    return file


def made(attributes, name=b"Net"):
    return b"\x80\x02c__torch__\n" + name + b"\n)\x81}(" + attributes + b"ub"


ONE = b"ctorch._utils\n_rebuild_tensor_v2\n((Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI2\ntQI0\n(I2\nt(I1\ntI00\nNtR"


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (None, ["w", "other"]),
        ("class Other(Module):\n  __parameters__ = []\n", ["w", "other"]),
        ('class Net(Module):\n  __parameters__ = ["w", ]\n  __buffers__ = []\n  w : Tensor\n', ["w"]),
        ('class Net(Module):\n  __parameters__ = ["w", ]\n  __buffers__ = ["other", "none", ]\n', ["w", "other"]),
        ("class Net:\n  w : Tensor\n", []),
    ],
)
def test_the_text_tells_parameters(code, names):
    state = norch.load(archive_of(made(b"Vw\n" + ONE + b"Vother\n" + ONE + b"Vn\nI3\n") + b".", code))
    assert list(state) == names and state.attributes["n"] == 3 and state.constants == []


def doubled(depth):
    """A module with the one before it twice, and so on: 2**depth names."""
    program = made(b"Vw\n" + ONE) + b"q\x00"
    for _ in range(depth):
        program += b"0" + made(b"Va\nh\x00Vb\nh\x00").removeprefix(b"\x80\x02") + b"q\x00"
    return program + b"."


def chain(depth):
    return b"\x80\x02" + b"c__torch__\nNet\n)\x81}(Vm\n" * depth + b"c__torch__\nNet\n)\x81" + b"ub" * depth + b"."


@pytest.mark.parametrize(
    ("program", "code", "match"),
    [
        (doubled(40), None, "more work than its size allows"),
        (chain(600), None, "more than 500 modules within each other"),
        (b"\x80\x02c__torch__\nNet\n)\x81q\x00}(Vm\nh\x00ub.", None, "more than 500 modules within each other"),
        (b"\x80\x02}.", None, "holds no module"),
        (made(b"Vw\ncos\nsystem\n"), None, "os.system"),
        (made(b"Vw\nctorch.jit._pickle\nbuild_other\n"), None, "torch.jit._pickle.build_other"),
        (made(b"Vw\n" + ONE) + b".", "#" * (9 << 20), "code/__torch__.py has more than"),
        (b"\x80\x02c__torch__\nNet\n(I1\nt\x81.", None, "calls Net with arguments"),
    ],
)
def test_hostile_archives(program, code, match):
    with pytest.raises((norch.Error, pickle.UnpicklingError), match=match):
        norch.load(archive_of(program, code))


def test_jit_load_says_how():
    with pytest.raises(NotImplementedError, match=r"norch.load\(path\) gives the state dict of a TorchScript archive"):
        norch.jit.load(STORED)


@pytest.mark.parametrize("how", ["script", "trace"])
def test_state_dicts_of_torch(torch, how, tmp_path):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)])
            self.register_buffer("scale", torch.ones(2))
            self.own = torch.nn.Parameter(torch.zeros(1))
            self.plain, self.many, self.text = torch.ones(3), [torch.ones(1), torch.zeros(2)], "a"

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x * self.scale + self.own + self.plain.sum() + torch.tensor([1.0, 2.0]) + self.many[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = torch.jit.script(Net()) if how == "script" else torch.jit.trace(Net(), torch.ones(3, 2))
    script.save(tmp_path / "net.pt")
    state, expected = norch.load(tmp_path / "net.pt"), script.state_dict()
    assert list(state) == list(expected)
    for name, value in expected.items():
        assert state[name].tolist() == value.tolist() and str(value.dtype)[6:] == state[name].dtype.name
    assert [1.0, 2.0] in [each.tolist() for each in state.constants] or how == "script"
