"""repr and format against PyTorch, character by character."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import examples

import norch

pytestmark = pytest.mark.host  # PyTorch's tensors are on the CPU, whose name is not printed

nan, inf = math.nan, math.inf
FLOATS = ["float32", "float64"]
VALUES = {
    "zero": 0.0,
    "0-d": 1.5,
    "0-d whole": 3.0,
    "0-d negative": -2.25,
    "0-d tiny": 1e-7,
    "0-d huge": 1e12,
    "0-d whole above 1000": 123456.0,
    "0-d nan": nan,
    "0-d inf": -inf,
    "one": [1.0],
    "whole": [1.0, -2.0, 30.0],
    "whole with zero": [0.0, -0.0, 1.0],
    "zeros": [[0.0] * 3] * 2,
    "many zeros": [0.0] * 60,
    "negative zero": [-0.0, 0.0],
    "decimals": [1.5, -2.25, 3.14159],
    "ratio 1000": [1.0, 1000.0],
    "ratio above 1000": [1.0, 1001.0],
    "decimals, ratio above 1000": [0.5, 1001.0],
    "whole above 1e8": [2e8],
    "exactly 1e8": [1e8],
    "below 1e-4": [9e-5, 1e-4],
    "exactly 1e-4": [1e-4, 1e-3],
    "mixed signs scientific": [-1e-9, 1e9],
    "nan and whole": [nan, 1.0, inf, -inf],
    "nan and decimals": [nan, 1.5, inf, -inf],
    "nan and scientific": [nan, 1e-9, inf, -inf, 0.0],
    "only nan": [nan, nan],
    "only inf": [inf, -inf, 0.0],
    "extremes": [1e-38, 1e38],
    "rounding": [0.99995, 0.00005, 2.00005],
    "matrix": [[1.0, 2.5], [-3.0, 4.0]],
    "3-d": [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.5]]],
    "4-d": [[[[1.0, 2.0]], [[3.0, 4.0]]]],
    "wide": [[i / 7 for i in range(30)] for _ in range(2)],
    "wide whole": [float(i) for i in range(100)],
}


def same(shown, expected):
    """torch writes AddBackward0 where norch writes AddBackward."""
    expected = expected.replace("torch.", "norch.")
    expected = re.sub(r"grad_fn=<(\w+?)Backward\d>", r"grad_fn=<\1Backward>", expected)
    assert shown == expected


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", VALUES)
def test_floats(torch, name, dtype):
    same(
        repr(norch.tensor(VALUES[name], dtype=getattr(norch, dtype))),
        repr(torch.tensor(VALUES[name], dtype=getattr(torch, dtype))),
    )


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize(
    "values", [0, 7, [], [1], [0, 100, 20], [[1, 20], [3, 4]], [[[1], [2]], [[3], [4]]], list(range(70))]
)
def test_every_dtype(torch, values, dtype):
    array = np.array(values, dtype="int64").astype(dtype)
    same(repr(norch.tensor(array)), repr(torch.tensor(array)))


@pytest.mark.parametrize("values", [[-1, 10], [-(2**63), 2**63 - 1], [[-5], [123456789]]])
def test_negative_integers(torch, values):
    same(repr(norch.tensor(values)), repr(torch.tensor(values)))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float32", "float64"])
def test_empty(torch, shape, dtype):
    same(
        repr(norch.zeros(shape, dtype=getattr(norch, dtype))),
        repr(torch.zeros(shape, dtype=getattr(torch, dtype))),
    )


@pytest.mark.parametrize(
    "shape",
    [(1000,), (1001,), (40, 25), (40, 26), (2, 600), (600, 2), (7, 6, 30), (5, 7, 40), (11, 11, 11), (1, 1, 2000)],
)
@pytest.mark.parametrize("scale", [1, 0.37, 1e-6])
def test_summarised(torch, shape, scale):
    array = np.arange(math.prod(shape), dtype="float64").reshape(shape) * scale
    same(repr(norch.tensor(array)), repr(torch.tensor(array)))
    whole = np.arange(math.prod(shape)).reshape(shape)
    same(repr(norch.tensor(whole)), repr(torch.tensor(whole)))


def test_what_is_left_out_does_not_set_the_format(torch):
    array = np.ones(2000, dtype="float32")
    array[1000] = 1e-20
    same(repr(norch.tensor(array)), repr(torch.tensor(array)))


def test_views(torch):
    array = np.arange(24.0).reshape(2, 3, 4)
    ours, theirs = norch.tensor(array), torch.tensor(array)
    same(repr(ours.permute(2, 0, 1)[1:, :, ::2]), repr(theirs.permute(2, 0, 1)[1:, :, ::2]))
    same(repr(norch.ones(1).expand(3, 4)), repr(torch.ones(1).expand(3, 4)))


@pytest.mark.parametrize(
    "make",
    [
        lambda f: f.tensor([1.0, 2.0], requires_grad=True),
        lambda f: f.tensor([[1.0, 2.0]], dtype=f.float64, requires_grad=True),
        lambda f: f.tensor([1.0, 2.0], requires_grad=True) + 1,
        lambda f: f.tensor([1.0, 2.0], requires_grad=True) * 2,
        lambda f: f.tensor([1.0, 2.0], requires_grad=True).exp(),
        lambda f: f.tensor([1.0, 2.0], requires_grad=True).sum(),
        lambda f: f.tensor([1.0, 2.0], requires_grad=True).mean(),
        lambda f: f.tensor([1.0, 2.0], requires_grad=True, dtype=f.float64).sigmoid(),
        lambda f: f.tensor([[0.125] * 6] * 2, requires_grad=True),
        lambda f: f.tensor([[0.125] * 7] * 2, requires_grad=True, dtype=f.float64) + 1,
        lambda f: f.tensor([[0.125] * 8] * 2, requires_grad=True) - 1,
        lambda f: f.tensor([[1.25e-7] * 6] * 2, requires_grad=True, dtype=f.float64).relu(),
        lambda f: f.zeros(0, 2, requires_grad=True, dtype=f.float64),
        lambda f: f.zeros(3, requires_grad=True).detach(),
    ],
)
def test_autograd_notes(torch, make):
    same(repr(make(norch)), repr(make(torch)))


@pytest.mark.parametrize("count", range(1, 14))
def test_where_notes_go_to_the_next_line(torch, count):
    for dtype in FLOATS:
        ours = norch.full((count,), 0.5, dtype=getattr(norch, dtype), requires_grad=True)
        theirs = torch.full((count,), 0.5, dtype=getattr(torch, dtype), requires_grad=True)
        same(repr(ours), repr(theirs))


def test_parameter(torch):
    same(
        repr(norch.nn.Parameter(norch.tensor([1.0, 2.5]))),
        repr(torch.nn.Parameter(torch.tensor([1.0, 2.5]))),
    )


def test_names(torch):
    same(repr(norch.zeros(2, 3).shape), repr(torch.zeros(2, 3).shape))
    same(str(norch.zeros(2, 3)), str(torch.zeros(2, 3)))
    for name in ["uint8", "int32", "int64", "float32", "float64", "bool"]:
        same(repr(getattr(norch, name)), repr(getattr(torch, name)))
    assert str(norch.device("cpu")) == "cpu"


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.floats(width=32),
            st.integers(-2000, 2000).map(float),
            st.floats(-10, 10, width=32),
            st.sampled_from([0.0, -0.0, 1e-4, 1e8, 1e3]),
        ),
        min_size=0,
        max_size=40,
    ),
    st.integers(1, 3),
)
def test_any_floats(torch, values, rows):
    array = np.array(values * rows, dtype="float32").reshape(rows, len(values))
    same(repr(norch.tensor(array)), repr(torch.tensor(array)))


@pytest.mark.parametrize("spec", ["", ".4f", "8.2f", "e", "g"])
def test_format_of_0d(torch, spec):
    assert format(norch.tensor(1.25), spec) == format(torch.tensor(1.25), spec)


def test_format():
    assert f"{norch.tensor(3)}" == "3"
    assert f"{norch.tensor(3):04d}" == "0003"
    assert f"{norch.tensor([1.0])}" == "tensor([1.])"
    with pytest.raises(TypeError):
        format(norch.tensor([1.0]), ".2f")


def test_repr_does_not_touch_the_graph():
    x = norch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    repr(x), repr(y)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
