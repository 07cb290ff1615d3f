"""What the walks over the cases share: what must come out, and how PyTorch is asked."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from case import (
    ALL_NAMES,
    FLOAT_NAMES,
    HALF_NAMES,
    Case,
    as_numpy,
    draw,
    edge_inputs,
    edge_values,
    is_bfloat16,
    laid_out,
    numpy_values,
    source,
)
from cases import CASES
from conftest import DEVICE

import norch
import norch.nn.functional as F  # noqa: N812
from norch._binding.library import lib
from norch.ops._rows import OPCODES
from norch.testing import assert_close

# A text is evaluated when the test runs: some import these checks where NumPy is not installed.
says_read_only = pytest.mark.skipif(
    "np.lib.NumpyVersion(np.__version__) < '2.1.0'", reason="NumPy before 2.1 exports no read-only array through DLPack"
)

OTHER_LAYOUTS = ("transposed", "strided", "offset", "flipped", "expanded")
# Relative error of a few units in the last place; cases multiply it by their slack.
TOLERANCES = {"float32": 5e-7, "float64": 2e-15}
# Half a unit in the last place: halves are computed in float32 and rounded once.
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
POINTWISE = [case for case in CASES if case.row in OPCODES and lib.norch_op_form(OPCODES[case.row]) != b"reduce"]


# A run that is slow, or for one ISA build, may walk the cases over some dtypes only: NORCH_TEST_DTYPES=float32,bool
WALKED = os.environ.get("NORCH_TEST_DTYPES", ",".join(ALL_NAMES)).split(",")


def with_dtypes(chosen: Sequence[Case], dtypes: Sequence[str] = ALL_NAMES) -> Any:
    """Parametrises over cases and the dtypes that they take."""
    pairs = [(case, dtype) for case in chosen for dtype in case.dtypes if dtype in dtypes and dtype in WALKED]
    return pytest.mark.parametrize(("case", "dtype"), pairs, ids=[f"{case}-{dtype}" for case, dtype in pairs])


def each(chosen: Sequence[Case]) -> Any:
    """Parametrises over cases."""
    return pytest.mark.parametrize("case", chosen, ids=str)


# ---- what must come out ---------------------------------------------------------------------------------------------


def result_dtypes(case: Case, dtype: str) -> list[str]:
    """The dtype of each result."""
    floating = dtype in FLOAT_NAMES
    rules = {
        "same": dtype,
        "float": dtype if floating else "float32",
        "sum": dtype if floating else "int64",
        "index": "int64",
        "truth": "uint8" if dtype == "uint8" else "bool",
    }
    return [rules.get(rule, rule) for rule in case.result.split()]


def expected(case: Case, arrays: Sequence[Any]) -> list[Any]:
    """The results by NumPy, in float64, int64 or bool."""
    wide = [x if x.dtype == bool else x.astype(np.float64 if x.dtype.kind == "f" else np.int64) for x in arrays]
    if case.result == "float":  # what becomes a float becomes a float32 first
        wide = [x.astype(np.float32).astype(np.float64) if x.dtype.kind != "f" else x for x in wide]
    with np.errstate(all="ignore"):
        found = case.reference(*wide)
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]


def listed(found: Any) -> list[Any]:
    """Results as a list."""
    return list(found) if isinstance(found, (tuple, list)) else [found]


def scale_of(case: Case, arrays: Sequence[Any]) -> float:
    """For results that add many terms: how large the terms, and so the absolute error, may be."""
    if not case.scaled:
        return 0.0
    scale = 1.0
    for x in arrays:
        finite = np.abs(x[np.isfinite(x)].astype(float))
        scale *= max(float(finite.max(initial=0)), 1e-30)
    return scale * max(x.size for x in arrays) ** 0.5


def tolerance_of(case: Case, dtype: str) -> float:
    """The relative error that a result may have. What is made of several operations rounds a half between them."""
    if dtype in HALF_NAMES:
        return ROUNDING[dtype] * (1 if case.row in OPCODES else 8) + TOLERANCES["float32"] * case.slack
    return TOLERANCES.get(dtype, 0) * case.slack


def assert_same(actual: Any, wanted: Any, dtype: str, tolerance: float, scale: float, about: str) -> None:
    """Values, shape and dtype of a tensor (or number) against an array of float64, int64 or bool."""
    assert actual.dtype.name == dtype, f"{about}: dtype {actual.dtype.name}, expected {dtype}"
    found = as_numpy(actual)
    assert found.shape == wanted.shape, f"{about}: shape {found.shape}, expected {wanted.shape}"
    with np.errstate(all="ignore"):
        if dtype not in FLOAT_NAMES:
            good = found == wanted.astype(dtype)
        else:
            wanted = wanted.astype(np.float64)
            rounded = numpy_values(wanted, dtype)  # overflows as the operation does
            info = norch.finfo(dtype)
            least = info.tiny * info.eps
            off = np.abs(found.astype(np.float64) - wanted)
            good = (off <= tolerance * np.abs(wanted) + tolerance * scale + 2 * least) | (found == rounded)
            good |= np.isnan(found) & np.isnan(wanted)
    if not good.all():
        at = tuple(int(i) for i in np.argwhere(~good)[0])
        raise AssertionError(
            f"{about}: {int((~good).sum())} of {good.size} elements are wrong, the first at {list(at)}: "
            f"{found[at]!r}, expected {wanted[at]!r}"
        )


def check(case: Case, arrays: Sequence[Any], dtype: str, layouts: Sequence[str]) -> list[Any]:
    """One call against NumPy; the tensors that went in."""
    pairs = [laid_out(x, layout, dtype) for x, layout in zip(arrays, layouts)]
    tensors, arrays = [tensor for tensor, _ in pairs], [array for _, array in pairs]
    copies = [x.clone() for x in tensors]
    about = f"{case} of {[x.shape for x in arrays]} {list(layouts)}"
    found, wanted = listed(case.call(norch, *tensors)), expected(case, arrays)
    assert len(found) == len(wanted)
    rules = result_dtypes(case, dtype)
    for i, (one, value) in enumerate(zip(found, wanted)):
        name = rules[min(i, len(rules) - 1)]
        assert_same(one, value, name, tolerance_of(case, name), scale_of(case, arrays), about)
    for x, copy in zip(tensors, copies):
        assert_close(x, copy, rtol=0, atol=0, equal_nan=True)  # inputs stay
    return tensors


def torch_tensor(torch: Any, array: Any, dtype: str) -> Any:
    """PyTorch's tensor of what numpy_values gave."""
    x = torch.from_numpy(np.array(array))
    return x.to(torch.bfloat16) if is_bfloat16(array, dtype) else x


def torch_results(torch: Any, case: Case, arrays: Sequence[Any], dtype: str) -> list[Any] | None:
    """What PyTorch gives, None where it refuses."""
    try:
        found = case.torch_call()(torch, *[torch_tensor(torch, x, dtype) for x in arrays])
    except (RuntimeError, TypeError, IndexError):
        return None
    return listed(found)


def traps_torch(case: Case, arrays: Sequence[Any]) -> bool:
    """Whether PyTorch would divide the least integer by -1, which ends the process."""
    return case.row in ("floor_divide", "remainder", "trunc_divide", "fmod") and arrays[0].dtype.kind == "i"


def some_edges(case: Case, dtype: str) -> list[list[Any]]:
    """Inputs with edge values: all of them for pointwise cases, strewn over samples for others."""
    if case in POINTWISE:
        return [edge_inputs(case, dtype)]
    rng = source(case.name + dtype + "edges")
    values = edge_values(dtype)
    if dtype in FLOAT_NAMES:  # those that overflow in sums depend on the order of adding
        values = values[~(np.abs(values) >= 88) | np.isinf(values)]
    if dtype in FLOAT_NAMES and case.row == "prod":  # and in products
        values = values[~(np.abs(values) < 1e-9)]
    found = []
    shapes_here = [shapes for shapes in case.shapes if case.row != "prod" or np.prod(shapes[0]) < 99]
    for shapes in shapes_here * (3 if len(shapes_here) > 1 else 8):
        arrays = draw(case, shapes, dtype, rng)
        for x, domain in zip(arrays, case.domains * len(arrays)):
            if isinstance(domain, str) or not x.size:
                continue
            for _ in range(int(rng.integers(1, 4))):
                x.reshape(-1)[rng.integers(0, x.size)] = rng.choice(values)
        found.append(arrays)
    return found


def legal(case: Case, arrays: list[Any]) -> list[Any]:
    """Edge inputs without those that raise: integers divided by 0."""
    if case.row in ("floor_divide", "remainder", "trunc_divide", "fmod") and arrays[1].dtype.kind != "f":
        keep = arrays[1] != 0
        return [x[keep] for x in arrays]
    if case.row.endswith("_backward"):  # results of sigmoid and tanh lie in a range
        low = {"sigmoid_backward": 0, "tanh_backward": -1}.get(case.row, -np.inf)
        arrays[1] = np.clip(arrays[1], low, 1 if np.isfinite(low) else None)
    if case.row == "" and arrays[-1].dtype.kind != "f" and re.match(r"div|7 //|7 %", case.name):
        arrays[-1][arrays[-1] == 0] = 1
    return arrays


def wait() -> None:
    """A CUDA device says that an index was out of range when it is waited for."""
    if DEVICE != "cpu":
        norch.cuda.synchronize()


def other_device() -> str:
    """A second CUDA device; the test is left out where there is none."""
    if norch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    return "cuda:1"


# Half a unit of rounding, and what float32 loses before it, more in gradients, whose terms may cancel.
FORWARD, BACKWARD = 1.2, 1.5


def units(found: Any, wanted: Any, dtype: str) -> float:
    """The largest distance of found from wanted, of float64, in units in the last place of dtype."""
    limits = norch.finfo(dtype)
    found, wanted = (np.asarray(x.detach().double().numpy()) for x in (found, wanted))
    with np.errstate(all="ignore"):
        size = np.maximum(2.0 ** np.floor(np.log2(np.maximum(np.abs(wanted), limits.tiny))), limits.tiny) * limits.eps
        distance = np.abs(found - wanted) / size
    distance = np.where(np.isnan(wanted), np.where(np.isnan(found), 0, np.inf), distance)
    beyond = np.abs(wanted) >= limits.max * (1 + limits.eps / 4)  # is rounded to infinity
    distance = np.where(beyond, np.where(np.abs(found) >= limits.max, 0, np.inf), distance)
    return float(distance.max()) if distance.size else 0.0


def example_module(name: str) -> ModuleType:
    """examples/name.py as a module."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def busy_threads() -> Iterator[None]:
    """Two threads that add tensors all the while, on the library's threads too."""
    stop = threading.Event()

    def busy() -> None:
        x = norch.ones(300_000)
        while not stop.is_set():
            (x + 1).sum()

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def refusals(call: Any, check: Any = lambda: None) -> int:
    """Runs call with each of its allocations refused in turn, until none is; check() after each MemoryError. Returns
    how many were refused."""
    for n in range(300):
        lib.norch_fail_allocation(n)
        try:
            call()
            return n
        except MemoryError:
            check()
        finally:
            lib.norch_fail_allocation(-1)
    raise AssertionError("it never got through")


def check_recorded_layer(x: Any, w: Any, b: Any, **options: Any) -> None:
    """That a recorded convolution with relu() has the bits of the calls one by one."""

    @norch.capture
    def run(x: Any) -> Any:
        with norch.inference_mode():
            return F.conv2d(x, w, b, **options).relu()

    wanted = F.conv2d(x, w, b, **options).relu()
    for _ in range(5):
        assert norch.equal(run(x), wanted)
