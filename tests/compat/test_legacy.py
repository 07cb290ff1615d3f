"""What scripts written for PyTorch say before and between: old names, settings, sizes."""

import functools
import importlib
import inspect
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest

import norch
from norch.autograd import Variable


def test_tensors_by_the_name_of_their_type(torch):
    for name in ("FloatTensor", "DoubleTensor", "LongTensor", "IntTensor", "ByteTensor", "BoolTensor"):
        ours, theirs = getattr(norch, name), getattr(torch, name)
        for data in (([1, 0, 1],), (np.array([1, 2]),), (2, 3), (torch.Size([2, 3]),), ()):
            if isinstance(data[:1], tuple) and data[:1] and isinstance(data[0], np.ndarray) and name != "LongTensor":
                continue  # PyTorch takes no array of another dtype
            made = ours(norch.Size(data[0])) if data and isinstance(data[0], torch.Size) else ours(*data)
            expected = theirs(*data)
            assert (made.type(), tuple(made.shape)) == (f"norch.{name}", tuple(expected.shape))
            if data and isinstance(data[0], (list, np.ndarray)):
                assert made.tolist() == expected.tolist()
        assert isinstance(made, ours) and not isinstance(made, norch.HalfTensor) and not isinstance(1, ours)
        assert norch.ones(2).type(ours).type() == norch.ones(2).type(f"torch.{name}").type() == f"norch.{name}"
    assert (
        norch.ones(2).double().type(norch.Tensor).dtype
        is norch.ones(2).bool().type("torch.Tensor").dtype
        is norch.float32
    )
    assert norch.LongTensor([2**60 + 1]).item() == 2**60 + 1
    assert norch.Tensor(norch.Size([2, 3])).shape == (2, 3) and norch.Tensor([2, 3]).tolist() == [2, 3]


def test_variables():
    x = norch.ones(2)
    v = Variable(x, requires_grad=True)
    assert v.requires_grad and v.is_leaf and not x.requires_grad and v.data_ptr() == x.data_ptr()
    assert isinstance(x, Variable) and not isinstance(2, Variable) and not Variable(x).requires_grad


def test_settings():
    assert not norch.backends.mps.is_available() and not norch.backends.cudnn.is_available()
    norch.backends.cudnn.benchmark = True
    assert importlib.import_module("norch.backends.cudnn").benchmark  # as `import norch.backends.cudnn` has it
    norch.use_deterministic_algorithms(True, warn_only=True)
    assert norch.are_deterministic_algorithms_enabled()
    norch.use_deterministic_algorithms(False)
    assert not norch.are_deterministic_algorithms_enabled()


def test_precision_of_products():
    products = norch.backends.cuda.matmul
    try:
        for precision, name, allows in (("high", "tf32", True), ("highest", "none", False), ("medium", "tf32", True)):
            norch.set_float32_matmul_precision(precision)
            assert products.fp32_precision == name and products.allow_tf32 is allows
            assert norch.get_float32_matmul_precision() == ("high" if allows else "highest")
        products.fp32_precision = "ieee"
        assert not products.allow_tf32 and norch.get_float32_matmul_precision() == "highest"
        products.allow_tf32 = True
        with pytest.raises(ValueError, match="banana"):
            norch.set_float32_matmul_precision("banana")
        with pytest.raises(RuntimeError, match="'none', 'ieee' or 'tf32', not 'banana'"):
            products.fp32_precision = "banana"
        with pytest.raises(RuntimeError, match="expected a bool, not int"):
            products.allow_tf32 = 0
        with pytest.raises(AttributeError):
            products.allow_tf33 = True
        assert products.fp32_precision == "tf32"
        products.allow_tf32 = False
        assert products.fp32_precision == "none"
    finally:
        norch.set_float32_matmul_precision("highest")


def test_sizes():
    size = norch.zeros(2, 3, 4).shape
    for part in (size[1:], size[:-1] + (4,), size + size, size * 2, 2 * size, size[:]):
        assert type(part) is norch.Size
    assert size[1:].numel() == 12 and size[-1] == 4 and type(size[0]) is int and (5,) + size == (5, 2, 3, 4)
    assert size == (2, 3, 4) and hash(size) == hash((2, 3, 4)) and repr(size[:1]) == "norch.Size([2])"
    with pytest.raises(TypeError):
        _ = size + 1


def test_axis_stands_for_dim():
    x = norch.arange(6).reshape(2, 3)
    assert norch.cat((x, x), axis=1).shape == (2, 6) and norch.concatenate([x, x], axis=0).shape == (4, 3)
    assert norch.stack((x, x), axis=2).shape == (2, 3, 2) and len(x.unbind(axis=1)) == len(x.chunk(3, axis=1)) == 3
    assert x.repeat_interleave(2, axis=1).shape == (2, 6) and len(norch.tensor_split(x, 2, axis=0)) == 2


def test_float_of_python_is_float64():
    assert norch.zeros(2, dtype=float).dtype is norch.float64 and norch.ones(1).to(float).dtype is norch.float64
    assert norch.tensor([1.5], dtype=int).dtype is norch.int64 and norch.ones(1).type(bool).dtype is norch.bool


def test_new_takes_sizes_or_values():
    x = norch.ones(2, dtype=norch.int64)
    assert x.new([3, 4]).tolist() == [3, 4] and x.new(3).shape == (3,) and x.new(2, 3).dtype is norch.int64
    assert x.new(size=(3, 4)).shape == norch.empty(3, 4, memory_format=norch.contiguous_format).shape == (3, 4)
    assert x.new().shape == (0,) and x.new(x.shape).shape == (2,) and x.new(x) is not x


def test_the_factor_stands_before_what_it_multiplies():
    x, y, z = norch.full((2,), 2.0), norch.full((2,), 3.0), norch.full((2,), 4.0)
    assert x.clone().add_(-0.5, y).tolist() == norch.add(x, -0.5, y).tolist() == x.add(-0.5, y).tolist() == [0.5, 0.5]
    assert x.clone().sub_(2, y).tolist() == x.sub(2, y).tolist() == [-4, -4]
    assert x.clone().addcmul_(0.5, y, z).tolist() == norch.addcmul(x, 0.5, y, z).tolist() == [8, 8]
    assert x.clone().addcdiv_(4, y, z).tolist() == norch.addcdiv(x, 4, y, z).tolist() == [5, 5]


@pytest.mark.parametrize("name", ["add", "sub", "add_", "sub_", "addcmul", "addcdiv", "addcmul_", "addcdiv_"])
def test_a_factor_is_given_once(name):
    x, others, factor = norch.ones(2), (norch.ones(2),), "alpha"
    if name.startswith("addc"):
        others, factor = others * 2, "value"
    with pytest.raises(TypeError, match=f"{name.rstrip('_')}_?: two factors, 2 before the tensor and 3 by name"):
        getattr(x, name)(2, *others, **{factor: 3})
    assert x.tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore:size_average")
def test_size_average_and_reduce_in_place_of_reduction(torch):
    def losses(lib, given):
        x, y = lib.tensor([[0.2, 0.7], [0.4, 0.1]]), lib.tensor([[0.0, 1.0], [1.0, 0.0]])
        sign, where, f = lib.tensor([1.0, -1.0]), lib.tensor([0, 1]), lib.nn.functional
        yield from (f.mse_loss(x, y, **given), f.l1_loss(x, y, **given), f.smooth_l1_loss(x, y, **given))
        yield from (f.binary_cross_entropy(x, y, **given), f.binary_cross_entropy_with_logits(x, y, **given))
        yield from (f.nll_loss(x, where, **given), f.cross_entropy(x, where, **given), f.kl_div(x, y, **given))
        yield from (f.soft_margin_loss(x, y, **given), f.poisson_nll_loss(x, y, **given))
        yield f.margin_ranking_loss(x[0], x[1], sign, **given)
        yield f.triplet_margin_loss(x, y, y + 1, **given)
        for name in ("MSELoss", "L1Loss", "BCELoss", "BCEWithLogitsLoss", "SmoothL1Loss", "KLDivLoss"):
            yield getattr(lib.nn, name)(**given)(x, y)
        yield from (lib.nn.CrossEntropyLoss(**given)(x, where), lib.nn.NLLLoss(**given)(x, where))

    for given in ({"size_average": False}, {"reduce": False}, {"size_average": True}, {"reduce": True}):
        for ours, theirs in zip(losses(norch, given), losses(torch, given), strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)
    with pytest.raises(TypeError, match="size"):
        norch.nn.functional.huber_loss(norch.ones(1), norch.ones(1), size_average=False)
    with pytest.raises(TypeError, match="mse_loss: size_average must be True or False, not str"):
        norch.nn.functional.mse_loss(norch.ones(1), norch.ones(1), "sum")


LOSSES = [name for name in dir(norch.nn) if name.endswith("Loss")]


@pytest.mark.filterwarnings("ignore:size_average")
@pytest.mark.parametrize("name", LOSSES)
def test_losses_take_their_options_by_position(torch, name):
    """In PyTorch's order, in which size_average and reduce come before reduction."""
    ours, theirs = getattr(norch.nn, name), getattr(torch.nn, name)
    parameters = [p for p in inspect.signature(theirs).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    if parameters[0:1] and parameters[0].default is parameters[0].empty:
        return  # sizes of a layer
    options = {"size_average": (None, True, False), "reduce": (None, True, False), "reduction": ("mean", "sum")}
    for chosen in itertools.product(*options.values()):
        values = [dict(zip(options, chosen)).get(p.name, p.default) for p in parameters]
        a, b = ours(*values), theirs(*values)
        assert a.reduction == b.reduction
        assert all(getattr(a, p.name) == getattr(b, p.name) for p in parameters if hasattr(b, p.name))
    for given, more in (
        ([p.default for p in parameters] + [None], {}),
        ([None], {p.name: False for p in parameters[:1]}),
    ):
        with pytest.raises(TypeError):
            ours(*given, **more)


# Parameters that norch has under other names, or leaves out.
OTHERS = {"multi_head_attention_forward", "orthogonal_", "eye"}


@pytest.mark.parametrize("space", ["nn.functional", "nn.init"])
def test_functions_have_the_parameters_of_pytorch(torch, space):
    """Names, order and defaults of those functions whose signature PyTorch shows."""
    wrong = []
    ours, theirs = (functools.reduce(getattr, space.split("."), m) for m in (norch, torch))
    for name in dir(theirs):
        made, wanted = getattr(ours, name, None), getattr(theirs, name)
        if name[0] == "_" or made is None or not inspect.isfunction(wanted) or name in OTHERS:
            continue
        expected = inspect.signature(wanted).parameters.values()
        given = inspect.signature(made).parameters.values()
        if any(p.kind is p.VAR_POSITIONAL for p in [*expected, *given]):
            continue
        if [(p.name, p.kind, repr(p.default)) for p in given] != [
            (p.name, p.kind, "inf" if p.default == math.inf else repr(p.default)) for p in expected
        ] and [(p.name, p.kind, p.default) for p in given] != [(p.name, p.kind, p.default) for p in expected]:
            wrong.append(f"{name}{inspect.signature(made)}, not {inspect.signature(wanted)}")
    assert not wrong, "\n".join(wrong)


def test_weights_of_elements(torch):
    x, y, w = ([0.2, 0.7, 4.0], [0.5, 1.0, 0.0], [1.0, 3.0, 0.5])
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        for reduction in ("mean", "sum", "none"):
            results = []
            for m in (norch, torch):
                a, b, c = (m.tensor(each, requires_grad=True) for each in (x, y, w))
                loss = getattr(m.nn.functional, name)(a, b, weight=c, reduction=reduction)
                loss.sum().backward()
                results.append([loss.tolist(), a.grad.tolist(), b.grad.tolist(), c.grad.tolist()])
            for one, other in zip(*results):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
    for name in ("mse_loss", "l1_loss"):
        with pytest.raises(ValueError, match=f"{name}: weight has shape"):
            getattr(norch.nn.functional, name)(norch.ones(2), norch.ones(2), weight=norch.ones(1))


def test_prefixes_of_state_dicts(torch):
    for m in (norch, torch):
        states = {f"module.{key}": value for key, value in m.nn.Linear(2, 2).state_dict().items()} | {"modulus": 1}
        m.nn.modules.utils.consume_prefix_in_state_dict_if_present(states, "module.")
        assert list(states) == ["modulus", "weight", "bias"]


def test_normalize_writes_into_out(torch):
    x, out = norch.tensor([[3.0, 4.0]]), norch.zeros(1, 2)
    assert (
        norch.nn.functional.normalize(x, out=out) is out and out.tolist() == norch.nn.functional.normalize(x).tolist()
    )


def test_a_device_is_a_default_for_a_while():
    norch.set_default_device("cpu")
    with norch.device("cuda") as outer, norch.device("cpu") as inner:
        assert norch.get_default_device() == inner and norch.ones(1).device == inner and outer.type == "cuda"
    assert norch.get_default_device() == norch.device("cpu")
    assert not norch.float32.is_complex


def test_names_for_older_scripts_are_imported_when_they_are_asked_for():
    code = "import sys, norch; print([m for m in sys.modules if m.startswith(('norch.compat', 'norch.backends'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    code = "import norch.backends.cudnn as cudnn, norch; assert cudnn is norch.backends.cudnn"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"])
def test_backends_are_imported_from_like_modules(name: str) -> None:
    code = f"""
import norch
norch.as_torch()
import torch.backends.{name} as backend, torch.backends
assert backend is torch.backends.{name} and backend.__name__ == "norch.backends.{name}"
backend.__path__ = []  # as after an import of a module below it
try:
    from torch.backends.{name} import nothing
except ImportError as error:
    assert "nothing" in str(error)
else:
    raise AssertionError
if "{name}" == "cudnn":
    from torch.backends.cudnn import rnn
    import torch.backends.cudnn.rnn as same
    assert rnn is same
"""
    subprocess.run([sys.executable, "-c", code], check=True)
