"""The values that a recorded function writes to without reading them. Replays do not repeat these writes, except for
tensors, which Stores stores again."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any
from weakref import ref

from .._binding.library import lib
from .._package.recording import unseen
from .._tensor.handle import Handle, Size, alias, version_counter_of
from ..autograd.grad_mode import no_grad
from ..nn.module import Module
from ..tensor import Tensor
from .conditions import FIELD, ITEM, Place, Row, found_by, same, slot_of
from .fields import is_a, offset_of
from .tree import constant, flatten, has_objects, is_tensor, rebuild

_MOST = 1000  # objects that are searched for tensors
_NOT_SEARCHED = (Module, type, ModuleType, FunctionType, CodeType)


class Written:
    """A value in a container that the function only writes to, and its state after recording.

    key       in the container; for an object's slot the descriptor
    name      the value's name; place: file and line of the write
    use       how it is written; None: bound
    owner     the class whose dict the container is
    """

    def __init__(
        self,
        container: Any,
        key: Any,
        name: str,
        place: Place | None,
        use: str | None = None,
        owner: type | None = None,
    ):
        self._container, self._key, self.name, self.place, self.use = container, key, name, place, use
        self.owner = owner
        entries = self._entries()
        self._state = {key: _mark(entry) for key, entry in entries.items()}
        self._counters = {key: version_counter_of(x) for key, x in entries.items() if is_a(x, Handle)}
        self.before = {where: _mark_of(entry) for where, entry in self.places()}

    def _found(self) -> Any:
        if type(self._key) is MemberDescriptorType:
            return slot_of(self._key, self._container)
        return found_by(self._container, self._key)

    def _entries(self) -> dict[Any, Any]:
        value = self._found()
        if is_a(value, list) and self.use == "stored":
            return dict(enumerate(value))
        return dict(value) if is_a(value, dict) else {None: value}

    def is_changed(self, stores: Stores) -> bool:
        """Whether the function changed it since in a way that replays do not repeat: another number, more entries,
        other entries of a dict."""
        now = self._entries()
        return now.keys() != self._state.keys() or any(
            not same(self._state[key], _mark(entry)) and not stores.puts(entry) for key, entry in now.items()
        )

    def tensors(self) -> list[Any]:
        """The tensors in it."""
        return [x for entry in self._entries().values() for x in tensors_in(entry)]

    def places(self) -> Iterator[tuple[Where, Any]]:
        """A place where the function may have stored a value, and the value."""
        value = self._found()
        if self.use is None:
            yield Where(self._container, self._key, self.owner), value
        elif is_a(value, dict):
            yield from ((Where(value, key), entry) for key, entry in dict.items(value))
        elif is_a(value, list) and self.use == "stored":
            yield from ((Where(value, i), entry) for i, entry in enumerate(list.__iter__(value)))

    def replaced(self) -> list[Any]:
        """The tensors in it that replaced similar tensors."""
        return [
            x
            for key, x in self._entries().items()
            if is_a(x, Handle)
            and key in self._counters
            and version_counter_of(x) is not self._counters[key]
            and same(self._state[key], _mark(x))
        ]


class Where:
    """container[key]; owner: the class whose dict the container is."""

    __slots__ = ("_container", "_key", "_owner")

    def __init__(self, container: Any, key: Any, owner: type | None = None):
        self._container, self._key, self._owner = container, key, owner

    def __eq__(self, other: object) -> bool:
        return is_a(other, Where) and self._container is other._container and self._key == other._key  # type: ignore

    def __hash__(self) -> int:
        return hash((id(self._container), self._key))

    def row(self, value: Any) -> Row:
        """The condition that this value is there."""
        if type(self._key) is MemberDescriptorType:
            return self._container, FIELD, offset_of(self._key), value
        return self._container, ITEM, self._key, value

    def put(self, value: Any) -> None:
        if self._owner is not None:
            type.__setattr__(self._owner, self._key, value)
        elif type(self._key) is MemberDescriptorType:
            self._key.__set__(self._container, value)
        elif type(self._container) is CellType:
            self._container.cell_contents = value
        else:
            self._container[self._key] = value


class Stores:
    """The values that the function stores: new tensors, structures with new tensors, and arguments or views of them.

    recorded  the recording's tensors whose memory holds the stored values
    """

    def __init__(self) -> None:
        self.recorded: list[Any] = []
        self._values: list[Any] = []
        self._stored: list[tuple[Where, Any, list[Source]]] = []

    def add(self, where: Where, value: Any, sources: list[Source] | None) -> None:
        """sources: of the tensors of a value for which is_tree() holds; None: any other value, which is stored
        itself."""
        tree = flatten(value, [], is_tensor) if sources is not None else constant(value)
        self._stored.append((where, tree, sources or []))
        self._values.append(value)
        self.recorded += [s.x for s in sources if s.is_copied] if sources is not None else tensors_in(value)

    def puts(self, value: Any) -> bool:
        return any(value is stored for stored in self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __call__(self, results: Any, arguments: tuple[Any, ...]) -> None:
        """Stores everything again after a replay with these results."""
        outputs = results if type(results) is tuple else (results,)
        copies: dict[Any, Any] = {}
        for where, tree, sources in self._stored:
            where.put(rebuild(tree, iter([source.found(outputs, arguments, copies) for source in sources])))


class Source:
    """The origin of a stored tensor: a result or argument, or a view of it; a copy of x, which the recording writes; or
    x itself, which is older. shares_result: it is a copy, but has the memory of a result.
    """

    def __init__(self, x: Any, recording: Any, results: list[Any], arguments: tuple[Any, ...]):
        is_external = lib.norch_is_external(recording, x)
        self._argument, self._result = argument_of(x, arguments), argument_of(x, tuple(results))
        self.shares_result, self._view, origin = False, None, x
        if self._result is not None and x is not results[self._result]:
            if is_external or self._argument is not None:
                self._result = None
            elif not _is_part_of(x, results[self._result]):
                self._result, self.shares_result = None, True
        if self._result is not None:
            self._argument, origin = None, results[self._result]
        elif self._argument is not None:
            origin = arguments[self._argument]
        if origin is not x:
            offset = x.storage_offset() - origin.storage_offset()
            self._view = (tuple(x.shape), x.stride(), offset, self._argument is None)
            if x._dtype is not origin._dtype:
                unseen("it stores a tensor that has the memory of another dtype; store a clone() of it")
        is_found = self._result is not None or self._argument is not None
        is_plain = type(x) is Tensor and not x.__dict__
        self.is_copied = not is_found and is_plain and not is_external
        self.x = None if is_found else x

    def found(self, results: tuple[Any, ...], arguments: tuple[Any, ...], copies: dict[Any, Any]) -> Any:
        if self.x is not None:
            return _copied(self.x, copies) if self.is_copied else self.x
        x = results[self._result] if self._argument is None else arguments[self._argument]  # type: ignore[index]
        return x if self._view is None else _view_of(x, *self._view)


def _is_part_of(x: Any, result: Any) -> bool:
    """Whether a replay's result has all memory of x, which has no graph. It may lack what is around a dense one."""
    if x._node is not None or x._dtype is not result._dtype:
        return False
    begin = x.storage_offset() - result.storage_offset()
    end = begin + sum((size - 1) * step for size, step in zip(x.shape, x.stride(), strict=True))
    return not result.is_contiguous() or (x._numel > 0 <= begin and end < result._numel)


def _view_of(x: Any, shape: Any, strides: Any, shift: int, is_detached: bool) -> Any:
    with no_grad():
        base = alias(x).detach() if is_detached else x
        view = base.as_strided(shape, strides, x.storage_offset() + shift)
    if is_detached:
        view._view = None
    return view


def _copied(x: Any, copies: dict[Any, Any]) -> Any:
    """A copy of x with its strides, history and gradient. copies: the copies so far, {id of a tensor: its copy} and
    {address and dtype of memory: its copy}; tensors that share memory share the copy."""
    if (duplicate := copies.get(id(x))) is not None:
        return duplicate
    memory = x.untyped_storage()
    key = memory.data_ptr(), x._dtype
    with no_grad():
        if key not in copies:
            plain = alias(x).detach()
            copies[key] = plain.as_strided((memory.nbytes() // x.element_size(),), (1,), 0).clone()
        duplicate = copies[id(x)] = copies[key].as_strided(tuple(x.shape), x.stride(), x.storage_offset())
    duplicate._view, duplicate._node = None, x._node
    duplicate._grad = x._grad if x._grad is None else _copied(x._grad, copies)
    return duplicate


def argument_of(x: Any, arguments: tuple[Any, ...]) -> int | None:
    """The index of the argument that a tensor is, or is a view of."""
    shares = [i for i, a in enumerate(arguments) if is_a(a, Handle) and lib.norch_share_storage(a, x)]
    return next((i for i in shares if arguments[i] is x), shares[0] if shares else None)


def _mark_of(value: Any) -> Callable[[], Any]:
    """A function that returns value; a tensor only while something else refers to it."""
    return ref(value) if is_a(value, Handle) else lambda: value


def tensors_in(value: Any) -> list[Any]:
    """The tensors in a value."""
    todo, visited, tensors = [value], {id(value): value}, []
    while todo and len(visited) < _MOST:
        item = todo.pop()
        if is_a(item, Handle):
            tensors.append(item)
        elif not is_a(item, _NOT_SEARCHED):
            inner = [x for x in gc.get_referents(item) if id(x) not in visited]
            visited.update((id(x), x) for x in inner)
            todo += inner
    return tensors


def is_tree(value: Any) -> bool:
    """Whether a value is a tensor, or a list, tuple or dict of tensors and numbers."""
    return not has_objects(flatten(value, [], is_tensor))


def _mark(value: Any) -> Any:
    """Represents a value: a tensor by its properties, so that it can be freed, a container by its size."""
    if is_a(value, Handle):
        return _properties(value)
    if is_a(value, Size):
        return tuple(value)
    return len(value) if is_a(value, (list, set, deque, dict)) else value


def _properties(x: Any) -> tuple[Any, ...]:
    return type(x), tuple(x.shape), x._dtype, str(x.device), type(x._node)


def are_alike(a: Any, b: Any) -> bool:
    """Whether both are tensors of the same class, shape, dtype, device and role in autograd."""
    return is_a(a, Handle) and is_a(b, Handle) and same(_properties(a), _properties(b))
