"""The parts of the test suite, by which `make test-fast PART=autograd` and tests/mutate.py choose files; and what
`make test-fast` runs of all parts (NORCH_TEST_PART=fast; conftest.py has these hooks then).

Of test_values and test_gradients test-fast runs one case of each operation, of every other test a few of its
parameters, evenly over all of them, so that each kind of value is met. It leaves out what starts programs, and PyTorch.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

FAST = os.environ.get("NORCH_TEST_PART") == "fast"
# Each name is test_NAME.py, or what the names of some files begin with: name_*.
PARTS = {
    "ops": "activation attention bad_input bags_ctc batch_norm bf16_products conv create cross_entropy dlpack"
    " dropout dtypes einsum embedding epilogue errors getitem grid halves inplace inplace_errors"
    " integer_numbers join kept_results losses meta moments multihead narrow normalize numbers numeric"
    " numpy ops order_kernels out out_of_memory overrides packed pointwise pool products quasirandom"
    " random random_ends read_once recurrent reduce repr resample rounded_once scan_sort shapes special"
    " statistics stream tensor threads torch_behaviours view_chains view_programs views",
    "autograd": "anomaly autograd checkpoint conditions derivatives draw_graph function functional grad_mode"
    " graphs hooks mixed_derivatives needed_for_gradients saved second",
    "nn": "declared_layers error_notes layers lazy learn modules nn parametrize placeholders prune"
    " rare_layers summary transformer",
    "optim": "lr_find lr_resume lr_scheduler optim own_optim swa",
    "capture": "capture compile program_picture",
    "amp": "amp",
    "vmap": "vmap",
    "data": "data files legacy loader mapping pytorch safetensors saving shared_memory torch_format",
    "maths": "complex distributions fft half_distributions linalg more_distributions spectra",
    "compat": "array_api compat fx names onnx torch_signatures torchscript typing",
    "cuda": "cuda cudasim",
    "project": "api benchmarks build ci core_links docs door examples imports interrupts isa lib limits"
    " load_time memory messages mutate notebooks parts profiler recipes record trunk wheels",
}  # fmt: skip
LEFT_OUT = ("cuda", "project")  # by test-fast, and these files:
SLOW_FILES = "learn legacy loader_resume loader_workers notebooks onnx safetensors second stream threads typing".split()

MOST = 6  # calls of a test function
CASES = 16  # of one whose parameter is a case of cases.py
EVERY_OPERATION = {"test_values", "test_gradients", "test_values_and_gradients_are_those_that_pytorch_gave"}


def part_of(name: str) -> str:
    """The part that a file test_NAME.py belongs to, by the longest name that fits; "" if none does."""
    fitting = [(len(word), part) for part, words in PARTS.items() for word in words.split()
               if name == word or name.startswith(word + "_")]  # fmt: skip
    return max(fitting, default=(0, ""))[1]


def files_of(parts: Iterable[str]) -> list[Path]:
    """The test files of parts."""
    here = Path(__file__).parent
    return [path for path in sorted(here.glob("test_*.py")) if part_of(path.stem[5:]) in parts]


def named() -> None:
    """Prints the files of the parts that are named on the command line."""
    unknown = set(sys.argv[1:]) - PARTS.keys()
    if unknown:
        sys.exit(f"PART is one of {', '.join(PARTS)}, not {', '.join(unknown)}")
    print(*(f"tests/{path.name}" for path in files_of(sys.argv[1:])))


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
        if collection_path.is_dir():
            return collection_path.parent == Path(__file__).parent or None  # programs, and other languages
        name = re.fullmatch(r"test_(\w+)\.py", collection_path.name)
        return bool(name) and (part_of(name[1]) in LEFT_OUT or name[1] in SLOW_FILES) or None

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


if __name__ == "__main__":
    named()
