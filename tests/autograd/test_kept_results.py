"""Values and gradients that PyTorch gave for one case of each operation, kept in files/torch_results.json.gz: what the
operations are compared with where PyTorch is not installed. Run as a program it asks PyTorch again."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case import draw, source
from cases import BY_NAME, CASES
from checks import assert_same, listed, scale_of, tolerance_of, torch_tensor
from conftest import load_torch
from test_derivatives import ANY_OF_EQUALS, backward_of, variables

import norch

FILE = Path(__file__).resolve().parents[1] / "files" / "torch_results.json.gz"
MOST = 40  # elements of all inputs
WEIGHTS = np.linspace(0.5, 2, 97)


def loaded() -> dict[str, Any]:
    """By the name of a case: arrays as [dtype, shape, values]."""
    with gzip.open(FILE, "rt") as file:
        return json.load(file)


def packed(array: Any) -> list[Any]:
    """float32 as the shortest decimals that give it back."""
    flat = array.reshape(-1)
    values = [float(str(x)) for x in flat] if array.dtype == np.float32 else flat.tolist()
    return [array.dtype.name, list(array.shape), values]


def unpacked(kept: list[Any]) -> Any:
    dtype, shape, values = kept
    return np.array(values, dtype).reshape(shape)


KEPT = loaded() if FILE.exists() else {}


@pytest.mark.kernel
@pytest.mark.parametrize("name", KEPT)
def test_values_and_gradients_are_those_that_pytorch_gave(name: str) -> None:
    case, kept = BY_NAME[name], KEPT[name]
    arrays = [unpacked(one) for one in kept["inputs"]]
    tensors = [norch.tensor(array) for array in arrays]
    found, wanted = listed(case.call(norch, *tensors)), [unpacked(one) for one in kept["results"]]
    assert len(found) == len(wanted)
    for k, (one, value) in enumerate(zip(found, wanted)):
        dtype, scale = value.dtype.name, scale_of(case, arrays)
        assert_same(one, value, dtype, tolerance_of(case, dtype) * 4, scale, f"{case}, result {k}, against PyTorch")
    gradients = kept["gradients"]
    if gradients:
        for i in variables(case, tensors):
            tensors[i].requires_grad_()
        backward_of(norch, case.call, tensors, WEIGHTS)
    for i, one in gradients.items():
        gradient, about = tensors[int(i)].grad, f"{case}, gradient of input {i}, against PyTorch"
        assert gradient is not None, about
        assert_same(gradient, unpacked(one), "float32", 1e-5 * case.slack, scale_of(case, arrays), about)


def test_what_is_kept_covers_the_operations() -> None:
    assert len(KEPT) >= 200 and sum(bool(kept["gradients"]) for kept in KEPT.values()) >= 130
    assert KEPT.keys() <= BY_NAME.keys()


def asked(torch: Any, case: Any) -> dict[str, Any] | None:
    """A case's inputs, with ties and zeros, and what PyTorch gives for them; None if it does not suit."""
    dtype = "float32" if "float32" in case.dtypes else case.dtypes[0]
    fitting = [shapes for shapes in case.shapes if 0 < sum(int(np.prod(shape)) for shape in shapes) <= MOST]
    if not fitting:
        return None
    arrays = draw(case, max(fitting, key=str), dtype, source(case.name + "kept"))
    if case.row not in ANY_OF_EQUALS:
        arrays = [np.where(np.arange(x.size).reshape(x.shape) % 2, np.round(x), x).astype(x.dtype) for x in arrays]
    tensors = [torch_tensor(torch, x, dtype) for x in arrays]
    try:
        results = listed(case.torch_call()(torch, *tensors))
    except (RuntimeError, TypeError, IndexError):
        return None
    gradients = {}
    if case.grad and case.torch_grad is True:
        for i in variables(case, tensors):
            tensors[i].requires_grad_()
        try:
            backward_of(torch, case.torch_call(), tensors, WEIGHTS)
        except RuntimeError:
            return None
        gradients = {i: packed(x.grad.numpy()) for i, x in enumerate(tensors) if x.grad is not None}
    results = [packed(x.detach().numpy()) for x in results]
    return {"inputs": [packed(x) for x in arrays], "results": results, "gradients": gradients}


def keep() -> None:
    """Writes the file: the first case of each operation that PyTorch has."""
    torch = load_torch()
    kept: dict[str, Any] = {}
    seen = set()
    for case in CASES:
        operation = case.row or case.name.split()[0]
        if operation in seen or case.torch is False:
            continue
        found = asked(torch, case)
        if found is not None:
            kept[case.name] = found
            seen.add(operation)
    with open(FILE, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as file:
        file.write(json.dumps(kept, separators=(",", ":")).encode())
    print(f"{len(kept)} cases by PyTorch {torch.__version__}")


if __name__ == "__main__":
    sys.exit(keep())
