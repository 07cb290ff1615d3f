"""Arguments of a wrong type or value: a Python exception of a sensible kind, whose message says what is wrong."""

import inspect
import re
import warnings

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import nn, optim
from norch.nn import functional as F


def _nested_in_itself():
    data = []
    data.append(data)
    return norch.tensor(data)


def _put(into, index, value):
    into[index] = value


def _set(thing, name, value):
    setattr(thing, name, value)


norch.set_default_device(DEVICE)  # which the tests are run for, and have while they run
x, z = norch.rand(2, 3), norch.zeros(3)
column = norch.zeros(1, 1, device="cpu").expand(2**22, 1)
wide = column.expand(2**22, 2**22)
p = nn.Parameter(norch.ones(3))
norch.set_default_device(None)

CALLS = [
    (norch.BoundsError, "norm: axis 5 is out of range for 2 dim", lambda: norch.ones(0, 3).norm(-2, 5)),
    (TypeError, "norm: expected dim to be an integer", lambda: norch.ones(0, 3).norm(-2, "a")),
    (norch.ArgumentError, "norm: there is no norm of order -2", lambda: norch.ones(0, 3).norm(-2, 0)),
    (norch.ShapeError, "affine_grid: theta of shape (3, 2, 5) for", lambda: F.affine_grid(norch.ones(3, 2, 5), ())),
    (TypeError, "affine_grid: size must be an integer", lambda: F.affine_grid(norch.ones(1, 2, 3), (1, 1, 2, "a"))),
    (TypeError, "logit: eps must be a number, not str", lambda: norch.logit(x, "a")),
    (TypeError, "normal: std must be a number, not str", lambda: norch.normal(x, "a")),
    (TypeError, "normal: mean must be a number, not NoneType", lambda: norch.normal(None, x)),
    (TypeError, "gumbel_softmax: tau must be a number, not tuple", lambda: F.gumbel_softmax(x, (2,))),
    (TypeError, "gumbel_softmax: expected an integer, not str", lambda: F.gumbel_softmax(x, dim="a")),
    (norch.ArgumentError, "copy_: an expanded tensor (2,)", lambda: z[:1].expand(2).copy_(z[:2])),
    (norch.ArgumentError, "index_put: an expanded tensor (2,)", lambda: _put(z[:1].expand(2), z[:2] >= 0, z[:2])),
    (TypeError, "Embedding: _weight: expected a tensor, not int", lambda: nn.Embedding(2, 3, _weight=3)),
    (TypeError, "EmbeddingBag: _weight: expected a tensor, not int", lambda: nn.EmbeddingBag(2, 3, _weight=3)),
    (TypeError, "from_pretrained: expected a tensor, not int", lambda: nn.Embedding.from_pretrained(3)),
    (TypeError, "gather: the index must be a tensor, not NoneType", lambda: x.gather(0, None)),
    (TypeError, "clone: expected a tensor, not int", lambda: norch.clone(7)),
    (TypeError, "reshape: expected a tensor, not int", lambda: norch.reshape(7, (1,))),
    (TypeError, "flatten: expected a tensor, not int", lambda: norch.flatten(7)),
    (TypeError, "sum: expected dim to be an integer or a tuple of integers, not str", lambda: x.sum("a")),
    (TypeError, "add: expected a tensor or a number, not str", lambda: x.add(x, alpha="a")),
    (norch.ShapeError, "add_: sizes 3 and 2 at dimension 0", lambda: z.add_(norch.ones(2))),
    (norch.DTypeError, "add_: a result of dtype float32", lambda: norch.ones(3, dtype=norch.int64).add_(z)),
    (norch.ShapeError, "17 dimensions; at most 16", lambda: norch.zeros((1,) * 17)),
    (TypeError, "does one hold itself", _nested_in_itself),
    (TypeError, "full: expected a number, not str", lambda: norch.full((2,), "a")),
    (norch.ArgumentError, "nan does not fit int32", lambda: norch.tensor([float("nan")], dtype=norch.int32)),
    (norch.DeviceError, "-1 is no number of a device", lambda: norch.device("cuda", -1)),
    (TypeError, "in: a tensor holds numbers, not NoneType", lambda: None in z),
    (TypeError, "data: expected a tensor, not NoneType", lambda: _set(z, "data", None)),
    (TypeError, "grad: a gradient is a tensor or None, not int", lambda: _set(p, "grad", 3)),
    (norch.Error, "grad: a gradient of norch.float32 and shape (2,)", lambda: _set(p, "grad", norch.ones(2))),
    (norch.Error, "norch.float64", lambda: _set(p, "grad", norch.ones(3, dtype=norch.float64))),
    (norch.Error, "its own gradient", lambda: _set(p, "grad", p)),
    (TypeError, "grad: expected a tensor, not NoneType", lambda: norch.autograd.grad(None, None)),
    (TypeError, "grad: expected a tensor, not NoneType", lambda: norch.autograd.grad(p.sum(), None)),
    (TypeError, "backward: expected a tensor, not NoneType", lambda: norch.autograd.backward(None)),
    (TypeError, "backward: a gradient must be a tensor, not int", lambda: p.sum().backward(3)),
    (TypeError, "register_hook: expected a function", lambda: p.register_hook(None)),
    (TypeError, "no_grad: decorates functions, not int", lambda: norch.no_grad(3)),
    (TypeError, "cross_entropy: expected a tensor, not NoneType", lambda: nn.CrossEntropyLoss()(x, None)),
    (TypeError, "cross_entropy: expected a tensor, not NoneType", lambda: nn.CrossEntropyLoss()(None, x)),
    (TypeError, "linear: expected a tensor, not NoneType", lambda: F.linear(x, None)),
    (norch.ShapeError, "linear: the bias needs shape (2,)", lambda: F.linear(x, x, norch.ones(5, 2, 2))),
    (ValueError, "between 0 and 1, but got 'a'", lambda: nn.Dropout("a")),
    (TypeError, "dropout: p must be a number, not NoneType", lambda: F.dropout(x, None)),
    (ValueError, "invalid lr value: 'a'", lambda: optim.SGD([p], lr="a")),
    (ValueError, "invalid momentum value: None", lambda: optim.SGD([p], lr=1, momentum=None)),
    (ValueError, "betas must be two numbers, not 3", lambda: optim.Adam([p], betas=3)),
    (ValueError, "invalid beta parameter at index 1", lambda: optim.Adam([p], betas=(0.5, "a"))),
    (ValueError, "expected a result of state_dict()", lambda: optim.SGD([p], lr=1).load_state_dict({})),
    (TypeError, "StepLR: expected an optimizer", lambda: optim.lr_scheduler.StepLR(None, 1)),
    # the numbers that were given
    (IndexError, "an index beyond 64 bits is out of range for dimension 0 of size 3", lambda: z[2**70]),
    (IndexError, "unsqueeze: dimension 9 is out of range [-2, 1]", lambda: z.unsqueeze(9)),
    (norch.ShapeError, "zeros: shape (1152921504606846976,) needs more than 2**63", lambda: norch.zeros(2**60)),
    (TypeError, "rand: expected an integer, not str", lambda: norch.rand("a")),
    (TypeError, "view: expected an integer, not str", lambda: x.view("a")),
    (OverflowError, f"randint: {2**70} does not fit 64 bits", lambda: norch.randint(0, 2**70, (2,))),
    (TypeError, "randint: the size is a sequence, as in randint(0, 10, (3,)), not 10", lambda: norch.randint(0, 10)),
    # the operation that was called
    (norch.ShapeError, "zeros: negative size -1", lambda: norch.zeros(-1)),
    (norch.ShapeError, "ones: negative size -1", lambda: norch.ones(-1)),
    (norch.ShapeError, "eye: negative size -1", lambda: norch.eye(-1)),
    (TypeError, "Linear: expected an integer, not str", lambda: nn.Linear("a", 2)),
    (norch.ShapeError, "Linear: negative size -1", lambda: nn.Linear(-1, 2)),
    (norch.ShapeError, "Embedding: negative size -1", lambda: nn.Embedding(-1, 2)),
    (TypeError, "mse_loss: expected a tensor or a number, not NoneType", lambda: nn.MSELoss()(x, None)),
    (TypeError, "clamp: expected a tensor or a number, not str", lambda: norch.clamp(x, "a")),
    (TypeError, "clamp: expected a tensor or a number, not str", lambda: x.clamp(max="a")),
    (norch.DTypeError, "softmin: 3 is no dtype", lambda: F.softmin(x, -1, dtype=3)),
    (TypeError, "takes 2 positional arguments", lambda: x.mul_(1, 2)),
    (MemoryError, "zeros: out of memory", lambda: norch.zeros(2**45, device="cpu")),
    *(
        (MemoryError, f"{name}: out of memory for {2**46} bytes on cpu", call)
        for name, call in (
            ("matmul", lambda: column @ column.mT),
            ("add", lambda: wide + wide),
            ("exp", lambda: wide.exp()),
            ("clone", lambda: wide.clone()),
            ("cat", lambda: norch.cat([wide[: 2**21], wide[: 2**21]])),
            ("full_like", lambda: norch.full_like(wide, 1.0)),
            ("arange", lambda: norch.arange(2**43, device="cpu")),
            ("linspace", lambda: norch.linspace(0, 1, 2**44, device="cpu")),
            ("multinomial", lambda: norch.multinomial(norch.ones(3, device="cpu"), 2**43, replacement=True)),
            ("vander", lambda: norch.vander(norch.ones(4, device="cpu"), 2**42)),
            ("bincount", lambda: norch.bincount(norch.tensor([2**43 - 1], device="cpu"))),
        )
    ),
    # sizes are looked at before the work begins
    (MemoryError, "combinations: out of memory", lambda: norch.combinations(norch.arange(40, device="cpu"), 10)),
    (norch.ShapeError, "tril_indices: shape (2, ", lambda: norch.tril_indices(2**31, 2**31)),
    (norch.ArgumentError, "repeat_interleave: the repeats add up", lambda: norch.tensor([2**62]).repeat_interleave()),
    (MemoryError, "out of memory", lambda: norch.tensor([2**43], device="cpu").repeat_interleave()),
    (norch.ArgumentError, f"mvlgamma: p must be at most 65536, got {2**40}", lambda: norch.mvlgamma(z + 1e13, 2**40)),
    *(
        (norch.ArgumentError, f"num_layers must be at most 65536, got {2**40}", call)
        for call in (
            lambda: nn.LSTM(2, 2, 2**40),
            lambda: nn.Transformer(8, 2, 2**40),
            lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 2**40),
        )
    ),
    (TypeError, "permute: expected an integer, not NoneType", lambda: norch.permute(x, None)),
    (TypeError, "view: expected an integer, not float", lambda: x.view(1.5)),
    (TypeError, "rand: expected an integer, not NoneType", lambda: norch.rand(None)),
    (TypeError, "tile: count must be an integer, not float", lambda: x.tile(1.5)),
    (
        TypeError,
        "cumsum_: dtype norch.float64 for a tensor of norch.float32",
        lambda: x.cumsum_(0, dtype=norch.float64),
    ),
    (TypeError, "glu: dimension must be an integer, not str", lambda: F.glu(x, "a")),
    (TypeError, "hsplit: sections must be an integer, not float", lambda: x.hsplit(1.5)),
    (TypeError, "unflatten: 'NoneType' object is not iterable", lambda: x.unflatten(0, None)),
    (TypeError, "huber_loss: delta must be a number, not str", lambda: F.huber_loss(x, x, delta="a")),
    (
        TypeError,
        "cross_entropy: ignore_index must be an integer",
        lambda: F.cross_entropy(x, x[:, 0].long(), ignore_index="a"),
    ),
    (TypeError, "var: expected a number, not str", lambda: x.var(correction="a")),
    (TypeError, "sum: expected dim to be an integer or a tuple of integers, not str", lambda: x.sum(("a", 0))),
    (TypeError, "add: expected a tensor or a number, not str", lambda: x.add(x, alpha="a")),
    # what is no tensor
    *(
        (TypeError, f"{name}: expected a tensor, not int", lambda name=name: getattr(nn.init, name)(3))
        for name in ("uniform_", "normal_", "trunc_normal_", "eye_", "zeros_", "ones_")
        + ("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_")
    ),
    (TypeError, "constant_: expected a tensor, not int", lambda: nn.init.constant_(3, 1)),
    (TypeError, "normal_: mean must be a number, not str", lambda: nn.init.normal_(norch.zeros(3), "a")),
    (TypeError, "t: expected a tensor, not int", lambda: norch.t(0)),
    (TypeError, "type_as: expected a tensor, not int", lambda: x.type_as(2)),
    (TypeError, "log_softmax: expected a tensor, not tuple", lambda: F.log_softmax((2, 3))),
    (TypeError, "group_norm: num_groups must be an integer, not list", lambda: F.group_norm(x, [1.0])),
    (TypeError, "threshold_: expected a tensor, not int", lambda: F.threshold_(3, 1, 1)),
    (TypeError, "multi_margin_loss: expected a tensor, not NoneType", lambda: F.multi_margin_loss(x, None)),
    (TypeError, "margin_ranking_loss: expected a tensor", lambda: F.margin_ranking_loss(x, None, x)),
    (TypeError, "cosine_embedding_loss: expected a tensor", lambda: F.cosine_embedding_loss(x, x, None)),
    (TypeError, "hinge_embedding_loss: expected a tensor", lambda: F.hinge_embedding_loss(x, None)),
    (TypeError, "soft_margin_loss: unsupported operand", lambda: F.soft_margin_loss(None, x)),
    (TypeError, "triplet_margin_loss: expected a tensor", lambda: F.triplet_margin_loss(None, x, x)),
    (TypeError, "gaussian_nll_loss: expected a tensor", lambda: F.gaussian_nll_loss(None, x, x)),
    (TypeError, "gaussian_nll_loss: expected a tensor", lambda: F.gaussian_nll_loss(x, x, None)),
    (TypeError, "functional_call: expected a module, not Tensor", lambda: norch.func.functional_call(z, {})),
    (TypeError, "round: decimals must be an integer, not str", lambda: norch.round(x, decimals="a")),
    (TypeError, "iterable of tensors or dicts, got NoneType", lambda: optim.SGD(None, lr=0.1)),
    (TypeError, "pad: expected a sequence of sizes, not int", lambda: F.pad(x, 3)),
    (TypeError, "rot90: expected two axes, not int", lambda: norch.rot90(x, 1, 3)),
    (TypeError, "one_hot: num_classes must be an integer, not tuple", lambda: F.one_hot(x.long(), (1,))),
    (TypeError, "apply: expected a function of a module, not int", lambda: nn.ReLU().apply(3)),
    (norch.ShapeError, "cumulative_trapezoid: the places", lambda: norch.cumulative_trapezoid(x, z[0])),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_what_is_wrong_is_said(number):
    error, message, call = CALLS[number]
    before = z.tolist(), p.tolist()
    with pytest.raises(error, match=re.escape(message)):
        call()
    assert (z.tolist(), p.tolist()) == before and p.grad is None


FLAGS = (
    *("keepdim", "requires_grad", "descending", "stable", "sorted", "largest", "right", "unbiased", "return_inverse"),
    *("return_counts", "accumulate", "as_tuple", "include_self", "training", "increasing", "with_replacement"),
)


def test_flags_are_true_or_false():
    square, at = norch.tensor([[1.0, 2.0], [3.0, 4.0]]), norch.tensor([0, 1])
    first = {"scalar_tensor": (1.0,), "tensor": ([1.0],), "asarray": ([1.0],), "as_tensor": ([1.0],), "full": ((2,), 1)}
    first |= {
        "eye": (2,),
        "linspace": (0, 1, 3),
        "logspace": (0, 1, 3),
        "arange": (3.0,),
        "empty_strided": ((2,), (1,)),
    }
    first |= {"vander": (square[0],), "combinations": (square[0],), "topk": (square, 1), "quantile": (square, 0.5)}
    first |= {"bucketize": (square, square[0]), "searchsorted": (square[0], square), "nanquantile": (square, 0.5)}
    first |= {"put": (square, at, square[0]), "index_put": (square, (at,), square), "full_like": (square, 1.0)}
    first |= {"scatter_reduce": (square, 0, at.view(1, 2), square, "sum"), "randint": (3, (2,)), "randperm": (3,)}
    first |= dict.fromkeys(("zeros", "ones", "empty", "rand", "randn"), (2,))
    first |= {"index_reduce": (square, 0, at, square, "prod"), "normal": (square, square), "randint_like": (square, 3)}
    first |= {"lobpcg": (norch.eye(4),)}
    first |= dict.fromkeys(("max", "min", "renorm", "all", "any", "logsumexp"), (square, 0))
    seen = 0
    for place in (norch, norch.Tensor, F, norch.linalg):
        for name in dir(place):
            function = getattr(place, name, None)
            if name.startswith("_") or not inspect.isfunction(function):
                continue
            for flag in FLAGS:
                if flag not in inspect.signature(function).parameters or name in (
                    "batch_norm",
                    "multilabel_margin_loss",
                ):
                    continue
                for wrong in ("a", 1, norch.tensor(True)):
                    seen += 1
                    with pytest.raises(TypeError, match=rf"{name}|{flag}"):
                        function(*first.get(name, (square,)), **{flag: wrong})
    assert seen > 200


def test_what_is_no_number_nor_flag_is_named():
    x, array = norch.ones(3), np.ones(3)
    utils, inplace = nn.utils, "inplace must be True or False, not ndarray"
    image = norch.ones(2, 3, 4)
    for call, about in (
        (
            lambda: F.instance_norm(image, 0.5),
            "instance_norm: running_mean: expected a tensor, not float",
        ),
        (lambda: utils.clip_grad_norm_(["a"], 1), "clip_grad_norm_: expected a tensor, not str"),
        (lambda: utils.clip_grad_norm_([x], "a"), "clip_grad_norm_: max_norm must be a number, not str"),
        (lambda: utils.clip_grad_value_(["a"], 1), "clip_grad_value_: expected a tensor, not str"),
        (lambda: utils.get_total_norm(["a"]), "get_total_norm: expected a tensor, not str"),
        (lambda: utils.clip_grads_with_norm_([x], 1, 1.0), "clip_grads_with_norm_: expected a tensor, not float"),
        (lambda: F.dropout("x"), "dropout: expected a tensor, not str"),
        (lambda: F.dropout("x", training=False), "dropout: expected a tensor, not str"),
        (lambda: F.alpha_dropout("x"), "alpha_dropout: expected a tensor, not str"),
        (lambda: F.dropout(x, 0.5, True, array), f"dropout: {inplace}"),
        (lambda: F.relu(x, array), f"relu: {inplace}"),
        (lambda: F.relu6(x, array), f"relu6: {inplace}"),
        (lambda: F.celu(x, 1.0, array), f"celu: {inplace}"),
        (lambda: F.selu(x, array), f"selu: {inplace}"),
        (lambda: F.threshold(x, 0, 1, norch.ones(2)), "threshold: inplace must be True or False, not Tensor"),
        (lambda: F.mse_loss(0, 1), "mse_loss: int64 input"),
        (lambda: x.bernoulli_(object()), "bernoulli_: p must be a number, not object"),
        (lambda: x.bernoulli(object()), "bernoulli: p must be a number, not object"),
        (lambda: x.exponential_("mean"), "exponential_: lambd must be a number, not str"),
        (lambda: x.cauchy_("a"), "cauchy_: median must be a number, not str"),
        (lambda: x.normal_(0, []), "normal_: std must be a number, not list"),
        (lambda: x.log_normal_("a"), "log_normal_: mean must be a number, not str"),
        (lambda: x.uniform_("a"), "uniform_: from_ must be a number, not str"),
        (lambda: x.geometric_("a"), "geometric_: p must be a number, not str"),
        (lambda: F.rrelu(x, "a"), "rrelu: lower must be a number, not str"),
        (lambda: F.hardtanh(x, True, []), "hardtanh: max_val must be a number, not list"),
        (lambda: F.softshrink(x, "a"), "softshrink: lambd must be a number, not str"),
        (lambda: F.threshold(x, "a", 1), "threshold: threshold must be a number, not str"),
        (lambda: F.celu(x, "a"), "celu: alpha must be a number, not str"),
    ):
        with pytest.raises(TypeError, match=f"^{about}"):
            call()
    assert x.tolist() == [1, 1, 1]
    assert F.relu(-x, 1).tolist() == [0, 0, 0] and x.uniform_(np.float32(2), norch.tensor(3.0)).min() >= 2


def test_numbers_beyond_64_bits_are_named():
    x, b = norch.ones(2), 2**70
    for call, name in (
        *((lambda: x + b, "add"), (lambda: b - x, "sub"), (lambda: x < b, "lt"), (lambda: x**b, "pow")),
        *((lambda: x @ b, "matmul"), (lambda: x.add_(b), "add_"), (lambda: x.copy_(b), "copy_")),
        *(
            (lambda: x.cumsum(b), "cumsum"),
            (lambda: x.cumsum_(b), "cumsum_"),
            (lambda: x.cummax(b), "cummax"),
        ),
        *(
            (lambda: x.sum(b), "sum"),
            (lambda: norch.full((2,), b), "full"),
            (lambda: norch.ones(b), "ones"),
        ),
        *((lambda: norch.full_like(x, -b), "full_like"), (lambda: norch.arange(b), "arange")),
    ):
        with pytest.raises(OverflowError, match=f"^{name}: -?1180591620717411303424 does not fit 64 bits$"):
            call()
    assert x.tolist() == [1, 1]


OTHERS = ("manual_seed", "seed", "save", "load", "fork_rng")  # and set_...: what they change outlives the test


@pytest.mark.parametrize("place", [norch, F, norch.Tensor, nn.init, norch.linalg], ids=lambda place: place.__name__)
def test_what_takes_tensors_says_what_it_does_not_take(place):
    for name in getattr(place, "__all__", dir(place)):
        function = getattr(place, name, None)
        if not inspect.isfunction(function) or name.startswith(("_", "set_", *OTHERS)):
            continue
        required = [p for p in inspect.signature(function).parameters.values() if p.kind < 2 and p.default is p.empty]
        for position in range(place is norch.Tensor, len(required)):
            for stranger in (3, None, "a", (2, 3)):
                copies = [x.clone() for _ in required]
                copies[position] = stranger
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        function(*copies)
                except (norch.Error, TypeError, ValueError, NotImplementedError, OverflowError):
                    pass
                except Exception as error:
                    pytest.fail(f"{name} with {stranger!r} at {position}: {error!r}")
