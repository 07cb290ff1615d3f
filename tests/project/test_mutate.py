"""The bugs that make mutate plants: where, which, and that a test that fails is named."""

import os
import subprocess
import sys
from pathlib import Path

import mutants
import mutate
import pytest

pytestmark = pytest.mark.host

TESTS = "tests/library/test_conditions.py"
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
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    found = mutants.found(name)
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
    assert [(one.old, one.new) for one in mutants.found("a.py:7")] == [last]


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


def test_one_in_twenty_may_survive(capsys):
    planted = [mutants.Mutant("a.py", k, "first", (1, 9), 0, 1, "", "old", str(k)) for k in range(23)]
    outcomes = ["no test", "invalid: no function", *["killed: library/test_a"] * 20, "survived"]
    results = list(zip(planted, outcomes))
    assert mutate.report(results[:-1], 3) == 0
    first, *lines = capsys.readouterr().out.strip().splitlines()
    assert first == "3 in tests/mutants.txt, 1 without effect on the code"
    assert lines == [".: 1 of 21 survived", "1 of 21 survived", "a.py:first: old -> 0  # no test, line 0"]
    assert mutate.report(results, 3) == 1


def test_a_mutant_with_a_reason_is_not_tried(monkeypatch, tmp_path):
    monkeypatch.setattr(mutate, "ACCEPTED", tmp_path / "mutants.txt")
    mutate.ACCEPTED.write_text("# what this file is\na.py:first: old -> 2  # the same\n")
    assert mutate.accepted() == {"a.py:first: old -> 2": "the same"}


@pytest.mark.slow
def test_a_bug_is_found():
    """named_modules() that gives a module once although remove_duplicate=False, as a bug of one token in module.py."""
    root = Path(mutate.__file__).parent.parent
    line = next(
        k
        for k, text in enumerate((root / "norch/nn/module.py").read_text().splitlines(), 1)
        if "if remove_duplicate:" in text
    )
    done = subprocess.run(
        [
            sys.executable,
            "tests/mutate.py",
            f"norch/nn/module.py:{line}",
            "--tests",
            "tests/library/test_conditions.py",
        ],
        cwd=root,
        env={**os.environ, "NORCH_TEST_TORCH": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "killed: library/test_conditions" in done.stdout, done.stdout + done.stderr
