"""Products and convolutions of bfloat16 by AMX, which is emulated (NORCH_AMX=emulated) with every NORCH_ISA.

They are also compared with those of the same processor without them, and with the instructions where it has them.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import norch
from norch._binding.library import lib

pytestmark = [pytest.mark.host, pytest.mark.kernel]
HERE = Path(__file__).parent
CPUINFO = Path("/proc/cpuinfo")

PROGRAM = """
import io, sys, numpy as np, norch
from norch import nn
from norch.nn import functional as F

def halves(*shape, seed=0):
    return norch.tensor(np.random.default_rng(seed).normal(size=shape)).bfloat16()

found = {}
a, b = halves(3, 70, 130), halves(3, 130, 90, seed=1)
found["batch"] = a @ b
found["one right operand"] = a @ b[0]
found["attention"] = F.scaled_dot_product_attention(*(halves(2, 4, 50, 24, seed=s) for s in range(3)))
found["einsum"] = norch.einsum("bij,bkj->bik", a, a)
images, weight = halves(2, 17, 14, 14), halves(33, 17, 3, 3, seed=1)
found["convolution"] = F.conv2d(images, weight, padding=1)
found["its adjoint"] = F.conv_transpose2d(found["convolution"], weight, stride=2)
small = (norch.ones(40, 40) * 1e-39).bfloat16()
found["subnormal"] = small @ (norch.ones(40, 40) * 1e10).bfloat16()
mixed = norch.tensor([[3e38, -3e38] * 20] * 33).bfloat16()
found["overflow"] = mixed @ (norch.ones(40, 33) * 8).bfloat16()

_ = norch.manual_seed(0)
model, x = nn.Sequential(nn.Linear(50, 70), nn.GELU(), nn.Linear(70, 33)), norch.randn(40, 50)
with norch.autocast("cpu"):
    loss = model(x).float().square().mean()
loss.backward()
found["loss"] = loss.detach()
found.update({f"gradient of {name}": p.grad for name, p in model.named_parameters()})

layer = nn.Linear(64, 48).bfloat16()
run = norch.capture(lambda x: layer(x))
with norch.no_grad():
    y = halves(34, 64)
    found["captured"] = norch.stack([run(y), run(y), run(y)])
    found["eager"] = norch.stack([layer(y)] * 3)
np.savez(sys.stdout.buffer, **{k: v.float().numpy() for k, v in found.items()})
"""


def run(program: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    everything = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(norch.__file__)), **environment)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, env=everything)


def results(**environment: str) -> dict[str, np.ndarray]:
    done = run(PROGRAM, **environment)
    assert done.returncode == 0, done.stderr.decode()
    return dict(np.load(io.BytesIO(done.stdout)))


def check_close(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    for name, values in wanted.items():
        if name not in ("subnormal", "overflow"):
            np.testing.assert_allclose(found[name], values, rtol=2**-6, atol=2**-6 * np.abs(values).max(), err_msg=name)


@pytest.mark.parametrize("isa", lib.norch_isa_builds().decode().split())
def test_all_sizes_and_strides_by_emulated_tiles(isa: str) -> None:
    """test_bf16_products.py and test_bf16_conv.py again."""
    files = [HERE / "test_bf16_products.py", HERE / "test_bf16_conv.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *files],
        capture_output=True,
        env=dict(os.environ, NORCH_AMX="emulated", NORCH_ISA=isa),
        cwd=HERE.parent.parent,
    )
    assert done.returncode == 0, done.stdout.decode()


def test_emulated_tiles_agree_with_other_kernels() -> None:
    emulated, others = results(NORCH_AMX="emulated"), results(NORCH_AMX="0")
    check_close(emulated, others)
    for found in (emulated, others):
        assert np.array_equal(found["captured"], found["eager"])
    # infinities of both signs are summed apart, and then again by fused multiply-adds, which the baseline does not have
    assert np.array_equal(emulated["overflow"], np.full((33, 33), np.inf))
    assert not emulated["subnormal"].any()  # operands below 2**-126 count as 0
    assert not np.array_equal(emulated["batch"], others["batch"])  # in the last bits: it was another kernel


@pytest.mark.skipif(
    not (CPUINFO.exists() and "amx_bf16" in CPUINFO.read_text().split()), reason="needs a processor with AMX"
)
def test_the_instructions_agree_with_their_emulation() -> None:
    check_close(results(), results(NORCH_AMX="emulated"))


def test_a_turned_product_has_the_sums_of_the_product() -> None:
    """Few rows times a matrix that is contiguous along k are computed as the product of the transposes."""
    program = """
import norch
_ = norch.manual_seed(0)
x, weight = norch.randn(40, 1100).bfloat16(), norch.randn(300, 1100).bfloat16()
assert norch.equal(x @ weight.T, x @ weight.T.contiguous())
assert norch.equal(x.T.contiguous().T @ weight.T, x @ weight.T.contiguous())
"""
    done = run(program, NORCH_AMX="emulated")
    assert done.returncode == 0, done.stderr.decode()


def test_another_value_is_refused() -> None:
    assert b"NORCH_AMX=fast is neither 0 nor emulated" in run("import norch", NORCH_AMX="fast").stderr
    assert run("import norch", NORCH_AMX="").returncode == 0
