"""What `make test`, `make test-fast` and .ci/run choose of the suite, by NORCH_TEST_PART (hooks of conftest.py).

sampled     Of each test every value of each parameter, and of the products of several parameters a sample. Of tests
            that walk the cases each operation; values and gradients of every case, and each operation with every dtype.
fast        Of test_values and test_gradients one case of each operation, of every other test a few of its parameters,
            evenly over all of them, so that each kind of value is met. What starts programs is left out, and PyTorch.
few         As fast, with fewer of everything but operations: for sanitizers, simulated devices and other systems, where
            each kind of call counts, and its parameters repeat what `make test` has.
all         All tests, as without the variable: `make test ALL=1`, and pytest by itself.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

# One thread for NumPy's products: others would spin beside the other tests. conftest.py imports this before NumPy.
os.environ.setdefault("OMP_NUM_THREADS", "1")

PART = os.environ.get("NORCH_TEST_PART", "all")
FAST = PART in ("fast", "few")
WITHOUT_TORCH = FAST and os.environ.get("NORCH_TEST_TORCH") != "1"  # which make mutate sets
TESTS = Path(__file__).parent
# Folders of tests, named as those of norch; "library" is the C library and its binding.
PARTS = (
    "ops autograd batching nn optim program amp cuda distributions utils serialization compat library project sparse"
).split()
LEFT_OUT = ("cuda", "project")  # by test-fast, and these files:
SLOW_FILES = set(
    "amx core_links door imports interrupts isa legacy lib limits load_time loader_resume loader_workers memory"
    " messages onnx profiler record safetensors second stream threads".split()
)

MOST = 2 if PART == "few" else 6  # calls of a test function by test-fast
CASES = 6 if PART == "few" else 16  # of one whose parameter is a case of cases.py
LEAST = 8  # calls of a test function that a sample has, if there are so many
EVERY_OPERATION = {
    "test_values",
    "test_gradients",
    "test_values_and_gradients_are_those_that_pytorch_gave",
    "test_results_and_gradients",
}
# In a sample these have each case with one dtype or another, test_values each operation with every dtype too.
EVERY_CASE = {"test_values", "test_edge_values", "test_like_torch", "test_gradients_like_torch"}


def examples(count: int) -> int:
    """How many of `count` random examples are tried."""
    return max(5, count // {"all": 1, "sampled": 2, "fast": 4, "few": 8}[PART])


def some(count: int, most: int) -> list[int]:
    """Indices of `most` of `count` values, evenly over all of them."""
    return list(range(count)) if count <= most else [k * count // most for k in range(most)]


def operation(case: str) -> str:
    """The operation of a case, whose name begins with it."""
    return case.split()[0]


def first_of_each(names: list[str]) -> list[int]:
    """The index of the first case of each operation."""
    seen: dict[str, int] = {}
    for k, name in enumerate(names):
        seen.setdefault(operation(name), k)
    return list(seen.values())


def covering(names: Sequence[str], values: Sequence[set[Any]], least: int = 0) -> list[int]:
    """Indices of rows that together have all values, and at least so many.

    They are taken in an order that is that of no parameter: neighbours would have the same values of most of them.
    """
    seen: set[Any] = set()
    kept: list[int] = []
    others: list[int] = []
    for k in sorted(range(len(names)), key=lambda k: zlib.crc32(names[k].encode())):
        (others if values[k] <= seen else kept).append(k)
        seen |= values[k]
    return sorted(kept + others[: max(least - len(kept), 0)])


def kept_items(function: str, group: Sequence[Any], rows: Sequence[Sequence[str]]) -> list[int]:
    """Indices of the tests that are made of a test function. rows: names that get their values together."""
    if FAST:
        most = len(group) if function in EVERY_OPERATION else CASES if "case" in group[0].fixturenames else MOST
        return some(len(group), most)
    given = [item.callspec.params if rows else {} for item in group]
    values = [{(*names, *(id(one[name]) for name in names)) for names in rows} for one in given]
    return covering([item.nodeid for item in group], values, LEAST)


def kept_rows(function: str, argvalues: Sequence[Any]) -> list[int]:
    """Indices of the values that a test function is given by one parametrize()."""
    rows = [value if isinstance(value, tuple) else (value,) for value in argvalues]
    cases = any(row and hasattr(row[0], "torch_call") for row in rows)
    named = [[str(getattr(value, "name", value)) for value in row] for row in rows if cases]
    if FAST:
        if function in EVERY_OPERATION and len(rows) > 2 * MOST:
            return first_of_each([str(getattr(row[0], "name", row[0])) for row in rows])
        return some(len(rows), CASES if cases else 2 * MOST)
    if not cases:
        return list(range(len(rows)))
    values = [{row[0] if function in EVERY_CASE else operation(row[0])} for row in named]
    if function == "test_values":
        values = [{row[0], (operation(row[0]), *row[1:])} for row in named]
    return covering([" ".join([function, *row]) for row in named], values)


class Chosen:
    """A pytest plugin that leaves out what the part does not run."""

    def __init__(self) -> None:
        self.rows: dict[str, list[list[str]]] = defaultdict(list)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if not FAST:
            return None
        if collection_path.parent == TESTS and collection_path.is_dir():
            name = collection_path.name
            return name not in PARTS or name in LEFT_OUT or None  # programs, and other languages
        return collection_path.stem.removeprefix("test_") in SLOW_FILES or None

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: Any) -> None:
        whole = metafunc.parametrize

        def part(argnames: Any, argvalues: Any, *more: Any, ids: Any = None, **options: Any) -> None:
            values = list(argvalues)
            self.rows[metafunc.definition.nodeid].append(
                [name.strip() for name in (argnames.split(",") if isinstance(argnames, str) else argnames)]
            )
            kept = kept_rows(metafunc.function.__name__, values)
            if ids is not None and not callable(ids):
                ids = [one for k, one in enumerate(ids) if k in set(kept)]
            whole(argnames, [values[k] for k in kept], *more, ids=ids, **options)

        metafunc.parametrize = part

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Of a product of parameters some that differ in each."""
        groups: dict[str, list[Any]] = defaultdict(list)
        for item in items:
            if not WITHOUT_TORCH or "torch" not in item.fixturenames:
                groups[item.nodeid.partition("[")[0]].append(item)
        chosen = {
            group[k]
            for name, group in groups.items()
            for k in kept_items(group[0].function.__name__, group, self.rows[name])
        }
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]
