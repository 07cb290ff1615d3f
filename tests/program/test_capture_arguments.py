"""Arguments that are also tensors of the function, of norch.capture and norch.compile: by identity, by memory, as a
gradient, a state or a parameter; in the calls that are recorded, and in later ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import norch
from norch import nn, optim

Made = tuple[Callable[[Any], Any], Callable[[], Any], list[Any]]  # a function, its odd argument, what it changes


def written() -> Made:
    g = norch.zeros(2)

    def f(a: Any) -> Any:
        g.add_(1)
        return a * 2

    return f, lambda: g, [g]


def written_view() -> Made:
    f, g, state = written()
    return f, lambda: g()[:].view(2), state


def overlapping() -> Made:
    g = norch.zeros(3)

    def f(a: Any) -> Any:
        g[:2].add_(1)
        return a * 2

    return f, lambda: g[1:], [g]


def gradient() -> Made:
    p = norch.ones(2, requires_grad=True)
    p.grad = norch.zeros(2)

    def f(a: Any) -> Any:
        (p * a).sum().backward()
        return a * 2

    return f, lambda: p.grad, [p]


def gradient_that_is_set() -> Made:
    p = norch.ones(2, requires_grad=True)

    def f(a: Any) -> Any:
        p.grad = a
        (p * 3).sum().backward()
        return a * 2

    return f, lambda: norch.ones(2), [p]


def stepped(of: Callable[[Any, Any], Any]) -> Made:
    p = norch.ones(2, requires_grad=True)
    optimizer = optim.SGD([p], 0.1, momentum=0.9)

    def f(a: Any) -> Any:
        loss = ((p - a.detach() * 0.5) ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    f(norch.ones(2))
    return f, lambda: of(p, optimizer), [p, optimizer.state[p]["momentum_buffer"]]


def buffer() -> Made:
    norm = nn.BatchNorm1d(2)

    def f(a: Any) -> Any:
        return norm(norch.stack([a, a + 1, a * 3]))[0].detach()

    return f, lambda: norm.running_mean, [norm.running_mean, norm.running_var]


def compared(find: Callable[[Any], Callable[[Any], bool]]) -> Made:
    g = norch.ones(2)
    finds = find(g)
    return (lambda a: a * (2.0 if finds(a) else 3.0)), lambda: g, [g]


def empty() -> Made:
    g, x = norch.empty(0), norch.ones(2)

    def f(a: Any) -> Any:
        return x * (2.0 if a is g else 3.0)

    return f, lambda: g, [x]


def found_in_list(g: Any) -> Callable[[Any], bool]:
    held = [norch.ones(2), g]
    return lambda a: any(a is one for one in held)


def found_in_dict(g: Any) -> Callable[[Any], bool]:
    held = {g: 1}
    return lambda a: bool(held.get(a, 0))


def found_by_id(g: Any) -> Callable[[Any], bool]:
    held = {id(g): 1}
    return lambda a: id(a) in held


def found_in_set_of_ids(g: Any) -> Callable[[Any], bool]:
    held = {id(g)}
    return lambda a: id(a) in held


def found_by_hash(g: Any) -> Callable[[Any], bool]:
    held = {hash(g): 1}
    return lambda a: hash(a) in held


KINDS: dict[str, Callable[[], Made]] = {
    "written": written,
    "view": written_view,
    "overlapping": overlapping,
    "gradient": gradient,
    "gradient_that_is_set": gradient_that_is_set,
    "parameter": lambda: stepped(lambda p, o: p),
    "detached": lambda: stepped(lambda p, o: p.detach()),
    "data": lambda: stepped(lambda p, o: p.data),
    "momentum": lambda: stepped(lambda p, o: o.state[p]["momentum_buffer"]),
    "buffer": buffer,
    "is": lambda: compared(lambda g: lambda a: a is g),
    "empty": empty,
    **{
        one.__name__: (lambda one=one: compared(one))  # type: ignore[misc]
        for one in (found_in_list, found_in_dict, found_by_id, found_in_set_of_ids, found_by_hash)
    },
}


@pytest.mark.parametrize("calls", [(0, 1, 2), (0, 1, 2, 3, 4), (2,), (5, 6), (6, 7, 8, 9, 13)], ids=str)
@pytest.mark.parametrize("wrap", [norch.capture, norch.compile], ids=["capture", "compile"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_argument_that_the_function_reaches_otherwise(kind: str, wrap: Any, calls: tuple[int, ...]) -> None:
    def run(wrap: Any) -> list[Any]:
        f, odd, state = KINDS[kind]()
        f, seen = wrap(f), []
        for i in range(16):
            a = odd() if i in calls else norch.full((0,) if kind == "empty" else (2,), i + 1.0)
            seen.append([f(a).tolist(), *(x.tolist() for x in state)])
        return seen

    assert run(wrap) == run(lambda f: f)


@pytest.mark.parametrize("kind", KINDS)
def test_other_arguments_are_replayed(kind: str) -> None:
    f, _, _ = KINDS[kind]()
    captured = norch.capture(f)
    for i in range(6):
        captured(norch.full((2,), i + 1.0))
    assert captured.recordings() == (kind != "gradient_that_is_set")


def test_an_id_of_arguments_alone_is_no_reason_to_record_anew() -> None:
    def f(a: Any, b: Any) -> Any:
        return a + b * len({id(a), id(b)})

    captured = norch.capture(f)
    kept = [norch.full((2,), float(i)) for i in range(8)]
    for a, b in zip(kept, kept[1:] + kept[-1:], strict=True):
        assert captured(a, b).tolist() == f(a, b).tolist()
    assert captured.recordings() == 1


class Row(tuple):
    """A tuple that is no named tuple."""


class Table:
    """What has names of fields, and is no tuple."""

    _fields = ("a",)


@pytest.mark.parametrize("held", [Row((1.0, 2.0)), Table()], ids=lambda held: type(held).__name__)
def test_only_named_tuples_are_taken_apart(held: Any) -> None:
    captured = norch.capture(lambda x, held: (x * 2, held))
    for _ in range(5):
        found, same = captured(norch.ones(2), held)
        assert same is held and found.tolist() == [2.0, 2.0]
    assert captured.recordings() == 1


def test_an_attribute_of_an_argument_is_refused_if_it_is_read() -> None:
    x = norch.ones(2)
    x.label, x.weight = "x", 2.0  # type: ignore[attr-defined]
    captured = norch.capture(lambda x: x * 2)
    assert [captured(x).tolist() for _ in range(5)] == [[2.0, 2.0]] * 5 and captured.recordings() == 1
    with pytest.raises(norch.CaptureError, match=r"it reads an attribute \(weight\) of an argument"):
        reads = norch.capture(lambda x: x * x.weight)
        for _ in range(3):
            reads(x)


@pytest.mark.parametrize("wrap", [norch.capture, norch.compile])
@pytest.mark.parametrize("of", [lambda x: x, lambda x: x[1:3]], ids=["whole", "view"])
def test_a_gradient_that_needs_an_argument_notices_a_write_to_it(wrap: Any, of: Any) -> None:
    double = wrap(lambda x: (x.mul_(2), x + 1)[1])
    for _ in range(6):
        x, w = norch.ones(4), norch.ones(4, requires_grad=True)
        loss = (w * x).sum()
        double(of(x))
        with pytest.raises(norch.Error, match="changed in place"):
            loss.backward()


def test_strides_of_axes_of_one_element_are_those_of_the_call():
    captured = norch.capture(lambda x: x * x.stride()[0])
    for _ in range(4):
        assert captured(norch.ones(1, 3)).tolist() == [[3, 3, 3]]
    assert captured(norch.ones(5, 7)[:1, :3]).tolist() == [[7, 7, 7]]


def puts(d: Any) -> Any:
    d["y"] = d["x"] * 2
    return d["x"] + 1


def replaces(d: Any) -> Any:
    d["x"] = d["x"] * 2
    return d["x"] + 1


def appends(d: Any) -> Any:
    d["l"].append(d["x"])
    return d["x"] + 1


def counts(d: Any) -> Any:
    d["n"] += 1
    return d["x"] + 1


def removes(d: Any) -> Any:
    return d.pop("x") + 1


@pytest.mark.parametrize("change", [puts, replaces, appends, counts, removes])
def test_a_list_or_dict_that_is_changed_is_refused(change: Any) -> None:
    def made(i: int) -> Any:
        return {"x": norch.full((2,), float(i)), "l": [], "n": 1}

    captured, loose, compiled = norch.capture(change), norch.capture(change, strict=False), norch.compile(change)
    captured(made(0))
    with pytest.raises(norch.CaptureError, match="it changes a list or dict that is an argument"):
        captured(made(0))
    with pytest.warns(UserWarning, match="it changes a list or dict") as warned:
        for i in range(6):
            wanted = made(i)
            result = change(wanted)
            for function in (loose, compiled):
                found = made(i)
                assert function(found).tolist() == result.tolist() and repr(found) == repr(wanted)
    assert len(warned) == 2


def test_an_equal_number_put_into_a_dict_is_no_change() -> None:
    def same(d: Any) -> Any:
        d["n"] = d["n"] * 1.0
        return d["x"] * d["n"]

    captured = norch.capture(same)
    for i in range(6):
        assert captured({"x": norch.full((1,), float(i)), "n": 2.5}).tolist() == [i * 2.5]
    assert captured.recordings() == 1
