"""What .ci/ runs: steps whose times are kept, where a failure stops them, and what stands in no checkout."""

import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.host

CI = Path(__file__).resolve().parents[2] / ".ci"

STEPS = """
times_in=times.txt
source "$(dirname "$0")/steps"
{before}
half() {{ false; echo "goes on after an error"; }}
step "first" echo hello
step "second" half
step "third" echo there
[ ${{#failed[@]}} = 0 ]
"""


@pytest.mark.parametrize(("before", "ran"), [("", ["first", "second"]), ("keep_going=1", ["first", "second", "third"])])
def test_steps_are_timed_and_stop_at_the_first_failure(tmp_path, before, ran):
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "steps").write_text((CI / "steps").read_text())
    (tmp_path / ".ci" / "run").write_text(STEPS.format(before=before))
    done = subprocess.run(["bash", tmp_path / ".ci" / "run"], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "goes on after an error" not in done.stdout
    table = (tmp_path / "build" / "times.txt").read_text()
    assert done.stdout.endswith(table)
    head, *rows, total = table.splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d, commit .*, \d+ cores", head)
    assert [re.fullmatch(r" *\d+ s  (\w+).*", row)[1] for row in rows] == ran
    assert rows[1].endswith("second: FAILED with status 1")
    assert re.fullmatch(r" *\d+ s  all", total)


BESIDE = """
times_in=times.txt
source "$(dirname "$0")/steps"
{before}
waits() {{ touch "$log/begun"; until [ -e "$log/first" ]; do sleep 0.01; done; }}
fails() {{ until [ -e "$log/begun" ]; do sleep 0.01; done; false; }}
others() {{
    step "other" waits
    step "another" {another}
    step "last" echo the last of the others
}}
aside others
step "first" touch "$log/first"
joined
step "second" echo second
[ ${{#failed[@]}} = 0 ]
"""


@pytest.mark.parametrize(
    ("before", "another", "ran", "status"),
    [
        ("", "true", {"first", "other", "another", "last", "second"}, 0),
        ("", "false", {"first", "other", "another"}, 1),
        ("keep_going=1", "false", {"first", "other", "another", "last", "second"}, 1),
    ],
)
def test_steps_run_beside_others_and_their_failure_is_the_runs(tmp_path, before, another, ran, status):
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "steps").write_text((CI / "steps").read_text())
    (tmp_path / ".ci" / "run").write_text(BESIDE.format(before=before, another=another))
    done = subprocess.run(["bash", tmp_path / ".ci" / "run"], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert ("\nthe last of the others\n" in done.stdout) == ("last" in ran)
    rows = (tmp_path / "build" / "times.txt").read_text().splitlines()[1:-1]
    assert {row.split()[2].rstrip(":") for row in rows} == ran
    assert [row.split()[2] for row in rows if "FAILED" in row] == (["another:"] if status else [])


def test_the_steps_beside_one_that_fails_end_with_it(tmp_path):
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "steps").write_text((CI / "steps").read_text())
    text = BESIDE.format(before="", another="true").replace('touch "$log/first"', "fails")
    (tmp_path / ".ci" / "run").write_text(text)
    done = subprocess.run(["bash", tmp_path / ".ci" / "run"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "=== other" in done.stdout and "first: FAILED" in done.stdout


def test_every_target_that_a_step_makes_is_there():
    text = "".join(path.read_text() for path in (CI.parent / "Makefile", *CI.parent.glob("mk/*.mk")))
    made = {
        name
        for script in ("run", "long")
        for name in re.findall(r"\bmake (?:-s )?([a-z][a-z-]*)", (CI / script).read_text())
    }
    assert {"test", "check", "sanitize", "sanitize-threads", "cuda-toolchain"} <= made
    for name in made | {"ci-long", "test-fast"}:
        assert re.search(rf"^{name}:", text, re.M), name


def test_the_scripts_are_shell():
    for script in ("run", "long", "steps"):
        done = subprocess.run(["bash", "-n", CI / script], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
