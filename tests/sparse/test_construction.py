"""Sparse tensors as objects: constructors, what they say of themselves, files, pickles and copies."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
from sparse_tensors import sparse

import norch
from norch import nn
from norch.errors import BoundsError, DTypeError, Error, ShapeError

# ---- what they are -----------------------------------------------------------------------------------------------

REPR = """
t.sparse_coo_tensor([[0, 1], [1, 0]], [1, 2]); t.sparse_coo_tensor((2, 3)); t.sparse_coo_tensor(size=(2, 3))
t.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3), requires_grad=True); t.zeros(2, 0, 3).to_sparse()
t.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [[3.0, -4.25], [5.0, 1e-9], [1.0, 2.0]], (2, 3, 2), dtype=t.float64)
t.tensor(3.0).to_sparse(); t.tensor(0.0).to_sparse(); t.eye(2, dtype=t.int32).to_sparse(); t.eye(2).to_sparse().bool()
t.sparse_coo_tensor(t.zeros(2, 0, dtype=t.long), t.zeros(0, 4), (2, 3, 4)); t.sparse_coo_tensor([[0]], [1j], (2,))
t.sparse_coo_tensor([[1, 0]], [1.0, 2.0]); t.eye(40).to_sparse(); t.sparse.FloatTensor(2, 3); t.sparse.FloatTensor()
t.sparse.FloatTensor(t.tensor([[0, 1], [1, 0]]), t.ones(2), t.Size([2, 2]))
t.sparse.LongTensor(t.tensor([[0]]), t.tensor([7]))
"""


@pytest.mark.parametrize("call", [one.strip() for line in REPR.strip().splitlines() for one in line.split(";")])
def test_repr(torch: Any, call: str) -> None:
    assert repr(eval(call, {"t": norch})).replace("norch.", "torch.") == repr(eval(call, {"t": torch}))
    assert str(eval(call, {"t": norch})) == f"{eval(call, {'t': norch})}"


def test_what_they_say_of_themselves() -> None:
    x = sparse(norch)
    assert isinstance(x, norch.Tensor) and norch.is_tensor(x) and x.is_sparse and not x.is_sparse_csr
    assert x.layout == norch.sparse_coo != norch.strided == norch.ones(1).layout
    assert (x.shape, x.ndim, x.dim(), x.numel(), x.size(1), len(x)) == ((2, 3), 2, 2, 6, 3, 2)
    assert (x.sparse_dim(), x.dense_dim(), x._nnz()) == (2, 0, 3) and norch.ones(2).sparse_dim() == 0
    assert x.device == norch.device("cpu") and x.is_cpu and not (x.is_cuda or x.is_meta) and x.dtype is norch.float32
    assert x.type() == "norch.sparse.FloatTensor" and not x.is_contiguous() and x.is_leaf and hash(x) == hash(x)
    assert not x.is_coalesced() and x.coalesce().is_coalesced() and x.coalesce().coalesce().is_coalesced()
    assert isinstance(x, norch.sparse.FloatTensor) and not isinstance(x, norch.sparse.LongTensor)
    assert [one.is_sparse for one in x] == [True, True] and [
        one.to_dense().tolist() for one in x
    ] == x.to_dense().tolist()


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (BoundsError, {"indices": [[0, 2], [0, 1]], "values": [1.0, 2.0]}),
        (BoundsError, {"indices": [[0, -1], [0, 1]], "values": [1.0, 2.0]}),
        (ShapeError, {"values": [1.0, 2.0]}),
        (ShapeError, {"shape": (2, 3, 4)}),
        (ShapeError, {"shape": (2,)}),
        (ShapeError, {"indices": [0, 1, 2]}),
        (ShapeError, {"values": [[1.0, 2.0]] * 3, "shape": (2, 3, 3)}),
        (DTypeError, {"indices": [[0.5, 1, 1], [2, 0, 2]]}),
        (Error, {"indices": [[1, 0, 1], [2, 0, 2]], "is_coalesced": True}),
        (ShapeError, {"shape": (-2, 3)}),
        (Exception, {"dtype": norch.int64, "requires_grad": True}),
    ],
)
def test_arguments_that_do_not_fit(error: Any, how: Any) -> None:
    with pytest.raises(error, match="sparse_coo_tensor: "):
        sparse(norch, **how)


def test_other_arguments() -> None:
    with pytest.raises(TypeError):
        norch.sparse_coo_tensor()
    with pytest.raises((TypeError, NotImplementedError), match="sparse"):
        norch.sparse_coo_tensor(norch.tensor([[0, 1]]), norch.ones(2).to_sparse())
    with pytest.raises(NotImplementedError, match="sparse_bsr"):
        norch.ones(2, 2).to_sparse(layout=norch.sparse_bsr)
    for call in (nn.Parameter, norch.Tensor, lambda x: x.as_subclass(nn.Parameter)):
        with pytest.raises((TypeError, NotImplementedError), match="sparse"):
            call(sparse(norch))
    dense = norch.ones(2, 3)
    with pytest.raises(TypeError, match="sparse"):
        dense.data = sparse(norch)
    assert (
        sparse(norch, indices=((0.0, 1.0, 1.0), (2.0, 0.0, 2.0))).to_dense().tolist()
        == sparse(norch).to_dense().tolist()
    )
    with norch.sparse.check_sparse_tensor_invariants():
        assert norch.sparse.check_sparse_tensor_invariants.is_enabled()
    assert not norch.sparse.check_sparse_tensor_invariants.is_enabled()


@pytest.mark.parametrize("dtype", "bool uint8 int32 int64 float16 bfloat16 float32 float64 complex64".split())
def test_dtypes(dtype: str) -> None:
    values = norch.tensor([1, 1, 3]).to(getattr(norch, dtype))
    x = norch.sparse_coo_tensor([[1, 1, 0]], values, (3,))
    dense = norch.tensor([3, 2, 0]).to(values.dtype)
    assert (x.to_dense() == dense).all() and x.coalesce()._nnz() == 2 and x.to_dense().dtype is values.dtype
    assert (x.coalesce().to_dense() == dense).all() and (dense.to_sparse().to_dense() == dense).all()
    if dtype != "bool":
        assert ((x + x).to_dense() == dense + dense).all() and ((x * 2).to_dense() == dense * 2).all()
        assert (x.unsqueeze(0) @ norch.ones(3, 1).to(values.dtype)).item() == 5


def test_large_sizes_hold_no_elements() -> None:
    x = norch.sparse_coo_tensor([[5, 10**8], [7, 10**8]], [1.0, 2.0], (2 * 10**8, 2 * 10**8))
    assert (x + x).coalesce().values().tolist() == [2, 4] and x.t()[7]._nnz() == 1 and x.sum().item() == 3


# ---- files and copies --------------------------------------------------------------------------------------------


def same(a: Any, b: Any) -> bool:
    return bool(
        a.is_sparse and a.shape == b.shape and a.is_coalesced() == b.is_coalesced() and a.dtype is b.dtype
        and (a._indices() == b._indices()).all() and (a._values() == b._values()).all()
    )  # fmt: skip


@pytest.mark.parametrize("form", ["norch", "torch"])
def test_files(torch: Any, form: str) -> None:
    x, y = sparse(norch), norch.eye(3).to_sparse().double()
    file = io.BytesIO()
    norch.save({"x": x, "y": y}, file, format=form)
    file.seek(0)
    found = norch.load(file)
    assert same(found["x"], x) and same(found["y"], y)
    if form == "torch":
        file.seek(0)
        there = torch.load(file, weights_only=True)
        assert there["x"].is_sparse and there["y"].is_coalesced() and there["y"].dtype is torch.float64
        assert there["x"].to_dense().tolist() == x.to_dense().tolist()
        file = io.BytesIO()
        torch.save(there, file)
        file.seek(0)
        found = norch.load(file)
        assert same(found["x"], x) and same(found["y"], y)


def test_files_with_bad_indices_are_refused() -> None:
    for parts in (
        ([[5]], [1.0], (2,), False),
        ([[1, 0]], [1.0, 2.0], (2,), True),
        ([[1, 0]], [1.0], (2,), False),
    ):
        file = io.BytesIO()
        bad = norch.sparse_coo_tensor([[0]], [1.0], (2,))
        bad._coordinates, bad._stored, _, bad._sorted = norch.tensor(parts[0]), norch.tensor(parts[1]), None, parts[3]
        norch.save(bad, file)
        file.seek(0)
        with pytest.raises(Error):
            norch.load(file)
    file = io.BytesIO()
    bad._coordinates, bad._stored = norch.zeros(1, 1, dtype=norch.int64).expand(1, 10**12), norch.ones(1).expand(10**12)
    norch.save(bad, file)
    file.seek(0)
    with pytest.raises(Error, match="larger than its storage"):
        norch.load(file)


class Graph(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("adjacency", sparse(norch))
        self.linear = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.linear(self.adjacency @ x)


def test_buffers_of_modules() -> None:
    model, other = Graph().double(), Graph()
    assert model.adjacency.dtype is norch.float64
    other.adjacency = sparse(norch, values=(0.0, 0.0, 0.0))
    other.load_state_dict(model.state_dict())
    x = norch.rand(3, 3)
    norch.testing.assert_close(other(x), model(x.double()).float())
    copied = copy.deepcopy(model)
    assert same(copied.adjacency, model.adjacency) and copied.adjacency is not model.adjacency
    assert same(pickle.loads(pickle.dumps(model.adjacency)), model.adjacency)
