"""The door: `import torch` gives norch, by `python -m norch`, norch.as_torch(), the pytest plugin and the wheel torch.

Each case is a process of its own, in which PyTorch may be installed or not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import norch

pytestmark = pytest.mark.host

ROOT = Path(norch.__file__).resolve().parents[1]
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


def run(*arguments: str, fails: bool = False, **options: Any) -> str:
    """What python says with these arguments; the last line of its error where it is to fail."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=ENV, **options)
    assert bool(done.returncode) is fails, done.stderr
    return done.stderr.strip().splitlines()[-1] if fails else done.stdout


def door(code: str, **options: Any) -> str:
    return run("-c", f"import norch\nnorch.as_torch()\n{code}", **options)


def test_torch_is_norch_by_every_path() -> None:
    door("""
import torch, torch.nn.functional as F, torch.optim.lr_scheduler
from torch.utils.data import DataLoader
from torch.nn.modules.conv import Conv2d
import torch.utils.data.dataloader as loader
assert torch is norch and F is norch.nn.functional and Conv2d is norch.nn.Conv2d and DataLoader is loader.DataLoader
assert torch.nn.Linear is norch.nn.Linear and torch.optim.lr_scheduler is norch.optim.lr_scheduler
assert torch.compile is norch.compile and torch.torch is torch
from torch import *
from torch.optim.adam import Adam
assert Adam is norch.optim.Adam
import importlib.util, sys
assert importlib.util.find_spec("torch") and importlib.util.find_spec("torch.nn.functional")
assert importlib.util.find_spec("torch.nonsense") is None
import typing
assert typing.get_type_hints(torch.nn.Linear)["weight"] and typing.get_type_hints(torch.nn.CrossEntropyLoss())
for name, module in list(sys.modules.items()):
    if name.startswith("torch.") and name.replace("torch", "norch", 1) in sys.modules:
        assert module is sys.modules[name.replace("torch", "norch", 1)] or type(module).__name__ == "_Later", name
try:
    import torch.nonsense
except ModuleNotFoundError:
    print("good")
""")


NAMES = """
import torch, pickle, importlib.metadata
from torch import nn
print(torch.__name__, torch.__version__, importlib.metadata.version("torch"), nn.functional.__name__)
print(torch.float32, repr(torch.device("cpu")), torch.Size([2]), torch.channels_last, torch.ones(1).type())
print(torch.ones(1, dtype=torch.float16), type(torch.ones(1)), nn.Linear, torch.optim.AdamW, nn.Parameter)
print(pickle.dumps(torch.float16, 0), torch.nn.functional.relu.__module__, torch.strided, torch.uint16)
try:
    torch.ones(2) + torch.ones(3)
except RuntimeError as error:
    print(type(error))
print(torch.fx.symbolic_trace(lambda x: torch.relu(x)).code.split("\\n")[4].strip())
print(*map(torch.overrides.resolve_name, (nn.functional.relu, torch.Tensor.add)))
print(torch.tensor([0.0, 1.0]).max(0))
import torch.return_types
qr = torch.linalg.qr(torch.eye(2))
print(type(qr), type(qr) is torch.return_types.linalg_qr, torch.equal(pickle.loads(pickle.dumps(qr)).R, qr.R))
graph, export = torch.cuda.CUDAGraph, torch.export.export
print(graph, f"{export.__module__}.{export.__name__}", pickle.loads(pickle.dumps(graph)) is graph)
print(torch.distributed.Backend, torch.autograd.graph.save_on_cpu)
"""


STAR = """
from torch import *
import torch
theirs = set('''{}'''.split()) & set(dir(torch))
gone = [name for name in theirs if name not in globals() and callable(getattr(torch, name))]
assert not [name for name in gone if not name.startswith("_")], gone
assert save is torch.save and vmap is torch.vmap and relu_(-ones(1)).item() == 0 and "nn" not in globals()
"""


def test_a_star_takes_what_pytorchs_does(torch: Any) -> None:
    """Also what norch imports when it is asked for."""
    door(STAR.format(" ".join(torch.__all__)))
    assert "load" not in norch.__all__


def test_modules_of_compat_give_all_their_names() -> None:
    """Also those that they import when they are first read, in modules that the door has renamed."""
    said = door("""
import importlib
from norch.compat.finder import HELD
for path in HELD:
    if path != "as_torch":
        module = importlib.import_module("torch." + path)
        for name in dir(module):
            getattr(module, name)
from torch._C import DisableTorchFunctionSubclass
print("all")
""")
    assert said.split()[-1] == "all"


def test_names_are_pytorchs() -> None:
    said = door(NAMES).splitlines()
    assert said[:3] == [
        "torch 2.13.0+norch 2.13.0+norch torch.nn.functional",
        "torch.float32 device(type='cpu') torch.Size([2]) torch.channels_last torch.FloatTensor",
        "tensor([1.], dtype=torch.float16) <class 'torch.Tensor'> <class 'torch.nn.modules.linear.Linear'> "
        "<class 'torch.optim.adamw.AdamW'> <class 'torch.nn.parameter.Parameter'>",
    ]
    assert "ctorch" in said[3] and said[3].endswith("torch.nn.functional torch.strided torch.uint16")
    assert said[4] == "<class 'torch.errors.ShapeError'>"
    assert said[5:7] == ["relu = torch.relu(x);  x = None", "torch.nn.functional.relu torch.Tensor.add"]
    assert said[7:] == [
        "torch.return_types.max(", "values=tensor(1.),", "indices=tensor(1))",
        "<class 'torch.return_types.linalg_qr'> True True", "<class 'torch.cuda.CUDAGraph'> torch.export.export True",
        "<class 'torch.distributed.distributed_c10d.Backend'> <class 'torch.autograd.graph.save_on_cpu'>",
    ]  # fmt: skip


def test_modules_of_classes_are_loaded_and_have_sources() -> None:
    """PyTorch has them in sys.modules, where inspect, pickle and typing look."""
    door("""
import inspect, pickle, sys, torch
for cls in (torch.nn.Linear, torch.nn.Conv2d, torch.nn.LSTM, torch.optim.AdamW, torch.autograd.Function):
    module = sys.modules[cls.__module__]
    assert inspect.getsource(cls).split("class ")[1].startswith(cls.__name__), cls
    assert getattr(module, cls.__name__) is cls is getattr(inspect.getmodule(cls), cls.__name__)
    assert pickle.loads(pickle.dumps(cls)) is cls
import torch.nn.modules.linear as linear
assert sys.modules["torch.nn.modules.linear"] is linear and linear.Linear is torch.nn.Linear
from torch.nn.modules.conv import *
assert Conv2d is torch.nn.Conv2d and not hasattr(sys.modules["torch.nn.modules.rnn"], "nothing")
""")


def test_closing_takes_all_of_it_back() -> None:
    code = """
import sys, os, norch
def now():
    said = repr(norch.float32), dir(norch.optim.lr_scheduler)
    return sys.path.copy(), sys.meta_path.copy(), os.environ.get("PYTHONPATH"), said
before = now()
with norch.as_torch() as torch:
    import torch.nn as nn
    assert norch.as_torch() is not None and torch.float32 is norch.float32 and "torch" in str(torch.float32)
    norch.linalg, norch.distributions
assert before == now()
assert norch.__name__ == "norch" and norch.__version__ == "0.2.0" and norch.nn.__name__ == "norch.nn"
assert "torch" not in sys.modules and norch.nn.Linear.__module__ == "norch.nn.linear", norch.nn.Linear.__module__
assert norch.linalg.__name__ == "norch.linalg" and norch.distributions.Normal.__module__ == "norch.distributions.normal"
with norch.as_torch():
    import torch
    assert torch is norch and torch.nn.Linear.__module__ == "torch.nn.modules.linear"
"""
    run("-c", code)


def test_a_torch_that_is_imported_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("nn = None\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import torch, norch; norch.as_torch()"
    assert f"gave {tmp_path / 'torch.py'}; call norch.as_torch() before it" in run("-c", code, fails=True)
    # and one that is installed is not looked at
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import norch; norch.as_torch(); import torch, torch.nn"
    run("-c", code)


# ---- programs --------------------------------------------------------------------------------------------------------

SCRIPT = """
import os, sys, multiprocessing, subprocess
import torch
from torch.utils.data import DataLoader, Dataset
import beside

class Squares(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        assert torch.__name__ == "torch"
        return torch.tensor(i * i)

def work(x):
    import torch
    return torch.__name__, (x * 2).tolist(), type(x).__module__

if __name__ == "__main__":
    print(torch.__name__, sys.argv[1:], beside.name, __file__ == os.path.abspath(sys.argv[0]))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(work, (torch.ones(2),)))
    for context in ("spawn", "fork"):
        print([x.tolist() for x in DataLoader(Squares(), 2, num_workers=1, multiprocessing_context=context)])
    print(subprocess.run([sys.executable, "-c", "import torch; print(torch.__name__, torch.__version__)"],
          capture_output=True, text=True).stdout, end="")
"""
SAID = [
    "torch ['-x', 'y'] beside True",
    "('torch', [2.0, 2.0], 'torch')",
    "[[0, 1], [4, 9]]",
    "[[0, 1], [4, 9]]",
    "torch 2.13.0+norch",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("import torch\nname = 'beside'\n")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("how", [["program.py"], ["-m", "program"]])
def test_programs_run_with_their_arguments_and_processes(folder: Path, how: list[str]) -> None:
    said = run("-m", "norch", *how, "-x", "y", cwd=folder).splitlines()
    assert said == SAID


def test_what_the_command_line_refuses(tmp_path: Path) -> None:
    assert "usage: python -m norch script.py" in run("-m", "norch", "--help")
    assert "can't open file 'nowhere.py'" in run("-m", "norch", "nowhere.py", fails=True, cwd=tmp_path)
    assert run("-m", "norch", "-m", fails=True).startswith("Runs a program")
    assert run("-m", "norch", "-c", "import torch, sys; print(torch.__name__, sys.argv)", "a") == "torch ['-c', 'a']\n"
    with_error = tmp_path / "bad.py"
    with_error.write_text("import torch\ntorch.ones(2) + torch.ones(3)\n")
    assert run("-m", "norch", str(with_error), fails=True).startswith("torch.errors.ShapeError: add: ")


def test_annotations_are_what_the_program_writes(tmp_path: Path) -> None:
    code = "def f(x: int): pass\nprint(f.__annotations__['x'])\n"
    (tmp_path / "script.py").write_text(code)
    for how in (["script.py"], ["-c", code]):
        assert run("-m", "norch", *how, cwd=tmp_path) == "<class 'int'>\n"


def test_the_pytest_plugin(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import torch\nassert torch.__version__.endswith('+norch')\n")
    (tmp_path / "test_it.py").write_text("import torch\ndef test(): assert torch.__name__ == 'torch'\n")
    for more in ([], ["-n", "1"]):
        said = run("-m", "pytest", "-q", "-p", "norch.as_torch", "-p", "no:cacheprovider", *more, ".", cwd=tmp_path)
        assert "1 passed" in said


def test_a_module_that_an_attribute_imported_has_all_names() -> None:
    """tensordict reads torch.utils._pytree, then imports names that norch has in another file."""
    code = "import torch; torch.utils._pytree; from torch.utils._pytree import is_structseq_instance as f; print(1)"
    assert run("-m", "norch", "-c", code).strip() == "1"


def test_it_imports_what_it_renames_and_no_operations() -> None:
    """Opening takes some 20 ms: it may not import what waits for its first use."""
    code = """
import sys
import norch
before = set(sys.modules)
norch.as_torch()
print(*sorted(set(sys.modules) - before))
"""
    added = run("-S", "-c", code).split()
    of_operations = [name for name in added if name.startswith("norch.ops.") and name.count(".") > 2]
    assert of_operations == ["norch.ops.composed.type_properties"]  # Tensor.type is renamed
    assert len(added) < 30, added


# ---- the wheel -------------------------------------------------------------------------------------------------------


def test_the_wheel_holds_the_door(tmp_path: Path) -> None:
    pytest.importorskip("pip")
    run(str(ROOT / "release" / "torch_wheel.py"), str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == "torch-2.13.0+norch-py3-none-any.whl" and wheel.stat().st_size < 10_000
    place = tmp_path / "site"
    run("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(place), str(wheel))
    env = {**ENV, "PYTHONPATH": f"{place}{os.pathsep}{ROOT}"}

    def installed(code: str, good: bool = True) -> str:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=tmp_path)
        assert (done.returncode == 0) is good, done.stderr
        return done.stdout + done.stderr

    said = installed("""
import torch.nn as nn, torch, importlib.metadata as metadata, subprocess, sys
assert torch.__name__ == "torch" and nn.Linear is torch.nn.Linear
about = metadata.metadata("torch")
print(about["Version"], about["Summary"], metadata.requires("torch"))
print(torch.__config__.show())
print(subprocess.run([sys.executable, "-c", "import torch; print(torch)"], capture_output=True, text=True).stdout)
""")
    assert said.count("norch in the place of PyTorch") == 2 and "2.13.0+norch" in said and "norch-dl>=" in said
    assert f"norch {norch.__version__}, with kernels" in said and "<module 'norch' from" in said
    (tmp_path / "program.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("import torch\nname = 'beside'\n")
    done = subprocess.run(
        [sys.executable, "program.py", "-x", "y"], capture_output=True, text=True, env=env, cwd=tmp_path
    )
    assert done.stdout.splitlines() == SAID, done.stderr
    (place / "torch" / "lib").mkdir()
    assert "lies over the files of PyTorch's; uninstall torch" in installed("import torch", good=False)


# ---- files -----------------------------------------------------------------------------------------------------------


def test_files_are_pytorchs(torch: Any, tmp_path: Path) -> None:
    door(f"""
import torch
from torch import nn
model = nn.Linear(2, 1)
torch.save({{"model": model.state_dict(), "epoch": 3}}, {str(tmp_path / "checkpoint.pt")!r})
torch.save(model, {str(tmp_path / "whole.pt")!r})
whole = torch.load({str(tmp_path / "whole.pt")!r}, weights_only=False)
assert (whole.weight == model.weight).all() and type(whole) is nn.Linear
assert torch.load({str(tmp_path / "checkpoint.pt")!r})["epoch"] == 3
""")
    found = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert found["epoch"] == 3 and found["model"]["weight"].shape == (1, 2)
    assert type(norch.load(tmp_path / "whole.pt", weights_only=False)) is norch.nn.Linear
    assert norch.load(tmp_path / "checkpoint.pt")["model"]["bias"].shape == (1,)


# ---- the version -----------------------------------------------------------------------------------------------------

VERSIONS = """2.13.0 2.13
2.13.0+norch 2.13.0+cpu 2.13.0a0 2.13.0rc1 2.13.0.dev3 2.13.0.post1 2.14 2.6 1.13.1 3 2.13.0+a.1
nonsense 2.13.0a0+git1 2.13.0.post1.dev2 1!1.0 v2.13.0""".split()


def test_versions_compare_as_pytorchs(torch: Any) -> None:
    from norch.torch_version import TorchVersion

    theirs = torch.torch_version.TorchVersion
    compare = ("__lt__", "__le__", "__eq__", "__gt__", "__ge__")
    for a in VERSIONS:
        for b in (*VERSIONS, (2, 13), (2, 6, 1), [2], (2, 13, 0)):
            for name in compare:
                try:
                    wanted = getattr(theirs(a), name)(b)
                except (TypeError, AttributeError):
                    continue  # of texts that are no versions
                assert getattr(TorchVersion(a), name)(b) == wanted, (a, name, b)
    assert TorchVersion("2.13") == "2.13.0" and not TorchVersion("2.13") != "2.13.0"  # PyTorch's != is that of texts
    assert len({TorchVersion("2.13.0"), TorchVersion("2.13.0")}) == 1 and TorchVersion("2.6").startswith("2.")
