"""Sparse tensors in programs: gradients in a graph, embeddings, optimizers, captures, graph networks."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sparse_tensors import both, sparse

import norch
from norch import nn
from norch.errors import CaptureError, Error

# ---- gradients ---------------------------------------------------------------------------------------------------


def test_leaves_have_sparse_gradients(torch: Any) -> None:
    def program(t: Any) -> Any:
        x = sparse(t, requires_grad=True)
        weight = t.ones(3, 2, requires_grad=True)
        (t.sparse.mm(x, weight) ** 2).sum().backward()
        t.sparse.sum(x * x).backward()
        assert x.grad.is_sparse and not weight.grad.is_sparse and x.is_leaf
        (g,) = t.autograd.grad(t.sparse.mm(x, weight).sum(), x)
        assert g.is_sparse
        return x.grad, weight.grad, g

    both(torch, program)


def test_duplicates_get_each_the_gradient_of_their_element(torch: Any) -> None:
    def program(t: Any) -> Any:
        values = t.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        x = t.sparse_coo_tensor(t.tensor([[1, 0, 1, 1], [0, 1, 0, 1]]), values, (2, 2))
        (t.sparse.mm(x, t.eye(2)) ** 2).sum().backward(retain_graph=True)
        first = values.grad.clone()
        (x.to_dense() ** 2).sum().backward()
        return first, values.grad

    both(torch, program)


def test_gradients_of_a_gradient() -> None:
    values, weight = norch.tensor([3.0, 4.0, 5.0], requires_grad=True), norch.ones(3, 2, requires_grad=True)
    x = sparse(norch, values=(1.0, 1.0, 1.0)) * values.new_tensor(1.0)
    x = norch.sparse_coo_tensor(x._indices(), values, (2, 3))
    (g,) = norch.autograd.grad((x @ weight).pow(3).sum(), values, create_graph=True)
    g.sum().backward()
    d, dw = values.detach().clone().requires_grad_(), weight.detach().clone().requires_grad_()
    dense = norch.zeros(2, 3).index_put(tuple(x._indices()), d)
    (h,) = norch.autograd.grad((dense @ dw).pow(3).sum(), d, create_graph=True)
    h.sum().backward()
    norch.testing.assert_close(g, h)
    norch.testing.assert_close(values.grad, d.grad)
    norch.testing.assert_close(weight.grad, dw.grad)


def test_a_sparse_tensor_through_a_function_of_its_own() -> None:
    class Twice(norch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.to_dense() * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            assert x.is_sparse
            return (g * 2).sparse_mask(x.coalesce())

    values = norch.tensor([3.0, 4.0, 5.0], requires_grad=True)
    x = norch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], values, (2, 3))
    Twice.apply(x).sum().backward()
    assert values.grad.tolist() == [2, 2, 2]


def test_hooks_and_gradients_given() -> None:
    x = sparse(norch, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.is_sparse))
    y = x * 2
    with pytest.raises(Error, match="sparse"):
        y.backward()
    y.backward(sparse(norch))
    assert seen == [True] and x.grad.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]


def test_in_place(torch: Any) -> None:
    def program(t: Any) -> Any:
        x, y = sparse(t), sparse(t, indices=((0, 1, 0), (2, 1, 1)))
        first = x.clone().add_(y), x.clone().sub_(y, alpha=2), x.clone().mul_(2), x.clone().div_(4), x.clone().neg_()
        second = t.ones(2, 3).add_(y, alpha=3), t.ones(2, 3).sub_(y), x.clone().zero_(), x.clone().mul_(y)
        third = y.clone().copy_(x)
        x += y
        dense = t.ones(2, 3)
        dense += y
        seen = x.coalesce()
        seen.values().mul_(2)
        x.data.mul_(3)
        return *first, *second, third, x, dense, seen

    both(torch, program)
    x = sparse(norch, requires_grad=True)
    for write in (x.mul_, x.add_, (x * 2).add_):
        with pytest.raises(Error, match="in place"):
            write(sparse(norch) if write != x.mul_ else 2)


# ---- embeddings and optimizers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("padding", [None, 1])
def test_embedding_gradients(torch: Any, padding: Any) -> None:
    def program(t: Any) -> Any:
        weight = t.arange(12.0).reshape(4, 3).requires_grad_()
        index = t.tensor([[0, 1], [3, 3]])
        F = t.nn.functional
        F.embedding(index, weight, padding, sparse=True).pow(2).sum().backward()
        assert weight.grad.is_sparse and (weight.grad.sparse_dim(), weight.grad.dense_dim()) == (1, 1)
        first = weight.grad.clone()
        F.embedding(index, weight, padding, sparse=True).sum().backward()
        second = weight.grad.clone()
        (weight * 2).sum().backward()  # now dense
        assert not weight.grad.is_sparse
        F.embedding(index, weight, padding, sparse=True).sum().backward()
        F.embedding(index, weight * 3, padding, sparse=True).sum().backward()
        bag = F.embedding_bag(index, weight, mode="sum", sparse=True)
        (g,) = t.autograd.grad(bag.sum(), weight)
        assert g.is_sparse
        return first, second, weight.grad, g, bag

    both(torch, program)


OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
    ("SparseAdam", {"lr": 0.1}),
    ("SparseAdam", {"lr": 0.1, "betas": (0.5, 0.7), "eps": 1e-3, "maximize": True}),
]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_steps(torch: Any, name: str, options: Any) -> None:
    def program(t: Any) -> Any:
        tables = [t.nn.Embedding(5, 3, sparse=True) for _ in range(2)]
        linear = t.nn.Linear(3, 2)
        for k, p in enumerate([*(one.weight for one in tables), *linear.parameters()]):
            p.data = (t.arange(float(p.numel())) + k).sin().reshape(p.shape)
        params = [one.weight for one in tables]
        opt = getattr(t.optim, name)(params if name == "SparseAdam" else [*params, *linear.parameters()], **options)
        for step, index in enumerate([[0, 2], [2, 1], [4, 4], [0, 3]]):
            opt.zero_grad(set_to_none=step != 2)
            rows = tables[0](t.tensor(index)) if step % 2 else tables[0](t.tensor(index)) * tables[1](t.tensor(index))
            linear(rows).pow(2).sum().backward()
            opt.step()
        again = getattr(t.optim, name)(opt.param_groups[0]["params"], **options)
        again.load_state_dict(copy.deepcopy(opt.state_dict()))
        again.step()
        return [*params, *linear.parameters()]

    both(torch, program)


def test_a_step_after_the_state_was_cleared() -> None:
    found = []
    for clears in (False, True):
        table = nn.Embedding.from_pretrained(norch.ones(3, 2), freeze=False, sparse=True)
        opt = norch.optim.Adagrad(table.parameters(), lr=0.1)
        if clears:
            opt.state.clear()
        table(norch.tensor([1])).sum().backward()
        opt.step()
        found.append(table.weight.tolist())
    assert found[0] == found[1]


def test_optimizers_without_sparse_gradients_refuse() -> None:
    table = nn.Embedding(3, 2, sparse=True)
    before = table.weight.detach().clone()
    for name in ("Adam", "AdamW", "RMSprop", "Adadelta", "NAdam", "Rprop"):
        opt = getattr(norch.optim, name)(table.parameters())
        table.weight.grad = None
        table(norch.tensor([1])).sum().backward()
        with pytest.raises(Error, match=f"{name} does not support sparse gradients"):
            opt.step()
    for name in ("SGD", "Adagrad"):
        with pytest.raises(Error, match="weight_decay"):
            getattr(norch.optim, name)(table.parameters(), lr=0.1, weight_decay=0.1).step()
    table.weight.grad = norch.ones(3, 2)
    with pytest.raises(Error, match="dense gradients"):
        norch.optim.SparseAdam(table.parameters()).step()
    with pytest.raises(ValueError, match="dense parameter"):
        norch.optim.SparseAdam([sparse(norch, requires_grad=True)])
    assert (table.weight == before).all()


def test_a_slice_beside_a_sparse_gradient() -> None:
    weight = norch.ones(4, 2, requires_grad=True)
    for order in (0, 1):
        weight.grad = None
        terms = [nn.functional.embedding(norch.tensor([1, 1]), weight, sparse=True).sum(), weight[1:3].sum() * 3]
        for term in terms[:: 1 - 2 * order]:
            term.backward()
        assert weight.grad.tolist() == [[0, 0], [5, 5], [3, 3], [0, 0]]
    weight.grad = None
    (terms[0] * 0 + sum(
        [nn.functional.embedding(norch.tensor([1, 1]), weight, sparse=True).sum(), weight[1:3].sum() * 3]
    )).backward()  # fmt: skip
    assert weight.grad.to_dense().tolist() == [[0, 0], [5, 5], [3, 3], [0, 0]]


def test_norms_of_gradients_are_clipped() -> None:
    found = []
    for is_sparse in (True, False):
        weight = norch.arange(12.0).reshape(4, 3).requires_grad_()
        nn.functional.embedding(norch.tensor([0, 3, 3]), weight, sparse=is_sparse).sum().backward()
        norm = nn.utils.clip_grad_norm_([weight], 1.0)
        found.append((norm, weight.grad.to_dense()))
    norch.testing.assert_close(*found)


# ---- what runs functions otherwise -------------------------------------------------------------------------------


def test_captured_functions_see_other_elements() -> None:
    captured = norch.capture(lambda a, x: a @ x)
    x = norch.ones(3, 1)
    for values in ((3.0, 4.0, 5.0), (1.0, 1.0, 2.0), (7.0, 8.0, 9.0)):
        a = sparse(norch, values=values)
        try:
            assert captured(a, x).flatten().tolist() == [values[0], values[1] + values[2]]
        except CaptureError as error:
            assert "sparse" in str(error)  # noqa: PT017
    kept = [sparse(norch)]
    closed = norch.capture(lambda x: kept[0] @ x)
    for k in range(3):
        kept[0] = sparse(norch, values=(1.0, 1.0 * k, 0.0))
        try:
            assert closed(x).flatten().tolist() == [1, k]
        except CaptureError:
            continue
    compiled = norch.compile(lambda a, x: (a * 2) @ x)
    for k in range(3):
        assert compiled(sparse(norch, values=(1.0, 1.0 * k, 0.0)), x).flatten().tolist() == [2, 2 * k]


def test_contexts_of_overrides() -> None:
    class Named(norch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    seen: list[str] = []
    x, dense = sparse(norch), norch.ones(2, 3)

    def used() -> Any:
        kept = dense.sparse_mask(x) + dense.to_sparse() * x
        return (kept @ norch.ones(3, 1)).sum() + x.to_sparse().to_dense().sum() + len(x) + x.shape[1]

    wanted = used()
    with Named():
        assert used() == wanted and "sparse_mask" in seen and "matmul" in seen
    with norch.overrides.DisableTorchFunctionSubclass():
        assert used() == wanted
    with norch.overrides.DisableTorchFunction():
        assert used() == wanted
    assert norch.Tensor.coalesce(x).is_coalesced() and norch.Tensor.to_dense(x).tolist() == x.to_dense().tolist()


def test_vmap_does_not_go_wrong() -> None:
    a, xs = sparse(norch), norch.rand(4, 3, 2)
    try:
        found = norch.vmap(lambda x: a @ x)(xs)
    except Exception as error:
        assert str(error)  # noqa: PT017
    else:
        norch.testing.assert_close(found, norch.stack([a @ x for x in xs]))


def test_no_meta_tensor_comes_out_of_a_layer() -> None:
    for layer in (nn.ReLU(), nn.Tanh(), nn.Linear(3, 2), nn.Identity(), nn.Sequential(nn.Linear(3, 3), nn.ReLU())):
        assert not layer(sparse(norch)).is_meta
    for layer in (
        nn.Sigmoid(),
        nn.Flatten(0),
        nn.Softmax(1),
        nn.LayerNorm(3),
        nn.Dropout(),
        nn.PReLU(),
        nn.Conv1d(2, 2, 1),
    ):
        with pytest.raises(NotImplementedError, match="sparse tensors"):
            layer(sparse(norch))


# ---- programs ----------------------------------------------------------------------------------------------------


def edges(t: Any, nodes: int = 12) -> Any:
    rng = np.random.default_rng(5)
    pairs = {(int(a), int(b)) for a, b in rng.integers(0, nodes, (30, 2))} | {(k, k) for k in range(nodes)}
    rows, columns = np.array(sorted({*pairs, *((b, a) for a, b in pairs)})).T
    degree = np.bincount(rows, minlength=nodes)
    values = (1 / np.sqrt(degree[rows] * degree[columns])).astype(np.float32)
    return t.sparse_coo_tensor(t.from_numpy(np.stack([rows, columns])), t.from_numpy(values), t.Size([nodes, nodes]))


def filled(t: Any, *shape: int) -> Any:
    return t.nn.Parameter((t.arange(float(np.prod(shape))) * 0.7).sin().reshape(shape) * 0.3)


def test_graph_convolution(torch: Any) -> None:
    """As Kipf and Welling's pygcn: spmm of a normalised adjacency, Adam, weight decay."""

    def program(t: Any) -> Any:
        adjacency, x = edges(t), filled(t, 12, 7).detach()
        first, second = filled(t, 7, 5), filled(t, 5, 3)
        opt = t.optim.Adam([first, second], lr=0.05, weight_decay=5e-4)
        losses = []
        for _ in range(5):
            opt.zero_grad()
            hidden = t.nn.functional.relu(t.spmm(adjacency, t.mm(x, first)))
            out = t.nn.functional.log_softmax(t.spmm(adjacency, t.mm(hidden, second)), dim=1)
            loss = t.nn.functional.nll_loss(out, t.arange(12) % 3)
            loss.backward()
            opt.step()
            losses.append(loss.item())
        return losses, first, second

    both(torch, program)


def test_graph_attention(torch: Any) -> None:
    """Attention over edges: sparse.softmax of values that have gradients."""

    def program(t: Any) -> Any:
        graph, weight, score = edges(t).coalesce(), filled(t, 7, 4), filled(t, 8)
        x = filled(t, 12, 7).detach() @ weight
        ends = t.cat([x[graph.indices()[0]], x[graph.indices()[1]]], 1)
        raw = t.sparse_coo_tensor(graph.indices(), t.nn.functional.leaky_relu(ends @ score), graph.shape)
        out = t.sparse.mm(t.sparse.softmax(raw, dim=1), x)
        out.pow(2).sum().backward()
        return out, weight.grad, score.grad

    both(torch, program)


def test_recommender(torch: Any) -> None:
    """As LightGCN: layers of sparse.mm over a graph of users and items, edges dropped out, a pairwise loss."""

    def program(t: Any) -> Any:
        graph = edges(t).coalesce()
        users, items = t.nn.Embedding(5, 4), t.nn.Embedding(7, 4)
        users.weight, items.weight = filled(t, 5, 4), filled(t, 7, 4)
        kept = t.arange(graph._nnz()) % 4 != 1
        dropped = t.sparse.FloatTensor(graph.indices().t()[kept].t(), graph.values()[kept] / 0.75, graph.size())
        layers = [t.cat([users.weight, items.weight])]
        for _ in range(3):
            layers.append(t.sparse.mm(dropped, layers[-1]))
        mean = t.stack(layers, dim=1).mean(dim=1)
        user, item = t.split(mean, [5, 7])
        gap = (user[:4] * item[:4]).sum(1) - (user[:4] * item[3:]).sum(1)
        t.nn.functional.softplus(-gap).mean().backward()
        return mean, users.weight.grad, items.weight.grad

    both(torch, program)


def test_matrix_factorisation(torch: Any) -> None:
    """Sparse embeddings of users and items by SparseAdam."""

    def program(t: Any) -> Any:
        tables = [t.nn.Embedding(n, 4, sparse=True) for n in (6, 8)]
        for table in tables:
            table.weight.data.copy_(filled(t, *table.weight.shape).detach())
        opt = t.optim.SparseAdam([table.weight for table in tables], lr=0.05)
        for step in range(4):
            opt.zero_grad()
            score = (tables[0](t.tensor([step, 2, 2])) * tables[1](t.tensor([1, step, 7]))).sum(1)
            t.nn.functional.mse_loss(score, t.ones(3)).backward()
            opt.step()
        return [table.weight for table in tables]

    both(torch, program)


def test_whisper_and_torcheval(torch: Any) -> None:
    """A mask of alignment heads as a sparse buffer; a confusion matrix by duplicates that add up."""

    def program(t: Any) -> Any:
        heads = t.zeros(4, 6, dtype=t.bool)
        heads[2:] = True
        pairs = heads.to_sparse().indices().T.tolist()
        predicted, wanted = t.tensor([0, 2, 1, 1, 2]), t.tensor([0, 1, 1, 1, 0])
        at = t.vstack((wanted, predicted))
        matrix = t.sparse_coo_tensor(at, t.ones_like(wanted), (3, 3), dtype=t.int64).to_dense()
        return pairs, matrix

    both(torch, program)


THROUGH_THE_DOOR = """
import pickle, sys
import torch
x = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
assert repr(x.layout) == "torch.sparse_coo" and x.type() == "torch.sparse.FloatTensor" and "torch.sparse_coo" in repr(x)
with open(sys.argv[1] + "/theirs", "rb") as file:
    theirs = pickle.load(file)
assert theirs.is_sparse and theirs.to_dense().tolist() == x.to_dense().tolist()
assert torch.load(sys.argv[1] + "/theirs.pt").to_dense().tolist() == x.to_dense().tolist()
with open(sys.argv[1] + "/ours", "wb") as file:
    pickle.dump([x, torch.sparse_coo], file)
torch.save({"x": x}, sys.argv[1] + "/ours.pt")
assert pickle.loads(pickle.dumps(torch.sparse_coo)) is torch.sparse_coo
"""


def test_pickles_through_the_door(torch: Any, tmp_path: Path) -> None:
    x = sparse(torch)
    (tmp_path / "theirs").write_bytes(pickle.dumps(x))
    torch.save(x, tmp_path / "theirs.pt")
    (tmp_path / "program.py").write_text(THROUGH_THE_DOOR)
    program = [sys.executable, "-m", "norch", str(tmp_path / "program.py"), str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    found, layout = pickle.loads((tmp_path / "ours").read_bytes())
    assert layout is torch.sparse_coo and found.is_sparse and found.to_dense().tolist() == x.to_dense().tolist()
    assert torch.load(tmp_path / "ours.pt", weights_only=True)["x"].to_dense().tolist() == x.to_dense().tolist()
