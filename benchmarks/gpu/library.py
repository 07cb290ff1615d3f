"""What the cases are written with: a library whose tensors stand on a device, and `Case`, a row of the table.

All sizes in a setup go through `fit` or `count`, so that the same cases run in the simulation, at sizes of about ten.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..library import Library, Marks, Run

PERIOD = (1 << 22) - 3  # elements that are drawn; larger inputs repeat them
BANDWIDTH, TRIAL = (100_000_000, 1024), (1000, 10)  # elements and width of the inputs of the bandwidth group


class OnDevice(Library):
    """A library, the inputs that it draws on a device, and the sizes of the cases."""

    def __init__(self, name: str, device: str = "cuda", small: bool = False, elements: int | None = None):
        super().__init__(name)
        self.device, self.small = device, small
        given, self.row = TRIAL if small else BANDWIDTH
        self.elements = (elements or given) // self.row * self.row
        if name == "torch" and device == "cuda":  # the yardstick is full float32
            self.module.backends.cuda.matmul.allow_tf32 = False
            self.module.backends.cudnn.allow_tf32 = False

    @contextmanager
    def placing(self) -> Iterator[None]:
        """What is made inside stands on the device: setups run so. (In PyTorch a default device slows each call.)"""
        self.module.set_default_device(self.device)
        try:
            yield
        finally:
            self.module.set_default_device(None)

    def fit(self, size: int) -> int:
        """A size of a case, at most 11 in a trial; multiples of 8 stay such."""
        return size if not self.small or size < 8 else 8 + min(3, size % 8)

    def count(self, elements: int) -> int:
        """A number of elements, at most 1000 in a trial."""
        return min(elements, 1000) if self.small else elements

    def random(
        self, *shape: int, grad: bool = False, low: float = -1.0, high: float = 1.0, dtype: str = "float32"
    ) -> Any:
        """Numbers from low to high, drawn anew only PERIOD times."""
        count = math.prod(shape)
        made = super().random(min(count, PERIOD), low=low, high=high).to(self.device)
        made = self._repeated(made, count).reshape(shape).to(getattr(self.module, dtype))
        return made.requires_grad_() if grad else made

    def integers(self, count: int, below: int) -> Any:
        """count numbers from 0 to below - 1 as int64, drawn anew only PERIOD times."""
        drawn = array("i")
        drawn.frombytes(self._stream.randbytes(4 * min(count, PERIOD)))
        module = self.module
        made = module.frombuffer(drawn, dtype=module.int32) if self.name == "torch" else module.tensor(drawn)
        return self._repeated(made.to(self.device).to(module.int64) % below, count)

    @staticmethod
    def _repeated(drawn: Any, count: int) -> Any:
        return drawn.repeat(-(-count // drawn.numel()))[:count] if count > drawn.numel() else drawn


class Case(NamedTuple):
    """A row of a table: setup draws the inputs, and gives what is timed.

    What a call gives is compared with what PyTorch's gives: tensors and numbers, also in tuples and lists, and what a
    function among them gives, which is called outside of the timing.
    """

    group: str
    name: str
    setup: Callable[[OnDevice], Run]
    marks: Marks
    tolerance: float = 1e-5  # norm of the difference / norm of PyTorch's result, of each tensor
    counted: bool = True  # in the geometric means; marks bind the others too
    moved: float = 0.0  # bytes that must be moved for each element of OnDevice.elements
    flops: float = 0.0


def both_ways(lib: OnDevice, call: Callable[..., Any], *inputs: Any) -> Run:
    """A run that gives call(*inputs) and the gradients of the inputs that have one, for a drawn one of the result."""
    wanted = [x for x in inputs if x.requires_grad]
    first = call(*inputs)
    given = lib.random(*first.shape, dtype=str(first.dtype).split(".")[-1])
    del first
    grad = lib.module.autograd.grad

    def run() -> Any:
        y = call(*inputs)
        return (y, *grad(y, wanted, given))

    return run


def cases_of(group: str) -> tuple[list[Case], Callable[..., None]]:
    """An empty list, and a function that adds a case to it. Where nothing else is said, a case reaches 0.8."""
    cases: list[Case] = []

    def add(name: str, setup: Callable[[OnDevice], Run], reach: float = 0.8, aim: float = 1.0, **more: Any) -> None:
        cases.append(Case(group, name, setup, Marks(reach, aim), **more))

    return cases, add
