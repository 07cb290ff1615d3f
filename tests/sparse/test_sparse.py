"""Sparse tensors: each expression beside PyTorch's, its derivatives beside differences, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import norch
from norch.sparse.coo import SparseTensor

# t, F: the library; s, u: (3, 4) with duplicates and without; c: coalesced; h: hybrid (3, 4, 2); b: (2, 3, 4);
# e: without elements; z: a number; q: (4, 3); d, w: dense (3, 4), (4, 2); r: (4,)
CALLS = """
s.to_dense(); s.coalesce(); h.to_dense(); e.to_dense(); z.to_dense(); b.to_dense(); e.coalesce(); z.coalesce(); s + u
u + s; c + c; s - u; t.add(s, u, alpha=2); h + h; d + s; d - s; t.sub(d, u, alpha=3); e + s; s + s; d + e; r + s[0]
s * 2; 2 * s; s * t.tensor(2.0, dtype=d.dtype); s / 2; -s; s * u; u * s; c * c; s * d; d * s; s * d[:1]; h * h; h * 3
s * e; s * d[0]; h * d[0, :2]; c ** 2; s ** 2; s ** 3; s.pow(2); s.square(); s // 2
t.div(s, 2, rounding_mode="trunc"); s @ w; u @ w; s.mm(w); t.mm(s, w); t.matmul(u, w); t.spmm(s, w); t.sparse.mm(s, w)
t.sparse.mm(c, w); s @ r; s.mv(r); e @ w; d.t() @ s; t.mm(d.t(), u); r[:3] @ s; t.dsmm(u, w)
t.bmm(b, t.stack([w, w])); s @ q; t.sparse.mm(c, c.t()); u.t() @ s; q @ s
t.sparse.addmm(d, s, q.to_dense() @ d, beta=0.5, alpha=2.0); t.addmm(t.ones(3, 2, dtype=d.dtype), u, w)
F.linear(s, w.t()); F.linear(u, w.t(), r[:2]); d.mm(q); t.sparse.mm(d, w); s.t() @ d; (s * 2 + u) @ w; s.t().t() @ w
s.sum(); s.sum(0); s.sum(1); s.sum((0, 1)); s.sum(-1, keepdim=True); h.sum(); h.sum(0); h.sum(2); h.sum((0, 1))
h.sum((0, 2)); t.sparse.sum(s); t.sparse.sum(u, 0); t.sparse.sum(h, (0, 2)); b.sum(1); b.sum((0, 2)); e.sum()
e.sum(0); z.sum(); t.sparse.softmax(s, 1); t.sparse.softmax(u, 0); t.sparse.log_softmax(s, -1); t.sparse.softmax(h, 1)
t.sparse.softmax(h, 2); t.sparse.log_softmax(b, 0); t.sparse.softmax(c, 1).to_dense().sum(1)
t.sparse.log_softmax(h, 2); t.sparse.softmax(e, 1); s.t(); s.T; c.t(); s.transpose(0, 1); b.permute(2, 0, 1)
h.transpose(0, 1); s.unsqueeze(0); s.unsqueeze(2); s[None]; h.unsqueeze(-1); b.transpose(-1, 0); s.mT; b.movedim(0, 2)
h.permute(1, 0, 2); s[0]; s[1]; s[-1]; u[0, 2]; s[:, 1]; s[1][1]; h[0]; h[0, 2]; h[:, :, 1]; b[0]; b[:, 1]; b[1, 2]
s.select(1, 3); s[0, 0]; s.index_select(0, t.tensor([2, 0, 0])); s.index_select(1, t.tensor([1]))
h.index_select(2, t.tensor([1, 1])); s.unbind()[1]; s.index_select(0, t.tensor([], dtype=t.long)); t.cat([s, u])
t.cat([s, u], 1); t.cat([h, h], 1); t.stack([s, u]); t.stack([s, u], 2); t.vstack([s, u]); t.hstack([s, u]); s.clone()
s.detach(); s.to(t.float32); s.float(); s.double(); u.type_as(u); t.zeros_like(s); t.empty_like(s); s.new_zeros(2, 3)
s.sqrt(); s.abs(); s.sin(); s.tanh(); s.relu(); F.relu(s); s.sign(); s.floor(); s.round(); s.expm1(); s.log1p()
s.asin(); s.atan(); s.asinh(); s.sinh(); s.tan(); s.erf(); s.neg(); t.trunc(s); t.frac(s); t.ceil(s); t.deg2rad(s)
s.rad2deg(); s.sgn(); d.sparse_mask(u); d.sparse_mask(s.coalesce()); s.sparse_mask(u); c.sparse_mask(u); d.to_sparse()
d.to_sparse(1); (d > 0).to_sparse(); s.to_sparse(); d.to_sparse_coo(); d.to_sparse(layout=t.sparse_coo); s.norm()
s.norm(1); s.norm("fro"); s.any(); c.values(); c.indices(); s._indices(); s._values(); s.coalesce().values() * 2
s.isnan(); s.isinf(); s.nan_to_num(); s.signbit(); s.conj(); b.mT; b.adjoint()
""".strip()
EXPRESSIONS = [call.strip() for line in CALLS.splitlines() for call in line.split(";")]
WHOLE = (
    "floor round sign sgn ceil trunc frac // rounding _indices indices _values detach isnan isinf signbit > any".split()
)

REFUSED = """
s + d; s + 1; 1 - s; s - d; s / d; s / s; d / s; 1 / s; s ** 0; s ** d; 2 ** s; s % 2; s == s; s == 3; s > 1; s > d
s != 0; s.exp(); s.cos(); s.sigmoid(); s.reciprocal(); s.log(); s.softmax(1); t.softmax(s, 1); s.mean(); s.mean(0)
s.max(); s.min(0); s.prod(); s.amax(); s.argmax(); s.cumsum(0); s.std(); s.reshape(4, 3); s.view(12); s.flatten()
s.squeeze(); s.expand(2, 3, 4); s[0:1]; s[t.tensor([0])]; s[s.to_dense() > 0]; s.narrow(0, 0, 1); s.chunk(2)
s.split(1); s.repeat(2, 1); s.roll(1); s.flip(0); s.clamp(0, 1); t.maximum(s, s); t.where(d > 0, s, s)
s.bool() & s.bool(); t.equal(s, s); t.allclose(s, s); F.dropout(s); s.numpy(); s.tolist(); s.storage()
s.untyped_storage(); s.data_ptr(); s.nbytes; bool(s); s.item(); s.contiguous(); np.asarray(s); t.cat([s, d])
t.einsum("ij,jk->ik", s, w); t.ones_like(s); t.rand_like(s); t.full_like(s, 2); s.fill_(1); s.exp_(); s.add_(d)
s.tril(); s.trace(); s.diag(); s.unique(); s.nonzero(); s.count_nonzero(); s.all(); s.cpu().gather(0, t.tensor([[0]]))
t.linalg.norm(s); t.linalg.qr(s); t.fft.fft(s); F.softmax(s, 1); F.mse_loss(s, s); F.gelu(s); F.layer_norm(s, (4,))
s.values(); s.indices(); d.values(); d.indices(); d.coalesce(); d.is_coalesced(); d._nnz(); s @ w[:2]; s @ d
s.mv(r[:2]); s + q; s * q; s.__setitem__(0, 1); s.permute(0, 0); h.permute(2, 0, 1); h.transpose(0, 2); s[5]
s[0, 0, 0]; s.index_select(0, t.tensor([7])); s.transpose(0, 5); s.sum(4); t.sparse.softmax(s, 3); d.sparse_mask(q)
d.to_sparse(3); t.sparse.softmax(s.long(), 1); s.copy_(d); d.copy_(s); t.stack([s, d]); s.norm(2, 0); t.bmm(s, d)
t.addcmul(s, s, s); s.masked_fill(d > 0, 1.0); s.kron(s); t.outer(s[0], s[0]); t.cdist(s, s); nn.Softmax(1)(s)
nn.Sigmoid()(s); nn.GELU()(s); d.__setitem__(0, s[0])
""".strip()


def names(t: Any, grad: bool = False) -> dict[str, Any]:
    """What the expressions name. grad: the values and the dense tensors are leaves."""
    rng = np.random.default_rng(3)

    def dense(*shape: int) -> Any:
        return t.tensor(rng.uniform(0.2, 0.9, shape)).requires_grad_(grad)

    def sparse(indices: Any, shape: tuple[int, ...]) -> Any:
        indices = t.tensor(indices, dtype=t.int64)
        return t.sparse_coo_tensor(indices, dense(indices.shape[1], *shape[len(indices) :]), shape)

    ordered = [[0, 0, 1, 2], [1, 2, 0, 3]]
    return {
        "t": t, "np": np, "nn": t.nn, "F": t.nn.functional,
        "s": sparse([[2, 0, 0, 2, 1, 0], [1, 2, 0, 1, 1, 2]], (3, 4)),
        "u": sparse([[2, 0, 1, 0], [3, 0, 1, 2]], (3, 4)),
        "c": sparse(ordered, (3, 4)).coalesce(),
        "h": sparse([[2, 0, 0], [1, 2, 2]], (3, 4, 2)),
        "b": sparse([[1, 0, 0, 1], [2, 2, 1, 2], [0, 3, 1, 0]], (2, 3, 4)),
        "e": sparse(np.zeros((2, 0)), (3, 4)), "z": sparse(np.zeros((0, 2)), ()), "q": sparse(ordered[::-1], (4, 3)),
        "d": dense(3, 4), "w": dense(4, 2), "r": dense(4),
    }  # fmt: skip


def plain(x: Any) -> np.ndarray:
    x = x.detach()
    return (x.to_dense() if x.is_sparse else x).numpy()


@pytest.mark.parametrize("call", EXPRESSIONS)
def test_values(torch: Any, call: str) -> None:
    found, wanted = eval(call, names(norch)), eval(call, names(torch))
    assert found.is_sparse == wanted.is_sparse and type(found) in (norch.Tensor, SparseTensor)
    assert str(found.layout)[6:] == str(wanted.layout)[6:] and str(found.dtype)[6:] == str(wanted.dtype)[6:]
    assert tuple(found.shape) == tuple(wanted.shape)
    np.testing.assert_allclose(plain(found), plain(wanted), rtol=1e-12, atol=1e-14)
    if found.is_sparse and call not in ("s * u", "u * s"):  # PyTorch keeps elements of one of the two there, as 0
        ordered = found.coalesce()
        assert found.is_coalesced() <= (found._nnz() == ordered._nnz())
        np.testing.assert_array_equal(ordered.indices().numpy(), wanted.coalesce().indices().numpy())


@pytest.mark.parametrize("call", [call for call in EXPRESSIONS if not any(word in call for word in WHOLE)])
def test_derivatives(call: str) -> None:
    """Of the values of sparse tensors and of dense ones, by differences; twice."""
    given = names(norch, grad=True)
    result = eval(call, given)
    if not result.requires_grad or not result.dtype.is_floating_point or result.dtype is norch.float32:
        assert any(
            word in call for word in ("_like", "zeros", "sparse_mask", "e.", "e @", "s * e", "to(", "float", "(e")
        )
        return
    if "e" in re.findall(r"\b[a-z]\b", call):  # without elements
        return
    used = [name for name in re.findall(r"\b[sucbzhqdwr]\b", call) if isinstance(given[name], norch.Tensor)]
    used = list(dict.fromkeys(used))
    leaves = [given[name]._values().requires_grad_() if given[name].is_sparse else given[name] for name in used]

    def function(*values: Any) -> Any:
        made = dict(given)
        for name, x in zip(used, values, strict=True):
            if given[name].is_sparse:
                x = norch.sparse_coo_tensor(given[name]._indices(), x, given[name].shape)  # noqa: PLW2901
            made[name] = x.coalesce() if name == "c" else x
        found = eval(call, made)
        return found.to_dense() if found.is_sparse else found

    norch.autograd.gradcheck(function, leaves)
    if any(word in call for word in ("**", "@", "*", "softmax", "mm", "sin", "tanh", "norm")):
        norch.autograd.gradgradcheck(function, leaves)


REFUSED_CALLS = [call.strip() for line in REFUSED.splitlines() for call in line.split(";")]
ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError)


@pytest.mark.parametrize("call", REFUSED_CALLS)
def test_refused_as_by_pytorch(torch: Any, call: str) -> None:
    for t in (norch, torch):
        with pytest.raises(ERRORS) as caught:
            eval(call, names(t))
        assert str(caught.value)
        assert t is torch or "meta" not in str(caught.value)


@pytest.mark.parametrize("name", ["mH", "H", "mT"])
def test_conjugate_transposes(torch: Any, name: str) -> None:
    results = []
    for t in (norch, torch):
        x = t.tensor([[0.0, 1.0 + 2.0j, 0.0], [3.0 - 1.0j, 0.0, 0.5j]])
        results.append(getattr(x.to_sparse(), name).to_dense().tolist())
        if name == "mH":
            results[-1].append(t.stack([x, 2 * x]).to_sparse().adjoint().to_dense().tolist())
    assert results[0] == results[1]
