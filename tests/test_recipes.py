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


def test_a_narrow_dtype_is_a_row_and_two_conversions(tree):
    csrc = tree / "csrc"
    insert(csrc / "dtypes.def", "NARROW( INT16,", "NARROW( UINT16, uint16, uint16_t, int32_t, int64_t, U, 16 )\n")
    insert(csrc / "core" / "convert.h", "#define NR_OF_int16(x)", "#define NR_OF_uint16(x) (x)\n")
    insert(
        csrc / "core" / "convert.h", "#define NR_TO_int16(x)", "#define NR_TO_uint16(x) ((uint16_t)NR_TO_int32(x))\n"
    )
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
        [sys.executable, "-c", UINT16], cwd=tree, env={**env, "PYTHONPATH": str(tree)}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
