"""Nodes and gradient functions in C (csrc/python/node.c, gradients.c): what they refuse, and that neither a call nor an
exception leaves anything behind."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import pytest
from functions import leaf

import norch
from norch._binding.library import lib
from norch.autograd.derivative import derivative
from norch.autograd.node import Leaf, Node
from norch.autograd.record import gradient_edge, is_recorded, record, record_view

pytestmark = pytest.mark.host

Named = derivative("named", ("x",), grad=lambda g, x, factor: g * factor, others=("factor",))
WITHOUT_CLASS = lib.norch_operation("unary", 0, lambda: 3, 0)[0]  # a row whose class of nodes is none


def _gradients(functions: Any, codes: Any) -> Any:
    return lib.norch_gradients(functions, codes, None)


REFUSED: dict[str, Any] = {
    "a class of nodes, not type": lambda x: record(int, x, (x,)),
    "record: expected a tensor, not int": lambda x: record(Named, 3, (x,)),
    "at most 31 values, not list": lambda x: record(Named, norch.ones(2), [x]),
    "at most 31 values, not tuple": lambda x: record(Named, norch.ones(2), (x,) * 32),
    "record: expected a tensor, not float": lambda x: record(Named, norch.ones(2), (1.0,)),
    "fewer values than the gradient functions name": lambda x: record(Named, norch.ones(2), (x,)),
    "record: takes 5 arguments, not 2": lambda x: record(Named, x),
    "record_view: expected a class of nodes, not int": lambda x: record_view(3, x, x, None, ()),
    "record_view: expected a tensor, not int": lambda x: record_view(Named, norch.ones(2), 3, None, ()),
    "record_view: takes 5 arguments, not 3": lambda x: record_view(Named, x, x),
    "gradient_edge: expected a tensor, not int": lambda x: gradient_edge(3),  # type: ignore[arg-type]
    "is_recorded: expected a tensor, not int": lambda x: is_recorded((x, 3)),
    "node_of: expected a class of nodes, not int": lambda x: lib.norch_node_of(3, (), None, None),
    "node_of_write: takes 2 arguments, not 1": lambda x: lib.norch_node_of_write(Named),
    "node_of_write: expected a class of nodes, not int": lambda x: lib.norch_node_of_write(3, x),
    "node_of_write: expected a tensor, not int": lambda x: lib.norch_node_of_write(Named, x, 3),
    "record: fewer values than the gradient": lambda x: lib.norch_node_of_write(Named, x),
    "bump: expected a tensor, not int": lambda x: lib.norch_bump(3),
    "operation: expected a form, not str": lambda x: lib.norch_operation("quaternary", 0, None, 0),
    "operation: expected a class of nodes, not int": lambda x: WITHOUT_CLASS(x),
    "operation: takes 2 arguments, not 1": lambda x: lib.norch_operation("binary", 0, None, 0)[1](x),
    "operation: takes 1 arguments, not 7": lambda x: lib.norch_operation("unary", 0, None, 0)[0](*[x] * 7),
    "gradients: expected a tuple of functions": lambda x: _gradients([len], ("",)),
    "propagate: takes 1 arguments, not 2": lambda x: _gradients(None, "")((x * 1).grad_fn, x),
    "propagate: expected a node, not int": lambda x: _gradients((len,), ("",))(3, x),
    "propagate: a node with other edges": lambda x: _gradients((len,) * 3, ("",) * 3)((x * 1).grad_fn, x),
    "propagate: takes 2 arguments, not 1": lambda x: _gradients((len,), ("",))(x),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused_leaves_tensors_as_they_were(message: str) -> None:
    x = leaf(1.0, 2.0)
    before = x._node, x._view, x._version_counter, sys.getrefcount(x)
    with pytest.raises(TypeError, match=message):
        REFUSED[message](x)
    assert (x._node, x._view, x._version_counter, sys.getrefcount(x)) == before


def _interrupted(g: Any, x: Any) -> Any:
    raise KeyboardInterrupt


Interrupted = derivative("interrupted", ("a", "b"), grad_a=lambda g, b: g * b, grad_b=lambda g, a: _interrupted(g, a))


def _interrupt(x: Any) -> None:
    out = record(Interrupted, (x * 2).detach(), (x, x))
    with pytest.raises(KeyboardInterrupt):
        out.sum().backward()


def _write_and_walk(x: Any) -> None:
    y = x * 1
    z = y * y
    y += 1
    with pytest.raises(norch.Error, match="changed in place"):
        z.sum().backward()


def _walk_twice(x: Any) -> None:
    y = (x * x).exp().sum()
    y.backward()
    with pytest.raises(norch.Error, match="a second time"):
        y.backward()


WORK = {
    "rows": lambda x: (x * x + x.exp()).sum().backward(),
    "broadcast": lambda x: (x[:, None] * x).sum().backward(),
    "views": lambda x: x[1:][:1].exp().backward(x[:1].detach()),
    "views without a graph": lambda x: norch.no_grad()(lambda: x[1:][:1])(),
    "writes": lambda x: (x * 1).mul_(x).exp_().sum().backward(),
    "the result": lambda x: x.softmax(0).sum().backward(create_graph=True),
    "an interrupt": _interrupt,
    "a write": _write_and_walk,
    "twice": _walk_twice,
    "refused": lambda x: [pytest.raises(TypeError, REFUSED[one], x) for one in REFUSED],
}


@pytest.mark.parametrize("name", WORK)
def test_nothing_is_left_behind(name: str) -> None:
    def run(count: int) -> int:
        for _ in range(count):
            x = leaf(1.0, 2.0)
            WORK[name](x)
            x.grad = None  # with create_graph it may refer to the graph
        gc.collect()
        return sys.getallocatedblocks()

    run(20)
    storages, before = lib.norch_live_storages(), run(20)
    assert run(300) - before < 250 and lib.norch_live_storages() == storages


def test_an_interrupted_walk_can_be_taken_again() -> None:
    x = leaf(1.0, 2.0)
    calls = []

    def grad_b(g: Any, a: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return g * a

    node_class = derivative("once", ("a", "b"), grad_a=lambda g, b: g * b, grad_b=lambda g, a: grad_b(g, a))
    out = record(node_class, (x * x).detach(), (x, x)).sum()
    with pytest.raises(KeyboardInterrupt):
        out.backward()
    x.grad = None
    out.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_nodes_are_numbered_and_empty_when_they_are_made() -> None:
    first, second = Node(), Leaf(leaf(1.0))
    assert first.seq < second.seq and first.edges == ()
    for node in (first, second):
        assert node.hooks is node.metas is node._saved is None and not hasattr(node, "_stack")
    reference = weakref.ref(first)
    first.edges = (first,)  # a cycle
    del first, node
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("step", [lambda y, x: y + x, lambda y, x: y * x], ids=["edges", "saved tensors"])
def test_a_long_chain_of_nodes_is_freed_without_recursion(step: Any) -> None:
    x = leaf(1.0)
    y = step(x, x)
    first = weakref.ref(y.grad_fn)
    for _ in range(100_000):
        y = step(y, x)
    assert first() is not None
    del y
    assert first() is None


def test_there_is_one_class_of_nodes_and_one_of_views() -> None:
    x = leaf(1.0, 2.0)
    assert lib.norch_view_class() is type((x * 1)[:1]._view)
    before = Node().seq
    assert lib.norch_node_class(iter(())) in Node.__mro__ and Node().seq > before


def test_what_a_prehook_returns_gets_the_dtype_of_the_gradient() -> None:
    x = norch.ones(2, requires_grad=True)
    y = x * 3
    y.grad_fn.register_prehook(lambda gradients: (gradients[0].double() * 2,))
    y.sum().backward()
    assert x.grad.dtype is norch.float32 and x.grad.tolist() == [6.0, 6.0]
