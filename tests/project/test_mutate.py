"""The bugs that make mutate plants: where, which, and that a test that fails is named."""

import os
import subprocess
import sys
from pathlib import Path

import mutate
import pytest

pytestmark = pytest.mark.host

PYTHON = """
LIMIT = 1

def first(x, y):
    if x and y is None:
        return None
    return x < y
"""
C = """
/* if (a && b) 1 */
static int first(int a, int b) {
    if (a && b == 2) return 1;
    if (a > b || (a && b)) a++;
    return a <= b;
}
"""


def of(tmp_path, monkeypatch, name, text):
    (tmp_path / name).write_text(text)
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    found = mutate.found([name])
    for one in found:
        assert one.function == "first" and one.text() != text
        assert one.new in " ".join(one.text().split())
    return {(one.old, one.new) for one in found}


def test_mutants_of_python(tmp_path, monkeypatch):
    condition, last = "if x and y is None:", ("return x < y", "return x <= y")
    assert of(tmp_path, monkeypatch, "a.py", PYTHON) == {
        (condition, "if (not (x and y is None)):"),
        (condition, "if x or y is None:"),
        (condition, "if ((y is None)):"),
        (condition, "if ((x)):"),
        (condition, "if x and y is not None:"),
        ("return None", "pass"),
        last,
    }
    assert [(one.old, one.new) for one in mutate.found(["a.py:7"])] == [last]


def test_mutants_of_c(tmp_path, monkeypatch):
    line, either = "if (a && b == 2) return 1;", "if (a > b || (a && b)) a++;"
    assert of(tmp_path, monkeypatch, "a.c", C) == {
        (line, "if (a || b == 2) return 1;"),
        (line, "if (a && b != 2) return 1;"),
        (line, "if (!(a && b == 2)) return 1;"),
        (line, "if (b == 2) return 1;"),
        (line, "if (a) return 1;"),
        (line, "if (a && b == 2) return 0;"),
        (line, "if (a && b == 2) (void)0;"),
        (either, "if (a >= b || (a && b)) a++;"),
        (either, "if (a > b && (a && b)) a++;"),
        (either, "if (a > b || (a || b)) a++;"),
        (either, "if (!(a > b || (a && b))) a++;"),
        (either, "if (a > b) a++;"),
        (either, "if ((a && b)) a++;"),
        ("return a <= b;", "return a < b;"),
    }


def test_one_in_twenty_may_survive_without_a_reason(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(mutate, "ACCEPTED", tmp_path / "mutants.txt")
    mutate.ACCEPTED.write_text("# what this file is\na.py:first: old -> 2  # the same\n")
    mutants = [mutate.Mutant("a.py", k, "first", (1, 9), 0, 1, "", "old", str(k)) for k in range(23)]
    outcomes = ["no test", "killed: library/test_a", "survived", "invalid: no function", *["killed: time"] * 19]
    results = list(zip(mutants, outcomes))
    assert mutate.report(results) == 0
    first, *lines = capsys.readouterr().out.strip().splitlines()
    assert first == "23 mutants: 2 invalid or in tests/mutants.txt, 1 of 21 survived"
    assert lines == ["a.py:first: old -> 0  # no test, line 0"]
    assert mutate.report([*results, (mutants[0], "survived")]) == 1


@pytest.mark.slow
@pytest.mark.long  # as is `make mutate`
def test_a_bug_is_found():
    """named_modules() that gives a module once although remove_duplicate=False, as a bug of one token in module.py."""
    root = Path(mutate.__file__).parent.parent
    line = next(
        k
        for k, text in enumerate((root / "norch/nn/module.py").read_text().splitlines(), 1)
        if "if remove_duplicate:" in text
    )
    done = subprocess.run(
        [sys.executable, "tests/mutate.py", f"norch/nn/module.py:{line}"],
        cwd=root,
        env={**os.environ, "NORCH_TEST_TORCH": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "killed: library/test_" in done.stdout, done.stdout + done.stderr
