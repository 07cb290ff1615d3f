"""The README's recipes, carried out in a copy of the sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.host, pytest.mark.slow]

ROOT = Path(__file__).resolve().parent.parent

UINT16 = """
import norch
x = norch.tensor([1, 65535, 7], dtype=norch.uint16)
assert (x + x).tolist() == [2, 65534, 14] and (x + x).dtype is norch.uint16
assert x.sum().item() == 65543 and x.max().item() == 65535 and x.sort()[0].tolist() == [1, 7, 65535]
assert (x * 0.5).tolist() == [0.5, 32767.5, 3.5]
assert norch.promote_types(norch.uint16, norch.int16) is norch.int32
assert norch.promote_types(norch.uint16, norch.uint8) is norch.uint16
assert norch.promote_types(norch.uint16, norch.float16) is norch.float16
assert norch.tensor([-1.0, 70000.0]).to(norch.uint16).tolist() == [65535, 4464]
assert norch.iinfo(norch.uint16).max == 65535 and x.view(norch.int16).tolist() == [1, -1, 7]
assert norch.randint(0, 65536, (100,), dtype=norch.uint16).max() > 255
"""

UINT32 = """
import norch
x = norch.tensor([1, 4294967295, 7], dtype=norch.uint32)
assert (x + x).tolist() == [2, 4294967294, 14] and (x + x).dtype is norch.uint32
assert (x // 2).tolist() == (x >> 1).tolist() == [0, 2147483647, 3] and (x > 6).tolist() == [False, True, True]
assert (x % 4).tolist() == [1, 3, 3] and (x * 0.5).tolist() == [0.5, 2147483648, 3.5] and x.abs().equal(x)
assert x.sum().item() == 4294967303 and x.max().item() == 4294967295 and x.argmax().item() == 1
assert x.min().item() == 1 and x.sort()[0].tolist() == [1, 7, 4294967295] and x.cumsum(0)[1].item() == 4294967296
assert (x[None] @ x[:, None]).item() == 51 and (x[None] @ x[:, None]).dtype is norch.uint32
assert norch.zeros(2, dtype=norch.uint32).index_add(0, norch.tensor([1, 1, 1]), x).tolist() == [0, 7]
assert norch.promote_types(norch.uint32, norch.int32) is norch.int64
assert norch.promote_types(norch.uint32, norch.uint8) is norch.uint32
assert norch.tensor([-1.0, 5e9]).to(norch.uint32).tolist() == [4294967295, 705032704]
assert norch.iinfo(norch.uint32).max == 4294967295 and x.view(norch.int32).tolist() == [1, -1, 7]
assert x.half().isinf().tolist() == [False, True, False] and x.to(norch.int16).tolist() == [1, -1, 7]
assert norch.tensor([-1.0], dtype=norch.bfloat16).to(norch.uint32).item() == 4294967295
assert norch.randint(0, 4294967296, (100,), dtype=norch.uint32).max() > 65535
"""


@pytest.fixture
def tree(tmp_path):
    for part in ("csrc", "norch"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(ROOT / "Makefile", tmp_path)
    return tmp_path


def insert(path, before, text):
    old = path.read_text()
    assert old.count(before) == 1
    path.write_text(old.replace(before, text + before))


def changed(tree):
    return {
        str(path.relative_to(tree))
        for part in ("csrc", "norch")
        for path in (tree / part).rglob("*")
        if path.is_file() and path.read_bytes() != (ROOT / path.relative_to(tree)).read_bytes()
    }


def build_and_run(tree, program):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "NORCH_"))}
    made = subprocess.run(
        ["make", "all", "NVCC=", "CFLAGS=-O0", "WERROR=", f"PYTHON={sys.executable}"],
        cwd=tree,
        env=env,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tree, env={**env, "PYTHONPATH": str(tree)}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr


def test_a_narrow_dtype_is_a_row_and_two_conversions(tree):
    csrc = tree / "csrc"
    insert(csrc / "dtypes.def", "NARROW( INT16,", "NARROW( UINT16, uint16, uint16_t, int32_t, int64_t, U, 16 )\n")
    insert(csrc / "core" / "convert.h", "#define NR_OF_int16(x)", "#define NR_OF_uint16(x) (x)\n")
    insert(
        csrc / "core" / "convert.h", "#define NR_TO_int16(x)", "#define NR_TO_uint16(x) ((uint16_t)NR_TO_int32(x))\n"
    )
    assert changed(tree) == {"csrc/dtypes.def", "csrc/core/convert.h"}
    build_and_run(tree, UINT16)


def test_a_wide_dtype_is_a_row_two_conversions_and_its_loops(tree):
    csrc = tree / "csrc"
    insert(csrc / "dtypes.def", "WIDE(   INT32,", "WIDE( UINT32, uint32, uint32_t, uint32_t, int64_t, U, 32 )\n")
    insert(csrc / "core" / "convert.h", "#define NR_OF_int32(x)", "#define NR_OF_uint32(x) (x)\n")
    insert(
        csrc / "core" / "convert.h", "#define NR_TO_int32(x)", "#define NR_TO_uint32(x) ((uint32_t)NR_TO_int64(x))\n"
    )
    insert(csrc / "cpu" / "each_dtype.h", "    int32_t: nr_##name##_int32,", "    uint32_t: nr_##name##_uint32, \\\n")
    block = (csrc / "cpu" / "each_dtype.h").read_text().split("\n\n")
    (int32,) = [one for one in block if "#define DTYPE_NAME int32" in one]
    uint32 = int32.replace("int32", "uint32").replace("'i'", "'u'")
    insert(csrc / "cpu" / "each_dtype.h", int32, uint32 + "\n\n")
    assert changed(tree) == {"csrc/dtypes.def", "csrc/core/convert.h", "csrc/cpu/each_dtype.h"}
    build_and_run(tree, UINT32)
