"""Runs programs as python does: as the module __main__, with their arguments and their folder first in sys.path."""

from __future__ import annotations

import io
import os
import runpy
import sys
from types import ModuleType
from typing import Any


def _main(**names: Any) -> dict[str, Any]:
    """A new module __main__; child processes find it by its __file__."""
    module = ModuleType("__main__")
    vars(module).update(__builtins__=__builtins__, __annotations__={}, **names)
    sys.modules["__main__"] = module
    return vars(module)


def run_script(path: str, arguments: list[str]) -> None:
    """python path arguments ..."""
    sys.argv = [path, *arguments]
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        sys.path[0] = path
        runpy.run_path(path, run_name="__main__")
        return
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        raise SystemExit(f"python -m norch: can't open file {path!r}: {error.strerror}") from None
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    full = os.path.abspath(path)
    exec(
        compile(source, full, "exec", dont_inherit=True),
        _main(__file__=full, __spec__=None, __package__=None, __cached__=None),
    )


def run_module(name: str, arguments: list[str]) -> None:
    """python -m name arguments ..."""
    sys.argv = [name, *arguments]
    sys.path[0] = os.getcwd()
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def run_code(code: str, arguments: list[str]) -> None:
    """python -c code arguments ..."""
    sys.argv = ["-c", *arguments]
    sys.path[0] = ""
    exec(compile(code, "<string>", "exec", dont_inherit=True), _main(__spec__=None, __package__=None))
