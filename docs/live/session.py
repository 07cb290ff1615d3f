"""Runs the cells and the exercises of a page: in Pyodide, in the page's worker (static/live/worker.js)."""

from __future__ import annotations

import ast
import builtins
import io
import linecache
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

_MOST = 100_000  # characters that a page shows of a statement


class _Output(io.TextIOBase):
    """What is printed, line by line; it belongs to the statement that runs, whose last line is `line`."""

    def __init__(self, show: Callable[[int, str, bool], object]):
        self.show = show
        self.begin(1)

    def begin(self, line: int) -> None:
        self.line, self.text, self.count = line, "", 0

    def write(self, text: str) -> int:
        self.text += text
        if "\n" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        if self.text and self.count < _MOST:
            self.count += len(self.text)
            self.show(self.line, self.text if self.count < _MOST else "... and more\n", False)
        self.text = ""


class Session:
    """The names of a page, which its cells share. `show(line, text, error)` is called with all that comes out, and the
    last line of the statement that it comes from."""

    def __init__(self, show: Callable[[int, str, bool], object]):
        self.output = _Output(show)
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def run(self, name: str, source: str, at_prompt: bool) -> bool:
        """Runs a cell; whether all of it went well. At a prompt the value of each statement is shown, and those after
        an exception run too; elsewhere, as in a notebook, the value of the last one is."""
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        try:
            statements = ast.parse(source, name).body
        except SyntaxError as error:
            self._explain(error, name, error.lineno or 1)
            return False
        well = True
        with redirect_stdout(self.output), redirect_stderr(self.output):
            for statement in statements:
                self.output.begin(statement.end_lineno or 1)
                try:
                    if at_prompt or statement is statements[-1]:
                        exec(compile(ast.Interactive([statement]), name, "single"), self.names)
                    else:
                        exec(compile(ast.Module([statement], []), name, "exec"), self.names)
                except BaseException as error:
                    self._explain(error, name, self.output.line)
                    well = False
                    if not at_prompt:
                        break
                self.output.flush()
        return well

    def check(self, name: str, source: str, check: str) -> bool:
        """Runs an exercise and its check in names of their own; whether it is solved. What the check finds is shown as
        a sentence, other exceptions as tracebacks."""
        text = source.rstrip() + "\n\n\n" + check
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        self.output.begin(source.count("\n") + 1)
        with redirect_stdout(self.output), redirect_stderr(self.output):
            try:
                exec(compile(text, name, "exec"), {"__name__": "__main__"})
            except (AssertionError, NotImplementedError) as error:
                self.output.flush()
                self.output.show(self.output.line, f"{error}\n", True)
            except BaseException as error:
                self._explain(error, name, self.output.line)
            else:
                self.output.flush()
                return True
        return False

    def _explain(self, error: BaseException, name: str, line: int) -> None:
        """A traceback from the cell on; of a text that could not be parsed none."""
        if isinstance(error, ModuleNotFoundError):
            error.add_note("A page has no packages but norch and Python's own.")
        said = traceback.TracebackException.from_exception(error)
        frames = list(said.stack)
        while frames and frames[0].filename != name:
            del frames[0]
        said.stack = traceback.StackSummary.from_list(frames)
        self.output.flush()
        self.output.show(line, "".join(said.format()), True)


def _no_input(*_: object) -> str:
    raise OSError("input: a page cannot be asked; write the value into the cell")


def prepare() -> None:
    """Lets the chapters' programs run where there are neither processes nor threads."""
    import compiler

    builtins.input = _no_input
    compiler.install()
