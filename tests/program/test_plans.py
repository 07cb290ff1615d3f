"""A field that is added to a plan, or to the nest in one, in a copy of the sources, is one that recordings see."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from norch.program import listing

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[2]
ADDED = "IN(const void *, added_read), OUT(void *, added_written), NUM(int64_t, added_number)"


@pytest.fixture
def visited(tmp_path):
    """A function of fields to add to all plans, and to a nest. Returns (plans, what the compiler says, what a visit
    prints)."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler or not (ROOT / "build/core/opcodes.inc").exists():
        pytest.skip("needs a C compiler, and what make leaves in build/")

    def visit(fields, of_nest=""):
        shutil.copytree(ROOT / "csrc", tmp_path, ignore=shutil.ignore_patterns("cuda", "python"), dirs_exist_ok=True)
        plans = []
        for path in tmp_path.rglob("*.[ch]"):
            text, _ = re.subn(r"^(NR_PLAN\((\w+),)", rf"\1 {fields},", old := path.read_text(), flags=re.M)
            plans += re.findall(r"^NR_PLAN\((\w+),", old, re.M)
            if text != old:
                path.write_text(text)
        nest = tmp_path / "core/plan.h"
        nest.write_text(nest.read_text().replace("} nr_plan;", f"{of_nest} }} nr_plan;"))
        flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path}", f"-I{ROOT}/build/core"]
        made = [compiler, *flags, "-o", tmp_path / "plans", ROOT / "tests/native/plans.c"]
        done = subprocess.run(made, capture_output=True, text=True)
        ran = "" if done.returncode else subprocess.check_output([tmp_path / "plans"], text=True)
        return plans, done.stderr, ran

    return visit


def test_a_visit_finds_every_field_of_every_plan(visited):
    plans, errors, printed = visited(ADDED)
    assert not errors
    assert len(plans) >= 22
    assert sorted(printed.splitlines()) == sorted([*(f"{plan} 1 1 1" for plan in plans), "nest 0"])


@pytest.mark.parametrize("field", ["int64_t", "char *"])
def test_a_field_of_a_nest_that_no_visit_finds_is_counted(visited, field):
    _, errors, printed = visited(ADDED, f"{field} added[NR_MAX_OPERANDS];")
    assert not errors and "nest 32" in printed.splitlines()


def test_an_address_cannot_be_declared_as_a_number(visited):
    _, errors, _ = visited(f"{ADDED}, NUM(void *, hidden)")
    assert "hidden: IN, OUT, KEY or OTHER?" in errors


def test_plans_are_declared_and_not_written_as_structs():
    sources = [*(ROOT / "csrc/families").glob("*.h"), *(ROOT / "csrc/program").glob("*.h")]
    found = {name for path in sources for name in re.findall(r"struct (nr_\w+_plan) \{", path.read_text())}
    assert not found


@pytest.mark.skipif(not (ROOT / "csrc").exists(), reason="needs the sources")
def test_a_listing_names_every_family():
    rows = re.findall(r"^(?:SHARED|PER_ISA|DEVICES|HOST)\(", (ROOT / "csrc/families.def").read_text(), re.M)
    assert len(listing._FAMILIES) == len(rows) + 1  # and calls of functions of the host
