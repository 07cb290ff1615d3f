"""The target of save(): a temporary file that replaces the old file when it is complete."""

from __future__ import annotations

import contextlib
import io
import os
from typing import Any, Protocol


class Parts(Protocol):
    """The contents of a file, checked and ready to be written."""

    def write_to(self, file: Any) -> None:
        """Writes all of it to something with write(), which takes all that it is given."""


def write(parts: Parts, f: Any) -> None:
    """Writes parts to f, a path or something to write to."""
    if isinstance(f, io.RawIOBase):  # which may write less than it is given
        buffered = io.BufferedWriter(f)
        try:
            parts.write_to(buffered)
            buffered.flush()
        finally:
            _detach(buffered)
    elif hasattr(f, "write"):
        parts.write_to(f)
        if hasattr(f, "flush"):  # the program may read the file by its name while it is open
            f.flush()
    else:
        _write_at(parts, os.path.realpath(os.fsdecode(f)))


def _detach(buffered: Any) -> None:
    """Leaves the raw file open; what could not be written has raised already."""
    with contextlib.suppress(OSError):
        buffered.detach()


def _write_at(parts: Parts, path: str) -> None:
    """Writes a file beside path and renames it to path, so that a failure leaves the old file."""
    folder, exists = os.path.dirname(path), os.path.exists(path)
    beside = os.access(folder, os.W_OK | os.X_OK)
    if exists and not (os.path.isfile(path) and os.access(path, os.W_OK)):
        beside = False  # a device or a pipe is written to; what else it is open() says
    written = os.path.join(folder, f".norch-{os.urandom(8).hex()}") if beside else path
    try:
        with open(written, "xb" if beside else "wb") as file:
            parts.write_to(file)
        if beside:
            if exists:
                os.chmod(written, os.stat(path).st_mode & 0o7777)  # as open() would have left it
            os.replace(written, path)
    except BaseException:
        if beside and os.path.exists(written):
            os.remove(written)
        raise
