"""PyTorch's public names: each is in norch, or in the list of what is left out, with its reason.

The list is norch/compat/left_out.txt. Runs where PyTorch is installed. What issue 3 promised may be in no list.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from typing import Any

import pytest
from conftest import is_older

import norch
from norch import nn, optim
from norch._package import left_out as _left_out
from norch.compat.placeholders import is_placeholder
from norch.nn import functional

CREATION = """
arange linspace logspace eye full empty zeros ones zeros_like ones_like full_like empty_like tril triu tril_indices
triu_indices meshgrid from_numpy normal randint randperm bernoulli multinomial rand randn rand_like randn_like
randint_like Generator manual_seed tensor as_tensor
"""
POINTWISE = """
expm1 log1p log2 log10 exp2 rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc
erfinv lgamma digamma sigmoid logit relu celu selu sign sgn signbit floor ceil round trunc frac isnan isinf isfinite
nan_to_num logical_not bitwise_not deg2rad rad2deg sinc abs neg exp log sqrt true_divide floor_divide div add sub mul
remainder fmod pow atan2 hypot maximum minimum fmax fmin copysign logaddexp xlogy bitwise_and bitwise_or bitwise_xor
bitwise_left_shift bitwise_right_shift eq ne lt le gt ge logical_and logical_or logical_xor isclose where clamp lerp
addcmul addcdiv threshold
"""
REDUCTIONS = """
sum nansum mean nanmean prod max min amax amin aminmax argmax argmin var std var_mean norm logsumexp all any
count_nonzero median quantile cumsum cumprod cummax cummin logcumsumexp diff softmax log_softmax bincount sort argsort
topk unique searchsorted bucketize
"""
SHAPES = """
reshape flatten unflatten ravel permute transpose swapaxes movedim broadcast_to broadcast_tensors squeeze unsqueeze cat
stack hstack vstack dstack split chunk tensor_split unbind tile repeat_interleave roll flip fliplr flipud rot90 narrow
select diagonal diag diag_embed trace as_strided atleast_1d atleast_2d atleast_3d clone
"""
INDEXING = """
gather scatter scatter_add scatter_reduce index_select index_add index_copy index_fill masked_fill masked_scatter
masked_select take take_along_dim nonzero argwhere
"""
PRODUCTS = "matmul mm bmm mv dot vdot inner outer addmm addmv baddbmm tensordot kron cross chain_matmul einsum"
DTYPES = (
    "int8 int16 float16 bfloat16 bool uint8 int32 int64 float32 float64 finfo iinfo promote_types result_type can_cast"
)
PROMISED = {
    "torch": " ".join((CREATION, POINTWISE, REDUCTIONS, SHAPES, INDEXING, PRODUCTS, DTYPES)),
    "Tensor": """
        new_zeros new_ones new_full new_empty new_tensor uniform_ normal_ random_ bernoulli_ view expand expand_as
        repeat unfold contiguous copy_ put_ fill_ zero_ clamp_ masked_fill_ masked_scatter_ index_fill_ index_copy_
        index_add_ index_put_ scatter_ scatter_add_ scatter_reduce_ exp_ add_ sub_ mul_ div_ pow_ sqrt_ lerp_ addcmul_
        addcdiv_ clip_ sigmoid_ round_ type_as
    """,
    "functional": """
        one_hot pad softplus relu relu6 leaky_relu elu selu celu gelu silu mish hardtanh hardsigmoid hardswish softsign
        tanhshrink threshold dropout softmax log_softmax sigmoid tanh bilinear linear
    """,
}
ONLY_FUNCTIONS = set(
    f"{CREATION} broadcast_tensors cat stack hstack vstack dstack atleast_1d atleast_2d atleast_3d".split()
)
ONLY_FUNCTIONS |= set(
    "celu selu threshold where var_mean norm bucketize searchsorted tensordot chain_matmul einsum".split()
)
MODULES = (
    *("nn", "optim", "nn.init", "nn.utils", "nn.utils.rnn", "optim.lr_scheduler", "utils.data", "autograd"),
    *("amp", "autograd.functional", "autograd.graph", "func", "cuda", "linalg", "nn.parameter", "distributions"),
    *("optim.swa_utils", "nn.utils.parametrize", "nn.utils.parametrizations", "nn.parallel"),
    *("profiler", "special", "sparse"),
)
HERE: dict[str, Any] = {"torch": norch, "Tensor": norch.Tensor, "functional": functional}
HERE |= {"nn.Module": nn.Module, "optim.Optimizer": optim.Optimizer}
HERE |= {name: importlib.import_module(f"norch.{name}") for name in MODULES}
LISTED = {
    where: {name: why for why, names in _left_out.table().items() for name in names.get(where, ())} for where in HERE
}


@pytest.fixture
def there(torch: Any) -> dict[str, Any]:
    if is_older(torch):
        pytest.skip("left_out.txt lists the names of a newer PyTorch")
    there = {"torch": torch, "Tensor": torch.Tensor, "functional": torch.nn.functional}
    there |= {"nn.Module": torch.nn.Module, "optim.Optimizer": torch.optim.Optimizer}
    return there | {name: importlib.import_module(f"torch.{name}") for name in MODULES}


def public(thing: Any) -> list[str]:
    """Names of its own: no underscore, no module of somebody else's."""
    told = getattr(thing, "__all__", None) if thing.__name__[6:] in MODULES[2:] else None  # that of torch is not all
    names = [name for name in told or dir(thing) if name[0] != "_"]
    return [name for name in names if not is_foreign(getattr(thing, name, None))]


strided = norch.strided  # a placeholder


def is_module(value: Any) -> bool:
    return isinstance(value, types.ModuleType)


def is_foreign(value: Any) -> bool:
    return is_module(value) and not value.__name__.startswith("torch.")


@pytest.mark.parametrize("where", HERE)
def test_every_name_is_here_or_left_out_with_a_reason(there: dict[str, Any], where: str) -> None:
    thing = there[where]
    unknown = [name for name in public(thing) if not hasattr(HERE[where], name) and name not in LISTED[where]]
    # which modules of its own PyTorch has loaded by now depends on what ran before
    unknown = [name for name in unknown if not isinstance(getattr(thing, name), types.ModuleType)]
    assert not unknown, f"{where}: neither in norch nor in norch/compat/left_out.txt: {' '.join(unknown)}"


@pytest.mark.parametrize("where", HERE)
def test_the_list_holds_nothing_else(there: dict[str, Any], where: str) -> None:
    names = {*public(there[where]), *(n for n in LISTED[where] if is_module(getattr(there[where], n, None)))}
    assert not set(LISTED[where]) - names, "no names of this PyTorch"
    both = [n for n in LISTED[where] if not is_placeholder(getattr(HERE[where], n, strided))]
    assert not both, f"{where}: left out, and there: {' '.join(both)}"


@pytest.mark.parametrize("where", HERE)
def test_names_are_listed_once(where: str) -> None:
    listed = [name for names in _left_out.table().values() for name in names.get(where, ())]
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("where", PROMISED)
def test_what_was_promised_is_there(where: str) -> None:
    promised = set(PROMISED[where].split())
    lacking = sorted(name for name in promised if not hasattr(HERE[where], name))
    if where == "Tensor":
        functions = set(PROMISED["torch"].split()) - ONLY_FUNCTIONS - set(DTYPES.split())
        lacking += sorted(name for name in functions if not hasattr(norch.Tensor, name))
    assert not lacking, f"{where} lacks {' '.join(lacking)}"
    assert not promised & set(LISTED[where])


# ---- what a user sees -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [where for where in HERE if is_module(HERE[where])])
def test_each_module_says_why_a_name_is_left_out(where: str) -> None:
    for name in ("nonsense", *(name for name in LISTED[where] if not hasattr(HERE[where], name))):
        with pytest.raises(AttributeError, match=f"(has no attribute|leaves out) '{name}'"):
            getattr(HERE[where], name)


def test_rare_parts_of_nn_are_imported_when_they_are_read() -> None:
    code = """
import sys, norch.nn
def loaded(): return {name[16:] for name in sys.modules if name.startswith("norch.nn.extras.")}
assert loaded() == set(), loaded()
norch.nn.CTCLoss, norch.nn.functional.grid_sample, norch.nn.utils.weight_norm
assert loaded() == {"ctc", "grid_sample", "hooked_norms"}, loaded()
from norch.nn import *
assert EmbeddingBag is norch.nn.EmbeddingBag and "EmbeddingBag" in vars(norch.nn)
import norch.optim
assert {"ASGD", "LBFGS", "Muon"} <= vars(norch.optim).keys()  # programs go through them
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_messages() -> None:
    for module in (norch, functional):
        with pytest.raises(AttributeError, match=f"'{module.__name__}' has no attribute 'nonsense'$"):
            _ = module.nonsense
    with pytest.raises(
        AttributeError, match="'norch' leaves out 'slice_inverse' of PyTorch: copies of what are views: "
    ):
        _ = norch.slice_inverse
    with pytest.raises(AttributeError, match=r"norch\.Tensor leaves out 'eig' of PyTorch: .*numpy\.linalg.*"):
        norch.ones(2, 2).eig()
    with pytest.raises(
        AttributeError, match="'norch.nn' leaves out 'LinearCrossEntropyLoss' of PyTorch: further layers.*"
    ):
        _ = nn.LinearCrossEntropyLoss
    with pytest.raises(AttributeError, match="'norch.optim' leaves out 'swap_in_optimizer_params_and_state'"):
        _ = optim.swap_in_optimizer_params_and_state
    with pytest.raises(ImportError):
        exec("from norch import slice_inverse")
    graph = HERE["autograd.graph"]
    for module, name in (
        *((norch.func, "debug_unwrap"), (graph, "allow_mutation_on_saved_tensors")),
        (norch.cuda, "can_device_access_peer"),
        *((norch.linalg, "ldl_solve"), (norch.autograd, "enforce_grad_layout_policy")),
    ):
        with pytest.raises(AttributeError, match=f"'{module.__name__}' leaves out '{name}' of PyTorch: .*"):
            getattr(module, name)
    assert not hasattr(norch.Tensor, "eig") and "eig" not in dir(norch.ones(1))
    assert norch.exp_ is norch.exp_ and callable(functional.relu_)
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'nonsense'"):
        _ = norch.ones(1).nonsense
