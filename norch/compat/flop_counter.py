"""``norch.utils.flop_counter``: counts the floating-point operations in a context, as the profiler does."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from typing import Any

from ..nn._watch import watching
from ..profiler import profile
from . import pytree
from .dispatch import TorchDispatchMode
from .operators import namespace

__all__ = ["FlopCounterMode"]


class FlopCounterMode:
    """Counts two operations for each multiply-add of products, convolutions and attention, forward and backward.

    Counts are listed by PyTorch's operators, torch.ops.aten.mm and the like. Products with vectors, recurrent layers
    and attention on the CPU, for which PyTorch has no formula, count too. mods has no effect: modules are noticed when
    they are called. depth: the levels of modules in the table (None: all). display: prints the table at the end.
    custom_mapping: {operator: formula} for forward calls, as in PyTorch: the formula gets the arguments, with shapes
    for tensors, and out_shape=; if it has a true attribute _get_raw, it gets the tensors and out_val=.

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
        self.depth, self.display = depth, display
        self.flop_registry = {getattr(op, "_overloadpacket", op): of for op, of in (custom_mapping or {}).items()}
        self.flop_counts: dict[str, dict[Any, int]] = {}

    def __enter__(self) -> FlopCounterMode:
        self._custom = _Custom(self.flop_registry)
        self._open = ExitStack()
        self._profile = self._open.enter_context(profile(with_flops=True, with_modules=True, record_shapes=True))
        if self.flop_registry:
            self._open.enter_context(watching(self._custom.enter_module))
            self._open.enter_context(self._custom)
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)
        counts: dict[str, dict[Any, int]] = {"Global": defaultdict(int)}
        counted = [
            (_operator(e), e.module, e.flops) for e in self._profile.events() if e.kind == "operation" and e.flops
        ]
        counted = [row for row in counted if row[0] not in self.flop_registry]
        for operator, module, flops in counted + self._custom.found:
            parts = module.split(".") if module else []
            for place in ("Global", *(".".join(parts[: i + 1]) for i in range(len(parts)))):
                counts.setdefault(place, defaultdict(int))[operator] += flops
        self.flop_counts = {place: dict(counted) for place, counted in counts.items() if counted}
        if self.display and error[0] is None:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        """The total."""
        return sum(self.flop_counts.get("Global", {}).values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """{"Global" or a module's path such as "Net.layer": {operation: count}}."""
        return self.flop_counts

    def get_table(self, depth: int | None = None) -> str:
        """A line for each module with its count and its share of the total."""
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


def _operator(event: Any) -> Any:
    """PyTorch's operator for a library call."""
    if event.name == "matmul":
        first, second, *bias = (*event.shapes, (1, 1), (1, 1))[: max(2, len(event.shapes))]
        vector = "dot" if len(first) == 1 else "mv"
        name = vector if len(second) == 1 else "bmm" if len(second) > 2 else "addmm" if bias else "mm"
    elif event.name.startswith("conv"):
        name = "convolution_backward" if event.node else "convolution"
    elif event.name.startswith("attention"):
        name = "_scaled_dot_product_flash_attention" + "_backward" * bool(event.node)
    else:
        name = event.name.replace(" ", "_")
    return getattr(namespace("aten"), name)


class _Custom(TorchDispatchMode):
    """Counts operators by the user's formulas. found: (operator, module path, count) of each."""

    def __init__(self, formulas: dict[Any, Any]) -> None:
        self.formulas, self.found = formulas, list[tuple[Any, str, int]]()
        self._modules: list[str] = []
        self._names: dict[int, str] = {}

    def enter_module(self, module: Any) -> Any:
        if not self._modules:
            kind = type(module).__name__
            self._names = {id(below): f"{kind}.{name}" if name else kind for name, below in module.named_modules()}
        self._modules.append(self._names.get(id(module)) or f"{self._modules[-1]}.{type(module).__name__}")
        return lambda result, raised: self._modules.pop()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        packet = func._overloadpacket
        if packet in self.formulas:
            formula = self.formulas[packet]
            if getattr(formula, "_get_raw", False):
                count = formula(*args, **(kwargs or {}), out_val=out)
            else:
                of_args, of_kwargs, of_out = pytree.tree_map(
                    lambda x: getattr(x, "shape", x), (args, kwargs or {}, out)
                )
                count = formula(*of_args, **of_kwargs, out_shape=of_out)
            self.found.append((packet, self._modules[-1] if self._modules else "", count))
        return out
