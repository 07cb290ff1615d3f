"""Tensors in shared memory: share_memory_(), is_shared(), and how they go to other processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle

import pytest
from leftovers import CONTEXTS, nothing_is_left, servers  # noqa: F401  (fixtures)
from loader_sets import add_one, train

import norch
import norch.multiprocessing
from norch import nn
from norch._binding.library import lib

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")]

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()


def test_sharing_moves_a_tensor():
    x = norch.arange(12).view(3, 4).T
    strides, values, place = x.stride(), x.tolist(), x.data_ptr()
    assert not x.is_shared() and strides == (1, 4)
    assert x.share_memory_() is x and x.is_shared() and x.share_memory_() is x
    assert x.stride() == strides and x.tolist() == values and x.data_ptr() != place
    assert x[1:].is_shared() and x.detach().is_shared() and not x.clone().is_shared() and not (x + 1).is_shared()
    assert norch.zeros(0).share_memory_().shape == (0,)


def test_what_a_shared_parameter_keeps():
    layer = nn.Linear(3, 2)
    weight, before = layer.weight, layer.weight.tolist()
    layer(norch.ones(1, 3)).sum().backward()
    assert layer.share_memory() is layer and layer.weight is weight
    assert all(p.is_shared() and p.requires_grad and p.is_leaf and p.grad.is_shared() for p in layer.parameters())
    assert weight.tolist() == before and type(weight) is nn.Parameter
    norch.optim.SGD(layer.parameters(), lr=0.5).step()
    assert weight.is_shared() and weight.tolist() != before


def test_a_tensor_with_views_stays_where_it_is():
    x = norch.ones(4)
    view = x[1:]
    with pytest.raises(norch.Error, match="share_memory_: 1 other tensor sees the memory of this one"):
        x.share_memory_()
    assert not x.is_shared() and x[1:].data_ptr() == view.data_ptr()
    array = view.numpy()
    del view
    with pytest.raises(norch.Error, match="other tensor"):
        x.share_memory_()
    del array
    assert x.share_memory_().is_shared()


def test_memory_is_given_back():
    before = lib.norch_live_storages()
    x = norch.ones(100_000).share_memory_()
    view = x[5:]
    del x
    assert lib.norch_live_storages() == before + 1
    assert view.sum().item() == 99_995
    del view
    gc.collect()
    assert lib.norch_live_storages() == before


def test_a_forked_child_writes_to_it():
    x = norch.zeros(3).share_memory_()
    pid = os.fork()
    if pid == 0:
        x[1] = 5
        os._exit(0)
    os.waitpid(pid, 0)
    assert x.tolist() == [0, 5, 0]


def test_a_pickle_is_a_copy():
    x = norch.ones(3).share_memory_()
    copy = pickle.loads(pickle.dumps(x))
    x[0] = 2
    assert copy.tolist() == [1, 1, 1] and not copy.is_shared()


# ---- other processes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("context", CONTEXTS)
def test_tensors_go_through_queues(context):
    context = norch.multiprocessing.get_context(context)
    queue, answers = context.Queue(), context.Queue()
    direct = norch.zeros(2).share_memory_()
    process = context.Process(target=add_one, args=(queue, answers, direct), daemon=True)
    process.start()
    x = norch.arange(6.0).view(2, 3).share_memory_()
    queue.put(x.T)
    y, shared, strides = answers.get(timeout=20)
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]], "the other process wrote to it"
    assert shared and strides == (1, 3) == y.stride() and y.tolist() == x.T.tolist()
    assert direct.tolist() == [100, 100]
    for name in DTYPES:
        sent = norch.zeros(3).to(getattr(norch, name))
        queue.put(sent)
        found, shared, _ = answers.get(timeout=20)
        assert not shared and found.dtype is sent.dtype and found.float().tolist() == [1, 1, 1]
        assert sent.float().tolist() == [0, 0, 0], "what is not shared is copied"
    queue.put(large := norch.zeros(100_000))
    found, shared, _ = answers.get(timeout=20)
    assert shared and found.min().item() == 1 and large.max().item() == 0
    queue.put(None), queue.put(None)
    process.join(20)
    assert process.exitcode == 0
    for each in (queue, answers):
        each.close(), each.join_thread()
    process.close()


def test_what_comes_twice_is_mapped_once():
    reads, writes = multiprocessing.Pipe(duplex=False)
    x = norch.ones(3).share_memory_()
    for _ in range(3):
        writes.send([x, x[1:]])
    found = [reads.recv() for _ in range(3)]
    assert {y.data_ptr() for y, _ in found} == {x.data_ptr()} == {view.data_ptr() - 4 for _, view in found}
    found[0][0][2] = 7
    assert x.tolist() == [1, 1, 7]
    reads.close(), writes.close()


@pytest.mark.slow
def test_processes_train_one_model():
    model, done = nn.Linear(2, 1).share_memory(), norch.zeros(2).share_memory_()
    norch.multiprocessing.spawn(train, args=(model, done), nprocs=2)
    assert done.tolist() == [1, 1] and abs(model(norch.ones(1, 2)).item() - 3) < 1e-3
