"""Runs programs on libraries that are written for PyTorch, through norch's door, and compares what they print with what
they print with PyTorch: `make test-ecosystem` (ARGS="timm lightning": some of them).

    programs/use_NAME.py   a program for each library, on weights and data that NumPy draws
    expected/NAME.txt      what it prints with PyTorch 2.13 (python run.py --reference NAME writes it; reference.py)
    requirements.txt       the versions, installed without their dependencies, so that no PyTorch is fetched; those that
                           .ci/run needs, for three of the libraries, stand in requirements_ci.txt

Numbers agree when they are equal within 2e-4, relative to those above 1. Where a library draws random numbers of its
own (pyro's inference), it prints what does not depend on them. --table writes the table of docs/compatibility.md.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
TOLERANCE = 2e-4
PACKAGES = {
    "backpack": "backpack-for-pytorch",
    "pina": "pina-mathlab",
    "pyro": "pyro-ppl",
    "ignite": "pytorch-ignite",
    "open_clip": "open-clip-torch",
    "torchvision_ops": "torchvision",
    "whisper": "openai-whisper",
}  # of other names
IN_CI = ("einops", "timm", "transformers")
MARKS = ("<!-- tests/ecosystem/run.py --table writes what follows -->\n", "<!-- to here -->\n")


def programs() -> list[str]:
    """The names of the programs."""
    return sorted(path.stem[4:] for path in (HERE / "programs").glob("use_*.py"))


def versions() -> dict[str, str]:
    """{package: version} of both files of requirements."""
    text = "\n".join(path.read_text() for path in HERE.glob("requirements*.txt"))
    pairs = (line.split("==") for line in text.split() if "==" in line)
    return {name.lower().replace("_", "-"): version for name, version in pairs}


def run(name: str, reference: bool = False) -> tuple[str, str, float]:
    """What a program prints, the end of its errors if it fails, and its seconds."""
    start = time.perf_counter()
    program = str(HERE / "programs" / f"use_{name}.py")
    how = [str(HERE / "reference.py"), program] if reference else ["-m", "norch", program]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-W", "ignore", *how], capture_output=True, text=True, env=env, timeout=900)
    return done.stdout, done.stderr[-2000:] if done.returncode else "", time.perf_counter() - start


def differences(found: str, wanted: str) -> list[str]:
    """Lines that differ, shortened."""
    ours, theirs = ([line for line in text.splitlines() if line[:1] != "{"] for text in (found, wanted))
    bad = [f"{len(ours)} lines, not {len(theirs)}"] if len(ours) != len(theirs) else []
    for line, other in zip(ours, theirs):
        a, b = line.split(), other.split()
        if len(a) != len(b) or not all(map(same, a, b)):
            bad.append(f"{line[:100]}\n  PyTorch: {other[:100]}")
    return bad


def same(found: str, wanted: str) -> bool:
    """Whether two words are equal, or two numbers nearly."""
    try:
        a, b = float(found), float(wanted)
    except ValueError:
        return found == wanted
    return a == b or abs(a - b) <= TOLERANCE * max(1.0, abs(b))


def check(name: str) -> tuple[str, int, list[str], float]:
    """(name, numbers compared, what is wrong, seconds) of a program."""
    wanted = (HERE / "expected" / f"{name}.txt").read_text()
    said, error, seconds = run(name)
    bad = [error] if error else differences(said, wanted)
    return name, sum(bool(re.fullmatch(r"-?[\d.]+(e-?\d+)?", word)) for word in wanted.split()), bad, seconds


def table(results: list[tuple[str, int, list[str], float]]) -> str:
    """The table of docs/compatibility.md."""
    pinned = versions()
    lines = ["| library | version | what the program does | numbers compared |", "| --- | --- | --- | --- |"]
    for name, count, bad, _ in results:
        text = (HERE / "programs" / f"use_{name}.py").read_text()
        about = re.search(r'"""[\w.-]+[^:,]*[:,] (.*?)\."""', text, re.S)
        package = PACKAGES.get(name, name.replace("_", "-"))
        said = "fails" if bad else f"{count}, equal"
        what = " ".join((about.group(1) if about else name).split())
        lines.append(f"| {package} | {pinned.get(package, '')} | {what} | {said} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ci", action="store_true", help=f"only {', '.join(IN_CI)}")
    parser.add_argument("--reference", action="store_true", help="writes expected/NAME.txt, with PyTorch")
    parser.add_argument("--table", action="store_true", help="writes the table of docs/compatibility.md")
    options = parser.parse_args()
    names = options.names or (list(IN_CI) if options.ci else programs())
    if options.reference:
        for name in names:
            said, error, _ = run(name, reference=True)
            if error:
                print(name, error)
                return 1
            (HERE / "expected" / f"{name}.txt").write_text(said)
        return 0
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        results = []
        for result in pool.map(check, names):
            name, count, bad, seconds = result
            results.append(result)
            print(f"{name:30} {count:5} numbers {seconds:6.1f} s  {'FAILED' if bad else 'equal'}", flush=True)
            for each in bad[:8]:
                print("  " + each.replace("\n", "\n  "))
    if options.table:
        before, after = (PAGE.read_text().partition(mark) for mark in MARKS)
        PAGE.write_text(before[0] + MARKS[0] + table(results) + MARKS[1] + after[2])
    failed = [name for name, _, bad, _ in results if bad]
    good, numbers = len(results) - len(failed), sum(count for _, count, _, _ in results)
    print(f"{good} of {len(results)} programs print PyTorch's numbers, {numbers} in all")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
