"""The builds of the kernels for each instruction set give the same results, within stated ulps.

Integers, truths, moves, and sums, whose lanes do not depend on the width of vectors: bit for bit. Functions: where one
build has fused multiply-adds and another not, each is off by what csrc/cpu/math.h states, so two differ by twice that.
Products: 16 ulp of the largest element, as fused and plain sums of products round otherwise.
"""

from __future__ import annotations

import io
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

import norch
from norch._binding.library import lib

SAME = "sum sum1 sum0 mean amax argmax prod cumsum sort median add mul relu clamp where sqrt floor to_int gather"
FUNCTIONS = {
    "exp": 2,
    "exp2": 2,
    "expm1": 3,
    "log": 2,
    "log1p": 3,
    "sigmoid": 3,
    "silu": 4,
    "tanh": 3,
    "erf": 3,
    "sin": 1,
}

PROGRAM = """
import sys, numpy as np, norch
random, everything = np.random.default_rng(0), {}
for name in ("float32", "float64"):
    x = norch.tensor(random.uniform(-5, 5, (37, 421)).astype(name))
    positive, row = x.abs() + 0.1, norch.tensor(random.uniform(-1, 1, 421).astype(name))
    index = norch.tensor(random.integers(0, 37, 300))
    found = dict(
        sum=x.sum(), sum1=x.sum(1), sum0=x.sum(0), mean=x.mean(1), amax=x.amax(1), argmax=x.argmax(0), prod=x.prod(1),
        cumsum=x.cumsum(1), sort=x.sort(1)[0], median=x.median(), add=x + row, mul=x * row, relu=x.relu(),
        clamp=x.clamp(-1, 2), where=norch.where(x > 0, x, row), sqrt=positive.sqrt(), floor=x.floor(), to_int=x.int(),
        gather=x[index], exp=x.exp(), exp2=x.exp2(), expm1=x.expm1(), log=positive.log(), log1p=positive.log1p(),
        sigmoid=x.sigmoid(), silu=norch.nn.functional.silu(x), tanh=x.tanh(), erf=x.erf(), sin=x.sin(),
        product=x @ x.T, softmax=x.softmax(1),
    )
    everything.update({name + " " + k: v.numpy() for k, v in found.items()})
np.savez(sys.stdout.buffer, **everything)
"""


def results(isa: str) -> list[dict[str, np.ndarray]]:
    environment = dict(os.environ, NORCH_ISA=isa, PYTHONPATH=os.path.dirname(os.path.dirname(norch.__file__)))
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    found = np.load(io.BytesIO(done.stdout))
    return [{k.split()[1]: found[k] for k in found if k.startswith(name)} for name in ("float32", "float64")]


@pytest.mark.host
def test_builds_for_instruction_sets_agree():
    builds = lib.norch_isa_builds().decode().split()
    plain = results(builds[0])
    for isa in builds[1:]:
        for ours, theirs in zip(results(isa), plain):
            for name in SAME.split():
                assert np.array_equal(ours[name], theirs[name]), (isa, name)
            for name, ulps in FUNCTIONS.items():
                apart = np.abs(ours[name] - theirs[name]) / np.spacing(np.abs(theirs[name]))
                assert apart.max() <= ulps, (isa, name, apart.max())
            epsilon = np.finfo(ours["exp"].dtype).eps
            assert np.abs(ours["product"] - theirs["product"]).max() <= 16 * epsilon * theirs["product"].max(), isa
            assert np.abs(ours["softmax"] - theirs["softmax"]).max() <= 8 * epsilon, isa


@pytest.mark.host
@pytest.mark.skipif(not os.path.exists("/proc/cpuinfo") or platform.machine() != "x86_64", reason="needs Linux's list")
def test_the_builds_that_run_are_those_the_system_lists():
    with open("/proc/cpuinfo") as file:
        flags = next(line for line in file if line.startswith("flags")).split()
    wanted = {"baseline": [], "avx2": ["avx2", "fma"], "avx512": ["avx512f", "avx512dq", "avx512bw", "avx512vl"]}
    runs = [isa for isa, needs in wanted.items() if set(needs) <= set(flags)]
    assert lib.norch_isa_builds().decode().split() == runs
