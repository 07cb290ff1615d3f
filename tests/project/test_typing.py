"""Type checkers on the programs of tests/typing, which a user could have written: mypy --strict, and pyright where it
is installed. They accept what is right, know what it returns (assert_type), and find each line marked "# error"."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import api
import pytest

import norch

pytestmark = [pytest.mark.host, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "tests" / "typing").glob("*.py"))
MISTAKES = ROOT / "tests" / "typing" / "mistakes.py"
CORRECT = [script for script in SCRIPTS if script != MISTAKES]
HOME = str(Path(norch.__file__).parent.parent)
ENVIRONMENT = {**os.environ, "PYTHONPATH": HOME}


def marked(script: Path, mark: str = "# error") -> set[tuple[str, int]]:
    """(file, line) of each line that has to be an error."""
    lines = script.read_text().splitlines()
    return {(script.name, i) for i, line in enumerate(lines, 1) if mark in line}


@pytest.fixture(scope="module")
def found_by_mypy(tmp_path_factory) -> dict[tuple[str, int], str]:
    """The errors that mypy --strict finds, by file and line: in the scripts, and in names that no module has."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("typing")
    (folder / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-norch.*]\nfollow_imports = silent\n")
    lines = [f"import {path}; {path}.no_such_name  # error" for path in api.MODULES]
    (folder / "unknown.py").write_text("\n".join(lines) + "\n")
    options = ["--config-file", folder / "mypy.ini", "--cache-dir", ROOT / ".mypy_cache" / "user"]
    command = [sys.executable, "-m", "mypy", *options, "--no-error-summary", folder / "unknown.py", *SCRIPTS]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=folder)
    assert done.returncode == 1 and not done.stderr, done.stdout + done.stderr
    errors = [line.split(":", 2) for line in done.stdout.splitlines() if ": error:" in line]
    return {(Path(file).name, int(line)): text for file, line, text in errors}


@pytest.mark.parametrize("script", CORRECT, ids=lambda script: script.stem)
def test_mypy_accepts_what_is_right(script, found_by_mypy):
    assert {place: text for place, text in found_by_mypy.items() if place[0] == script.name} == {}


def test_mypy_finds_each_mistake_and_nothing_else(found_by_mypy):
    assert {place for place in found_by_mypy if place[0] == MISTAKES.name} == marked(MISTAKES)


def test_a_name_that_a_module_does_not_have_is_an_error(found_by_mypy):
    known = [path for i, path in enumerate(api.MODULES, 1) if ("unknown.py", i) not in found_by_mypy]
    assert known == [], "any name of these modules is accepted"


def test_pyright_agrees(tmp_path):
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed")
    for script in SCRIPTS:
        shutil.copy(script, tmp_path)
    settings = {"extraPaths": [HOME], "reportUnusedExpression": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = ["pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    found = [one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    places = {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in found}
    # what a module imports is hidden from others where pyright knows the module as installed
    assert places == set().union(*map(marked, SCRIPTS)) - marked(MISTAKES, "import bisect_left")


@pytest.mark.parametrize("script", CORRECT, ids=lambda script: script.stem)
def test_the_programs_run(script):
    pytest.importorskip("typing_extensions")
    pytest.importorskip("numpy")
    subprocess.run([sys.executable, "-W", "error", script], check=True, env=ENVIRONMENT)
