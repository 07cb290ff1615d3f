"""Edges of the graph in the place of tensors: graph.GradientEdge as outputs and inputs of grad() and backward()."""

import weakref

import pytest
from functions import leaf

import norch
from norch.autograd import backward, grad
from norch.autograd.graph import GradientEdge, get_gradient_edge


def test_edges_give_the_gradients_of_their_tensors():
    x = leaf([1.0, 2.0])
    y = x * x
    z = (y * 3).sum()
    edges = [get_gradient_edge(t) for t in (x, y)]
    wanted = grad(z, [x, y], retain_graph=True)
    for output in (z, get_gradient_edge(z)):
        found = grad(output, edges, retain_graph=True)
        assert all(norch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    (made,) = grad(GradientEdge(z.grad_fn, 0), GradientEdge(z.grad_fn.next_functions[0][0], 0), norch.ones(()), True)
    assert made.tolist() == [1, 1]
    (first,) = grad(get_gradient_edge(z), x, create_graph=True)
    assert grad(first.sum(), x)[0].tolist() == [6, 6]


def test_an_edge_equals_edges_alone():
    edge = get_gradient_edge(leaf([1.0]))
    assert edge == GradientEdge(*edge[:2]) and edge != tuple(edge[:2]) and edge != 0


def test_backward_and_materialized():
    x, w = leaf([1.0, 2.0]), leaf([3.0])
    backward(get_gradient_edge((x * x).sum()), inputs=[get_gradient_edge(x)])
    assert x.grad.tolist() == [2, 4]
    out = get_gradient_edge((x * 2).sum())
    assert grad(out, get_gradient_edge(w), allow_unused=True, retain_graph=True) == (None,)
    assert grad(out, get_gradient_edge(w), materialize_grads=True)[0].tolist() == [0]


def test_an_edge_does_not_keep_the_elements():
    x = leaf([1.0, 2.0])
    y = x + 1
    edge, gone = get_gradient_edge(y), weakref.ref(y)
    del y
    assert gone() is None
    assert grad(edge, x, norch.ones(2))[0].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("walk", "error", "says"),
    [
        (lambda x, y: grad(get_gradient_edge(y), x), norch.errors.ShapeError, "shape (2,)"),
        (lambda x, y: grad(GradientEdge(y.grad_fn, 0), x), norch.errors.ShapeError, "MulBackward"),
        (lambda x, y: grad(get_gradient_edge(y), x, norch.ones(3)), norch.errors.ShapeError, "(3,)"),
        (lambda x, y: backward(y.sum(), inputs=[get_gradient_edge(y)]), norch.Error, "no .grad"),
        (lambda x, y: get_gradient_edge(norch.ones(1)), norch.Error, "does not require grad"),
        (lambda x, y: get_gradient_edge(1.0), TypeError, "float"),
        (lambda x, y: grad(y.sum(), GradientEdge(leaf([1.0]).exp().grad_fn, 0), materialize_grads=True), norch.Error,
         "shape"),
    ],
)  # fmt: skip
def test_what_an_edge_cannot_say_is_refused(walk, error, says):
    x = leaf([1.0, 2.0])
    with pytest.raises(error) as caught:
        walk(x, x * x)
    assert says in str(caught.value) and x.grad is None


def test_edges_are_equal_by_node():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    (inner, number), *_ = y.grad_fn.next_functions
    (to_x, _), *_ = inner.next_functions
    assert type(to_x).__name__ == "AccumulateGrad" and to_x.variable is x
    assert GradientEdge(to_x, 0) == get_gradient_edge(x) and len({GradientEdge(to_x, 0), get_gradient_edge(x)}) == 1
    assert GradientEdge(inner, number) != get_gradient_edge(x)


def test_iterables_of_tensors():
    """Parameters come from a generator, as those of a module do."""
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    outputs = [x * y, x * x]
    for made in (list, tuple, iter, lambda tensors: dict(enumerate(tensors)).values()):
        ones = made([norch.ones(2), norch.ones(2)])
        found = grad(made(outputs), made([x, y]), ones, retain_graph=True)
        assert [g.tolist() for g in found] == [[5, 8], [1, 2]]
        x.grad = y.grad = None
        backward(made(outputs), made([norch.ones(2)] * 2), retain_graph=True, inputs=made([x, y]))
        assert x.grad.tolist() == [5, 8] and y.grad.tolist() == [1, 2]
    x.grad = None
    (x * 2).sum().backward(inputs=iter([x]))
    assert x.grad.tolist() == [2, 2]


def test_materialized_gradients_are_derived_again():
    x = leaf(0.5)
    (first,) = grad(x * leaf(1.0), x, create_graph=True)
    (second,) = grad(first, x, create_graph=True, materialize_grads=True)
    assert second.item() == 0 and second.requires_grad
    (third,) = grad(second, x, materialize_grads=True)
    assert third.item() == 0 and not third.requires_grad


def test_a_root_s_gradient_of_the_other_kind_is_refused():
    x = leaf([1.0, 2.0])
    y = x.sin().sum()
    edge, z = get_gradient_edge(y), norch.ones((), dtype=norch.complex64)
    for root in (y, edge):
        with pytest.raises(TypeError, match="complex64 for a tensor of dtype float64"):
            grad(root, x, z, retain_graph=True)
        (found,) = grad(root, x, norch.ones((), dtype=norch.float32), retain_graph=True)
        assert found.dtype is norch.float64
    with pytest.raises(TypeError, match="float32 for a tensor of dtype complex"):
        grad((x * z).sum(), x, norch.ones(()))
