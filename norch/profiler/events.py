"""Event: a library call, or a range; events_of() makes them from a Session."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from ..program.listing import _named
from .session import Place, Recorded

_COPIES = {-1: "copy to host", -2: "copy from host"}


def call_name(family: int | str, op: int) -> str:
    """The name of a call, given by the numbers that norch_profile_stop() reports; a name is returned as it is."""
    if isinstance(family, str):
        return family
    return _COPIES.get(family) or _named(family, op)


class Event:
    """A call of the library or, as its kind says, a "range" of record_function() or the call of a "module".

    name             of the operation or the range
    thread           its threading.get_ident()
    start, end       nanoseconds on one clock; self_time: without the events inside
    device           such as "cpu" or "cuda:0"
    device_start     of a CUDA call: nanoseconds after the device's first one; -1: unknown
    device_time      its time there; of a range: of all calls in it. self_device_time: of a call only
    bytes            allocated for results; of a copy: copied. Of a range: of the CPU calls in it;
                     device_bytes: of the others
    flops            of products, convolutions and attention: two for each multiply-add
    shapes           of the tensors that it read, if record_shapes
    module           the path of the calling module, if with_modules; stack: "file:line" of the innermost line of
                     the user's program, if with_stack
    node             in backward: the node whose gradient was computed; module and stack are then those of the last
                     forward call before the node was recorded
    failed           whether it raised
    children         the events inside
    """

    __slots__ = (
        *("name", "kind", "thread", "start", "end", "self_time", "device", "device_start", "device_time", "bytes"),
        *("self_device_time", "self_bytes", "device_bytes", "flops", "shapes", "module", "stack", "node", "failed"),
        "children",
    )

    def __init__(self, name: str, kind: str, thread: int, start: int, end: int, module: str = ""):
        self.name, self.kind, self.thread, self.start, self.end, self.module = name, kind, thread, start, end, module
        self.self_time = end - start
        self.device, self.device_start, self.stack, self.node, self.failed = "cpu", -1, "", "", False
        self.device_time = self.self_device_time = self.bytes = self.self_bytes = self.device_bytes = self.flops = 0
        self.shapes: tuple[tuple[int, ...], ...] = ()
        self.children: list[Event] = []

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}: {(self.end - self.start) / 1e3:.1f} us>"


def events_of(recorded: Recorded, with_flops: bool, activities: Iterable[str]) -> list[Event]:
    """All events, by start. Events inside others are also their children."""
    wanted = set(activities)
    events = [Event(*timed) for timed in recorded.ranges]
    forward = _Forward(recorded)
    for row in recorded.rows:
        event = _event(row, forward)
        if "cpu" in wanted or event.device != "cpu":
            event.flops *= with_flops
            events.append(event)
    events.sort(key=lambda event: (event.start, -event.end))
    _nest(events)
    return events


def _event(row: tuple[Any, ...], forward: _Forward) -> Event:
    family, op, _, device_type, index, thread, start, end, size, products, failed, device_start, device_time = row[:13]
    place, shapes = row[13:]
    event = Event(call_name(family, op), "operation", thread, start, end)
    event.bytes = event.self_bytes = size
    event.flops, event.failed, event.shapes = 2 * products, bool(failed), shapes or ()
    event.device = "cpu" if device_type == 0 else f"cuda:{index}"
    event.device_start, event.device_time = device_start, device_time
    event.self_device_time = device_time
    if place is not None:
        origin = forward.origin(place) if place.node and not place.module else place
        event.node = place.node
        if origin is not None:
            event.module = origin.module
            event.stack = f"{os.path.basename(origin.file)}:{origin.line}" if origin.file else ""
    return event


class _Forward:
    """Finds the last call before a node of the graph was recorded. Calls of all threads share one order; between calls
    of two threads the node's call is unknown."""

    def __init__(self, recorded: Recorded):
        places = [row[13] for row in recorded.rows if row[13] is not None and not row[13].node]
        self.places: list[Place] = []
        lines: dict[int, tuple[str, int]] = {}  # the latest call of each thread
        for place in sorted([*places, *recorded.entered]):
            if place.file:
                lines[place.thread] = place.file, place.line
            file, line = lines.get(place.thread, ("", 0))
            self.places.append(place._replace(file=file, line=line))
        self.times = [place.seq for place in self.places]

    def origin(self, of: Place) -> Place | None:
        i = bisect_left(self.times, of.node_seq)
        if i == 0 or (i < len(self.places) and self.places[i].thread != self.places[i - 1].thread):
            return None
        return self.places[i - 1]


def _nest(events: list[Event]) -> None:
    """Makes events children of those in the same thread that contain them."""
    open_events: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        stack = open_events[event.thread]
        while stack and stack[-1].end < event.end:
            stack.pop()
        if stack:
            stack[-1].children.append(event)
            stack[-1].self_time -= event.end - event.start
        for outer in stack:
            outer.device_time += event.self_device_time
            if event.device == "cpu":
                outer.bytes += event.self_bytes
            else:
                outer.device_bytes += event.self_bytes
            outer.flops += event.flops
        if event.kind != "operation":
            stack.append(event)
