"""A profile as a file of Chrome's trace format ("Trace Event Format", Google, 2016)."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from typing import Any

from .events import Event
from .session import Recorded

_CATEGORIES = {"operation": "cpu_op", "range": "user_annotation", "module": "python_function"}


def write_trace(path: str, events: list[Event], recorded: Recorded) -> None:
    """Writes the events, with times in microseconds from the start. Devices and memory have their own tracks."""
    trace = {"traceEvents": list(_entries(events, recorded)), "displayTimeUnit": "ms"}
    text = json.dumps(trace)
    if os.fspath(path).endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as packed:
            packed.write(text)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def _entries(events: list[Event], recorded: Recorded) -> Iterator[dict[str, Any]]:
    process = os.getpid()
    threads = list(dict.fromkeys(event.thread for event in events))
    yield _named("process_name", process, 0, "norch")
    for number, _ in enumerate(threads, 1):
        yield _named("thread_name", process, number, f"thread {number}")
    for event in events:
        yield {
            "ph": "X",
            "cat": _CATEGORIES[event.kind],
            "name": event.name,
            "pid": process,
            "tid": 1 + threads.index(event.thread),
            "ts": (event.start - recorded.begin) / 1e3,
            "dur": (event.end - event.start) / 1e3,
            "args": dict(_arguments(event)),
        }
    yield from _on_devices(events, recorded)
    live: dict[str, int] = {}
    for time, size, device_type, index in recorded.memory:
        device = "cpu" if device_type == 0 else f"cuda:{index}"
        live[device] = live.get(device, 0) + size
        args = {"bytes": live[device]}
        name = f"memory of {device} since the start"
        yield {"ph": "C", "name": name, "pid": process, "tid": 0, "ts": (time - recorded.begin) / 1e3, "args": args}


def _arguments(event: Event) -> Iterator[tuple[str, Any]]:
    if event.shapes:
        yield "Input Dims", [list(shape) for shape in event.shapes]
    pairs = (("Module", event.module), ("Line", event.stack), ("Backward of", event.node), ("Bytes", event.bytes))
    yield from ((name, value) for name, value in (*pairs, ("FLOPs", event.flops)) if value)
    if event.failed:
        yield "Failed", True


def _on_devices(events: list[Event], recorded: Recorded) -> Iterator[dict[str, Any]]:
    """The events of devices, each shown as a process. A device's clock starts at its first call."""
    first: dict[str, int] = {}
    for event in events:
        if event.device == "cpu" or event.device_start < 0:
            continue
        if event.device not in first:
            first[event.device] = event.start
            yield _named("process_name", event.device, 0, event.device)
        begin = (first[event.device] + event.device_start - recorded.begin) / 1e3
        where = {"pid": event.device, "tid": 0, "ts": begin, "dur": event.device_time / 1e3}
        yield {"ph": "X", "cat": "kernel", "name": event.name, **where}


def _named(kind: str, process: Any, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
