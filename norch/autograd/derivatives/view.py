"""Derivatives of the views: the gradient goes back the way the elements came."""

from __future__ import annotations

from typing import Any

from ..forms import ViewOf
from ..inplace import zeros_of

# ruff: noqa: D101, D102, E704  (entries are formulas; their names are those of the operations)
# fmt: off


class Alias(ViewOf):
    def grad_x(self, g: Any) -> Any: return g


class Tied(Alias):
    """In front of composites whose gradient PyTorch records as a function of x."""
    connected = 1


class Reshape(ViewOf):
    def grad_x(self, g: Any) -> Any: return g._reshape_to(self.like)


class Permute(ViewOf):
    def grad_x(self, g: Any) -> Any:
        axes = self.step[1][0]
        back = [0] * len(axes)
        for i, axis in enumerate(axes):
            back[axis % len(axes)] = i
        return g.permute(back)


class Transpose(ViewOf):
    def grad_x(self, g: Any) -> Any: return g.transpose(*self.step[1])


class Expand(ViewOf):
    def grad_x(self, g: Any) -> Any: return g._sum_to(self.like)


class Region(ViewOf):
    """Some elements of x, each once (select, slice, diagonal): the others get 0."""
    partial = True

    def add_to(self, whole: Any, g: Any) -> None:
        function, arguments = self.step
        function(whole, *arguments).add_(g)

    def grad_x(self, g: Any) -> Any:
        whole = zeros_of(self.like)
        function, arguments = self.step
        function(whole, *arguments).copy_(g)
        return whole


class Unfold(ViewOf):
    """Windows may share elements, so they are added one position at a time."""
    def grad_x(self, g: Any) -> Any:
        whole = zeros_of(self.like)
        dim, size, step = self.step[1]
        if whole.ndim == 0:
            return g.sum()
        dim %= whole.ndim
        windows = g.shape[dim]
        for i in range(size if windows else 0):
            part = whole._slice(dim, i, i + (windows - 1) * step + 1, step)
            part.add_(g.select(-1, i))
        return whole


class Strided(ViewOf):
    """Any strides over the memory of x: gradients are added up in memory of that form, where x then finds its own."""
    def grad_x(self, g: Any) -> Any:
        from ...ops.create import arange  # late, as it stands above

        size, stride, shift, own = self.step[1]
        shape = tuple(self.like.shape)
        if 0 in shape or 0 in size:
            return zeros_of(self.like)
        low, high = zip(_reach(shape, own, 0), _reach(size, stride, shift))
        first, count = min(low), max(high) - min(low) + 1
        flat = g.new_zeros(count)
        where = arange(count, device=g.device)._strided(size, stride, shift - first, (1,)).reshape(-1)
        summed = flat.index_add(0, where, g.reshape(-1))
        return summed._strided(shape, own, -first, (1,)).clone()


def _reach(size: Any, stride: Any, shift: int) -> tuple[int, int]:
    """The lowest and the highest element that strides reach."""
    ends = [(count - 1) * step for count, step in zip(size, stride)]
    return shift + sum(end for end in ends if end < 0), shift + sum(end for end in ends if end > 0)
