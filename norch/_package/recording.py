"""The trace of norch.capture that is under way in this thread, for modules that report to it (norch/program/)."""

from __future__ import annotations

import threading

from .._binding.library import lib
from .typing import Any


class _Here(threading.local):
    trace: Any = None  # norch.program.trace.Trace; None: nothing is traced


here = _Here()
traced = False  # whether any function was traced in this process


def unseen(reason: str) -> None:
    """Tells the recording that is under way that it cannot repeat what follows, in words for the user. Raises
    CaptureError if it is strict."""
    lib.norch_note_unseen(reason)
