"""Hooks on the tensors that nodes save: saved_tensors_hooks(), save_on_cpu().

A node keeps what it saves in the attribute _saved. The first use of hooks replaces it by a descriptor, which packs on
writing while hooks are active, and unpacks on reading. csrc/python/node.c, which writes the field directly, then packs
too. Programs without hooks pay nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .._binding.library import lib
from .._tensor.handle import Handle
from ..errors import Error
from .derivative import OpNode
from .function import Function
from .grad_mode import no_grad
from .node import Node
from .record import gradient_edge

Hook = Callable[[Any], Any]


class _Active(threading.local):
    """A thread's hooks, the innermost last, and the message if hooks are disabled."""

    def __init__(self) -> None:
        self.hooks: list[tuple[Hook, Hook]] = []
        self.refused: str | None = None


_active = _Active()


class _Packed:
    """What a hook returned for a saved tensor, and the tensor's history, for gradients of gradients."""

    __slots__ = ("edge", "unpack", "value")

    def __init__(self, x: Any, hooks: tuple[Hook, Hook]) -> None:
        pack, self.unpack = hooks
        self.edge = x._node if x._view is None else gradient_edge(x)
        before = x._version
        with no_grad():
            self.value = pack(x.detach())
        if x._version != before:  # the result, or an operand that others use
            raise Error("saved_tensors_hooks: pack_hook wrote to its argument in place; it must return another tensor")

    def tensor(self) -> Any:
        with no_grad():
            unpacked = self.unpack(self.value)
        if not isinstance(unpacked, Handle):
            raise TypeError(f"saved_tensors_hooks: unpack_hook returned {type(unpacked).__name__}, not a tensor")
        out: Any = unpacked.detach()  # type: ignore[attr-defined]
        out._node = self.edge
        return out


def _packed(saved: Any) -> Any:
    if not saved or not _active.hooks:
        return saved
    hooks = _active.hooks[-1]
    return tuple(  # only tensors with elements (some only give a shape), and no numbers, whose tensors all calls share
        _Packed(x, hooks) if isinstance(x, Handle) and x._address and not x._weak else x for x in saved
    )


class _Saved:
    """Replaces the attribute _saved of a class of nodes."""

    def __init__(self, get: Callable[[Any], Any], set: Callable[[Any, Any], None]) -> None:
        self.get, self.set = get, set

    def __get__(self, node: Any, owner: Any = None) -> Any:
        if node is None:
            return self
        saved = self.get(node)
        if type(saved) is tuple and any(type(x) is _Packed for x in saved):
            return tuple(x.tensor() if type(x) is _Packed else x for x in saved)
        return saved

    def __set__(self, node: Any, saved: Any) -> None:
        self.set(node, saved)


def _install() -> None:
    """Installs the descriptors, once."""
    if "_saved" in vars(OpNode):
        return
    slot, record = Node._saved, Function._record
    of_operations: Any = _Saved(slot.__get__, lambda node, saved: slot.__set__(node, _packed(saved)))
    of_functions: Any = _Saved(slot.__get__, slot.__set__)

    def recorded(self: Any, outputs: Any, inputs: Any) -> Any:
        result = record(self, outputs, inputs)
        slot.__set__(self, _packed(slot.__get__(self)))  # now, as record() compares them with the outputs
        return result

    lib.norch_pack_saved(_packed)
    Function._record = recorded  # type: ignore[method-assign]
    for cls, stands in ((Function, of_functions), (OpNode, of_operations)):
        cls._saved = stands


class saved_tensors_hooks:  # PyTorch's name
    """A context in which pack_hook(x) is kept instead of each tensor that an operation saves for backward();
    unpack_hook() of it returns the tensor when it is needed. In nested contexts the innermost hooks apply.

    >>> kept = []
    >>> x = norch.tensor([2.0], requires_grad=True)
    >>> with norch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or len(kept) - 1, lambda i: kept[i]):
    ...     y = x.square()
    >>> kept, norch.autograd.grad(y, x)
    ([tensor([2.])], (tensor([4.]),))
    """

    def __init__(self, pack_hook: Hook, unpack_hook: Hook) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if _active.refused is not None:
            raise Error(_active.refused)
        _install()
        lib.norch_captured_slow_path(1)  # recordings ignore hooks
        _active.hooks.append((self.pack_hook, self.unpack_hook))

    def __exit__(self, *error: Any) -> None:
        _active.hooks.pop()
        lib.norch_captured_slow_path(-1)


def are_active() -> bool:
    """Whether this thread has hooks on saved tensors."""
    return bool(_active.hooks)


class save_on_cpu(saved_tensors_hooks):  # PyTorch's name
    """A context in which tensors that operations on another device save for backward() are kept in host memory.
    pin_memory has no effect.

    >>> with norch.autograd.graph.save_on_cpu():
    ...     y = norch.ones(3, requires_grad=True).exp()
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda x: (x.device, x.cpu()), lambda packed: packed[1].to(packed[0]))


class disable_saved_tensors_hooks:  # PyTorch's name
    """A context in which saved_tensors_hooks() raises an Error with this message."""

    def __init__(self, error_message: str) -> None:
        self.message = error_message
        self.before: list[str | None] = []

    def __enter__(self) -> None:
        if _active.hooks:
            raise Error(self.message)
        self.before.append(_active.refused)
        _active.refused = self.message

    def __exit__(self, *error: Any) -> None:
        _active.refused = self.before.pop()
