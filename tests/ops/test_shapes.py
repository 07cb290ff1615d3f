"""Shapes that are composed: which results are views, what raises, gradients through writes into parts, padding."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import examples

import norch
import norch.nn.functional as F  # noqa: N812
from norch._binding.library import lib


def counted(*shape, dtype="float32"):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


PARTS = {
    "split": lambda x: x.split(2, 1)[1],
    "split sections": lambda x: x.split([1, 3], -1)[1],
    "split_with_sizes": lambda x: x.split_with_sizes([1, 3], -1)[1],
    "chunk": lambda x: x.chunk(2, -1)[1],
    "tensor_split": lambda x: x.tensor_split((1, 2), -1)[2],
    "hsplit": lambda x: norch.hsplit(x, 2)[1],
    "vsplit": lambda x: norch.vsplit(x, [1])[1],
    "dsplit": lambda x: norch.dsplit(x.view(2, 1, 2, 2), 2)[0][0] if x.ndim == 4 else x[:1],
    "unbind": lambda x: x.unbind(1)[2],
    "movedim": lambda x: x.movedim(0, 1)[1:],
    "swapaxes": lambda x: x.swapaxes(0, 1)[1:],
    "unflatten": lambda x: x.unflatten(1, (2, 2))[:, 1],
    "atleast_3d": lambda x: norch.atleast_3d(x)[1],
    "broadcast_tensors": lambda x: norch.broadcast_tensors(x[1:], norch.zeros(1, 4))[0],
    "adjoint": lambda x: x.adjoint()[1],
    "as_strided": lambda x: x.as_strided((2, 2), (3, 1), 1),
    "flipped": lambda x: x[:, ::-1].unbind(1)[0],
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_are_views_that_autograd_can_write_through(torch, name):
    plain = norch.zeros(2, 4)
    start = lib.norch_live_storages()
    part = PARTS[name](plain)
    assert lib.norch_shares_storage(part, plain)
    assert lib.norch_live_storages() <= start + 1  # the zeros beside it
    part.fill_(1)
    mask = plain.numpy().copy()
    assert 0 < mask.sum() < 8

    w = norch.tensor(counted(2, 4), requires_grad=True)
    y = w * 2
    PARTS[name](y).mul_(10)  # a write through the part is a write to y
    weights = norch.tensor(counted(2, 4) + 1)
    (y * weights).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), weights.numpy() * np.where(mask, 20, 2))
    stale = w * 1
    part = PARTS[name](stale)
    stale.mul_(3)  # and a write to y is seen by the part
    (gradient,) = norch.autograd.grad(part.sum(), [w])
    np.testing.assert_allclose(gradient.numpy(), 3 * mask)


COPIES = {
    "flip": lambda x: x.flip(0),
    "flip nothing": lambda x: x.flip(()),
    "rot90 by nothing": lambda x: x.rot90(4),
    "roll by nothing": lambda x: x.roll(0, 0),
    "roll all by nothing": lambda x: x.roll(8),
    "roll": lambda x: x.roll(1, 1),
    "repeat once": lambda x: x.repeat(1, 1),
    "tile once": lambda x: x.tile(1),
    "repeat_interleave once": lambda x: x.repeat_interleave(1, 0),
    "diag": lambda x: x.diag(),
    "pad nothing": lambda x: F.pad(x, (0, 0)),
    "pad nothing, reflected": lambda x: F.pad(x, (0, 0), mode="reflect"),
    "pad less": lambda x: F.pad(x, (-1, 0), mode="replicate"),
    "tril": lambda x: x.tril(),
    "repeat of one": lambda x: x[:1, :1].repeat(3, 2),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_are_copies(name):
    x = norch.tensor(counted(2, 4))
    out = COPIES[name](x)
    assert not lib.norch_shares_storage(out, x)
    assert out.is_contiguous()
    out.zero_()
    assert x.tolist() == counted(2, 4).tolist()


WRONG = {
    "unflatten": lambda m, x: m.unflatten(x, 1, (2, 2)),
    "unflatten -1": lambda m, x: m.unflatten(x, 1, (2, -1)),
    "unflatten empty": lambda m, x: m.unflatten(x, 1, ()),
    "unflatten dim": lambda m, x: m.unflatten(x, 2, (1, 3)),
    "movedim twice": lambda m, x: m.movedim(x, (0, 0), (0, 1)),
    "movedim uneven": lambda m, x: m.movedim(x, (0, 1), (0,)),
    "movedim dim": lambda m, x: m.movedim(x, 0, 2),
    "adjoint": lambda m, x: m.adjoint(x[0]),
    "flip": lambda m, x: x.flip(),
    "mT": lambda m, x: x[0].mT,
    "H": lambda m, x: x[0].H,
    "broadcast_shapes": lambda m, x: m.broadcast_shapes((2, 3), (2,)),
    "broadcast_tensors": lambda m, x: m.broadcast_tensors(x, x.T),
    "split by 0": lambda m, x: m.split(x, 0),
    "split by -1": lambda m, x: m.split(x, -1),
    "split sections": lambda m, x: m.split(x, [1, 2]),
    "split dim": lambda m, x: m.split(x, 1, 2),
    "split a number": lambda m, x: m.split(x[0, 0], 1),
    "split by text": lambda m, x: m.split(x, "a"),
    "split_with_sizes": lambda m, x: m.split_with_sizes(x, [3, -1]),
    "chunk": lambda m, x: m.chunk(x, 0),
    "chunk by float": lambda m, x: m.chunk(x, 1.5),
    "tensor_split": lambda m, x: m.tensor_split(x, 0),
    "tensor_split both": lambda m, x: m.tensor_split(x, indices=(1,), sections=2),
    "tensor_split both, one by place": lambda m, x: m.tensor_split(x, 2, indices=(1,)),
    "tensor_split by nothing": lambda m, x: m.tensor_split(x),
    "hsplit": lambda m, x: m.hsplit(x, 2),
    "hsplit 0-d": lambda m, x: m.hsplit(x[0, 0], 1),
    "vsplit": lambda m, x: m.vsplit(x[0], 1),
    "dsplit": lambda m, x: m.dsplit(x, 1),
    "unbind": lambda m, x: m.unbind(x, 2),
    "unbind 0-d": lambda m, x: m.unbind(x[0, 0]),
    "hstack": lambda m, x: m.hstack([x, x[:1]]),
    "hstack one": lambda m, x: m.hstack(x[0, 0]),
    "vstack": lambda m, x: m.vstack([x, x[:, :1]]),
    "stack none": lambda m, x: m.vstack([]),
    "column_stack": lambda m, x: m.column_stack([x, x[0]]),
    "block_diag": lambda m, x: m.block_diag(x[None]),
    "flip twice": lambda m, x: m.flip(x, (0, 0)),
    "flip dim": lambda m, x: m.flip(x, (2,)),
    "fliplr": lambda m, x: m.fliplr(x[0]),
    "flipud": lambda m, x: m.flipud(x[0, 0]),
    "rot90 one": lambda m, x: m.rot90(x, 1, (0,)),
    "rot90 same": lambda m, x: m.rot90(x, 1, (0, 0)),
    "rot90 vector": lambda m, x: m.rot90(x[0]),
    "roll uneven": lambda m, x: m.roll(x, (1, 2), (0,)),
    "roll all": lambda m, x: m.roll(x, (1, 2)),
    "roll dim": lambda m, x: m.roll(x, 1, 2),
    "repeat few": lambda m, x: x.repeat(2),
    "repeat negative": lambda m, x: x.repeat(2, -1),
    "repeat_interleave": lambda m, x: m.repeat_interleave(x, m.tensor([1, 2, 3]), 0),
    "repeat_interleave negative": lambda m, x: m.repeat_interleave(x, -1),
    "repeat_interleave float": lambda m, x: m.repeat_interleave(x, m.tensor([1.0, 2.0]), 0),
    "repeat_interleave size": lambda m, x: m.repeat_interleave(x, m.tensor([1, 2]), 0, output_size=4),
    "diag": lambda m, x: m.diag(x[None]),
    "diag_embed": lambda m, x: m.diag_embed(x, 0, 1, 1),
    "diag_embed dim": lambda m, x: m.diag_embed(x, 0, 0, 3),
    "trace": lambda m, x: m.trace(x[0]),
    "tril": lambda m, x: m.tril(x[0, 0]),
    "select_scatter": lambda m, x: m.select_scatter(x, x, 0, 0),
    "slice_scatter": lambda m, x: m.slice_scatter(x, x, 0, 1),
    "slice_scatter step": lambda m, x: m.slice_scatter(x, x, 0, 0, 2, 0),
    "diagonal_scatter": lambda m, x: m.diagonal_scatter(x, x[0]),
    "pad odd": lambda m, x: m.nn.functional.pad(x, (1,)),
    "pad many": lambda m, x: m.nn.functional.pad(x, (1, 1, 1, 1, 1, 1)),
    "pad mode": lambda m, x: m.nn.functional.pad(x, (1, 1), mode="mirror"),
    "pad value": lambda m, x: m.nn.functional.pad(x, (1, 1), mode="reflect", value=2.0),
    "pad less than nothing": lambda m, x: m.nn.functional.pad(x, (-2, -2)),
    "pad reflect": lambda m, x: m.nn.functional.pad(x, (3, 0), mode="reflect"),
    "pad circular": lambda m, x: m.nn.functional.pad(x, (0, 4), mode="circular"),
    "pad replicate nothing": lambda m, x: m.nn.functional.pad(x[:, :0], (1, 0), mode="replicate"),
    "pad reflect many": lambda m, x: m.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "as_strided": lambda m, x: m.as_strided(x, (2, 2), (1,)),
    "as_strided outside": lambda m, x: m.as_strided(x, (2, 2), (5, 1), 1),
    "as_strided before": lambda m, x: m.as_strided(x, (2,), (1,), -1),
    "view wider": lambda m, x: x.view(m.float64),
    "view of columns": lambda m, x: x.T.view(m.uint8),
    "view of a number": lambda m, x: x[0, 0].view(m.float64),
    "narrow": lambda m, x: m.narrow(x, 1, 1, 3),
    "select": lambda m, x: m.select(x, 0, 2),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_raises_in_torch_raises_here(torch, name):
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError, NotImplementedError)):
        WRONG[name](torch, torch.zeros(2, 3))
    x = norch.tensor(counted(2, 3))
    with pytest.raises((norch.Error, IndexError, TypeError, ValueError, NotImplementedError)):
        WRONG[name](norch, x)
    assert x.tolist() == counted(2, 3).tolist()


FUNCTIONS = [
    "adjoint", "atleast_1d", "chunk", "diag", "diag_embed", "diagflat", "flip", "fliplr", "flipud", "hsplit", "movedim",
    "ravel", "repeat_interleave", "roll", "rot90", "split", "split_with_sizes", "tensor_split", "tile", "trace", "tril",
    "triu", "unbind", "unflatten", "vsplit", "dsplit", "select_scatter", "hstack", "vstack", "block_diag",
]  # fmt: skip


@pytest.mark.parametrize("bad", [None, 3, 1.5, "text", [1, 2], object()])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_no_tensor_is_named(name, bad):
    more = {"split": (1,), "chunk": (1,), "movedim": (0, 0), "roll": (1, 0), "flip": (0,), "tile": (2,), "hsplit": (1,)}
    more |= {"unflatten": (0, (1,)), "tensor_split": (1,), "split_with_sizes": ([1],), "repeat_interleave": (2,)}
    more |= {"vsplit": (1,), "dsplit": (1,), "select_scatter": (norch.zeros(1), 0, 0)}
    with pytest.raises(TypeError, match=name):
        getattr(norch, name)(bad, *more.get(name, ()))


def test_view_as_another_dtype(torch):
    array = counted(3, 4)
    x, theirs = norch.tensor(array), torch.tensor(array)
    for name in ("int32", "uint8", "float64", "int64", "bool"):
        ours = x.view(getattr(norch, name))
        assert ours.dtype is getattr(norch, name) and ours.data_ptr() == x.data_ptr()
        wanted = theirs.view(getattr(torch, name))
        assert tuple(ours.shape) == tuple(wanted.shape) and ours.stride() == wanted.stride()
        assert ours.numpy().tobytes() == wanted.numpy().tobytes()
    assert x.view(norch.uint8)[1:, 4:8].view(norch.float32).tolist() == [[5.0], [9.0]]
    assert x.view(dtype=norch.int32).T.view(norch.float32).tolist() == array.T.tolist()  # of one size: any strides
    assert x[1].view(norch.int32).storage_offset() == 4 and x[1].view(norch.uint8).storage_offset() == 16
    with pytest.raises(norch.ShapeError):
        x.view(norch.uint8)[:, 1:9].view(norch.float64)  # no whole number of elements in front
    x.view(norch.int32).zero_()
    assert x.sum().item() == 0
    w = norch.ones(2, requires_grad=True)
    assert not w.view(norch.int32).requires_grad


def test_as_strided_like_torch(torch):
    array = counted(4, 6)
    for view, size, stride, offset in (
        (lambda x: x, (3, 4), (6, 2), 1),
        (lambda x: x, (3, 5, 2), (2, 1, 3), 0),  # windows that overlap
        (lambda x: x[1:, 2:], (2, 2), (6, 2), None),
        (lambda x: x[1:, 2:], (2, 3), (6, 1), 8),
        (lambda x: x.T, (5, 3), (1, 6), 2),
        (lambda x: x, (0, 3), (1, 1), 0),
        (lambda x: x, (2, 3), (0, 1), 5),
        (lambda x: x, (), (), 23),
    ):
        grads = []
        for m in (norch, torch):
            leaf = m.tensor(array, requires_grad=True)
            x = leaf * 1
            part = view(x).as_strided(size, stride, offset)
            weights = m.arange(float(part.numel())).reshape(part.shape) + 1
            (part * part * weights).sum().backward()
            grads.append((part.tolist(), part.storage_offset(), leaf.grad.tolist()))
        assert grads[0] == grads[1]
    x = norch.tensor(array)
    assert x.as_strided((4,), (-6,), 18).tolist() == [18, 12, 6, 0]  # PyTorch has no negative strides
    turned = norch.tensor(array).t().detach().requires_grad_()
    assert turned.as_strided((2,), (1,)).tolist() == x.as_strided((2,), (1,)).tolist()  # of the memory behind it


@settings(max_examples=examples(80), deadline=None)
@given(st.data())
def test_any_padding_equals_torch(torch, data):
    ndim = data.draw(st.integers(2, 4))
    shape = tuple(data.draw(st.integers(1, 4)) for _ in range(ndim))
    mode = data.draw(st.sampled_from(["constant", "reflect", "replicate", "circular"]))
    count = data.draw(st.integers(1, ndim if mode == "constant" else min(ndim - 1, 3)))
    pads = [data.draw(st.integers(-2, 3)) for _ in range(2 * count)]
    arrays = []
    for m in (norch, torch):
        x = m.tensor(counted(*shape) + 1, requires_grad=True)
        try:
            out = m.nn.functional.pad(x, pads, mode=mode)
        except (RuntimeError, NotImplementedError):
            arrays.append(None)
            continue
        if out.numel():
            (out * m.arange(float(out.numel())).reshape(out.shape)).sum().backward()
        arrays.append((out.tolist(), x.grad.tolist() if out.numel() else None))
    cut = mode != "constant" and min(pads) < 0
    if cut and (arrays[0] is None or mode == "circular"):
        return  # PyTorch reads what it has not written, or takes elements that were cut off
    assert arrays[0] == arrays[1] or (cut and arrays[1] is None)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_turns_equal_numpy(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)))
    n = len(shape)
    array = counted(*shape)
    x = norch.tensor(array)
    axes = tuple(data.draw(st.permutations(range(n)))[: data.draw(st.integers(1, n))])
    shifts = tuple(data.draw(st.integers(-9, 9)) for _ in axes)
    np.testing.assert_array_equal(x.flip(axes).numpy(), np.flip(array, axes))
    np.testing.assert_array_equal(x.roll(shifts, axes).numpy(), np.roll(array, shifts, axes))
    np.testing.assert_array_equal(x.roll(shifts[0]).numpy(), np.roll(array, shifts[0]))
    counts = tuple(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n + 2)))
    np.testing.assert_array_equal(x.repeat(counts).numpy(), np.tile(array, counts))
    times = [data.draw(st.integers(0, 3)) for _ in range(shape[axes[0]])]
    ours = x.repeat_interleave(norch.tensor(times, dtype=norch.int64), axes[0])
    np.testing.assert_array_equal(ours.numpy(), np.repeat(array, times, axes[0]))
    if n > 1:
        k = data.draw(st.integers(-5, 5))
        plane = tuple(data.draw(st.permutations(range(n)))[:2])
        np.testing.assert_array_equal(x.rot90(k, plane).numpy(), np.rot90(array, k, plane))


def test_repeats_of_many_dimensions():
    x = norch.tensor(counted(*[2] * 10))
    assert x.repeat(*[1] * 9, 3).shape == (*[2] * 9, 6)
    assert x.tile(2, 1).shape == (*[2] * 8, 4, 2)


def test_gradients_of_pieces_that_are_left_out():
    x = norch.tensor(counted(6), requires_grad=True)
    first, _, last = x.split(2)
    (first.sum() * 2 + (last * last).sum()).backward()
    assert x.grad.tolist() == [2, 2, 0, 0, 8, 10]


def test_gradients_of_joined_tensors_have_their_dtypes():
    """Also of the empty one of one dimension, which cat() skips."""
    parts = [norch.ones(2, 2, dtype="float64"), norch.zeros(0, dtype="bfloat16"), norch.ones(1, 2, dtype="float16")]
    for part in parts:
        part.requires_grad_()
    norch.cat(parts).sum().backward()
    assert [(part.grad.dtype, part.grad.shape) for part in parts] == [(part.dtype, part.shape) for part in parts]


def test_forms_of_arguments():
    x = norch.tensor(counted(2, 3))
    assert x.flip(0, 1).tolist() == x.flip((0, 1)).tolist() == x.flip(dims=[0, 1]).tolist()
    assert x.repeat(2, 2).shape == x.repeat((2, 2)).shape == x.repeat(repeats=(2, 2)).shape == (4, 6)
    assert x.tile(2, 2).shape == x.tile(dims=(2, 2)).shape == (4, 6)
    assert x.permute(1, 0).shape == norch.permute(x, dims=(1, 0)).shape == (3, 2)
    assert x.reshape(3, 2).shape == norch.reshape(input=x, shape=(3, 2)).shape == (3, 2)
    assert x.view(size=(3, 2)).shape == (3, 2) and x.expand(size=(4, 2, 3)).shape == (4, 2, 3)
    assert [p.shape for p in norch.atleast_1d(x[0, 0], x)] == [(1,), (2, 3)]
    assert [p.shape for p in norch.atleast_2d((x[0, 0], x[0]))] == [(1, 1), (1, 3)]
    assert len(norch.broadcast_tensors([x, x[0]])) == 2
    assert norch.broadcast_shapes() == () and norch.broadcast_shapes(3, (2, 1)) == (2, 3)
    assert norch.tensor_split(x, norch.tensor([1, 2]), 1)[1].shape == (2, 1)
    assert [part.shape for part in norch.tensor_split(x, norch.tensor(2), 1)] == [(2, 2), (2, 1)]
    with pytest.raises(TypeError, match="tensor_split: give either indices or the number of sections"):
        norch.tensor_split(x)
    assert norch.block_diag().shape == (1, 0)
    mixed = norch.block_diag(norch.ones((), dtype=norch.float64), norch.ones(2, dtype=norch.float32))
    assert mixed.dtype is norch.float32  # a number has less weight, as in any other operation
    with pytest.raises(TypeError):
        x.flip(0, dims=(1,))
    with pytest.raises(norch.ShapeError, match="twice"):
        x.squeeze((0, 0))
    assert norch.swapaxes(x, axis0=0, axis1=1).shape == x.swapdims(dim0=0, dim1=1).shape == (3, 2)
    assert (
        x.split(split_size=2, dim=1)[1].shape == (2, 1) and norch.split(tensor=x, split_size_or_sections=1)[1].ndim == 2
    )
    assert x.vsplit(sections=2)[1].shape == (1, 3) and x.hsplit(indices=[1])[1].shape == (2, 2)


def test_axes_and_cuts_like_torch(torch):
    x, y = (m.arange(24).reshape(2, 3, 4) for m in (norch, torch))
    assert norch.tensor(5).movedim(0, -1).tolist() == 5
    for source, to in [(0, -1), ((0, 1), (1, 2)), ([2], [0]), ((-1, 0), (0, 1))]:
        assert x.movedim(source, to).tolist() == y.movedim(source, to).tolist()
    for cuts in [(), (0,), (1, 3), (3, 1), (-1,), (1, -2), (2, 9), (-9, 2), (4, 4)]:
        assert [p.tolist() for p in x.tensor_split(cuts, 2)] == [p.tolist() for p in y.tensor_split(cuts, 2)], cuts
    for indexing in ("ij", "xy"):
        for vectors in [(0,), (0, 1), (1, 0, 1), (0, 1, 0, 1)]:
            one, other = ([[m.arange(3), m.tensor(7)][i] for i in vectors] for m in (norch, torch))
            grids, expected = norch.meshgrid(*one, indexing=indexing), torch.meshgrid(*other, indexing=indexing)
            assert [g.tolist() for g in grids] == [g.tolist() for g in expected]
            assert [g.stride() for g in grids if 1 not in g.shape] == [g.stride() for g in expected if 1 not in g.shape]


def test_python_functions_over_elements():
    x = norch.tensor(counted(2, 3))
    assert x.T.apply_(lambda v: v * 2 + 1).tolist() == (counted(2, 3).T * 2 + 1).tolist()
    x.map_(norch.tensor([10.0, 20.0, 30.0]), lambda a, b: a + b)
    assert x.tolist() == (counted(2, 3) * 2 + 1 + [10, 20, 30]).tolist()
    assert norch.zeros(0).apply_(lambda v: 1 / v).shape == (0,)
    with pytest.raises(norch.Error, match="derivative"):
        norch.ones(2, requires_grad=True).apply_(float)


def test_questions(torch):
    x = norch.zeros(2, 0, 3, dtype=norch.int16)
    assert x.dim() == x.ndimension() == x.ndim == 3 and x.size(-1) == 3 and x.size(dim=1) == 0 and x.stride(0) == 3
    assert norch.numel(x) == x.numel() == x.nelement() == 0
    assert norch.zeros(2, 3, dtype=norch.int16).nbytes == 12
    for bad in (3, -4):
        with pytest.raises(IndexError, match="size"):
            x.size(bad)
    for value in (0, 1, 0.0, -0.5, True, math.nan):
        ours, theirs = norch.tensor([value]), torch.tensor([value])
        assert norch.is_nonzero(ours) == ours.is_nonzero() == torch.is_nonzero(theirs)
    with pytest.raises(ValueError):
        norch.is_nonzero(norch.ones(2))
    with pytest.raises(TypeError):
        norch.numel(3)


def test_memory_formats_change_nothing():
    x = norch.tensor(counted(2, 3)).T
    assert norch.zeros_like(x, memory_format=norch.preserve_format).tolist() == [[0, 0]] * 3
    assert x.clone(memory_format=norch.preserve_format).tolist() == x.tolist()
    assert x.contiguous(memory_format=norch.contiguous_format).is_contiguous()
    assert repr(norch.preserve_format) == "norch.preserve_format"
    assert isinstance(norch.preserve_format, norch.memory_format)


CASTS = "half bfloat16 float double char short int long bool byte clone contiguous to cpu cuda"


@pytest.mark.parametrize("wrong", ["junk", 3, norch.float64, norch.ones(2)], ids=["str", "int", "dtype", "tensor"])
def test_what_is_no_memory_format_is_refused(wrong):
    x = norch.ones(2)
    for name in CASTS.split():
        with pytest.raises(TypeError, match=f"^{name}: memory_format must be one of norch.contiguous_format, "):
            getattr(x, name)(memory_format=wrong)
    for name in "half double long contiguous cpu".split():
        with pytest.raises(TypeError, match=f"^{name}: memory_format must be"):
            getattr(x, name)(wrong)
    for name in "zeros ones empty rand randn full randint".split():
        more = [3] if name in ("full", "randint") else []
        with pytest.raises(TypeError, match=f"^{name}_like: memory_format must be"):
            getattr(norch, f"{name}_like")(x, *more, memory_format=wrong)
    with pytest.raises(TypeError, match="^Module.to: memory_format must be"):
        norch.nn.Linear(2, 2).to(memory_format=wrong)


def test_shuffles_like_torch(torch):
    array = np.arange(2 * 8 * 4 * 6.0).reshape(2, 8, 4, 6)
    for name, number in (("pixel_shuffle", 2), ("pixel_unshuffle", 2), ("channel_shuffle", 4)):
        for x in (array, array[:, :, ::-1].copy(), array[0] if name[0] == "p" else array):
            ours = getattr(norch, name)(norch.tensor(x), number)
            assert np.array_equal(ours, getattr(torch, name)(torch.tensor(x.copy()), number))
    assert norch.nn.PixelUnshuffle(2)(norch.nn.PixelShuffle(2)(norch.tensor(array))).tolist() == array.tolist()
    norch_norm = norch.nn.functional.normalize(norch.tensor(array), dim=(2, 3), p=1)
    assert np.allclose(norch_norm, array / np.abs(array).sum((2, 3), keepdims=True))


def test_circular_padding_repeats_what_is_left_once_at_most():
    x = norch.arange(4.0).reshape(1, 1, 4)
    assert norch.nn.functional.pad(x, (-2, 2), mode="circular").tolist() == [[[2.0, 3.0, 2.0, 3.0]]]
    with pytest.raises(norch.ShapeError, match="pad: -2 and 3 exceed what is left of dimension 2"):
        norch.nn.functional.pad(x, (-2, 3), mode="circular")
