"""replace_pattern(): replaces the parts of a graph that match a pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _copy_attr
from .node import Node, map_arg


class Match(NamedTuple):
    """A replaced part: its last node, and the nodes that matched the pattern's."""

    anchor: Node
    nodes_map: dict[Node, Node]


def _graph_of(x: Any) -> Graph:
    return x if isinstance(x, Graph) else x.graph if isinstance(x, GraphModule) else symbolic_trace(x).graph


def _matches(pattern: Any, found: Any, matched: dict[Node, Any]) -> bool:
    """Whether found looks like pattern, a node or an argument. matched: {node of the pattern: its node or value}."""
    if isinstance(pattern, Node):
        if pattern in matched:
            return matched[pattern] is found
        if pattern.op == "placeholder":
            matched[pattern] = found
            return True
        if not isinstance(found, Node) or (pattern.op, pattern.target) != (found.op, found.target):
            return False
        matched[pattern] = found
        return _matches(pattern.args, found.args, matched) and _matches(pattern.kwargs, found.kwargs, matched)
    if isinstance(pattern, (tuple, list)):
        is_alike = type(pattern) is type(found) and len(pattern) == len(found)
        return is_alike and all(_matches(a, b, matched) for a, b in zip(pattern, found))
    if isinstance(pattern, dict):
        is_alike = isinstance(found, dict) and pattern.keys() == found.keys()
        return is_alike and all(_matches(x, found[key], matched) for key, x in pattern.items())
    return type(pattern) is type(found) and pattern == found


def _copy_nodes(graph: Graph, new: Graph, values: dict[Node, Any]) -> None:
    """Copies the nodes of new into graph. values: {node: copy}, which holds the placeholders' values at first."""
    for x in new.nodes:
        if x.op not in ("placeholder", "output"):
            values[x] = graph.node_copy(x, values.__getitem__)


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | Any, replacement: Callable[..., Any] | Any
) -> list[Match]:
    """Replaces each part of gm's graph that matches the graph of pattern by the graph of replacement. Both are
    functions or modules with the same arguments. A part stays if a result inside it is used elsewhere. Recompiles gm
    and returns the matches.

    >>> gm = norch.fx.symbolic_trace(lambda x: norch.relu(x) + 1)
    >>> _ = norch.fx.replace_pattern(gm, lambda x: norch.relu(x), lambda x: norch.sigmoid(x))
    >>> gm(norch.zeros(1))
    tensor([1.5000])
    """
    looked_for, new = _graph_of(pattern), _graph_of(replacement)
    last = looked_for.output_node().args[0]
    if not isinstance(last, Node) or last.op == "placeholder":
        raise ValueError("replace_pattern: the pattern must compute one result")
    inner = [x for x in looked_for.nodes if x.op not in ("placeholder", "output")]
    for owner, graph in ((pattern, looked_for), (replacement, new)):
        root = graph.owning_module if not isinstance(owner, GraphModule) else owner
        for node in graph.nodes if graph is new and root is not None else ():
            if node.op in ("get_attr", "call_module") and not hasattr(gm, node.target.partition(".")[0]):
                _copy_attr(root, gm, node.target)
    matches: list[Match] = []
    replaced: set[Node] = set()
    for node in list(gm.graph.nodes):
        replacements: dict[Node, Any] = {}
        if not _matches(last, node, replacements):
            continue
        inside = {replacements[x] for x in inner if x in replacements}
        if len(inside) < len(inner) or inside & replaced:
            continue
        if any(user not in inside for x in inside - {node} for user in x.users):
            continue
        inputs = [replacements.get(x) for x in looked_for.nodes if x.op == "placeholder"]
        values: dict[Node, Any] = dict(zip((x for x in new.nodes if x.op == "placeholder"), inputs))
        with gm.graph.inserting_before(node):
            _copy_nodes(gm.graph, new, values)
        result = map_arg(new.output_node().args[0], values.__getitem__)
        node.replace_all_uses_with(result)
        for x in sorted(inside, key=list(gm.graph.nodes).index, reverse=True):
            gm.graph.erase_node(x)
        replaced |= inside
        matches.append(Match(node, replacements))
    gm.recompile()
    return matches
