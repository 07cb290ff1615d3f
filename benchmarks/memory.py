"""What a training step takes of memory, beside PyTorch: `python -m benchmarks.memory`.

Each library and model in a process of its own: the most that is resident (VmHWM of Linux) in ten steps, less what was
resident before the model was made, with its inputs. For norch also what its tensors hold after a step, and what the
allocator keeps for the next.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from importlib.util import find_spec

from . import models
from .cases_training import article_step, mlp_step
from .library import Library, Setup
from .measure import environment

STEPS = 10
MIB = 2**20
CASES: dict[str, Setup] = {
    "MLP 784-128-64-10, batch 64": mlp_step,
    "CNN 28x28, batch 64": models.cnn_step,
    "GPT of 2 layers, batch 16": models.gpt_step,
}


def resident(field: str) -> int:
    """VmRSS or VmHWM of this process, in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


def forget_peak() -> None:
    """VmHWM starts anew from what is resident."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def child(name: str, case: str) -> None:
    """Prints what one library takes for one model, as JSON."""
    lib = Library(name)
    article_step(lib)()  # what is loaded on first use is no part of a step
    forget_peak()
    before = resident("VmRSS")
    run = CASES[case](lib)
    for _ in range(STEPS):
        run()
    found = {"peak": resident("VmHWM") - before}
    if name == "norch":
        from norch._binding.library import lib as library

        found |= {"live": library.norch_live_bytes(), "kept": library.norch_cached_bytes()}
    print(json.dumps(found))


def measured(name: str, case: str) -> dict[str, int]:
    """The same from a fresh process."""
    command = [sys.executable, "-m", "benchmarks.memory", "--child", name, case]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name}, {case}: {done.stderr}")
    return json.loads(done.stdout)


def main() -> None:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--only", metavar="WORD", default="", help="models with this in their names")
    parser.add_argument("--against", choices=["torch", "none"], default="torch")
    parser.add_argument("--child", nargs=2, metavar=("LIBRARY", "MODEL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    chosen = [case for case in CASES if options.only in case]
    if not chosen:
        parser.error(f"--only {options.only}: no model of that name")
    others = ["torch"] if options.against == "torch" and find_spec("torch") else []
    print(f"MiB beyond those before the model was made, at the peak of {STEPS} steps, one thread")
    print(f"  {'':28} {'norch':>8} {'(tensors':>9} {'kept)':>7} {'PyTorch':>8}  PyTorch / norch")
    for case in chosen:
        ours = measured("norch", case)
        line = f"  {case:28} {ours['peak'] / MIB:8.1f} {ours['live'] / MIB:9.1f} {ours['kept'] / MIB:7.1f}"
        for other in others:
            peak = measured(other, case)["peak"]
            line += f" {peak / MIB:8.1f}  {peak / max(ours['peak'], 1):10.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
