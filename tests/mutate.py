"""Plants bugs of one token in control code and lists those that no test notices: `make mutate`.

    make mutate                                        a sample of each group of files
    make mutate ARGS="norch/autograd -n 50 --seed 3"   a group, the number of its mutants, another sample
    make mutate ARGS="norch/nn/module.py:120"          every mutant of a line
    make mutate ARGS="norch/amp --tests tests/amp"     only with these tests
    NORCH_TEST_PART=sampled make mutate                with the tests of make test, not of make test-fast

A mutant negates a condition, exchanges `and` and `or`, leaves an operand of them out, exchanges comparisons (`<` with
`<=`, `is` with `is not`, `in` with `not in` ...), leaves an early return out, or exchanges 0 and 1, True and False.

The tests of make test-fast, and those that need PyTorch, run once, and each is recorded with the functions that it
calls; a library that is compiled for it tells those of C. For a mutant the tests that call its function run, those of
the folder of the same name first and of these the quickest, until one fails or takes ten times as long.

Python: a mutant is a fork of that process, where functions get the code objects of the mutated text. What survives and
runs at import is tried in a process that imports the mutated file.
C: in a copy of the sources the changed file is compiled, as by `make dev`. A mutant with the same code is none.

tests/mutants.txt lists survivors that change no behaviour, with the reason; they are not tried. The exit status is 1
if more than 5 % of the other mutants survive.
"""

from __future__ import annotations

import argparse
import ctypes
import filecmp
import functools
import gc
import importlib.machinery
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from mutants import ROOT, Mutant, found

# Groups of files, of which each has its own sample.
GROUPS = (
    "norch/autograd norch/program norch/amp norch/optim norch/nn/module.py,norch/nn/_state_dict.py,norch/nn/_hooks.py"
    " norch/sparse,norch/ops/_out.py csrc/program csrc/python,csrc/python/capture"
)
ACCEPTED = ROOT / "tests" / "mutants.txt"
ALLOWED = 0.05  # the part of mutants that may survive


# ---- running --------------------------------------------------------------------------------------------------------


def within(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object, and those of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from within(constant)


def key(code: types.CodeType) -> tuple[Any, ...]:
    return code.co_filename, code.co_qualname, code.co_firstlineno, code.co_varnames, tuple(code.co_positions())


class Runner:
    """A pytest plugin that records what each test calls, and then runs the mutants."""

    def __init__(self, mutants: list[Mutant], limit: float, library: Library | None) -> None:
        self.mutants, self.limit, self.library = mutants, limit, library
        self.files = {str(ROOT / mutant.path) for mutant in mutants}
        self.early: set[Any] = set()  # functions that run before the first test
        self.callers: dict[Any, list[Any]] = defaultdict(list)  # by file and line, or by the name of a function of C
        self.seconds: dict[Any, float] = {}
        self.passed: set[Any] = set()
        self.flaky: set[Any] = set()
        self.results: list[tuple[Mutant, str]] = []
        self.processes = Processes({"NORCH_MUTANT": "", "NORCH_LIBRARY": str(library.unchanged) if library else ""})

    def pytest_runtestloop(self, session: Any) -> bool:
        self.trace(None)
        for k, item in enumerate(session.items):
            self.record(item, session.items[k + 1] if k + 1 < len(session.items) else None)
        if session.testsfailed:
            say(f"{session.testsfailed} of {len(session.items)} tests fail without a bug, and tell nothing")
        session.testsfailed = 0
        gc.unfreeze()
        self.functions: dict[Any, list[types.FunctionType]] = defaultdict(list)
        things = gc.get_objects()
        self.caches = [thing for thing in things if type(thing) is functools._lru_cache_wrapper]
        for thing in things:
            if type(thing) is types.FunctionType and thing.__code__.co_filename in self.files:
                self.functions[key(thing.__code__)].append(thing)
        for mutant in self.mutants:
            began = time.perf_counter()
            outcome = self.outcome(session, mutant)
            self.results.append((mutant, outcome))
            say(f"{outcome:<40.40}{time.perf_counter() - began:6.1f} s  line {mutant.line}  {mutant}")
        return True

    def trace(self, called: set[Any] | None) -> None:
        """Notes the functions that are called from now on; None ends that."""

        def seen(frame: Any, event: str, _: Any) -> None:  # of a trace function: captures set a profile function
            if frame.f_code.co_filename in self.files:
                called.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

        function: Any = None if called is None else seen
        threading.settrace(function)
        sys.settrace(function)

    def record(self, item: Any, following: Any) -> None:
        """Runs a test, and files it under the functions that it calls if it passes."""
        called: set[Any] = set()
        failed, began = item.session.testsfailed, time.process_time()
        self.trace(called)
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        finally:
            self.trace(None)
        self.seconds[item] = time.process_time() - began
        if self.library:
            called |= self.library.called()
        if item.session.testsfailed == failed:
            self.passed.add(item)
            for one in called:
                self.callers[one].append(item)

    def outcome(self, session: Any, mutant: Mutant) -> str:
        """The test that fails, or why none does."""
        path = str(ROOT / mutant.path)
        lines = range(mutant.lines[0], mutant.lines[1] + 1)
        places = [mutant.function] if mutant.path.endswith(".c") else [(path, line) for line in lines]
        callers = {item for place in places for item in self.callers.get(place, ())}
        if mutant.path.endswith(".c"):
            assert self.library
            if mutant.function not in self.library.names.values():  # a macro makes the name of the function
                callers = self.passed
            with self.library.planted(mutant) as wrong:
                return wrong or self.in_a_process(mutant, callers, NORCH_LIBRARY=str(self.library.changed))
        # What a profile function calls is not traced: it has the tests of its file, or of its folder.
        callers = callers or {item for place, them in self.callers.items() if place[0] == path for item in them}
        callers = callers or self.passed
        try:
            replaced = self.replaced(mutant)
        except (SyntaxError, ValueError) as error:
            return f"invalid: {error}"
        outcome = self.outcome_of(session, self.sorted(mutant, callers), replaced) if replaced else "survived"
        is_early = not self.early.isdisjoint(places)
        if outcome != "survived" or (callers and replaced and not is_early):
            return outcome
        return self.in_a_process(mutant, self.passed if is_early else callers, NORCH_MUTANT=f"{path}\n{mutant.text()}")

    def in_a_process(self, mutant: Mutant, items: set[Any], **env: str) -> str:
        """The outcome of these tests, as many as the limit allows, in a process with these variables."""
        tests = self.sorted(mutant, items)
        tests = tests[: bisect(list(accumulate(self.seconds[item] for item in tests)), self.limit) + 1]
        names = dict.fromkeys(item.nodeid.partition("[")[0] for item in tests)
        return self.processes.outcome([*names], 3 * self.limit, **env) if names else "no test"

    def sorted(self, mutant: Mutant, items: set[Any]) -> list[Any]:
        """Tests in the order in which they are tried."""
        folder = f"tests/{mutant.path.split('/')[1]}/"
        return sorted(
            items - self.flaky, key=lambda item: (not item.nodeid.startswith(folder), self.seconds[item], item.nodeid)
        )

    def outcome_of(self, session: Any, tests: list[Any], replaced: list[Any]) -> str:
        failed = self.fork(session, tests, replaced)
        while isinstance(failed, int) and failed >= 0 and self.fork(session, [tests[failed]], []) is not None:
            self.flaky.add(tests.pop(failed))  # fails in a fork without the bug too
            failed = self.fork(session, tests, replaced)
        if failed is None:
            return "survived"
        return "killed: " + (tests[failed].nodeid.partition("/")[2] if failed >= 0 else "time or crash")

    def replaced(self, mutant: Mutant) -> list[tuple[types.FunctionType, types.CodeType]]:
        """The functions of the mutant's file that change, with their code."""
        path = str(ROOT / mutant.path)
        old, new = (
            compile(text, path, "exec", dont_inherit=True) for text in ((ROOT / mutant.path).read_text(), mutant.text())
        )
        pairs = list(zip(within(old), within(new)))
        return [
            (function, after)
            for before, after in pairs
            for function in self.functions[key(before)]
            if len(before.co_freevars) == len(after.co_freevars) and before != after and before.co_name == after.co_name
        ]

    def fork(self, session: Any, tests: list[Any], replaced: Any) -> int | None:
        """The index of the test that fails in a process that has these functions; -1 for too long or a crash."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                for number in (1, 2):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), number)
                for function, code in replaced:
                    function.__code__ = code
                for cache in self.caches:
                    cache.cache_clear()
                hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
                for k, item in enumerate(tests):
                    now = time.process_time()
                    if now > self.limit:
                        break
                    resource.setrlimit(resource.RLIMIT_CPU, (int(now + 5 + 10 * self.seconds[item]), hard))
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                    if session.testsfailed:
                        os.write(writing, b"%d" % k)
                        os._exit(0)
                os.write(writing, b"passed")
                os._exit(0)
            finally:
                os._exit(1)
        os.close(writing)
        end = time.monotonic() + 20 * self.limit  # two threads that wait for each other take no time of the processor
        while not os.waitpid(child, os.WNOHANG)[0]:
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                break
            time.sleep(0.005)
        with open(reading, "rb") as pipe:
            said = pipe.read()
        return None if said == b"passed" else int(said or -1)


def plant_as_told() -> None:
    """Lets imports read the text that NORCH_MUTANT has behind the file's path."""
    path, _, text = os.environ.get("NORCH_MUTANT", "").partition("\n")
    loader = importlib.machinery.SourceFileLoader
    read, stats = loader.get_data, loader.path_stats

    def get_data(self: Any, at: str) -> bytes:
        return text.encode() if at == path else read(self, at)

    def path_stats(self: Any, at: str) -> Any:
        if at == path:
            raise OSError("no compiled file is of this text")
        return stats(self, at)

    loader.get_data, loader.path_stats = get_data, path_stats  # type: ignore[method-assign]


class Processes:
    """Runs tests of make test-fast in processes whose variables of the environment plant a bug."""

    def __init__(self, clean: dict[str, str]) -> None:
        """clean: the variables without a bug."""
        program = "import sys, mutate, pytest; mutate.plant_as_told(); sys.exit(pytest.main(sys.argv[1:]))"
        self.command, self.clean = [sys.executable, "-c", program, *PYTEST, "-x", "-rfE"], clean
        self.env = {**os.environ, **clean, "PYTHONPATH": f"{ROOT}:{ROOT}/tests"}
        self.passes: dict[str, bool] = {}  # without a bug

    def run(self, tests: list[str], seconds: float, env: dict[str, str]) -> tuple[int, list[str]]:
        """The exit status, and the tests that fail, of which there is one at most. seconds: of the processor."""

        def limited() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds),) * 2)

        left_out = [word for name, passes in self.passes.items() if not passes for word in ("--deselect", name)]
        command, variables = [*self.command, *left_out, *tests], {**self.env, **env}
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=variables,
                capture_output=True,
                text=True,
                preexec_fn=limited,
                timeout=20 * seconds,
            )
        except subprocess.TimeoutExpired:
            return -1, []
        return done.returncode, re.findall(r"^(?:FAILED|ERROR) (tests/\S+)", done.stdout, re.M)

    def outcome(self, tests: list[str], seconds: float, **env: str) -> str:
        """The test that fails with these variables, but not without a bug; or "survived"."""
        while True:
            status, failing = self.run(tests, seconds, env)
            if not status or not failing:
                if status > 0 and self.run(tests[:1], seconds, self.clean)[0] not in (0, 1):
                    raise SystemExit(f"{tests[0]} does not run without a bug")
                return "killed: time or crash" if status else "survived"
            name = failing[0]
            if name not in self.passes:
                self.passes[name] = not self.run([name], seconds, self.clean)[0]
            if self.passes[name]:
                return "killed: " + name.partition("/")[2]


# ---- the library ----------------------------------------------------------------------------------------------------

# Notes calls, by -finstrument-functions; norch_calls() gives the functions, as distances from itself, and forgets them.
NOTES = """
#include <string.h>
enum { HALF = 1 << 23, MOST = 1 << 16 };
static char noted[2 * HALF];
static long calls[MOST], count;
long norch_calls(long *to);
#pragma GCC visibility push(hidden) // libc has functions of these names, which do nothing
void __cyg_profile_func_enter(void *function, void *from) {
    long at = (char *)function - (char *)norch_calls;
    (void)from;
    if (__atomic_exchange_n(&noted[at + HALF], 1, __ATOMIC_RELAXED)) return;
    calls[__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED)] = at;
}
void __cyg_profile_func_exit(void *function, void *from) { (void)function, (void)from; }
#pragma GCC visibility pop
long norch_calls(long *to) {
    long found = count;
    memcpy(to, calls, sizeof(long) * found);
    for (long i = 0; i < found; i++) noted[calls[i] + HALF] = 0;
    count = 0;
    return found;
}
"""


class Library:
    """The C library, compiled from a copy of the sources."""

    def __init__(self) -> None:
        self.tree = ROOT / "build" / "mutate"
        shutil.rmtree(self.tree / "csrc", ignore_errors=True)
        for part in ("csrc", "mk"):
            shutil.copytree(ROOT / part, self.tree / part, dirs_exist_ok=True)
        shutil.copy(ROOT / "Makefile", self.tree)
        self.changed = self.tree / "build" / "dev" / "libnorch.so"
        (self.tree / "notes.c").write_text(NOTES)
        subprocess.run(["cc", "-O2", "-fPIC", "-c", "notes.c"], cwd=self.tree, check=True)
        noting = "-finstrument-functions -finstrument-functions-exclude-file-list=/core/,/cpu/,/ops/"
        if not self.make("build/dev") or not self.make("build/noting", f"CFLAGS={noting}", "LDFLAGS=notes.o"):
            raise SystemExit("the library does not compile")
        self.unchanged = Path(shutil.copy(self.changed, self.tree / "unchanged.so"))
        noting = str(self.tree / "build" / "noting" / "libnorch.so")
        os.environ["NORCH_LIBRARY"] = noting  # of this process
        self.calls, self.places = ctypes.CDLL(noting).norch_calls, (ctypes.c_long * (1 << 16))()
        listed = subprocess.run(["nm", "--defined-only", noting], capture_output=True, text=True, check=True).stdout
        symbols = [(int(at, 16), name.partition(".")[0]) for at, _, name in map(str.split, listed.splitlines())]
        first = next(at for at, name in symbols if name == "norch_calls")
        self.names = {at - first: name for at, name in symbols}

    def make(self, build: str, *options: str) -> bool:
        command = ["make", "-s", "DEV=1", "NVCC=", f"PYTHON={sys.executable}", f"BUILD={build}", *options]
        return not subprocess.run([*command, f"{build}/libnorch.so"], cwd=self.tree, capture_output=True).returncode

    def called(self) -> set[str]:
        """The functions that were called since the last call of this one."""
        return {self.names[self.places[k]] for k in range(self.calls(self.places))}

    @contextmanager
    def planted(self, mutant: Mutant) -> Iterator[str]:
        """Compiles the bug; says why it is none."""
        (self.tree / mutant.path).write_text(mutant.text())
        try:
            if not self.make("build/dev"):
                yield "invalid: does not compile"
            else:
                yield "invalid: the same code" if filecmp.cmp(self.changed, self.unchanged, False) else ""
        finally:
            shutil.copy(ROOT / mutant.path, self.tree / mutant.path)
            (self.tree / "build/dev" / mutant.path.removeprefix("csrc/")).with_suffix(".o").unlink(missing_ok=True)


# ---- all of it ------------------------------------------------------------------------------------------------------


def say(text: str) -> None:
    """A line for the terminal, which pytest has taken."""
    os.write(TERMINAL, (text + "\n").encode())


TERMINAL = os.dup(1)
PYTEST = "-q -n 0 -p no:cacheprovider --hypothesis-seed=0 --timeout=0".split() + ["-m", "not slow"]


def accepted() -> dict[str, str]:
    """The survivors that tests/mutants.txt explains: `path:function: old -> new  # reason`."""
    lines = [line for line in ACCEPTED.read_text().splitlines() if line and not line.startswith("#")]
    return {mutant.strip(): reason.strip() for mutant, _, reason in (line.partition("  # ") for line in lines)}


def main() -> int:
    parser = argparse.ArgumentParser(description="Plants bugs of one token, and lists those that no test notices.")
    parser.add_argument("groups", nargs="*", default=GROUPS.split(), help=f"(default: {GROUPS})")
    parser.add_argument("-n", type=int, default=40, help="mutants of each group (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", help="files and folders of tests, in place of all")
    parser.add_argument("--limit", type=float, default=30, help="seconds of tests for a mutant (default: %(default)s)")
    options = parser.parse_args()
    reasons, draw = accepted(), random.Random(options.seed)
    samples = [draw.sample(them, min(options.n, len(them))) for them in map(found, options.groups)]
    mutants = [mutant for them in samples for mutant in sorted(them) if str(mutant) not in reasons]
    library = Library() if any(mutant.path.endswith(".c") for mutant in mutants) else None
    runner = Runner(mutants, options.limit, library)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        runner.trace(runner.early)
        pytest.main([*PYTEST, *(options.tests or "").split()], plugins=[runner])
        os.dup2(TERMINAL, 1)
    return report(runner.results, sum(map(len, samples)) - len(mutants))


def report(results: list[tuple[Mutant, str]], explained: int) -> int:
    """Prints what survived, and how many by folder; the exit status."""
    tried = [(mutant, outcome) for mutant, outcome in results if not outcome.startswith("invalid")]
    survived = [(mutant, outcome) for mutant, outcome in tried if not outcome.startswith("killed")]
    print(f"\n{explained} in tests/mutants.txt, {len(results) - len(tried)} without effect on the code")
    folders = [[str(Path(mutant.path).parent) for mutant, _ in them] for them in (tried, survived)]
    for folder in dict.fromkeys(folders[0]):
        print(f"{folder}: {folders[1].count(folder)} of {folders[0].count(folder)} survived")
    print(f"{len(survived)} of {len(tried)} survived")
    for mutant, outcome in survived:
        print(f"{mutant}  # {outcome}, line {mutant.line}")
    return int(len(survived) > ALLOWED * len(tried))


if __name__ == "__main__":
    os.chdir(ROOT)
    os.environ.setdefault("NORCH_TEST_PART", "fast")
    os.environ.setdefault("NORCH_TEST_TORCH", "1")
    os.environ["OMP_NUM_THREADS"] = "1"  # PyTorch's threads do not outlive a fork, which would wait for them
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    ctypes.CDLL(None).setpriority(0, 0, 15)  # other work goes first
    sys.exit(main())
