"""Small behaviours of PyTorch that libraries rely on: each expression gives the same in norch and in PyTorch."""

import contextlib
import copy
import inspect
import pickle
import typing

import numpy as np
import pytest
from conftest import torch_or_skip

import norch

torch = torch_or_skip()


def plain(x):
    """What can be compared: the shape, the dtype's name and the values of a tensor; the names of classes."""
    if isinstance(x, norch.Tensor | torch.Tensor):
        return "tensor", str(x.dtype).partition(".")[2], tuple(x.shape), x.tolist()
    if isinstance(x, norch.dtype | torch.dtype):
        return str(x).partition(".")[2]
    if isinstance(x, dict):
        return {name: plain(value) for name, value in x.items()}
    if isinstance(x, list | tuple):
        return [plain(each) for each in x]
    if isinstance(x, np.ndarray):
        return "array", str(x.dtype), x.tolist()
    return x


def outcome(function, lib):
    try:
        return plain(function(lib))
    except Exception as error:
        return next(cls.__name__ for cls in type(error).__mro__ if cls.__module__ == "builtins")


def wrapper(lib):
    class Wrapper(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = lib.nn.Linear(1, 2)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("inner"), name)

    return Wrapper


def derived(lib):
    return type("Derived", (wrapper(lib),), {})()


def without_grad(lib, then):
    x = lib.ones(2, requires_grad=True)
    with lib.no_grad():
        return then(x)


def through_numpy(lib):
    """The array shares the memory of the tensor."""

    def write(x):
        x.numpy()[0] = 5
        return x.detach()

    return without_grad(lib, write)


def hooked(lib, with_module):
    m, seen = lib.nn.Linear(1, 1), []
    m._register_load_state_dict_pre_hook(
        lambda *given: seen.append([type(x).__name__[-4:].lower() for x in given]), with_module
    )
    m.load_state_dict(m.state_dict())
    return [names[-7:] if with_module else names for names in seen], len(seen[0])


def saved_hook(lib):
    m = lib.nn.Sequential(lib.nn.Linear(1, 1))
    m._register_state_dict_hook(lambda module, state, prefix, metadata: {"other": 1})
    m[0]._register_state_dict_hook(lambda module, state, prefix, metadata: {"ignored": 1})
    return m.state_dict()


def buffers(lib):
    m = lib.nn.Module()
    m.kept = lib.nn.Buffer(lib.ones(1))
    m.other = lib.nn.Buffer(lib.zeros(1), persistent=False)
    m.other = lib.nn.Buffer(lib.ones(2))
    m.third = lib.nn.Buffer(lib.ones(2), persistent=False)
    m.lazy = lib.nn.UninitializedBuffer(persistent=False)
    marks = [isinstance(x, lib.nn.Buffer) for x in (m.kept, m.lazy, lib.ones(1), lib.nn.Parameter(lib.ones(1)))]
    return sorted(m.state_dict()), [name for name, _ in m.named_buffers()], sorted(m._non_persistent_buffers_set), marks


def registry(lib):
    m = lib.nn.Linear(1, 1)
    made = type(m._parameters)({"a": 1}, b=2)
    m._parameters = type(m._parameters)(weight=None)
    return dict(made), repr(made), list(m._parameters), m.weight


def initial(name, *arguments):
    def draw(lib):
        same = [
            getattr(lib.nn.init, name)(
                lib.empty(3, 4), *arguments, generator=lib.Generator().manual_seed(seed)
            ).tolist()
            for seed in (1, 1, 2)
        ]
        return same[0] == same[1] != same[2]

    return draw


def flags(lib):
    cudnn = lib.backends.cudnn
    cudnn.benchmark = True
    with cudnn.flags(enabled=False, benchmark=False):
        inside = cudnn.enabled, cudnn.benchmark
    after, cudnn.benchmark = cudnn.benchmark, False
    return inside, after


def iterated(lib):
    found = []
    for name, cls in lib.optim.__dict__.items():
        if isinstance(cls, type) and issubclass(cls, lib.optim.Optimizer) and hasattr(lib.optim, name):
            found += [name] if name != "LBFGS" or cls is lib.optim.LBFGS else []
    return sorted(found)


def samplers(lib):
    data = lib.utils.data
    given = data.RandomSampler([1, 2], num_samples=1)
    return data.RandomSampler([1, 2])._num_samples, given._num_samples, given.num_samples


def loaders(lib):
    data, loader = lib.utils.data, lib.utils.data.DataLoader([1, 2])
    again = data.DataLoader([1, 2], num_workers=loader.num_workers, prefetch_factor=loader.prefetch_factor)
    workers = data.DataLoader([1, 2], num_workers=1)
    auto = loader._auto_collation, data.DataLoader([1], batch_size=None)._auto_collation
    return loader.prefetch_factor, again.prefetch_factor, workers.prefetch_factor, auto, len(loader._index_sampler)


def prop(lib, then):
    return then(type("P", (lib.nn.Module,), {"p": property(lambda self: self.missing)})())


KINDS = [
    (1, int), (True, int), (1, str), (None, type(None)), ([1, 2], list[int]), ([1, "a"], typing.List[int]),  # noqa: UP006
    ({"a": 1}, dict[str, int]), ({1: 1}, dict[str, int]), ((1, "a"), tuple[int, str]), ((1,), tuple[int, str]),
    ([[1], [2]], list[list[int]]), ([["a"]], list[list[int]]), (None, typing.Optional[int]), (2, int | str),  # noqa: UP045
    ({"a": [1]}, dict[str, list[int]]), (1, (str, int)), ([1], list), ({}, typing.Dict), ([], 5),  # noqa: UP006
]  # fmt: skip


CASES = {
    "numpy() without grad mode": lambda lib: without_grad(lib, lambda x: x.numpy()),
    "numpy() of a result": lambda lib: (lib.ones(2, requires_grad=True) * 2).numpy(),
    "numpy() that shares": through_numpy,
    "asarray without grad mode": lambda lib: without_grad(lib, np.asarray),
    "asarray with grad mode": lambda lib: np.asarray(lib.ones(2, requires_grad=True)),
    "__getattr__ called": lambda lib: tuple(lib.nn.Linear(1, 2).__getattr__("weight").shape),
    "__getattr__ of the class": lambda lib: type(lib.nn.Module.__getattr__(wrapper(lib)(), "inner")).__name__,
    "__getattr__ of nothing": lambda lib: lib.nn.Linear(1, 2).__getattr__("nothing"),
    "wrapper": lambda lib: (wrapper(lib)().out_features, hasattr(wrapper(lib)(), "x")),
    "wrapper derived": lambda lib: (derived(lib).out_features, hasattr(derived(lib), "x")),
    "attribute that is missing": lambda lib: lib.nn.Linear(1, 1).nothing,
    "property": lambda lib: prop(lib, lambda m: m.p),
    "property of hasattr": lambda lib: prop(lib, lambda m: (hasattr(m, "p"), getattr(m, "p", 3))),
    "registry": registry,
    "buffers": buffers,
    "buffer of data": lambda lib: lib.nn.Buffer(lib.ones(2)),
    "buffer copied": lambda lib: isinstance(copy.deepcopy(lib.nn.Buffer(lib.ones(2))), lib.nn.Buffer),
    "load_state_dict hook": lambda lib: hooked(lib, False),
    "load_state_dict hook with module": lambda lib: hooked(lib, True),
    "state_dict hook": saved_hook,
    "optim.__dict__": iterated,
    "flags": flags,
    "samplers": samplers,
    "loaders": loaders,
    "fan": lambda lib: [lib.nn.init._calculate_correct_fan(lib.ones(2, 3), mode) for mode in ("fan_in", "FAN_OUT")],
    "fan of no mode": lambda lib: lib.nn.init._calculate_correct_fan(lib.ones(2, 3), "fan"),
    "gain": lambda lib: [lib.nn.init.calculate_gain(name) for name in ("conv_transpose2d", "conv3d", "selu", "tanh")],
    **{
        f"autocast of {kind}": lambda lib, kind=kind: (lib.is_autocast_enabled(kind), lib.get_autocast_dtype(kind))
        for kind in ("cpu", "cuda", "mps", "xpu", "hpu", "xla", "mtia", "ipu", "maia", "nothing")
    },
    **{f"isinstance {x!r} {kind}": lambda lib, x=x, kind=kind: lib.jit.isinstance(x, kind) for x, kind in KINDS},
    **{
        f"init.{name}": initial(name, *arguments)
        for name, *arguments in (
            ("uniform_", 0, 1), ("normal_", 0, 1), ("trunc_normal_", 0, 1, -2, 2), ("xavier_uniform_", 1.0),
            ("xavier_normal_", 1.0), ("kaiming_uniform_", 0, "fan_in", "relu"), ("kaiming_normal_", 0),
            ("orthogonal_", 1),
        )
    },
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_as_in_torch(name):
    ours, theirs = (outcome(CASES[name], lib) for lib in (norch, torch))
    assert ours == theirs


def test_lookups_stay_ordinary():
    """Look-ups do not call the __getattr__ of Module, but that of a subclass, also one that is set later."""
    calls = []

    class Counted(norch.nn.Module):
        def __getattribute__(self, name):
            calls.append(name)
            return super().__getattribute__(name)

    class Hooked(norch.nn.Module):
        def __getattr__(self, name):
            return name

    class Later(norch.nn.Module):
        pass

    assert Hooked().anything == "anything"
    assert Counted().training
    assert calls[-1] == "training"
    with pytest.raises(AttributeError, match="'Later' object has no attribute 'anything'"):
        _ = Later().anything
    Later.__getattr__ = Hooked.__getattr__
    assert Later().anything == "anything"
    del Later.__getattr__
    with pytest.raises(AttributeError, match="'Later' object has no attribute 'anything'"):
        _ = Later().anything


def test_modules_saved_with_older_names():
    """Modules that norch 0.2 pickled have _non_persistent and _state_hooks."""
    m = norch.nn.BatchNorm1d(2)
    m.register_buffer("extra", norch.ones(1), persistent=False)
    state = {
        name: value for name, value in vars(m).items() if not name.endswith("dict_hooks") and "_pre_hooks" not in name
    }
    state = {name: value for name, value in state.items() if not name.endswith("post_hooks")}
    state["_non_persistent"], state["_state_hooks"] = state.pop("_non_persistent_buffers_set"), {"loaded": {0: print}}
    state.update(_forward_pre_hooks={}, _backward_pre_hooks={})
    old = norch.nn.BatchNorm1d.__new__(norch.nn.BatchNorm1d)
    old.__setstate__(state)
    assert list(old.state_dict()) == list(m.state_dict())
    assert old._load_state_dict_post_hooks == {0: print} and vars(old).keys() == vars(m).keys()
    assert pickle.loads(pickle.dumps(old)).state_dict().keys() == m.state_dict().keys()


def test_initial_sparse():
    """PyTorch draws the places of the zeros from the default generator."""
    assert initial("sparse_", 0.5, 0.1)(norch)


@pytest.mark.parametrize("name", [name for name in norch.nn.__all__ if name[0].isupper()])
def test_type_hints(name):
    """typing resolves the annotations of each layer: of the class, of an instance, and of their methods."""
    cls = getattr(norch.nn, name)
    things = [cls, cls.__init__]
    for sizes in ((), (2,), (2, 2), (2, 2, 2), (4, 2)):
        with contextlib.suppress(Exception):
            made = cls(*sizes)
            if isinstance(made, norch.nn.Module):
                things += [made, made.forward, cls.forward]
            break
    for thing in things:
        typing.get_type_hints(thing)


def test_signature_of_a_buffer():
    assert str(inspect.signature(norch.nn.Buffer.__new__)).partition(" ->")[0].endswith("*, persistent: 'bool' = True)")
    with pytest.raises(TypeError, match="Buffer: data must be a norch.Tensor, got list"):
        norch.nn.Buffer([1.0])


def test_modules_under_several_names():
    def named(lib):
        shared = lib.nn.ReLU()
        net = lib.nn.Sequential(shared, lib.nn.Sequential(lib.nn.Linear(1, 1), shared), shared)
        once = [(name, type(one).__name__) for name, one in net.named_modules(prefix="net")]
        each = [(name, type(one).__name__) for name, one in net.named_modules(remove_duplicate=False)]
        within = [name for name, _ in net.named_modules({shared} if lib is torch else {id(shared)})]
        return once, each, within, [name for name, _ in net.named_children()], len(list(net.modules()))

    assert named(norch) == named(torch)
    once, each, *_ = named(norch)
    assert [name for name, _ in each] == ["", "0", "1", "1.0", "1.1", "2"] and len(once) == 4
