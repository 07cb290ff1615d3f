"""A line search for the strong Wolfe conditions: the loss must fall enough, and its slope must flatten (Nocedal and
Wright, "Numerical Optimization", 2006, algorithms 3.5 and 3.6).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ...tensor import Tensor


class Point(NamedTuple):
    """A point on the line: its distance t, and the loss, directional derivative and gradient there."""

    t: float
    loss: float
    slope: float
    gradient: Tensor


def cubic(a: Point, b: Point, least: float, most: float) -> float:
    """The minimum of the cubic through the losses and slopes of a and b (equation 3.59 there), within bounds."""
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t:
        return least
    d = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d * d - a.slope * b.slope
    if not square >= 0:
        return (least + most) / 2
    root = math.sqrt(square)
    rise, bend = b.slope + root - d, b.slope - a.slope + 2 * root
    if bend == 0:  # a straight line
        return least if rise > 0 else most
    return min(max(b.t - (b.t - a.t) * (rise / bend), least), most)


def strong_wolfe(
    at: Callable[[float], Point], start: Point, t: float, reach: float, most: int, tolerance: float = 1e-9
) -> tuple[Point, int]:
    """Searches a point that satisfies the strong Wolfe conditions. Returns the point and the number of calls of at(t),
    at most `most` + 1. t is the first length to try, reach the largest element of the direction. The search stops at
    intervals in which no parameter moves by tolerance.
    """

    def falls_short(point: Point) -> bool:
        return point.loss > start.loss + 1e-4 * point.t * start.slope

    def is_flat(point: Point) -> bool:
        return abs(point.slope) <= -0.9 * start.slope

    # Bracket: longer steps, until an interval contains a minimum (algorithm 3.5).
    before, now, calls = start, at(t), 1
    while calls <= most:
        if falls_short(now) or (calls > 2 and now.loss >= before.loss):
            break
        if is_flat(now):
            return now, calls
        if now.slope >= 0:
            break
        before, now = now, at(cubic(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10))
        calls += 1
    else:
        before = start
    ends = [before, now]
    low = _lower(ends)
    # Zoom: smaller intervals (algorithm 3.6).
    at_end = False
    while calls <= most and abs(ends[1].t - ends[0].t) * reach >= tolerance:
        left, right = sorted(end.t for end in ends)
        t, margin = cubic(ends[0], ends[1], left, right), 0.1 * (right - left)
        if min(right - t, t - left) >= margin:
            at_end = False
        elif at_end or not left < t < right:  # twice near an end: move a tenth of the interval away from it
            t, at_end = (right - margin if right - t < t - left else left + margin), False
        else:
            at_end = True
        now = at(t)
        calls += 1
        if falls_short(now) or now.loss >= ends[low].loss:
            ends[1 - low] = now
            low = _lower(ends)
            continue
        if is_flat(now):
            return now, calls
        if now.slope * (ends[1 - low].t - ends[low].t) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = now
    return ends[low], calls


def _lower(ends: list[Point]) -> int:
    """The end with the smaller loss; the first if the losses are equal, as in PyTorch."""
    return 0 if ends[0].loss <= ends[1].loss else 1
