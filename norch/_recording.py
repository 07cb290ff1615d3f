"""The active recording of norch.capture in this thread, for modules that report to it (norch/program/)."""

from __future__ import annotations

import threading

from ._lib import lib
from ._typing import Any


class _Here(threading.local):
    tape: Any = None  # norch.program.tape.Tape; None: nothing records


here = _Here()


def unseen(what: str) -> None:
    """Says that what follows changes from call to call, where a recording would repeat it. Raises CaptureError
    while a strict recording is under way."""
    lib.norch_note_unseen(what)
