"""What a graph keeps alive: only what the derivatives need, counted in bytes, a chain for each family."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from case import Case, draw, source
from cases import CASES
from conftest import DEVICE
from test_derivatives import variables

import norch
from norch._lib import lib
from norch.nn import functional as F  # noqa: N812
from norch.ops import _operand

SIZE = 4096  # elements of each operand, float64
UNIT = SIZE * 8
FIRST = norch.zeros(64, 64, dtype=norch.int64, device=DEVICE)

# name: (the chain, how many operands' worth of bytes it keeps beside its inputs and its result, and what those are)
CHAINS: dict[str, tuple[Callable[..., Any], float, str]] = {
    "sums": (lambda x, y: -(x + y - 3 + x), 0, "nothing"),
    "scales": (lambda x, y: (x * 3 / 2 - 1) * 0.5, 0, "nothing but numbers"),
    "products": (lambda x, y: (x + 1) * (y + 1), 2, "both factors"),
    "a product by a constant": (lambda x, y: (x + 1) * y.detach(), 0, "the constant, which lives anyway"),
    "quotient": (lambda x, y: (x + 1) / (y + 1), 2, "both"),
    "quotient by a constant": (lambda x, y: (x + 1) / y.detach(), 0, "nothing new"),
    "of the result": (lambda x, y: x.exp().sigmoid().tanh(), 2, "the results of exp and sigmoid"),
    "of the input": (lambda x, y: x.sin().cos().square(), 2, "the inputs of cos and square"),
    "roots": (lambda x, y: (x + 9).sqrt().sqrt(), 1, "the result of the first root"),
    "relu": (lambda x, y: (x + 1).relu().relu(), 1, "one tensor a relu, the last one's is its result"),
    "power": (lambda x, y: (x + 9) ** 2.5, 1, "its base"),
    "cube": (lambda x, y: (x + 9) ** 3, 1, "its base"),
    "maximum": (lambda x, y: norch.maximum(x + 1, y + 1), 2, "both"),
    "where": (lambda x, y: norch.where(x.detach() > 0, x + 1, y * 2), 1 / 8, "the condition, a byte an element"),
    "sum": (lambda x, y: (x + 1).sum() + (y * 2).mean(0).sum(), 0, "nothing"),
    "amax": (lambda x, y: (x + 1).amax(0), 1, "its input"),
    "max": (lambda x, y: (x + 1).max(1).values, 1 / 64, "the indices, one a row"),
    "variance": (lambda x, y: (x + 1).var(), 1, "its input"),
    "logsumexp": (lambda x, y: (x + 1).logsumexp(1), 1, "its input"),
    "softmax": (lambda x, y: (x + 1).softmax(1), 0, "its result"),
    "log_softmax": (lambda x, y: (x + 1).log_softmax(1), 0, "its result"),
    "norm": (lambda x, y: norch.linalg.vector_norm(x + 1), 1, "its input"),
    "norm of order 3": (lambda x, y: norch.linalg.vector_norm(x + 1, 3), 1, "its input"),
    "norm of order inf": (lambda x, y: norch.linalg.vector_norm(x + 1, float("inf"), 0), 1, "its input"),
    "cumsum": (lambda x, y: (x + 1).cumsum(0).cumsum(1), 0, "nothing"),
    "cumprod": (lambda x, y: (x + 1).cumprod(0), 1, "its input"),
    "cummax": (lambda x, y: (x + 1).cummax(0).values, 1, "the indices"),
    "sort": (lambda x, y: (x + 1).sort(1).values, 1, "the indices"),
    "topk": (lambda x, y: (x + 1).topk(8).values, 1 / 8, "the indices"),
    "median": (lambda x, y: (x + 1).median(1).values, 1 / 64, "the indices, one a row"),
    "pad": (lambda x, y: F.pad(x + 1, (1, 1)) * 2, 0, "nothing"),
    "turns": (lambda x, y: (x + 1).roll(1, 0).flip(1).tril().repeat(2, 1), 1 / 8, "the mask of tril"),
    "matmul": (lambda x, y: (x + 1) @ (y + 1), 2, "both factors"),
    "matmul by constants": (lambda x, y: (x + 1) @ y.detach() @ y.detach(), 0, "nothing new"),
    "linear": (lambda x, y: F.linear(F.linear(x, y), y), 1, "the input of the second"),
    "einsum": (lambda x, y: norch.einsum("ij,kj,kl->il", x, y + 1, y), 2, "y + 1 and the first product"),
    "einsum of views": (lambda x, y: norch.einsum("ij->ji", x + 1) + norch.einsum("ii", x), 0, "nothing"),
    "views": (lambda x, y: (x + 1).view(-1).view(64, 64).t()[1:, ::2].unsqueeze(0).contiguous(), 0, "nothing"),
    "joins": (lambda x, y: norch.cat([x + 1, norch.stack([x * 2, y * 2]).sum(0)]), 0, "nothing"),
    "casts": (lambda x, y: (x + 1).float().double(), 0, "nothing"),
    "index_select": (lambda x, y: (x + 1).index_select(0, norch.arange(64)), 1 / 64, "the index"),
    "gather": (lambda x, y: (x + 1).gather(0, FIRST), 0, "the index, which lives anyway"),
    "in place": (lambda x, y: x.clone().mul_(2).add_(y).exp_(), 0, "the result"),
    "scatter": (lambda x, y: (x + 1).scatter(0, FIRST, y + 1).scatter_add(1, FIRST, y * 2), 0, "nothing new"),
    "index_put": (lambda x, y: (x + 1).index_put((FIRST[0],), y + 1), 0, "the index, which lives anyway"),
    "masked_select": (lambda x, y: (x + 1).masked_select(x.detach() > 0), 1 / 8, "the mask"),
    "masked_scatter": (lambda x, y: (x + 1).masked_scatter(x.detach() > 0, y + 1), 1 / 8, "the mask"),
    "cross": (lambda x, y: norch.linalg.cross((x + 1)[:, :3], (y + 1)[:, :3]), 2, "both"),
    "conv2d": (lambda x, y: F.conv2d((x + 1).view(1, 1, 64, 64), y[:3, :3].view(1, 1, 3, 3)), 1, "its input"),
    "max_pool2d": (lambda x, y: F.max_pool2d((x + 1).view(1, 64, 64), 2), 1 / 4, "the indices, one a window"),
    "avg_pool2d": (lambda x, y: F.avg_pool2d((x + 1).view(1, 64, 64), 2), 0, "nothing"),
    "attention": (lambda x, y: F.scaled_dot_product_attention(x + 1, y + 1, x * 2), 3, "its three inputs"),
    "layer_norm": (lambda x, y: F.layer_norm(x + 1, (64,), y[0], y[1]), 1, "its input"),
    "batch_norm": (lambda x, y: F.batch_norm(x + 1, None, None, y[0], y[1], True), 1, "its centred input"),
    "group_norm": (lambda x, y: F.group_norm((x + 1).view(2, 8, 4, 64), 2, y[0, :8], y[1, :8]), 1, "its input"),
    "instance_norm": (lambda x, y: F.instance_norm((x + 1).view(4, 8, 128), None, None, y[0, :8]), 1, "its input"),
    "glu": (lambda x, y: F.glu(x + 1), 1, "its input"),
    "cdist": (lambda x, y: norch.cdist(x + 1, (y + 1).view(4, 16, 64)), 2, "its inputs, and its result"),
    "cdist of order 1": (lambda x, y: norch.cdist((x + 1)[:8], (y + 1)[:8], 1), 2, "its inputs"),
    "bilinear": (lambda x, y: F.bilinear(x + 1, y + 1, x[:2].view(2, 1, 64).expand(2, 64, 64)), 2, "its inputs"),
    "embedding": (lambda x, y: F.embedding(FIRST, x + 1), 0, "the index, which lives anyway"),
    "mse_loss": (lambda x, y: F.mse_loss(x + 1, y + 1), 1, "the difference"),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_keeps_what_it_needs(name: str) -> None:
    chain, count, what = CHAINS[name]
    source = norch.Generator().manual_seed(0)
    x, y = (norch.randn(64, 64, generator=source, dtype=norch.float64).abs().requires_grad_() for _ in range(2))
    chain(x, y)  # numbers that are kept for the next time
    _operand._numbers.clear()
    before = lib.norch_live_bytes()
    out = chain(x, y)
    _operand._numbers.clear()
    kept = lib.norch_live_bytes() - before - out.nbytes
    assert kept <= count * UNIT + 1024, f"{name} keeps {kept / UNIT:.3f} operands; its derivative needs {what}"
    out.sum().backward()
    x.grad = y.grad = None
    if "ind" not in what and "mask" not in what:  # those are not freed, but with the graph
        assert lib.norch_live_bytes() - before - out.nbytes <= 1024, "a walk frees what it used"


# Cases that keep more than PyTorch.
MORE = {"renorm": "norms and factors of the rows; PyTorch computes them again"}


def _bytes(tensors: Iterable[Any]) -> dict[int, int]:
    """The bytes of each storage, by its address."""
    storages = [x.untyped_storage() for x in tensors]
    return {storage.data_ptr(): storage.nbytes() for storage in storages}


def _listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _kept_by_pytorch(torch: Any, case: Case, arrays: list[Any], chosen: list[int]) -> int:
    """Bytes that PyTorch's graph of a case keeps beside its leaves and its results."""
    inputs = [torch.from_numpy(np.array(a)).requires_grad_(i in chosen) for i, a in enumerate(arrays)]
    kept: list[Any] = []
    with (
        warnings.catch_warnings(),
        torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x),
    ):
        warnings.simplefilter("ignore")
        results = _listed(case.torch_call()(torch, *(x.clone() if x.requires_grad else x for x in inputs)))
    if any(type(x.grad_fn).__name__ == "NotImplemented" for x in results):
        return 1 << 60  # there it has no derivative
    found, known = _bytes(kept), {**_bytes(inputs), **_bytes(results)}
    return sum(count for place, count in found.items() if place not in known)


def test_no_case_keeps_more_than_pytorch(torch: Any) -> None:
    if DEVICE != "cpu":
        pytest.skip("counts the bytes of the CPU")
    more = []
    for case in CASES:
        if not case.grad or case.torch is False or case.name in MORE:
            continue
        for shapes in [s for s in case.shapes if all(len(one) and np.prod(one) for one in s)] or case.shapes[-1:]:
            arrays = draw(case, shapes, "float64", source(case.name))
            inputs = [norch.tensor(a) for a in arrays]
            chosen = variables(case, inputs)
            for i in chosen:
                inputs[i].requires_grad_()
            for _ in range(2):  # numbers that are kept for the next time
                result = None
                _operand._numbers.clear()
                before = lib.norch_live_bytes()
                result = case.call(norch, *(x.clone() if i in chosen else x for i, x in enumerate(inputs)))
            _operand._numbers.clear()
            kept = lib.norch_live_bytes() - before - sum(_bytes(_listed(result)).values())
            theirs = _kept_by_pytorch(torch, case, arrays, chosen)
            if kept > theirs + 64:  # some numbers
                more.append(f"{case} of {shapes} keeps {kept} bytes, PyTorch {theirs}")
    assert not more, "\n".join(more)
