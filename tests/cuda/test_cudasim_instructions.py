"""The instructions of csrc/cuda/mma.cuh as the simulation executes them: where a lane's registers lie in matrices, how
sums are cut, when copies arrive, and that mistakes end the device. These tests run where the simulation is the device:
in make test-cudasim."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

import numpy as np
import pytest

LIBRARY = os.environ.get("NORCH_CUDA_LIBRARY", "")
pytestmark = pytest.mark.skipif("cudasim" not in LIBRARY, reason="the device is not the simulation")

TF32, TF32_FROM_ZERO, FLOAT16, BFLOAT16, FLOAT64, LOAD, LOAD_TRANSPOSED = range(7)
ROUND, SPLIT, COPY_4, COPY_8, COPY_16 = range(7, 12)
READ_BEFORE_WAIT, WAIT_FOR_TOO_FEW, LOST_LANE, OTHER_INSTRUCTION, UNALIGNED_SOURCE, UNALIGNED_PLACE = range(12, 18)


def executed(kind: int, given: np.ndarray, out: np.ndarray) -> str:
    """What the simulation says; the results are in out."""
    trials = ctypes.CDLL(str(Path(LIBRARY).with_name("libfaulty.so")))
    message = ctypes.create_string_buffer(400)
    given = np.frombuffer(given.tobytes(), np.uint8)
    sizes = ctypes.c_size_t(given.nbytes), ctypes.c_size_t(out.nbytes), ctypes.c_size_t(len(message))
    done = trials.instruction_try(
        kind,
        given.ctypes.data_as(ctypes.c_void_p),
        sizes[0],
        out.ctypes.data_as(ctypes.c_void_p),
        sizes[1],
        message,
        sizes[2],
    )
    assert done == 0 or message.value != b"no error"
    return message.value.decode()


def place(lane: int, register: int, element: int, sixteen: bool) -> tuple[int, int]:
    """Of an element of A: row and k. Those of B are the same, of registers 0, 2, 4 ...: column and k."""
    g, t = divmod(lane, 4)
    k = 2 * t + 8 * (register // 2) + element if sixteen else t + 4 * (register // 2)
    return g + 8 * (register % 2), k


@pytest.mark.parametrize("kind", [TF32, TF32_FROM_ZERO, FLOAT16, BFLOAT16, FLOAT64])
def test_products_of_a_warp(kind: int) -> None:
    source = np.random.default_rng(kind)
    sixteen, depth = kind in (FLOAT16, BFLOAT16), 8 if kind in (TF32, TF32_FROM_ZERO) else 16
    number = np.float64 if kind == FLOAT64 else np.float16 if kind == FLOAT16 else np.float32
    a, b, c = (source.integers(-8, 9, shape).astype(np.float64) / 4 for shape in ((16, depth), (depth, 8), (16, 8)))

    def bits(values: list[float]) -> np.ndarray:  # of bfloat16 the upper half of float32
        raw = np.array(values, number)
        return (raw.view(np.uint32) >> 16).astype(np.uint16) if kind == BFLOAT16 else raw

    elements = range(2 if sixteen else 1)
    registers = depth // (2 if sixteen else 1) // 2
    a_lanes = [a[place(lane, r, e, sixteen)] for lane in range(32) for r in range(registers) for e in elements]
    b_lanes = [
        b[place(lane, r, e, sixteen)[::-1]] for lane in range(32) for r in range(0, registers, 2) for e in elements
    ]
    c_places = [(lane // 4 + 8 * (q // 2), 2 * (lane % 4) + q % 2) for lane in range(32) for q in range(4)]
    sums = np.float64 if kind == FLOAT64 else np.float32
    out = np.zeros(128, sums)
    given = b"".join(x.tobytes() for x in (bits(a_lanes), bits(b_lanes), np.array([c[at] for at in c_places], sums)))
    assert executed(kind, np.frombuffer(given, np.uint8), out) == "no error"
    expected = a @ b + (0 if kind == TF32_FROM_ZERO else c)
    assert out.tolist() == [expected[at] for at in c_places]


def test_tensor_cores_cut() -> None:
    for sign in (1, -1):
        a, b, c = np.full(128, sign * 3 / 8), np.ones(64), np.full(128, sign * 2.0**24)
        out = np.zeros(128, np.float32)
        assert executed(TF32, np.concatenate([a, b, c]).astype(np.float32), out) == "no error"
        assert set(out.tolist()) == {sign * (2.0**24 + 2)}  # not 2**24 + 4, to which 2**24 + 3 is rounded


@pytest.mark.parametrize("kind", [LOAD, LOAD_TRANSPOSED])
def test_loads_of_matrices(kind: int) -> None:
    matrices = np.arange(256, dtype=np.uint16).reshape(4, 8, 8)
    out = np.zeros((32, 4, 2), np.uint16)
    assert executed(kind, matrices, out) == "no error"
    for lane in range(32):
        g, t = divmod(lane, 4)
        for i in range(4):
            for e in range(2):
                at = (2 * t + e, g) if kind == LOAD_TRANSPOSED else (g, 2 * t + e)
                assert out[lane, i, e] == matrices[i][at]


def test_numbers_of_tf32() -> None:
    x = np.random.default_rng(0).standard_normal(32).astype(np.float32)
    x[:6] = 0, -0.0, np.inf, np.nan, 1 + 2.0**-11, -1 - 2.0**-11  # the last two: ties, away from zero
    rounded, halves = np.zeros(32, np.float32), np.zeros((32, 2), np.float32)
    assert executed(ROUND, x, rounded) == executed(SPLIT, x, halves) == "no error"
    assert (
        not (rounded.view(np.uint32) & 0x1FFF)[np.isfinite(x)].any() and np.isnan(rounded[3]) and rounded[2] == np.inf
    )
    assert rounded[4] == 1 + 2.0**-10 and rounded[5] == -1 - 2.0**-10
    finite = np.isfinite(x)
    assert (np.abs(rounded[finite] - x[finite]) <= np.abs(x[finite]) * 2.0**-11).all()
    assert (halves[finite, 0] == rounded[finite]).all() and (halves.sum(1, dtype=np.float64) == x)[finite].all()


@pytest.mark.parametrize("kind", [COPY_4, COPY_8, COPY_16])
def test_copies_arrive_when_waited_for(kind: int) -> None:
    given = np.random.default_rng(0).integers(0, 255, (32, 16)).astype(np.uint8)
    out = np.zeros((32, 16), np.uint8)
    assert executed(kind, given, out) == "no error"
    given[::3] = 0
    assert (out == given).all()
    if kind == COPY_8:  # of a lane's two copies, each a group of its own, the second or both are under way
        assert executed(WAIT_FOR_TOO_FEW, given, out) == "no error"
        assert (out[:, :8] == given[:, :8]).all() and (out[:, 8:] == 255).all()
        assert executed(READ_BEFORE_WAIT, given, out) == "no error" and (out == 255).all()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (LOST_LANE, r"missing warp lane at .*simulated_mma\.h:\d+"),
        (OTHER_INSTRUCTION, r"missing warp lane at .*|lanes of a warp at different instructions"),
        (UNALIGNED_SOURCE, r"a copy of 16 bytes from an address that 16 does not divide"),
        (UNALIGNED_PLACE, r"16 bytes at \d+ of 1024 of shared memory, aligned to 16"),
    ],
    ids=["lost lane", "other instruction", "unaligned source", "unaligned place"],
)
def test_mistakes_with_instructions_end_the_device(kind: int, said: str) -> None:
    assert re.search(said, executed(kind, np.zeros(4096, np.uint8), np.zeros(512, np.uint8)))
