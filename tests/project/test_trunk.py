"""What .ci/trunk.py leaves out of the trunk runs nothing when tensors are added and summed and gradients flow back."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[2]
BARE = {
    k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "NORCH_LIBRARY", "NORCH_ISA")
}

# Arguments: the root of the checkout, and whether to compute. Prints the Python files of which functions ran.
PROGRAM = """
import os, sys
import norch
a, b = norch.ones(2, 3, requires_grad=True), norch.ones(3, requires_grad=True)
a.sum(0).sum().backward()  # imports what waits for it
ran = set()
if sys.argv[2] == "run":
    sys.setprofile(lambda frame, event, _: event == "call" and ran.add(frame.f_code.co_filename))
    (a + b).sum().backward()
    (a + a).sum(0).sum().backward()
    sys.setprofile(None)
print(*(os.path.relpath(path, sys.argv[1]) for path in ran if path.startswith(sys.argv[1])), sep="\\n")
"""


def load(name):
    """A module of .ci/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


trunk = load("trunk")
sys.modules.setdefault("trunk", trunk)
lines = load("lines")


def computed(action, **variables):
    env = {**BARE, "PYTHONPATH": str(ROOT), "NORCH_NUM_THREADS": "1", **variables}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ROOT, action], env=env, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def pages_that_run():
    """Files of the families that the operations are of, and of those that the engine uses."""
    names = re.compile(rf"({'|'.join(trunk.FAMILIES.split())})[_.]")
    return {path for path in lines.files(*lines.PRODUCT) if names.match(Path(path).name)} | set(trunk.SHARED.split())


def outside(ran):
    """Of files that ran those that are listed nowhere: they are of the trunk, or the operations have a new page."""
    listed = {path for paths in lines.trunk_files().values() for path in paths} | pages_that_run()
    return sorted(ran - listed)


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_every_name_in_the_lists_is_there():
    named = [*trunk.TRUNK.values(), trunk.NOT_TRUNK, trunk.SHARED]
    missing = [path for path in " ".join(named).split() if not Path(path).exists()]
    assert not missing
    for family in trunk.FAMILIES.split():
        assert any(Path(path).name.startswith(family) for path in pages_that_run()), family


def test_python_outside_of_the_trunk_runs_nothing():
    ran = computed("run")
    assert "norch/autograd/engine.py" in ran
    assert outside(ran) == []


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(shutil.which("gcov") is None, reason="needs gcov")
def test_c_outside_of_the_trunk_runs_nothing():
    """gcc counts how often each line runs: what importing and making tensors runs too is taken off."""
    build = ROOT / "build" / "coverage"
    library = build / "libnorch.so"
    flags = ["CC=gcc", "NVCC=", "WERROR=", "CFLAGS=-O0 --coverage", "LDFLAGS=--coverage"]
    command = ["make", f"BUILD={build.relative_to(ROOT)}", f"LIB={library.relative_to(ROOT)}", *flags]
    done = subprocess.run(command, cwd=ROOT, env=BARE, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    def counted(action):
        for counts in build.rglob("*.gcda"):
            counts.unlink()
        computed(action, NORCH_LIBRARY=str(library), NORCH_ISA="baseline")
        units = [path for path in build.rglob("*.gcda") if ".avx" not in path.name]
        done = subprocess.run(["gcov", "--json-format", "--stdout", *units], capture_output=True, text=True, check=True)
        found = {}
        for text in done.stdout.splitlines():
            for file in json.loads(text)["files"]:
                for line in file["lines"]:
                    at = os.path.normpath(file["file"]), line["line_number"]
                    found[at] = found.get(at, 0) + line["count"]
        return found

    without = counted("import")
    ran = {at[0] for at, count in counted("run").items() if count != without.get(at, 0) and at[0].startswith("csrc")}
    assert "csrc/core/dispatch.c" in ran and "csrc/cpu/pointwise.c" in ran
    assert outside(ran) == []


def test_every_source_of_the_product_is_counted_once():
    table = lines.table()
    [product] = re.findall(r"^ *(\d+) +\d+  the product", table, re.M)
    folders = re.findall(r"^ *(\d+) +\d* +((?:csrc|norch)[\w/]*)$", table, re.M)
    assert sum(int(count) for count, _ in folders) == int(product)
    assert {"csrc", "csrc/core", "norch", "norch/nn"} <= {folder for _, folder in folders}
