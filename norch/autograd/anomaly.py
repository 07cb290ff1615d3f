"""Anomaly mode: a NaN in a gradient raises Error, which names the operation and the line that called it. For
debugging: it checks every gradient, and saves the stack with every node.

It costs nothing while off. The engine reads ``check`` once a walk. The stack travels in the sequence number of a node:
while the mode is on, next_seq() is replaced by a function whose numbers carry it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence

from .._package.guard import Guard
from .._package.typing import Any
from .._tensor import handle as _handle
from .._tensor.handle import Handle
from ..errors import Error, frame_of_user
from .grad_mode import no_grad
from .node import Node

# Checks the gradients from a node; None while the mode is off, or on with check_nan=False.
check: Callable[[Node, Sequence[Any]], Sequence[Any]] | None = None

_plain_next_seq = _handle.next_seq
_on = False


class _TracedSeq(int):
    """A sequence number with the stack of the call of next_seq()."""

    stack: Any  # a traceback.StackSummary


def _traced_next_seq() -> int:
    seq = _TracedSeq(_plain_next_seq())
    frame = frame_of_user(sys._getframe(1))
    import traceback  # late, as it takes a while to import

    seq.stack = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False)
    seq.stack.reverse()
    return seq


def _check(node: Node, parts: Sequence[Any]) -> Sequence[Any]:
    for i, part in enumerate(parts):
        if not isinstance(part, Handle):
            continue
        with no_grad():
            count = int(part.isnan().sum())  # type: ignore[attr-defined]
        if count:
            stack = getattr(node.seq, "stack", None)
            where = (
                "it was recorded here:\n" + "".join(stack.format()).rstrip()
                if stack
                else "it was recorded while the mode was off, so its line is unknown"
            )
            raise Error(
                f"detect_anomaly: Function {node.name()!r} returned nan values in its {i}th output, {count} in shape "
                f"{tuple(part.shape)}; {where}"
            )
    return parts


def _switch(on: bool, check_nan: bool) -> None:
    global check, _on
    check = _check if on and check_nan else None
    _on = on
    both = (_plain_next_seq, _traced_next_seq)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "norch" and getattr(module, "next_seq", None) in both:
            module.next_seq = both[on]  # type: ignore[attr-defined]


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return _on


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode is on and checks for NaNs."""
    return check is not None


class set_detect_anomaly(Guard):  # PyTorch's name
    """Turns anomaly mode on or off, for all threads: at once, or until the end of a `with`.

    While it is on, a gradient that becomes NaN in backward() raises Error. It names the operation and, if the mode was
    on in forward, the line that called it. check_nan=False lets NaNs pass.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self._set(bool(mode), check_nan)

    def __enter__(self) -> None:
        pass

    def _set(self, on: bool, check_nan: bool) -> None:
        before = _on, check is not None
        self._restores = [functools.partial(_switch, *before)]
        try:
            _switch(on, check_nan)
        except BaseException:  # an asynchronous one, half way
            _switch(*before)
            raise


class detect_anomaly(set_detect_anomaly):
    """Anomaly mode until the end of a `with`.

    >>> x = norch.zeros(1, requires_grad=True)
    >>> with norch.autograd.detect_anomaly():
    ...     (x / x).sum().backward()
    Traceback (most recent call last):
    norch.errors.Error: detect_anomaly: Function 'DivBackward' returned nan values in its 1th output, ...
    """

    def __init__(self, check_nan: bool = True):
        self.check_nan = check_nan

    def __enter__(self) -> None:
        self._set(True, self.check_nan)
