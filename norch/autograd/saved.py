"""The values that nodes save for gradients, and the checks on reading them.

derivative() makes a SavePlan once, from the parameter names of the gradient functions. record() fills node._saved by it
(csrc/python/node.c). Before a gradient function gets a saved tensor, csrc/python/gradients.c checks that it was neither
freed nor written to. OpNode.release() frees.
"""

from __future__ import annotations

from itertools import chain
from weakref import WeakKeyDictionary, ref

from .._binding.library import lib
from .._package.typing import Any
from ..errors import Error
from .node import Node

# For a node that wrote to a view and saved the result: a weak reference to the view's history, which leads to the node.
_of_views: WeakKeyDictionary[Node, ref[Node]] = WeakKeyDictionary()


def note_view(node: Node, history: Node) -> None:
    """Notes the history of a view after node wrote to it."""
    _of_views[node] = ref(history)


def history_of_result(node: Node) -> Node:
    """The history, with its hooks, of what node saved as its result: node, or that of the view it wrote to."""
    reference = _of_views.get(node)
    return (reference() if reference is not None else None) or node


class SavePlan:
    """The values that the nodes of an operation save.

    inputs      the names of the inputs that may have a gradient
    needed      for each input, the names that its gradient needs
    saves       the names of the saved values, in the order of node._saved
    others      the names of the values that record() takes besides the inputs and the result
    frees       whether a tensor is saved. backward() then frees everything, unless a node saved only numbers and shapes
    out         whether the result is saved
    tensors     the names of values besides the inputs and the result that are tensors, or TensorHolders
    unread      the inputs of which only the meta tensor is saved if no wanted gradient reads their elements
    selections  what select() returned, by its argument
    """

    __slots__ = ("frees", "inputs", "needed", "others", "out", "saves", "selections", "tensors", "unread")

    def __init__(
        self,
        inputs: tuple[str, ...],
        needed: list[tuple[str, ...]],
        saves: tuple[str, ...],
        others: tuple[str, ...] | None,
        tensors: tuple[str, ...],
        unread: dict[str, tuple[str, ...]],
    ):
        used = dict.fromkeys(chain(*needed))
        if others is None:
            others = tuple(name for name in used if name != "out" and name.removesuffix("_meta") not in inputs)
        self.inputs, self.others, self.tensors = inputs, others, tensors
        self.needed = needed if len(needed) == len(inputs) else needed * len(inputs)  # one function for all
        self.saves = (saves if used else ()) or tuple(dict.fromkeys([*filter(used.__contains__, inputs), *used]))
        self.frees = not {*inputs, "out", *tensors}.isdisjoint(used)
        self.out = "out" in used
        self.unread = set(chain(*unread.values()))
        self.selections: list[str | None] = [None] * (1 << len(inputs))

    def select(self, wanted: int) -> str:
        """What a node saves for the wanted gradients in the bit mask, whose highest bit is the first input: a character
        for each value of `saves`, with the code

            0        None
            1, 2 ..  an input, or after these a value of others
            64 ..    the meta tensor of an input
            127      the result
        """
        needed = {name for i, names in enumerate(reversed(self.needed)) if wanted >> i & 1 for name in names}
        instead = {name: f"{name}_meta" for name in self.unread - needed}
        codes = {name: 1 + i for i, name in enumerate((*self.inputs, *self.others))}
        codes |= {f"{name}_meta": 64 + i for i, name in enumerate(self.inputs)} | {"out": 127}
        saved = [instead.get(name, name if name in needed else "") for name in self.saves]
        selected = self.selections[wanted] = "".join(chr(codes[name]) if name else "\0" for name in saved)
        return selected

    def code_of(self, name: str) -> int:
        """The position of a saved value, with a flag if it is the result (32), or may hold tensors (64)."""
        return self.saves.index(name) | 32 * (name == "out") | 64 * (name in self.tensors)

    def reader(self, parameters: tuple[str, ...]) -> Any:
        """A function that returns a node's saved values of these names. It checks that they were neither freed nor
        written to, and gives a saved result its history."""
        codes = "".join([chr(self.code_of(name)) for name in parameters])
        return lib.norch_gradients(None, codes, check_saved if self.frees else None)


# ---- checks ----------------------------------------------------------------------------------------------------------


class TensorHolder:
    """Base of saved objects with tensors, which are checked and freed like saved inputs."""

    __slots__ = ()

    def tensors(self) -> tuple[Any, ...]:
        """The tensors that it holds."""
        raise NotImplementedError


def saved_intact(node: Node, saved: Any) -> None:
    """Raises Error if a tensor saved by node was freed by an earlier walk, or written to since."""
    if saved is None:
        raise freed(node)
    version = saved._version_counter
    if version is not None and version[0] > node.seq:
        raise changed(node, saved)


def check_saved(node: Node, value: Any) -> None:
    """saved_intact() of a value that may hold tensors."""
    for held in value.tensors() if isinstance(value, TensorHolder) else (value,):
        saved_intact(node, held)


def changed(node: Node, saved: Any) -> Error:
    return Error(
        f"{node.name()}: a tensor of shape {tuple(saved.shape)} that it needs for its gradient was changed "
        "in place after it was used; change a clone() instead"
    )


def freed(node: Node) -> Error:
    return Error(
        f"{node.name()}: going backward through this graph a second time, but what it saved was freed the "
        "first time; pass retain_graph=True to the first backward()"
    )
