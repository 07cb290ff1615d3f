"""Calls with next to nothing to compute, copies of any kind, random numbers, other dtypes."""

from __future__ import annotations

from typing import Any

from ..cases_training import article_step
from ..library import Run
from .library import OnDevice, cases_of

CASES, add = cases_of("small and copies")
MIB = 1 << 20


def _small(lib: OnDevice) -> Run:
    a, b = lib.random(10), lib.random(10)
    return lambda: a + b


def _chain(lib: OnDevice) -> Run:
    a, b, x = lib.random(10), lib.random(10), lib.random(10, grad=True)

    def run() -> Any:
        x.grad = None
        y = (x * b + a).sum()
        y.backward()
        return y, x.grad

    return run


def _linear(lib: OnDevice) -> Run:
    linear = lib.module.nn.functional.linear
    x, weight, bias = lib.random(65, 100), lib.random(33, 100), lib.random(33)
    return lambda: linear(x, weight, bias)


def _item(lib: OnDevice) -> Run:
    x = lib.random()
    return lambda: x.item()


def _to_device(pinned: bool) -> Any:
    def setup(lib: OnDevice) -> Run:
        x = lib.random(lib.count(16 * MIB)).cpu()
        if pinned and lib.device != "cpu":
            x = x.pin_memory()
        return lambda: x.to(lib.device, non_blocking=pinned, copy=True)

    return setup


def _to_host(lib: OnDevice) -> Run:
    x = lib.random(lib.count(16 * MIB))
    return lambda: x.to("cpu", copy=True)


def _transposed(lib: OnDevice) -> Run:
    x = lib.random(lib.fit(8192), lib.fit(8192))
    return lambda: x.T.contiguous()


def _channels_last(lib: OnDevice) -> Run:
    x = lib.random(lib.fit(64), lib.fit(128), lib.fit(56), lib.fit(56))
    return lambda: x.permute(0, 2, 3, 1).contiguous()


def _randn(lib: OnDevice) -> Run:
    """The two draw other numbers: what is compared is that mean and variance are within 6 standard errors."""
    count, device, randn = lib.count(10_000_000), lib.device, lib.module.randn

    def run() -> Any:
        x = randn(count, device=device)

        def told() -> Any:
            mean, var = float(x.mean()), float(x.square().mean())
            return float(abs(mean) < 6 / count**0.5), float(abs(var - 1) < 6 * (2 / count) ** 0.5)

        return told

    return run


def _int64(lib: OnDevice) -> Run:
    count = lib.count(10_000_000)
    a, b = lib.integers(count, 1 << 30), lib.integers(count, 1 << 30)
    return lambda: a + b


def _halves(lib: OnDevice) -> Run:
    count = lib.count(25_000_000)
    a, b = lib.random(count, dtype="float16"), lib.random(count, dtype="float16")
    return lambda: a * b


add("small a+b [10]", _small)
add("small fwd+bwd (x*b+a).sum", _chain)
add("linear 65x100x33", _linear)
add("toy step 1-10-1", article_step, tolerance=1e-4)
add("item()", _item)
add("h2d 64MB pageable", _to_device(False))
add("h2d 64MB pinned", _to_device(True))
add("d2h 64MB", _to_host)
add("x.T copy 8192", _transposed)
add("permute copy NCHW->NHWC", _channels_last)
add("randn 1e7", _randn)
add("int64 add 1e7", _int64)
add("a.half()*b.half() 1e8/4", _halves)
