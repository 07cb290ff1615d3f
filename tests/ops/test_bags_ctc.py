"""EmbeddingBag and the CTC loss: against PyTorch, against sums written out, and what they refuse."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import nn
from norch.nn import functional as F
from norch.testing import assert_close

BAGS: Any = {
    "rows": ([[0, 1, 2], [3, 3, 4]], None, {}),
    "offsets": ([0, 1, 2, 4, 5, 5], [0, 2, 2, 5], {}),
    "an end": ([0, 1, 2, 4, 5, 5], [0, 2, 2, 6], {"include_last_offset": True}),
    "padding": ([0, 1, 2, 1, 5, 1], [0, 2, 4], {"padding_idx": 1}),
    "short padding": ([0, 1, 2, 1, 5, 1], [0, 2, 4], {"max_norm": 0.5, "padding_idx": 1}),
    "short": ([0, 1, 2, 4, 5, 5], [0, 2, 2, 6], {"max_norm": 1.0}),
    "short rows": ([[0, 1, 2], [3, 3, 4]], None, {"max_norm": 0.5}),
    "largest": ([0, 1, 2, 4, 5, 5], [0, 2, 2, 6], {"max_norm": 0.8, "norm_type": float("inf")}),
}


def of(array: Any) -> Any:
    return norch.tensor(np.asarray(array), device=DEVICE)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("name", BAGS)
def test_bags_like_torch(torch: Any, name: str, mode: str) -> None:
    index, offsets, how = BAGS[name]
    weight = np.random.default_rng(0).normal(size=(6, 3))
    results, told = [], []
    for lib, make in ((norch, of), (torch, lambda a: torch.tensor(np.asarray(a)))):
        bags = lib.nn.EmbeddingBag.from_pretrained(make(weight), freeze=False, mode=mode, **how)
        out = bags(make(index), None if offsets is None else make(offsets))
        out.square().sum().backward()
        results.append([out.detach(), bags.weight.grad, bags.weight.detach()])
        told.append((repr(bags), list(bags.state_dict())))
    assert told[0] == told[1]
    if mode == "max" and name not in ("padding", "largest"):  # ties share the gradient here
        results = [one[:1] for one in results]
    for a, b in zip(*results, strict=True):
        assert_close(a, of(b.numpy()), rtol=1e-9, atol=1e-11)


def test_weighted_bags_like_torch(torch: Any) -> None:
    weight, factors = np.random.default_rng(0).normal(size=(6, 3)), np.linspace(-1, 1, 6)
    results = []
    for lib, make in ((norch, of), (torch, lambda a: torch.tensor(np.asarray(a)))):
        w, f = make(weight).requires_grad_(), make(factors).requires_grad_()
        out = lib.nn.functional.embedding_bag(
            make([0, 1, 1, 4, 5, 5]), w, make([0, 2, 5]), mode="sum", per_sample_weights=f, padding_idx=4
        )
        out.square().sum().backward()
        results.append([out.detach(), w.grad, f.grad])
    for a, b in zip(*results, strict=True):
        assert_close(a, of(b.numpy()), rtol=1e-9, atol=1e-11)


def test_bags_are_sums_and_maxima() -> None:
    w = norch.arange(6.0).reshape(3, 2)
    index, offsets = norch.tensor([2, 0, 1]), norch.tensor([0, 2, 2])
    assert F.embedding_bag(index, w, offsets, mode="sum").tolist() == [[4.0, 6.0], [0.0, 0.0], [2.0, 3.0]]
    assert F.embedding_bag(index, w, offsets).tolist() == [[2.0, 3.0], [0.0, 0.0], [2.0, 3.0]]
    assert F.embedding_bag(index, -w, offsets, mode="max").tolist() == [[0.0, -1.0], [0.0, 0.0], [-2.0, -3.0]]
    assert nn.EmbeddingBag(3, 2, padding_idx=-1).weight[2].tolist() == [0.0, 0.0]
    with pytest.raises(norch.ArgumentError, match="embedding_bag: padding_idx 3 is out of range for 3 rows"):
        F.embedding_bag(index, w, offsets, padding_idx=3)


# ---- ctc ------------------------------------------------------------------------------------------------------------


def by_paths(log_probs: Any, target: list[int], blank: int) -> float:
    """The probability of target, summed over all classes at all steps that collapse to it."""
    steps, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        said = [c for c, _ in itertools.groupby(path) if c != blank]
        if said == target:
            total += math.exp(sum(log_probs[t, c] for t, c in enumerate(path)))
    return total


@pytest.mark.parametrize("target", [[], [1], [1, 2], [1, 1], [2, 1, 2], [1, 1, 1]], ids=str)
@pytest.mark.parametrize("blank", [0, 3])
def test_ctc_sums_over_all_paths(target: list[int], blank: int) -> None:
    logits = norch.tensor(np.random.default_rng(0).normal(size=(4, 4)), device=DEVICE)
    log_probs = logits.log_softmax(-1)
    total = by_paths(log_probs.cpu().numpy(), target, blank)
    found = F.ctc_loss(log_probs, of(np.array(target, "int64")), [4], [len(target)], blank, reduction="none")
    assert found.item() == pytest.approx(-math.log(total) if total else math.inf, rel=1e-9)
    if not total:
        assert F.ctc_loss(log_probs, of(target), [4], [len(target)], blank, zero_infinity=True).item() == 0


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("together", [False, True])
def test_ctc_like_torch(torch: Any, together: bool, reduction: str) -> None:
    rng = np.random.default_rng(0)
    logits, targets = rng.normal(size=(12, 4, 5)), rng.integers(1, 5, size=(4, 6))
    times, sizes = [12, 10, 3, 12], [6, 3, 5, 0]  # the third does not fit
    targets = np.concatenate([row[:n] for row, n in zip(targets, sizes, strict=True)]) if together else targets
    results = []
    for lib, make in ((norch, of), (torch, torch.tensor)):
        x = make(logits).requires_grad_()
        loss = lib.nn.CTCLoss(reduction=reduction, zero_infinity=True)
        lengths = [make(np.array(n)) for n in (times, sizes)]
        out = loss(x.log_softmax(-1), make(targets), *lengths)
        out.sum().backward()
        results.append([out.detach(), x.grad])
    for a, b in zip(*results, strict=True):
        assert_close(a, of(b.numpy()), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("padding", [-1, 0, 99])
def test_ctc_does_not_look_at_padding(padding: int) -> None:
    even = norch.zeros(5, 2, 4).log_softmax(-1)
    targets = norch.tensor([[1, 2, 3], [2, padding, padding]])
    assert F.ctc_loss(even, targets, [5, 5], [3, 1]).item() == pytest.approx(2.7116, abs=1e-4)  # PyTorch's


def test_ctc_of_halves_and_of_nothing() -> None:
    x = norch.zeros(5, 2, 3).log_softmax(-1)
    half, loss = (F.ctc_loss(y, norch.tensor([[1], [2]]), [5, 5], [1, 1]) for y in (x.half(), x))
    assert half.dtype is norch.float16 and half.item() == pytest.approx(loss.item(), rel=1e-3)
    assert F.ctc_loss(x[:, :0], norch.zeros(0, 1, dtype=norch.int64), [], [], reduction="none").shape == (0,)


REPEATED = [[1, 1, 2], [2, 1, 1]]
LENGTHS: Any = [([7, 5], [3, 2]), ([6, 0], [2, 0]), ([7, 3], [3, 3])]  # the last: inf, where labels repeat


def graph_size(out: Any) -> int:
    found, ahead = set(), [out.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is not None and node not in found:
            found.add(node)
            ahead += [following for following, _ in node.next_functions]
    return len(found)


def test_ctc_does_not_record_its_steps() -> None:
    sizes = set()
    for steps in (3, 30):
        x = norch.zeros(steps, 2, 3, device=DEVICE, requires_grad=True)
        sizes.add(graph_size(F.ctc_loss(x, of([[1], [2]]), [steps, 2], [1, 1])))
    assert len(sizes) == 1


@pytest.mark.parametrize("times, sizes", LENGTHS, ids=str)
def test_ctc_has_second_derivatives(times: list[int], sizes: list[int]) -> None:
    x = of(np.random.default_rng(0).normal(size=(7, 2, 3))).requires_grad_()

    def loss(x: Any) -> Any:
        return F.ctc_loss(x, of(REPEATED), times, sizes, reduction="sum", zero_infinity=True)

    assert norch.autograd.gradcheck(loss, (x,)) and norch.autograd.gradgradcheck(loss, (x,))


@pytest.mark.parametrize("times, sizes", LENGTHS, ids=str)
def test_ctc_of_vmap_and_captured(times: list[int], sizes: list[int]) -> None:
    rng = np.random.default_rng(0)
    xs, targets = of(rng.normal(size=(3, 7, 2, 3))), of(rng.integers(1, 3, size=(3, 2, 3)))

    def loss(x: Any, target: Any) -> Any:
        return F.ctc_loss(x.log_softmax(-1), target, times, sizes, zero_infinity=True)

    for function in (loss, norch.func.grad(loss)):
        one_by_one = norch.stack([function(x, target) for x, target in zip(xs, targets, strict=True)])
        assert_close(norch.vmap(function)(xs, targets), one_by_one)
        assert_close(
            norch.vmap(function, (None, 0))(xs[0], targets), norch.stack([function(xs[0], one) for one in targets])
        )
        captured = norch.capture(function)
        for i in range(3):
            assert captured(xs[i], targets[i]).equal(one_by_one[i])


@pytest.mark.parametrize("times, sizes", [([2, 3], [2, 2]), ([0, 3], [1, 2])], ids=str)
def test_an_infinite_ctc_has_no_gradient(times: list[int], sizes: list[int]) -> None:
    x = norch.zeros(3, 2, 3, device=DEVICE, requires_grad=True)
    losses = F.ctc_loss(x.log_softmax(-1), of([[1, 1], [1, 2]]), times, sizes, reduction="none")
    losses.sum().backward()
    assert losses.isinf().tolist() == [True, False]
    assert x.grad[:, 0].eq(0).all() and x.grad[:, 1].ne(0).any(-1).all()


def test_the_gradient_of_a_long_ctc_is_accurate() -> None:
    rng = np.random.default_rng(0)
    logits, targets = 4 * rng.normal(size=(1000, 2, 30)), of(rng.integers(1, 30, size=(2, 80)))
    found = []
    for dtype in (norch.float32, norch.float64):
        x = of(logits).to(dtype).log_softmax(-1).requires_grad_()
        F.ctc_loss(x, targets, [1000, 1000], [80, 80], reduction="sum").backward()
        found.append(x.grad.double())
    assert (found[0] - found[1]).abs().max().item() < 3e-3  # PyTorch's error: 6e-3


def test_ctc_learns_a_text() -> None:
    norch.manual_seed(0)
    logits, target = norch.nn.Parameter(norch.randn(8, 1, 4)), norch.tensor([[1, 2, 2, 3]])
    optimizer = norch.optim.Adam([logits], lr=0.3)
    for _ in range(60):
        optimizer.zero_grad()
        F.ctc_loss(logits.log_softmax(-1), target, [8], [4]).backward()
        optimizer.step()
    said = [c for c, _ in itertools.groupby(logits.argmax(-1).flatten().tolist()) if c]
    assert said == [1, 2, 2, 3]


W, P = norch.ones(3, 2), norch.zeros(4, 2, 3).log_softmax(-1)
T = norch.tensor([[1], [2]])
BAD: Any = [
    (lambda: F.embedding_bag(T, W, mode="min"), ValueError, "mode is 'sum', 'mean' or 'max', not 'min'"),
    (lambda: F.embedding_bag(T, W, T[0]), ValueError, "each row is a bag"),
    (lambda: F.embedding_bag(T[0], W), norch.ShapeError, r"not \(1,\), no offsets"),
    (lambda: F.embedding_bag(T[0], W, T[0]), ValueError, r"offsets must rise from 0 to at most 1, not \[1\]"),
    (lambda: F.embedding_bag(T, W, per_sample_weights=T), NotImplementedError, "are for mode 'sum', not 'mean'"),
    (lambda: F.embedding_bag(T, W, mode="sum", per_sample_weights=W), norch.ShapeError, r"\(3, 2\) for an input"),
    (
        lambda: F.embedding_bag(T, W, mode="sum", per_sample_weights=T.double()),
        norch.DTypeError,
        "float64 for a weight of",
    ),
    (lambda: F.embedding_bag(T + 5, W), IndexError, "6"),
    (lambda: F.ctc_loss(P, T, [4, 5], [1, 1]), ValueError, r"input_lengths lie in 0 \.\.\. 4, not \[4, 5\]"),
    (lambda: F.ctc_loss(P, T, [4.5, 4], [1, 1]), norch.DTypeError, "lengths are integers, not float32"),
    (lambda: F.ctc_loss(P, T, [4], [1, 1]), norch.ShapeError, "1 input_lengths and 2 target_lengths for a batch of 2"),
    (lambda: F.ctc_loss(P, T, [4, 4], [1, 2]), norch.ShapeError, r"targets of shape \(2, 1\) for .* \[1, 2\]"),
    (lambda: F.ctc_loss(P, T[:, 0], [4, 4], [1, 2]), norch.ShapeError, r"2 targets for target_lengths \[1, 2\]"),
    (lambda: F.ctc_loss(P, T, [4, 4], [1, 1], 3), ValueError, "blank 3 is not one of the 3 classes"),
    (lambda: F.ctc_loss(P, T, [4, 4], [1, 1], "x"), TypeError, "ctc_loss: blank is an integer, not str"),
    (lambda: F.ctc_loss(P, T + 5, [4, 4], [1, 1]), IndexError, "ctc_loss: index 6"),
    (lambda: nn.EmbeddingBag.from_pretrained([[1.0]]), TypeError, "from_pretrained: expected a tensor, not list"),
    (lambda: F.ctc_loss(P[:, :, :, None], T, [4, 4], [1, 1]), norch.ShapeError, r"got shape \(4, 2, 3, 1\)"),
]


@pytest.mark.parametrize("call, error, message", BAD, ids=range(len(BAD)))
def test_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_bags_of_halves_are_summed_in_float32() -> None:
    weight = norch.tensor([[30000.0], [-29984.0]]).half()
    factors = norch.full((1, 2), 3.0).half()
    assert F.embedding_bag(norch.tensor([[0, 1]]), weight, mode="sum", per_sample_weights=factors).item() == 48
    assert F.embedding_bag(norch.tensor([[0, 0, 0]]), weight).item() == 30000
