"""NORCH_TRACE=1 prints each operation to stderr as it runs: time, bytes, name, dtype, shapes and line of the
program."""

from __future__ import annotations

import sys
from typing import Any

from .._binding.library import lib
from ..dtype import DTYPES
from ..errors import frame_of_user
from ..ops.linalg.lapack import watchers
from .averages import byte_text
from .events import call_name


def start() -> None:
    """Starts printing the calls of all threads."""

    def tell(row: tuple[Any, ...]) -> None:
        family, op, dtype, device_type, index, _, begin, end, size, *_, shapes = row
        name = call_name(family, op)
        device = "" if device_type == 0 else f" cuda:{index}"
        where = ", ".join(str(tuple(shape)) for shape in shapes or ())
        frame = frame_of_user(sys._getframe(1))
        line = "" if frame is None else f"  {frame.f_code.co_filename}:{frame.f_lineno}"
        text = (
            f"norch: {(end - begin) / 1e3:>9.1f} us {byte_text(size):>11}  {name}{device} {DTYPES[dtype].name} {where}"
        )
        try:
            if sys.stderr is not None:
                print(text.rstrip() + line, file=sys.stderr)
        except (OSError, ValueError):  # stderr is closed; the program goes on without a trace
            pass

    lib.norch_profile_tell(tell)
    watchers.append(tell)
