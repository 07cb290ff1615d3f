"""``norch.utils.flop_counter``: how many floating-point operations run in a context, as the profiler counts them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ..profiler import profile

__all__ = ["FlopCounterMode"]


class FlopCounterMode:
    """Counts two operations for each multiply-add of products, convolutions and attention, forward and backward.

    mods has no effect, as modules are found as they are called. depth: how many levels of modules the table shows
    (None: all). display: prints the table at the end. custom_mapping is refused: there are no operations by PyTorch's
    names to map.

    >>> layer = norch.nn.Linear(3, 2)
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = layer(norch.ones(4, 3))
    >>> counter.get_total_flops()
    48
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        if custom_mapping:
            raise NotImplementedError("FlopCounterMode: custom_mapping maps operations of PyTorch, which norch has not")
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[str, int]] = {}

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts = {}
        self._profile = profile(with_flops=True, with_modules=True)
        self._profile.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._profile.__exit__(*error)
        counts: dict[str, dict[str, int]] = {"Global": defaultdict(int)}
        for event in self._profile.events():
            if event.kind != "operation" or not event.flops:
                continue
            parts = event.module.split(".") if event.module else []
            for place in ("Global", *(".".join(parts[: i + 1]) for i in range(len(parts)))):
                counts.setdefault(place, defaultdict(int))[event.name] += event.flops
        self.flop_counts = {place: dict(found) for place, found in counts.items()}
        if self.display and error[0] is None:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        """Of all operations."""
        return sum(self.flop_counts.get("Global", {}).values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """{"Global" or the path of a module, as "Net.layer": {operation: its count}}."""
        return self.flop_counts

    def get_table(self, depth: int | None = None) -> str:
        """A line for each module, with its count and its part of all."""
        depth = self.depth if depth is None else depth
        total, lines = self.get_total_flops(), []
        for place, counts in self.flop_counts.items():
            level = 0 if place == "Global" else place.count(".") + 1
            if depth is None or level <= depth:
                count = sum(counts.values())
                lines.append((" " * level + place, f"{count:,}", f"{100 * count / total if total else 0:.2f}%"))
        widths = [max(len(line[i]) for line in [("Module", "FLOP", "% Total"), *lines]) for i in range(3)]
        head = [("Module", "FLOP", "% Total"), tuple("-" * width for width in widths)]
        return "\n".join(
            f"{line[0]:{widths[0]}}  {line[1]:>{widths[1]}}  {line[2]:>{widths[2]}}" for line in [*head, *lines]
        )
