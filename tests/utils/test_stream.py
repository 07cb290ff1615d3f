"""Results larger than the cache go past it (csrc/cpu/stream.h): the values are those of any other result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import norch

pytestmark = [pytest.mark.kernel, pytest.mark.host]

COUNT = 5_000_011  # of 4 bytes: above 16 MiB, and no multiple of a line
ROWS, COLUMNS = 2_051, 2_064  # 64 bytes divide a row
ODD_COLUMNS = 2_063  # ... and not this one

Case = Callable[..., object]


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    random = np.random.default_rng(len(shape))
    return (random.standard_normal(shape, dtype=np.float32) * 100).astype(dtype)


POINTWISE: dict[str, tuple[Case, Case]] = {
    "binary": (lambda x, y: x + y, lambda x, y: x + y),
    "a number behind": (lambda x, y: x * 3, lambda x, y: x * 3),
    "a number before": (lambda x, y: 3 - x, lambda x, y: 3 - x),
    "unary": (lambda x, y: norch.relu(x), lambda x, y: np.maximum(x, 0)),
    "ternary": (lambda x, y: x.clamp(-50, 50), lambda x, y: np.clip(x, -50, 50)),
    "choice": (lambda x, y: norch.where(x > y, x, y), lambda x, y: np.where(x > y, x, y)),
    "in place": (lambda x, y: x.clone().add_(y), lambda x, y: x + y),
    "backwards": (lambda x, y: x.flip(0) + y, lambda x, y: x[::-1] + y),
}


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise(name: str, dtype: str) -> None:
    ours, theirs = POINTWISE[name]
    x, y = drawn((COUNT,), dtype), drawn((COUNT + 1,), dtype)[1:]
    want = np.asarray(theirs(x, y))
    for threads in (1, 2):
        before = norch.get_num_threads()
        norch.set_num_threads(threads)
        try:
            found = ours(norch.from_numpy(x), norch.from_numpy(y))
        finally:
            norch.set_num_threads(before)
        assert found.numpy().dtype == want.dtype
        assert np.array_equal(found.numpy(), want)


@pytest.mark.parametrize("columns", [COLUMNS, ODD_COLUMNS, 48, 3])
def test_rows(columns: int) -> None:
    x, bias = drawn((ROWS * COLUMNS // columns, columns), "float32"), drawn((columns,), "float32")
    ours, row, column = norch.from_numpy(x), norch.from_numpy(bias), norch.from_numpy(x[:, :1].copy())
    assert np.array_equal((ours + row).numpy(), x + bias)
    assert np.array_equal((ours * column).numpy(), x * x[:, :1])
    assert np.array_equal((ours[1:] + ours[:-1]).numpy(), x[1:] + x[:-1])


COPIES: dict[str, Case] = {
    "dense": lambda x: x + 0 if isinstance(x, np.ndarray) else x.clone(),
    "widened": lambda x: x.astype("float64") if isinstance(x, np.ndarray) else x.double(),
    "rounded": lambda x: x.astype("int32") if isinstance(x, np.ndarray) else x.int(),
    "turned": lambda x: x.T + 0 if isinstance(x, np.ndarray) else x.T.contiguous(),
    "turned and widened": lambda x: x.T.astype("int64") if isinstance(x, np.ndarray) else x.T.long(),
    "backwards": lambda x: x[::-1, ::-1] + 0 if isinstance(x, np.ndarray) else x.flip(0, 1).contiguous(),
    "every second": lambda x: x[:, ::2].astype("float64") if isinstance(x, np.ndarray) else x[:, ::2].double(),
    "a part": lambda x: x[:, 1:2049] + 0 if isinstance(x, np.ndarray) else x[:, 1:2049].contiguous(),
}


@pytest.mark.parametrize("columns", [COLUMNS, ODD_COLUMNS])
@pytest.mark.parametrize("name", COPIES)
def test_copies(name: str, columns: int) -> None:
    x = drawn((2 * ROWS, columns), "float32")
    want = np.asarray(COPIES[name](x))
    assert want.nbytes >= 16 << 20
    assert np.array_equal(COPIES[name](norch.from_numpy(x)).numpy(), want)


def test_parts_of_a_large_tensor_beside_one_another() -> None:
    """Written parts may end within a line: what the other half of the line holds stays."""
    x, y = drawn((COUNT,), "float32"), drawn((COUNT,), "float32")
    both = norch.cat([norch.from_numpy(x), norch.from_numpy(y)])
    assert np.array_equal(both.numpy(), np.concatenate([x, y]))
    wide = norch.zeros(ROWS, 3 * COLUMNS)
    part = drawn((ROWS, COLUMNS + 16), "float32")
    wide[:, 16 : COLUMNS + 32] = norch.from_numpy(part)
    assert np.array_equal(wide[:, 16 : COLUMNS + 32].numpy(), part)
    assert wide[:, :16].abs().sum() == 0
    assert wide[:, COLUMNS + 32 :].abs().sum() == 0
