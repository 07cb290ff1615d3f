"""The sweep: every function of docs/operations.md at three sizes, forward, and forward with backward, beside PyTorch.

The calls are those that the tests and the documentation have: tests/cases_*.py, and the texts CALLS and MADE of
docs/operations.py. So nothing is chosen here. A call is grown to a size by multiplying the sizes of its inputs' axes;
the first of WAYS that both libraries accept is taken, and a call that none of them fits is timed as it stands. Inputs
are float32 where the call takes it.

Both libraries take turns on one core (measure.py), and the least time of each counts: what other work on the machine
adds is never negative.
"""

from __future__ import annotations

import math
import re
import statistics
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .library import Run

if TYPE_CHECKING:
    from .measure import Worker

SIZES = (1_000, 100_000, 1_000_000)  # elements of the largest input
PASSES = ("forward", "both")  # both: with the gradients of all inputs
WAYS = ("all axes", "last axis", "first axis", "as it stands")
FLOOR = 0.95
LONGEST = 0.5  # seconds of a call; larger sizes are left out
MEMORY = 3 << 30  # bytes that a process may map: what needs more at some size is left out


def load() -> list[Any]:
    """All calls: cases of the tests, and texts; SystemExit where the sources of either are missing."""
    root = Path(__file__).resolve().parent.parent
    sys.path[:0] = [str(root / "docs"), str(root / "tests")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import operations
    except ImportError as error:
        raise SystemExit(f"the sweep needs docs/ and tests/, NumPy and pytest: {error}") from None
    cases = [case for case in operations.CASES if case.torch is not False]
    texts = dict.fromkeys([call.text for call in operations.WRITTEN] + list(operations.MADE.values()))
    return [*cases, *texts]


def name_of(call: Any) -> str:
    """Of a case its name, of a text itself."""
    return call if isinstance(call, str) else call.name


# ---- in a worker: inputs of a size ----------------------------------------------------------------------------------


def grown(shapes: Any, size: int, way: str) -> dict[int, int]:
    """What each length of an axis becomes so that the largest of the shapes has about `size` elements."""
    largest = max(shapes, key=math.prod)
    lengths = {length for shape in shapes for length in shape if length > 1}
    if way == "last axis":
        lengths &= set(largest[-1:])
    elif way == "first axis":
        lengths &= set(largest[:1])
    elif way == "as it stands":
        lengths = set()
    axes = sum(length in lengths for length in largest)
    factor = max(1, round((size / max(1, math.prod(largest))) ** (1 / axes))) if axes else 1
    return {length: length * factor for length in lengths}


def of_case(m: Any, case: Any, size: int, way: str) -> tuple[Callable[..., Any], list[Any]]:
    """How a module is asked, and the inputs."""
    from case import draw, source

    to = grown(case.shapes[0], size, way)
    shapes = [tuple(to.get(length, length) for length in shape) for shape in case.shapes[0]]
    dtype = next(name for name in ("float32", "int64", *case.dtypes) if name in case.dtypes)
    if to and case.index_below:
        object.__setattr__(case, "index_below", to.get(case.index_below, case.index_below))
    arrays = draw(case, shapes, dtype, source(case.name))
    ask = case.call if m.__name__ == "norch" else case.torch_call()
    return lambda *inputs: ask(m, *inputs), [m.tensor(array) for array in arrays]


def of_text(m: Any, text: str, size: int, way: str) -> tuple[Callable[..., Any], list[Any]]:
    """The same for a text over named arrays, all of whose axes of length 4 grow, and so do the numbers 4 in it."""
    import numpy as np
    from expressions import ARRAYS

    names = [name for name in ARRAYS if re.search(rf"\b{name}\b", text)]
    to = grown([ARRAYS[name].shape for name in names] or [(4,)], size, "all axes" if "axes" in way else way)
    long = to.get(4, 4)
    rng = np.random.default_rng(0)
    inputs = []
    for name in names:
        old = ARRAYS[name]
        shape = tuple(to.get(length, length) if length == 4 else length for length in old.shape)
        values = rng.uniform(0.1, 0.9, shape) if name == "p" else rng.normal(size=shape)
        values = np.eye(long) * 4 + 0.1 / long if name == "spd" else values
        inputs.append(m.tensor(values.astype("float32")))
    root = math.isqrt(size) if "n, n" in text else size
    places = {"t": m, "F": m.nn.functional, "i": m.arange(long), "d": m.float32, "n": 2 if way == WAYS[-1] else root}
    code = compile(re.sub(r"(?<![\w.])4(?![\w.])", str(long), text), text, "eval")
    return lambda *inputs: eval(code, {**places, **dict(zip(names, inputs))}), inputs


def setup(m: Any, call: Any, size: int, way: str, what: str) -> Run:
    """A callable that makes the call once, and its backward pass if asked for; ValueError where it has none."""
    ask, inputs = (of_text if isinstance(call, str) else of_case)(m, call, size, way)
    if what == "forward":
        return lambda: ask(*inputs)
    wanted = [x.requires_grad_() for x in inputs if x.dtype in (m.float32, m.float64)]

    def outputs() -> list[Any]:
        made = ask(*inputs)
        return [x for x in (made if isinstance(made, (tuple, list)) else [made]) if getattr(x, "requires_grad", False)]

    ones = [m.ones_like(x) for x in outputs()]
    if not ones:
        raise ValueError("no derivative")
    return lambda: m.autograd.grad(outputs(), wanted, ones, allow_unused=True)


def limited() -> list[Any]:
    """load(), for a worker: its memory is limited from then on."""
    import resource

    calls = load()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    return calls


# ---- in the parent: times and a table -------------------------------------------------------------------------------


def attempt(worker: Worker, *request: Any) -> dict[str, Any] | None:
    """What a worker answers, or None where it cannot."""
    try:
        return worker.ask(*request)
    except SystemExit:
        return None


def time_both(workers: list[Worker], request: Any, rounds: int, slot: float) -> list[float] | None:
    """The least time of a call by each worker; None where one of them cannot make it."""
    if not all(attempt(worker, "sweep", *request) for worker in workers):
        return None
    found = [attempt(worker, "calibrate", slot) for worker in workers]
    if None in found:
        return None
    counts, least = [one["count"] for one in found if one], [one["seconds"] for one in found if one]
    for turn in range(rounds if max(least) < 10 * slot else 2):
        for place in (0, 1) if turn % 2 else (1, 0):
            spent = workers[place].ask("time", counts[place])["seconds"] / counts[place]
            least[place] = min(least[place], spent)
    return least


def sweep(workers: list[Worker], words: list[str], rounds: int, slot: float) -> list[dict[str, Any]]:
    """Times all calls whose names have one of the words; a row a call, printed as it comes."""
    pair = [next(worker for worker in workers if worker.name == name) for name in ("norch", "torch")]
    rows = []
    print(f"\nsweep: microseconds of norch, and PyTorch's time / norch's, at {', '.join(map(str, SIZES))} elements")
    for number, call in enumerate(load()):
        if words and not any(word in name_of(call) for word in words):
            continue
        row: dict[str, Any] = {"group": "sweep", "case": name_of(call), "forward": {}, "both": {}}
        for what in PASSES:
            way, before = None, 0.0
            for last, size in zip((0, *SIZES), SIZES):
                if last and before * (size / last) ** 1.5 > LONGEST:
                    break
                for tried in WAYS if way is None else [way]:
                    found = time_both(pair, (number, size, tried, what), rounds, slot)
                    if found:
                        way, before = tried, max(found)
                        row[what][size] = {"seconds": found[0], "ratio": found[1] / found[0]}
                        break
                if way is None or way == WAYS[-1]:
                    break
        if row["forward"]:
            rows.append(row)
            cells = [f"{row[w][s]['seconds'] * 1e6:9.1f} {row[w][s]['ratio']:5.2f}" for w, s in measured(row)]
            print(f"  {row['case'][:50]:50} {' |'.join(cells)}", flush=True)
    return rows


def measured(row: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The passes and sizes that a row has."""
    return ((what, size) for what in PASSES for size in row[what])


def conclude(rows: list[dict[str, Any]]) -> None:
    """Prints geometric means by pass and size, and the cases below FLOOR."""
    print("\nsweep: geometric means of PyTorch's time / norch's")
    for what in PASSES:
        for size in SIZES:
            found = [row[what][size]["ratio"] for row in rows if size in row[what]]
            if found:
                below = sum(ratio < FLOOR for ratio in found)
                mean = statistics.geometric_mean(found)
                print(f"  {what:8} {size:8} {mean:5.2f}  {below} of {len(found)} below {FLOOR}")
    slow = [(row[what][size]["ratio"], row["case"], what, size) for row in rows for what, size in measured(row)]
    print(f"\nsweep: below {FLOOR}")
    for ratio, case, what, size in sorted(one for one in slow if one[0] < FLOOR):
        print(f"  {ratio:5.2f}  {case}, {what}, {size}")
