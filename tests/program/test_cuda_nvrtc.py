"""Chains compiled at run time (csrc/cuda/chain_compile.cu): the simulation has an NVRTC that runs the host's compiler.
Each test starts processes of its own, as a process looks for NVRTC once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import norch
from norch._binding.nvrtc import _candidates

TESTS = Path(__file__).resolve().parents[1]
LIBRARY = Path(os.environ.get("NORCH_CUDA_LIBRARY", "none")).resolve()
NVRTC = LIBRARY.parent / "libnvrtc.so.12"
SIMULATED = norch.cuda.is_available() and norch.cuda.get_device_properties().simulated and NVRTC.exists()
pytestmark = pytest.mark.skipif(not SIMULATED, reason="needs the simulated CUDA device, and its NVRTC")

PROGRAM = """
import json, sys, threading
import norch
from test_capture_fusion import gelu, layer_norm, softmax
from simulated import launches
from test_cuda_capture import bits

def mixed(x):  # truths, casts, numbers, a choice, an integer, a strided input
    low = (x.T[:, :3] * 2).int() % 2 == 0
    return norch.where(low, x.T[:, :3], -1.5).half().exp(), (x > 0) & (x < 1), x.argmax(-1) * 2 + 1

def in_graph(x):
    y = softmax(gelu(x)) @ x.T
    return layer_norm(y).tanh() @ x

def run(function, dtype=norch.float32):
    captured = norch.capture(function)
    for k in range(6):
        x = norch.randn(6, 40).to(dtype).to("cuda")
        equal = bits(captured(x)) == bits(function(x))
        assert equal, (function.__name__, k)
    assert captured.program.chains()
    return launches(lambda: captured(x))

ALL = {"gelu": gelu, "softmax": softmax, "layer_norm": layer_norm, "mixed": mixed, "in_graph": in_graph}
"""
END = "\nprint(json.dumps([found, norch.cuda.chain_compiler(), norch.cuda.chain_sources()]))"


def run(program, cache, nvrtc=NVRTC, **environment):
    """(found, what chain_compiler() says, chain_sources()) of a program in a process of its own."""
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent), *sys.path])
    environment |= {"PYTHONPATH": paths, "NORCH_NVRTC_LIBRARY": str(nvrtc), "NORCH_CHAIN_CACHE": str(cache)}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM + program + END],
        capture_output=True,
        text=True,
        env=os.environ | {"NORCH_CUDA_LIBRARY": str(LIBRARY)} | environment,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return json.loads(ran.stdout)


GELU = "found = run(gelu)"


def counts(told):
    """(chains, compiled, from the cache)"""
    return tuple(int(words.split()[0]) for words in told.partition("): ")[2].partition(";")[0].split(", "))


def test_a_chain_is_compiled_once_and_kept_with_the_bits_of_its_calls(tmp_path):
    every = """
found = {name: run(f) for name, f in ALL.items()}
found |= {str(dtype): run(gelu, dtype) for dtype in (norch.bfloat16, norch.float64)}
"""
    cache = tmp_path / "deep" / "cache"
    found, told, sources = run(every, cache)
    without = run(every, cache, nvrtc=0)
    assert found == without[0]  # launches
    assert without[1:] == ["chains are not compiled: NORCH_NVRTC_LIBRARY is 0", []]
    chains, compiled, kept = counts(told)
    assert chains == compiled == len(sources) == len(set(sources)) >= 8 and kept == 0 and "failure" not in told
    assert "row_tanh<T>::f(" in sources[0] and "reduce_rows<row_sum<D>, D, loops>" in sources[1]
    assert cache.stat().st_mode & 0o777 == 0o700 and len(list(cache.iterdir())) == chains
    again, told, same = run(every, cache)
    assert again == found and same == sources and counts(told) == (chains, 0, chains)


def test_damaged_files_are_compiled_again(tmp_path):
    for damage in (
        lambda data: b"",
        lambda data: data[:-9],
        lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
        lambda data: data.replace(b"row_tanh", b"row_sinh"),
        lambda data: b"\xff" * 24 + data[24:],
    ):
        run(GELU, tmp_path)
        [file] = tmp_path.iterdir()
        file.write_bytes(damage(file.read_bytes()))
        assert counts(run(GELU, tmp_path)[1]) == (1, 1, 0)
        assert counts(run(GELU, tmp_path)[1]) == (1, 0, 1)


def test_folders_that_others_can_write_to_are_not_used(tmp_path):
    shared, target, link, file = (tmp_path / name for name in ("shared", "target", "link", "file"))
    shared.mkdir()
    shared.chmod(0o777)
    target.mkdir()
    link.symlink_to(target)
    file.write_text("")
    for folder in (shared, link, file, file / "below"):
        for _ in range(2):
            assert counts(run(GELU, folder)[1]) == (1, 1, 0)
    assert not list(shared.iterdir()) and not list(target.iterdir())
    run(GELU, target)
    [one] = target.iterdir()
    one.chmod(0o666)
    assert counts(run(GELU, target)[1]) == (1, 1, 0)


def test_the_cache_is_bounded(tmp_path):
    for i in range(600):
        (tmp_path / f"{i}.chain").touch()
        os.utime(tmp_path / f"{i}.chain", (i, i))
    run(GELU, tmp_path)
    left = {file.name for file in tmp_path.iterdir()}
    assert len(left) == 301 and "0.chain" not in left and "599.chain" in left


def test_without_a_compiler_the_reason_is_told(tmp_path):
    (tmp_path / "broken.so").write_text("no library")
    for path in (tmp_path / "none.so", tmp_path / "broken.so"):
        _, told, sources = run(GELU, 0, nvrtc=path)
        assert told.startswith("chains are not compiled: ") and path.name in told and sources == []
    assert "is not NVRTC" in run(GELU, 0, nvrtc=LIBRARY)[1]
    _, told, [source] = run(GELU, 0, NORCH_CUDASIM_CXX="sh -c 'echo no such formula; exit 1'")
    assert counts(told) == (1, 0, 0) and "does not compile it: no such formula" in told and "row_tanh" in source


def test_threads_compile_a_chain_once(tmp_path):
    program = """
found, x = [], norch.randn(6, 40).to("cuda")
functions = [norch.capture(f) for f in (gelu, gelu, softmax, softmax)]
for f in functions:
    f(x), f(x), f(x)
def replay(f):
    found.append(bits(f(x)))
threads = [threading.Thread(target=replay, args=(f,)) for f in functions]
for t in threads: t.start()
for t in threads: t.join()
found = sorted(found) == sorted([bits(gelu(x)), bits(softmax(x))] * 2)
"""
    found, told, _ = run(program, tmp_path)
    assert found and counts(told) == (2, 2, 0)


@pytest.mark.parametrize("capability", ["80", "90"])
@pytest.mark.parametrize("path", [path for path in _candidates() if os.path.isabs(path)] or [None])
def test_nvidias_compiler_takes_the_sources(path, capability):
    """The simulation then refuses its machine code, and chains run as without it."""
    if path is None:
        pytest.skip("needs the wheel nvidia-cuda-nvrtc or nvidia-cuda-nvrtc-cu12")
    program = """
found = []
for f in ALL.values():
    run(f)
    found.append(norch.cuda.chain_compiler().partition("failure: ")[2])
"""
    found, told, _ = run(program, 0, nvrtc=path, NORCH_CUDASIM_CAPABILITY=capability)
    assert set(found) == {"the driver does not load the machine code"}, found
