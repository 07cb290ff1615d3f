"""``norch.utils._pytree``: functions on nested containers, by the names of torch.utils._pytree.

A tree is a leaf, or a list, tuple, named tuple, dict, OrderedDict, defaultdict or deque of trees, or an instance of a
registered class. Everything else is a leaf, also None and subclasses of these.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .._package.exports import publish
from ..autograd.transforms import nodes
from ..errors import ArgumentError
from ..nn._registry import Registry

__all__ = [
    "GetAttrKey", "LeafSpec", "MappingKey", "SequenceKey", "TreeSpec", "keystr", "register_constant",
    "register_pytree_node", "tree_all", "tree_any", "tree_flatten", "tree_flatten_with_path", "tree_iter",
    "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_with_path",
    "tree_structure", "tree_unflatten",
]  # fmt: skip
publish(globals(), name="norch.utils._pytree")

PyTree = Any
IsLeaf = Callable[[Any], bool] | None


class _Node(NamedTuple):
    """PyTorch's NodeDef; libraries read its fields."""

    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]]  # (children, context) of a node
    unflatten_fn: Callable[[Any, Any], Any]  # the node from children and context
    options: dict[str, Any] = {}  # further arguments of register_pytree_node()
    type: Any = None


_NODES: dict[Any, _Node] = nodes  # norch.func uses the same dict
_NODES |= {
    list: _Node(lambda x: (x, None), lambda children, _: list(children)),
    tuple: _Node(lambda x: (x, None), lambda children, _: tuple(children)),
    dict: _Node(lambda x: (x.values(), list(x)), lambda children, keys: dict(zip(keys, children))),
    OrderedDict: _Node(lambda x: (x.values(), list(x)), lambda children, keys: OrderedDict(zip(keys, children))),
    defaultdict: _Node(
        lambda x: (x.values(), (x.default_factory, list(x))),
        lambda children, more: defaultdict(more[0], zip(more[1], children)),
    ),
    deque: _Node(lambda x: (x, x.maxlen), lambda children, maxlen: deque(children, maxlen)),
}
_NODES[Registry] = _NODES[dict]  # the dicts of a module's parameters and modules
_NODES[namedtuple] = _Node(lambda x: (x, type(x)), lambda children, cls: cls(*children))
for _cls, _of in _NODES.items():
    _NODES[_cls] = _of._replace(type=_cls)
_NAMED = _NODES[namedtuple]


SUPPORTED_NODES = _NODES  # by class; libraries test membership


def _get_node_type(tree: Any) -> Any:
    """The class of a node; namedtuple for all named tuples."""
    return namedtuple if _node_of(tree, None) is _NAMED else type(tree)


def _is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    return _node_of(tree, is_leaf) is None


def register_constant(cls: type) -> None:
    """Makes instances of cls childless nodes, compared by their ==."""
    register_pytree_node(cls, lambda x: ((), x), lambda _, x: x)


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    **options: Any,
) -> None:
    """Makes instances of cls nodes: flatten_fn(x) returns (children, context), unflatten_fn(children, context) x.
    options: flatten_with_keys_fn(x), which returns ([(key, child), ...], context), for paths; serialized_type_name,
    to_dumpable_context and from_dumpable_context for treespec_dumps()."""
    if cls in _NODES:
        raise ArgumentError(f"register_pytree_node: {cls} is registered already")
    _NODES[cls] = _Node(flatten_fn, unflatten_fn, {k: v for k, v in options.items() if v is not None}, cls)


def options_of(cls: Any) -> dict[str, Any]:
    """The options that a class was registered with."""
    return _NODES[cls].options if cls in _NODES else {}


def _node_of(tree: Any, is_leaf: IsLeaf) -> _Node | None:
    """How to flatten tree; None for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    cls = type(tree)
    node = _NODES.get(cls)
    return _NAMED if node is None and issubclass(cls, tuple) and hasattr(cls, "_fields") else node


class TreeSpec:
    """The structure of a tree: type and context of each node. Specs of equal structure are equal.

    >>> norch.utils._pytree.tree_structure({"a": 1, "b": [2, 3]})
    TreeSpec(dict(*, list(*, *)))
    """

    __slots__ = ("_node", "children_specs", "context", "num_leaves", "type")

    def __init__(self, type: Any = None, context: Any = None, children: Iterable[TreeSpec] = (), node: Any = None):
        if node is None and type is not None:
            node = _NODES[type]
        self.type, self.context, self.children_specs, self._node = type, context, list(children), node
        self.num_leaves: int = 1 if node is None else sum(child.num_leaves for child in self.children_specs)

    def is_leaf(self) -> bool:
        """Whether this is a leaf's spec."""
        return self._node is None

    @property
    def num_children(self) -> int:
        """The number of children of the root."""
        return len(self.children_specs)

    @property
    def num_nodes(self) -> int:
        """The number of nodes, including leaves."""
        return 1 + sum(child.num_nodes for child in self.children_specs)

    def children(self) -> list[TreeSpec]:
        """The specs of the root's children."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """The spec of one child."""
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree with these leaves; ArgumentError unless there are num_leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ArgumentError(f"tree_unflatten: {len(leaves)} leaves for a tree of {self.num_leaves}")
        return self._filled(iter(leaves))

    def _filled(self, leaves: Iterator[Any]) -> PyTree:
        if self._node is None:
            return next(leaves)
        return self._node.unflatten_fn([child._filled(leaves) for child in self.children_specs], self.context)

    def flatten_up_to(self, tree: PyTree) -> list[Any]:
        """The subtrees of tree at the leaves of this spec; ArgumentError if the structures differ."""
        if self._node is None:
            return [tree]
        is_same = _get_node_type(tree) is self.type
        if is_same and isinstance(tree, dict):  # keys may be in another order
            keys = self.context[1] if isinstance(tree, defaultdict) else self.context
            is_same, parts = tree.keys() == set(keys), [tree[key] for key in keys if key in tree]
        elif is_same:
            children, context = self._node.flatten_fn(tree)
            parts = list(children)
            is_same = context == self.context and len(parts) == len(self.children_specs)
        if not is_same:
            raise ArgumentError(f"tree_map: {tree!r} does not have the structure {self!r}")
        return [part for child, each in zip(self.children_specs, parts) for part in child.flatten_up_to(each)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and (
            (self.type, self.context, self.children_specs) == (other.type, other.context, other.children_specs)
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves))

    def __repr__(self) -> str:
        name = "*" if self._node is None else self.type.__name__
        inside = ", ".join(repr(child)[9:-1] for child in self.children_specs)
        return f"TreeSpec({name}{f'({inside})' if self._node else ''})"


class LeafSpec(TreeSpec):
    """The TreeSpec of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """(leaves in order, TreeSpec). is_leaf(node): True makes a node a leaf.

    >>> leaves, spec = norch.utils._pytree.tree_flatten({"a": 1, "b": [2, (3, None)]})
    >>> leaves, spec
    ([1, 2, 3, None], TreeSpec(dict(*, list(*, tuple(*, *)))))
    >>> spec.unflatten("wxyz")
    {'a': 'w', 'b': ['x', ('y', 'z')]}
    """
    leaves: list[Any] = []

    def taken(tree: PyTree) -> TreeSpec:
        node = _node_of(tree, is_leaf)
        if node is None:
            leaves.append(tree)
            return LeafSpec()
        children, context = node.flatten_fn(tree)
        return TreeSpec(node.type, context, map(taken, children), node)

    return leaves, taken(tree)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """treespec.unflatten(leaves)."""
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Iterates over the leaves in order."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The TreeSpec of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """tree with func(leaf, *parts) for each leaf; parts: the subtrees at its place in the rests. ArgumentError if one
    is missing.

    >>> norch.utils._pytree.tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """tree itself, after func(leaf, *parts) for each leaf."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(types: Any, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """tree_map() on the leaves of a type or of one of several types, or on those for which types(leaf) is True."""
    fits = (lambda x: isinstance(x, types)) if isinstance(types, (type, tuple)) else types
    return tree_map(lambda x: func(x) if fits(x) else x, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether pred(leaf) holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether pred(leaf) holds for a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


# ---- paths ----------------------------------------------------------------------------------------------------------


class SequenceKey(NamedTuple):
    """A child's index in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, tree: Any) -> Any:
        """That child of a tree."""
        return tree[self.idx]


class MappingKey(NamedTuple):
    """A child's key in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, tree: Any) -> Any:
        """That child of a tree."""
        return tree[self.key]


class GetAttrKey(NamedTuple):
    """A child's field in a named tuple."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, tree: Any) -> Any:
        """That child of a tree."""
        return getattr(tree, self.name)


def keystr(kp: Iterable[Any]) -> str:
    """A path as text, such as "['a'][0]"."""
    return "".join(map(str, kp))


def _keys(tree: Any, node: _Node) -> list[Any]:
    if node is _NAMED:
        return [GetAttrKey(name) for name in tree._fields]
    if with_keys := node.options.get("flatten_with_keys_fn"):
        return [key for key, _ in with_keys(tree)[0]]
    if isinstance(tree, dict):
        return [MappingKey(key) for key in tree]
    return [SequenceKey(i) for i in range(len(list(node.flatten_fn(tree)[0])))]


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """tree_flatten() with (path, leaf) for each leaf."""
    pairs: list[tuple[tuple[Any, ...], Any]] = []

    def walk(tree: Any, path: tuple[Any, ...]) -> None:
        node = _node_of(tree, is_leaf)
        if node is None:
            pairs.append((path, tree))
            return
        for key, part in zip(_keys(tree, node), node.flatten_fn(tree)[0]):
            walk(part, (*path, key))

    walk(tree, ())
    return pairs, tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[tuple[Any, ...], Any]]:
    """The leaves in order, as (path, leaf)."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """tree with func(path, leaf, *parts) for each leaf."""
    paths = [path for path, _ in tree_flatten_with_path(tree, is_leaf)[0]]
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, paths, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def _list_flatten(d: list[Any]) -> tuple[list[Any], None]:
    return d, None


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: Iterable[Any]) -> dict[Any, Any]:
    return dict(zip(context, values))
