"""nn.Embedding and functional.embedding: values, which rows get gradients, PyTorch's options, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import norch
import norch.nn.functional as F  # noqa: N812
from norch import nn
from norch.testing import assert_close, gradcheck, gradgradcheck

TABLE = np.random.default_rng(5).normal(size=(6, 3))
INDEX = np.array([[1, 2, 2], [5, 1, 1]])


@pytest.mark.parametrize("name", ["int32", "int64"])
def test_rows(name: str) -> None:
    index = norch.tensor(INDEX, dtype=getattr(norch, name))
    assert_close(F.embedding(index, norch.tensor(TABLE)), TABLE[INDEX])
    assert_close(F.embedding(index[0, 0], norch.tensor(TABLE)), TABLE[1])
    assert F.embedding(index[:0], norch.tensor(TABLE)).shape == (0, 3, 3)
    assert_close(F.embedding(index, norch.tensor(TABLE.T.copy()).T), TABLE[INDEX])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"padding_idx": 1},
        {"padding_idx": -1},
        {"scale_grad_by_freq": True},
        {"padding_idx": 2, "scale_grad_by_freq": True},
        {"max_norm": 1.0},
        {"max_norm": 0.7, "norm_type": 1.0, "padding_idx": 5},
        {"max_norm": 0.8, "norm_type": float("inf")},
        {"max_norm": 0.3, "norm_type": float("-inf")},
        {"max_norm": 2.0, "norm_type": 0.0},
        {"max_norm": 0.7, "norm_type": -1.0},
    ],
    ids=str,
)
def test_like_torch(torch: Any, options: dict[str, Any]) -> None:
    theirs, ours = torch.tensor(TABLE, requires_grad=True), norch.tensor(TABLE, requires_grad=True)
    for module, x in ((torch, theirs), (norch, ours)):
        out = module.nn.functional.embedding(module.tensor(INDEX), x, **options)
        (out * out).sum().backward()
    assert_close(ours.detach(), theirs.detach().numpy())
    assert_close(ours.grad, theirs.grad.numpy())


def test_derivatives() -> None:
    x = norch.tensor(TABLE, requires_grad=True)
    assert gradcheck(lambda x: F.embedding(norch.tensor(INDEX), x), x)
    assert gradgradcheck(lambda x: F.embedding(norch.tensor(INDEX), x, 1).square(), x)


def test_module() -> None:
    norch.manual_seed(0)
    layer = nn.Embedding(50, 8, padding_idx=-2)
    assert layer.padding_idx == 48 and layer.weight[48].tolist() == [0.0] * 8
    assert 0.8 < layer.weight.std().item() < 1.2
    assert repr(layer) == "Embedding(50, 8, padding_idx=48)"
    layer(norch.tensor([[1, 48], [1, 3]])).sum().backward()
    grad = np.zeros((50, 8), np.float32)
    grad[1], grad[3] = 2, 1
    assert_close(layer.weight.grad, grad)
    frozen = nn.Embedding.from_pretrained(norch.tensor(TABLE))
    assert not frozen.weight.requires_grad and frozen.num_embeddings == 6
    assert nn.Embedding.from_pretrained(norch.tensor(TABLE), freeze=False).weight.requires_grad
    again = nn.Embedding(50, 8)
    again.load_state_dict(layer.state_dict())
    assert_close(again.weight, layer.weight)


@pytest.mark.host  # a CUDA device says it when it is waited for
def test_indices_out_of_range() -> None:
    x = norch.tensor(TABLE)
    for wrong in (6, -1, 1 << 40):
        with pytest.raises(IndexError, match=f"embedding: index {wrong} is out of range for size 6 at dimension 0"):
            F.embedding(norch.tensor([0, wrong]), x)


def test_errors() -> None:
    x = norch.tensor(TABLE)
    with pytest.raises(norch.DTypeError, match="integers, not float32"):
        F.embedding(norch.tensor([1.0]), x)
    with pytest.raises(norch.ShapeError, match="2 dimensions"):
        F.embedding(norch.tensor([1]), x[0])
    with pytest.raises(NotImplementedError, match="sparse"):
        F.embedding(norch.tensor([1]), x, scale_grad_by_freq=True, sparse=True)
    with pytest.raises(TypeError, match="list"):
        F.embedding([1], x)  # type: ignore[arg-type]
    for make in (lambda: F.embedding(norch.tensor([1]), x, 6), lambda: nn.Embedding(3, 2, padding_idx=3)):
        with pytest.raises(ValueError, match="padding_idx"):
            make()
    with pytest.raises(norch.ShapeError):
        nn.Embedding(3, 2, _weight=x)
