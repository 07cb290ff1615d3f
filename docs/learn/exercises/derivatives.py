"""Exercise of chapter 3: three derivatives. Run this file; it says what is
wrong until all are right."""

import itertools
import math

count = itertools.count()


class Node:
    """A step: the nodes of its inputs, and how to get their gradients."""

    def __init__(self, edges, backward):
        self.edges, self.backward, self.seq = edges, backward, next(count)


class Value:
    """A number, and the node of the step that computed it."""

    def __init__(self, data, node=None):
        self.data = data
        self.node = node or Node([], None)

    def __add__(self, other):
        a, b = self, value(other)
        return Value(a.data + b.data, Node([a.node, b.node], lambda g: [g, g]))

    def __mul__(self, other):
        a, b = self, value(other)
        return Value(
            a.data * b.data, Node([a.node, b.node], lambda g: [g * b, g * a])
        )


def value(x):
    return x if isinstance(x, Value) else Value(x)


def div(a, b):
    """a / b. Its derivatives are 1 / b and -a / b**2."""
    raise NotImplementedError(
        "div: a Value, and a Node whose function gives two gradients"
    )


def exp(x):
    """e**x. Its derivative is its result."""
    raise NotImplementedError(
        "exp: the function of the Node may use the result itself"
    )


def power(x, n):
    """x**n for a Python number n. Its derivative is n * x**(n - 1)."""
    raise NotImplementedError("power: only x has a gradient")


def grad(loss, inputs):
    """The derivatives of loss by each of inputs."""
    gradients = {loss.node: Value(1.0)}
    waiting = {loss.node}
    while waiting:
        node = max(waiting, key=lambda node: node.seq)
        waiting.remove(node)
        if node.backward is None:
            continue
        for edge, part in zip(
            node.edges, node.backward(gradients[node]), strict=True
        ):
            gradients[edge] = (
                gradients[edge] + part if edge in gradients else part
            )
            waiting.add(edge)
    return [gradients.get(x.node, Value(0.0)) for x in inputs]


def check(div, exp, power):
    """Raises an AssertionError that says what is wrong: values, first and
    second derivatives at a few points."""
    a, b = Value(3.0), Value(0.5)
    cases = [
        ("div by a", div, (a, b), a, 6.0, 2.0, 0.0),
        ("div by b", div, (a, b), b, 6.0, -12.0, 48.0),
        ("exp", exp, (b,), b, *[math.exp(0.5)] * 3),
        ("power 3", lambda x: power(x, 3), (b,), b, 0.125, 0.75, 3.0),
        ("power -1", lambda x: power(x, -1), (b,), b, 2.0, -4.0, 16.0),
        (
            "all",
            lambda a, b: exp(div(power(a, 2), b)),
            (Value(0.5), Value(2.0)),
            None,
            math.exp(0.125),
            None,
            None,
        ),
    ]
    for name, f, inputs, by, *wanted in cases:
        out = f(*inputs)
        assert isinstance(out, Value), f"{name}: expected a Value, not {out!r}"
        found = [out.data]
        if by is not None:
            (first,) = grad(out, [by])
            (second,) = grad(first, [by])
            found += [first.data, second.data]
        for what, x, y in zip(
            ("value", "derivative", "second derivative"),
            found,
            wanted,
            strict=False,
        ):
            assert abs(x - y) < 1e-9, f"{name}: its {what} is {x}, not {y}"
    for one, other, name in [
        (a, b, "by a, then by b"),
        (b, a, "by b, then by a"),
    ]:
        (first,) = grad(div(a, b), [one])
        (second,) = grad(first, [other])
        assert abs(second.data + 4.0) < 1e-9, (
            f"div: its second derivative {name} is {second.data}, not -4.0"
        )


if __name__ == "__main__":
    check(div, exp, power)
    print("solved")
