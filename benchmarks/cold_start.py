"""From a cold process to the first embedding of a text by MiniLM-L6 out of a file, beside PyTorch and ONNX Runtime:
`python -m benchmarks.cold_start`.

norch and PyTorch map a file of their own format into a model that was made on the meta device, which draws no initial
weights; ONNX Runtime reads the model that norch exported. Each run is a fresh interpreter with one thread, and the
files are in the page cache. Times are the CPU's, of the whole process; memory is the most that was resident.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from importlib.util import find_spec

from .cases_sequences import drawn, embed
from .library import Case, Library
from .measure import agree, child
from .report import SHOWN, duration
from .transformers import encoder

TOKENS = 128
PYTHON = """
import json, {name} as module
from benchmarks.transformers import encoder
module.set_num_threads(1)
with module.device("meta"):
    model = encoder(module.nn).eval()
model.load_state_dict(module.load({file!r}, mmap=True), assign=True)
with module.inference_mode():
    found = model(module.arange({tokens}).reshape(1, -1) * 7, module.ones(1, {tokens})).tolist()
"""
ONNX = """
import json, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession({file!r}, options, providers=["CPUExecutionProvider"])
given = numpy.arange({tokens}).reshape(1, -1) * 7, numpy.ones((1, {tokens}), numpy.float32)
found = session.run(None, dict(zip((one.name for one in session.get_inputs()), given)))[0].tolist()
"""
END = """
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps([peak, found]))
"""


def programs(names: list[str], folder: str) -> dict[str, str]:
    """The program of each library, whose files are written to a folder."""
    lib = Library("norch")
    model = drawn(lib, encoder(lib.module.nn), 0.02)
    files = {name: os.path.join(folder, f"{name}.file") for name in names}
    for name in {*names} - {"onnxruntime"}:
        lib.module.save(model.state_dict(), files[name], format=name)
    if "onnxruntime" in names:
        given = lib.integers(TOKENS, 30522).reshape(1, TOKENS), lib.module.ones(1, TOKENS)
        lib.module.onnx.export(model, given, files["onnxruntime"])
    texts = {name: ONNX if name == "onnxruntime" else PYTHON for name in names}
    return {name: text.format(name=name, tokens=TOKENS, file=files[name]) + END for name, text in texts.items()}


def main() -> None:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold_start", description=__doc__)
    parser.add_argument("--against", choices=["torch", "onnxruntime", "none"], action="append")
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    wanted = options.against or ["torch", "onnxruntime"]
    names = ["norch", *(name for name in wanted if find_spec(name) and (name != "onnxruntime" or find_spec("onnx")))]
    spent: dict[str, list[float]] = {name: [] for name in names}
    peak: dict[str, int] = {}
    found: dict[str, list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        texts = programs(names, folder)
        core = max(os.sched_getaffinity(0))
        for turn in range(options.rounds + 1):
            for name, text in texts.items():
                printed, seconds = child(text, core)
                peak[name], found[name] = json.loads(printed)
                spent[name] += [seconds] if turn else []  # the first run compiles modules, and reads the files
    agree(Case("cold", "the first embedding", embed, None), found)
    print("from a cold process to the first embedding of MiniLM-L6")
    print(f"  {'':12}  {'CPU time':>8}  {'/ norch':>8}  {'resident at most':>16}")
    for name in names:
        ratio = statistics.median(theirs / ours for theirs, ours in zip(spent[name], spent["norch"]))
        time, most = duration(statistics.median(spent[name])), f"{peak[name] / 1e6:.0f} MB"
        print(f"  {SHOWN[name]:12}  {time:>8}  {ratio:>8.2f}  {most:>16}")


if __name__ == "__main__":
    main()
