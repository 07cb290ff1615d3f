"""Averages: events with the same name added up, and their table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError
from .events import Event


class Average:
    """The sum of events with a common key, under PyTorch's names: key, count, times in microseconds, bytes, flops,
    input_shapes, stack, module."""

    def __init__(self, first: Event):
        self.key, self.kind, self.device = first.name, first.kind, first.device
        self.input_shapes = [list(shape) for shape in first.shapes]
        self.stack, self.module = [first.stack] if first.stack else [], first.module
        self.count = self.flops = self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.cpu_time_total = self.self_cpu_time_total = self.device_time_total = self.self_device_time_total = 0.0

    def add(self, event: Event) -> None:
        """Adds an event."""
        self.count += 1
        self.flops += event.flops
        self.cpu_time_total += (event.end - event.start) / 1e3
        self.self_cpu_time_total += event.self_time / 1e3
        self.device_time_total += event.device_time / 1e3
        self.self_device_time_total += event.self_device_time / 1e3
        if event.device == "cpu":
            self.cpu_memory_usage += event.bytes
            self.self_cpu_memory_usage += event.self_bytes
        else:
            self.device_memory_usage += event.bytes
            self.self_device_memory_usage += event.self_bytes
        self.device_memory_usage += event.device_bytes

    @property
    def cpu_time(self) -> float:
        """The mean over the events."""
        return self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        """The mean over the events."""
        return self.device_time_total / self.count

    def __repr__(self) -> str:
        return f"<{self.key}: {self.count} calls, {self.self_cpu_time_total:.1f} us>"


_SORTS = (
    "cpu_time cpu_time_total self_cpu_time_total device_time device_time_total self_device_time_total "
    "cpu_memory_usage self_cpu_memory_usage device_memory_usage self_device_memory_usage count flops"
).split()


class Averages(list[Average]):
    """The result of key_averages(): a list that table() prints."""

    def __init__(self, averages: list[Average], elapsed_ns: int, columns: set[str]):
        super().__init__(averages)
        self._elapsed, self._columns = elapsed_ns / 1e3, columns

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
        header: str | None = None,
    ) -> str:
        """The table as text: names, times, shares and calls. sort_by: largest first, by self_cpu_time_total,
        cpu_time_total, cpu_time, device_..., cuda_..., self_cpu_memory_usage, count, flops ...; None: in order of
        events. row_limit: the number of lines; -1: all. ArgumentError for another sort_by."""
        rows = list(self)
        if sort_by is not None:
            key = sort_by.replace("cuda_", "device_")
            if key not in _SORTS:
                raise ArgumentError(f"table: sort_by must be one of {', '.join(_SORTS)}, not {sort_by!r}")
            rows.sort(key=lambda row: getattr(row, key), reverse=True)
        shown = rows if row_limit < 0 else rows[:row_limit]
        columns = self._cells(shown, max_name_column_width)
        widths = [max(map(len, column)) for column in columns]
        rule = "  ".join("-" * width for width in widths)
        lines = [rule] if header is None else [header, rule]
        for i, cells in enumerate(zip(*columns)):
            lines.append(
                "  ".join(
                    cell.ljust(width) if column[0] in _LEFT else cell.rjust(width)
                    for cell, width, column in zip(cells, widths, columns)
                ).rstrip()
            )
            if i == 0:
                lines.append(rule)
        lines += [rule, f"Self CPU time total: {_time(sum(row.self_cpu_time_total for row in self))}"]
        if "device" in self._columns:
            lines.append(f"Self CUDA time total: {_time(sum(row.self_device_time_total for row in self))}")
        if len(shown) < len(rows):
            lines.append(f"{len(rows) - len(shown)} rows more")
        return "\n".join([*lines, f"Time from start to stop: {_time(self._elapsed)}"])

    def _cells(self, rows: list[Average], width: int) -> list[list[str]]:
        cpu = sum(row.self_cpu_time_total for row in self) or 1.0
        device = sum(row.self_device_time_total for row in self) or 1.0
        columns: list[tuple[str, str, Callable[[Any], str]]] = [
            ("Name", "", lambda row: _cut(row.key, width)),
            ("Self CPU %", "", lambda row: f"{100 * row.self_cpu_time_total / cpu:.1f} %"),
            ("Self CPU", "", lambda row: _time(row.self_cpu_time_total)),
            ("CPU total", "", lambda row: _time(row.cpu_time_total)),
            ("CPU time avg", "", lambda row: _time(row.cpu_time)),
            ("Self CUDA %", "device", lambda row: f"{100 * row.self_device_time_total / device:.1f} %"),
            ("Self CUDA", "device", lambda row: _time(row.self_device_time_total)),
            ("CUDA total", "device", lambda row: _time(row.device_time_total)),
            ("CPU Mem", "memory", lambda row: byte_text(row.cpu_memory_usage)),
            ("CUDA Mem", "device memory", lambda row: byte_text(row.device_memory_usage)),
            ("# of Calls", "", lambda row: str(row.count)),
            ("Total FLOPs", "flops", lambda row: f"{row.flops:,}" if row.flops else "--"),
            ("Input Shapes", "shapes", lambda row: str(row.input_shapes)),
            ("Module", "module", lambda row: row.module),
            ("Source Location", "stack", lambda row: ", ".join(row.stack)),
        ]
        return [
            [title, *map(cell, rows)]
            for title, needs, cell in columns
            if all(need in self._columns for need in needs.split())
        ]

    def __str__(self) -> str:
        return self.table()


_LEFT = ("Name", "Input Shapes", "Module", "Source Location")


def _cut(text: str, width: int) -> str:
    return text if width < 4 or len(text) <= width else text[: width - 3] + "..."


def _time(us: float) -> str:
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def byte_text(count: int) -> str:
    """A size as text: 1536 as "1.5 KiB"."""
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{count} B" if unit == "B" else f"{size:.2f} {unit}"


def averaged(events: list[Event], by_shape: bool, by_stack: bool, by_module: bool) -> list[Average]:
    """Adds up events with the same name, kind and further keys, in the order of the first of each."""
    averages: dict[Any, Average] = {}
    for event in events:
        key = (
            *(event.name, event.kind, event.device, event.shapes if by_shape else None),
            *(event.stack if by_stack else None, event.module if by_module else None),
        )
        if key not in averages:
            averages[key] = Average(event)
        averages[key].add(event)
    for average in averages.values():
        average.stack, average.module = average.stack if by_stack else [], average.module if by_module else ""
        average.input_shapes = average.input_shapes if by_shape else []
    return list(averages.values())
