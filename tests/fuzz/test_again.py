"""What is drawn or left to chance in the rest of the tests, again and again while there is time for it: Hypothesis's
tests with other seeds, and those of threads and forks. An ordinary run has them in their own files."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from budget import SEED, cases

TESTS = Path(__file__).parents[1]
pytestmark = pytest.mark.host


def run(*options: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-5000:]}"


def test_hypothesis() -> None:
    for number in cases(0, 0.2):
        drawn = random.Random(f"{SEED}/{number}").randrange(1 << 30)
        run("-m", "hypothesis", f"--hypothesis-seed={drawn}", str(TESTS))


def test_threads_and_forks() -> None:
    for _ in cases(0, 0.1):
        run(str(TESTS / "test_threads.py"))
