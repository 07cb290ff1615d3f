"""The arrows of the C library: which folder calls which, by the symbols of objects and the includes of sources."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"

# What each folder may call, and include. devices is csrc/devices.c, which registers the devices.
CALLS = {
    "core": set(),
    "ops": {"core"},
    "cpu": {"core"},
    "program": {"core"},
    "python": {"core", "ops", "program"},
    "devices": {"core", "cpu"},
}
INCLUDES = {  # besides the headers and tables in csrc/ itself
    "core": set(),
    "families": {"core"},
    "ops": {"core", "families"},
    "cpu": {"core", "families"},
    "cuda": {"core", "families", "cpu"},  # of cpu the formulas that both share
    "program": {"core", "families"},
    "python": {"core", "program"},
    "devices.c": {"core", "cpu"},
}


@pytest.fixture(scope="module")
def objects():
    """The object files of the library in build/, by what csrc/ calls their sources: core/dispatch, cpu/pool_isa ..."""
    if not shutil.which("nm"):
        pytest.skip("needs nm")
    sources = {source.relative_to(ROOT / "csrc").with_suffix("") for source in (ROOT / "csrc").rglob("*.c")}
    found = {}
    for path in [*BUILD.glob("*.o"), *(path for folder in CALLS for path in BUILD.glob(f"{folder}/**/*.o"))]:
        name = path.relative_to(BUILD).with_name(path.name.split(".")[0])
        if name in sources:  # not what a file left that is gone
            found[path] = str(name)
    if not found:
        pytest.skip("needs the objects that make leaves in build/")
    return found


def symbols(path):
    """(defined, undefined) names of an object file."""
    defined, undefined = set(), set()
    for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
        kind, name = line.split()[-2:]
        if kind in "Uwv":
            undefined.add(name)
        elif kind.isupper():
            defined.add(name)
    return defined, undefined


@pytest.fixture(scope="module")
def calls(objects):
    """For each source file those that it takes symbols from."""
    table = {path: symbols(path) for path in objects}
    home = {name: objects[path] for path, (defined, _) in table.items() for name in defined}
    graph = {name: set() for name in objects.values()}
    for path, (_, undefined) in table.items():
        graph[objects[path]] |= {home[name] for name in undefined if name in home} - {objects[path]}
    return graph


def test_folders_call_downward_only(calls):
    wrong = {
        (user, used)
        for user, all_used in calls.items()
        for used in all_used
        if used.split("/")[0] not in CALLS[user.split("/")[0]] | {user.split("/")[0]}
    }
    assert not wrong


def test_no_files_call_each_other_in_a_circle(calls):
    left = dict(calls)
    while free := [name for name, used in left.items() if not used & left.keys()]:
        for name in free:
            del left[name]
    assert not left


def test_folders_include_downward_only():
    wrong = set()
    for source in (ROOT / "csrc").rglob("*.*"):
        path = source.relative_to(ROOT / "csrc")
        for included in re.findall(r'^#include "(.+?)"', source.read_text(), re.M):
            user, used = path.parts[0], Path(os.path.normpath(path.parent / included)).parts[0]
            if used != user and (ROOT / "csrc" / used).is_dir() and used not in INCLUDES.get(user, set()):
                wrong.add((str(path), included))
    assert not wrong


def run_native(name, objects, tmp_path, *libraries):
    """Links tests/native/<name>.c with objects of the library, and runs it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs a C compiler")
    source, program = ROOT / "tests" / "native" / f"{name}.c", tmp_path / name
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{ROOT}/build/core"]
    command = [compiler, *flags, "-o", program, source, *objects, *libraries]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_core_links_against_a_stub_backend(objects, tmp_path):
    run_native("stub_backend", [path for path, name in objects.items() if name.startswith("core/")], tmp_path)


def test_calls_run_again_see_new_values(objects, tmp_path):
    without_python = [path for path, name in objects.items() if not name.startswith("python/")]
    run_native("replay", without_python, tmp_path, "-lm", "-ldl")
