"""A profiling session. C records library calls (csrc/python/profile.c), ops/linalg/lapack.py calls of NumPy and
SciPy. This file records the ranges of record_function() and of modules, and the line, module and backward() node of
each call."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

from .._binding.library import lib
from .._tensor.handle import next_seq
from ..autograd.engine import visit
from ..errors import PACKAGE, Error
from ..nn._watch import watching
from ..nn.module import Module
from ..ops.linalg.lapack import watchers

_VISIT = visit.__code__
SHAPES, MEMORY, DEVICE_TIME = 1, 2, 4  # flags of norch_profile_start


class Place(NamedTuple):
    """Where a call comes from. seq: its sequence number, in one order with nodes; node_seq and node: those of the node
    whose gradient is being computed, or 0 and ""."""

    seq: int
    thread: int
    module: str
    file: str
    line: int
    node_seq: int
    node: str


class Range(NamedTuple):
    """A named interval: a record_function(), a call of a module, or a step."""

    name: str
    kind: str
    thread: int
    start: int
    end: int
    module: str


class Recorded(NamedTuple):
    """What a session has recorded."""

    rows: list[tuple[Any, ...]]
    memory: list[tuple[int, int, int, int]]
    complete: bool
    ranges: list[Range]
    entered: list[Place]  # the places where modules were entered or left
    begin: int
    end: int


class _Here(threading.local):
    """The stack of running modules of this thread: their names, and those of the submodules of the outermost."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.names: dict[int, str] = {}
        self.root: Module | None = None


class Session:
    """Records all threads from construction to stop(). Error if another session runs."""

    running: Session | None = None

    def __init__(self, flags: int, with_stack: bool, with_modules: bool):
        if Session.running is not None:
            raise Error("profile: another profile is running; stop it first")
        Session.running = self
        self.ranges: list[Range] = []
        self.entered: list[Place] = []
        self._others: list[tuple[Any, ...]] = []  # rows for calls of NumPy and SciPy
        self._here = _Here()
        self._with_stack = with_stack
        self._open = ExitStack()
        if with_modules:
            self._open.enter_context(watching(self._enter))
        place, shapes = self._place if with_stack or with_modules else None, flags & SHAPES

        def note(row: tuple[Any, ...]) -> None:
            self._others.append((*row[:-2], place and place(), row[-1] if shapes else None))

        watchers.append(note)
        self._open.callback(watchers.remove, note)
        lib.norch_profile_start(flags, place)
        self.begin = lib.norch_profile_time()

    def stop(self) -> Recorded:
        """Ends the session, and returns what it recorded."""
        end = lib.norch_profile_time()
        try:
            rows, memory, complete = lib.norch_profile_stop()
        finally:
            Session.running = None
            self._open.close()
        return Recorded(rows + self._others, memory, complete, self.ranges, self.entered, self.begin, end)

    def add(self, name: str, kind: str, start: int, module: str = "") -> None:
        """Adds a range that ends now."""
        self.ranges.append(Range(name, kind, threading.get_ident(), start, lib.norch_profile_time(), module))

    # ---- modules -------------------------------------------------------------------------------------------------

    def _enter(self, module: Module) -> Callable[[Any, bool], None]:
        state = self._here
        if not state.modules and state.root is not module:
            state.root, kind = module, type(module).__name__
            state.names = {id(below): f"{kind}.{name}" if name else kind for name, below in module.named_modules()}
        name = state.names.get(id(module)) or f"{state.modules[-1] if state.modules else ''}.{type(module).__name__}"
        state.modules.append(name)
        self._note_module(name)
        start = lib.norch_profile_time()

        def leave(result: Any, raised: bool) -> None:
            state.modules.pop()
            self.add(f"{name} ({type(module).__name__})" if "." in name else name, "module", start, name)
            self._note_module(state.modules[-1] if state.modules else "")

        return leave

    def _note_module(self, name: str) -> None:
        self.entered.append(Place(next_seq(), threading.get_ident(), name, "", 0, 0, ""))

    # ---- calls ---------------------------------------------------------------------------------------------------

    def _place(self) -> Place:
        """C calls it before each library call."""
        modules = self._here.modules
        frame: Any = sys._getframe(1)
        node: Any = None
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith(PACKAGE):
                break
            if code is _VISIT and node is None:
                node = frame.f_locals["node"]
            frame = frame.f_back
        file, line = ("", 0) if frame is None or not self._with_stack else (frame.f_code.co_filename, frame.f_lineno)
        node_seq, name = (0, "") if node is None else (int(node.seq), node.name())
        return Place(next_seq(), threading.get_ident(), modules[-1] if modules else "", file, line, node_seq, name)
