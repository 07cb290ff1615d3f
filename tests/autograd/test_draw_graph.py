"""norch.utils.draw_graph: what is in the picture, where it stands, and that graph and gradients stay as they were."""

import random
import re
import shutil
import xml.etree.ElementTree as ElementTree

import pytest

import norch
from norch import nn
from norch.utils import draw_graph
from norch.utils._graph import Box, Picture, Vertex, circle
from norch.utils._graph_layout import place, place_by_dot

pytestmark = pytest.mark.host

SVG = "{http://www.w3.org/2000/svg}"
HAS_DOT = shutil.which("dot") is not None
ENGINES = ["own", pytest.param("dot", marks=pytest.mark.skipif(not HAS_DOT, reason="needs Graphviz"))]


def texts(picture):
    """The lines of text in a picture, and of each card all of its own."""
    root = ElementTree.fromstring(picture.svg)
    cards = [[text.text for text in group.findall(f"{SVG}text")] for group in root.findall(f"{SVG}g")]
    frames = [text.text for text in root.findall(f"{SVG}text")]
    return cards, frames


def encoder(layers=3):
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    return nn.TransformerEncoder(layer, layers)


@pytest.mark.parametrize("engine", ENGINES)
def test_cards_of_a_small_model(engine):
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    loss = model(norch.ones(4, 2)).mean()
    picture = draw_graph(loss, model, engine=engine)
    cards, frames = texts(picture)
    assert [card[0] for card in cards] == ["0: Linear", "Relu", "2: Linear", "Mean"] and frames == []
    loss.backward()
    bias = model[2].bias.grad.item()
    assert cards[2][1:3] == ["(4, 1)", "grad 0.25, 0.25, 0.25, 0.25"]
    assert any(line.split() == ["bias", "(1)", "grad", f"{bias:.3g}"] for line in cards[2])
    assert cards[3][1:] == ["()", f"value {loss.item():.3g}", "grad 1"]
    mean = model[0].weight.grad.abs().mean().item()
    assert any(line.split() == ["weight", "(3,", "2)", "|grad|", f"{mean:.2g}"] for line in cards[0])
    assert picture._repr_svg_() is picture.svg and picture.svg.count('class="edge"') == 3


def test_gradients_graph_and_hooks_stay_as_they_were():
    w = norch.ones(3, requires_grad=True)
    called = []
    w.register_hook(lambda g: called.append(g))
    y = w * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 100)
    loss = y.sum()
    draw_graph(loss, {"w": w})
    assert w.grad is None and y.grad is None and not called
    loss.backward()
    assert w.grad.tolist() == [200.0] * 3 and len(called) == 1
    cards, _ = texts(draw_graph(loss, {"w": w}))  # the graph is freed, and .grad is there
    assert [card[0] for card in cards] == ["Mul", "Sum"]
    assert "w (3)  grad 200, 200, 200" in cards[0]


def test_gradient_of_what_is_no_number():
    w = norch.ones(2, requires_grad=True)
    cards, _ = texts(draw_graph(w.exp(), gradient=norch.tensor([2.0, 0.5])))
    assert [card[0] for card in cards] == ["leaf", "Exp"] and "grad 2, 0.5" in cards[1]
    with pytest.raises(norch.ShapeError, match=r"draw_graph: a gradient of shape \(3,\) for a tensor of shape \(2,\)"):
        draw_graph(w.exp(), gradient=norch.ones(3))


def test_shared_parameters_and_unnamed_leaves_have_cards():
    w, other = norch.ones(2, requires_grad=True), norch.ones(2, dtype=norch.float64, requires_grad=True)
    cards, _ = texts(draw_graph((w * w.exp() + other).sum(), {"w": w}))
    assert sorted(card[0] for card in cards) == ["Add", "Exp", "Mul", "Sum", "leaf", "w"]
    assert [card[1] for card in cards if card[0] == "leaf"] == ["(2) float64  grad 1, 1"]


def test_operations_with_several_results():
    x = norch.arange(6.0).requires_grad_()

    class Two(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            return a + 2 * b

    a, b = Two.apply(x)
    cards, _ = texts(draw_graph((a * b).sum()))
    assert ["(6), (6)"] == [card[1] for card in cards if card[0] == "Two"]


# ---- modules and repeats ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_modules_are_frames_and_repeated_ones_one_card(engine):
    model, x = encoder(), norch.ones(1, 4, 8)
    cards, frames = texts(draw_graph(lambda: model(x).sum(), model, engine=engine))
    assert frames == ["layers.0 (TransformerEncoderLayer)", "self_attn (MultiheadAttention)"]
    folded = [card for card in cards if card[0] == "layers.1 to layers.2"]
    assert folded == [["layers.1 to layers.2", "2 modules, each as layers.0"]]
    assert any(card[0] == "norm2: Normalize" for card in cards) and cards[-1][0] == "Sum"
    whole, all_frames = texts(draw_graph(lambda: model(x).sum(), model, fold=False, engine=engine))
    assert len(all_frames) == 6 and len(whole) > 2 * len(cards)


def test_frames_of_a_tensor_follow_from_its_parameters():
    model, x = encoder(2), norch.ones(1, 4, 8)
    by_calls = texts(draw_graph(lambda: model(x).sum(), model))
    by_params = texts(draw_graph(model(x).sum(), model))
    cards = [[card[0].removeprefix("out_proj: "), *card[1:]] for card in by_params[0]]  # which attention does not call
    assert by_calls[1] == by_params[1] and sorted(by_calls[0]) == sorted(cards) != sorted(by_params[0])
    named = texts(draw_graph(model(x).sum(), dict(model.named_parameters())))
    assert named[1] == ["layers.0", "self_attn"]


def test_modules_that_differ_are_not_folded():
    model = nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), act) for act in (nn.ReLU(), nn.ReLU(), nn.Tanh())))
    cards, frames = texts(draw_graph(lambda: model(norch.ones(1, 2)).sum(), model))
    assert frames == ["0 (Sequential)", "2 (Sequential)"]
    assert [card for card in cards if card[0] == "1"] == [["1", "as 0"]]


def test_chains_of_one_operation_are_one_card():
    x = norch.ones(2, requires_grad=True)
    y = x
    for _ in range(5):
        y = y.sin()
    cards, _ = texts(draw_graph(y.cos().cos().sum()))
    assert [card[0] for card in cards] == ["leaf", "Sin × 5", "Cos", "Cos", "Sum"]


# ---- places ----------------------------------------------------------------------------------------------------------


def drawn(seed):
    """A random tree of boxes with a random graph, in which edges go from earlier vertices to later ones."""
    chance = random.Random(seed)
    root, vertices = Box("", ""), []

    def fill(box, depth):
        for i in range(chance.randint(1, 5)):
            if depth < 3 and chance.random() < 0.35:
                inner = Box(f"{box.path}.{i}", f"box {i}")
                fill(inner, depth + 1)
                box.items.append(inner)
            else:
                vertex = Vertex("operation", "x", [], "", len(vertices))
                vertex.width, vertex.height = chance.uniform(20, 120), chance.uniform(15, 60)
                vertices.append(vertex)
                box.items.append(vertex)

    fill(root, 0)
    if chance.random() < 0.5:
        chance.shuffle(vertices)  # so that edges leave boxes and come back
    for i, vertex in enumerate(vertices):
        vertex.order = i
    edges = {(vertices[chance.randrange(i)], vertices[i]) for i in range(1, len(vertices)) for _ in range(2)}
    return Picture(root, edges)


def inside(inner, outer):
    return (
        inner.x >= outer.x - 0.1
        and inner.y >= outer.y - 0.1
        and inner.x + inner.width <= outer.x + outer.width + 0.1
        and inner.y + inner.height <= outer.y + outer.height + 0.1
    )


def apart(a, b):
    return (
        a.x + a.width <= b.x + 0.1
        or b.x + b.width <= a.x + 0.1
        or a.y + a.height <= b.y + 0.1
        or b.y + b.height <= a.y + 0.1
    )


def check_places(picture):
    for box in [picture.root, *picture.root.boxes()]:
        for i, item in enumerate(box.items):
            assert inside(item, box)
            assert all(apart(item, other) for other in box.items[:i])
    assert len(picture.paths) == len(picture.edges)


@pytest.mark.parametrize("seed", range(40))
def test_nothing_overlaps_and_all_flows_down(seed):
    picture = drawn(seed)
    place(picture)
    check_places(picture)
    for a, b in picture.edges:
        assert a.y + a.height < b.y
    number = r"-?\d+\.\d"
    for path in picture.paths:
        assert re.fullmatch(
            rf"M{number},{number}(C{number},{number} {number},{number} {number},{number}|V{number})+", path
        )


@pytest.mark.skipif(not HAS_DOT, reason="needs Graphviz")
def test_places_of_dot():
    for seed in range(3):
        picture = drawn(seed)
        place_by_dot(picture, "dot")
        assert picture.width > 0 and len(picture.paths) == len(picture.edges)
        for box in picture.root.boxes():
            assert all(inside(item, box) for item in box.items)
    with pytest.raises(OSError, match="dot failed"):
        place_by_dot(drawn(1), "false")


def test_circles_are_found():
    assert circle([(1, 2), (2, 3), (1, 3)]) is None
    assert circle([(0, 1), (1, 2), (2, 1), (2, 3)]) == {1, 2}
    assert circle([]) is None


# ---- files and messages ----------------------------------------------------------------------------------------------


def test_the_file_is_xml_and_names_are_escaped(tmp_path):
    w = norch.ones(2, requires_grad=True)
    path = tmp_path / "graph.svg"
    picture = draw_graph(w.exp().sum(), {"<b>&\"w'": w}, file=path)
    assert path.read_text(encoding="utf-8") == picture.svg
    cards, _ = texts(picture)
    assert "<b>&\"w' (2)  grad 2.72, 2.72" in cards[0]
    assert "prefers-color-scheme:dark" in picture.svg
    with pytest.raises(OSError):
        picture.save(tmp_path / "none" / "graph.svg")
    with pytest.raises(norch.ArgumentError, match="draw_graph: .* name it .svg and not .*graph.PNG"):
        draw_graph(w.exp().sum(), file=tmp_path / "graph.PNG")
    assert not (tmp_path / "graph.PNG").exists()


def test_many_operations_take_no_recursion():
    x = norch.ones(1, requires_grad=True)
    y = x
    for i in range(1500):
        y = y.sin() if i % 2 else y.cos()
    cards, _ = texts(draw_graph(y, engine="own"))
    assert len(cards) == 1501


@pytest.mark.parametrize(
    ("error", "call", "text"),
    [
        (TypeError, lambda: draw_graph(3), "draw_graph: expected a tensor, or a function of one, not int"),
        (TypeError, lambda: draw_graph(lambda: 3), "draw_graph: expected a tensor, or a function of one, not int"),
        (norch.Error, lambda: draw_graph(norch.ones(1)), "draw_graph: this tensor does not require grad"),
        (
            TypeError,
            lambda: draw_graph(norch.ones(1, requires_grad=True) * 2, [1]),
            "params must be a module or a dict",
        ),
        (
            norch.ArgumentError,
            lambda: draw_graph(norch.ones(1, requires_grad=True) * 2, engine="neato"),
            "engine must be 'dot', 'own' or None, not 'neato'",
        ),
    ],
)
def test_messages(error, call, text):
    with pytest.raises(error, match=text):
        call()


def test_without_dot(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    w = norch.ones(1, requires_grad=True)
    y = w * 2
    assert draw_graph(y).svg == draw_graph(y, engine="own").svg
    with pytest.raises(norch.ArgumentError, match="Graphviz's dot is not installed; engine='own' needs nothing"):
        draw_graph(w * 2, engine="dot")
