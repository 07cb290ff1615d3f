"""Every public callable gives for complex arguments what PyTorch gives, or refuses: none computes on half the data."""

import inspect
import warnings

import numpy as np
import pytest
from conftest import DEVICE, torch_or_skip

import norch

torch = torch_or_skip()
on_cpu = pytest.mark.skipif(DEVICE != "cpu", reason="kernels of the CPU")
rng = np.random.default_rng(0)


def complex_array(*shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


X, Y, V, W = complex_array(3, 3), complex_array(3, 3), complex_array(3), complex_array(2, 3, 3, 3)
REAL, INDEX = rng.standard_normal((3, 3)), np.array([[0, 1, 2], [2, 0, 1], [1, 1, 0]])
MASK = np.array([[True, False, True]] * 3)


def arguments(t):
    """Lists of arguments, of NumPy arrays that t makes tensors of; each holds a complex one."""
    x, y, v, w, real, i, mask = (t(array.copy()) for array in (X, Y, V, W, REAL, INDEX, MASK))
    return [
        (x,),
        (x, y),
        (x, 0),
        (x, 1),
        (x, 2),
        (v,),
        (v, v),
        (w,),
        (x, y, y),
        (x, real),
        (real, x),
        (x, 0, i),
        (x, 0, i, y),
        (x, mask),
        (x, mask, y),
        (x, mask, 2.0),
        (mask, x, y),
        (x, (2,)),
        (x, 0, 1),
        ([x, y],),
        (w, x),
        (x, v),
        (x, 1.5),
        (x, i),
        (x, (1, 1)),
        (x, 1j),
        (x, (0, 1)),
        (x, (3, 3)),
        (w, 2),
        (x, y, v),
        (v, x, y),
        (w, v),
        (w, w),
        (w, 2, 2),
        (real, x, y),
        (x, real, y),
        (v, 3),
        (v, 3, 1),
        (1j, x),
        (v, v, v),
        (real, 1j),
        (x, y, y, y),
        (w, v, v),
        (w, v, v, v, v),
        (x, 2, 1),
        (w, w, v),
    ]


REFUSALS = (
    norch.Error,
    TypeError,
    ValueError,
    IndexError,
    NotImplementedError,
    AttributeError,
    OverflowError,
    RuntimeError,
    ImportError,
)
# What draws, leaves elements undefined or changes the process; vectors whose phases are free, which
# test_complex_linalg.py tries; and what is not positive definite, or has no such factor.
NOT_COMPARED = {
    "cholesky_ex",
    "cholesky_inverse",
    "eig",
    "eigh",
    "svd",
    "alpha_dropout",
    "bernoulli",
    "compile",
    "data_ptr",
    "dropout",
    "empty_like",
    "feature_alpha_dropout",
    "from_file",
    "load",
    "manual_seed",
    "new",
    "new_empty",
    "new_empty_strided",
    "normal",
    "normal_",
    "pca_lowrank",
    "rand_like",
    "randn_like",
    "randint_like",
    "rrelu",
    "uniform_",
    "save",
    "seed",
    "set_default_device",
    "set_num_threads",
    "set_printoptions",
    "use_deterministic_algorithms",
    "empty_strided",
    "multinomial",
    "svd_lowrank",
}
OPERATORS = (
    "add radd sub rsub mul rmul truediv rtruediv pow rpow matmul floordiv mod lt le gt ge eq ne neg abs and or xor "
    "invert getitem contains bool float int index complex iadd isub imul itruediv ipow"
).split()


def public_callables():
    for ours, theirs in (
        (norch, torch),
        (norch.nn.functional, torch.nn.functional),
        (norch.linalg, torch.linalg),
        (norch.fft, torch.fft),
        (norch.Tensor, torch.Tensor),
    ):
        names = [name for name in dir(ours) if name[0] != "_"] + [
            f"__{name}__" for name in OPERATORS if ours is norch.Tensor
        ]
        for name in names:
            function = getattr(ours, name, None)
            if callable(function) and not inspect.isclass(function) and name not in NOT_COMPARED:
                yield f"{ours.__name__}.{name}", function, getattr(theirs, name, None)


def leaves(result):
    if isinstance(result, (list, tuple)):
        return [leaf for part in result for leaf in leaves(part)]
    if hasattr(result, "detach"):
        result = result.detach()
        result = result if "strided" in str(result.layout) else result.to_dense()
        if isinstance(result, torch.Tensor):
            result = result.resolve_conj().resolve_neg()
        return [result.contiguous().numpy()]
    return [np.array(result)] if isinstance(result, (bool, int, float, complex)) else []


def agree(ours, theirs):
    ours, theirs = leaves(ours), leaves(theirs)
    return len(ours) == len(theirs) and all(
        p.shape == q.shape and p.dtype.kind == q.dtype.kind and np.allclose(p, q, rtol=1e-4, atol=1e-5, equal_nan=True)
        for p, q in zip(ours, theirs, strict=True)
    )


@on_cpu
def test_every_callable_is_right_or_refuses():
    wrong, answered = [], 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, function, theirs in public_callables():
            for at in range(len(arguments(norch.tensor))):
                given = arguments(norch.tensor)[at]
                if name.startswith("Tensor.") and not isinstance(given[0], norch.Tensor):
                    continue
                try:
                    ours = function(*given)
                except REFUSALS:
                    continue
                answered += 1
                try:
                    expected = theirs(*arguments(torch.tensor)[at])
                except (
                    Exception
                ):  # of arguments that PyTorch does not take nothing is known; most differ in a way of calling
                    continue
                if not agree(ours, expected):
                    wrong.append((name, at, str(ours)[:80], str(expected)[:80]))
    assert not wrong, wrong
    assert answered > 1500


REFUSED = {
    "sort": lambda x: x.sort(),
    "argsort": lambda x: x.argsort(),
    "topk": lambda x: x.topk(1),
    "amax": lambda x: x.amax(),
    "max": lambda x: x.max(),
    "argmax": lambda x: x.argmax(),
    "median": lambda x: x.median(),
    "lt": lambda x: x < x,
    "ge": lambda x: x >= 1,
    "floor": lambda x: x.floor(),
    "round": lambda x: x.round(),
    "sign": lambda x: x.sign(),
    "clamp": lambda x: x.clamp(0, 1),
    "maximum": lambda x: norch.maximum(x, x),
    "relu": lambda x: x.relu(),
    "erf": lambda x: x.erf(),
    "softmax": lambda x: x.softmax(0),
    "avg_pool2d": lambda x: norch.nn.functional.avg_pool2d(x[None, None], 2),
    "remainder": lambda x: x % 2,
    "floor_divide": lambda x: x // 2,
    "atan2": lambda x: norch.atan2(x, x),
    "searchsorted": lambda x: norch.searchsorted(x[0], x),
    "max_pool2d": lambda x: norch.nn.functional.max_pool2d(x[None, None], 2),
    "layer_norm": lambda x: norch.nn.functional.layer_norm(x, (3,)),
    "cummax": lambda x: x.cummax(0),
    "unique": lambda x: x.unique(),
    "mse_loss": lambda x: norch.nn.functional.mse_loss(x, x),
    "bitwise_and": lambda x: x & x,
    "isposinf": lambda x: norch.isposinf(x),
    "logaddexp2": lambda x: norch.logaddexp2(x, x),
    "nanmedian": lambda x: x.nanmedian(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_by_name(name):
    with pytest.raises(norch.DTypeError, match=rf"^{name}\b.*complex64"):
        REFUSED[name](norch.ones(3, 3, dtype=norch.complex64))


def test_whole_jacobians_refuse():
    x, functional = norch.tensor([1 + 1j, 2j]), norch.autograd.functional
    squares = lambda z: (z * z).abs().sum()  # noqa: E731
    for call in (
        lambda: functional.jacobian(norch.exp, x),
        lambda: functional.hessian(squares, x),
        lambda: functional.hvp(squares, x, x),
        lambda: functional.vhp(squares, x, x),
        lambda: norch.func.jacrev(norch.exp)(x),
        lambda: norch.func.jacfwd(norch.exp)(x),
    ):
        with pytest.raises(norch.DTypeError, match="complex64 is not supported"):
            call()
    assert norch.func.jvp(lambda z: z * z, (x,), (x,))[1].tolist() == [4j, -8]  # PyTorch's
    assert norch.func.grad(squares)(x).tolist() == [2 + 2j, 4j]
