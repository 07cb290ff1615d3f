"""Inverses of transforms: the same object while it is held, a chain's is a chain, and copies have their own."""

import copy
import gc
import pickle
import weakref

import pytest

import norch
from norch import distributions as d

MADE = {
    "exp": d.ExpTransform,
    "affine": lambda: d.AffineTransform(norch.zeros(2), 2.0),
    "chain": lambda: d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.ExpTransform()]),
    "nothing": lambda: d.ComposeTransform([]),
    "nested": lambda: d.ComposeTransform([d.ComposeTransform([d.ExpTransform()]).inv, d.TanhTransform()]),
}


@pytest.mark.parametrize("name", MADE)
def test_an_inverse_is_the_same_object_while_it_is_held(name):
    one, other = MADE[name](), MADE[name]()
    inverse = one.inv
    assert one.inv is inverse and inverse.inv is one
    assert one == other and inverse == other.inv
    assert (one == inverse) is (name == "nothing")
    for copied in (copy.deepcopy(one), copy.copy(one), pickle.loads(pickle.dumps(one))):
        assert copied == one and copied.inv is not inverse and copied.inv == inverse and copied.inv.inv is copied


def test_neither_keeps_the_other_alive():
    one = d.ComposeTransform([d.ExpTransform()])
    inverse, gone = one.inv, weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None and inverse.inv == d.ComposeTransform([d.ExpTransform()])
    assert inverse.inv.parts == [d.ExpTransform()]


def test_the_inverse_of_a_chain_is_a_chain():
    chain = d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.TanhTransform()])
    assert isinstance(chain.inv, d.ComposeTransform)
    assert chain.inv.parts == [d.TanhTransform().inv, d.AffineTransform(1.0, 2.0).inv]
    assert d.identity_transform.inv == d.identity_transform


@pytest.mark.parametrize("make", [lambda chain: chain.with_cache(1), lambda chain: chain.with_cache(1).with_cache(1)])
def test_a_chain_with_a_cache_inverts_its_last_result_exactly(make):
    cached = make(d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.TanhTransform()]))
    x = norch.tensor([20.0])
    y = cached(x)
    assert cached.inv(y) is x and cached._inv_call(y) is x
    assert [part._cache_size for part in cached.parts] == [1, 1]
