"""What a node saved, under PyTorch's names: ``y.grad_fn._saved_self``. They follow from those of the parameters of its
gradient functions (derivative.py); an operation whose arguments PyTorch calls otherwise stands in the table."""

from __future__ import annotations

from .._handle import Handle, alias
from .._lib import lib
from .._typing import Any
from ..errors import Error
from .node import Node, saved_intact

# PyTorch's name of each that it has; `x_meta` is besides `self_sym_sizes`, the shape.
_NAMES = {"x": "self", "a": "self", "b": "other", "out": "result", "axes": "dim"}
_NAMES |= {name: name for name in "bias dim eps index keepdim mask ord p training weight".split()}
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
# What the class of a node tells: a power of 2 or 3 is an operation of its own here.
_CONSTANTS = {"Cube": {"exponent": 3}, "Square": {"exponent": 2}}

_known: dict[Any, dict[str, int]] = {}


def saved_positions(node_class: Any) -> dict[str, int]:
    """Where what PyTorch calls so stands in node._saved, for what a gradient needs."""
    if node_class in _known:
        return _known[node_class]
    needed: frozenset[str] = frozenset().union(*node_class.saved_for)
    names = _NAMES | _NAMES_OF.get(node_class.__name__, {})
    found = {}
    for position, name in enumerate(node_class.saved_names):
        bare = name.removesuffix("_meta")
        if name in needed and bare in names:
            found[names[bare] + "_sym_sizes" * (bare != name)] = position
    _known[node_class] = found
    return found


def pytorch_names(node_class: Any) -> list[str]:
    """PyTorch's names of what its nodes saved."""
    return [*saved_positions(node_class), *_CONSTANTS.get(node_class.__name__, ())]


def read_saved(node: Any, name: str) -> Any:
    """What node saved under PyTorch's name; None for what no gradient needed. As in PyTorch an Error after it was freed
    or written to, and a result comes with its history."""
    position = saved_positions(type(node)).get(name)
    if position is None:
        constants = _CONSTANTS.get(type(node).__name__, {})
        if name in constants:
            return constants[name]
        raise AttributeError(f"{node.name()} saves no {name!r}", name=f"_saved_{name}", obj=node)
    if node._saved is None:
        raise _freed(node, name)
    value = node._saved[position]
    if not isinstance(value, Handle):
        return value
    if name.endswith("_sym_sizes"):
        return tuple(value.shape)
    saved_intact(node, value)
    if name == "result":
        value = alias(value)
        value._node = node
    elif value._weak:  # a number, whose tensor all calls share
        return lib.norch_clone(value) if name in ("self", "other") else value.item()  # type: ignore[attr-defined]
    return value


class _Saved:
    """The attribute _saved_<name> of nodes. Not by a __getattr__ of their class, with which CPython would look up each
    attribute of a node the slow way."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __get__(self, node: Any, kind: Any = None) -> Any:
        return self if node is None else read_saved(node, self.name)


def add_saved_names(node_class: type) -> None:
    """Gives the base class of nodes all attributes that nodes may have."""
    for names in (_NAMES, *_NAMES_OF.values()):
        for name in names.values():
            setattr(node_class, f"_saved_{name}", _Saved(name))
            setattr(node_class, f"_saved_{name}_sym_sizes", _Saved(name + "_sym_sizes"))


def _freed(node: Node, name: str) -> Error:
    return Error(
        f"{node.name()}: _saved_{name} was freed when the gradient went backward; pass retain_graph=True to backward() "
        "to read it after that"
    )
