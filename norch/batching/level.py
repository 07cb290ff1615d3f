"""Batched tensors, and the dispatch of library calls to their batching rules.

A Batched tensor has the shape, dtype and device of one sample. Its `_physical` tensor holds the samples of its `_level`
along the first axis, and may itself be batched at an outer level. A rule handles the innermost level of its arguments;
its own calls are dispatched to the rules of the outer levels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial

from .._binding.library import lib
from .._binding.numbers import int64
from .._package.typing import Any
from ..autograd.derivative import derivative, view_derivative
from ..autograd.levels import BatchedBase, Level
from ..autograd.record import record, record_view
from ..errors import BoundsError, Error, ShapeError, stacklevel_of_user
from ..ops.op import OPCODES
from ..tensor import Tensor, disabled_torch_function

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorates the batching rule of library calls: a function of the level and the call's arguments."""

    def declare(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return declare


def same_call(*names: str) -> None:
    """Defines the rule of calls whose first argument, the only tensor, may have further leading axes: the same call
    with all samples."""

    def declare(name: str) -> None:
        call = getattr(lib, f"norch_{name}")
        rule(name)(lambda level, x, *rest: sample(call(x._physical, *rest), level))

    for name in names:
        declare(name)


class Batched(Tensor, BatchedBase):
    """A tensor that represents all samples over which vmap maps a function, with the shape of one sample."""

    __slots__ = ()
    __torch_function__ = disabled_torch_function
    _physical: Any
    _level: Level

    def levels(self) -> list[Level]:
        """The levels at which it is batched, innermost first."""
        result, x = [], self
        while type(x) is Batched:
            result.append(x._level)
            x = x._physical
        return result

    def all_samples(self) -> Any:
        """The tensor with all samples of all levels."""
        inner = self._physical
        return inner.all_samples() if type(inner) is Batched else inner

    def sum_of_samples(self, level: Level) -> Any:
        """The sum over a level's samples, recorded."""
        return unbatch(self, 0, level).sum(0)

    def batched(self, x: Any) -> Any:
        """x, batched at every level at which this tensor is."""
        for level in reversed(self.levels()):
            if not is_batched_at(x, level):
                x = spread(x, level)
        return x

    def __repr__(self) -> str:
        return f"Batched({len(self.levels())}, samples={self._level.size}, of={self._physical!r})"


def _constant(name: str) -> Any:
    """A method of Tensor that makes a constant, batched like the tensor, so that samples can be written to it."""
    plain = getattr(Tensor, name)

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        like = plain(self, *arguments, **named)
        if type(like) is Batched:
            return like
        if self._level.notes is not None:
            return self._level.constant(like)
        physical = getattr(self._physical, name)
        size: Any = (self._level.size, *like.shape)
        values = (arguments[1:] or (named.pop("fill_value"),)) if name == "new_full" else ()
        for option in ("size", "requires_grad"):
            named.pop(option, None)
        out = sample(physical(size, *values, **named), self._level)
        return out.requires_grad_() if like.requires_grad else out

    method.__name__, method.__doc__ = name, plain.__doc__
    return method


for _name in ("new_empty", "new_zeros", "new_ones", "new_full"):
    setattr(Batched, _name, _constant(_name))


# ---- helpers of rules ------------------------------------------------------------------------------------------------


def sample(physical: Any, level: Level, mixed: bool = False) -> Any:
    """The batched tensor with samples along the first axis of physical. mixed: as in norch_tensor."""
    out = lib.norch_sample_of(physical, mixed)
    out._physical, out._level = physical, level
    return out


def become(x: Any, physical: Any, level: Level) -> None:
    """Makes x, to which a call writes a further result, the batched tensor of physical."""
    lib.norch_sample_of(physical, False, x)
    x.__class__ = Batched
    x._physical, x._level = physical, level


def become_all(outs: Sequence[Any], found: Sequence[Any], level: Level) -> None:
    """become() for each tensor that is not None."""
    for x, physical in zip(outs, found, strict=True):
        if x is not None:
            become(x, physical, level)


def is_here(x: Any, level: Level) -> bool:
    """Whether x is batched at this level, the innermost of the call."""
    return type(x) is Batched and x._level is level


def is_batched_at(x: Any, level: Level) -> bool:
    """Whether x is batched at this level, perhaps among others."""
    return type(x) is Batched and level in x.levels()


def aligned(x: Any, level: Level, ndim: int) -> Any:
    """The samples of x with ndim axes each, padded in front by axes of size 1 to broadcast; x if it is not batched."""
    if not is_here(x, level):
        return x
    p = x._physical
    for _ in range(ndim - x.ndim):
        p = lib.norch_unsqueeze(p, 1)
    return p


def samples(x: Any, level: Level) -> Any:
    """(samples, ...) of any tensor; an unbatched tensor is expanded."""
    if is_here(x, level):
        return x._physical
    return lib.norch_expand(x, (level.size, *lib.norch_shape(x))) if x is not None else None


# A tensor that a library call writes to is allocated in the call's shape and passed directly, not as a view: in nested
# vmaps become() turns the passed tensor into a batched one, and the base of a view would not follow.


def empty_like(x: Any, shape: tuple[int, ...]) -> Any:
    """An empty tensor of this shape, like x otherwise, for a call to write to; become() uses it afterwards."""
    return lib.norch_empty(shape, x._dtype, (x._device_type, x._device_index))


def fresh(x: Any, level: Level) -> Any:
    """empty_like() for the samples of x."""
    return empty_like(x, (level.size, *lib.norch_shape(x)))


def fresh_folded(x: Any, level: Level) -> Any:
    """empty_like() for the folded() samples of x; None for None."""
    return None if x is None else empty_like(x, ((shape := lib.norch_shape(x))[0] * level.size, *shape[1:]))


def fill_by_sample(outs: Sequence[Any], level: Level, run: Callable[[int, list[Any]], Any]) -> list[Any]:
    """The results of run(i, into) for each sample i, which writes to tensors like outs, or None; outs become the
    results."""
    rows, results = [], []
    for i in range(level.size):
        rows.append([None if x is None else empty_like(x, lib.norch_shape(x)) for x in outs])
        results.append(run(i, rows[-1]))
    for k, x in enumerate(outs):
        if x is not None:
            become(x, lib.norch_stack([row[k] for row in rows], 0) if rows else fresh(x, level), level)
    return results


def written(name: str, x: Any, level: Level) -> Any:
    """The samples of a tensor that a call writes to; Error if only the values are batched."""
    if is_here(x, level):
        return x._physical
    raise Error(
        f"{name}: writes values that vmap batches, one for each sample, into a tensor of shape {lib.norch_shape(x)} "
        "that is not batched; use the operation out of place, or write to new_zeros() of a batched tensor"
    )


def axis_of(x: Any, dim: Any, name: str) -> int:
    """The axis of x's physical tensor for dimension dim of a sample."""
    n, dim = x.ndim or 1, int64(dim, f"{name}: dimension")
    if not -n <= dim < n:
        raise BoundsError(f"{name}: dimension {dim} is out of range [{-n}, {n - 1}]")
    return dim % n + 1


def along(level: Level, x: Any, dim: Any, name: str, run: Callable[[Any, int], Any]) -> Any:
    """run(samples, axis) for a call along dim that keeps the number of axes and treats a number as one element."""
    axis, p = axis_of(x, dim, name), x._physical
    if x.ndim:
        return sample(run(p, axis), level)
    return sample(lib.norch_squeeze(run(lib.norch_unsqueeze(p, 1), 1), (1,)), level)


def same_call_along(name: str, *calls: str) -> None:
    """Defines the rule, by along(), of calls whose second argument is a dimension."""

    def same(call: Any, level: Level, x: Any, dim: int, *rest: Any) -> Any:
        return along(level, x, dim, name, lambda p, axis: call(p, axis, *rest))

    for call_name in calls:
        rule(call_name)(partial(same, getattr(lib, f"norch_{call_name}")))


def one_sample(x: Any, i: int, level: Level) -> Any:
    """Sample i of x; x itself if it is not batched."""
    return lib.norch_select(x._physical, 0, i) if is_here(x, level) else x


def sum_over(x: Any, axes: Any) -> Any:
    """Sums a tensor of samples over axes; x itself without axes."""
    axes = tuple(axes)
    if not axes:
        return x
    return lib.norch_reduce(OPCODES["sum"], x, axes, False, -1, 0.0)


def moved(x: Any, start: int, end: int) -> Any:
    """Moves one axis of x."""
    n = x.ndim
    if start % n == end % n:
        return lib.norch_alias(x)
    order = list(range(n))
    order.insert(end % n, order.pop(start % n))
    return lib.norch_permute(x, order)


# Samples as part of another axis, for calls on tensors with a fixed number of axes.


def folded(p: Any) -> Any:
    """(samples, N, ...) as (samples * N, ...)."""
    return lib.norch_flatten(p, 0, 1)


def unfolded(out: Any, level: Level) -> Any:
    """(samples * N, ...) as (samples, N, ...)."""
    shape = lib.norch_shape(out)
    return lib.norch_reshape(out, (level.size, shape[0] // (level.size or 1), *shape[1:]))


def folded_second(x: Any, level: Level) -> Any:
    """Samples (N, C, ...) as (N, samples * C, ...); None for None."""
    if x is None:
        return None
    p = lib.norch_transpose(samples(x, level), 0, 1)
    shape = lib.norch_shape(p)
    return lib.norch_reshape(p, (shape[0], shape[1] * shape[2], *shape[3:]))


def unfolded_second(out: Any, level: Level) -> Any:
    """(N, samples * C, ...) as (samples, N, C, ...)."""
    shape = lib.norch_shape(out)
    parts = lib.norch_view(out, (shape[0], level.size, shape[1] // (level.size or 1), *shape[2:]))
    return lib.norch_transpose(parts, 0, 1)


# ---- entry and exit --------------------------------------------------------------------------------------------------


def batch(x: Any, dim: int, level: Level) -> Any:
    """A batched view of x, whose axis dim (0 or more) holds the samples."""
    if x._in_coordinates:
        raise NotImplementedError("vmap: sparse tensors cannot be batched; use to_dense()")
    return record_view(_Batch, _batched(x, dim, level), x, batch, (dim, level))


def _batched(x: Any, dim: int, level: Level) -> Any:
    if type(x) is Batched and x._level.start > level.start:
        return sample(_batched(x._physical, dim + 1, level), x._level)
    return sample(moved(x, dim, 0), level)


def unbatch(x: Any, dim: int, level: Level) -> Any:
    """x with a level's samples along a new axis dim (0 or more); expanded if it is not batched there."""
    if not is_batched_at(x, level):
        shape = list(x.shape)
        return x.unsqueeze(dim).expand(*shape[:dim], level.size, *shape[dim:])
    return record_view(_Unbatch, _unbatched(x, dim, level), x, unbatch, (dim, level))


def _unbatched(x: Any, dim: int, level: Level) -> Any:
    if x._level is level:
        return moved(x._physical, 0, dim)
    return sample(_unbatched(x._physical, dim + 1, level), x._level)


def spread(x: Any, level: Level) -> Any:
    """x, the same for all samples, batched at a level at which it was not. Recorded."""
    return record(_Expand, _expand(x, level), (x,))


def _expand(x: Any, level: Level) -> Any:
    """x, the same for all samples, as a batched tensor."""
    if type(x) is Batched and x._level.start > level.start:
        return sample(_expand(x._physical, level), x._level)
    return sample(lib.norch_expand(x, (level.size, *lib.norch_shape(x))), level)


_Expand = derivative("spread", grad=lambda g: g, shares_grad=True)  # backward sums it where it leaves the level
_Batch = view_derivative("batch", grad=lambda g, arguments: unbatch(g, *arguments))
_Unbatch = view_derivative("unbatch", grad=lambda g, arguments: batch(g, *arguments))


def call_rows(function: Callable[[list[Any]], Sequence[Any]], rows: Sequence[Any]) -> list[Any]:
    """The results of function for each row of several tensors, stacked along a new first axis; None stays None."""
    level = Level(next(len(x) for x in rows if x is not None), "different")
    with level:
        result = function([None if x is None else batch(x, 0, level) for x in rows])
        return [None if x is None else unbatch(x, 0, level) for x in result]


def with_leading_axis(function: Callable[..., Sequence[Any]], tensors: Sequence[Any]) -> tuple[Any, ...]:
    """The results of an unrecorded function that takes any number of leading axes."""
    level: Any = innermost(tensors)
    ndim = max(x.ndim for x in tensors)
    return tuple(sample(x, level) for x in function(*(aligned(x, level, ndim) for x in tensors)))


# ---- dispatch --------------------------------------------------------------------------------------------------------


class Draws:
    """Replaces a generator's state within vmap, so that the call that takes it is dispatched to its rule."""

    __slots__ = ("address", "level")

    def __init__(self, address: int, level: Level):
        self.address, self.level = address, level


def innermost(arguments: Sequence[Any]) -> Level | None:
    """The innermost level at which tensors of a call's arguments are batched; None if none is."""
    found = None
    for x in arguments:
        kind = type(x)
        if kind is Batched:
            level = x._level
        elif kind is tuple or kind is list:
            level = innermost(x)
        else:
            level = x.level if kind is Draws else None
        if level is not None and (found is None or level.start > found.start):
            found = level
    return found


def dispatch(name: str, arguments: tuple[Any, ...]) -> Any:
    """The result of a library call with a batched argument. csrc/python/batched.c calls it."""
    level = innermost(arguments)
    if level is None:
        raise TypeError(f"{name}: an argument is of the wrong type")
    if level.notes is not None:
        return level.notes(name, arguments)
    run = RULES.get(name)
    if run is None:
        return _sample_by_sample(name, level, arguments)
    try:
        return run(level, *arguments)
    except (ShapeError, BoundsError):
        if name not in _WRITING:  # the call for one sample raises a shape error
            getattr(lib, f"norch_{name}")(*(_at(x, 0, level) for x in arguments))
        raise


_REFUSED = {
    "item": "asks for the number in a tensor",
    "to_list": "asks for the numbers in a tensor",
    "to_array": "hands out the memory of a tensor",
    "nonzero": "gives a result whose shape depends on the elements",
    "mask_get": "gives a result whose shape depends on the elements",
    "to_dlpack": "hands out the memory of a tensor",
    "view_storage": "hands out the memory of a tensor",
    "adopt": "hands out the memory of a tensor",
}
# Calls that write to arguments or draw random numbers.
_WRITING = set(
    "argsort attention_backward attention_fused attention_fused_backward batch_norm batch_norm_backward bernoulli "
    "binary_into conv_weight copy cross_entropy dropout grid_sample_backward index_put mask_put normalize_backward "
    "optim_step pool_max rand randint randn randperm record_stream recurrent recurrent_backward scan_extreme scatter "
    "set_data ternary_into unary_into".split()
)


def _refusal(name: str, does: str) -> Error:
    return Error(
        f"{name}: {does} that vmap batches, of which each sample has its own; what depends on elements, control flow "
        "or shapes, cannot be batched: use where() and masks instead"
    )


def _refused(name: str, does: str) -> Any:
    """A method of Batched that raises an error."""

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        raise _refusal(name.strip("_"), does)

    method.__name__, method.__doc__ = name, "Raises Error."
    return method


for _name in ("tolist", "_values", "numpy", "__array__", "apply_", "map_"):
    setattr(Batched, _name, _refused(_name, "reads the elements of a tensor"))
for _name in ("data_ptr", "untyped_storage", "storage", "share_memory_", "__reduce__", "__deepcopy__"):
    setattr(Batched, _name, _refused(_name, "hands out the memory of a tensor"))


def warn_of_loop(call: str) -> None:
    """Warns that vmap is no faster than a loop."""
    warnings.warn(
        f"vmap: there is no batching rule for {call}; it runs once for each sample", stacklevel=stacklevel_of_user()
    )


def _sample_by_sample(name: str, level: Level, arguments: tuple[Any, ...]) -> Any:
    """Runs a call without a rule once for each sample, which is slow."""
    if name in _REFUSED:
        raise _refusal(name, _REFUSED[name])
    if name in _WRITING or level.size == 0:
        raise NotImplementedError(f"{name}: vmap has no batching rule for it")
    warn_of_loop(name)
    call = getattr(lib, f"norch_{name}")
    rows = [call(*(_at(x, i, level) for x in arguments)) for i in range(level.size)]
    return sample(lib.norch_stack(rows, 0), level) if isinstance(rows[0], Tensor) else rows[0]


def _at(x: Any, i: int, level: Level) -> Any:
    if isinstance(x, (tuple, list)):
        return tuple(_at(item, i, level) for item in x)
    return one_sample(x, i, level)


lib.norch_set_batched(Batched, dispatch)
