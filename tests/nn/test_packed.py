"""Packed sequences, and recurrent layers over them: against PyTorch, and against each sequence alone."""

from typing import Any

import numpy as np
import pytest
from conftest import DEVICE
from test_recurrent import of, pair, same, tensors

import norch
from norch import nn
from norch.nn.utils import rnn
from norch.testing import assert_close

LENGTHS = {"falling": [5, 4, 4, 1], "in any order": [2, 5, 1, 4]}
OPTIONS: Any = {"plain": {}, "both ways": {"num_layers": 2, "bidirectional": True}}


def drawn(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("order", LENGTHS)
def test_packing_like_torch(torch: Any, order: str, batch_first: bool) -> None:
    lengths, sort = LENGTHS[order], order == "falling"
    x = drawn(*((4, 6, 2) if batch_first else (6, 4, 2)))
    ours, theirs = of(x).requires_grad_(), torch.tensor(x, requires_grad=True)
    a = rnn.pack_padded_sequence(ours, lengths, batch_first, sort)
    b = torch.nn.utils.rnn.pack_padded_sequence(theirs, lengths, batch_first, sort)
    assert a.batch_sizes.tolist() == b.batch_sizes.tolist() and (a.sorted_indices is None) == sort
    u, n = rnn.pad_packed_sequence(a, batch_first, -1.0, 7)
    v, m = torch.nn.utils.rnn.pad_packed_sequence(b, batch_first, -1.0, 7)
    assert n.tolist() == m.tolist() == lengths
    assert_close(a.data.detach(), of(b.data.detach().numpy()))
    assert_close(u.detach(), of(v.detach().numpy()))
    (a.data.square().sum() + u.sum()).backward()
    (b.data.square().sum() + v.sum()).backward()
    assert_close(ours.grad, of(theirs.grad.numpy()))


def test_sequences_come_back() -> None:
    sequences = [norch.randn(n, 2, device=DEVICE) for n in LENGTHS["in any order"]]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    for x, y in zip(rnn.unpack_sequence(packed), sequences, strict=True):
        assert norch.equal(x, y)
    wide = packed.double()
    assert wide.data.dtype is norch.float64 and wide.float().half().cpu().data.dtype is norch.float16
    assert isinstance(wide, rnn.PackedSequence) and packed.is_cuda == (DEVICE != "cpu")
    assert rnn.invert_permutation(None) is None


@pytest.mark.parametrize("given", [False, True], ids=["from zeros", "from a state"])
@pytest.mark.parametrize("order", LENGTHS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_layers_like_torch(torch: Any, kind: str, options: str, order: str, given: bool) -> None:
    ours, theirs = pair(torch, kind, 3, 4, **OPTIONS[options])
    lengths, runs = LENGTHS[order], 4 if options == "both ways" else 1
    arrays = [drawn(5, 4, 3), *(drawn(runs, 4, 4) for _ in range(given * (1 + (kind == "LSTM"))))]
    found: list[Any] = []
    for layer, pack, make in (
        (ours, rnn.pack_padded_sequence, of),
        (theirs, torch.nn.utils.rnn.pack_padded_sequence, torch.tensor),
    ):
        x, *state = (make(a).requires_grad_() for a in arrays)
        hx = None if not given else tuple(state) if kind == "LSTM" else state[0]
        out, last = layer(pack(x, lengths, enforce_sorted=order == "falling"), hx)
        found.append(([out.data, *tensors(last)], [x, *state]))
    (a, x), (b, y) = found
    same(ours, theirs, a, b, x, y)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_each_sequence_is_run_as_if_alone(kind: str) -> None:
    layer = getattr(nn, kind)(3, 4, 2, bidirectional=True, dtype=norch.float64, device=DEVICE)
    sequences = [of(drawn(n, 3)) for n in LENGTHS["in any order"]]
    out, last = layer(rnn.pack_sequence(sequences, enforce_sorted=False))
    outs = rnn.unpack_sequence(out)
    for i, x in enumerate(sequences):
        alone, end = layer(x)
        assert_close(outs[i].detach(), alone.detach(), rtol=1e-10, atol=1e-12)
        for one, other in zip(tensors(last), tensors(end), strict=True):
            assert_close(one[:, i].detach(), other.detach(), rtol=1e-10, atol=1e-12)


X = norch.ones(3, 2, 4)


@pytest.mark.parametrize("order", [None, [1, 0]], ids=["falling", "sorted"])
def test_methods_like_torch(torch: Any, order: Any) -> None:
    def made(m: Any) -> Any:
        back = None if order is None else m.tensor(order)
        sizes = m.tensor([2, 1], device="cpu")
        return m.nn.utils.rnn.PackedSequence(m.tensor([1.0, 2.0, 3.0]), sizes, back)

    ours, theirs = made(norch), made(torch)
    pin = ["pin_memory"] if DEVICE == "cpu" else []
    for name in ("double", "float", "half", "long", "int", "short", "char", "byte", *pin):
        if name == "pin_memory" and not torch.cuda.is_available():
            a, b = ours.pin_memory(), theirs
        else:
            a, b = getattr(ours, name)(), getattr(theirs, name)()
        assert type(a) is rnn.PackedSequence and str(a.data.dtype)[6:] == str(b.data.dtype)[6:]
        for one, other in zip(a, b, strict=True):
            assert other is one is None or one.tolist() == other.tolist()
    assert ours.is_pinned() is theirs.is_pinned() is False and "int32" in rnn.PackedSequence.int.__doc__


def of_sizes(*sizes: float) -> Any:
    return rnn.PackedSequence(X[:, 0], norch.tensor(sizes, device="cpu"))


BAD: Any = [
    (lambda: rnn.pad_packed_sequence(X), TypeError, "pad_packed_sequence: expected a PackedSequence, not Tensor"),
    (lambda: rnn.unpack_sequence(X), TypeError, "unpack_sequence: expected a PackedSequence, not Tensor"),
    (lambda: rnn.invert_permutation(0), TypeError, "invert_permutation: expected a tensor, not int"),
    (lambda: rnn.pad_packed_sequence(of_sizes()), ValueError, r"pad_packed_sequence: batch_sizes \[\] .* \(3, 4\)"),
    (lambda: nn.LSTM(4, 5)(of_sizes()), ValueError, r"LSTM: batch_sizes \[\] for data of shape \(3, 4\)"),
    (lambda: nn.GRU(4, 5)(of_sizes(2, 2)), ValueError, r"GRU: batch_sizes \[2, 2\] for data of shape \(3, 4\)"),
    (lambda: nn.RNN(4, 5)(of_sizes(1, 2)), ValueError, r"RNN: batch_sizes \[1, 2\]"),
    (lambda: nn.RNN(4, 5)(of_sizes(2.0, 1.0)), ValueError, r"RNN: batch_sizes \[2.0, 1.0\]"),
    (lambda: nn.RNN(4, 5)(of_sizes(3, 0)), ValueError, r"RNN: batch_sizes \[3, 0\]"),
    (lambda: rnn.pack_padded_sequence(X, [1, 2]), ValueError, r"lengths \[1, 2\] are not sorted; enforce_sorted=False"),
    (lambda: rnn.pack_padded_sequence(X, [4, 2]), ValueError, r"lengths lie in 1 \.\.\. 3, not \[4, 2\]"),
    (lambda: rnn.pack_padded_sequence(X, [2, 0]), ValueError, r"lengths lie in 1 \.\.\. 3, not \[2, 0\]"),
    (lambda: rnn.pack_padded_sequence(X, [3]), norch.ShapeError, r"\(1,\) lengths for input of shape \(3, 2, 4\)"),
    (lambda: rnn.pack_padded_sequence([1.0], [1]), TypeError, "pack_padded_sequence: expected a tensor, not list"),
    (lambda: rnn.pack_sequence([X[0], X[:, 0]]), ValueError, "are not sorted"),
    (lambda: rnn.pad_packed_sequence(rnn.pack_sequence([X]), total_length=2), ValueError, "total_length 2 .* up to 3"),
    (
        lambda: nn.GRU(4, 5)(rnn.pack_sequence([X])),
        norch.ShapeError,
        r"packed data: expected 2 dimensions, got shape \(3, 2, 4\)",
    ),
    (lambda: nn.GRU(3, 5)(rnn.pack_sequence([X[:, 0]])), norch.ShapeError, "the last of 3"),
    (lambda: nn.GRU(4, 5)(rnn.pack_sequence([X[:, 0]]), X), norch.ShapeError, r"state of shape \(1, 1, 5\)"),
]


@pytest.mark.parametrize("call, error, message", BAD, ids=range(len(BAD)))
def test_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
