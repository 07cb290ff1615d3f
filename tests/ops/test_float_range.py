"""Finite numbers that a float dtype rounds to infinity: refused where they are stored, as by PyTorch."""

from __future__ import annotations

import math
from typing import Any

import pytest

import norch
from norch.nn import functional as F  # noqa: N812

# The largest double that rounds to a finite number of the dtype; of half floats the largest float32.
LAST = {
    "float16": 65520.0 - 2.0**-8,
    "bfloat16": (2 - 2.0**-8 - 2.0**-23) * 2.0**127,
    "float32": math.nextafter((2 - 2.0**-24) * 2.0**127, 0),
    "float64": 1.7976931348623157e308,
}
# The number half way between the largest and 2^16 or 2^128, which rounds up.
END = {"float16": 65520.0, "bfloat16": (2 - 2.0**-8) * 2.0**127, "float32": (2 - 2.0**-24) * 2.0**127}
MASK = [True, False]
STORES = {
    "full": lambda lib, x, value: lib.full((2,), value, dtype=x.dtype),
    "full_like": lambda lib, x, value: lib.full_like(x, value),
    "new_full": lambda lib, x, value: x.new_full((2,), value),
    "fill_": lambda lib, x, value: x.fill_(value),
    "masked_fill": lambda lib, x, value: x.masked_fill(lib.tensor(MASK), value),
    "masked_fill_": lambda lib, x, value: x.masked_fill_(lib.tensor(MASK), value),
    "index_fill": lambda lib, x, value: x.index_fill(0, lib.tensor([0]), value),
    "scatter": lambda lib, x, value: x.scatter(0, lib.tensor([0]), value),
    "pad": lambda lib, x, value: lib.nn.functional.pad(x, (1, 1), value=value),
    "clamp_min": lambda lib, x, value: x.clamp(min=value) if value > 0 else x.clamp(max=value),
}
# These take a 0-d tensor of the number, which is infinite for half floats: so are the results of PyTorch.
INFINITE_HALVES = {
    "setitem": lambda lib, x, value: x.__setitem__(0, value) or x,
    "setitem_mask": lambda lib, x, value: x.__setitem__(lib.tensor(MASK), value) or x,
    "setitem_list": lambda lib, x, value: x.__setitem__([0], value) or x,
    "where": lambda lib, x, value: lib.where(lib.tensor(MASK), value, x),
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", LAST)
@pytest.mark.parametrize("name", STORES | INFINITE_HALVES)
def test_numbers_at_the_end_of_the_range(name: str, dtype: str, sign: int, torch: Any) -> None:
    store, last = {**STORES, **INFINITE_HALVES}[name], sign * LAST[dtype]
    x = norch.zeros(2, dtype=getattr(norch, dtype))
    for value in (last, sign * math.inf):  # an infinity may be meant
        largest = max(map(abs, store(norch, x.clone(), value).tolist()))
        assert math.isfinite(largest) == (value == last) and largest > 6e4
    if dtype == "float64":
        return
    beyond, kept = last * (1 + 2.0**-22), x.clone()
    if name in INFINITE_HALVES and dtype != "float32":
        assert (
            store(norch, x, beyond).tolist()
            == store(torch, torch.zeros(2, dtype=getattr(torch, dtype)), beyond).tolist()
        )
        return
    with pytest.raises(norch.ArgumentError, match=rf"does not fit {dtype}$"):
        store(norch, x, beyond)
    assert x.tolist() == kept.tolist()
    with pytest.raises(RuntimeError, match="without overflow"):
        store(torch, torch.zeros(2, dtype=getattr(torch, dtype)), beyond)


def test_results_may_be_infinite_and_bounds_beyond_all_numbers() -> None:
    x = norch.ones(2)
    assert (x * 1e300).tolist() == [math.inf] * 2 and norch.tensor(1e300).item() == math.inf
    assert (
        x.clamp(max=1e300).tolist() == x.clamp(min=-1e300).tolist() == F.hardtanh(x, -1.0, 1e300).tolist() == [1.0, 1.0]
    )
    assert (x < 1e300).all() and x.half().clamp(-1e9, 1e9).tolist() == [1.0, 1.0]
    for bounds in ((1e300, 2e300), (-2e300, -1e300)):
        with pytest.raises(norch.ArgumentError, match="clamp: -?1e.300 does not fit float32"):
            x.clamp(*bounds)


@pytest.mark.parametrize("wrap", [norch.capture, norch.compile])
def test_a_captured_store_is_refused_too(wrap: Any) -> None:
    step = wrap(lambda x, mask, value: x.masked_fill(mask, value))
    x, mask = norch.zeros(2), norch.tensor(MASK)
    for _ in range(4):
        assert step(x, mask, 5.0).tolist() == [5.0, 0.0]
    with pytest.raises(norch.ArgumentError, match="1e\\+300 does not fit float32"):
        step(x, mask, 1e300)
    assert step(x, mask, 5.0).tolist() == [5.0, 0.0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_complex_numbers_are_refused_by_what_converts_them(dtype: str) -> None:
    x = norch.zeros(2, dtype=getattr(norch, dtype))
    for store in (*STORES.values(), INFINITE_HALVES["setitem"]):
        if store not in (STORES["clamp_min"], STORES["scatter"]):
            with pytest.raises(norch.DTypeError, match="imaginary parts"):
                store(norch, x, 1j)


def test_half_floats_take_large_integers_as_infinity(torch: Any) -> None:
    for value in (70000, -70000, 65504, 65519):
        x, wanted = norch.zeros(2).half(), torch.zeros(2).half()
        x[0] = wanted[0] = value
        assert x.tolist() == wanted.tolist()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", END)
def test_half_way_to_the_next_power_is_beyond(dtype: str, sign: int, torch: Any) -> None:
    value = sign * END[dtype]
    for name in ("full", "clamp_min"):
        for lib, error in ((norch, norch.ArgumentError), (torch, RuntimeError)):
            with pytest.raises(error):
                STORES[name](lib, lib.zeros(2, dtype=getattr(lib, dtype)), value)
