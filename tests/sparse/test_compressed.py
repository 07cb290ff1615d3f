"""Matrices of the layouts sparse_csr and sparse_csc, beside PyTorch's."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
from conftest import torch_or_skip

import norch

torch = torch_or_skip()
DENSE = [[0.0, 2.0, 0.0], [3.0, 0.0, 4.0], [0.0, 0.0, 0.0], [5.0, 0.0, 0.0]]
LAYOUTS = ["to_sparse_csr", "to_sparse_csc"]

CALLS: dict[str, Any] = {
    "repr": lambda lib, a: repr(a).replace("norch.", "torch."),
    "facts": lambda lib, a: (a.is_sparse, a.is_sparse_csr, tuple(a.shape), a._nnz(), a.sparse_dim(), a.dense_dim()),
    "layout": lambda lib, a: str(a.layout).rpartition(".")[2],
    "values": lambda lib, a: a.values(),
    "to_dense": lambda lib, a: a.to_dense(),
    "vector": lambda lib, a: a @ lib.ones(3),
    "product": lambda lib, a: lib.mm(a, lib.arange(6.0).view(3, 2)),
    "from the left": lambda lib, a: lib.ones(2, 4) @ a,
    "sparse.mm": lambda lib, a: lib.sparse.mm(a, lib.ones(3, 1)),
    "addmm": lambda lib, a: lib.addmm(lib.ones(4, 2), a, lib.ones(3, 2)),
    "of both": lambda lib, a: a.to_sparse_csr() @ lib.tensor(DENSE).T.contiguous().to_sparse_csr(),
    "t": lambda lib, a: a.t(),
    "transpose": lambda lib, a: a.transpose(0, 1),
    "scaled": lambda lib, a: a * 2,
    "negative": lambda lib, a: -a,
    "sin": lambda lib, a: a.sin(),
    "sum of two": lambda lib, a: a + a,
    "sum": lambda lib, a: a.sum(),
    "row": lambda lib, a: a[1],
    "last row": lambda lib, a: a[-1],
    "element": lambda lib, a: a[0, 2],
    "select": lambda lib, a: a.select(1, 1),
    "to_sparse": lambda lib, a: a.to_sparse(),
    "csr": lambda lib, a: a.to_sparse_csr(),
    "csc": lambda lib, a: a.to_sparse_csc(),
    "of a layout": lambda lib, a: a.to_sparse(layout=lib.sparse_csr),
    "double": lambda lib, a: a.double(),
    "clone": lambda lib, a: a.clone().detach(),
    "a module's": lambda lib, a: module_with(lib, a).state_dict()["a"],
}


def module_with(lib: Any, a: Any) -> Any:
    module = lib.nn.Module()
    module.register_buffer("a", a)
    return module.double()


def plain(x: Any) -> Any:
    """Of a tensor the layout, the dtype and the parts; anything else as it is."""
    if not isinstance(x, norch.Tensor | torch.Tensor):
        return x
    layout = str(x.layout).rpartition(".")[2]
    parts = {
        "strided": ("tolist",),
        "sparse_coo": ("_indices", "_values"),
        "sparse_csr": ("crow_indices", "col_indices", "values"),
        "sparse_csc": ("ccol_indices", "row_indices", "values"),
    }[layout]
    said = [getattr(x, part)() for part in parts]
    return (
        layout,
        str(x.dtype)[6:],
        tuple(x.shape),
        [part if isinstance(part, list | float) else part.tolist() for part in said],
    )


@pytest.mark.parametrize("convert", LAYOUTS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_like_torch(call: str, convert: str) -> None:
    found, wanted = (plain(CALLS[call](lib, getattr(lib.tensor(DENSE), convert)())) for lib in (norch, torch))
    assert found == wanted


@pytest.mark.parametrize("convert", LAYOUTS)
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_copies_and_files(convert: str) -> None:
    a = getattr(norch.tensor(DENSE), convert)()
    for b in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert plain(b) == plain(a) and b.values().data_ptr() != a.values().data_ptr()
    own = io.BytesIO()
    norch.save({"a": a}, own)
    own.seek(0)
    assert plain(norch.load(own)["a"]) == plain(a)
    files = []
    for lib in (norch, torch):
        files.append(io.BytesIO())
        lib.save({"a": getattr(lib.tensor(DENSE), convert)()}, files[-1], **{"format": "torch"} if lib is norch else {})
        files[-1].seek(0)
    assert plain(norch.load(files[1])["a"]) == plain(torch.load(files[0])["a"]) == plain(a)


@pytest.mark.parametrize("convert", LAYOUTS)
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_sums_of_elements_at_other_places(convert: str) -> None:
    of_a, of_b = norch.tensor(DENSE), norch.tensor(DENSE).flip(1)
    a, b = (getattr(x, convert)() for x in (of_a, of_b))
    for found, dense in ((a + b, of_a + of_b), (norch.sub(a, b, alpha=2), of_a - 2 * of_b)):
        assert found.layout is a.layout and found._nnz() == 5  # three of them in both
        assert plain(found.to_dense()) == plain(dense)
    if convert == "to_sparse_csr":  # PyTorch has no other sums
        of_torch = torch.tensor(DENSE).to_sparse_csr() + torch.tensor(DENSE).flip(1).to_sparse_csr()
        assert plain(a + b) == plain(of_torch)


@pytest.mark.parametrize("name, by", [("sparse_csr_tensor", 0), ("sparse_csc_tensor", 1)])
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_gradients(name: str, by: int) -> None:
    """Those of the values, of the dense factor, and of the values read back."""
    of = []
    for lib in (norch, torch):
        values, b = lib.tensor([3.0, 4.0, 5.0], requires_grad=True), lib.ones(3, 2, requires_grad=True)
        a = getattr(lib, name)(lib.tensor([0, 1, 3]), lib.tensor([2, 0, 1]), values, (3, 2) if by else (2, 3))
        ((a.to_dense() if by else a) @ (b[:2] if by else b)).pow(2).sum().backward()
        of.append([values.grad.tolist(), b.grad.tolist()])
    assert of[0] == of[1]
    values = norch.tensor([3.0, 4.0, 5.0], requires_grad=True)
    a = getattr(norch, name)([0, 1, 3], [2, 0, 1], values)
    (a.values() * norch.arange(3.0)).sum().backward()
    assert values.grad is not None and values.grad.tolist() == [0.0, 1.0, 2.0]
    leaf = getattr(norch, name)([0, 1, 3], [2, 0, 1], [3.0, 4.0, 5.0], requires_grad=True, dtype=norch.float64)
    assert leaf.is_leaf and leaf.requires_grad and leaf.dtype is norch.float64


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_columns_that_do_not_ascend_and_repeat() -> None:
    """As SciPy may give them: the values stay in the given order, and duplicates add up."""
    given = ([0, 3, 4], [2, 0, 2, 1], [1.0, 2.0, 3.0, 4.0], (2, 3))
    a, b = norch.sparse_csr_tensor(*given), torch.sparse_csr_tensor(*given)
    assert a.values().tolist() == b.values().tolist() and a.col_indices().tolist() == b.col_indices().tolist()
    assert (a @ norch.arange(3.0)).tolist() == (b @ torch.arange(3.0)).tolist() == [8.0, 4.0]
    assert a.to_dense().tolist() == [[2.0, 0.0, 4.0], [0.0, 4.0, 0.0]]


@pytest.mark.parametrize(
    "given, error, message",
    [
        (([0, 1, 3], [2, 0, 1], [3.0, 4.0]), norch.ShapeError, "same nnz"),
        (([0, 2, 1], [2, 0, 1], [3.0, 4.0, 5.0]), norch.BoundsError, "must rise from 0 to 3"),
        (([1, 2, 3], [2, 0, 1], [3.0, 4.0, 5.0]), norch.BoundsError, "must rise from 0 to 3"),
        (([0, 1, 3], [2, 0, 1], [3.0, 4.0, 5.0], (3, 3)), norch.ShapeError, "first indices for a size"),
        (([0, 1, 3], [2, 0, 3], [3.0, 4.0, 5.0], (2, 3)), norch.BoundsError, r"in \[0, 3\)"),
        (([0, 1, 3], [2, -1, 1], [3.0, 4.0, 5.0], (2, 3)), norch.BoundsError, r"in \[0, 3\)"),
        (([[0, 1]], [[0]], [[1.0]]), norch.ShapeError, "three vectors"),
        (([0.0, 1.0], [0], [1.0]), norch.DTypeError, "int32 or int64"),
    ],
)
def test_errors(given: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=f"sparse_csr_tensor: .*{message}"):
        norch.sparse_csr_tensor(*given)


def test_what_is_refused() -> None:
    a = norch.tensor(DENSE).to_sparse_csr()
    for call in (
        lambda: a.exp(),
        lambda: norch.cat([a, a]),
        lambda: a.view(-1),
        lambda: norch.softmax(a, 0),
        lambda: a.add_(a),
        lambda: a[:2],
        lambda: a[True],
        lambda: a[0, :1],
    ):
        with pytest.raises(NotImplementedError, match="sparse_csr and sparse_csc"):
            call()
    for call in (a.coalesce, a.indices, a.ccol_indices, norch.ones(2, 2).crow_indices):
        with pytest.raises(norch.Error, match="expected a tensor of the layout"):
            call()
    with pytest.raises(norch.ShapeError, match="expected a matrix"):
        norch.ones(2).to_sparse_csr()
    for call in (lambda: norch.ones(2, 2).to_sparse_csr(dense_dim=1), norch.ones(2, 2).to_sparse(1).to_sparse_csc):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(TypeError, match="Sparse layout tensor to numpy"):
        a.numpy()
