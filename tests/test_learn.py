"""The chapters of docs/learn: their code runs from top to bottom, and each exercise fails until it is solved."""

from __future__ import annotations

import builtins
import doctest
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.host

LEARN = Path(__file__).resolve().parent.parent / "docs" / "learn"
CHAPTERS = sorted(LEARN.glob("[0-9]_*.md"))
EXERCISES = sorted((LEARN / "exercises").glob("*.py"))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_the_code_of_a_chapter_runs(chapter: Path) -> None:
    """Blocks of Python share their names, as cells of a notebook do; those that begin with >>> show what comes out."""
    names: dict[str, Any] = {"__name__": chapter.stem}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    blocks = _module(LEARN / "chapter.py").blocks(chapter)
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


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda path: path.stem)
def test_an_exercise_fails_until_it_is_solved(exercise: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(exercise.parent)  # solutions import from exercises
    asked: Any = importlib.import_module(exercise.stem)
    solved = _module(LEARN / "solutions" / exercise.name)
    code = asked.check.__code__
    parts = code.co_varnames[: code.co_argcount]
    for part in parts:  # each part alone left open
        with pytest.raises(NotImplementedError, match=part):
            asked.check(**{name: getattr(asked if name == part else solved, name) for name in parts})
    asked.check(**{name: getattr(solved, name) for name in parts})
    run = subprocess.run([sys.executable, exercise], capture_output=True, text=True, timeout=100)
    assert run.returncode == 1 and "NotImplementedError: " + parts[0] in run.stderr


def test_each_chapter_has_its_exercise() -> None:
    assert len(CHAPTERS) == len(EXERCISES) > 0
    for chapter in CHAPTERS:
        assert len(re.findall(r"^\.venv/bin/python docs/learn/exercises/(\w+)\.py$", chapter.read_text(), re.M)) == 1
