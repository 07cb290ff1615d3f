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
