"""What the cases are written with: a `Library` under its own name, the inputs it draws, and `Case`, a row of a table.

All libraries draw from the same stream: the same seed gives the same numbers everywhere, whatever the library.
"""

from __future__ import annotations

import math
import random
import shutil
from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

Run = Callable[[], Any]

DRAWN_AT_ONCE = 1 << 26  # bytes of random numbers


# Other ways to run a case: norch without norch.capture, its replays alone, without quantize(), with weights quantized
# alone, torch.compile, and what norch exports.
VARIANTS = {
    "eager": "norch",
    "replay": "norch",
    "float32": "norch",
    "weights": "norch",
    "compiled": "torch",
    "onnxruntime": "norch",
}


class Repeated:
    """A Run that repeats itself without Python: repeat(n) calls it n times."""

    def __init__(self, run: Run, repeat: Callable[[int], Any]) -> None:
        self.run, self.repeat = run, repeat

    def __call__(self) -> Any:
        return self.run()


class Library:
    """One of the libraries, on one thread, and the inputs that it draws. variant: how it runs what is captured."""

    def __init__(self, name: str) -> None:
        self.variant = name
        self.name = name = VARIANTS.get(name, name)
        if name == "norch":
            import norch as module

            self._floats = lambda values: module.tensor(values).float()
        elif name == "torch":
            import torch as module

            self._floats = lambda values: module.frombuffer(values, dtype=module.int32).float()
        else:
            import numpy as module

            self._floats = lambda values: module.array(values).astype(module.float32)
        if self.variant == "onnxruntime":
            import onnx  # type: ignore[import-not-found]  # noqa: F401  (which the export needs)
            import onnxruntime  # type: ignore[import-not-found]  # noqa: F401
        if self.variant == "compiled" and not shutil.which("c++"):
            raise ImportError("torch.compile needs a C++ compiler")
        if name != "numpy":
            module.set_num_threads(1)
        self.module: Any = module
        self.version: str = module.__version__
        self.seed(0)

    def captured(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """function by norch.capture, by torch.compile where that is asked for, or as it is."""
        if self.variant in ("norch", "replay", "float32", "weights"):
            return self.module.capture(function)
        return self.module.compile(function, dynamic=False) if self.variant == "compiled" else function

    def repeating(self, run: Run, function: Any, arguments: Callable[[], Any]) -> Run:
        """run, which calls a captured function with these arguments; of its calls alone where these are asked for."""
        if self.variant != "replay":
            return run
        return Repeated(run, lambda count: function.replay(count, *arguments()))

    def seed(self, seed: int) -> None:
        """Starts the stream of inputs anew."""
        self._stream = random.Random(seed)

    def random(self, *shape: int, grad: bool = False, low: float = -1.0, high: float = 1.0) -> Any:
        """Numbers from low to high as a float32 tensor or array of this library."""
        values, left = array("i"), 4 * math.prod(shape)
        while left:  # more bits than an int of C counts cannot be drawn at once
            values.frombytes(self._stream.randbytes(some := min(left, DRAWN_AT_ONCE)))
            left -= some
        made = self._floats(values).reshape(shape)
        made *= (high - low) / 2**32
        made += (low + high) / 2
        return made.requires_grad_() if grad else made

    def integers(self, count: int, below: int) -> Any:
        """count random class numbers as int64."""
        values = [self._stream.randrange(below) for _ in range(count)]
        return self.module.array(values) if self.name == "numpy" else self.module.tensor(values)


Setup = Callable[[Library], Run]


class Marks(NamedTuple):
    """What a ratio, the other's time / norch's, is held against: of a case, or the geometric mean of a group's."""

    reach: float
    aim: float
    floor: float | None = None  # no case of the group below
    numpy: float | None = None  # the geometric mean against NumPy; the others are against PyTorch
    bare: float | None = None  # of a captured case, for its replay alone


class Case(NamedTuple):
    """A row of a table: tensors sets it up for norch and PyTorch, arrays for NumPy (None: it has none).

    A setup draws the inputs and gives a callable, of which one call is timed.
    """

    group: str
    name: str
    tensors: Setup
    arrays: Setup | None
    marks: Marks | None = None
    counted: bool = True  # in the geometric mean and the worst case
    tolerance: float = 1e-4  # of the largest element of each tensor, in which outputs may differ
    variants: tuple[str, ...] = ()  # in which it is timed, too


def same(group: str, name: str, setup: Setup, counted: bool = True) -> Case:
    """A case whose setup serves all three libraries."""
    return Case(group, name, setup, setup, counted=counted)
