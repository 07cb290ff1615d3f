"""What operators, indexing, methods and functions of tensors return."""

from typing import Any

import numpy as np
from typing_extensions import assert_type

import norch
from norch import Tensor, nn

x = assert_type(norch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), Tensor)
w = nn.Parameter(norch.ones(2, 2))

# ---- operators, reflected and in place ----
assert_type(norch.zeros(2) @ w, Tensor)
assert_type(x + 1, Tensor)
assert_type(1 - x, Tensor)
assert_type(2.0 * x / w, Tensor)
assert_type(2**x, Tensor)
assert_type(-x, Tensor)
assert_type(x == 1, Tensor)
assert_type((x > 0) & (x < 3), Tensor)
assert_type(~(x != w), Tensor)
assert_type(abs(x) // 2 % 2, Tensor)
assert_type(x * np.ones((2, 2), np.float32), Tensor)
total = norch.zeros(2, 2)
total += x.detach()
total *= 2
assert_type(total, Tensor)
assert_type(total.add_(1).clamp_(min=0).sqrt_(), Tensor)
assert_type(w.requires_grad_(False), nn.Parameter)
w.requires_grad_()

# ---- shapes, dtypes, devices ----
assert_type(x.shape, norch.Size)
assert_type(x.shape[0], int)
assert_type(x.shape[:1], norch.Size)
assert_type(x.size(), norch.Size)
assert_type(x.size(0), int)
assert_type(x.stride(), tuple[int, ...])
assert_type(x.dtype, norch.dtype)
assert_type(x.device, norch.device)
assert_type(x.ndim, int)
assert_type(norch.float32, norch.dtype)
assert_type(x.to(norch.float64).to("cpu").long().type(), str)
assert_type(norch.zeros(*x.shape, dtype=norch.int64, device="cpu"), Tensor)
rows, columns = x.shape
assert_type(rows * columns, int)
assert_type(norch.get_default_dtype(), norch.dtype)
assert_type(norch.finfo(norch.float32).eps, float)

# ---- indexing ----
assert_type(x[0], Tensor)
assert_type(x[0, 1:], Tensor)
assert_type(x[..., None, -1], Tensor)
assert_type(x[x > 1], Tensor)
assert_type(x[norch.tensor([0]), [1]], Tensor)
assert_type(x[np.array([0])], Tensor)
total[0] = 1.0
total[:, 1] += 2
total[total > 3] = norch.tensor(0.0)
assert_type(list(x), list[Tensor])
first, second = x.unbind()
assert_type(first, Tensor)

# ---- values on the host ----
number: float = x.sum().item()
count = int(x.numel())
array = x.detach().numpy()
values: list[list[float]] = x.tolist()
assert float(x[0, 0]) == 1.0 and bool((x > 0).all()) and len(x) == 2
assert_type(x.grad, Tensor | None)

# ---- reductions, and results that depend on arguments ----
assert_type(x.sum(), Tensor)
assert_type(x.sum(dim=(0, 1), keepdim=True), Tensor)
assert_type(x.mean(0).std(unbiased=False), Tensor)
assert_type(x.max(), Tensor)
assert_type(x.max(1).values, Tensor)
assert_type(x.min(dim=0, keepdim=True).indices, Tensor)
assert_type(x.max(w), Tensor)
assert_type(norch.max(x), Tensor)
assert_type(norch.min(x, 1).indices, Tensor)
largest, where = norch.max(x, dim=1)
assert_type(largest, Tensor)
assert_type(norch.median(x), Tensor)
assert_type(x.median(0).values, Tensor)
assert_type(norch.sort(x, descending=True).values, Tensor)
assert_type(x.topk(1).indices, Tensor)
assert_type(norch.kthvalue(x, 1).values, Tensor)
assert_type(norch.cummax(x, 0).indices, Tensor)
assert_type(norch.aminmax(x).max, Tensor)
assert_type(norch.var_mean(x), tuple[Tensor, Tensor])
assert_type(x.argmax(), Tensor)
assert_type(norch.allclose(x, x), bool)
assert_type(x.unique(), Tensor)
assert_type(norch.unique(x, return_inverse=True), tuple[Tensor, Tensor])
assert_type(norch.unique(x, return_inverse=True, return_counts=True), tuple[Tensor, Tensor, Tensor])
assert_type(x.unique_consecutive(return_counts=True), tuple[Tensor, Tensor])
assert_type(x.nonzero(), Tensor)
assert_type(norch.nonzero(x, as_tuple=True), tuple[Tensor, ...])
assert_type(norch.where(x > 0), tuple[Tensor, ...])
assert_type(norch.where(x > 0, x, 0.0), Tensor)
assert_type(x.where(x > 0, 0), Tensor)

# ---- shapes of results ----
assert_type(x.reshape(4).view(2, -1).T.permute(1, 0).flatten(), Tensor)
assert_type(norch.cat([x, w]).unsqueeze(0).expand(3, -1, -1), Tensor)
assert_type(norch.stack((x, w), dim=1).transpose(0, 1).contiguous(), Tensor)
assert_type(x.split(1), tuple[Tensor, ...])
assert_type(norch.chunk(x, 2, dim=1), tuple[Tensor, ...])
assert_type(norch.meshgrid(x[0], x[1], indexing="ij"), tuple[Tensor, ...])
assert_type(norch.einsum("ij,jk->ik", x, w), Tensor)
assert_type(norch.arange(0, 1, 0.25).exp().softmax(0), Tensor)
assert_type(norch.broadcast_shapes((2, 1), (3,)), norch.Size)
assert_type(norch.exp(x) + norch.relu(x) * norch.atan2(x, w), Tensor)
assert_type(norch.full((2,), 1.5, dtype=norch.float64).new_zeros(2), Tensor)
assert_type(x.gather(1, norch.zeros(2, 1, dtype=norch.int64)), Tensor)
assert_type(x.masked_fill(x > 2, 0.0).clone().detach().cpu(), Tensor)
assert_type(norch.from_numpy(np.zeros(2)), Tensor)

# ---- linear algebra ----
assert_type(norch.linalg.norm(x), Tensor)
assert_type(norch.linalg.qr(x).Q, Tensor)
u, s, vh = norch.linalg.svd(x, full_matrices=False)
assert_type(s, Tensor)
assert_type(norch.linalg.eigh(x @ x.mT).eigenvalues, Tensor)
assert_type(norch.linalg.slogdet(x).logabsdet, Tensor)
assert_type(norch.linalg.solve(x, w).det(), Tensor)
nested: Any = x.tolist()
