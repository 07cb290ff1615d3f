"""Effects on Python that a replay does not repeat: what a recorded function writes to without reading it."""

from __future__ import annotations

from collections import deque
from typing import Any

from .._tensor.handle import Handle, Size, version_counter_of
from .conditions import found_by, same
from .containers import Place
from .fields import is_a


class Written:
    """A value in a container that the function only writes to, and its state after the function was recorded.

    name      that of the value; place: file and line that write
    use       how it is written; None: bound
    """

    def __init__(self, container: Any, key: Any, name: str, place: Place | None, use: str | None = None):
        self._container, self._key, self.name, self.place, self.use = container, key, name, place, use
        entries = self._entries()
        self._state = {key: _mark(one) for key, one in entries.items()}
        self._counters = {key: version_counter_of(x) for key, x in entries.items() if is_a(x, Handle)}

    def _entries(self) -> dict[Any, Any]:
        value = found_by(self._container, self._key)
        if is_a(value, list) and self.use == "stored":
            return dict(enumerate(value))
        return dict(value) if is_a(value, dict) else {None: value}

    def is_changed(self) -> bool:
        """Whether the function has changed it since: another number, more entries, other entries of a dict."""
        now = self._entries()
        return now.keys() != self._state.keys() or any(not same(self._state[key], _mark(now[key])) for key in now)

    def tensors(self) -> list[Any]:
        """The tensors that it holds."""
        return [x for x in self._entries().values() if is_a(x, Handle)]

    def replaced(self) -> list[Any]:
        """The tensors that it holds now where it held tensors like them."""
        return [
            x
            for key, x in self._entries().items()
            if is_a(x, Handle)
            and key in self._counters
            and version_counter_of(x) is not self._counters[key]
            and same(self._state[key], _mark(x))
        ]


def _mark(value: Any) -> Any:
    """What stands for a value: for a tensor its properties, so that it may go, for containers how much they hold."""
    if is_a(value, Handle):
        return _properties(value)
    if is_a(value, Size):
        return tuple(value)
    return len(value) if is_a(value, (list, set, deque, dict)) else value


def _properties(x: Any) -> tuple[Any, ...]:
    return type(x), tuple(x.shape), x._dtype, str(x.device), type(x._node)


def are_alike(a: Any, b: Any) -> bool:
    """Whether both are tensors, of the same class, shape, dtype and device, and the same part in autograd."""
    return is_a(a, Handle) and is_a(b, Handle) and same(_properties(a), _properties(b))
