"""Random calls of what is public: `python walker.py SEED FIRST LAST` makes the calls of these numbers; with "threads"
after them four threads make them, on tensors that they share, and whose .data a fifth sets all the while; nothing but
the life of the process is told.

What there is to call comes from the modules (tests/api.py), what it takes from signatures. Arguments are tensors of all
dtypes, layouts and special values, or of a type that is wrong; they follow from the seed and the number of the call. A
line on the screen is a finding: an exception that tells of a fault of norch, an argument that changed though it must
not, a setting left behind. Deaths, hangs and memory are for who starts this (test_calls.py); it is told of each call
through the file descriptor that NORCH_FUZZ_NOTES names.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
import random
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).parents[1]))
import api

import norch
from norch._binding.buffers import memory_of

# What changes settings of the process, reads or writes files, starts threads or waits.
LEFT_OUT = re.compile(
    r"norch\.(cuda|distributed|memory|backends|testing|serialization|utils|random|storage|multiprocessing|jit|onnx|hub)\b"
    r"|\.(load|save|seed|manual_seed|fork_rng|set_\w+|use_\w+|register_\w+|share_memory_?|compile|get_rng_state|swap_tensors|detect_anomaly)$"
)
# What writes to an argument by its name or by its options.
WRITES = re.compile(
    r"_$|\.init\.|optim|\b(batch_norm|instance_norm|embedding|embedding_bag|clip_grad|Module)|swa_utils|vector_to"
)
# What depends on memory, on what lies there or on strides, or is a quotient of rounding errors for equal numbers.
OF_MEMORY = re.compile(r"empty|as_strided|\bnew$|\.Tensor$|\w+Tensor$|resize|corrcoef")
# What no argument of any type or value may raise.
FAULTS = (SystemError, NameError, AssertionError, RecursionError, BufferError, ReferenceError)

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, math.pi, 1e-40, 1e38, -3e38, math.inf, -math.inf, math.nan]
INTEGERS = [0, 1, 2, 3, -1, -2, 7, 100, 127, -128, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
SHAPES = [
    (),
    (0,),
    (1,),
    (2,),
    (3,),
    (5,),
    (2, 3),
    (3, 3),
    (1, 3),
    (3, 1),
    (0, 3),
    (2, 0),
    (2, 3, 4),
    (1, 2, 3, 4),
    (2, 2, 5, 5),
    (17,),
]
SIZES = [0, 1, 2, 3, 5, -1, -2, 8, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63)]
TEXTS = [
    "mean",
    "sum",
    "none",
    "max",
    "constant",
    "reflect",
    "nearest",
    "bilinear",
    "same",
    "fro",
    "",
    "junk",
    "cpu",
    "ij",
    "ij->ji",
]


def callables() -> list[tuple[str, Any]]:
    """(name, function) of all functions, classes and methods of tensors, by name."""
    found: dict[str, Any] = {}
    for path in api.MODULES:
        module = importlib.import_module(path)
        for name in api.public_names(path, module):
            thing = getattr(module, name)
            if callable(thing) and not (isinstance(thing, type) and issubclass(thing, BaseException)):
                found[f"{path}.{name}"] = thing
    for name in api.members(norch.Tensor, set()):
        found[f"norch.Tensor.{name}"] = getattr(norch.Tensor, name)
    return sorted((name, thing) for name, thing in found.items() if callable(thing) and not LEFT_OUT.search(name))


class Draw:
    """Arguments of one call."""

    def __init__(self, seed: str, plain: bool = False):
        self.seed, self.plain, self.random = seed, plain, random.Random(seed)
        self.shape = self.random.choice(SHAPES)
        self.dtype = self.random.choice(DTYPES)
        self.tensors: list[Any] = []

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def tensor(self) -> Any:
        """One of a shape and dtype that fit the others of the call, mostly."""
        pick = self.random
        shape = self.shape if self.often(0.7) else pick.choice(SHAPES)
        dtype = getattr(norch, self.dtype if self.often(0.7) else pick.choice(DTYPES))
        has_grad, wide = dtype.is_floating_point or dtype.is_complex, norch.float64
        pool, count = FLOATS if has_grad else INTEGERS, math.prod(shape)
        tame = self.often(0.6)
        values = [pick.uniform(-2, 2) if tame else pick.choice(pool) for _ in range(count * (1 + dtype.is_complex))]
        if dtype.is_complex:
            values, wide = list(map(complex, values[:count], values[count:])), norch.complex128
        x = self.laid_out(norch.tensor(values, dtype=wide).reshape(shape).to(dtype))
        if has_grad and self.often(0.2):
            x.requires_grad_()
        self.tensors.append(x)
        return x

    def laid_out(self, x: Any) -> Any:
        layout = self.random.choice(
            ["contiguous", "contiguous", "transposed", "strided", "offset", "flipped", "expanded"]
        )
        if x.ndim == 0 or layout == "contiguous" or self.plain:
            return x[:1].expand(x.shape).contiguous() if layout == "expanded" and x.ndim and x.shape[0] else x
        if layout == "transposed":
            return x.movedim(0, -1).contiguous().movedim(-1, 0)
        if layout == "strided":
            return norch.stack([x, x], -1).select(-1, 1)
        if layout == "offset":
            return norch.cat([x, x])[x.shape[0] :]
        if layout == "flipped":
            return x.flip(0).contiguous()[::-1]
        return x[:1].expand(x.shape) if x.shape[0] else x

    def anything(self) -> Any:
        pick = self.random
        return pick.choice(
            [
                self.tensor,
                lambda: pick.choice([None, True, False, ..., slice(None), object(), {}, b"x", 1j, len, type]),
                lambda: pick.choice(SIZES),
                lambda: pick.choice(FLOATS),
                lambda: pick.choice(TEXTS),
                lambda: getattr(norch, pick.choice(DTYPES)),
                lambda: [pick.choice(SIZES) for _ in range(pick.randrange(4))],
                lambda: tuple(pick.choice([0, 1, 2, -1]) for _ in range(pick.randrange(4))),
                lambda: [self.tensor() for _ in range(pick.randrange(4))],
                lambda: pick.choice(SHAPES),
            ]
        )()

    def fitting(self, name: str, default: Any) -> Any:
        """A value for a parameter, as its name or default tells."""
        pick = self.random
        if name.startswith(("dim", "axis", "axes")):
            return pick.choice([0, 0, -1, 1, 2, -3, (0,), (0, 1), [-1]])
        if name in ("size", "shape", "sizes"):
            return pick.choice(SHAPES)
        if name == "dtype":
            return getattr(norch, pick.choice(DTYPES))
        if name == "device":
            return "cpu"
        if name == "generator":
            return norch.Generator().manual_seed(pick.randrange(9))
        if name in ("tensors", "seq", "arrays", "parameters", "params"):
            return [self.tensor() for _ in range(pick.randrange(1, 4))]
        if isinstance(default, bool):
            return self.often(0.5)
        if isinstance(default, int):
            return pick.choice([default, 0, 1, 2, 3, -1])
        if isinstance(default, float):
            return pick.choice([default, 0.0, 0.5, 1.0, -1.0, math.nan, math.inf])
        if isinstance(default, str):
            return pick.choice([default, *TEXTS])
        if name.startswith(
            ("num", "in_", "out_", "kernel", "n", "k", "steps", "channels", "groups", "start", "end", "step")
        ):
            return pick.choice([0, 1, 2, 3, 4])
        return self.tensor()

    def arguments(self, function: Any) -> tuple[list[Any], dict[str, Any]]:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return [self.anything() for _ in range(self.random.randrange(3))], {}
        given: list[Any] = []
        named: dict[str, Any] = {}
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL:
                given += [
                    self.fitting("size" if self.often(0.5) else p.name, p.empty)
                    for _ in range(self.random.randrange(3))
                ]
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or (p.default is not p.empty and self.often(0.7)):
                continue
            value = self.anything() if self.often(0.12) else self.fitting(p.name, p.default)
            if p.name == "niter" and isinstance(value, int):  # a loop of so many turns does not hang
                value %= 9
            if p.kind is p.KEYWORD_ONLY or p.default is not p.empty:
                named[p.name] = value
            else:
                given.append(value)
        return given, named


def content(x: Any) -> tuple[Any, ...]:
    return tuple(x.shape), x.dtype, bytes(memory_of(x.detach().contiguous()))


def parts(result: Any) -> Iterator[Any]:
    if isinstance(result, norch.Tensor):
        yield result
    elif isinstance(result, (tuple, list)):
        for each in result[:20]:
            yield from parts(each)


def use(draw: Draw, result: Any) -> None:
    """Reads all of a result, calls a layer, and derives."""
    if isinstance(result, norch.nn.Module):
        result = result(*[draw.tensor() for _ in range(1 + draw.often(0.2))])
    repr(result)
    for x in parts(result):
        if x.numel() < 10_000:
            x.detach().tolist()
        if x.requires_grad and draw.often(0.5):
            x.sum().backward()


def close(x: Any, y: Any) -> bool:
    """The same but for the order of sums."""
    if (tuple(x.shape), x.dtype) != (tuple(y.shape), y.dtype):
        return False
    a, b = (norch.view_as_real(z.detach()) if z.is_complex() else z.detach().double() for z in (x, y))
    room = 1e-2 if x.dtype in (norch.float16, norch.bfloat16) else 1e-4
    return bool(norch.isclose(a, b, rtol=room, atol=room, equal_nan=True).all())


def depends_on_layout(name: str, function: Callable[..., Any], draw: Draw, result: Any) -> bool:
    """Whether the same arguments without gaps and in C order give another result."""
    given, named = Draw(draw.seed, plain=True).arguments(function)
    norch.default_generator.manual_seed(0)
    try:
        other = function(*given, **named)
    except Exception:
        return True
    return not all(map(close, parts(result), parts(other)))


def call(name: str, function: Callable[..., Any], draw: Draw) -> str | None:
    """What is wrong with one call, or None."""
    given, named = draw.arguments(function)
    before = [content(x) for x in draw.tensors]
    may_write = WRITES.search(name) or "out" in named or named.get("inplace")
    raised = None
    norch.default_generator.manual_seed(0)
    try:
        result = function(*given, **named)
        if not may_write:
            if not OF_MEMORY.search(name) and depends_on_layout(name, function, draw, result):
                return f"depends on the layout of its arguments: {result!r:.150}"
            use(draw, result)
    except FAULTS as error:
        if isinstance(error, BufferError) and "dlpack" in name:  # the protocol's own exception
            return None
        return f"raised {type(error).__name__}: {error}"
    except Exception as error:
        raised = error
    if raised is not None or not may_write:
        for x, was in zip(draw.tensors, before):
            if content(x) != was:
                return f"changed an argument of shape {was[0]}, and raised {raised!r}"
    if not norch.is_grad_enabled() or norch.get_default_dtype() is not norch.float32:
        return "left a setting behind"
    return None


def walk(seed: str, numbers: Iterable[int], note: Callable[[str], None]) -> Iterator[str]:
    known = callables()
    for number in numbers:
        name, function = random.Random(f"{seed}/{number}").choice(known)
        note(f"{number} {name}")
        found = call(name, function, Draw(f"{seed}/{number}/{name}"))
        if found:
            yield f"{number} {name} {found:.300}"


class Shared(Draw):
    """Gives the same few tensors to all."""

    pool: ClassVar[list[Any]] = []

    def tensor(self) -> Any:
        if len(self.pool) < 8:
            self.pool.append(super().tensor())
        return self.random.choice(self.pool)

    def swap(self) -> None:
        """Gives one of them another shape and other memory."""
        if self.pool:
            x = self.random.choice(self.pool)
            x.data = super().tensor().detach().to(x.dtype)
            self.tensors.clear()


def walk_shared(known: list[tuple[str, Any]], seed: str, numbers: Iterable[int]) -> None:
    for number in numbers:
        name, function = random.Random(f"{seed}/{number}").choice(known)
        try:
            call(name, function, Shared(f"{seed}/{number}/{name}"))
        except Exception:
            pass  # what one thread made, another has changed


def swap(seed: str, done: threading.Event) -> None:
    draw = Shared(seed)
    while not done.is_set():
        draw.shape, draw.dtype = draw.random.choice(SHAPES), draw.random.choice(DTYPES)
        try:
            draw.swap()
        except Exception:
            pass  # a complex number for a real tensor


def main(seed: str, first: int, last: int, *options: str) -> None:
    warnings.simplefilter("ignore")
    notes = int(os.environ.get("NORCH_FUZZ_NOTES", "-1"))

    def note(text: str) -> None:
        if notes >= 0:
            os.pwrite(notes, text.ljust(100).encode(), 0)

    if options:
        note(f"{first} to {last}")
        sys.setswitchinterval(1e-4)
        done = threading.Event()
        swapper = threading.Thread(target=swap, args=(seed, done))
        known, parts = callables(), [range(first + i, last, 4) for i in range(4)]
        threads = [threading.Thread(target=walk_shared, args=(known, seed, part)) for part in parts]
        for thread in [swapper, *threads]:
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        swapper.join()
    else:
        for finding in walk(seed, range(first, last), note):
            print(finding, flush=True)
    note("done")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
