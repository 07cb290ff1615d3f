"""Whether norch computes what PyTorch computes: every tensor that a case gives, whole, in float64."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

WORST = 100  # times the tolerance: what a single element may be off, of the largest one


class Difference(NamedTuple):
    """norm: of the difference, of PyTorch's result; worst: the largest difference, of the largest element."""

    norm: float
    worst: float

    def within(self, tolerance: float) -> bool:
        """Whether both are small enough; NaN is not."""
        return self.norm <= tolerance and self.worst <= WORST * tolerance


def flat(result: Any) -> list[Any]:
    """The tensors and numbers that a case gave, one after the other; functions among them are called for theirs."""
    if callable(result) and not hasattr(result, "shape"):
        return flat(result())
    if isinstance(result, (list, tuple)):
        return [part for one in result for part in flat(one)]
    return [result]


class _Lent:
    """The memory of a tensor of norch, as bytes, for PyTorch to look at."""

    def __init__(self, x: Any) -> None:
        pointer, size = x.data_ptr(), x.numel() * x.element_size()
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (pointer, False), "version": 2}
        self.tensor = x


def as_torch(torch: Any, x: Any) -> Any:
    """A tensor of PyTorch with the elements of one of norch, without a copy where both are on a GPU."""
    x = x.detach().contiguous()
    dtype = getattr(torch, x.dtype.name)
    if x.is_cuda and torch.cuda.is_available() and x.numel():
        import norch

        norch.cuda.synchronize()  # PyTorch reads in a stream of its own
        lent = torch.as_tensor(_Lent(x), device="cuda")
        return lent.view(dtype).reshape(tuple(x.shape)).clone()
    return torch.tensor(x.tolist(), dtype=dtype).reshape(tuple(x.shape))


def difference(torch: Any, ours: list[Any], theirs: list[Any]) -> Difference:
    """The largest difference over all tensors; infinite where dtypes, shapes or what is no finite number differ."""
    if len(ours) != len(theirs):
        return Difference(math.inf, math.inf)
    found = [Difference(0.0, 0.0)]
    for mine, other in zip(ours, theirs):
        mine = as_torch(torch, mine) if hasattr(mine, "shape") else torch.tensor(mine)
        other = other.detach() if hasattr(other, "shape") else torch.tensor(other)
        found.append(_of_two(torch, mine.to(other.device), other))
    return Difference(*(math.nan if any(map(math.isnan, part)) else max(part) for part in zip(*found)))


def _of_two(torch: Any, a: Any, b: Any) -> Difference:
    if a.dtype != b.dtype or a.shape != b.shape:
        return Difference(math.inf, math.inf)
    if not b.numel() or torch.equal(a, b):
        return Difference(0.0, 0.0)
    if not b.is_floating_point():
        return Difference(math.inf, math.inf)
    b = b.double()
    off = a.double() - b
    finite = b.isfinite()
    if not finite.all():
        same = (a.double() == b) | (a.isnan() & b.isnan())
        off = torch.where(finite, off, torch.where(same, 0.0, math.inf))
        b = torch.where(finite, b, 0.0)
    norm, largest = float(b.norm()) or 1.0, float(b.abs().max()) or 1.0
    return Difference(float(off.norm()) / norm, float(off.abs().max()) / largest)
