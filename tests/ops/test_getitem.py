"""x[...] and x[...] = y: against NumPy on random indices, gradients against PyTorch, views, versions, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checks import wait
from functions import leaf
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import examples

import norch
from norch._binding.library import lib
from norch.testing import assert_close, gradcheck, gradgradcheck

# ---- random indices -------------------------------------------------------------------------------------------------


@st.composite
def shapes(draw: Any) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.sampled_from([0, 1, 2, 3, 3, 4, 5]), min_size=1, max_size=4)))


@st.composite
def slices(draw: Any, backward: bool) -> slice:
    bound = st.none() | st.integers(-6, 6)
    step = st.sampled_from([None, 1, 2, 3, *([-1, -2, -3] if backward else [])])
    return slice(draw(bound), draw(bound), draw(step))


@st.composite
def indices(draw: Any, shape: tuple[int, ...], like_torch: bool = False) -> tuple[Any, ...]:
    """Parts that fit the shape, mostly: index arrays that broadcast, numbers in range.

    like_torch: without what PyTorch has otherwise (numbers beside index arrays) or not (negative steps).
    """
    common = draw(st.sampled_from([(1,), (2,), (3,), (2, 3), (2, 1), *([] if like_torch else [()])]))
    parts: list[Any] = []
    own, dots = 0, False
    kinds = ["slice", "array", "array", "mask", "none", "dots", "bool"] + ([] if like_torch else ["int", "int"])
    while own < len(shape) and draw(st.integers(0, 6)):
        kind = draw(st.sampled_from(kinds))
        size = shape[own]
        if kind == "none":
            parts.append(None)
        elif kind == "dots":
            if dots:
                continue
            dots = True
            skipped = draw(st.integers(0, len(shape) - own))
            parts.append(Ellipsis)
            own += skipped
            if skipped and own < len(shape) and draw(st.booleans()):
                continue
            break
        elif kind == "bool":
            parts.append(draw(st.booleans()))
        elif kind == "int":
            parts.append(draw(st.integers(-size, max(size - 1, 0))))
            own += 1
        elif kind == "slice":
            parts.append(draw(slices(not like_torch)))
            own += 1
        elif kind == "array":
            cut = draw(st.integers(0, max(len(common) - like_torch, 0)))
            wanted = tuple(1 if draw(st.integers(0, 4)) == 0 else n for n in common[cut:])
            values = draw(
                st.lists(
                    st.integers(-size, max(size - 1, 0)), min_size=int(np.prod(wanted)), max_size=int(np.prod(wanted))
                )
            )
            parts.append(np.array(values, dtype=np.int64).reshape(wanted))
            own += 1
        else:
            n = draw(st.integers(1, len(shape) - own))
            sizes = shape[own : own + n]
            bits = draw(st.lists(st.booleans(), min_size=int(np.prod(sizes)), max_size=int(np.prod(sizes))))
            parts.append(np.array(bits, dtype=bool).reshape(sizes))
            own += n
    return tuple(parts)


def given_as(part: Any, how: int, module: Any = norch) -> Any:
    """An array as a tensor, a list, or itself."""
    if not isinstance(part, np.ndarray):
        return part
    return [module.from_numpy(part.copy()), part, part.tolist() if part.size else part][how]


def numbered(shape: tuple[int, ...]) -> Any:
    return np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)


def masks_fit(shape: tuple[int, ...], index: tuple[Any, ...]) -> bool:
    """Whether each mask has the sizes of the axes that it stands on."""
    taken = [getattr(part, "ndim", 0) if np.asarray(part).dtype == bool else int(part is not None) for part in index]
    for i, part in enumerate(index):
        if isinstance(part, np.ndarray) and part.dtype == bool:
            behind = any(before is Ellipsis for before in index[:i])
            first = len(shape) - sum(taken[i:]) if behind else sum(taken[:i])
            if part.shape != shape[first : first + part.ndim]:
                return False
    return True


def found_in(array: Any, index: tuple[Any, ...]) -> Any:
    """What NumPy gives once the integers are taken, as PyTorch takes them first; None where it raises, or lets a mask
    without elements stand on axes of other sizes, which raises here and in PyTorch."""
    try:
        array[index]
        view, rest = integers_taken(array, index)
        found = np.asarray(view[rest])
    except IndexError:
        return None
    return found if masks_fit(array.shape, index) else None


def integers_taken(array: Any, index: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """A view of an array by the integers of an index, and the rest of the index."""
    first: list[tuple[Any, ...]] = []
    for part in index:
        whole = (part,) if part is Ellipsis else axes_of(part) * (slice(None),)
        first.append((int(part),) if is_integer(part) else whole)
    dots = () if any(part is Ellipsis for part in index) else (...,)  # so that it is a view
    return array[(*sum(first, ()), *dots)], tuple(part for part in index if not is_integer(part))


def is_integer(part: Any) -> bool:
    return np.ndim(part) == 0 and np.asarray(part).dtype.kind in "iu"


def axes_of(part: Any) -> int:
    """How many axes a part of an index takes that is no integer and no ellipsis."""
    mask = np.asarray(part)
    return mask.ndim if mask.dtype == bool else int(part is not None)


@pytest.mark.parametrize(
    "index", ["0, :, [1, 2]", "[0, 1], :, 2", "..., 0, [1, 0]", "[0], :, 1, :, [1]", "1, [0], 2, [3]"]
)
def test_integers_are_taken_first_as_in_pytorch(index: str, torch: Any) -> None:
    x, y = (m.arange(240).view(2, 3, 4, 5, 2) for m in (norch, torch))
    assert eval(f"x[{index}].tolist() == y[{index}].tolist()")
    exec(f"x[{index}] = y[{index}] = -1")
    assert x.tolist() == y.tolist()


@pytest.mark.parametrize(
    "index", [":, :, [1, 2], ..., [0, 1], 1", ":, [1], [2, 0], ..., [3, 4], [0, 1]", ":, [0], ..., None"]
)
def test_an_ellipsis_of_no_axis_does_not_separate_index_tensors(index: str, torch: Any) -> None:
    x, y = (m.arange(240).view(2, 3, 4, 5, 2) for m in (norch, torch))
    found, wanted = (eval(f"z[{index}]", {"z": z}) for z in (x, y))
    assert tuple(found.shape) == tuple(wanted.shape) and found.tolist() == wanted.tolist()


@pytest.mark.parametrize("before", [(), (Ellipsis,), (None, Ellipsis)])
def test_a_mask_without_elements_fits_its_axes(before: tuple[Any, ...]) -> None:
    array, mask = numbered((0, 0, 1)), np.array([], dtype=bool)
    assert (found_in(array, (*before, mask)) is None) == (Ellipsis in before)
    assert (found_in(array, (*before, mask[:, None])) is None) == (before == ())  # (0, 1) fits the last axes
    assert found_in(numbered((2, 3)), (*before, np.ones((2, 3), dtype=bool))) is not None
    if Ellipsis in before:
        with pytest.raises(IndexError):
            _ = norch.tensor(array)[(*before, mask)]


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_like_numpy(data: Any) -> None:
    array = numbered(data.draw(shapes()))
    x = norch.tensor(array)
    index = data.draw(indices(array.shape))
    how = data.draw(st.integers(0, 2))
    ours = tuple(given_as(part, how) for part in index)
    wanted = found_in(array, index)
    if wanted is None:
        with pytest.raises(IndexError):
            x[ours]
            wait()
        return
    found = x[ours]
    assert found.shape == wanted.shape
    assert_close(found, wanted, rtol=0, atol=0)
    basic = not any(isinstance(part, bool) or isinstance(part, np.ndarray) and part.ndim for part in index)
    assert lib.norch_shares_storage(found, x) == basic


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_written_like_numpy(data: Any) -> None:
    array = numbered(data.draw(shapes()))
    x = norch.tensor(array)
    index = data.draw(indices(array.shape))
    ours = tuple(given_as(part, data.draw(st.integers(0, 2))) for part in index)
    wanted = found_in(array, index)
    if wanted is None:
        with pytest.raises(IndexError):
            x[ours] = 0
            wait()
        if not x.is_cuda:  # which writes what it can
            assert_close(x, array, rtol=0, atol=0)
        return
    cut = data.draw(st.integers(0, wanted.ndim))
    shape = tuple(1 if data.draw(st.integers(0, 3)) == 0 else n for n in wanted.shape[cut:])
    values = -1 - numbered(shape)
    flat = np.zeros(array.size, int)
    np.add.at(flat, numbered(array.shape).astype(int)[index].reshape(-1), 1)
    if flat.max(initial=0) > 1:  # which one stays is a matter of order: then all write the same
        values = np.full(shape, -7.0)
    view, rest = integers_taken(array, index)
    view[rest] = values
    x[ours] = norch.tensor(values) if values.ndim or data.draw(st.booleans()) else float(values)
    assert_close(x, array, rtol=0, atol=0)
    if wanted.size:
        with pytest.raises((norch.ShapeError, IndexError)):
            x[ours] = norch.zeros(*wanted.shape, 7)
    view[rest] += 3.0
    x[ours] += 3.0
    assert_close(x, array, rtol=0, atol=0)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_gradients_like_torch(torch: Any, data: Any) -> None:
    array = numbered(data.draw(shapes()))
    index = data.draw(indices(array.shape, like_torch=True))
    wanted = found_in(array, index)
    if wanted is None:
        return
    grads = []
    for module in (torch, norch):
        at = tuple(given_as(part, 0, module) for part in index)
        x = module.from_numpy(array.copy()).requires_grad_()
        values = module.from_numpy(np.asarray(np.cos(numbered(wanted.shape[wanted.ndim // 2 :])))).requires_grad_()
        (x[at] * x[at]).sum().backward()
        y = x * 2
        y[at] = values
        (y * y).sum().backward()
        z = x * 2
        z[at] += values * x[at]
        (z * z).sum().backward()
        grads.append((x.grad, values.grad))
    for theirs, ours in zip(*grads):
        assert_close(ours, theirs.numpy())


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_sums_like_numpy(data: Any) -> None:
    """index_put_ with accumulate: equal indices add up."""
    array = numbered(data.draw(shapes()))
    x = norch.tensor(array)
    index = data.draw(indices(array.shape))
    wanted = found_in(array, index)
    if wanted is None or not index or not all(isinstance(part, np.ndarray) for part in index):
        return
    values = 1 + numbered(wanted.shape)
    np.add.at(array, index, values)
    assert x.index_put_(tuple(norch.tensor(part) for part in index), norch.tensor(values), accumulate=True) is x
    assert_close(x, array)


# ---- derivatives ----------------------------------------------------------------------------------------------------

CHOSEN: tuple[Any, ...] = (
    norch.tensor([2, 0, 2]),
    (slice(None, None, -1), [0, 0, 1]),
    (0, slice(None), norch.tensor([[1], [3]])),
    (..., norch.tensor([1, 1])),
    (None, [0, 2], ..., [3, 1]),
    (slice(1, None), True, [1, 1]),
    np.arange(24).reshape(3, 2, 4) % 3 == 0,
    (norch.tensor([True, False, True]), 1),
)


@pytest.mark.parametrize("index", CHOSEN, ids=str)
@pytest.mark.parametrize("flipped", [False, True])
def test_derivatives(index: Any, flipped: bool) -> None:
    rng = np.random.default_rng(1)
    x = norch.tensor(rng.normal(size=(3, 2, 4)), requires_grad=True)
    if flipped:
        x = x.detach()[::-1].requires_grad_()
    values = norch.tensor(rng.normal(size=x.detach()[index].shape), requires_grad=True)
    assert gradcheck(lambda x: x[index], x)
    assert gradgradcheck(lambda x: x[index].square(), x)

    def added(x: Any, values: Any) -> Any:
        y = x * x
        y[index] += values * 2
        return y

    distinct = len(np.unique(np.arange(24).reshape(3, 2, 4)[_plain(index)])) == values.numel()
    if distinct:
        assert gradcheck(added, (x, values))
        assert gradgradcheck(added, (x, values))


def _plain(index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    return tuple(part.numpy() if isinstance(part, norch.Tensor) else part for part in parts)


def test_masks_and_what_was_saved() -> None:
    x = leaf([1.0, 2.0, 3.0])
    mask = norch.tensor([True, False, True])
    y = x * 1
    y[mask] += 1
    y[mask] *= x[mask]
    mask[1] = True  # it was read when it was used
    assert_close(y, [2.0, 2.0, 12.0])
    y.sum().backward()
    assert_close(x.grad, [3.0, 1.0, 7.0])
    index = norch.tensor([0, 1])
    out = leaf([1.0, 2.0])[index]
    index[0] = 1
    with pytest.raises(norch.Error, match="changed in place"):
        out.sum().backward()


def test_through_views() -> None:
    x = leaf(np.arange(12.0).reshape(3, 4))
    y = x * 2
    row = y[1]
    y[:, 1:][[0, 2], [0, 1]] = leaf([5.0, 6.0])
    y[1:2, norch.tensor([0, 3])] = 7
    assert_close(row, [7.0, 10.0, 12.0, 7.0])
    (y * row).sum().backward()
    z = x.detach().numpy() * 2
    z[0, 1], z[2, 2], z[1, 0], z[1, 3] = 5, 6, 7, 7
    grad = np.broadcast_to(z[1], (3, 4)) * 2.0
    grad[1] += 2 * z.sum(0)
    grad[0, 1] = grad[2, 2] = grad[1, 0] = grad[1, 3] = 0
    assert_close(x.grad, grad)


@pytest.mark.parametrize("index", [..., [0], norch.tensor([True, False]), 0, (slice(None), [0])], ids=str)
def test_leaves_are_not_written_to(index: Any) -> None:
    x = norch.ones(2, 2, requires_grad=True)
    with pytest.raises(norch.Error, match="leaf"):
        x[index] = 2
    with pytest.raises(norch.Error, match="leaf"):
        x[index] += 2
    with norch.no_grad():
        x[index] = 2
    assert x.sum().item() > 4


def test_writes_are_noticed() -> None:
    x = norch.ones(3)
    for write in (
        lambda: x.__setitem__([0], 2),
        lambda: x.__setitem__(x > 1, 3),
        lambda: x.index_fill_(0, norch.tensor([1]), 0),
        lambda: x[:2].scatter_(0, norch.tensor([1]), 5),
        lambda: x.masked_fill_(x > 1, 0),
        lambda: x.put_(norch.tensor([1]), norch.tensor([2.0])),
    ):
        before = x._version
        write()
        assert x._version > before


# ---- values and dtypes ----------------------------------------------------------------------------------------------


def test_what_is_assigned() -> None:
    x = norch.zeros(3, dtype=norch.int32)
    x[[0, 1]] = norch.tensor([1.7, -2.7])
    assert x.tolist() == [1, -2, 0]
    x[norch.tensor([True, True, False])] = 2.5
    assert x.tolist() == [2, 2, 0]
    x[[0, 0, 0]] = norch.tensor([4, 5, 6])  # the last one stays
    assert x.tolist() == [6, 2, 0]
    x[[0]] = np.array([9])
    x[norch.tensor(1)] = True
    assert x.tolist() == [9, 1, 0]
    y = norch.zeros(2, 3)
    y[[0]] = norch.tensor([[[1.0, 2.0, 3.0]]])  # leading ones may go
    y[:, [0]] = norch.tensor([[5.0], [6.0]])
    assert y.tolist() == [[5, 2, 3], [6, 0, 0]]
    truth = norch.zeros(2, dtype=norch.bool)
    truth[[1]] = 7
    assert truth.tolist() == [False, True]


@pytest.mark.parametrize("layout", ["plain", "turned"])
def test_the_last_write_stays(layout: str) -> None:
    """In C order of the index, however index and values lie in memory."""
    index, values = np.array([[0, 1], [1, 0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    i, v = norch.tensor(index), norch.tensor(values)
    if layout == "turned":
        i, v = norch.tensor(index.T.copy()).T, norch.tensor(values.T.copy()).T
    x = norch.zeros(2, dtype=norch.float64)
    x[i] = v
    assert x.tolist() == [4.0, 3.0]
    x[i] = v[:, :1]
    assert x.tolist() == [3.0, 3.0]
    x = norch.zeros(2, 2, dtype=norch.float64).scatter(0, norch.tensor([[0, 0], [0, 0]]), v)
    assert x.tolist() == [[3.0, 4.0], [0.0, 0.0]]


def test_overlaps() -> None:
    """What is read is read before anything is written."""
    x = norch.arange(5)
    x[norch.tensor([1, 2, 3, 4])] = x[:4]
    assert x.tolist() == [0, 0, 1, 2, 3]
    x = norch.tensor([2, 0, 1])
    x[x] = norch.tensor([10, 11, 12])
    assert x.tolist() == [11, 12, 10]
    x = norch.tensor([1, 0, 1])
    x.index_add_(0, x, x)
    assert x.tolist() == [1, 2, 1]
    y = norch.tensor([1, 2, 3, 0])
    assert y.scatter_(0, y, y).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64"])
def test_dtypes_of_indices(name: str) -> None:
    x = norch.arange(10).view(2, 5)
    index = norch.tensor([1, -1, 0], dtype=getattr(norch, name))
    assert x[:, index].tolist() == [[1, 4, 0], [6, 9, 5]]
    assert x[index.view(3, 1), index].shape == (3, 3) if x.shape[0] > 4 else True
    assert x.gather(1, index.abs().view(1, 3)).tolist() == [[1, 1, 0]]
    assert x[:, index.numpy()].shape == (2, 3)


def test_bytes_are_masks() -> None:
    x = norch.arange(3)
    with pytest.warns(UserWarning, match="uint8"):
        assert x[norch.tensor([1, 0, 1], dtype=norch.uint8)].tolist() == [0, 2]


def test_numbers_of_all_kinds() -> None:
    x = norch.arange(6).view(2, 3)
    for one in (1, np.int64(1), np.uint8(1), norch.tensor(1), np.array(1)):
        assert x[one].tolist() == [3, 4, 5]
        assert x[0, one].item() == 1
    assert x[True].shape == (1, 2, 3) and x[np.bool_(False)].shape == (0, 2, 3)
    assert x[norch.tensor(True)].shape == (1, 2, 3)
    assert x[range(2), range(2)].tolist() == [0, 4]
    assert x[[]].shape == (0, 3) and x[:, []].shape == (2, 0)
    assert x[()].shape == (2, 3) and x[(0, 1),].shape == (2, 3)
    assert x[[[0, 1], [1, 0]]].shape == (2, 2, 3)
    assert norch.tensor(5.0)[True].tolist() == [5.0] and norch.tensor(5.0)[..., None].tolist() == [5.0]


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index",
    [
        "..., ...",
        "..., 0, ...",
        "0, ..., ...",
        "..., None, ...",
        "..., [1, 0], ...",
        "..., 1, ..., slice(None), ..., 0",
        "0, ..., ..., [1, 0], 2",
    ],
)
def test_a_second_ellipsis_behind_the_last_index_is_empty(index: str, torch: Any) -> None:
    at = eval(f"({index})")
    x, theirs = norch.arange(24.0).view(2, 3, 4), torch.arange(24.0).view(2, 3, 4)
    assert tuple(x[at].shape) == tuple(theirs[at].shape) and x[at].tolist() == theirs[at].tolist()
    x[at], theirs[at] = -1, -1
    assert x.tolist() == theirs.tolist()


@pytest.mark.host  # the message of a CUDA device comes later
@pytest.mark.parametrize(
    ("index", "message"),
    [
        (norch.tensor([0, 5]), "index: index 5 is out of range for size 2 at dimension 0"),
        ((0, slice(None), [7]), "index: index 7 is out of range for size 4 at dimension 2"),
        ((None, 0, [-4]), "index: index -4 is out of range for size 3 at dimension 1"),
        (
            (slice(None), norch.tensor([[True] * 3] * 3)),
            r"mask of shape \(3, 3\) does not match shape \(2, 3, 4\) at dimension 1",
        ),
        (norch.tensor([True]), r"mask of shape \(1,\) does not match shape \(2, 3, 4\) at dimension 0"),
        (([0, 1], [0, 1, 2]), "does not broadcast"),
        ((0, 0, 0, 0), "too many indices: 4 for a tensor of 3"),
        ((0, 0, 0, [0]), "too many indices: 4 for a tensor of 3"),
        ((..., ..., 0), "only one ellipsis"),
        ((..., None, ..., slice(1)), "only one ellipsis"),
        ((..., ..., [0]), "only one ellipsis"),
        (1.0, "float"),
        ("a", "str"),
        ({1}, "set"),
        (norch.tensor([1.0]), "float32"),
        ([0.5], "float"),
        ((0, 5), "index 5 is out of range for dimension 1 of size 3"),
        (2, "index 2 is out of range for dimension 0 of size 2"),
    ],
)
def test_wrong_indices(index: Any, message: str) -> None:
    x = norch.arange(24).view(2, 3, 4)
    old = x.clone()
    with pytest.raises(IndexError, match=message):
        x[index]
    with pytest.raises(IndexError, match=message.replace("index: ", "index_put: ")):
        x[index] = 0
    assert_close(x, old)


def test_wrong_values() -> None:
    x = norch.zeros(2, 3)
    for index, value in (([0, 1], norch.ones(2)), (x == 0, norch.ones(4)), (([0], [1]), norch.ones(2))):
        with pytest.raises(norch.ShapeError):
            x[index] = value
    for value in (None, "a", [1.0], object()):
        with pytest.raises(TypeError):
            x[[0]] = value
        with pytest.raises(TypeError):
            x[0] = value
    with pytest.raises(norch.ArgumentError, match="expanded"):
        norch.zeros(1).expand(3)[[0, 1]] = norch.ones(2)
    assert_close(x, np.zeros((2, 3), np.float32))
    with pytest.raises(norch.DTypeError):
        x.index_put_((norch.tensor([0]),), norch.tensor([1]))
    with pytest.raises(TypeError):
        x.index_put_(norch.tensor([0]), norch.tensor([1.0]))


def test_bounds_that_change_the_tensor_are_read_before_it():
    x = norch.zeros(30, 30)

    class Bound:
        def __index__(self):
            x.data = norch.zeros(1, 1)
            return 0

    assert x[:, Bound() :].shape == (1, 1)

    class Fewer:
        def __index__(self):
            x.data = norch.zeros(1)
            return 0

    with pytest.raises(IndexError):
        x[:, Fewer() :]


@pytest.mark.filterwarnings("ignore:Using a non-tuple")
def test_a_list_of_slices_or_tensors_is_a_tuple(torch):
    def indices(lib):
        some, others = lib.tensor([0, 1]), lib.tensor([1, 2])
        return [[slice(0, 2), slice(1, 3)], [0, slice(None)], [None, 0], [..., 0], [some, others], [slice(some[0], 2)]]

    for ours, theirs in zip(indices(norch), indices(torch), strict=True):
        x, y = norch.arange(12).reshape(3, 4), torch.arange(12).reshape(3, 4)
        assert x[ours].tolist() == y[theirs].tolist()
        x[ours] = y[theirs] = -1
        assert x.tolist() == y.tolist()
    assert x[[0, 1]].shape == (2, 4)
