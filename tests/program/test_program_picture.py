"""program.draw(): pictures of recordings."""

import shutil
import xml.etree.ElementTree as ElementTree

import pytest

import norch
from norch import nn, optim
from norch.program import picture

pytestmark = pytest.mark.host


def recorded():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    captured = norch.capture(step)
    for _ in range(4):
        captured(norch.ones(4, 2))
    return captured.program


def test_without_graphviz_it_is_svg(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    program = recorded()
    path = tmp_path / "step.svg"
    program.draw(path)
    root = ElementTree.parse(path).getroot()
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == f"step: {len(program)} calls" and len(texts) == 1 + len(program)
    for text, (name, dtype, _, where) in zip(texts[1:], program.calls(), strict=True):
        assert name in text and dtype in text and where in text and "test_program_picture.py" in text
    arrows = [one for one in root.iter("{http://www.w3.org/2000/svg}path") if "marker-end" in one.attrib]
    assert len(arrows) >= len(program) - 2
    with pytest.raises(norch.ArgumentError, match="only .svg does not"):
        program.draw(tmp_path / "step.png")


def test_arrows_go_from_writers_to_readers() -> None:
    uses = [(0, True, -1, False), (1, True, 0, False), (2, True, 0, False), (0, True, 1, False), (3, True, 0, False)]
    assert picture.arrows(uses) == [(0, 1), (0, 2), (0, 3), (1, 3), (3, 4)]
    lanes = picture._lanes(picture.arrows(uses))
    assert lanes[0, 1] == lanes[3, 4] == 0 and lanes[0, 2] != lanes[0, 1] and len(set(lanes.values())) == 3


def test_with_graphviz(tmp_path, monkeypatch) -> None:
    calls = recorded().calls()
    text = picture.graph('a "b"', calls, [(0, 1)])
    assert (
        text.startswith("digraph {") and '\\"b\\"' in text and "0 -> 1;" in text and text.count("[label=") == len(calls)
    )
    seen = []

    class Done:
        returncode, stderr = 0, ""

    monkeypatch.setattr(shutil, "which", lambda name: "/bin/dot")
    monkeypatch.setattr(picture.subprocess, "run", lambda command, **named: seen.append((command, named)) or Done)
    recorded().draw(str(tmp_path / "a.png"))
    assert seen[0][0] == ["/bin/dot", "-Tpng", "-o", str(tmp_path / "a.png")] and "digraph" in seen[0][1]["input"]
    Done.returncode, Done.stderr = 1, "no such format"
    with pytest.raises(norch.Error, match="no such format"):
        recorded().draw(tmp_path / "a.xyz")
