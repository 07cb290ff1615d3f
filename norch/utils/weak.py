"""``norch.utils.weak``: weak references compared by identity, since == of tensors compares elements."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

from .._package.exports import publish

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary", "WeakTensorRefKey"]
publish(globals())

WeakRef = weakref.ref


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that equals others to the same object."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        a, b = self(), other() if isinstance(other, weakref.ref) else None
        return a is b if a is not None and b is not None else self is other


class TensorWeakRef:
    """A weak reference to a tensor; calling it returns the tensor or None."""

    def __init__(self, tensor: Any) -> None:
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        return self.ref()


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dict with keys compared by identity and held weakly."""

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:  # noqa: A002
        self.data: Any = {}
        self.ref_type = ref_type
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        data = self.data
        self.data[self.ref_type(key, lambda ref: data.pop(ref, None))] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: Any) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # the object does not support weak references
            return False

    def __iter__(self) -> Iterator[Any]:
        return (key for ref in list(self.data) if (key := ref()) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def copy(self) -> Any:
        """A copy with the same keys and values."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary
WeakTensorRefKey = WeakIdRef
