"""Anomaly mode: a NaN in a gradient raises Error, which names the operation and the line that called it. It is for
debugging: every gradient is checked, and every node saves a stack.

It costs nothing while off: csrc/python/node.c tests one bit of the modes (csrc/python/modes.c) when it makes a node,
and the engine looks for the check once per walk.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence

from .._package.typing import Any
from .._tensor.handle import Handle
from ..errors import Error, frame_of_user
from .grad_mode import Guard, no_grad
from .grad_mode import mode as modes
from .node import Node


def _stack_of_call() -> Any:
    """The stack of the user's call, a traceback.StackSummary."""
    import traceback  # slow to import

    frame = frame_of_user(sys._getframe(1))
    stack = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False)
    stack.reverse()
    return stack


def _check(node: Node, parts: Sequence[Any]) -> Sequence[Any]:
    for i, part in enumerate(parts):
        if not isinstance(part, Handle):
            continue
        with no_grad():
            count = int(part.isnan().sum())  # type: ignore[attr-defined]
        if count:
            stack = getattr(node, "_stack", None)
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


class _Mode:
    """Saves the stack with a new node. check: checks the gradients from a node, or None."""

    def __init__(self, check: Callable[[Node, Sequence[Any]], Sequence[Any]] | None):
        self.check = check

    def __call__(self) -> Any:
        return _stack_of_call()


_CHECKING, _TRACING = _Mode(_check), _Mode(None)


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on.

    >>> norch.is_anomaly_enabled()
    False
    """
    return modes.anomaly is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode is on and checks for NaNs.

    >>> norch.is_anomaly_check_nan_enabled()
    False
    """
    return modes.anomaly is _CHECKING


class set_detect_anomaly(Guard):  # PyTorch's name
    """Turns anomaly mode on or off, for all threads: at once, or until the end of a `with`.

    While it is on, a gradient that becomes NaN in backward() raises Error. It names the operation and, if the mode was
    on in forward, the line that called it. check_nan=False lets NaNs pass.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self._restores = [functools.partial(setattr, modes, "anomaly", modes.anomaly)]
        modes.anomaly = (_CHECKING if check_nan else _TRACING) if mode else None

    def __enter__(self) -> None:
        pass


set_anomaly_enabled = set_detect_anomaly  # the name in norch


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
        self._restores = []

    def __enter__(self) -> None:
        self._restores.append(functools.partial(setattr, modes, "anomaly", modes.anomaly))
        modes.anomaly = _CHECKING if self.check_nan else _TRACING
