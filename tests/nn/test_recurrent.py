"""Recurrent layers and cells: against PyTorch, with its weights, and what they refuse."""

import gc
import io
import itertools
import weakref
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import nn
from norch._binding.library import lib
from norch.testing import assert_close, gradcheck, gradgradcheck

OPTIONS: Any = {
    "plain": {},
    "two layers": {"num_layers": 2, "bias": False},
    "both ways": {"num_layers": 2, "bidirectional": True, "batch_first": True},
}


def of(array: Any) -> Any:
    return norch.tensor(np.asarray(array), device=DEVICE)


def pair(torch: Any, kind: str, *sizes: Any, **options: Any) -> tuple[Any, Any]:
    """The layer of norch and of PyTorch, with the same weights."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, kind)(*sizes, **options, dtype=torch.float64)
    ours = getattr(nn, kind)(*sizes, **options, dtype=norch.float64, device=DEVICE)
    ours.load_state_dict({name: of(value.numpy()) for name, value in theirs.state_dict().items()})
    assert repr(ours) == repr(theirs) and list(ours.state_dict()) == list(theirs.state_dict())
    return ours, theirs


def tensors(results: Any) -> list[Any]:
    return [x for part in results for x in tensors(part)] if isinstance(results, (tuple, list)) else [results]


def same(ours: Any, theirs: Any, found: Any, wanted: Any, inputs: Any, their_inputs: Any) -> None:
    """The same results, and the same gradients of a loss of them all."""
    found, wanted = tensors(found), tensors(wanted)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert_close(a.detach(), of(b.detach().numpy()), rtol=1e-10, atol=1e-12)
    sum((x.square().sum() for x in found), norch.zeros((), device=DEVICE)).backward()
    sum(x.square().sum() for x in wanted).backward()
    for a, b in zip([*inputs, *ours.parameters()], [*their_inputs, *theirs.parameters()], strict=True):
        assert_close(a.grad, of(b.grad.numpy()), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("given", [False, True], ids=["from zeros", "from a state"])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_layers_like_torch(torch: Any, kind: str, options: str, given: bool) -> None:
    ours, theirs = pair(torch, kind, 3, 4, **OPTIONS[options])
    rng = np.random.default_rng(0)
    layers = ours.num_layers * (1 + ours.bidirectional)
    for batch in ((2,), ()):
        shape = (*batch, 5, 3) if ours.batch_first else (5, *batch, 3)
        arrays = [rng.normal(size=shape), *(rng.normal(size=(layers, *batch, 4)) for _ in range(2 * given))]
        arrays = arrays[:2] if kind != "LSTM" else arrays
        x, y = [of(a).requires_grad_() for a in arrays], [torch.tensor(a).requires_grad_() for a in arrays]
        states = [one[1:] if kind == "LSTM" else one[1] for one in (x, y)] if given else [None, None]
        states = [tuple(one) if isinstance(one, list) else one for one in states]
        ours.zero_grad(), theirs.zero_grad()
        same(ours, theirs, ours(x[0], states[0]), theirs(y[0], states[1]), x, y)


@pytest.mark.parametrize("kind", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells_like_torch(torch: Any, kind: str) -> None:
    ours, theirs = pair(torch, kind, 3, 4)
    rng = np.random.default_rng(0)
    for batch in ((2,), ()):
        array, states = rng.normal(size=(*batch, 3)), [rng.normal(size=(*batch, 4)) for _ in range(2)]
        x, y = of(array).requires_grad_(), torch.tensor(array, requires_grad=True)
        ours.zero_grad(), theirs.zero_grad()
        same(ours, theirs, ours(x), theirs(y), [x], [y])
        a, b = [of(s) for s in states], [torch.tensor(s) for s in states]
        found, wanted = (m(i, tuple(s) if kind == "LSTMCell" else s[0]) for m, i, s in ((ours, x, a), (theirs, y, b)))
        assert_close(tensors(found)[0], of(tensors(wanted)[0].detach().numpy()), rtol=1e-10, atol=1e-12)


def test_relu_and_dropout(torch: Any) -> None:
    ours, theirs = pair(torch, "RNN", 3, 4, 2, "relu")
    x = np.random.default_rng(0).normal(size=(5, 2, 3))
    assert_close(ours(of(x))[0].detach(), of(theirs(torch.tensor(x))[0].detach().numpy()))
    assert pair(torch, "RNNCell", 3, 4, nonlinearity="relu")[0](norch.ones(3, dtype=norch.float64)).amin() >= 0
    layer = nn.GRU(3, 4, 2, dropout=0.5)
    assert not norch.equal(layer(norch.ones(9, 2, 3))[0], layer(norch.ones(9, 2, 3))[0])
    layer.eval()
    assert norch.equal(layer(norch.ones(9, 2, 3))[0], layer(norch.ones(9, 2, 3))[0])
    assert [len(weights) for weights in layer.all_weights] == [4, 4] and layer.flatten_parameters() is None


@pytest.mark.parametrize("options", OPTIONS)
def test_projected_states_like_torch(torch: Any, options: str) -> None:
    ours, theirs = pair(torch, "LSTM", 3, 4, **OPTIONS[options], proj_size=2)
    assert [[w.shape for w in ws] for ws in ours.all_weights] == [[w.shape for w in ws] for ws in theirs.all_weights]
    rng = np.random.default_rng(0)
    runs = ours.num_layers * (1 + ours.bidirectional)
    for batch, given in itertools.product(((2,), ()), (True, False)):
        arrays = [rng.normal(size=(*batch, 5, 3) if ours.batch_first else (5, *batch, 3))]
        arrays += [rng.normal(size=(runs, *batch, size)) for size in (2, 4) if given]
        x, y = [of(a).requires_grad_() for a in arrays], [torch.tensor(a).requires_grad_() for a in arrays]
        ours.zero_grad(), theirs.zero_grad()
        same(ours, theirs, ours(x[0], x[1:] or None), theirs(y[0], y[1:] or None), x, y)
    rows = rng.normal(size=(2, 5, 3))
    x, y = of(rows).requires_grad_(), torch.tensor(rows, requires_grad=True)
    ours.zero_grad(), theirs.zero_grad()
    packs = [m.nn.utils.rnn.pack_padded_sequence(a, [3, 5], True, False) for m, a in ((norch, x), (torch, y))]
    found, wanted = ours(packs[0]), theirs(packs[1])
    same(ours, theirs, (found[0].data, found[1]), (wanted[0].data, wanted[1]), [x], [y])


def test_it_learns_to_remember() -> None:
    """The first of four numbers, asked for at the end."""
    norch.manual_seed(0)
    layer, head = nn.GRU(1, 8, batch_first=True), nn.Linear(8, 1)
    opt = norch.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.02)
    for _ in range(200):
        x = norch.rand(32, 4, 1)
        loss = (head(layer(x)[0][:, -1]) - x[:, 0]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    assert loss.item() < 0.01


X = norch.ones(5, 2, 3)
BAD: Any = [
    (lambda: nn.LSTM(3, 4)(norch.ones(5, 2, 2)), norch.ShapeError, r"LSTM: .* the last of 3, got shape \(5, 2, 2\)"),
    (lambda: nn.LSTM(3, 4)(norch.ones(3)), norch.ShapeError, "LSTM: expected an input of 2 or 3 dimensions"),
    (lambda: nn.GRU(3, 4)(norch.ones(0, 2, 3)), norch.ShapeError, "GRU: expected a non-empty sequence"),
    (lambda: nn.GRU(3, 4)([1.0]), TypeError, "GRU: expected a tensor, not list"),
    (lambda: nn.GRU(3, 4)(X, norch.ones(1, 3, 4)), norch.ShapeError, r"state of shape \(1, 2, 4\), got \(1, 3, 4\)"),
    (lambda: nn.LSTM(3, 4)(X, norch.ones(1, 2, 4)), TypeError, "LSTM: hx must be a tuple of two tensors"),
    (lambda: nn.RNN(3, 4)(X, (norch.ones(1, 2, 4),)), TypeError, "RNN: hx must be a tensor"),
    (lambda: nn.RNN(3, 4, nonlinearity="sin"), ValueError, "RNN: nonlinearity is 'tanh' or 'relu', not 'sin'"),
    (lambda: nn.LSTM(3, 0), ValueError, "hidden_size and num_layers are positive, not 3, 0 and 1"),
    (lambda: nn.RNN(0, 4), ValueError, "hidden_size and num_layers are positive, not 0, 4 and 1"),
    (lambda: nn.GRU(3, 4, batch_first="False"), TypeError, "GRU: batch_first must be True or False, not str"),
    (lambda: nn.RNN(3, 4, 1, "tanh", 0), TypeError, "RNN: bias must be True or False, not int"),
    (lambda: nn.LSTM(3, 4, dropout=2), ValueError, "dropout is a probability, not 2"),
    (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "proj_size is 0 or more, and less than hidden_size, not 4"),
    (lambda: nn.LSTM(3, 4, proj_size=-1), ValueError, "proj_size is 0 or more, and less than hidden_size, not -1"),
    (lambda: nn.GRU(3, 4, proj_size=2), ValueError, "GRU: proj_size is an option of LSTM alone"),
    (
        lambda: nn.LSTM(3, 4, proj_size=2)(X, (norch.ones(1, 2, 4),) * 2),
        norch.ShapeError,
        r"\(1, 2, 2\), got \(1, 2, 4",
    ),
    (lambda: nn.LSTMCell(3, 4)(norch.ones(2, 3), (norch.ones(2, 4),)), TypeError, "a tuple of two tensors"),
    (lambda: nn.GRUCell(3, 4)(X), norch.ShapeError, "GRUCell: expected an input of 1 or 2 dimensions"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[one[2] for one in BAD])
def test_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
    with pytest.warns(UserWarning, match="there is one layer"):
        nn.GRU(1, 1, dropout=0.5)


def test_second_derivatives_of_an_lstm() -> None:
    norch.manual_seed(0)
    cell = nn.LSTMCell(2, 3, dtype=norch.float64, device=DEVICE)
    x, h, c = (norch.randn(2, n, dtype=norch.float64, device=DEVICE, requires_grad=True) for n in (2, 3, 3))
    gradcheck(lambda *given: cell(given[0], given[1:]), (x, h, c))
    gradgradcheck(lambda *given: cell(given[0], given[1:]), (x, h, c))


# name: what is made of h' and c', and what is written into them before its gradient is asked for
LOOPS: Any = {
    "h written, c used": (lambda m, h, c: (c * c).sum(), lambda m, h, c: h.add_(1)),
    "c written, h used": (lambda m, h, c: (h * h).sum(), lambda m, h, c: c.clamp_(-1, 1)),
    "neither saved": (lambda m, h, c: h.sum() + c.sum(), lambda m, h, c: (h.mul_(2), c.mul_(2))),
    "one used": (lambda m, h, c: c.exp().sum(), lambda m, h, c: None),
}


@pytest.mark.parametrize("name", LOOPS)
def test_states_of_a_cell_are_two_tensors(torch: Any, name: str) -> None:
    ours, theirs = pair(torch, "LSTMCell", 3, 4)
    array = np.random.default_rng(0).normal(size=(2, 3))
    found = []
    for m, cell, x in ((norch, ours, of(array)), (torch, theirs, torch.tensor(array))):
        use, write = LOOPS[name]
        h, c = cell(x, cell(x))
        loss = use(m, h, c)
        write(m, h, c)
        loss.backward()
        h, c = cell(x)
        loss = (c * c).sum()
        with m.no_grad():
            h.zero_()
        loss.backward()
        h, c = cell(x)
        h.detach_(), c.detach_()
        assert not h.requires_grad and not c.requires_grad
        found.append([p.grad.tolist() for p in cell.parameters()])
        h, c = cell(x, cell(x))
        loss = (h * c).sum()
        h.add_(1)
        with pytest.raises(RuntimeError):
            loss.backward()
        state = cell(x)
        loss = cell(x, state)[0].sum()
        state[1].add_(1)  # the next step saves it
        with pytest.raises(RuntimeError):
            loss.backward()
    for a, b in zip(*found, strict=True):
        assert_close(norch.tensor(a), norch.tensor(b), rtol=1e-6, atol=1e-7)


def test_a_state_is_saved_alone_and_freed_by_itself() -> None:
    cell = nn.LSTMCell(3, 400, device=DEVICE)
    buffer = io.BytesIO()
    norch.save(cell(norch.ones(2, 3, device=DEVICE))[1], buffer)
    assert buffer.tell() < 2 * 400 * 4 + 2000
    gc.disable()
    try:
        h, c = cell(norch.ones(2, 3, device=DEVICE))
        nodes = [weakref.ref(one) for x in (h, c) for one in (x.grad_fn, x.grad_fn.edges[0])]
        del h, c
        assert not any(node() for node in nodes)
    finally:
        gc.enable()


def test_a_wider_cell_state_widens_the_step(torch: Any) -> None:
    ours, theirs = pair(torch, "LSTMCell", 3, 4)
    ours.float(), theirs.float()
    h, c = ours(norch.ones(2, 3, device=DEVICE), (norch.ones(2, 4, device=DEVICE), of(np.ones((2, 4)))))
    wanted = theirs(torch.ones(2, 3), (torch.ones(2, 4), torch.ones(2, 4, dtype=torch.float64)))
    for a, b in zip((h, c), wanted, strict=True):
        assert a.dtype is norch.float64 and b.dtype is torch.float64
        assert_close(a.detach(), of(b.detach().numpy()), rtol=1e-6, atol=1e-7)
    (h.sum() + c.sum()).backward()
    assert ours.weight_hh.grad.dtype is norch.float32


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_second_derivatives_of_a_sequence(kind: str) -> None:
    norch.manual_seed(0)
    layer = getattr(nn, kind)(2, 2, bidirectional=True, dtype=norch.float64, device=DEVICE)
    x, h, c = (norch.randn(2, 1, 2, dtype=norch.float64, device=DEVICE, requires_grad=True) for _ in range(3))
    states = (h, c) if kind == "LSTM" else (h,)
    names = [name for name, _ in layer.named_parameters()]

    def call(x: Any, *given: Any) -> Any:
        parameters = dict(zip(names, given[len(states) :], strict=True))
        state = given[: len(states)]
        out, end = norch.func.functional_call(layer, parameters, (x, state if kind == "LSTM" else state[0]))
        return (out, *end) if kind == "LSTM" else (out, end)

    inputs = (x, *states, *layer.parameters())
    assert gradcheck(call, inputs)
    assert gradgradcheck(lambda x, *state: call(x, *state, *layer.parameters()), (x, *states))


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_results_may_be_written_to(kind: str) -> None:
    layer, x = getattr(nn, kind)(3, 4, device=DEVICE), norch.ones(5, 2, 3, device=DEVICE)
    found = []
    for in_place in (False, True):
        layer.zero_grad()
        out, _ = layer(x)
        (out.mul_(2) if in_place else out * 2).sum().backward()
        found.append([p.grad.clone() for p in layer.parameters()])
    for a, b in zip(*found, strict=True):
        assert norch.equal(a, b)
    out = layer(x)[0].sum()
    with norch.no_grad():
        layer.weight_hh_l0.add_(1)
    with pytest.raises(norch.Error, match="changed in place"):
        out.backward()


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_sequences_are_their_steps(kind: str) -> None:
    """One call for all steps gives what cells give, of any layout, and in few nodes."""
    norch.manual_seed(0)
    layer = getattr(nn, kind)(3, 5, device=DEVICE)
    cell = getattr(nn, kind + "Cell")(3, 5, device=DEVICE)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    x = norch.randn(2, 4, 3, device=DEVICE).transpose(0, 1)
    state: Any = tuple(norch.randn(5, 2, device=DEVICE).T for _ in range(2))
    first = tuple(s[None] for s in state)
    out, end = layer(x, first if kind == "LSTM" else first[0])
    state, outs = (state if kind == "LSTM" else state[0]), []
    for part in x:
        state = cell(part, state)
        outs.append(state[0] if kind == "LSTM" else state)
    assert_close(out, norch.stack(outs), rtol=1e-6, atol=1e-6)
    for a, b in zip(tensors(end), tensors(state), strict=True):
        assert_close(a[0], b, rtol=1e-6, atol=1e-6)


def test_refusals_of_the_call() -> None:
    x, h, weight, hs, kept = (norch.ones(s) for s in ((2, 3, 12), (3, 4), (12, 4), (2, 3, 4), (2, 3, 16)))
    for changed, message in (
        ((norch.ones(2, 3, 11), h, None, weight, None, False, hs, kept, None), "the gates"),
        ((x, h, h, weight, None, False, hs, kept, None), "no tensor for the states c"),
        ((x, h, None, weight.T, None, False, hs, kept, None), "the weight"),
        ((x, h.double(), None, weight, None, False, hs, kept, None), "what is kept"),
        ((x, h, None, weight, norch.ones(3), False, hs, kept, None), "the bias"),
    ):
        with pytest.raises(norch.Error, match=message):
            lib.norch_recurrent(*changed)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_without_gradients(kind: str) -> None:
    """Gates are kept for gradients alone: results are the same in both directions, and states are not written."""
    layer = getattr(nn, kind)(3, 20, num_layers=2, bidirectional=True, device=DEVICE)
    x, first = norch.randn(5, 2, 3, device=DEVICE), norch.randn(4, 2, 20, device=DEVICE)
    state: Any = (first, first.clone()) if kind == "LSTM" else first
    before = [s.clone() for s in tensors(state)]
    with norch.no_grad():
        out, end = layer(x, state)
    expected, expected_end = layer(x, state)
    for a, b in zip((out, *tensors(end)), (expected, *tensors(expected_end)), strict=True):
        assert norch.equal(a, b.detach())
    assert all(map(norch.equal, tensors(state), before))


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_layer_without_biases_of_a_file_of_pytorch(torch: Any, kind: str) -> None:
    theirs = getattr(torch.nn, kind)(3, 4, num_layers=2, bias=False)
    file = io.BytesIO()
    torch.save(theirs, file)
    file.seek(0)
    ours = norch.load(file, weights_only=False)
    x = np.random.default_rng(0).standard_normal((5, 2, 3)).astype(np.float32)
    assert_close(ours(of(x))[0].detach(), of(theirs(torch.tensor(x))[0].detach().numpy()))
    assert [len(weights) for weights in ours.all_weights] == [2, 2]
