"""norch.Size, the type of shapes."""

from __future__ import annotations

from operator import index

from .._binding.library import lib
from .._package.typing import TYPE_CHECKING, Any, SupportsIndex, overload

if TYPE_CHECKING:

    class _Base(tuple[int, ...]):
        """Implemented in C: size[0] is an integer, and size[1:] a Size."""

        __slots__ = ()

        @overload
        def __getitem__(self, index: SupportsIndex, /) -> int: ...
        @overload
        def __getitem__(self, index: slice, /) -> Size: ...
        def __getitem__(self, index: Any, /) -> Any: ...
else:
    _Base = lib.norch_size_base()


class Size(_Base):
    """A shape: a tuple that knows its number of elements.

    >>> norch.zeros(2, 3).shape.numel()
    6
    """

    __slots__ = ()

    def __new__(cls, iterable: Any = (), /) -> Size:
        sizes = tuple.__new__(cls, iterable)
        for size in sizes:
            if type(size) is not int:
                return tuple.__new__(cls, [_whole(place, size) for place, size in enumerate(sizes)])
        return sizes

    def numel(self) -> int:
        """The product of the sizes."""
        count = 1
        for size in self:
            count *= size
        return count

    def __add__(self, other: tuple[Any, ...]) -> Any:
        both = tuple.__add__(self, other)
        return both if both is NotImplemented else Size(both)

    def __radd__(self, other: tuple[Any, ...]) -> Any:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"norch.Size({list(self)})"


def _whole(place: int, size: Any) -> int:
    """A size that is an integer, or a tensor or an array of one."""
    try:
        return index(size)
    except TypeError:
        text = f"Size() takes an iterable of 'int' (item {place} is {type(size).__name__!r})"
        raise TypeError(text) from None
