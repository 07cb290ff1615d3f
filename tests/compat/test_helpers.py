"""Private helpers of PyTorch that compute (compat/helpers.py), names that PyTorch's modules import from others, modules
with the name of a function, and containers with a batch axis of their own within vmap."""

import copy
import importlib
import pickle
import sys
from typing import Any

import numpy as np
import pytest

import norch
from norch import nn
from norch.compat import placeholders
from norch.utils import benchmark

pytestmark = pytest.mark.host

# ---- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", sorted(placeholders.imported_names()))
def test_imported_names_are_things_of_norch(where: str) -> None:
    for name in placeholders.imported_names()[where]:
        assert not placeholders.is_placeholder(placeholders.placeholder(where, name)), name


def test_imported_names_are_the_same_things() -> None:
    assert placeholders.placeholder("distributions.kl", "Categorical") is norch.distributions.Categorical
    assert importlib.import_module("norch.nn.modules.conv").F is nn.functional
    assert importlib.import_module("norch.nn.modules.loss").torch is norch


@pytest.mark.parametrize(
    ("path", "name"),
    [("nn.utils", "weight_norm"), ("nn.utils", "spectral_norm"), ("nn.parallel", "data_parallel"),
     ("multiprocessing", "spawn"), ("autograd", "gradcheck")],
)  # fmt: skip
def test_modules_with_the_name_of_a_function_are_called_like_it(path: str, name: str) -> None:
    package = importlib.import_module(f"norch.{path}")
    before, loaded = getattr(package, name), sys.modules.pop(f"norch.{path}.{name}", None)
    try:
        module = placeholders.imported(f"{path}.{name}")
        assert sys.modules[f"norch.{path}.{name}"] is module and callable(getattr(package, name))
        with pytest.raises((TypeError, AttributeError)) as caught:  # that of the function
            getattr(package, name)()
        assert "module" not in str(caught.value) or "argument" in str(caught.value)
    finally:
        setattr(package, name, before)
        sys.modules.pop(f"norch.{path}.{name}", None)
        if loaded is not None:
            sys.modules[f"norch.{path}.{name}"] = loaded


# ---- functions -----------------------------------------------------------------------------------------------------

TENSORS = [np.arange(6.0).reshape(2, 3), np.ones(4), np.arange(3), np.zeros((2, 2))]
CALLS: dict[str, tuple[Any, ...]] = {
    "_utils._flatten_dense_tensors": ([TENSORS[0], TENSORS[1]],),
    "_utils._unflatten_dense_tensors": (np.arange(10.0), [TENSORS[0], TENSORS[1]]),
    "_utils._take_tensors": (TENSORS, 60),
    "_utils._reorder_tensors_as": ([TENSORS[2], TENSORS[1], TENSORS[3]], TENSORS[1:]),
    "_utils._get_device_index": ("cpu", True, True),
    "optim.optimizer._get_value": (np.array(2.0),),
    "optim.optimizer._dispatch_sqrt": (np.array(2.25),),  # exact: MKL rounds other roots wrongly
    "optim.optimizer._to_scalar": (np.array([2.0]),),
    "nn.functional._get_softmax_dim": ("softmax", 4, 0),
    "nn._reduction.get_enum": ("sum",),
    "nn.modules.utils._list_with_default": ([None, 3], [1, 5, 7]),
    "nn.modules.rnn._apply_permutation": (TENSORS[0], np.array([2, 0, 1])),
    "_cast_Long": (np.array([1.5, -2.5]),),
    "expand_copy": (np.ones((1, 3)), (2, 3)),
}


def tree(x: Any, of: Any) -> Any:
    if isinstance(x, np.ndarray):
        return of(x)
    return type(x)(tree(one, of) for one in x) if isinstance(x, (list, tuple)) and len(x) else x


def plain(x: Any) -> Any:
    if hasattr(x, "tolist"):
        return x.tolist(), str(x.dtype).partition(".")[2], tuple(x.shape)
    return [plain(one) for one in x] if hasattr(x, "__iter__") and not isinstance(x, str) else x


@pytest.mark.parametrize("path", CALLS)
def test_like_pytorch(torch: Any, path: str) -> None:
    module, _, name = path.rpartition(".")
    found = []
    for root in (torch, norch):
        holder = importlib.import_module(f"{root.__name__}.{module}".rstrip("."))
        function = getattr(holder, name, None) or placeholders.placeholder(module or "torch", name)
        found.append(plain(function(*tree(CALLS[path], root.from_numpy))))
    assert found[0] == found[1]


def test_gradients_of_softmax(torch: Any) -> None:
    g, y = np.random.default_rng(0).normal(size=(2, 3, 4)), np.random.default_rng(1).normal(size=(2, 3, 4))
    for name in ("_softmax_backward_data", "_log_softmax_backward_data"):
        of = [getattr(r, name)(r.from_numpy(g), r.from_numpy(y), 1, r.float64).numpy() for r in (torch, norch)]
        np.testing.assert_allclose(*of, rtol=1e-12)


def test_steps_of_other_optimizers_record_no_gradients() -> None:
    from norch.optim.optimizer import Optimizer

    _use_grad_for_differentiable = placeholders.placeholder("optim.optimizer", "_use_grad_for_differentiable")

    class Sign(Optimizer):
        @_use_grad_for_differentiable
        def step(self) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(p.grad.sign() * group["lr"])

    x = norch.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    Sign([x], {"lr": 0.5}).step()
    assert x.tolist() == [0.5, 0.5] and x.is_leaf


@pytest.mark.parametrize("arguments", [(1, 4), (1, 4, 0.5), (3,), (4, 1, -1), (0, 1, 0.3)])
def test_range_has_its_end(torch: Any, arguments: tuple[float, ...]) -> None:
    make = placeholders.placeholder("torch", "range")
    theirs = torch.range(*arguments) if len(arguments) > 1 else torch.range(0, *arguments)
    assert norch.testing.assert_close(make(*arguments), norch.tensor(theirs.tolist())) is None
    assert make(0, 3, dtype=norch.int64).tolist() == [0, 1, 2, 3]
    out = norch.empty(0, dtype=norch.int16)
    assert make(1, 3, out=out) is out and out.tolist() == [1, 2, 3]
    for wrong in ((1, 2, 0), (1, 2, -1)):
        with pytest.raises(RuntimeError, match="range"):
            make(*wrong)


def test_tensors_of_a_file(tmp_path: Any) -> None:
    path = tmp_path / "numbers"
    np.arange(4, dtype=np.float32).tofile(path)
    read = placeholders.placeholder("torch", "from_file")
    assert read(str(path), size=4).tolist() == [0, 1, 2, 3]
    assert read(str(path), size=2, dtype=norch.int32).dtype is norch.int32
    with pytest.raises(NotImplementedError, match="shared"):
        read(str(path), shared=True, size=4)


def test_line_search(torch: Any) -> None:
    found = []
    for root in (torch, norch):
        search = (
            importlib.import_module("torch.optim.lbfgs")._strong_wolfe
            if root is torch
            else placeholders.placeholder("optim.lbfgs", "_strong_wolfe")
        )

        def value(x: Any, t: float, d: Any) -> Any:
            y = x + t * d
            return float((y**4).sum()), 4 * y**3

        x = root.tensor([1.0, -2.0], dtype=root.float64)
        f, g = value(x, 0.0, x)
        loss, gradient, t, _ = search(value, x, 1.0, -g, f, g, -(g * g).sum())
        found.append([loss, t, *gradient.tolist()])
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_minimum_of_a_cubic(torch: Any) -> None:
    theirs = importlib.import_module("torch.optim.lbfgs")._cubic_interpolate
    ours = placeholders.placeholder("optim.lbfgs", "_cubic_interpolate")
    for points in ((0.0, 1.0, -1.0, 2.0, 1.5, 2.0), (2.0, 1.5, 2.0, 0.0, 1.0, -1.0), (0.0, 1.0, 1.0, 1.0, 0.0, 1.0)):
        there = theirs(*[torch.tensor(p) if i % 3 else p for i, p in enumerate(points)])
        assert abs(ours(*points) - float(there)) < 1e-6


def test_flops_like_pytorch(torch: Any) -> None:
    counts = []
    for root in (torch, norch):
        nn_ = root.nn
        net = nn_.Sequential(nn_.Conv2d(3, 4, 3), nn_.ReLU(), nn_.Flatten(), nn_.Linear(144, 5))
        counter = importlib.import_module(f"{root.__name__}.utils.flop_counter").FlopCounterMode(display=False)
        with counter:
            net(root.ones(1, 3, 8, 8, requires_grad=True)).sum().backward()
        counts.append({name: sum(found.values()) for name, found in counter.get_flop_counts().items()})
        with counter:
            root.einsum("ij,jk->ik", root.ones(2, 3), root.ones(3, 4))
            nn_.functional.conv_transpose2d(root.ones(1, 2, 4, 4), root.ones(2, 3, 3, 3))
            nn_.GRU(3, 4)(root.ones(2, 1, 3))
        counts.append(counter.get_total_flops())
    assert counts[:2] == counts[2:]
    assert "Global" in counter.get_table()


def test_samples_of_a_subclass_are_stacked_as_it_says() -> None:
    class Named(norch.Tensor):
        pass

    batch = norch.utils.data.default_collate([{"x": norch.ones(2).as_subclass(Named)}] * 3)
    assert type(batch["x"]) is Named and batch["x"].shape == (3, 2)
    collate = importlib.import_module("norch.utils.data._utils.collate").collate_tensor_fn
    assert type(collate([norch.ones(2).as_subclass(Named)] * 2)) is Named
    assert type(norch.utils.data.default_collate([nn.Parameter(norch.ones(2))] * 2)) is norch.Tensor


def test_numbers_of_normal_may_be_tensors() -> None:
    assert norch.normal(norch.tensor(2.0), norch.tensor(0.0), (3,)).tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="normal"):
        norch.normal(norch.ones(2), norch.tensor(1.0), (2,))


def test_classes_of_c_are_not_there() -> None:
    classes = placeholders.placeholder("torch", "classes")
    with pytest.raises(RuntimeError, match=r"some\.Thing"):
        _ = classes.some.Thing
    with pytest.raises(OSError, match="norch"):
        classes.load_library("x.so")


# ---- vmap ----------------------------------------------------------------------------------------------------------


class Batch:
    """Tensors with a batch axis, as a TensorDict: by the methods that PyTorch's vmap calls."""

    def __init__(self, tensors: dict[str, Any], shape: tuple[int, ...]) -> None:
        self.tensors, self.shape, self.ndim = tensors, shape, len(shape)

    def _add_batch_dim(self, *, in_dim: int, vmap_level: Any) -> "Batch":
        add = placeholders.placeholder("_C._functorch", "_add_batch_dim")
        shape = tuple(size for axis, size in enumerate(self.shape) if axis != in_dim)
        return Batch({name: add(x, in_dim, vmap_level) for name, x in self.tensors.items()}, shape)

    def _remove_batch_dim(self, vmap_level: Any, batch_size: int, out_dim: int) -> "Batch":
        remove = placeholders.placeholder("_C._functorch", "_remove_batch_dim")
        of = {name: remove(x, vmap_level, batch_size, out_dim) for name, x in self.tensors.items()}
        return Batch(of, (*self.shape[:out_dim], batch_size, *self.shape[out_dim:]))


def test_vmap_asks_containers_with_a_batch_axis() -> None:
    x, w = norch.arange(24.0).view(2, 3, 4), norch.arange(3.0)

    def scaled(batch: Batch, weight: norch.Tensor) -> Batch:
        assert batch.shape == (2,) and batch.tensors["x"].shape == (2, 4)
        return Batch({"y": batch.tensors["x"] * weight}, (2,))

    found = norch.vmap(scaled, in_dims=(1, 0), out_dims=1)(Batch({"x": x}, (2, 3)), w)
    assert found.shape == (2, 3)
    assert norch.equal(found.tensors["y"], x * w[:, None])


def test_transforms_of_functions_go_into_registered_containers() -> None:
    from norch.utils import _pytree

    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    _pytree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda children, _: Pair(*children))
    try:
        pair = Pair(norch.tensor([1.0, 2.0]), norch.tensor([3.0, 4.0]))
        mapped = norch.vmap(lambda p: Pair(p.a * p.b, p.b))(pair)
        assert mapped.a.tolist() == [3, 8] and mapped.b.tolist() == [3, 4]
        gradient = norch.func.grad(lambda p: (p.a * p.b).sum())(pair)
        assert gradient.a.tolist() == [3, 4] and gradient.b.tolist() == [1, 2]
    finally:
        _pytree.SUPPORTED_NODES.pop(Pair)


# ---- what copies and pickles of a module hold ------------------------------------------------------------------------


class Kept(nn.Module):
    """A module that sets its own state, as those of programs do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.weight = nn.Parameter(norch.ones(2))
        self.register_buffer("mean", norch.zeros(1))
        self.mode = "kept"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        assert not state.keys() & {"layer", "weight", "mean"}
        self.__dict__ = state


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), copy.copy])
def test_states_have_entries_in_registries_alone(again: Any) -> None:
    made = again(Kept())
    assert made.mode == "kept" and made.layer(made.weight).shape == (1,) and made.mean.tolist() == [0]
    assert [name for name, _ in made.named_parameters()] == ["weight", "layer.weight", "layer.bias"]
    if again is not copy.copy:
        made.layer = nn.Linear(2, 4)
        assert made._modules["layer"] is made.layer and made.layer(made.weight).shape == (4,)
    shallow = copy.copy(nn.Linear(2, 3))
    assert shallow.weight.shape == (3, 2) and shallow(norch.ones(2)).shape == (3,)


def test_what_is_asked_of_an_attention(torch: Any) -> None:
    """Before keras calls it."""
    for lib in (norch, torch):
        x = lib.ones(1, 2, 3, 4)
        asked = lib.backends.cuda.SDPAParams(x, x, x, None, 0.0, True, False)
        assert asked.query is x and (asked.attn_mask, asked.is_causal) == (None, True)
        assert lib.backends.cuda.can_use_flash_attention(asked) is False


def test_dims_of_exports() -> None:
    Dim = norch.export.Dim  # noqa: N806
    assert [repr(d) for d in (Dim("batch", max=99), Dim("b"), Dim("b", min=2), Dim.DYNAMIC(min=2, max=9))] == [
        "Dim('batch', min=0, max=99)", "Dim('b', min=0)", "Dim('b')", "DimHint(DYNAMIC, min=2, max=9)",
    ]  # fmt: skip
    for wrong in (lambda: Dim("1b"), lambda: Dim("b", min=3, max=3), lambda: Dim.AUTO(min=-1), lambda: Dim.AUTO(3, 2)):
        with pytest.raises(AssertionError):
            wrong()
    with pytest.raises(TypeError):
        Dim.AUTO(min=2)(max=3)


def test_a_timer_measures_a_statement() -> None:
    x, calls = norch.ones(2), []
    timer = benchmark.Timer("calls.append(x + y)", "y = torch.ones(2)", globals={"x": x, "calls": calls})
    once, many = timer.timeit(10), timer.blocked_autorange(min_run_time=0.01)
    assert type(once) is benchmark.Measurement and once.number_per_run == 10 and once.times == [once.median]
    assert once.raw_times[0] == pytest.approx(10 * once.median) and len(calls) > 10 + many.number_per_run
    assert sum(many.raw_times) >= 0.01 and min(many.times) <= many.median <= max(many.times)
    assert "calls.append" in repr(many)
    with pytest.raises(NotImplementedError, match="times Python"):
        benchmark.Timer("1;", language="c++")
