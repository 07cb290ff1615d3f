"""outlive_writes(): nodes that can compute gradients after their saved tensors were written to.

Normally a node refuses to compute its gradient after a write to a tensor that it saved. In PyTorch some operations save
a copy of an input, or a value computed from it, so that a write is no error. Such an operation declares this here. Its
node gets a copy of the tensor just before an in-place write, which check_writable() announces. Without such a write
nothing is copied.
"""

from __future__ import annotations

import weakref

from .._binding.library import lib
from .._package.typing import Any
from .._tensor.handle import Handle, version_counter_of
from .grad_mode import mode
from .record import gradient_edge

# {id() of a version counter: weak references to the nodes that saved a tensor with it}.
outliving: dict[int, list[Any]] = {}
lib.norch_bind_outliving(outliving)  # in-place rows look there first


def outlive_writes(out: Any, *saved: Any) -> Any:
    """Returns out. Its node, if it has one, can compute its gradient even after writes to these saved tensors (or
    None)."""
    node = out._node
    if node is not None and mode.enabled:
        for x in saved:
            if x is not None:
                reference = _Reference(node, _forget)
                reference.key = key = id(x._version_counter or version_counter_of(x))
                references = outliving.get(key)
                if references is None:
                    outliving[key] = [reference]
                else:
                    references.append(reference)
    return out


class _Reference(weakref.ref[Any]):
    """A weak reference to a node; key: that of outliving."""

    __slots__ = ("key",)

    key: int


def _forget(reference: Any) -> None:
    """Called when a node is freed."""
    references = outliving.pop(reference.key, ())
    if len(references) > 1:
        outliving[reference.key] = [other for other in references if other is not reference]


def copy_saved(counter: list[int]) -> None:
    """Gives copies to the nodes that saved tensors with this version counter, before one of them is written to."""
    for reference in outliving.pop(id(counter), []):
        node = reference()
        if node is None or node._saved is None or counter[0] > node.seq:
            continue
        node._saved = tuple(
            snapshot(x) if isinstance(x, Handle) and x._data_pointer and x._version_counter is counter else x
            for x in node._saved
        )


def snapshot(x: Any) -> Any:
    """A copy of x with its history, for a node to save before x is written to."""
    old = lib.norch_clone(x)
    old._node = gradient_edge(x)
    return old
