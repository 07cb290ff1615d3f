"""SavePlan: what the nodes of an operation save, and in which order.

derivative() makes it once, from the names of the parameters of the gradient functions. record() and its specialized
copies fill node._saved by it; the gradient functions read node._saved by it.
"""

from __future__ import annotations

from itertools import chain
from operator import itemgetter

from .._package.typing import Any
from .._tensor.handle import Handle, alias
from .grad_mode import mode
from .saved import TensorHolder, freed, saved_intact

_CHECKED = (Handle, TensorHolder)


class SavePlan:
    """What the nodes of an operation save.

    inputs      the names of the inputs that may have a gradient
    needed      for each input, the names that its gradient needs
    layout      the names of the saved values, in the order of node._saved
    others      the names of the values that record() takes beside the inputs and the result
    frees       whether a tensor is saved. backward() then frees all; shapes, axes and numbers stay for another walk
    out         whether the result is saved
    unread      the inputs whose meta tensor is saved where no wanted gradient needs their elements
    x_meta      whether the meta tensor of the first input is saved
    selections  what select() returned, by its argument
    """

    __slots__ = ("frees", "inputs", "layout", "needed", "others", "out", "selections", "unread", "x_meta")

    def __init__(
        self,
        inputs: tuple[str, ...],
        needed: list[tuple[str, ...]],
        layout: tuple[str, ...],
        others: tuple[str, ...] | None,
        tensors: tuple[str, ...],
        unread: dict[str, tuple[str, ...]],
    ):
        used = dict.fromkeys(chain(*needed))
        if others is None:
            others = tuple(name for name in used if name != "out" and name.removesuffix("_meta") not in inputs)
        self.inputs, self.others = inputs, others
        self.needed = needed if len(needed) == len(inputs) else needed * len(inputs)  # one function for all
        self.layout = layout or tuple(dict.fromkeys([*filter(used.__contains__, inputs), *used]))
        self.frees = not {*inputs, "out", *tensors}.isdisjoint(used)
        self.out = "out" in used
        self.unread = set(chain(*unread.values()))
        self.x_meta = bool(inputs) and f"{inputs[0]}_meta" in used
        self.selections: dict[int, tuple[Any, bool, list[int]]] = {}

    def select(self, wanted: int) -> tuple[Any, bool, list[int]]:
        """How a node is filled if the gradients of the bit mask are wanted (edges_of() of record.py): (pick, of_out,
        of_metas).

        pick selects from [None, *inputs, *others, the result if of_out, the meta tensors of the inputs of_metas]; None
        means: all inputs and others, as they are.
        """
        needed = {name for i, names in enumerate(reversed(self.needed)) if wanted >> i & 1 for name in names}
        names, of_out = [*self.inputs, *self.others], "out" in needed
        count = len(names)
        names += ["out"] if of_out else []
        instead = {name: f"{name}_meta" for name in self.unread - needed}
        wanted_metas = needed.union(instead.values())
        of_metas = [i for i, name in enumerate(self.inputs) if f"{name}_meta" in wanted_metas]
        names += [f"{self.inputs[i]}_meta" for i in of_metas]
        saved = [instead.get(name, name if name in needed else "") for name in self.layout]
        indices = [names.index(name) + 1 if name else 0 for name in saved]
        pick = None
        if indices != [*range(1, 1 + count)]:
            pick = itemgetter(*indices, *[0] * (2 - len(indices)))  # of fewer than two, itemgetter gives no tuple
        self.selections[wanted] = pick, of_out, of_metas
        return self.selections[wanted]

    def reader(self, parameters: tuple[str, ...]) -> Any:
        """A function of a node that returns the saved values of these names, after checking that they were neither
        freed nor written to. A saved result gets its history back."""
        positions = [self.layout.index(name) for name in parameters]
        count = len(positions)
        in_order = count > 1 and positions == [*range(len(self.layout))]
        pick: Any = itemgetter(*positions) if count > 1 else lambda saved: tuple([saved[i] for i in positions])
        out_at = parameters.index("out") if "out" in parameters else -1
        if not self.frees:
            return lambda node: pick(node._saved)

        def read(node: Any) -> tuple[Any, ...]:
            saved = node._saved
            if saved is None:
                raise freed(node)
            values = saved if in_order else pick(saved)
            for x in values:
                if isinstance(x, _CHECKED):
                    for held in x.tensors() if isinstance(x, TensorHolder) else (x,):
                        if held._version_counter is not None:
                            saved_intact(node, held)
            if out_at >= 0 and mode.enabled:
                out = alias(values[out_at])
                out._node = node
                values = (*values[:out_at], out, *values[out_at + 1 :])
            return values

        return read
