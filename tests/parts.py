"""What `make test-fast` runs of the suite (NORCH_TEST_PART=fast; conftest.py has these hooks then).

Of test_values and test_gradients test-fast runs one case of each operation, of every other test a few of its
parameters, evenly over all of them, so that each kind of value is met. It leaves out what starts programs, and PyTorch.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

FAST = os.environ.get("NORCH_TEST_PART") == "fast"
TESTS = Path(__file__).parent
# Folders of tests, named as those of norch; "library" is the C library and its binding.
PARTS = (
    "ops autograd batching nn optim program amp cuda distributions utils serialization compat library project sparse"
).split()
LEFT_OUT = ("cuda", "project")  # by test-fast, and these files:
SLOW_FILES = set(
    "core_links door imports interrupts isa legacy lib limits load_time loader_resume loader_workers memory messages"
    " onnx profiler record safetensors second stream threads".split()
)

MOST = 6  # calls of a test function
CASES = 16  # of one whose parameter is a case of cases.py
EVERY_OPERATION = {"test_values", "test_gradients", "test_values_and_gradients_are_those_that_pytorch_gave"}


def some(count: int, most: int) -> list[int]:
    """Indices of `most` of `count` values, evenly over all of them."""
    return list(range(count)) if count <= most else [k * count // most for k in range(most)]


def first_of_each(names: list[str]) -> list[int]:
    """The index of the first case of each operation."""
    seen: dict[str, int] = {}
    for k, name in enumerate(names):
        seen.setdefault(name.split()[0], k)
    return list(seen.values())


class Chosen:
    """A pytest plugin that leaves out what test-fast does."""

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if collection_path.parent == TESTS and collection_path.is_dir():
            name = collection_path.name
            return name not in PARTS or name in LEFT_OUT or None  # programs, and other languages
        return collection_path.stem.removeprefix("test_") in SLOW_FILES or None

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: Any) -> None:
        whole = metafunc.parametrize

        def part(argnames: Any, argvalues: Any, *more: Any, ids: Any = None, **options: Any) -> None:
            values = list(argvalues)
            first = [value[0] if isinstance(value, tuple) and value else value for value in values]
            if metafunc.function.__name__ in EVERY_OPERATION and len(values) > 2 * MOST:
                kept = first_of_each([str(getattr(value, "name", value)) for value in first])
            else:
                kept = some(len(values), CASES if any(hasattr(value, "torch_call") for value in first) else 2 * MOST)
            if ids is not None and not callable(ids):
                ids = [one for k, one in enumerate(ids) if k in set(kept)]
            whole(argnames, [values[k] for k in kept], *more, ids=ids, **options)

        metafunc.parametrize = part

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Of a product of parameters some that differ in each."""
        groups: dict[Any, list[Any]] = {}
        for item in items:
            if "torch" not in item.fixturenames:
                groups.setdefault((item.parent, item.function), []).append(item)
        chosen = set()
        for (_, function), group in groups.items():
            most = (
                len(group)
                if function.__name__ in EVERY_OPERATION
                else CASES
                if "case" in group[0].fixturenames
                else MOST
            )
            chosen.update(group[k] for k in some(len(group), most))
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]
