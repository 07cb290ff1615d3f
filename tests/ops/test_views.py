"""Views move no byte, share memory and agree with NumPy; indexing too."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import examples

import norch


def counted(*shape, dtype="float32"):
    return np.arange(math.prod(shape)).reshape(shape).astype(dtype)


def agree(ours, array):
    """Same shape and elements; strides and offset lie inside the storage."""
    assert tuple(ours.shape) == array.shape
    assert ours.ndim == array.ndim and ours.numel() == array.size
    np.testing.assert_array_equal(ours.numpy(), array)
    assert len(ours.stride()) == ours.ndim
    assert ours.is_contiguous() == is_contiguous(ours)


def is_contiguous(x):
    step = 1
    for size, stride in zip(reversed(x.shape), reversed(x.stride())):
        if x.numel() and size != 1 and stride != step:
            return False
        step *= size
    return True


VIEWS = {
    "reshape": (lambda x: x.reshape(6, 4), lambda a: a.reshape(6, 4)),
    "reshape -1": (lambda x: x.reshape(3, -1), lambda a: a.reshape(3, -1)),
    "view": (lambda x: x.view(4, 6), lambda a: a.reshape(4, 6)),
    "view of a tuple": (lambda x: x.view((2, 12)), lambda a: a.reshape(2, 12)),
    "permute": (lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "permute negative": (lambda x: x.permute(-1, 0, -2), lambda a: a.transpose(2, 0, 1)),
    "transpose": (lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, 2)),
    "T": (lambda x: x[0].T, lambda a: a[0].T),
    "mT": (lambda x: x.mT, lambda a: a.swapaxes(1, 2)),
    "expand": (lambda x: x[:, :1].expand(2, 5, 4), lambda a: np.broadcast_to(a[:, :1], (2, 5, 4))),
    "expand -1": (lambda x: x[:1].expand(7, -1, -1), lambda a: np.broadcast_to(a[:1], (7, 3, 4))),
    "expand new axis": (lambda x: x.expand(2, 2, 3, 4), lambda a: np.broadcast_to(a, (2, 2, 3, 4))),
    "squeeze": (lambda x: x[:1, :, :1].squeeze(), lambda a: a[:1, :, :1].squeeze()),
    "squeeze dim": (lambda x: x[:1, :, :1].squeeze(-1), lambda a: a[:1, :, :1].squeeze(-1)),
    "squeeze other dim": (lambda x: x.squeeze(1), lambda a: a),
    "unsqueeze": (lambda x: x.unsqueeze(1), lambda a: a[:, None]),
    "unsqueeze last": (lambda x: x.unsqueeze(-1), lambda a: a[..., None]),
    "flatten": (lambda x: x.flatten(), lambda a: a.reshape(-1)),
    "flatten part": (lambda x: x.flatten(1), lambda a: a.reshape(2, 12)),
    "slice": (lambda x: x[:, 1:3], lambda a: a[:, 1:3]),
    "flipped": (lambda x: x[:, ::-1], lambda a: a[:, ::-1]),
    "flipped with step": (lambda x: x[::-1, ..., -1:0:-2], lambda a: a[::-1, ..., -1:0:-2]),
    "slice with step": (lambda x: x[..., ::3], lambda a: a[..., ::3]),
    "select": (lambda x: x.select(1, -1), lambda a: a[:, -1]),
    "narrow": (lambda x: x.narrow(2, 1, 2), lambda a: a[:, :, 1:3]),
    "diagonal": (lambda x: x.diagonal(), lambda a: a.diagonal()),
    "diagonal below": (lambda x: x.diagonal(-1, 1, 2), lambda a: a.diagonal(-1, 1, 2)),
    "diagonal above": (lambda x: x.diagonal(2, dim1=-2, dim2=-1), lambda a: a.diagonal(2, 1, 2)),
    "unfold": (
        lambda x: x.unfold(2, 2, 1),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, axis=2),
    ),
    "unfold with step": (
        lambda x: x.unfold(1, 2, 2),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, axis=1)[:, ::2],
    ),
    "integer": (lambda x: x[1], lambda a: a[1]),
    "integers": (lambda x: x[1, -1, 0], lambda a: a[1, -1, 0]),
    "detach": (lambda x: x.detach(), lambda a: a),
    "data": (lambda x: x.data, lambda a: a),
}


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("name", VIEWS)
def test_views_equal_numpy_and_share_memory(name, dtype):
    ours, theirs = VIEWS[name]
    array = counted(2, 3, 4, dtype=dtype)
    x = norch.tensor(array)
    storages = norch._binding.library.lib.norch_live_storages()
    view = ours(x)
    assert norch._binding.library.lib.norch_live_storages() == storages, "a view made a storage"
    agree(view, np.asarray(theirs(array)))
    size = x.element_size()
    assert view.data_ptr() == x.data_ptr() + view.storage_offset() * size
    if "expand" in name:
        return
    view.fill_(77)
    expected = array.copy()
    positions = theirs(np.arange(array.size).reshape(array.shape))
    expected.reshape(-1)[positions] = 77
    np.testing.assert_array_equal(x.numpy(), expected)
    x.zero_()
    assert not view.numpy().any()


def test_view_raises_where_a_copy_is_needed_and_reshape_copies():
    x = norch.tensor(counted(3, 4))
    with pytest.raises(norch.ShapeError, match="view"):
        x.T.view(12)
    with pytest.raises(norch.ShapeError):
        x[:, :3].view(-1)
    flat = x.T.reshape(12)
    assert flat.tolist() == counted(3, 4).T.reshape(-1).tolist()
    flat.zero_()
    assert x.sum().item() == 66
    assert x[:, :3].view(3, 3, 1).shape == (3, 3, 1)  # strides allow it
    assert x.T.view(2, 2, 3).stride() == (2, 1, 4)


def test_reshape_shares_memory_where_it_can():
    x = norch.zeros(3, 4)
    x.reshape(2, 6)[0, 0] = 5
    x.flatten()[-1] = 6
    assert x[0].flatten().is_contiguous(memory_format=norch.contiguous_format)
    assert (row := x[0]).flatten() is row
    assert x[0, 0].item() == 5 and x[2, 3].item() == 6


@pytest.mark.parametrize(
    "shape, wanted, expected",
    [
        ((0, 3), (3, 0), (3, 0)),
        ((0, 3), (0, -1), None),
        ((0, 3), (-1, 3), (0, 3)),
        ((0,), (2, 0, 5), (2, 0, 5)),
        ((), (1, 1), (1, 1)),
        ((1, 1), (), ()),
        ((2, 3), (-1, -1), None),
        ((2, 3), (4, -1), None),
        ((2, 3), (7,), None),
        ((2, 3), (-2, -3), None),
        ((2, 3), (-2, 3), None),
    ],
)
def test_reshape_corners(torch, shape, wanted, expected):
    x, theirs = norch.zeros(shape), torch.zeros(shape)
    if expected is None:
        for call in (x.view, x.reshape):
            with pytest.raises(norch.ShapeError):
                call(wanted)
        with pytest.raises(RuntimeError):
            theirs.reshape(wanted)
    else:
        assert tuple(x.view(wanted).shape) == tuple(theirs.view(wanted).shape) == expected


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.permute(0, 0, 1),
        lambda x: x.permute(0, 1),
        lambda x: x.permute(0, 1, 3),
        lambda x: x.transpose(0, 3),
        lambda x: x.expand(2, 3, 5),
        lambda x: x.expand(3, 4),
        lambda x: x.expand(-1, 2, 3, 4),
        lambda x: x.squeeze(3),
        lambda x: x.unsqueeze(5),
        lambda x: x.unsqueeze(-5),
        lambda x: x.flatten(2, 1),
        lambda x: x.flatten(0, 3),
        lambda x: x.select(0, 2),
        lambda x: x.select(0, -3),
        lambda x: x.select(3, 0),
        lambda x: x.narrow(0, 1, 2),
        lambda x: x.narrow(0, 0, -1),
        lambda x: x.diagonal(0, 1, 1),
        lambda x: x.diagonal(0, 0, 3),
        lambda x: x.unfold(2, 5, 1),
        lambda x: x.unfold(2, 2, 0),
        lambda x: x.unfold(3, 1, 1),
        lambda x: x.unfold(2, -1, 1),
        lambda x: x[2],
        lambda x: x[0, 0, 0, 0],
        lambda x: x[..., 4],
        lambda x: x[::0],
        lambda x: x[1.0],
        lambda x: x.t(),
    ],
)
def test_what_raises_in_torch_raises_here(torch, call):
    before = norch.zeros(2, 3, 4)
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)):
        call(torch.zeros(2, 3, 4))
    with pytest.raises((norch.Error, IndexError, TypeError, ValueError)):
        call(before)


def test_of_0d():
    x = norch.tensor(3.0)
    assert x.reshape(1).shape == (1,) and x.flatten().shape == (1,) and x.unsqueeze(0).shape == (1,)
    assert x.squeeze().shape == () and x.T.shape == () and x.expand(2, 2).shape == (2, 2)
    assert x[...].shape == () and x[()].shape == () and x[None].shape == (1,)
    assert x[0].shape == () and x[0].item() == 3.0
    x[0] = 4.0
    assert x.item() == 4.0
    x[()] = 5.0
    x[...] += 1
    assert x.item() == 6.0
    for bad in (1, -1):
        with pytest.raises(IndexError):
            x[bad]
    with pytest.raises(IndexError):
        x[0, 0]


def test_flipped_views_are_written_and_read_in_order():
    x = norch.tensor(counted(5))
    x[1:] += x[:0:-1]
    assert x.tolist() == [0, 5, 5, 5, 5]
    x = norch.tensor(counted(4))
    x.copy_(x[::-1])
    assert x.tolist() == [3, 2, 1, 0]
    x[::-2] = norch.tensor([7.0, 8.0])
    assert x.tolist() == [3, 8, 1, 7]
    assert x[::-1].stride() == (-1,) and x[::-1][::-1].is_contiguous()
    with pytest.raises(norch.Error, match="expanded"):
        norch.zeros(3, 1).expand(3, 4)[::-1, ::-1].add_(1)
    a, b = norch.tensor(counted(70, 90) % 7), norch.tensor(counted(90, 80) % 5)
    wanted = a.numpy()[::-1, ::-1] @ b.numpy()[::-1, ::-1]
    assert (a[::-1, ::-1] @ b[::-1, ::-1]).tolist() == wanted.tolist()
    w = norch.zeros(2, 3, requires_grad=True)
    y = w * 1
    y[::-1, ::-2] *= norch.tensor([[1.0, 2.0], [3.0, 4.0]])
    y.sum().backward()
    assert w.grad.tolist() == [[4, 1, 3], [2, 1, 1]]


def test_many_dimensions():
    array = counted(*([2] * 8))
    x = norch.tensor(array)
    agree(x.permute(7, 6, 5, 4, 3, 2, 1, 0), array.transpose(7, 6, 5, 4, 3, 2, 1, 0))
    agree(x[1, :, ::2, None, ..., 0], array[1, :, ::2, None, ..., 0])
    agree(x + x.T, array + array.T)
    with pytest.raises(norch.ShapeError):
        x.reshape([2] * 8 + [1] * 20)


# ---- any chain of views ------------------------------------------------------------------------------------------


@st.composite
def step(draw, shape):
    """One view of a tensor of this shape: (function of a norch tensor, function of an array)."""
    n = len(shape)
    kinds = ["unsqueeze", "reshape", "squeeze", "flatten"]
    if n:
        kinds += ["permute", "slice", "select", "expand", "slice", "transpose", "movedim", "unflatten"]
        kinds += ["split", "chunk", "tensor_split", "unbind", "narrow", "atleast_3d"]
    if n > 1:
        kinds += ["diagonal", "mT", "T"]
    if n and n < 7 and max(shape) > 1:
        kinds.append("unfold")
    kind = draw(st.sampled_from(kinds))
    if kind == "unsqueeze":
        dim = draw(st.integers(-n - 1, n))
        return (lambda x: x.unsqueeze(dim)), (lambda a: np.expand_dims(a, dim))
    if kind == "squeeze":
        return (lambda x: x.squeeze()), (lambda a: a.squeeze())
    if kind == "flatten":
        start = draw(st.integers(0, max(n - 1, 0)))
        end = draw(st.integers(start, max(n - 1, 0)))
        product = math.prod(shape[start : end + 1])
        wanted = (*shape[:start], product, *shape[end + 1 :]) if n else (1,)
        return (lambda x: x.flatten(start, end)), (lambda a: a.reshape(wanted))
    if kind == "reshape":
        size = math.prod(shape)
        if size == 0:
            return (lambda x: x.reshape(shape)), (lambda a: a.reshape(shape))
        wanted = []
        while size > 1 and len(wanted) < 4:
            divisor = draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
            wanted.append(divisor)
            size //= divisor
        wanted.append(size)
        if draw(st.booleans()):
            wanted[draw(st.integers(0, len(wanted) - 1))] = -1
        return (lambda x: x.reshape(wanted)), (lambda a: a.reshape(wanted))
    if kind == "permute":
        axes = draw(st.permutations(range(n)))
        return (lambda x: x.permute(axes)), (lambda a: a.transpose(axes))
    if kind == "transpose":
        i, j = draw(st.integers(-n, n - 1)), draw(st.integers(-n, n - 1))
        return (lambda x: x.transpose(i, j)), (lambda a: a.swapaxes(i, j))
    if kind == "mT":
        return (lambda x: x.mT), (lambda a: a.swapaxes(-1, -2))
    if kind == "T":
        return (lambda x: x.T), (lambda a: a.T)
    if kind == "slice":
        dim = draw(st.integers(0, n - 1))
        limits = st.one_of(st.none(), st.integers(-shape[dim] - 2, shape[dim] + 2))
        part = slice(draw(limits), draw(limits), draw(st.sampled_from([None, 1, 2, 3, -1, -2, -3])))
        index = (slice(None),) * dim + (part,)
        return (lambda x: x[index]), (lambda a: a[index])
    if kind == "select":
        dim = draw(st.integers(0, n - 1))
        if shape[dim] == 0:
            return (lambda x: x), (lambda a: a)
        i = draw(st.integers(-shape[dim], shape[dim] - 1))
        index = (slice(None),) * dim + (i,)
        return (lambda x: x.select(dim, i)), (lambda a: np.asarray(a[index]))
    if kind == "expand":
        wanted = tuple(draw(st.integers(1, 3)) if size == 1 else size for size in shape)
        return (lambda x: x.expand(wanted)), (lambda a: np.broadcast_to(a, wanted))
    if kind == "unfold":
        dim = draw(st.sampled_from([i for i in range(n) if shape[i] > 1]))
        size, gap = draw(st.integers(1, shape[dim])), draw(st.integers(1, 3))
        cut = (slice(None),) * dim + (slice(None, None, gap),)
        window = np.lib.stride_tricks.sliding_window_view
        return (lambda x: x.unfold(dim, size, gap)), (lambda a: window(a, size, axis=dim)[cut])
    if kind == "atleast_3d":
        return norch.atleast_3d, np.atleast_3d
    if kind == "movedim":
        axes = [draw(st.permutations(range(n)))[: draw(st.integers(1, n))] for _ in range(2)]
        count = min(map(len, axes))
        source, destination = tuple(axes[0][:count]), tuple(axes[1][:count])
        return (lambda x: x.movedim(source, destination)), (lambda a: np.moveaxis(a, source, destination))
    if kind in ("unflatten", "split", "chunk", "tensor_split", "unbind", "narrow"):
        dim = draw(st.integers(0, n - 1))
        size = shape[dim]
        before = (slice(None),) * dim
    if kind == "unflatten":
        first = draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0] or [1]))
        wanted = (*shape[:dim], first, size // first, *shape[dim + 1 :])
        return (lambda x: x.unflatten(dim - n, (first, -1))), (lambda a: a.reshape(wanted))
    if kind == "narrow":
        start = draw(st.integers(0, size))
        length = draw(st.integers(0, size - start))
        return (lambda x: x.narrow(dim, start, length)), (lambda a: a[(*before, slice(start, start + length))])
    if kind == "unbind":
        i = draw(st.integers(0, size - 1)) if size else 0
        return (lambda x: x.unbind(dim)[i] if size else x), (lambda a: np.asarray(a[(*before, i)]) if size else a)
    if kind == "tensor_split":
        cuts = draw(st.one_of(st.integers(1, 4), st.lists(st.integers(-size - 1, size + 1), max_size=3)))
        i = draw(st.integers(0, cuts - 1 if isinstance(cuts, int) else len(cuts)))
        return (lambda x: x.tensor_split(cuts, dim)[i]), (lambda a: np.array_split(a, cuts, dim)[i])
    if kind in ("split", "chunk"):
        count = draw(st.integers(1, size + 1))
        parts = (
            -(-size // count)
            if kind == "split"
            else min(count, -(-size // max(-(-size // count), 1)))
            if size
            else count
        )
        width = count if kind == "split" else -(-size // count)
        i = draw(st.integers(0, max(parts, 1) - 1))
        part = (*before, slice(i * width, (i + 1) * width))
        return (lambda x: getattr(x, kind)(count, dim)[i]), (lambda a: a[part])
    i, j = draw(st.permutations(range(n)))[:2]
    offset = draw(st.integers(-shape[i], shape[j]))
    return (lambda x: x.diagonal(offset, i, j)), (lambda a: a.diagonal(offset, i, j))


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_any_chain_of_views_equals_numpy(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=4)))
    array = counted(*shape)
    x = norch.tensor(array)
    for _ in range(data.draw(st.integers(1, 6))):
        if x.ndim > 9:
            break
        ours, theirs = data.draw(step(tuple(x.shape)))
        x, array = ours(x), theirs(array)
        agree(x, array)
        assert x.tolist() == array.tolist()
        agree(x.clone(), array)
        agree(x * 2 + 1, array * 2 + 1)
        assert x.sum().item() == array.sum()


# ---- indexing ----------------------------------------------------------------------------------------------------


@st.composite
def index_of(draw, shape):
    parts = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        limits = st.one_of(st.none(), st.integers(-size - 2, size + 2))
        if size and draw(st.booleans()):
            parts.append(draw(st.integers(-size, size - 1)))
        else:
            parts.append(slice(draw(limits), draw(limits), draw(st.sampled_from([None, 1, 2, 5, -1, -3]))))
    cut = draw(st.integers(0, len(parts)))
    if draw(st.booleans()):
        parts.insert(cut, Ellipsis)
        # what follows the ellipsis counts from the end, so only whole slices and small integers stay valid
        parts[cut + 1 :] = [slice(None, None, 2) for _ in parts[cut + 1 :]]
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_index_and_assignment_equal_numpy(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=4)))
    array = counted(*shape)
    x = norch.tensor(array)
    index = data.draw(index_of(shape))
    part = np.asarray(array[index])
    agree(x[index], part)

    kind = data.draw(st.sampled_from(["number", "array", "tensor", "broadcast", "iadd"]))
    if kind == "number":
        array[index] = 5
        x[index] = 5
    elif kind == "iadd":
        array[index] += 3
        x[index] += 3
    else:
        value = -1.0 - counted(*part.shape)
        if kind == "broadcast" and part.ndim:
            value = value[..., :1] if part.shape[-1] else value
        array[index] = value
        x[index] = value if kind == "array" else norch.tensor(value)
    agree(x, array)


def test_assignment_casts_and_broadcasts():
    x = norch.zeros(2, 3, dtype=norch.int64)
    x[0] = 2.9
    x[1] = norch.tensor([1.5, -1.5, 7.0])
    assert x.tolist() == [[2, 2, 2], [1, -1, 7]]
    x[:, 1] = norch.tensor([[4]])[0]
    assert x.tolist() == [[2, 4, 2], [1, 4, 7]]
    x[...] = True
    assert x.tolist() == [[1] * 3] * 2
    with pytest.raises(norch.ShapeError):
        x[0] = norch.zeros(2)
    with pytest.raises(norch.ShapeError):
        x[0] = norch.zeros(2, 3)
    with pytest.raises(TypeError):
        x[0] = "a"
    assert x.tolist() == [[1] * 3] * 2


def test_index_types():
    x = norch.tensor(counted(3, 3))
    assert x[np.int64(1)].tolist() == x[1].tolist()
    assert x[np.int32(1), np.uint8(2)].item() == 5
    assert x[norch.tensor(1)].tolist() == x[1].tolist()
    assert x[slice(np.int64(1), norch.tensor(3))].tolist() == x[1:3].tolist()


def test_overlapping_copies_read_before_they_write():
    x = norch.tensor(counted(10))
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    x = norch.tensor(counted(10))
    x[:-1] = x[1:]
    assert x.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]
    x = norch.tensor(counted(4, 4))
    x.copy_(x.T)
    assert x.tolist() == counted(4, 4).T.tolist()
    x = norch.tensor(counted(4, 4))
    x += x.T
    assert x.tolist() == (counted(4, 4) + counted(4, 4).T).tolist()
    x = norch.tensor(counted(10))
    x[1:] += x[:-1]
    assert x.tolist() == [0, 1, 3, 5, 7, 9, 11, 13, 15, 17]


def test_an_expanded_tensor_cannot_be_written_to():
    x = norch.zeros(1)
    wide = x.expand(3)
    for write in (lambda: wide.add_(1), lambda: wide.copy_(norch.ones(3)), lambda: wide.exp_()):
        with pytest.raises(norch.Error, match="expanded"):
            write()
    assert x.item() == 0
    assert norch.zeros(0, 1).expand(0, 2).add_(1).shape == (0, 2)  # none of its elements is seen twice


def test_a_view_keeps_the_memory_alive():
    def make():
        base = norch.tensor(counted(1000))
        return base[10:20:2]

    assert make().tolist() == [10, 12, 14, 16, 18]
    bytes_before = norch._binding.library.lib.norch_live_bytes()
    view = make()
    assert norch._binding.library.lib.norch_live_bytes() - bytes_before >= 4000
    del view
    assert norch._binding.library.lib.norch_live_bytes() == bytes_before


def test_views_of_empty_tensors():
    for shape in [(0,), (0, 3), (3, 0), (2, 0, 3)]:
        array, x = np.zeros(shape, "float32"), norch.zeros(shape)
        agree(x.T, array.T)
        agree(x.flatten(), array.reshape(-1))
        agree(x[..., None], array[..., None])
        agree(x[:0], array[:0])
        if len(shape) > 1:
            agree(x.diagonal(), array.diagonal())
        x[...] = 1
        assert x.tolist() == array.tolist()
    with pytest.raises(IndexError):
        norch.zeros(0, 3)[0]


def test_long_chains_of_views():
    x = norch.zeros(4, 4)
    v = x
    for _ in range(5000):
        v = v.T
    v[0, 1] = 1
    assert x[0, 1].item() == 1


def test_views_know_their_base() -> None:
    x = norch.arange(6.0).reshape(2, 3)
    y = x.t()[1:]
    assert y._base is x._base and y._is_view() and x._base is not None and x._base._base is None
    z = norch.zeros(3)
    assert not z._is_view() and z[1:]._base is z and z[1:].clone()._base is None
    assert reversed(z + norch.arange(3)).tolist() == [2, 1, 0] and reversed(norch.tensor(1)).item() == 1


def test_gradients_of_reversed_axes():
    """Of a whole axis the gradient is reversed too; of a part, or of no elements, it has the shape of the input."""
    weights = norch.arange(12.0).view(3, 4)
    x = norch.ones(3, 4, requires_grad=True)
    (x.flip(0, 1) * weights).sum().backward()
    assert x.grad.tolist() == weights.flip(0, 1).tolist()
    (slope,) = norch.autograd.grad((x[::-1] ** 3 * weights).sum(), x, create_graph=True)
    assert norch.autograd.grad(slope.sum(), x)[0].tolist() == (6 * weights.flip(0)).tolist()
    x.grad = None
    (x[:, 2::-1] * weights[:, :3]).sum().backward()
    assert x.grad.tolist() == [[2, 1, 0, 0], [6, 5, 4, 0], [10, 9, 8, 0]]
    none = norch.ones(0, 4, requires_grad=True)
    none[:, 2::-1].sum().backward()
    assert none.grad.shape == (0, 4)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_copies_of_turned_and_flipped_tensors(dtype: str) -> None:
    """Squares of them are turned in registers, whichever way an axis runs."""
    x = (np.arange(3 * 66 * 131) % 251).astype(dtype).reshape(3, 66, 131)
    for order in itertools.permutations(range(3)):
        for ways in itertools.product((1, -1), repeat=3):
            parts = tuple(slice(None, None, way) for way in ways)
            found = norch.tensor(x)[parts].permute(order).contiguous()
            np.testing.assert_array_equal(found.numpy(), x[parts].transpose(order))


@pytest.mark.parametrize("take", [lambda y: y.view(-1), lambda y: y[:, 2], lambda y: y[1]])
def test_a_view_outlives_that_its_base_became_a_part_of_itself(take):
    def gradient(narrows):
        x = norch.arange(6.0).reshape(2, 3).requires_grad_()
        y = x * 1
        view = take(y)
        if narrows:
            y.as_strided_((2, 2), (3, 1))
        (view * norch.arange(1.0, view.numel() + 1)).sum().backward()
        return x.grad.tolist()

    assert gradient(True) == gradient(False)
