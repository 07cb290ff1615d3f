"""Random calls of all that is public (walker.py), in processes of their own: none dies, hangs, or takes gigabytes."""

from __future__ import annotations

import importlib
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from budget import SEED, cases

WALKER = Path(__file__).with_name("walker.py")
ROOT = WALKER.parents[2]
AT_ONCE = 3000  # calls a process
HANGS = 60  # seconds of the processor in one call, and then some
ADDRESSES = 4 << 30  # bytes; a sanitizer needs more
SANITIZED = "san" in os.environ.get("LD_PRELOAD", "")

pytestmark = [pytest.mark.host, pytest.mark.resident]


def test_the_page_on_reliability_states_how_many_are_called() -> None:
    page = ROOT / "docs" / "reliability.md"
    if not page.exists():
        pytest.skip("the docs are not here")
    (stated,) = re.findall(r"calls of everything public, ([\d,]+) functions", page.read_text())
    count = len(importlib.import_module("walker").callables())
    assert abs(int(stated.replace(",", "")) - count) < 0.05 * count, (stated, count)


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))


def walked(seed: str, first: int, last: int, *options: str) -> list[str]:
    """What the walker finds in its calls from first to last. A call that kills it is a finding; it goes on after it."""
    findings = []
    while first < last:
        with tempfile.TemporaryFile() as notes:
            env = {
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "NORCH_FUZZ_NOTES": str(notes.fileno()),
                "NORCH_NUM_THREADS": "2",
            }
            command = [sys.executable, str(WALKER), seed, str(first), str(last), *options]
            process = subprocess.Popen(
                command,
                env=env,
                pass_fds=[notes.fileno()],
                preexec_fn=limit,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            try:
                out, errors = process.communicate(timeout=HANGS + (last - first) / 20)
            except subprocess.TimeoutExpired:
                process.kill()
                out, errors = process.communicate()
            last_note = os.pread(notes.fileno(), 100, 0).decode().strip()
        findings += out.decode().splitlines()
        if last_note == "done" and process.returncode == 0:
            return findings
        findings.append(f"{last_note} ended the process with {process.returncode}: {errors.decode()[-500:]}")
        number = last_note.split()[0] if last_note else ""
        if not number.isdecimal():  # it did not even begin
            return findings
        first = int(number) + 1
    return findings


def test_no_call_kills_hangs_or_changes_what_it_must_not() -> None:
    for number in cases(8, 0.4):
        findings = walked(SEED, number * AT_ONCE, (number + 1) * AT_ONCE)
        assert not findings, "\n".join([*findings, f"repeat: python {WALKER} {SEED} NUMBER NUMBER+1"])


def test_threads_that_share_their_tensors() -> None:
    for number in cases(2, 0.1):
        findings = walked(SEED, number * AT_ONCE, (number + 1) * AT_ONCE, "threads")
        assert not findings, "\n".join([*findings, f"repeat: python {WALKER} {SEED} FIRST LAST threads"])


def test_the_walker_sees_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(WALKER.parent))
    walker = importlib.import_module("walker")

    def changes(input):
        input.zero_()
        raise ValueError

    def asserts(input):
        raise AssertionError

    def lays(input):
        return input.new_tensor(input.stride())

    for function, said in ((changes, "changed an argument"), (asserts, "raised Assertion"), (lays, "depends on the")):
        findings = [walker.call("norch.planted", function, walker.Draw(str(number))) for number in range(40)]
        assert any(said in (finding or "") for finding in findings)
