"""Random programs of views, writes through them and shapes changed in place: the values and gradients are those of a
functional program, which keeps each memory as a vector and each tensor as positions in it."""

import random

import numpy as np
import pytest

import norch

pytestmark = pytest.mark.host

BASES = [
    lambda a: a.reshape(2, 3, 4) * 1.5,
    lambda a: a.reshape(4, 3, 2).permute(2, 1, 0) * 1.5,
    lambda a: a.reshape(3, 2, 4).permute(1, 0, 2).sin(),
    lambda a: a.reshape(4, 2, 3).permute(1, 2, 0) * 1.5,
    lambda a: a.reshape(6, 4).T * 1.5,
    lambda a: a * 1.5,
]

# Each takes the tensor, or the array of its positions, by the methods that both have, and the random numbers.
VIEWS = [
    lambda x, r: x.T if x.ndim == 2 else x[...],
    lambda x, r: permuted(x, r.sample(range(x.ndim), x.ndim)),
    lambda x, r: flat(x),
    lambda x, r: shaped(x, r.choice([(2, -1), (-1, 2), (3, -1), (-1,)])),
    lambda x, r: x[None] if x.ndim < 4 else x[...],
    lambda x, r: x[r.randrange(x.shape[0])] if x.ndim and x.shape[0] else x[...],
    lambda x, r: x[r.randrange(2) :: r.choice([1, 2])] if x.ndim else x[...],
    lambda x, r: x[..., : r.randrange(1, 4)] if x.ndim else x[...],
    lambda x, r: x.diagonal() if x.ndim >= 2 else x[...],
    lambda x, r: x.swapaxes(0, -1) if x.ndim else x[...],
    lambda x, r: cut(x, r.randrange(2)),
    lambda x, r: x[::-1] if x.ndim else x[...],
    lambda x, r: (x if isinstance(x, np.ndarray) else x.unbind())[-1] if x.ndim and len(x) else x[...],
]
IN_PLACE = [
    lambda x, r: (x.t_(), lambda i: i.T) if x.ndim == 2 else None,
    lambda x, r: (x.transpose_(0, -1), lambda i: i.swapaxes(0, -1)) if x.ndim else None,
    lambda x, r: (x.swapaxes_(0, -1), lambda i: i.swapaxes(0, -1)) if x.ndim else None,
    lambda x, r: (x.unsqueeze_(0), lambda i: i[None]) if x.ndim < 4 else None,
    lambda x, r: (x.squeeze_(), lambda i: i.squeeze()),
]


def permuted(x, order):
    return x.transpose(order) if isinstance(x, np.ndarray) else x.permute(order)


def flat(x):
    return x.reshape(-1) if isinstance(x, np.ndarray) else x.flatten()


def shaped(x, shape):
    count = int(np.prod(x.shape))
    return x.reshape(shape) if count and count % abs(int(np.prod(shape))) == 0 else x[...]


def cut(x, i):
    if not x.ndim or x.shape[0] < 2:
        return x[...]
    parts = np.array_split(x, 2) if isinstance(x, np.ndarray) else x.tensor_split(2)
    return parts[i]


def run(seed):
    """The results of a random program, and of the functional one."""
    r = random.Random(seed)
    start = np.linspace(0.5, 2.0, 24)
    make = r.choice(BASES)
    ours = [norch.tensor(start, requires_grad=True), norch.tensor(1.25, dtype=norch.float64, requires_grad=True)]
    plain = [x.detach().clone().requires_grad_() for x in ours]
    base = make(ours[0])
    memories, tensors = [], []  # of a tensor: itself, the number of its memory, its positions there

    def add(x, value):
        """A tensor in a memory of its own, of this value in the functional program."""
        at = x.storage_offset() + np.zeros(tuple(x.shape), dtype=int)
        for axis, stride in enumerate(x.stride()):
            at += (stride * np.arange(at.shape[axis])).reshape(-1, *[1] * (at.ndim - axis - 1))
        memory = norch.zeros(x.untyped_storage().nbytes() // 8, dtype=norch.float64)
        memories.append(memory.index_put((norch.tensor(at.reshape(-1)),), value.reshape(-1)))
        tensors.append([x, len(memories) - 1, at])

    def value_of(tensor):
        _, memory, at = tensor
        return memories[memory][norch.tensor(np.ascontiguousarray(at))]

    add(base, make(plain[0]))
    if r.randrange(4) == 0:  # without a gradient of its own
        copy = base.detach().clone()
        add(copy, copy.clone())
    for _ in range(r.randint(3, 9)):
        tensor = r.choice(tensors)
        x, memory, at = tensor
        kind = r.randrange(10)
        if kind == 0 and x.numel() > 1:
            shape, stride = r.choice([((2,), (1,)), ((2,), (2,)), ((2, 2), (2, 1)), ((2, 2), (1, 3))])
            reach = sum((n - 1) * step for n, step in zip(shape, stride))
            if len(memories[memory]) > reach:
                offset = r.randrange(len(memories[memory]) - reach)
                there = offset + sum(np.ix_(*(step * np.arange(n) for n, step in zip(shape, stride))))
                tensors.append([x.as_strided(shape, stride, offset), memory, there])
        elif kind < 5:
            view, state = r.choice(VIEWS), r.getstate()
            seen = view(x, r)
            r.setstate(state)
            there = np.asarray(view(at, r))
            assert tuple(seen.shape) == there.shape
            if norch._binding.library.lib.norch_shares_storage(seen, x):
                tensors.append([seen, memory, there])
            else:
                add(seen, memories[memory][norch.tensor(np.ascontiguousarray(there))])
        elif kind < 7:
            if (done := r.choice(IN_PLACE)(x, r)) is not None:
                for other in tensors:
                    if other[0] is x:
                        other[2] = done[1](other[2])
        else:
            by, add_to = r.choice([(0, True), (1, False), (1, True), (2, False)])
            factor = [(2.0, 2.0), (ours[1], plain[1]), (x.detach() * 0.5, None)][by]
            before = value_of(tensor)
            other = before.detach() * 0.5 if factor[1] is None else factor[1]
            after = before + other if add_to else before * other
            x.add_(factor[0]) if add_to else x.mul_(factor[0])
            where = norch.tensor(np.ascontiguousarray(at).reshape(-1))
            memories[memory] = memories[memory].index_put((where,), after.reshape(-1))
    results = []
    for values, leaves in (([x for x, _, _ in tensors], ours), ([value_of(t) for t in tensors], plain)):
        loss = sum((value * value * (i + 1)).sum() for i, value in enumerate(values))
        found = norch.autograd.grad(loss, leaves, allow_unused=True) if loss.requires_grad else [None, None]
        results.append([loss.item(), *(0.0 if g is None else g.tolist() for g in found)])
    return results


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_programs_match_functional_ones(first):
    for seed in range(first, first + 100):
        ours, plain = run(seed)
        for one, other in zip(ours, plain, strict=True):
            assert one == pytest.approx(other, rel=1e-9), seed


def found(case, lib):
    start = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    a, w = lib.tensor(start, requires_grad=True), lib.tensor(2.5, dtype=lib.float64, requires_grad=True)
    result = case(lib, a, w)
    result.sum().backward()
    return [np.asarray(0.0 if x is None else x.detach()).tolist() for x in (result, a.grad, w.grad)]


def of_complex(lib, a):
    return lib.complex(a, a * 2)


def written(view, write, base=lambda lib, a: a.T * 1.0, change=None):
    """The squares of a base that was changed in place after a view of it was taken, and written to through that."""

    def case(lib, a, w):
        x = base(lib, a)
        v = view(x)
        if change is not None:
            change(x)
        write(v, w)
        return lib.view_as_real(x) ** 2 if x.is_complex() else x * x

    return case


def times(v, w):
    v.mul_(w)


CASES = {
    "flatten": written(lambda x: x.T.flatten()[1:4], times),
    "reshape": written(lambda x: x.T.reshape(-1)[::2], times),
    "view": written(lambda x: x.T.view(-1), times),
    "as_strided": written(lambda x: x.as_strided((2,), (1,)), times),
    "constants": written(lambda x: x.T.reshape(-1), lambda v, w: v.mul_(2.0)),
    "t_ of a base that requires grad": written(lambda x: x.T.view(6)[0:2], times, change=lambda x: x.t_()),
    "t_ of one that does not": written(
        lambda x: x.T.view(6)[0:2], times, lambda lib, a: a.detach().T * 1.0, lambda x: x.t_()
    ),
    "unsqueeze_, twice": written(lambda x: x[0], times, change=lambda x: x.unsqueeze_(1).unsqueeze_(0)),
    "real": written(lambda x: x.real.T.reshape(-1)[1:], times, lambda lib, a: of_complex(lib, a).T * 1.0),
    "imag": written(lambda x: x.T.imag[0], times, lambda lib, a: of_complex(lib, a).T * 1.0),
    "imag, t_": written(lambda x: x.imag, times, lambda lib, a: of_complex(lib, a), lambda x: x.t_()),
    "pairs": written(lambda x: x.T.reshape(3, 2)[1], times),
}


@pytest.mark.parametrize("way", ["call", "backward of a recording", "twice", "in a batch"])
@pytest.mark.parametrize("name", CASES)
def test_writes_match_torch(torch, name, way):
    case = CASES[name]
    if way == "call":
        assert found(case, norch) == found(case, torch)
        return

    def loss(a, w):
        return case(norch, a, w).sum()

    a = norch.tensor(np.arange(1.0, 7.0).reshape(2, 3), requires_grad=True)
    w = norch.tensor(2.5, dtype=norch.float64, requires_grad=True)
    expected = norch.autograd.grad(loss(a, w), (a, w), allow_unused=True)
    if way == "twice":
        if expected[0] is not None:
            assert norch.autograd.gradgradcheck(loss, (a, w))
        return
    if way == "backward of a recording":
        compiled = norch.compile(loss)
        results = [norch.autograd.grad(compiled(a, w), (a, w), allow_unused=True) for _ in range(4)]
    else:
        row = loss(a, w).reshape(1)
        one = norch.autograd.grad(
            row, (a, w), norch.ones(2, 1, dtype=row.dtype), allow_unused=True, is_grads_batched=True
        )
        results = [[None if g is None else g[1] for g in one]]
    for result in results:
        for g, right in zip(result, expected, strict=True):
            assert (g is None and right is None) or norch.allclose(g, right)


def test_what_a_view_has_left():
    """A base that no longer has the elements of a view: the view is read as it was, until one of them is written."""
    x = norch.arange(12.0, requires_grad=True)
    y = x * 2
    half, rest = y[:6], y[6:]
    y.as_strided_((6,), (1,))
    assert norch.autograd.grad(rest.sum(), x, retain_graph=True)[0].tolist() == [0.0] * 6 + [2.0] * 6
    half.mul_(3.0)
    assert norch.autograd.grad(y.sum(), x)[0].tolist() == [6.0] * 6 + [0.0] * 6
    for use in (lambda: rest.mul_(2.0), lambda: rest.sum()):
        with pytest.raises(norch.Error, match="has lost its history: take it again"):
            use()
    assert repr(rest).endswith("grad_fn=<Invalid>)") and rest.detach().tolist() == [12.0, 14.0, 16.0, 18.0, 20.0, 22.0]


def test_a_write_to_part_of_a_base_that_overlaps_itself_raises():
    base = norch.from_numpy(np.lib.stride_tricks.as_strided(np.ones(3), (2, 3), (0, 8)))
    w = norch.ones(3, dtype=norch.float64, requires_grad=True)
    with pytest.raises(norch.Error, match="overlapping elements"):
        base[0].mul_(w)


def test_as_strided_of_a_part_has_the_gradients_of_its_base():
    """PyTorch leaves out those of elements that are not in the part."""
    x = norch.ones(6, requires_grad=True)
    for base in (x, x * 1):
        assert norch.autograd.grad(base[::2].as_strided((4,), (1,)).sum(), x)[0].tolist() == [1.0] * 4 + [0.0] * 2


def test_as_strided_within_a_part_is_a_view_of_the_part(torch):
    for lib in (norch, torch):
        part = (lib.ones(3, 4, requires_grad=True) * 1)[:, ::2]  # between whose elements others lie
        part.retain_grad()
        part.as_strided((3,), (4,)).sum().backward()
        assert part.grad.tolist() == [[1, 0]] * 3


def test_as_strided_of_a_leaf_that_is_a_view_has_its_gradient():
    x = norch.ones(3)[1:].requires_grad_()
    w = norch.ones(2, requires_grad=True)
    (x.as_strided((2,), (1,)) * w * x[:1]).sum().backward()
    assert x.grad.tolist() == [3, 1]
    (before,) = norch.autograd.grad(x.as_strided((3,), (1,), 0).sum(), x)  # one element is not the leaf's
    assert before.tolist() == [1, 1]


def test_derivatives_of_derivatives_through_as_strided():
    def cubes(x):
        return (x.as_strided((3,), (1,)) ** 3).sum()

    x, slope = norch.tensor([1.0, 2.0, 3.0]), norch.func.grad(cubes)
    for hessian in (norch.func.hessian(cubes), norch.func.jacrev(slope), norch.func.jacfwd(slope)):
        assert hessian(x).tolist() == [[6, 0, 0], [0, 12, 0], [0, 0, 18]]
    assert norch.autograd.functional.hessian(cubes, x).diagonal().tolist() == [6, 12, 18]
    assert norch.func.jvp(slope, (x,), (norch.ones(3),))[1].tolist() == [6, 12, 18]
