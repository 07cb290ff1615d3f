"""What compat/ gives for private modules of PyTorch that compute: helpers of layers, derivatives and distributions, the
package functorch, weak references, contexts that decorate, hooks of all modules, further names of utils._pytree."""

import collections
import gc
import importlib
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import norch
from norch import nn
from norch.compat import functorch, private_functions, pytree_names
from norch.compat.placeholders import placeholder
from norch.nn import _hooks, _watch
from norch.testing import assert_close
from norch.utils import _pytree, weak

pytestmark = pytest.mark.host


def both(torch: Any, path: str) -> tuple[Any, Any]:
    """The thing of a path in PyTorch, and in norch."""
    module, _, name = path.rpartition(".")
    theirs, ours = (importlib.import_module(f"{root}.{module}") for root in ("torch", "norch"))
    return getattr(theirs, name), vars(ours).get(name) or placeholder(module, name)


RNG = np.random.default_rng(0)
SPD = (lambda a: a @ a.T + np.eye(3))(RNG.normal(size=(3, 3)))
CALLS: dict[str, tuple[Any, ...]] = {
    "distributions.transforms._clipped_sigmoid": (np.array([-800.0, 0.5, 800.0]),),
    "distributions.multivariate_normal._precision_to_scale_tril": (SPD,),
    "distributions.multivariate_normal._batch_mv": (RNG.normal(size=(2, 1, 3, 3)), RNG.normal(size=(4, 3))),
    "distributions.multivariate_normal._batch_mahalanobis": (np.linalg.cholesky(SPD), RNG.normal(size=(4, 3))),
    "nn.functional._in_projection_packed": (*RNG.normal(size=(3, 2, 4)), RNG.normal(size=(12, 4)), RNG.normal(size=12)),
    "nn.functional._in_projection": (
        *RNG.normal(size=(3, 2, 4)),
        *RNG.normal(size=(3, 4, 4)),
        *RNG.normal(size=(3, 4)),
    ),
    "nn.modules.transformer._generate_square_subsequent_mask": (4,),
    "nn.modules.container._addindent": ("a\nb\n", 3),
}


@pytest.mark.parametrize("path", CALLS)
def test_like_pytorch(torch: Any, path: str) -> None:
    found = []
    for function, make in zip(both(torch, path), (torch.tensor, norch.tensor), strict=True):
        result = function(*(make(a) if isinstance(a, np.ndarray) else a for a in CALLS[path]))
        found.append([np.asarray(x) for x in (result if isinstance(result, (tuple, list)) else [result])])
    for a, b in zip(*found, strict=True):
        assert a.dtype == b.dtype and (a == b).all() if a.dtype.kind == "U" else np.allclose(a, b, rtol=1e-6)


def test_masks_become_floats(torch: Any) -> None:
    theirs, ours = both(torch, "nn.functional._canonical_mask")
    for values in ([True, False], [0.5, 1.0]):
        a = theirs(torch.tensor(values), "m", None, "", torch.float32)
        b = ours(norch.tensor(values), "m", None, "", norch.float32)
        assert a.tolist() == b.tolist() and ours(None, "m", None, "", norch.float32) is None
    with pytest.raises(RuntimeError, match="bool and floating"):
        ours(norch.tensor([1]), "m", None, "", norch.float32)


def test_helpers_of_derivatives(torch: Any) -> None:
    for module in (torch, norch):
        f = importlib.import_module(f"{module.__name__}.autograd.functional")
        x, y = module.ones(2, requires_grad=True), module.zeros(1)
        assert f._as_tuple(x, "inputs", "f")[0] is False and f._as_tuple((x, y), "inputs", "f") == (True, (x, y))
        with pytest.raises(TypeError):
            f._as_tuple((x, 3), "inputs", "f")
        assert f._tuple_postprocess((x,), False) is x and f._tuple_postprocess(((x,), (y,)), (True, False)) == (x, y)
        made = f._grad_preprocess((x, y), True, True)
        assert made[0].grad_fn is not None and made[1].is_leaf and made[1].requires_grad
        assert not any(z.requires_grad for z in f._grad_postprocess(made, False))
        basis = f._construct_standard_basis_for((x, y), (2, 1))
        assert module.cat(basis, 1).tolist() == module.eye(3).tolist()


BASES = """
conv._ConvTransposeNd pooling._AvgPoolNd pooling._MaxPoolNd pooling._AdaptiveAvgPoolNd pooling._AdaptiveMaxPoolNd
pooling._LPPoolNd pooling._MaxUnpoolNd dropout._DropoutNd padding._ConstantPadNd padding._ReflectionPadNd
padding._ReplicationPadNd padding._CircularPadNd
"""


@pytest.mark.parametrize("path", BASES.split())
def test_layers_are_instances_of_private_bases(torch: Any, path: str) -> None:
    theirs, ours = both(torch, f"nn.modules.{path}")
    same = [n for n in dir(torch.nn) if isinstance(cls := getattr(torch.nn, n), type) and issubclass(cls, theirs)]
    mine = [n for n in dir(nn) if isinstance(cls := getattr(nn, n), type) and issubclass(cls, ours)]
    assert mine == [name for name in same if name in dir(nn)] and mine
    assert type("Derived", (ours,), {})


def test_clones_and_activations() -> None:
    clones = private_functions._get_clones(nn.Linear(2, 2), 2)
    assert norch.equal(clones[0].weight, clones[1].weight) and clones[0].weight is not clones[1].weight
    assert private_functions._get_activation_fn("gelu") is nn.functional.gelu
    with pytest.raises(RuntimeError, match="relu/gelu"):
        private_functions._get_activation_fn("tanh")


# ---- hooks of all modules ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", ["torch", "norch"])
def test_hooks_of_all_modules(torch: Any, root: str) -> None:
    module, seen = importlib.import_module(root), []
    hooks = importlib.import_module(f"{root}.nn.modules.module")
    model, call = module.nn.Sequential(module.nn.Hardtanh(0, 100), module.nn.ReLU()), nn.Module.__call__

    def half_more(m: Any, args: Any, named: Any, out: Any) -> Any:
        return out + 0.5 if type(m).__name__ == "ReLU" else None

    with (
        hooks.register_module_forward_pre_hook(lambda m, args: args[0] + 1),
        hooks.register_module_forward_pre_hook(lambda m, args: (args[0] * 2,)),
        hooks.register_module_forward_pre_hook(lambda m, args: None),
        hooks.register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__)),
        hooks.register_module_forward_hook(half_more, with_kwargs=True),
    ):
        assert model(module.ones(2)).tolist() == [22.5, 22.5]
    assert seen == ["Hardtanh", "ReLU", "Sequential"]
    assert model(module.ones(2)).tolist() == [1, 1] and len(seen) == 3
    assert nn.Module.__call__ is call  # without which Sequential fuses nothing


@pytest.mark.parametrize("kind", ["forward_hook", "forward_pre_hook"])
def test_hooks_of_all_modules_while_modules_are_watched(kind: str) -> None:
    seen: list[str] = []
    call = nn.Module.__call__
    with _watch.watching(lambda module: seen.append("watched")):  # type: ignore[func-returns-value]
        handle = getattr(_hooks, f"register_module_{kind}")(lambda *args: seen.append("hook"))
        nn.ReLU()(norch.ones(1))
    nn.ReLU()(norch.ones(1))
    handle.remove()
    nn.ReLU()(norch.ones(1))
    assert seen == ["watched", "hook", "hook"] and nn.Module.__call__ is call


# ---- functorch -----------------------------------------------------------------------------------------------------


def test_functorch(torch: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    x = norch.arange(12.0).reshape(4, 3)
    with pytest.raises(RuntimeError, match="buffers"):
        functorch.make_functional(model)
    f, params, buffers = functorch.make_functional_with_buffers(model)
    assert_close(f(params, buffers, x), model(x))
    g, params = functorch.make_functional(model[0], disable_autograd_tracking=True)
    assert not params[0].requires_grad
    grads = functorch.grad(lambda params: g(params, x).square().sum())(params)
    assert_close(grads[1], 2 * model[0](x).sum(0).detach())
    several = [nn.Linear(3, 2) for _ in range(3)]
    one, params, _ = functorch.combine_state_for_ensemble(several)
    found = functorch.vmap(lambda p: one(p, (), x))(params)
    assert_close(found, norch.stack([each(x) for each in several]))
    with pytest.raises(RuntimeError, match="one class"):
        functorch.combine_state_for_ensemble([model, model[0]])


def test_functorch_is_imported_through_the_door() -> None:
    code = "import functorch, torch; assert functorch.vmap is torch.vmap"
    subprocess.run([sys.executable, "-m", "norch", "-c", code], check=True)


# ---- weak references, contexts -------------------------------------------------------------------------------------


def test_dicts_of_tensors_by_identity() -> None:
    held, other = norch.ones(2), norch.ones(2)
    table = weak.WeakIdKeyDictionary({held: 1, other: 2})
    table[held] = 3
    assert len(table) == 2 and table[held] == 3 and other in table and 5 not in table and len(table.copy()) == 2
    ref = weak.TensorWeakRef(other)
    assert ref() is other
    del other
    gc.collect()
    assert len(table) == 1 and ref() is None and [key is held for key in table] == [True]
    del table[held]
    assert not table and table.get(held) is None


def test_contexts_that_decorate(torch: Any) -> None:
    for module in (torch, norch):
        within = importlib.import_module(f"{module.__name__}.utils._contextlib")
        log: list[str] = []

        class Noted(within._NoParamDecoratorContextManager):  # type: ignore[misc,name-defined]
            def __enter__(self) -> None:
                log.append("in")  # noqa: B023

            def __exit__(self, *error: Any) -> None:
                log.append("out")  # noqa: B023

        @Noted
        def plain() -> None:
            log.append("plain")  # noqa: B023

        @Noted()
        def steps() -> Any:
            yield 1
            log.append("step")  # noqa: B023

        plain()
        for _ in steps():
            log.append("outside")
        assert log == ["in", "plain", "out", "in", "out", "outside", "in", "step", "out"]


# ---- pytrees -------------------------------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", "a b")
TREES: tuple[Any, ...] = (
    [1, (2, {"a": 3})],
    collections.OrderedDict(b=1, a=[2]),
    collections.deque([1], maxlen=3),
    3,
)  # fmt: skip


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_specs_as_json(torch: Any, tree: Any) -> None:
    theirs = importlib.import_module("torch.utils._pytree")
    text = pytree_names.treespec_dumps(_pytree.tree_structure(tree))
    assert text == theirs.treespec_dumps(theirs.tree_structure(tree))
    assert pytree_names.treespec_loads(text) == _pytree.tree_structure(tree)


def taken_apart(pytree: Any, tree: Any) -> Any:
    """Leaves and spec of a tree, by the functions that a module has for its nodes: as pytorch_lightning does it."""
    kind = pytree._get_node_type(tree)
    if kind not in pytree.SUPPORTED_NODES:
        return [tree], pytree.LeafSpec()
    children, context = pytree.SUPPORTED_NODES[kind].flatten_fn(tree)
    parts = [taken_apart(pytree, child) for child in children]
    specs = [spec for _, spec in parts]
    return [leaf for leaves, _ in parts for leaf in leaves], pytree.TreeSpec(kind, context, specs)


@pytest.mark.parametrize("tree", [3, [1, (2, {"a": 3})], Pair(1, [2]), collections.OrderedDict(b=1, a=(2,))], ids=str)
def test_trees_by_the_functions_of_their_nodes(torch: Any, tree: Any) -> None:
    for module in (norch.utils._pytree, torch.utils._pytree):
        leaves, spec = taken_apart(module, tree)
        assert module.tree_flatten(tree) == (leaves, spec)
        assert module.tree_unflatten(leaves, spec) == tree
        assert isinstance(module.tree_structure(0), module.LeafSpec)
        assert module.SUPPORTED_NODES[list].type is list and module.SUPPORTED_NODES[list].unflatten_fn([1], None) == [1]


NODES = {"list": [1, 2], "tuple": (1, 2), "namedtuple": Pair(1, 2), "ordereddict": collections.OrderedDict(a=1),
         "defaultdict": collections.defaultdict(int, a=1), "deque": collections.deque([1], 2),
         "dict": {"a": 1}}  # fmt: skip


@pytest.mark.parametrize("kind", NODES)
def test_how_nodes_are_taken_apart(torch: Any, kind: str) -> None:
    theirs, ours = (importlib.import_module(f"{root}.utils._pytree") for root in ("torch", "norch"))
    found = []
    for module in (theirs, ours):
        parts, context = getattr(module, f"_{kind}_flatten")(NODES[kind])
        assert getattr(module, f"_{kind}_unflatten")(parts, context) == NODES[kind]
        found.append((list(parts), context))
    assert found[0] == found[1]


def test_questions_of_named_tuples(torch: Any) -> None:
    theirs, ours = (importlib.import_module(f"{root}.utils._pytree") for root in ("torch", "norch"))
    for thing in (Pair(1, 2), Pair, time.localtime(), time.struct_time, (1, 2), tuple, 3):
        for name in "is_namedtuple is_namedtuple_instance is_structseq is_structseq_instance tree_is_leaf".split():
            assert getattr(theirs, name)(thing) == getattr(ours, name)(thing), (name, thing)


class Box:
    def __init__(self, x: Any) -> None:
        self.x = x


@pytest.mark.parametrize("root", ["torch", "norch"])
def test_registered_nodes(torch: Any, root: str) -> None:
    module = importlib.import_module(f"{root}.utils._pytree")
    key = module.GetAttrKey("x")
    module._register_pytree_node(
        Box, lambda b: ([b.x], "box"), lambda parts, _: Box(*parts), serialized_type_name="tests.Box",
        flatten_with_keys_fn=lambda b: ([(key, b.x)], "box"),
    )  # fmt: skip
    paths = module.tree_leaves_with_path([Box(5)])
    assert module.keystr(paths[0][0]) == "[0].x" and paths[0][1] == 5
    spec = module.tree_structure(Box(1))
    assert module.treespec_loads(module.treespec_dumps(spec)) == spec
    module._deregister_pytree_node(Box)
    assert module.tree_is_leaf(Box(1))
    assert module._broadcast_to_and_flatten([0, 1], module.tree_structure([1, {"a": 2, "b": 3}])) == [0, 1, 1]
    assert module._broadcast_to_and_flatten([0], module.tree_structure([1, 2])) is None


def test_parameters_of_a_module_are_a_node() -> None:
    assert len(_pytree.tree_leaves(nn.Linear(1, 1)._parameters)) == 2


def test_dense_tensors_are_dense(torch: Any) -> None:
    for module in (torch, norch):
        x = module.arange(3)
        assert x.to_dense() is x and x.to_dense(module.float64).dtype is module.float64
        assert x.dequantize().dtype is module.float32


def of_a_tree(lib: Any) -> list[Any]:
    tree = importlib.import_module(f"{lib.__name__}.utils._pytree")
    value = [1, (2, 3), {"a": None, "b": []}]
    spec = tree.tree_structure(value)
    paths = tree.tree_flatten_with_path(value)[0]
    counts = [(s.num_nodes, s.num_leaves, s.num_children, s.is_leaf()) for s in (spec, *spec.children())]
    return [
        *counts,
        spec.child(1) == spec.children()[1],
        [path[0].get(value) for path, _ in paths],
        paths[-1][0][-1].get(value[2]),
    ]


def test_structures_and_keys_of_trees(torch: Any) -> None:
    assert of_a_tree(norch) == of_a_tree(torch)


def printed(lib: Any) -> list[Any]:
    module, x = importlib.import_module(f"{lib.__name__}._tensor_str"), lib.tensor([0.123456, 2.0])
    before = module.get_printoptions()
    with module.printoptions(precision=2, sci_mode=False):
        said = [str(x), module.PRINT_OPTS.precision, module.get_printoptions()]
    assert module.get_printoptions() == before
    module.PRINT_OPTS.precision = 1
    said.append(str(x))
    lib.set_printoptions(profile="default")
    return [*said, str(x), module.get_printoptions()]


def test_options_of_printing(torch: Any) -> None:
    assert printed(norch) == printed(torch)
