"""Tries a release in fresh environments, as its users will have it, and says what to upload. Uploads nothing.

    python release/check.py dist

The wheel for this machine is installed into an environment of each Python from 3.10 on that is found, and trains there.
Under one of them the tests that need only the package run against it. The sources are installed likewise: that compiles
them. Wheels for other machines are not run.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = [f"python3.{minor}" for minor in range(10, 15)]
SET_BY_OTHERS = ("NORCH_", "PYTHON", "MAKE", "MFLAGS")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(SET_BY_OTHERS)}

STEP = """
import norch
norch.manual_seed(0)
x, y = norch.rand(64, 2), norch.rand(64, 1)
model = norch.nn.Sequential(norch.nn.Linear(2, 8), norch.nn.Tanh(), norch.nn.Linear(8, 1))
optimizer, losses = norch.optim.Adam(model.parameters(), lr=0.05), []
for _ in range(20):
    loss = norch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 2, losses
print(norch.__version__, norch._binding.library.lib.norch_isa().decode(), norch.__file__)
"""


class Failed(Exception):
    """A command ended with another status than 0; the message says which, and what it printed."""


def run(*command: object, cwd: Path | str = "/", **more: str) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env={**CLEAN, **more}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        raise Failed(f"{' '.join(words[:6])} ended with status {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def environment(python: str, folder: Path, *packages: object) -> Path:
    """The Python of a new environment that holds the packages."""
    run(python, "-m", "venv", folder)
    inside = folder / "bin" / "python"
    run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return inside


def train(python: Path) -> str:
    """Imports norch from elsewhere than the checkout, and trains; the ISA build that it took."""
    version, isa, file = run(python, "-c", STEP).split(maxsplit=2)
    print(f"  RUN   {run(python, '--version').strip()}: norch {version}, {isa}, {file.strip()}")
    return isa


def run_tests(python: Path, wheel: Path) -> None:
    """The tests that need only the package, over one dtype."""
    script, workers = Path(__file__).with_name("tests.py"), str(os.cpu_count())
    said = run(sys.executable, script, wheel, python, "-n", workers, "-m", "not slow", NORCH_TEST_DTYPES="float32")
    print(f"  TEST  {said.strip().splitlines()[-1]}")


def has_venv(python: str) -> bool:
    """Whether there is this Python, and it makes environments."""
    if not shutil.which(python):
        return False
    return subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode == 0


def for_this_machine(wheel: Path) -> bool:
    """Whether a wheel can be installed here."""
    system = "macosx" if sys.platform == "darwin" else "manylinux" if platform.libc_ver()[0] == "glibc" else "musllinux"
    return f"-{system}_" in wheel.name and wheel.name.endswith(f"_{platform.machine()}.whl")


def check(folder: Path) -> None:
    """Prints what was tried of the wheels and the sources in a folder; Failed where something does not work."""
    built, sources = sorted(folder.glob("norch_dl-*.whl")), sorted(folder.glob("norch_dl-*.tar.gz"))
    ours = [wheel for wheel in built if for_this_machine(wheel)]
    if len(ours) != 1 or len(sources) != 1:
        raise Failed(f"{folder} holds {len(ours)} wheels for this machine and {len(sources)} archives of sources")
    pythons = list(filter(has_venv, PYTHONS))
    if not pythons:
        raise Failed(f"none of {', '.join(PYTHONS)} is here, with its venv module")
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        for python in pythons:
            isa = train(environment(python, place / python, "--no-index", "--no-deps", ours[0].resolve()))
        if missing := [python for python in PYTHONS if python not in pythons]:
            print(f"  NONE  {', '.join(missing)}: not here, so not tried")
        with_tests = environment(sys.executable, place / "tests", f"{ours[0].resolve()}[test]")
        run_tests(with_tests, ours[0].resolve())
        print("  BUILD the sources, in an environment of their own")
        compiled = train(environment(sys.executable, place / "sources-env", sources[0].resolve()))
        if compiled != isa:
            raise Failed(f"the wheel takes its kernels for {isa}, and what this machine compiles those for {compiled}")
    print("good; to upload, and nothing was uploaded:")
    for file in [*sources, *built]:
        tried = "" if file in (*sources, *ours) else "  not run here"
        print(f"  {hashlib.sha256(file.read_bytes()).hexdigest()}  {file}{tried}")


if __name__ == "__main__":
    try:
        check(Path(sys.argv[1] if len(sys.argv) > 1 else "dist"))
    except Failed as failure:
        sys.exit(f"release/check.py: {failure}")
