"""Writes what the library of this machine gives for the cases of tests/cases_*.py, which Pyodide compares its own with.

    python tests/wasm/record.py FILE

The cases draw their inputs, and have their references, in NumPy, which Pyodide's package for Node lacks. test_ops.py
has compared these results with the references.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from case import Case, as_tensor, draw, source
from cases import CASES
from checks import listed

import norch

DTYPES = ("float32", "bool", "uint8", "int64", "float16", "float64")  # make test-fast takes the first of a case


def gradients(case: Case, inputs: list[Any], results: list[Any]) -> list[Any]:
    """Those of the sum of all results that have some."""
    graded = [y for y in results if y.requires_grad]
    if not graded:
        return []
    norch.autograd.backward([y.sum() for y in graded])
    return [x.grad for x in inputs if x.grad is not None]


def run(case: Case, values: list[Any]) -> tuple[list[Any], list[Any]]:
    """(results, gradients) of a case for these inputs, which require gradients where it has derivatives."""
    graded = case.inputs if case.inputs is not None else range(len(values))
    inputs = [x.requires_grad_(case.grad > 0 and i in graded and x.is_floating_point()) for i, x in enumerate(values)]
    results = listed(case.call(norch, *inputs))
    return [y.detach() for y in results], gradients(case, inputs, results)


def main(path: str) -> None:
    recorded = {}
    for case in CASES:
        for dtype in (dtype for dtype in DTYPES if dtype in case.dtypes):
            rng = source(case.name + dtype)
            for k, shapes in enumerate(case.shapes):
                values = [as_tensor(x, dtype) for x in draw(case, shapes, dtype, rng)]
                results, grads = run(case, [x.clone() for x in values])
                recorded[f"{case.name} {dtype} {k}"] = {"inputs": values, "results": results, "gradients": grads}
    norch.save(recorded, path)
    print(f"{len(recorded)} calls in {path}")


if __name__ == "__main__":
    main(sys.argv[1])
