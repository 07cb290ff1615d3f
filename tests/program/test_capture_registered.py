"""Functions that a program registers with norch, and registers anew after a function was recorded."""

import pytest

import norch
from norch import distributions as d

WRAPS = {"capture": norch.capture, "compile": lambda f: norch.compile(f, fullgraph=True)}


class Mine(d.Normal):
    pass


class Positive(d.constraints.Constraint):
    pass


POSITIVE = Positive()


def divergence(x):
    ones = norch.ones(2)
    return d.kl_divergence(Mine(x, ones, validate_args=False), Mine(0 * x, ones, validate_args=False))


# {name: (what is recorded, how a function with a number is registered)}
WAYS = {
    "divergence": (divergence, lambda k: d.register_kl(Mine, Mine)(lambda p, q: p.loc - q.loc + k)),
    "transform": (
        lambda x: d.biject_to(POSITIVE)(x),
        lambda k: d.biject_to.register(Positive, lambda constraint: d.AffineTransform(k, 2.0)),
    ),
}


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    monkeypatch.setitem(d.kl._FORMULAS, (Mine, Mine), None)
    monkeypatch.setitem(d.biject_to._registry, Positive, None)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", WAYS)
def test_registered_anew(name, wrap):
    function, register = WAYS[name]
    recorded = WRAPS[wrap](function)
    for k in (1.0, 5.0, 7.0):
        register(k)
        for i in range(5):
            x = norch.full((2,), float(i))
            assert recorded(x).tolist() == function(x).tolist()
    assert recorded.recordings() == 3


@pytest.mark.parametrize("wrap", WRAPS)
def test_registered_for_a_subclass_later(wrap):
    """At first the formula of the base class is found."""
    del d.kl._FORMULAS[Mine, Mine]
    recorded, x = WRAPS[wrap](divergence), norch.ones(2)
    assert [recorded(x).tolist() for _ in range(5)] == [[0.5, 0.5]] * 5
    d.register_kl(Mine, Mine)(lambda p, q: p.loc + 9)
    assert [recorded(x).tolist() for _ in range(5)] == [[10.0, 10.0]] * 5
