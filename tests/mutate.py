"""Plants bugs of one token in control code and lists those that no test notices: `make mutate`.

    make mutate                                        a sample of Python and of C
    make mutate ARGS="norch/autograd -n 50 --seed 3"   files, their number of mutants, another sample
    make mutate ARGS="norch/nn/module.py:120"          every mutant of a line
    make mutate ARGS="norch/amp --tests 'amp optim'"   only with the tests of these names
    NORCH_TEST_PART=sampled make mutate                with the tests of make test, not of make test-fast

A mutant negates a condition, exchanges `and` and `or`, leaves an operand of them out, exchanges comparisons (`<` with
`<=`, `is` with `is not`, `in` with `not in` ...), leaves an early return out, or exchanges 0 and 1, True and False.

Python: the tests of make test-fast run once, and each is recorded with the functions of norch that it calls. A mutant
is a fork of that process: functions get the code objects of the mutated text, and the tests that call them run, the
quickest first, until one fails. What survives is tried in a process that imports the mutated file, as what runs at
import, or is cached, does not run again in a fork; it has the same tests with all of their parameters.
C: in a copy of the sources the changed file is compiled, as by `make dev`, and the tests of make test-fast run.

tests/mutants.txt lists survivors that change no behaviour, with the reason. The exit status is 1 if more than 5 % of
the other mutants survive.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
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
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = (
    "norch/autograd norch/program norch/amp norch/optim norch/sparse norch/nn/module.py norch/ops/_out.py"
    " csrc/program csrc/python"
)
# Files of tests/ whose tests may notice a mutant, by the folder of its file.
TESTS = {
    "norch/autograd": "anomaly autograd checkpoint complex derivatives function functional grad_mode gradient_edge"
    " graphs halves hooks inplace mixed_derivatives needed_for_gradients node saved second vmap view_programs views",
    "norch/program": "capture compile saved_hooks vmap",
    "norch/amp": "amp grad_scaler capture compile optim",
    "norch/optim": "capture lr_find lr_resume lr_scheduler optim own_optim swa",
    "norch/nn": "error_notes hooks modules nn parametrize saving shared_memory",
    "norch/nn/_hooks": "modules private_modules hooks",
    "norch/nn/_watch": "epilogue fx private_modules summary",
    "norch/nn/quantization": "quantization",
    "norch/sparse": "construction sparse sparse_limits training",
    "norch/ops/_out": "out",
    "norch/distributed": "distributed differ",
    "csrc/program": "capture compile",
    "csrc/python": "amp capture dlpack getitem grad_mode lib profiler vmap",
    "": "conditions torch_behaviours",
}
ACCEPTED = ROOT / "tests" / "mutants.txt"
NO_MUTANTS = ("graph.c", "make_calls.py")  # of folders: what only devices run, and what runs in the build
ALLOWED = 0.05  # the part of mutants that may survive


class Mutant(NamedTuple):
    """Text of a file from `start` to `end` that becomes `put`; `old` and `new` are the lines without and with it."""

    path: str
    line: int
    function: str
    lines: tuple[int, int]  # of the outermost function
    start: int
    end: int
    put: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.function}: {self.old} -> {self.new}"

    def text(self) -> str:
        """The file with the bug."""
        text = (ROOT / self.path).read_text()
        return text[: self.start] + self.put + text[self.end :]


def planted(
    path: str, text: str, function: str, lines: tuple[int, int] | None, start: int, end: int, put: str
) -> Mutant:
    """The mutant that puts this text between two offsets."""
    begin, finish = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    old, new = (" ".join(x.split()) for x in (text[begin:finish], text[begin:start] + put + text[end:finish]))
    line = text.count("\n", 0, start) + 1
    return Mutant(path, line, function, lines or (line, line), start, end, put, old, new)


# ---- mutants of Python ----------------------------------------------------------------------------------------------

COMPARED = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}  # fmt: skip


class Finder(ast.NodeVisitor):
    """Collects the mutants of a file."""

    def __init__(self, path: str) -> None:
        self.path, self.text = path, (ROOT / path).read_text()
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.within: list[Any] = []
        self.mutants: list[Mutant] = []
        self.visit(ast.parse(self.text))

    def at(self, line: int, column: int) -> int:
        """The offset of a position, whose column counts bytes."""
        begin = self.starts[line - 1]
        return begin + len(self.text[begin : self.starts[line]].encode()[:column].decode())

    def span(self, node: Any) -> tuple[int, int]:
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def add(self, node: Any, new: str, span: tuple[int, int] | None = None) -> None:
        if not self.within:
            return  # a module's own statements run before any test
        start, end = span or self.span(node)
        outer = self.within[0]
        first = min([outer.lineno, *(d.lineno for d in getattr(outer, "decorator_list", ()))])
        name = ".".join(getattr(node, "name", "lambda") for node in self.within)
        self.mutants.append(planted(self.path, self.text, name, (first, outer.end_lineno), start, end, new))

    def function(self, node: Any) -> None:
        self.within.append(node)
        body = node.body if isinstance(node.body, list) else [node.body]
        for child in body:  # not its default values or annotations
            self.visit(child)
        self.within.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = function

    def condition(self, node: Any) -> None:
        test = node.test
        if not isinstance(test, (ast.Compare, ast.Constant)) or len(getattr(test, "ops", "")) > 1:
            start, end = self.span(test)
            self.add(test, f"(not ({self.text[start:end]}))")
        last = node.body[-1] if isinstance(node.body, list) and isinstance(node, ast.If) else None
        if isinstance(last, (ast.Return, ast.Continue)):
            self.add(last, "pass")
        self.generic_visit(node)

    visit_If = visit_While = visit_IfExp = condition

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        texts = [ast.unparse(value) for value in node.values]
        for left, right in zip(node.values, node.values[1:]):
            self.add(node, f" {other} ", self.gap(left, right, word))
        for k in range(len(texts)):
            self.add(node, "(" + f" {word} ".join(f"({text})" for text in texts[:k] + texts[k + 1 :]) + ")")
        self.generic_visit(node)

    def gap(self, left: Any, right: Any, word: str) -> tuple[int, int]:
        """Where an operator between two nodes stands, with its spaces."""
        start, end = self.span(left)[1], self.span(right)[0]
        found = re.search(rf"\s{word}\s", self.text[start:end])
        assert found
        return start + found.start(), start + found.end()

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for op, right in zip(node.ops, node.comparators):
            old, new = COMPARED[type(op)]
            self.add(node, f" {new} ", self.gap(left, right, old.replace(" ", r"\s")))
            left = right
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        other = {"0": "1", "1": "0", "True": "False", "False": "True"}.get(repr(node.value))
        if other:
            self.add(node, other)


# ---- mutants of C ---------------------------------------------------------------------------------------------------

C_TOKENS = re.compile(
    r"&&|\|\||==|!=|(?<![-<])<(?![<=])|<=(?!=)|(?<![->])>(?![>=])|>=|\b(?:true|false)\b|(?<![\w.])[01](?![\w.])"
)
C_OTHERS = {
    "&&": "||", "||": "&&", "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "true": "false",
    "false": "true", "0": "1", "1": "0",
}  # fmt: skip
C_HIDDEN = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\])+'|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M
)


def c_mutants(path: str) -> Iterator[Mutant]:
    """The mutants of a C file: in the bodies of functions, outside comments, strings and the preprocessor's lines."""
    text = (ROOT / path).read_text()
    plain = C_HIDDEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for function in re.finditer(
        r"^(?!typedef|struct|enum|static const)\w[^\n;{}]*?(\w+)\([^;{}]*\)\s*\{\n.*?^\}", plain, re.S | re.M
    ):
        begin, name = plain.index("{", function.start()), function[1]

        def made(start: int, end: int, new: str, name: str = name) -> Mutant:
            return planted(path, text, name, None, start, end, new)

        body = plain[begin : function.end()]
        for token in C_TOKENS.finditer(body):
            yield made(begin + token.start(), begin + token.end(), C_OTHERS[token[0]])
        for condition in re.finditer(r"\b(?:if|while) (?=\()", body):
            start = begin + condition.end()
            end = closing(plain, start)
            yield made(start, end, f"(!{text[start:end]})")
            word, parts = operands(text, start + 1, end - 1)
            for k in range(len(parts) if word else 0):
                yield made(start, end, "(" + f" {word} ".join(parts[:k] + parts[k + 1 :]) + ")")
            early = re.match(r"\s*(return\b[^;{}]*);", plain[end:])
            if early:
                yield made(end + early.start(1), end + early.end(1), "(void)0")


def closing(text: str, start: int) -> int:
    """Behind the parenthesis that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth:
            return at + 1
    raise ValueError("not closed")


def operands(text: str, start: int, end: int) -> tuple[str, list[str]]:
    """The operator of a conjunction or a disjunction, and its parts; one part if it is neither, or both."""
    parts, depth, begin, words = [], 0, start, set()
    for at in range(start, end):
        depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(text[at], 0)
        if not depth and text[at : at + 2] in ("&&", "||"):
            words.add(text[at : at + 2])
            parts.append(text[begin:at].strip())
            begin = at + 2
    return (words.pop(), [*parts, text[begin:end].strip()]) if len(words) == 1 else ("", [text[start:end]])


# ---- running Python's -----------------------------------------------------------------------------------------------


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

    def __init__(self, mutants: list[Mutant], limit: float) -> None:
        self.mutants, self.limit = mutants, limit
        self.files = {str(ROOT / mutant.path): mutant.path for mutant in mutants}
        self.callers: dict[tuple[str, int], list[Any]] = defaultdict(list)
        self.seconds: dict[Any, float] = {}
        self.passed: set[Any] = set()
        self.flaky: set[Any] = set()
        self.results: list[tuple[Mutant, str]] = []
        self.processes: Processes | None = None

    def pytest_runtestloop(self, session: Any) -> bool:
        for k, item in enumerate(session.items):
            self.record(item, session.items[k + 1] if k + 1 < len(session.items) else None)
        if session.testsfailed:
            say(f"{session.testsfailed} of {len(session.items)} tests fail without a bug, and tell nothing")
        session.testsfailed = 0
        gc.unfreeze()
        self.functions: dict[Any, list[types.FunctionType]] = defaultdict(list)
        for thing in gc.get_objects():
            if type(thing) is types.FunctionType and thing.__code__.co_filename in self.files:
                self.functions[key(thing.__code__)].append(thing)
        for mutant in self.mutants:
            began = time.perf_counter()
            outcome = self.outcome(session, mutant)
            self.results.append((mutant, outcome))
            took = time.perf_counter() - began
            say(f"{outcome:<40.40}{took:6.1f} s  line {mutant.line}  {mutant}")
        return True

    def record(self, item: Any, following: Any) -> None:
        """Runs a test, and files it under the functions that it calls if it passes."""
        called: set[tuple[str, int]] = set()

        def seen(frame: Any, event: str, _: Any) -> None:  # of a trace function: captures set a profile function
            if frame.f_code.co_filename in self.files:
                called.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

        failed, began = item.session.testsfailed, time.process_time()
        threading.settrace(seen)
        sys.settrace(seen)
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
        self.seconds[item] = time.process_time() - began
        if item.session.testsfailed == failed:
            self.passed.add(item)
            for one in called:
                self.callers[one].append(item)

    def outcome(self, session: Any, mutant: Mutant) -> str:
        """The test that fails, or why none does."""
        callers = [(place, them) for place, them in self.callers.items() if self.files[place[0]] == mutant.path]
        first, last = mutant.lines
        items = {item for (_, line), them in callers if first <= line <= last for item in them}
        # What a profile function calls is not traced: it has the tests of its file.
        items = items or {item for _, them in callers for item in them}
        tests = sorted(items - self.flaky, key=lambda item: self.seconds[item])
        try:
            replaced = self.replaced(mutant)
        except (SyntaxError, ValueError) as error:
            return f"invalid: {error}"
        outcome = self.outcome_of(session, tests, replaced) if tests and replaced else "no test"
        return self.imported(mutant, tests) if outcome in ("no test", "survived") else outcome

    def imported(self, mutant: Mutant, tests: list[Any]) -> str:
        """The outcome of these tests, or of all, in a process that imports the mutated file."""
        program = "import sys, mutate, pytest; mutate.plant_as_told(); sys.exit(pytest.main(sys.argv[1:]))"
        tests = tests or sorted(self.passed - self.flaky, key=lambda item: self.seconds[item])
        names = list(dict.fromkeys(item.nodeid.partition("[")[0] for item in tests))  # with all of their parameters
        if self.processes is None:
            clean = {"NORCH_MUTANT": "", "NORCH_TEST_PART": ""}
            self.processes = Processes([sys.executable, "-c", program], 20 * self.limit, clean)
        mutated = f"{ROOT / mutant.path}\n{mutant.text()}"
        return self.processes.outcome(names, NORCH_MUTANT=mutated, NORCH_TEST_PART="")

    def outcome_of(self, session: Any, tests: list[Any], replaced: list[Any]) -> str:
        failed = self.fork(session, tests, replaced)
        while isinstance(failed, int) and failed >= 0 and self.fork(session, [tests[failed]], []) is not None:
            self.flaky.add(tests.pop(failed))  # fails in a fork without the bug too
            failed = self.fork(session, tests, replaced)
        if failed is None:
            return "survived"
        return "killed: " + (
            tests[failed].nodeid.partition("/")[2] if failed >= 0 else {-1: "time", -2: "crash"}[failed]
        )

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
        """The index of the test that fails in a process that has these functions; -1 for too long, -2 for a crash."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                for number in (1, 2):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), number)
                for function, code in replaced:
                    function.__code__ = code
                began = time.process_time()
                resource.setrlimit(resource.RLIMIT_CPU, (int(began + 10 * self.limit),) * 2)
                for k, item in enumerate(tests):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                    if session.testsfailed:
                        os.write(writing, b"%d" % k)
                        os._exit(0)
                    if time.process_time() - began > self.limit:
                        break
                os.write(writing, b"passed")
                os._exit(0)
            finally:
                os._exit(1)
        os.close(writing)
        end = time.monotonic() + 100 * self.limit  # two threads that wait for each other take no time of the processor
        while not os.waitpid(child, os.WNOHANG)[0]:
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                os.close(reading)
                return -1
            time.sleep(0.005)
        with open(reading, "rb") as pipe:
            said = pipe.read()
        return None if said == b"passed" else int(said) if said else -2


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

    def __init__(self, command: list[str], seconds: float, clean: dict[str, str]) -> None:
        """clean: the variables without a bug."""
        self.env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/tests"}
        self.command = [*command, "-x", "-q", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider", "-rfE"]
        self.seconds, self.clean = seconds, clean
        self.passes: dict[str, bool] = {}  # without a bug

    def run(self, tests: list[str], env: dict[str, str]) -> tuple[int, list[str]]:
        """The exit status, and the tests that fail, of which there is one at most."""

        def limited() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(self.seconds),) * 2)

        left_out = [word for name, passes in self.passes.items() if not passes for word in ("--deselect", name)]
        command, variables = [*self.command, *left_out, *tests], {**self.env, **env}
        done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, preexec_fn=limited)
        return done.returncode, re.findall(r"^(?:FAILED|ERROR) (tests/\S+)", done.stdout, re.M)

    def outcome(self, tests: list[str], **env: str) -> str:
        """The test that fails with these variables, but not without a bug; or "survived"."""
        while True:
            status, failing = self.run(tests, env)
            if not status or not failing:
                if status > 0 and self.run(tests[:1], self.clean)[0] not in (0, 1):
                    raise SystemExit(f"{tests[0]} does not run without a bug")
                return "survived" if not status else "killed: time" if status < 0 else "killed: crash"
            name = failing[0]
            if name not in self.passes:
                self.passes[name] = not self.run([name], self.clean)[0]
            if self.passes[name]:
                return "killed: " + name.partition("/")[2]


# ---- running C's ----------------------------------------------------------------------------------------------------


def c_results(mutants: list[Mutant], seconds: float) -> Iterator[tuple[Mutant, str]]:
    """Each with the test that fails, or "survived"; seconds: of tests for each."""
    tree = ROOT / "build" / "mutate"
    shutil.rmtree(tree / "csrc", ignore_errors=True)
    for part in ("csrc", "mk"):
        shutil.copytree(ROOT / part, tree / part, dirs_exist_ok=True)
    shutil.copy(ROOT / "Makefile", tree)
    make = ["make", "-s", "DEV=1", "NVCC=", f"PYTHON={sys.executable}", "build/dev/libnorch.so"]
    subprocess.run(make, cwd=tree, check=True, stdout=subprocess.DEVNULL)
    library = tree / "build" / "dev" / "libnorch.so"
    unchanged = str(shutil.copy(library, tree / "unchanged.so"))
    processes = Processes([sys.executable, "-m", "pytest"], seconds, {"NORCH_LIBRARY": unchanged})
    for mutant in mutants:
        (tree / mutant.path).write_text(mutant.text())
        try:
            built = subprocess.run(make, cwd=tree, capture_output=True)
            if built.returncode:
                yield mutant, "invalid: does not compile"
                continue
            yield mutant, processes.outcome(tests_of([mutant]), NORCH_LIBRARY=str(library))
        finally:
            shutil.copy(ROOT / mutant.path, tree / mutant.path)


# ---- all of it ------------------------------------------------------------------------------------------------------


def say(text: str) -> None:
    """A line for the terminal, which pytest has taken."""
    os.write(TERMINAL, (text + "\n").encode())


TERMINAL = os.dup(1)


def tests_of(mutants: Iterable[Mutant]) -> list[str]:
    """The files of tests for the folders of these mutants."""
    words = {w for m in mutants for folder, names in TESTS.items() if m.path.startswith(folder) for w in names.split()}
    return sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").glob("*/test_*.py")
        if any(re.match(rf"test_{word}[_.]", path.name) for word in words)
    )


def accepted() -> dict[str, str]:
    """The survivors that tests/mutants.txt explains: `path:function: old -> new  # reason`."""
    lines = [line for line in ACCEPTED.read_text().splitlines() if line and not line.startswith("#")]
    return {mutant.strip(): reason.strip() for mutant, _, reason in (line.partition("  # ") for line in lines)}


def found(paths: Iterable[str]) -> list[Mutant]:
    """All mutants of files, folders and lines."""
    mutants = []
    for path in paths:
        name, _, line = path.partition(":")
        at = ROOT / name
        files = [at]
        if at.is_dir():
            files = sorted(one for one in (*at.glob("*.py"), *at.glob("*.c")) if one.name not in NO_MUTANTS)
        for name in (str(one.relative_to(ROOT)) for one in files):
            all_of_it = Finder(name).mutants if name.endswith(".py") else c_mutants(name)
            mutants += [m for m in all_of_it if line in ("", str(m.line))]
    return mutants


def main() -> int:
    parser = argparse.ArgumentParser(description="Plants bugs of one token, and lists those that no test notices.")
    parser.add_argument("paths", nargs="*", default=FILES.split(), help=f"(default: {FILES})")
    parser.add_argument("-n", type=int, default=300, help="mutants of Python (default: %(default)s)")
    parser.add_argument("-c", type=int, default=40, help="mutants of C (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", help="words of names of test files, in place of those of TESTS")
    parser.add_argument(
        "--limit", type=float, default=30, help="seconds of tests for a mutant of Python (default: %(default)s)"
    )
    options = parser.parse_args()
    if options.tests:
        TESTS.clear()
        TESTS[""] = options.tests
    mutants = found(options.paths)
    draw = random.Random(options.seed)
    python, c = ([m for m in mutants if m.path.endswith(end)] for end in (".py", ".c"))
    python, c = (draw.sample(them, min(n, len(them))) for them, n in ((python, options.n), (c, options.c)))
    results: list[tuple[Mutant, str]] = []
    if python:
        runner = Runner(sorted(python), options.limit)
        arguments = ["-q", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--timeout=0"]
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
            pytest.main([*arguments, *tests_of(python)], plugins=[runner])
            os.dup2(TERMINAL, 1)
        results += runner.results
    for mutant, outcome in c_results(sorted(c), 20 * options.limit) if c else ():
        results.append((mutant, outcome))
        say(f"{outcome:<40.40}  line {mutant.line}  {mutant}")
    return report(results)


def report(results: list[tuple[Mutant, str]]) -> int:
    """Prints what survived; the exit status."""
    reasons = accepted()
    tried = [
        (mutant, outcome)
        for mutant, outcome in results
        if not outcome.startswith("invalid") and str(mutant) not in reasons
    ]
    survived = [(mutant, outcome) for mutant, outcome in tried if not outcome.startswith("killed")]
    known = len(results) - len(tried)
    print(
        f"\n{len(results)} mutants: {known} invalid or in tests/mutants.txt, {len(survived)} of {len(tried)} survived"
    )
    for mutant, outcome in survived:
        print(f"{mutant}  # {outcome}, line {mutant.line}")
    return int(len(survived) > ALLOWED * len(tried))


if __name__ == "__main__":
    os.chdir(ROOT)
    os.environ.setdefault("NORCH_TEST_PART", "fast")
    os.environ["OMP_NUM_THREADS"] = "1"  # PyTorch's threads do not outlive a fork, which would wait for them
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    ctypes.CDLL(None).setpriority(0, 0, 15)  # other work goes first
    sys.exit(main())
