"""PyTorch's names for the values that nodes save: ``y.grad_fn._saved_self``."""

from __future__ import annotations

from .._binding.library import lib
from .._package.typing import Any
from .._tensor.handle import Handle, alias
from ..errors import Error
from .saved import history_of_result, saved_intact

# {parameter of a gradient function (derivative.py): PyTorch's name}; `x_meta` becomes `self_sym_sizes`, the shape.
_NAMES = {"x": "self", "a": "self", "b": "other", "out": "result", "axes": "dim"}
_NAMES |= {name: name for name in "bias diagonal dim eps index keepdim mask ord p training weight".split()}
_NAMES_OF = {
    "Addcdiv": {"b": "tensor1", "c": "tensor2"},
    "Addcmul": {"b": "tensor1", "c": "tensor2"},
    "BatchNorm": {"x": "input"},
    "Clamp": {"b": "min", "c": "max"},
    "ClampMax": {"b": "max"},
    "ClampMin": {"b": "min"},
    "Conv": {"x": "input"},
    "Elu": {"b": "alpha", "c": "input_scale"},
    "Embedding": {"index": "indices", "padding": "padding_idx", "by_frequency": "scale_grad_by_freq"},
    "Hardtanh": {"b": "min_val", "c": "max_val"},
    "LeakyRelu": {"b": "negative_slope"},
    "Lerp": {"b": "end", "c": "weight"},
    "Linear": {"x": "input"},
    "Matmul": {"b": "mat2"},
    "Normalize": {"x": "input"},
    "Pow": {"b": "exponent"},
    "Softplus": {"b": "beta", "c": "threshold"},
    "Std": {"param": "correction"},
    "Var": {"param": "correction"},
    "Where": {"a": "condition"},
}
# Values that a node class implies: x**2 and x**3 are separate operations here.
_CONSTANTS = {"Cube": {"exponent": 3}, "Square": {"exponent": 2}}

_positions: dict[Any, dict[str, int]] = {}


def saved_positions(node_class: Any) -> dict[str, int]:
    """{PyTorch's name: position in node._saved} of what a gradient needs."""
    if node_class in _positions:
        return _positions[node_class]
    plan = node_class.save_plan
    needed = {name for names in plan.needed for name in names}
    names = _NAMES | _NAMES_OF.get(node_class.__name__, {})
    positions = {}
    for position, name in enumerate(plan.saves):
        bare = name.removesuffix("_meta")
        if name in needed and bare in names:
            positions[names[bare] + "_sym_sizes" * (bare != name)] = position
    _positions[node_class] = positions
    return positions


def pytorch_names(node_class: Any) -> list[str]:
    """PyTorch's names of what nodes of this class save."""
    return [*saved_positions(node_class), *_CONSTANTS.get(node_class.__name__, ())]


def read_saved(node: Any, name: str) -> Any:
    """The value that node saved under PyTorch's name; None if no gradient needed it. As in PyTorch, a saved result has
    its history. Raises Error if the value was freed or written to, AttributeError for an unknown name."""
    position = saved_positions(type(node)).get(name)
    if position is None:
        constants = _CONSTANTS.get(type(node).__name__, {})
        if name in constants:
            return constants[name]
        raise AttributeError(f"{node.name()} saves no {name!r}", name=f"_saved_{name}", obj=node)
    if node._saved is None:
        raise Error(
            f"{node.name()}: _saved_{name} was freed by backward(); pass retain_graph=True to "
            "backward() to read it after that"
        )
    value = node._saved[position]
    if not isinstance(value, Handle):
        return value
    if name.endswith("_sym_sizes"):
        return tuple(value.shape)
    saved_intact(node, value)
    if name == "result":
        value = alias(value)
        value._node = history_of_result(node)
    elif value._weak:  # a number, whose tensor all calls share
        return lib.norch_clone(value) if name in ("self", "other") else value.item()  # type: ignore[attr-defined]
    return value


class _Saved:
    """The attribute _saved_<name> of nodes. A __getattr__ would slow down all other attributes."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __get__(self, node: Any, kind: Any = None) -> Any:
        return self if node is None else read_saved(node, self.name)


def add_saved_names(node_class: type) -> None:
    """Adds all attributes _saved_<name> to the base class of nodes."""
    for names in (_NAMES, *_NAMES_OF.values()):
        for name in names.values():
            setattr(node_class, f"_saved_{name}", _Saved(name))
            setattr(node_class, f"_saved_{name}_sym_sizes", _Saved(name + "_sym_sizes"))
