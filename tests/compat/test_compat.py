"""Names that programs for PyTorch import: each does its work, or says in a sentence why not, when it is called."""

from __future__ import annotations

import copy
import importlib
import os
import re
import subprocess
import sys
from collections import OrderedDict, UserList, defaultdict, deque, namedtuple
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import norch
from norch import nn
from norch.testing import assert_close
from norch.utils import _pytree as pytree

pytestmark = pytest.mark.host

PATHS = "_C fx hub jit multiprocessing nn.modules nn.parallel onnx utils._pytree utils.tensorboard".split()


def run(code: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(Path(norch.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env)
    return done.stdout


@pytest.mark.parametrize("path", PATHS)
def test_a_module_is_reached_by_import_and_by_attribute(path: str) -> None:
    last = path.rpartition(".")[2]
    code = f"""
import norch, sys
assert "norch.{path}" not in sys.modules
lazy = norch.{path}
import norch.{path} as imported
assert lazy is imported is sys.modules["norch.{path}"]
assert not {{"numpy", "tensorboardX", "torch"}} & set(sys.modules)
print(sys.modules["norch.{path}"].__doc__.split("``")[1])
"""
    assert run(code) == f"norch.{path}\n"
    assert last in path and importlib.import_module(f"norch.{path}").__doc__


REFUSED = """
jit.load jit.save jit.ScriptFunction jit.CompilationUnit
hub.load hub.download_url_to_file hub.list
nn.parallel.scatter
"""


@pytest.mark.parametrize("path", REFUSED.split())
def test_what_is_refused_says_why(path: str) -> None:
    module, _, name = path.rpartition(".")
    thing = getattr(importlib.import_module(f"norch.{module}"), name)
    with pytest.raises(NotImplementedError, match=rf"^norch\.{path}: [^.]*norch.*\w$"):
        thing(nn.Linear(1, 1), "model", device_ids=[0])
    if name[0].isupper():
        assert not isinstance(nn.Linear(1, 1), thing)


def test_torchscript_leaves_functions_and_modules_as_they_are() -> None:
    jit, model = norch.jit, nn.Linear(2, 1)
    assert not jit.is_scripting() and not jit.is_tracing()
    assert jit.script(model) is jit.trace(model, norch.ones(1, 2)) is jit.freeze(model) is model
    assert jit.ignore(run) is jit.ignore(drop=True)(run) is jit.unused(run) is jit.export(run) is run
    assert jit.annotate(list[int], [1]) == [1] and not isinstance(model, jit.ScriptModule)

    class Scripted(jit.ScriptModule):
        @jit.script_method
        def forward(self, x: Any) -> Any:
            return x + 1

    assert Scripted()(norch.ones(1)).item() == 2


def test_wrap_and_assert() -> None:
    with pytest.raises(TypeError, match="wrap: .*not int"):
        norch.fx.wrap(3)
    norch._assert(norch.ones(1) == 1, "fits")
    with pytest.raises(AssertionError, match="^sizes differ$"):
        norch._assert(norch.zeros(1) == 1, "sizes differ")
    assert "_assert" not in dir(norch)


def test_weights_are_read_from_the_folder_of_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    hub, url = norch.hub, "https://example.org/models/small-0123abcd.pth"
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    with pytest.raises(
        NotImplementedError, match=f"norch downloads neither .* store {url} as {re.escape(hub.get_dir())}"
    ):
        hub.load_state_dict_from_url(url)
    norch.save({"w": norch.ones(2)}, f"{hub.get_dir()}/checkpoints/small-0123abcd.pth")
    assert hub.load_state_dict_from_url(url)["w"].tolist() == [1, 1]
    assert norch.utils.model_zoo.load_url is hub.load_state_dict_from_url
    hub.set_dir(tmp_path / "other")
    assert hub.get_dir() == str(tmp_path / "other")
    hub.set_dir("")
    assert hub.get_dir() == str(tmp_path / "hub")


# ---- norch.nn --------------------------------------------------------------------------------------------------------


def test_layers_stand_where_pytorch_has_them(torch: Any) -> None:
    found = 0
    for file in Path(torch.nn.modules.__file__).parent.glob("[a-z]*.py"):
        theirs = importlib.import_module(f"torch.nn.modules.{file.stem}")
        for name in getattr(theirs, "__all__", ()):
            if isinstance(getattr(theirs, name), type) and hasattr(nn, name):
                ours = importlib.import_module(f"norch.nn.modules.{file.stem}")
                assert getattr(ours, name) is getattr(nn, name)
                found += 1
    assert found > 100
    assert nn.modules.Linear is nn.Linear and nn.modules.conv.Conv2d is nn.Conv2d


def test_private_names_of_layers_that_programs_use() -> None:
    from norch.nn.modules.batchnorm import _BatchNorm, _NormBase
    from norch.nn.modules.conv import _ConvNd
    from norch.nn.modules.lazy import LazyModuleMixin
    from norch.nn.modules.module import _IncompatibleKeys
    from norch.nn.modules.utils import _ntuple, _pair, _triple

    from norch.autograd.function import FunctionCtx
    from norch.utils.data.dataloader import default_collate

    assert issubclass(_BatchNorm, _NormBase) and _ntuple(5)(1) == (1, 1, 1, 1, 1)
    assert isinstance(nn.ReLU().load_state_dict({}), _IncompatibleKeys)
    assert issubclass(norch.autograd.Function, FunctionCtx) and default_collate([1, 2]).tolist() == [1, 2]

    assert isinstance(nn.BatchNorm2d(3), _BatchNorm) and isinstance(nn.Conv1d(1, 1, 1), _ConvNd)
    assert isinstance(nn.LazyLinear(2), LazyModuleMixin)
    assert (_pair(3), _pair([1, 2]), _triple(0)) == ((3, 3), (1, 2), (0, 0, 0))
    assert isinstance(nn.CrossMapLRN2d(3), nn.modules.normalization.CrossMapLRN2d)


def test_data_parallel_runs_its_module(torch: Any) -> None:
    theirs, ours = torch.nn.DataParallel(torch.nn.Linear(3, 2)), nn.DataParallel(nn.Linear(3, 2))
    ours.load_state_dict({key: norch.tensor(value.detach().numpy()) for key, value in theirs.state_dict().items()})
    x = np.ones((4, 3), dtype=np.float32)
    y = ours(norch.tensor(x))
    assert_close(y.detach(), theirs(torch.tensor(x)).detach().numpy())
    y.sum().backward()
    assert_close(ours.module.bias.grad, [4.0, 4.0])
    assert (nn.parallel.data_parallel(ours.module, norch.tensor(x), [0]) == y).all()
    with pytest.raises(ValueError, match=r"DataParallel: a module runs on one device, not on 2: \[0, 1\]"):
        nn.DataParallel(ours.module, device_ids=[0, 1])


def test_parts_of_nn_parallel_at_their_paths(torch: Any) -> None:
    for part in "data_parallel distributed parallel_apply replicate scatter_gather".split():
        theirs = importlib.import_module(f"torch.nn.parallel.{part}")
        ours = importlib.import_module(f"norch.nn.parallel.{part}")
        for name in ours.__all__:
            assert hasattr(theirs, name) and getattr(ours, name) is getattr(nn.parallel, name)
    assert callable(nn.parallel.data_parallel)


# ---- trees -----------------------------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "x y")
TREES = [
    3,
    None,
    [],
    [1, (2, None), {"b": 3, "a": [4]}],
    Pair(1, [2, 3]),
    OrderedDict(b=1, a=(2,)),
    defaultdict(list, {"a": 1}),
    deque([1, [2]], maxlen=4),
    {1: UserList([1]), 2: ()},
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_trees_are_pytorchs(torch: Any, tree: Any) -> None:
    theirs = importlib.import_module("torch.utils._pytree")
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == theirs.tree_leaves(tree) == pytree.tree_leaves(tree) == list(pytree.tree_iter(tree))
    assert spec.num_leaves == len(leaves) and spec == pytree.tree_structure(tree) and spec != pytree.tree_structure([0])
    again = pytree.tree_unflatten(leaves, spec)
    assert again == tree and type(again) is type(tree)
    double, wanted = (lib.tree_map(lambda a, b: (a, b), tree, tree) for lib in (pytree, theirs))
    assert double == wanted
    assert pytree.tree_map_only(int, str, tree) == theirs.tree_map_only(int, str, tree)
    for name in ("tree_all", "tree_any"):
        assert getattr(pytree, name)(callable, tree) == getattr(theirs, name)(callable, tree)


def test_parts_of_trees() -> None:
    assert pytree.tree_map(lambda a, b: a + b, {"a": 1, "b": 2}, {"b": 20, "a": 10}) == {"a": 11, "b": 22}
    assert pytree.tree_leaves([(1, 2), 3], is_leaf=lambda x: type(x) is tuple) == [(1, 2), 3]
    for rest in ([1], (1, 2), [1, 2, 3], {"a": 1}):
        with pytest.raises(ValueError, match="does not have the structure"):
            pytree.tree_map(max, [1, 2], rest)
    with pytest.raises(ValueError, match="3 leaves for a tree of 2"):
        pytree.tree_unflatten([1, 2, 3], pytree.tree_structure([0, 0]))


def test_classes_can_be_registered_as_nodes() -> None:
    class Box:
        def __init__(self, inside: Any):
            self.inside = inside

    pytree.register_pytree_node(Box, lambda box: ([box.inside], None), lambda children, _: Box(*children))
    made = pytree.tree_map(lambda x: x + 1, [Box(norch.ones(1))])
    assert made[0].inside.item() == 2
    with pytest.raises(ValueError, match="is registered already"):
        pytree.register_pytree_node(Box, lambda box: ([box.inside], None), lambda children, _: Box(*children))


# ---- storages, processes ---------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_typed_storages(torch: Any) -> None:
    for lib in (torch, norch):
        x = lib.arange(6, dtype=lib.int16).view(2, 3)
        storage = x[1:].storage()
        assert storage.tolist() == [0, 1, 2, 3, 4, 5] and storage.size() == len(storage) == 6
        assert (storage.nbytes(), storage.element_size(), storage.dtype) == (12, 2, lib.int16)
        assert storage.data_ptr() == x.data_ptr() == storage.untyped().data_ptr() and not storage.is_cuda
        storage[4] = 9
        assert storage[4] == x[1, 1] == 9 and str(storage.device) == "cpu"
        assert (storage.fill_(7), x.tolist())[1] == [[7] * 3] * 2
        y, copied = copy.deepcopy([x, storage])
        copied[0] = 8  # the copies share memory as well
        assert y.tolist() == [[8, 7, 7], [7, 7, 7]] and x[0, 0] == 7
    assert repr(norch.ones(1, requires_grad=True).storage()) == "TypedStorage([1.0], dtype=norch.float32, device=cpu)"
    assert norch.ones(0).storage().tolist() == []


def test_a_process_that_fails_while_join_looks_is_seen() -> None:
    class Ended:
        """Runs when its exit code is first asked for, and has failed by the next time."""

        pid, sentinel, codes = 1, None, iter([None, 3, 3, 3])
        exitcode = property(lambda self: next(self.codes))
        is_alive = terminate = join = lambda self: False

    started = norch.multiprocessing.ProcessContext([Ended()])
    assert not started.join()
    with pytest.raises(RuntimeError, match="process 0 ended with exit code 3"):
        started.join()


@pytest.mark.slow
def test_processes(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(
        "import norch\n"
        "def work(i, queue):\n    queue.put((i, norch.full((2,), i)))\n"
        "def fail(i):\n    raise SystemExit(3 * i)\n"
    )
    code = """
import norch.multiprocessing as mp, worker
if __name__ == "__main__":
    queue = mp.get_context("spawn").SimpleQueue()
    assert mp.spawn(worker.work, (queue,), nprocs=2) is None
    print(sorted((i, x.tolist()) for i, x in (queue.get(), queue.get())))
    try:
        mp.spawn(worker.fail, nprocs=2)
    except RuntimeError as error:
        print(error)
    started = mp.spawn(worker.fail, nprocs=1, join=False)
    while not started.join(): pass
    print(len(started.pids()), started.join())  # also where none is left to wait for
"""
    (tmp_path / "main.py").write_text(code)
    env = {**os.environ, "PYTHONPATH": f"{Path(norch.__file__).parent.parent}:{tmp_path}"}
    done = subprocess.run([sys.executable, tmp_path / "main.py"], check=True, capture_output=True, text=True, env=env)
    assert done.stdout.splitlines() == [
        "[(0, [0, 0]), (1, [1, 1])]", "spawn: process 1 ended with exit code 3", "1 True"
    ]  # fmt: skip


def test_multiprocessing_is_pythons() -> None:
    import multiprocessing

    ours = norch.multiprocessing
    assert ours.Process is multiprocessing.Process and ours.get_sharing_strategy() in ours.get_all_sharing_strategies()
    ours.set_sharing_strategy("file_system")
    assert ours.get_sharing_strategy() == "file_system"
    with pytest.raises(ValueError, match="set_sharing_strategy: .*'copy'"):
        ours.set_sharing_strategy("copy")


# ---- tensorboard -----------------------------------------------------------------------------------------------------


class Recorder:
    """tensorboardX.SummaryWriter, of which only the calls are kept."""

    def __init__(self, *args: Any, **options: Any):
        self.logdir, self.calls = args[0], []  # type: ignore[var-annotated]

    def add_scalars(self, *args: Any, **options: Any) -> None:
        self.calls.append((args, options))

    def close(self) -> None:
        self.calls.append("close")


def test_a_summary_writer_takes_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    package: Any = ModuleType("tensorboardX")
    package.SummaryWriter = Recorder
    monkeypatch.setitem(sys.modules, "tensorboardX", package)
    with norch.utils.tensorboard.SummaryWriter("runs") as writer:
        assert writer.logdir == "runs"
        writer.add_scalars("losses", {"a": norch.ones(2, requires_grad=True)}, global_step=norch.tensor(3).bfloat16())
    (args, options), closed = writer.calls
    package.summary = SimpleNamespace(hparams=lambda *given: given)
    hparams = vars(norch.utils.tensorboard)["hparams"]

    assert isinstance(hparams({"rate": 0.1}, {"loss": norch.ones(1)})[1]["loss"], np.ndarray)
    assert isinstance(args[1]["a"], np.ndarray) and args[1]["a"].tolist() == [1, 1] and closed == "close"
    assert isinstance(options["global_step"], np.ndarray) and options["global_step"].dtype == np.float32


def test_a_summary_writer_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match=r"SummaryWriter needs tensorboardX: pip install 'norch-dl\[tensorboard\]'"):
        norch.utils.tensorboard.SummaryWriter("runs")


def test_a_summary_writer_writes(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    with norch.utils.tensorboard.SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", norch.tensor(0.5), 1)
        writer.add_histogram("weights", norch.rand(10), 1)
    (events,) = tmp_path.iterdir()
    assert b"loss" in events.read_bytes() and b"weights" in events.read_bytes()


def test_switches_of_attention_kernels_are_kept(torch: Any) -> None:
    for cuda in (norch.backends.cuda, torch.backends.cuda):
        for name in ("flash", "math", "mem_efficient", "cudnn"):
            enable, enabled = getattr(cuda, f"enable_{name}_sdp"), getattr(cuda, f"{name}_sdp_enabled")
            assert enabled()
            enable(False)
            assert enabled() is False
            enable(True)
            assert enabled() is True


def test_hub_loads_from_folders(tmp_path: Path, torch: Any) -> None:
    conf = (
        "import {0} as lib, beside\ndependencies = ['numpy']\n"
        "def scaled(by, size=1):\n    return beside.f() * lib.ones(size) * by\n"
    )
    for lib in (norch, torch):
        folder = tmp_path / lib.__name__
        folder.mkdir()
        (folder / "beside.py").write_text("def f(): return 2\n")
        (folder / "hubconf.py").write_text(conf.format(lib.__name__))
        before = sys.path.copy()
        assert lib.hub.load(str(folder), "scaled", 3.0, source="local", size=2).tolist() == [6.0, 6.0]
        for wrong, message in (("scale", "Cannot find callable scale"), ("scaled", "Missing dependencies: nowhere")):
            with pytest.raises(RuntimeError, match=message):
                lib.hub.load(str(folder), wrong, 1.0, source="local")
            (folder / "hubconf.py").write_text(conf.format(lib.__name__).replace("numpy", "nowhere"))
        assert sys.path == before
        sys.modules.pop("beside")
        with pytest.raises(FileNotFoundError):
            lib.hub.load(str(tmp_path), "scaled", source="local")
        with pytest.raises(ValueError, match="Unknown source"):
            lib.hub.load(str(folder), "scaled", source="disk")


def test_a_graph_for_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from norch.compat.tensorboard_graph import graph

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), nn.GRU(4, 2)

        def forward(self, x: Any) -> Any:
            a, b = self.body(x).chunk(2)
            return self.head(norch.cat([a, b]))[0]

    nodes = {node.name: node for node in graph(Net(), norch.ones(6, 3))[0].node}
    calls = [node for name, node in nodes.items() if "aten" in name]
    body = "Net/Sequential[body]/Linear[0]/aten::linear Net/Sequential[body]/ReLU[1]/aten::relu Net/aten::chunk"
    of_net = [*body.split(), *"Net/aten::cat Net/GRU[head]/aten::new_zeros Net/GRU[head]/aten::gru".split()]
    assert [re.sub(r"_\d+$", "", node.name) for node in calls] == of_net
    linear, relu, chunk, cat, state, gru = calls
    assert linear.input[0] == "input/input.0" and relu.input == [linear.name] and cat.input == [chunk.name] * 2
    assert gru.input[:2] == [cat.name, state.name] and nodes["output/output.0"].input == [gru.name]
    assert [d.size for d in gru.attr["_output_shapes"].list.shape[0].dim] == [6, 2]
    assert all(x in nodes for node in nodes.values() for x in node.input)
    with norch.utils.tensorboard.SummaryWriter(str(tmp_path)) as writer:
        writer.add_graph(Net(), norch.ones(6, 3))
    (events,) = tmp_path.iterdir()
    assert b"Net/GRU[head]/aten::gru" in events.read_bytes()


# ---- names that stand elsewhere in norch -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", """
    utils.hooks.RemovableHandle utils.model_zoo.load_url nn.common_types._size_2_t
    nn.modules.utils._reverse_repeat_tuple nn.utils.fusion.fuse_conv_bn_eval
    hub.HASH_REGEX hub.urlparse jit.annotations.List jit._overload_method jit.TracerWarning nn.attention.SDPBackend
    nn.attention.sdpa_kernel backends.cuda.enable_flash_sdp backends.cuda.sdp_kernel distributions.utils.lazy_property
    distributions.utils._sum_rightmost distributed.nn.all_reduce version.cuda __config__.show UntypedStorage
    cuda._initialized cuda.is_bf16_supported accelerator.is_available distributions.transforms._InverseTransform
    utils.checkpoint.get_device_states
""".split())  # fmt: skip
def test_names_of_pytorch_are_found_by_import_and_by_attribute(path: str, torch: Any) -> None:
    module, _, name = path.rpartition(".")
    for root in ("norch", "torch"):
        if root == "torch" and path == "distributed.nn.all_reduce":
            continue  # a PyTorch built without distributed has it not
        try:
            getattr(importlib.import_module(f"{root}.{module}".rstrip(".")), name)
        except ModuleNotFoundError:  # an object, as backends.cuda
            getattr(
                getattr(importlib.import_module(f"{root}.{module.rpartition('.')[0]}"), module.rpartition(".")[2]), name
            )


def test_the_accelerator_is_cuda_or_none() -> None:
    cuda = norch.cuda.is_available()
    assert norch.accelerator.is_available() is cuda and norch.accelerator.device_count() == norch.cuda.device_count()
    assert norch.accelerator.current_accelerator() == (norch.device("cuda") if cuda else None)
    assert not cuda or norch.utils.checkpoint.get_device_states(norch.ones(1, device="cuda"))[0] == [0]
    assert norch.utils.checkpoint.get_device_states(norch.ones(1), 3) == ([], [])


def test_channels_last_is_taken_and_changes_no_result(torch: Any) -> None:
    for m in (norch, torch):
        layer = m.nn.Conv2d(3, 4, 3).to(memory_format=m.channels_last)
        x = m.arange(2 * 3 * 5 * 5.0).view(2, 3, 5, 5)
        assert layer(x.to(memory_format=m.channels_last)).shape == layer(x).shape
        assert x.contiguous(memory_format=m.channels_last).tolist() == x.tolist()
        assert not x.is_contiguous(memory_format=m.channels_last)
        assert m.ones(2, 5, 5, 3).permute(0, 3, 1, 2).is_contiguous(memory_format=m.channels_last)
        assert not m.ones(3).is_contiguous(memory_format=m.channels_last)


def test_functions_for_lists_of_tensors(torch: Any) -> None:
    found = []
    for m in (norch, torch):
        a, b = [m.ones(2), m.zeros(3)], [m.full((2,), 3.0), m.full((3,), 2.0)]
        m._foreach_lerp_(a, b, 0.5)
        m._foreach_mul_(a, [2.0, 3.0])
        m._foreach_addcdiv_(a, b, b, -1.0)
        m._foreach_maximum_(a, 2.5)
        m._foreach_sub_(a, b, alpha=2)
        assert m._foreach_add_(a, 0.5) is a
        powers, sums = m._foreach_pow(2.0, b), m._foreach_addcmul(a, b, b, m.tensor([2.0, 3.0]))
        assert [x[0].item() for x in (*powers, *sums)] == [8.0, 4.0, 15.5, 11.0]
        with pytest.raises(RuntimeError):
            m._foreach_add(a[:1], b)
        found.append([x.tolist() for x in (*a, *m._foreach_norm(a), *m._foreach_sqrt(b), *m._foreach_add(a, b))])
    assert_close(norch.cat([norch.tensor(x).flatten() for x in found[0]]), np.hstack(found[1]).astype("float32"))
    with pytest.raises(AttributeError, match="_foreach_nothing"):
        _ = norch._foreach_nothing
    assert "foreach" not in " ".join(dir(norch))


def test_helpers_of_distributions(torch: Any) -> None:
    from torch.distributions import utils as theirs

    from norch.distributions import utils as ours

    probs = np.array([[0.2, 0.8, 0.0], [0.5, 0.25, 0.25]])
    for binary in (False, True):
        logits = ours.probs_to_logits(norch.tensor(probs), binary)
        assert_close(logits, theirs.probs_to_logits(torch.tensor(probs), binary).numpy())
        wanted = theirs.logits_to_probs(torch.tensor(logits.numpy()), binary)
        assert_close(ours.logits_to_probs(logits, binary), wanted.numpy())
    for diag in (0, -1):
        vec = np.arange(12.0).reshape(2, 6)
        found, wanted = (
            ours.vec_to_tril_matrix(norch.tensor(vec), diag),
            theirs.vec_to_tril_matrix(torch.tensor(vec), diag),
        )
        assert_close(found, wanted.numpy())
        assert_close(ours.tril_matrix_to_vec(found, diag), vec)
    assert ours._sum_rightmost(norch.ones(2, 3, 4), 2).tolist() == [12, 12]
    assert len(ours._standard_normal((3,), norch.float64, "cpu")) == 3


def test_subclasses_by_make_subclass() -> None:
    class Marked(norch.Tensor):
        pass

    x = norch.ones(2, requires_grad=True)
    made = norch.Tensor._make_subclass(Marked, x * 2, True)
    assert type(made) is Marked and made.requires_grad and made.is_leaf and made.tolist() == [2, 2]


def test_a_normalisation_is_fused_with_the_layer_before_it() -> None:
    from norch.nn.utils import fusion

    norch.manual_seed(0)
    pairs: list[Any] = [
        (nn.Conv2d(3, 4, 2, bias=False), nn.BatchNorm2d(4), norch.randn(2, 3, 5, 5), fusion.fuse_conv_bn_eval, ()),
        (nn.ConvTranspose1d(3, 4, 2), nn.BatchNorm1d(4), norch.randn(2, 3, 5), fusion.fuse_conv_bn_eval, (True,)),
        (nn.Linear(3, 4), nn.BatchNorm1d(4, affine=False), norch.randn(2, 3), fusion.fuse_linear_bn_eval, ()),
    ]
    for layer, bn, x, fuse, more in pairs:
        bn(layer(x))  # running statistics
        with pytest.raises(AssertionError, match="eval"):
            fuse(layer, bn, *more)
        layer.eval(), bn.eval()
        assert_close(fuse(layer, bn, *more)(x), bn(layer(x)), rtol=1e-5, atol=1e-6)
