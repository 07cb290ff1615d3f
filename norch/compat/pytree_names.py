"""Further names of torch.utils._pytree: flatten functions of Python's containers, and specs as JSON."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ..errors import ArgumentError
from . import pytree
from .pytree import LeafSpec, MappingKey, SequenceKey, TreeSpec

Context = Any
PyTreeSpec = TreeSpec
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
Parts = tuple[list[Any], Any]


class KeyEntry(Protocol):
    """A step of a path: SequenceKey, MappingKey, GetAttrKey or a user-defined one."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...


def tree_is_leaf(tree: Any, is_leaf: Any = None) -> bool:
    """Whether tree is a leaf."""
    return pytree._is_leaf(tree, is_leaf)


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a class is one of collections.namedtuple() or typing.NamedTuple."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_make")


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether the class of obj is a named tuple's."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether obj is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether a class is one of C's named tuples, such as time.struct_time."""
    return (
        isinstance(cls, type) and cls.__base__ is tuple and isinstance(getattr(cls, "n_fields", None), int)
        and isinstance(getattr(cls, "n_sequence_fields", None), int)
    )  # fmt: skip


def is_structseq_instance(obj: Any) -> bool:
    """Whether the class of obj is one of C's named tuples."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether obj is one of C's named tuples, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _register_pytree_node(cls: Any, flatten_fn: Any, unflatten_fn: Any, **options: Any) -> None:
    """The older name of register_pytree_node()."""
    pytree.register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


_private_register_pytree_node = _register_pytree_node


def _deregister_pytree_node(cls: Any) -> None:
    """Makes instances of cls leaves again."""
    pytree.SUPPORTED_NODES.pop(cls)


def tree_map_only_(types: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
    """Applies func to the leaves of these types, in place, and returns tree."""
    pytree.tree_map_only(types, func, tree, is_leaf)
    return tree


def tree_all_only(types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether pred(leaf) holds for all leaves of the types."""
    return all(pred(x) for x in pytree.tree_leaves(tree, is_leaf) if isinstance(x, types))


def tree_any_only(types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether pred(leaf) holds for a leaf of the types."""
    return any(pred(x) for x in pytree.tree_leaves(tree, is_leaf) if isinstance(x, types))


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of all arguments."""
    return [x for each in (*args, *kwargs.values()) for x in pytree.tree_leaves(each)]


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: Any = None) -> list[Any] | None:
    """A value for each leaf of treespec. A leaf of tree counts for all leaves below it. None if the structures
    differ."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf():
        return None
    spec = pytree.tree_structure(tree, is_leaf)
    if (spec.type, spec.context) != (treespec.type, treespec.context):
        return None
    node = pytree.SUPPORTED_NODES.get(type(tree))
    children = list(tree) if node is None else list(node.flatten_fn(tree)[0])
    if len(children) != len(treespec.children_specs):
        return None
    leaves: list[Any] = []
    for child, below in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, below, is_leaf)
        if part is None:
            return None
        leaves += part
    return leaves


# ---- the nodes of Python -------------------------------------------------------------------------------------------


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    return list(values)


def _list_flatten_with_keys(d: Any) -> Parts:
    return [(SequenceKey(i), x) for i, x in enumerate(d)], None


def _tuple_flatten(d: Any) -> Parts:
    return list(d), None


_tuple_flatten_with_keys = _list_flatten_with_keys


def _tuple_unflatten(values: Iterable[Any], context: Any) -> tuple[Any, ...]:
    return tuple(values)


def _namedtuple_flatten(d: Any) -> Parts:
    return list(d), type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Any) -> Any:
    return context(*values)


def _ordereddict_flatten(d: Any) -> Parts:
    return list(d.values()), list(d)


def _ordereddict_flatten_with_keys(d: Any) -> Parts:
    return [(MappingKey(key), x) for key, x in d.items()], list(d)


def _ordereddict_unflatten(values: Iterable[Any], context: Any) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values))


_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten


def _defaultdict_flatten(d: Any) -> Parts:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_unflatten(values: Iterable[Any], context: Any) -> defaultdict[Any, Any]:
    return defaultdict(context[0], zip(context[1], values))


def _deque_flatten(d: Any) -> Parts:
    return list(d), d.maxlen


def _deque_unflatten(values: Iterable[Any], context: Any) -> deque[Any]:
    return deque(values, maxlen=context)


# ---- specs as JSON -------------------------------------------------------------------------------------------------

_NAMES = {list: "builtins.list", tuple: "builtins.tuple", dict: "builtins.dict", OrderedDict: "collections.OrderedDict",
          defaultdict: "collections.defaultdict", deque: "collections.deque"}  # fmt: skip


def _schema(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    options = pytree.options_of(spec.type)
    name = _NAMES.get(spec.type, options.get("serialized_type_name"))
    if name is None or spec.type is defaultdict:
        raise NotImplementedError(f"treespec_dumps: {spec.type} has no serialized_type_name")
    context = options["to_dumpable_context"](spec.context) if "to_dumpable_context" in options else spec.context
    children = [_schema(child) for child in spec.children_specs]
    return {"type": name, "context": json.dumps(context), "children_spec": children}


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A spec as JSON in PyTorch's form. NotImplementedError for nodes registered without a serialized_type_name."""
    if protocol not in (None, 1):
        raise ValueError(f"treespec_dumps: protocol 1, not {protocol}")
    return json.dumps([1, _schema(treespec)])


def _spec(schema: dict[str, Any]) -> TreeSpec:
    if schema["type"] is None:
        return LeafSpec()
    by_name = {name: cls for cls, name in _NAMES.items()}
    for other in pytree.SUPPORTED_NODES.keys() - _NAMES.keys():
        by_name[pytree.options_of(other).get("serialized_type_name", "")] = other
    if schema["type"] not in by_name:
        raise NotImplementedError(f"treespec_loads: nothing is registered as {schema['type']}")
    cls, context = by_name[schema["type"]], json.loads(schema["context"])
    load = pytree.options_of(cls).get("from_dumpable_context")
    children = [_spec(child) for child in schema["children_spec"]]
    return TreeSpec(cls, load(context) if load else context, children, pytree.SUPPORTED_NODES[cls])


def treespec_loads(serialized: str) -> TreeSpec:
    """The spec from JSON of treespec_dumps() or PyTorch."""
    version, schema = json.loads(serialized)
    if version != 1:
        raise ArgumentError(f"treespec_loads: protocol 1, not {version}")
    return _spec(schema)


def treespec_pprint(treespec: TreeSpec) -> str:
    """A spec as text."""
    return repr(treespec)
