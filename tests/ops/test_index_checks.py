"""Reads and writes at indices that are out of range, whatever dtype and strides the index has: an error that names it,
and a tensor that was to be written in place stays as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from conftest import DEVICE

import norch

CALLS: dict[str, Any] = {
    "gather": lambda x, i, src, end: x.gather(-1, i),
    "take_along_dim": lambda x, i, src, end: x.take_along_dim(i, -1),
    "scatter": lambda x, i, src, end: getattr(x, "scatter" + end)(-1, i, src),
    "scatter a number": lambda x, i, src, end: getattr(x, "scatter" + end)(-1, i, 7.0),
    "scatter_add": lambda x, i, src, end: getattr(x, "scatter_add" + end)(-1, i, src),
    "scatter_add of rows": lambda x, i, src, end: getattr(x, "scatter_add" + end)(0, i.T, src.T),
    "scatter_reduce": lambda x, i, src, end: getattr(x, "scatter_reduce" + end)(-1, i, src, "amax"),
    "index_add": lambda x, i, src, end: getattr(x, "index_add" + end)(-1, i[-1], src),
    "index_copy": lambda x, i, src, end: getattr(x, "index_copy" + end)(-1, i[-1], src),
}
INDICES: dict[str, Any] = {
    "dense": lambda i: i,
    "int32": lambda i: i.int(),
    "every second": lambda i: i.repeat_interleave(2, 1)[:, ::2],
    "expanded": lambda i: i[-1:].expand(3, 5),
}


def drawn() -> tuple[Any, Any, Any]:
    norch.manual_seed(1)
    x, src = norch.randn(3, 5, device=DEVICE), norch.randn(3, 5, device=DEVICE)
    return x, norch.randint(0, 3, (3, 5), device=DEVICE), src


@pytest.mark.parametrize("layout", INDICES)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("wrong", [9, -9, 1 << 62])
def test_an_index_out_of_range(name: str, layout: str, wrong: int) -> None:
    if layout == "int32" and (wrong > 1 << 31 or name == "take_along_dim"):
        pytest.skip("no such index")
    x, index, src = drawn()
    index[2, 4] = wrong
    index, before = INDICES[layout](index), x.clone()
    for end in ("", "_")[: 1 + (name[:4] in ("scat", "inde"))]:
        with pytest.raises(IndexError, match="index -?[0-9]+ is out of range for size"):
            CALLS[name](x, index, src, end)
            if DEVICE != "cpu":
                norch.cuda.synchronize()
        if DEVICE == "cpu":
            assert x.equal(before)


def test_errors_name_the_call() -> None:
    x, src, wrong = norch.ones(3, 3), norch.ones(1, 1), norch.tensor([[9]])
    calls: dict[str, Any] = {"put": (wrong, src), **dict.fromkeys(("scatter", "scatter_add"), (0, wrong, src))}
    calls |= dict.fromkeys(("index_add", "index_copy"), (0, wrong[0], norch.ones(1, 3)))
    calls |= {f"{name}_": arguments for name, arguments in calls.items()}
    calls |= {"gather": (0, wrong), "take_along_dim": (wrong, 0), "take": (wrong,), "index_select": (0, wrong[0])}
    for name, arguments in calls.items():
        with pytest.raises(norch.BoundsError, match=f"^{name.rstrip('_')}_?: index 9 is out of range"):
            getattr(x, name)(*arguments)
    for name in ("put", "put_"):
        with pytest.raises(norch.ShapeError, match=f"^{name}: 1 indices and 3 values"):
            getattr(x, name)(wrong, norch.ones(3))


@pytest.mark.parametrize("layout", INDICES)
@pytest.mark.parametrize("name", CALLS)
def test_in_range_they_are_those_of_numbers_one_by_one(name: str, layout: str) -> None:
    if layout == "int32" and name == "take_along_dim":
        pytest.skip("int64 only")
    x, index, src = drawn()
    given = INDICES[layout](index)
    found = CALLS[name](x, given, src, "")
    expected = CALLS[name](x, given.long().contiguous(), src, "")
    assert found.equal(expected)
    if name[:4] in ("scat", "inde"):
        assert CALLS[name](x.clone(), given, src, "_").equal(expected)
    if name == "scatter_add" and layout == "dense":
        one = x.clone()
        for row in range(3):
            for column in range(5):
                one[row, index[row, column].item()] += src[row, column]
        norch.testing.assert_close(found, one)


def test_an_index_that_is_written_to_is_read_first() -> None:
    y = norch.tensor([1, 2, 3, 0], device=DEVICE)
    assert y.clone().scatter_(0, y, norch.tensor([5, 6, 7, 8], device=DEVICE)).tolist() == [8, 5, 6, 7]
    assert y.scatter_(0, y, norch.tensor([5, 6, 7, 8], device=DEVICE)).tolist() == [8, 5, 6, 7]


def test_replays_check_their_indices() -> None:
    x, index, src = drawn()
    step = norch.capture(lambda x, i, s: x.scatter_add(1, i, s).gather(1, i))
    for _ in range(3):
        assert step(x, index, src).equal(x.scatter_add(1, index, src).gather(1, index))
    index[1, 1] = 5
    with pytest.raises(IndexError):
        step(x, index, src)
        if DEVICE != "cpu":
            norch.cuda.synchronize()
    index[1, 1] = 0
    assert step(x, index, src).equal(x.scatter_add(1, index, src).gather(1, index))


WRITER = """
import sys, threading
import norch
from norch.nn import functional as F
from norch._binding.library import lib

sys.setswitchinterval(1e-5)
norch.set_num_threads(1)
index = norch.zeros(4096, dtype=norch.int64)
memory, ends = index.numpy(), threading.Event()
x, rows, ones, plane = norch.zeros(8), norch.zeros(8, 4), norch.ones(4096), norch.ones(1, 1, 4096)
logits = norch.zeros(4096, 8, requires_grad=True)
pairs, weights = index.reshape(2, 2048), norch.ones(2, 2048)
calls = [
    lambda: x.gather(0, index), lambda: x[index], lambda: rows.index_select(0, index), lambda: F.embedding(index, rows),
    lambda: ones.scatter(0, index, 1.0), lambda: x.index_add(0, index, ones), lambda: rows[index, 1:],
    lambda: x.scatter_reduce(0, index, ones, "amax"), lambda: x.clone().put_(index, ones), lambda: F.one_hot(index, 8),
    lambda: rows.index_put((index, index), ones, accumulate=True), lambda: F.embedding_bag(pairs, rows),
    lambda: F.nll_loss(logits, index), lambda: F.cross_entropy(logits, index).backward(),
    lambda: F.cross_entropy(logits, index, reduction="none"),
    lambda: F.max_unpool1d(plane, index.reshape(1, 1, 4096), 2, output_size=(8192,)),
    lambda: lib.norch_resample(rows.T, 1, pairs, weights),
    lambda: lib.norch_resample_backward(weights, 1, pairs, weights, 8),
]

def write():
    while not ends.is_set():  # NumPy writes without the lock of the interpreter
        memory[:] = 10**14
        memory[:] = 0
        memory[::3] = -5
        memory[:] = 0

thread = threading.Thread(target=write, daemon=True)
thread.start()
for _ in range(1500):
    for call in calls:
        try:
            call()
        except (IndexError, ValueError, norch.Error):
            pass
ends.set()
thread.join()
"""


@pytest.mark.host  # whose memory another thread can write
def test_an_index_that_another_thread_writes() -> None:
    """No call reads or writes beyond a tensor: each index is compared as it is read, once."""
    numpy = pytest.importorskip("numpy")
    folders = [os.path.dirname(os.path.dirname(module.__file__)) for module in (norch, numpy)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    run = subprocess.run([sys.executable, "-c", WRITER], env=env, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr


def test_a_number_has_one_element_along_any_axis() -> None:
    x = norch.tensor(3.0)
    for index in (norch.tensor([0]), norch.tensor(0)):
        assert x.index_select(0, index).tolist() == 3
    with pytest.raises(norch.BoundsError, match="index_select: index 1 is out of range for size 1"):
        x.index_select(0, norch.tensor([1]))


@pytest.mark.host
@pytest.mark.parametrize("dtype", [norch.int8, norch.float16, norch.float32, norch.float64], ids=str)
@pytest.mark.parametrize("length", [1, 4, 7, 8, 519])
def test_the_place_of_a_wrong_index_does_not_matter(length: int, dtype: Any) -> None:
    """The CPU's kernel compares four at once."""
    x = norch.arange(3).to(dtype).expand(2, 3).clone()
    index = norch.arange(length) % 3
    assert x.index_select(1, index).equal((norch.arange(length) % 3).to(dtype).expand(2, length))
    for place in {0, length // 2, length - 1}:
        wrong = index.clone()
        wrong[place] = 3
        for call in (
            lambda i: x.index_select(1, i),
            lambda i: x.gather(1, i.expand(2, length)),
            lambda i: x.scatter_(1, i.expand(2, length), x.new_ones(2, length)),
            lambda i: x.index_add_(1, i, x.new_ones(2, length)),
        ):
            with pytest.raises(norch.BoundsError, match="index 3 is out of range for size 3"):
                call(wrong)
    assert x.equal(norch.arange(3).to(dtype).expand(2, 3))
