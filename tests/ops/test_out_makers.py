"""out= of functions that make tensors: what it keeps, and when it is resized with a warning."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import norch


@pytest.mark.parametrize("shape", [(3,), (2, 2), (0,)])
def test_an_out_of_empty_keeps_its_elements(shape):
    out = norch.full(shape, 2.0).t() if len(shape) == 2 else norch.full(shape, 2.0)
    address = out.data_ptr()
    assert norch.empty(shape, out=out) is out
    assert (out == 2.0).all() and out.data_ptr() == address


MAKERS = {
    "empty": lambda m, out: m.empty(5, out=out),
    "zeros": lambda m, out: m.zeros(5, out=out),
    "full": lambda m, out: m.full((5,), 2.0, out=out),
    "eye": lambda m, out: m.eye(5, out=out),
    "randperm": lambda m, out: m.randperm(5, out=out),
    "randn": lambda m, out: m.randn(5, out=out),
    "arange": lambda m, out: m.arange(5, out=out),
}


@pytest.mark.parametrize("name", MAKERS)
def test_makers_resize_an_out_without_a_warning_unless_they_count(torch: Any, name: str) -> None:
    for m in (torch, norch):
        out = m.ones(2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert MAKERS[name](m, out) is out and out.shape[0] == 5
        assert len(caught) == (name == "arange")
