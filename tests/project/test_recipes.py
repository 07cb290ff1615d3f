"""The recipes of docs/architecture.md ("Adding to it"), carried out in a copy of the sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.host, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]

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


# {what is added: {file: (the line that it stands before, the text)}}; no line is the end of the file.
RECIPES = {
    "a pointwise operation": {
        "csrc/ops.def": ("UNARY( sigmoid, ", "UNARY( lorentzian,     F,     FLOAT, C(1) / (C(1) + x * x) )\n"),
        "norch/ops/pointwise.py": (
            "relu = op(",
            'lorentzian = op("lorentzian", "1 / (1 + x**2).", grad=lambda g, x, out: g * out.square() * x * -2)\n',
        ),
        "tests/cases_pointwise.py": (
            'unary("lgamma", ',
            'unary("lorentzian", lambda x: 1 / (1 + x * x), torch=False, **FLOAT)\n',
        ),
    },
    "a reduction": {
        "csrc/ops.def": (
            "REDUCE( prod, ",
            "REDUCE( abs_sum,   F,   SAME,  ONE,   s.v = 0,  s.v += absolute(x),  s.v += t.v,  s.v )\n",
        ),
        "norch/ops/reduce.py": (
            "# ---- sums and products -",
            """_abs_sum = op("abs_sum", grad=lambda g, x, axes, keepdim: expand_reduced(g, x, axes, keepdim) * x.sign())


@method(numpy=True)
def abs_sum(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    \"\"\"The sum of absolute values.\"\"\"
    return _abs_sum(as_operand(input, "abs_sum"), axes_of(dim), keepdim)


""",
        ),
        "tests/cases_reduce.py": (
            'reduction("mean", ',
            """reduction(
    "abs_sum",
    lambda x, a, k: np.sum(np.abs(x), axis=a, keepdims=k),
    EVERY,
    torch=lambda t, x, dim=None, keepdim=False: x.abs().sum(dim, keepdim),
    grad=2,
    **F_ONLY,
)
""",
        ),
    },
    "a composite": {
        "norch/nn/functional/_loss.py": (
            "",
            """

@composed(autocast="float32")
def log_cosh_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    \"\"\"log(cosh(input - target)).\"\"\"
    return reduced(log(sub(input, target).cosh()), reduction)


__all__ += ["log_cosh_loss"]
""",
        ),
        "tests/nn/test_losses.py": (
            "",
            """

def test_log_cosh_loss():
    x = norch.tensor([0.0, 1.0], dtype=norch.float64, requires_grad=True)
    loss = F.log_cosh_loss(x, norch.zeros(2, dtype=norch.float64), reduction="sum")
    assert abs(loss.item() - np.log(np.cosh(1))) < 1e-12
    loss.backward()
    assert np.allclose(x.grad.numpy(), np.tanh([0, 1]))
""",
        ),
    },
}


@pytest.fixture
def tree(tmp_path):
    return copied(tmp_path)


def copied(to):
    for part in ("csrc", "mk", "norch", "tests"):
        shutil.copytree(ROOT / part, to / part, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for file in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / file, to)
    return to


def insert(path, before, text):
    old = path.read_text()
    assert not before or old.count(before) == 1
    path.write_text(old.replace(before, text + before) if before else old + text)


def changed(tree):
    return {
        str(path.relative_to(tree))
        for part in ("csrc", "norch")
        for path in (tree / part).rglob("*")
        if path.is_file() and path.read_bytes() != (ROOT / path.relative_to(tree)).read_bytes()
    }


def built(tree):
    """Builds the library of a copy; gives the variables under which Python uses it."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "NORCH_"))}
    made = subprocess.run(
        ["make", f"-j{os.cpu_count()}", "all", "NVCC=", "CFLAGS=-O0", "WERROR=", f"PYTHON={sys.executable}"],
        cwd=tree,
        env=env,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    return {**env, "PYTHONPATH": str(tree)}


@pytest.mark.parametrize(("recipe", "files"), [("a pointwise operation", 3), ("a reduction", 3), ("a composite", 2)])
def test_a_recipe_changes_few_files(recipe, files):
    assert len(RECIPES[recipe]) == files


@pytest.mark.long
def test_what_the_recipes_add_passes_the_tests(tree):
    """Values, edge values, gradients and second derivatives, over dtypes and layouts, as those of any operation."""
    for recipe in RECIPES.values():
        for path, (before, text) in recipe.items():
            insert(tree / path, before, text)
    env = built(tree)
    chosen = "lorentzian or abs_sum or log_cosh or every_row_and_function or kernels_are_those"
    files = ["tests/ops/test_ops.py", "tests/autograd/test_derivatives.py", "tests/nn/test_losses.py"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", chosen, "-m", "not slow", "-v", *files],
        cwd=tree,
        env=env,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr
    for case in ("lorentzian", "abs_sum dim=0"):
        for test in ("test_values", "test_edge_values", "test_gradients", "test_second_derivatives"):
            assert f"::{test}[{case}" in ran.stdout
    assert "::test_in_place_gradients[lorentzian" in ran.stdout and "test_log_cosh_loss PASSED" in ran.stdout


@pytest.mark.long
def test_a_dtype_is_a_row_and_two_conversions_and_a_wide_one_has_its_loops(tree):
    """One that is computed in another (NARROW) takes two files, one with loops of its own (WIDE) three."""
    csrc = tree / "csrc"
    conversions = csrc / "core" / "convert.h"
    insert(csrc / "dtypes.def", "NARROW( INT16,", "NARROW( UINT16, uint16, uint16_t, int32_t, int64_t, U, 16 )\n")
    insert(conversions, "#define NR_OF_int16(x)", "#define NR_OF_uint16(x) (x)\n")
    insert(conversions, "#define NR_TO_int16(x)", "#define NR_TO_uint16(x) ((uint16_t)NR_TO_int32(x))\n")
    assert changed(tree) == {"csrc/dtypes.def", "csrc/core/convert.h"}

    insert(csrc / "dtypes.def", "WIDE(   INT32,", "WIDE( UINT32, uint32, uint32_t, uint32_t, int64_t, U, 32 )\n")
    insert(conversions, "#define NR_OF_int32(x)", "#define NR_OF_uint32(x) (x)\n")
    insert(conversions, "#define NR_TO_int32(x)", "#define NR_TO_uint32(x) ((uint32_t)NR_TO_int64(x))\n")
    loops = csrc / "cpu" / "each_dtype.h"
    insert(loops, "    int32_t: nr_##name##_int32,", "    uint32_t: nr_##name##_uint32, \\\n")
    (int32,) = [block for block in loops.read_text().split("\n\n") if "#define DTYPE_NAME int32" in block]
    insert(loops, int32, int32.replace("int32", "uint32").replace("'i'", "'u'") + "\n\n")
    assert changed(tree) == {"csrc/dtypes.def", "csrc/core/convert.h", "csrc/cpu/each_dtype.h"}

    env = built(tree)
    for program in (UINT16, UINT32):
        ran = subprocess.run([sys.executable, "-c", program], cwd=tree, env=env, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
