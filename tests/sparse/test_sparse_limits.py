"""Sparse tensors at their limits: infinities, dtypes, shapes, vmap, captured steps and optimizers without a rule."""

from __future__ import annotations

import math
from typing import Any

import pytest

import norch
from norch.nn import functional as F  # noqa: N812


def test_an_infinity_stays_where_it_is() -> None:
    x = norch.sparse_coo_tensor([[1]], [math.inf], (3,))
    mask = norch.sparse_coo_tensor([[0, 1, 2]], [1.0, 1.0, 1.0], (3,))
    assert x.sparse_mask(mask).to_dense().tolist() == [0.0, math.inf, 0.0]


def test_an_attribute_of_strided_memory_is_refused() -> None:
    x = norch.sparse_coo_tensor([[1]], [1.0], (3,))
    with pytest.raises(NotImplementedError, match="nbytes: norch does not compute it of sparse tensors"):
        x.nbytes  # noqa: B018  (an attribute that raises)


def test_copies_between_dense_and_sparse_are_refused() -> None:
    x, dense = norch.sparse_coo_tensor([[1]], [1.0], (3,)), norch.ones(3)
    for to, source in ((x, dense), (dense, x)):
        with pytest.raises(NotImplementedError, match="copy_ between dense and sparse tensors"):
            to.copy_(source)
    assert dense.tolist() == [1.0, 1.0, 1.0] and x._nnz() == 1


def test_what_has_no_elements_has_no_values() -> None:
    x = norch.sparse_coo_tensor([[1]], [[1.0, 2.0]], (3, 2))
    for made in (norch.zeros_like(x), norch.empty_like(x), x.clone().zero_()):
        assert made._nnz() == 0 and made._indices().shape == (1, 0) and made._values().shape == (0, 2)


def test_a_dense_tensor_takes_the_dtype_of_a_sparse_one() -> None:
    found = norch.ones(3).to(norch.sparse_coo_tensor([[1]], [1.0], (3,), dtype=norch.float64))
    assert found.dtype == norch.float64 and not found.is_sparse and found.tolist() == [1.0, 1.0, 1.0]


def test_a_mask_of_no_element_has_a_gradient() -> None:
    x = norch.sparse_coo_tensor(norch.zeros(1, 0, dtype=norch.int64), norch.zeros(0), (3,), requires_grad=True)
    mask = norch.sparse_coo_tensor([[0, 1]], [1.0, 1.0], (3,))
    out = x.sparse_mask(mask).to_dense()
    assert out.tolist() == [0.0, 0.0, 0.0]
    out.sum().backward()
    assert x.grad is not None and x.grad._nnz() == 0


@pytest.mark.parametrize("shape", [(2, 2), (3, 1, 2), (2, 1)])
def test_addmm_does_not_grow(torch: Any, shape: tuple[int, ...]) -> None:
    for t in (norch, torch):
        row = t.sparse_coo_tensor(t.tensor([[0], [0]]), t.tensor([1.0]), (1, 2))
        for beta in (0, 1):
            with pytest.raises((RuntimeError, ValueError)):
                t.sparse.addmm(t.ones(shape), row, t.ones(2, 2), beta=beta)
        assert t.sparse.addmm(t.ones(2), row, t.ones(2, 2)).tolist() == [[2.0, 2.0]]


def test_integers_are_not_cut(torch: Any) -> None:
    for t in (norch, torch):
        whole = t.sparse_coo_tensor(t.tensor([[0, 1]]), t.tensor([1, 2]), (2,))
        half = t.sparse_coo_tensor(t.tensor([[0, 1]]), t.tensor([0.5, 0.5]), (2,))
        for write in (
            lambda x, y: x.clone().add_(y),
            lambda x, y: x.clone().mul_(0.5),
            lambda x, y: x.clone().div_(2),
            lambda x, y: x.to_dense().add_(y),
        ):
            with pytest.raises((RuntimeError, TypeError)):
                write(whole, half)
        assert whole.clone().mul_(2).to_dense().tolist() == [2, 4]


def test_sums_of_integers_are_int64(torch: Any) -> None:
    for t in (norch, torch):
        x = t.sparse_coo_tensor(t.tensor([[0, 1]]), t.tensor([2**31 - 1, 1], dtype=t.int32), (2,))
        assert t.sparse.sum(x, 0).item() == 2**31 and t.sparse.sum(x, 0).dtype == t.int64


def test_vmap_refuses_samples_that_are_sparse() -> None:
    x = norch.eye(2).to_sparse()
    with pytest.raises(NotImplementedError, match="vmap: sparse"):
        norch.vmap(lambda sample: sample.sum())(x)
    jacobian = norch.func.jacrev(lambda y: x @ y)(norch.ones(2, 1))
    assert jacobian.view(2, 2).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_compiled_step_has_sparse_gradients() -> None:
    def trained(wrap: Any) -> list[list[float]]:
        norch.manual_seed(0)
        table = norch.nn.Embedding(5, 3, sparse=True)
        opt = norch.optim.SGD(table.parameters(), lr=0.1)

        def step(index: Any) -> Any:
            opt.zero_grad()
            loss = table(index).square().sum()
            loss.backward()
            opt.step()
            return loss

        step = wrap(step)
        for k in range(6):
            step(norch.tensor([k % 5, 2 * k % 5, 0]))
        return table.weight.tolist()

    assert trained(norch.compile) == trained(lambda step: step)
    with pytest.raises(norch.errors.CaptureError, match="sparse"):
        trained(norch.capture)


def test_optimizers_of_dense_gradients(torch: Any) -> None:
    weights = []
    for t in (norch, torch):
        weight = t.nn.Parameter(t.ones(3, 2))
        opt = t.optim.LBFGS([weight], max_iter=3)

        def loss(t: Any = t, weight: Any = weight) -> Any:
            weight.grad = None
            out = t.nn.functional.embedding(t.tensor([1, 1]), weight, sparse=True).square().sum()
            out.backward()
            return out

        opt.step(loss)
        weights.append(weight.detach().numpy())
    assert abs(weights[0] - weights[1]).max() < 1e-6
    weight = norch.nn.Parameter(norch.ones(3, 2))
    F.embedding(norch.tensor([1]), weight, sparse=True).sum().backward()
    with pytest.raises(RuntimeError, match="ASGD does not support sparse"):
        norch.optim.ASGD([weight]).step()
