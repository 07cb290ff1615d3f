"""The chapters of docs/learn: their code runs from top to bottom, as cells and pasted at a prompt, and each exercise
fails until it is solved."""

from __future__ import annotations

import builtins
import code
import contextlib
import doctest
import importlib
import importlib.util
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.host

LEARN = Path(__file__).resolve().parents[2] / "docs" / "learn"
EXERCISES = sorted((LEARN / "exercises").glob("*.py"))


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_chapter = _module(LEARN / "chapter.py")
CHAPTERS: list[Path] = _chapter.CHAPTERS


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_the_code_of_a_chapter_runs(chapter: Path) -> None:
    """Blocks of Python share their names, as cells of a notebook do; those that begin with >>> show what comes out."""
    if chapter.stem == "9_together":
        pytest.importorskip("sklearn")  # has the digits
    names: dict[str, Any] = {"__name__": chapter.stem}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    blocks = _chapter.blocks(chapter)
    assert len(blocks) > 3
    for at, block in enumerate(blocks):
        if block.startswith(">>>"):
            examples = parser.get_doctest(block, {}, f"{chapter.name}, block {at}", None, None)
            examples.globs = names
            runner.run(examples, clear_globs=False)
        else:
            exec(compile(block, f"{chapter.name}, block {at}", "exec"), names)
    assert runner.tries > 5 and not runner.failures
    names.clear()
    vars(builtins).pop("_", None)  # what was shown last


class _Prompt(code.InteractiveConsole):
    """Compiles what is pasted as a prompt does, line by line, and runs nothing."""

    def runcode(self, code: Any) -> None:
        pass

    def paste(self, text: str) -> str:
        """What a prompt says to a text and the key Enter."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            waits = False
            for line in [*text.splitlines(), ""]:
                waits = self.push(line)
        return "it waits for more" if waits else said.getvalue()


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_the_blocks_of_a_chapter_can_be_pasted(chapter: Path) -> None:
    """At a prompt that takes an empty line for the end of a class, as Python's does before 3.13. The copy button of the
    site leaves out prompts and what comes out."""
    for block in _chapter.blocks(chapter):
        text = block
        if block.startswith(">>>"):
            text = "\n".join(line[4:] for line in block.splitlines() if re.match(r">>> |\.\.\.( |$)", line))
        assert not (said := _Prompt().paste(text)), f"{chapter.name}: {said}\n{block}"


def test_a_prompt_refuses_what_older_pythons_refuse() -> None:
    assert "IndentationError" in _Prompt().paste(
        "class A:\n    def f(self):\n        pass\n\n    def g(self):\n        pass"
    )
    assert "SyntaxError" in _Prompt().paste("for i in range(3):\n    pass\nprint(i)")


def test_the_framework_of_chapter_9_has_250_lines() -> None:
    blocks = _chapter.blocks(LEARN / "9_together.md")
    lines = [line for block in blocks if not block.startswith(">>>") for line in block.splitlines() if line.strip()]
    assert 200 < len(lines) <= 250
    assert not [line for line in lines if re.match(r"(import|from) (norch|numpy|torch)", line)]


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda path: path.stem)
def test_an_exercise_fails_until_it_is_solved(exercise: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(exercise.parent)  # solutions import from exercises
    monkeypatch.syspath_prepend(LEARN / "solutions")
    importlib.import_module("_check")
    asked: Any = importlib.import_module(exercise.stem)
    assert Path(asked.__file__) == exercise
    solved = _module(LEARN / "solutions" / exercise.name)
    parts = asked.check.__code__.co_varnames[: asked.check.__code__.co_argcount]
    for part in parts:  # each part alone left open
        with pytest.raises(NotImplementedError, match=part):
            asked.check(**{name: getattr(asked if name == part else solved, name) for name in parts})
    asked.check(**{name: getattr(solved, name) for name in parts})
    sys.modules.pop("_check")
    for folder, status in (("exercises", 1), ("solutions", 0)):
        run = subprocess.run(
            [sys.executable, LEARN / folder / exercise.name], capture_output=True, text=True, timeout=100
        )
        assert run.returncode == status, run.stderr
        assert run.stdout == ("solved\n" if folder == "solutions" else "")
        assert status == 0 or "NotImplementedError: " + parts[0] in run.stderr


def test_each_chapter_has_its_exercise_and_a_place_in_the_index() -> None:
    assert len(CHAPTERS) == len(EXERCISES) == 10
    index = (LEARN / "index.md").read_text()
    for number, chapter in enumerate(CHAPTERS, 1):
        text = chapter.read_text()
        (name,) = re.findall(r"^\.venv/bin/python docs/learn/exercises/(\w+)\.py$", text, re.M)
        assert f"Exercise of chapter {number}:" in (LEARN / "exercises" / f"{name}.py").read_text()
        assert text.startswith(f"# {number}. ") and text.partition("\n\n")[2].partition("\n\n")[0].count("?") == 1
        (minutes,) = re.findall(rf"^\| \[{number}\. [^]]*\]\({chapter.name}\) \| .* \| (\d+) \|$", index, re.M)
        assert f"bout {minutes} minutes" in text.partition("\n## ")[0]
        assert f"\n{chapter.stem}\n" in index


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_the_lines_of_code_fit_the_page(chapter: Path) -> None:
    code = re.findall(r"^```\w+\n(.*?)^```$", chapter.read_text(), re.M | re.S)
    assert not [line for block in code for line in block.splitlines() if len(line) > 88]


def test_the_drawings_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in _module(LEARN / "drawings.py").pictures().items():
        assert text == (LEARN / name).read_text(encoding="utf-8"), f"{name} is old: run docs/learn/drawings.py"
        assert any(f"]({name})" in chapter.read_text() for chapter in CHAPTERS)
