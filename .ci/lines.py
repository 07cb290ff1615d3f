"""Counts lines by part, for `make check`: what a reader has before him.

The trunk is what he reads in an afternoon, whichever operation he asks about; then the page of one family. With the
pages of all families it is the heart. Both should stay short.
"""

from pathlib import Path

SOURCES = {".c", ".h", ".cu", ".cuh", ".cpp", ".def", ".py"}

TRUNK = """
csrc/norch.h csrc/ops.def csrc/core csrc/python csrc/ops/ops.h norch/_lib.py norch/_handle.py norch/tensor.py
norch/autograd/__init__.py norch/autograd/engine.py norch/autograd/node.py norch/autograd/forms.py
norch/autograd/grad_mode.py norch/autograd/inplace.py
norch/ops/__init__.py norch/ops/_forms.py norch/ops/_inplace.py norch/ops/_operand.py
""".split()
# Of pages, but in folders of the trunk: the plans of families, the conversions of copies, the stream of random, x[...],
# operations of the user's own, and who looks on at gradients.
ELSEWHERE = """
csrc/families csrc/core/convert.h csrc/python/region.c
norch/autograd/function.py norch/autograd/hooks.py
""".split()
COMPOSED = "norch/ops/composed"  # built of other operations, so no part of the heart
FAMILIES = ["csrc/ops", "norch/ops", "norch/autograd/derivatives"]
REST = "norch/autograd norch/nn norch/optim norch/utils norch csrc/cpu csrc/cuda csrc tests benchmarks examples".split()

counted: set[Path] = set()


def count(*parts: str) -> int:
    """Lines of the sources in files and folders, but for those that were counted before."""
    found = {f for part in map(Path, parts) for f in ([part] if part.is_file() else part.rglob("*"))}
    found = {f for f in found if f.suffix in SOURCES} - counted
    counted.update(found)
    return sum(len(f.read_text().splitlines()) for f in found)


def say(lines: int, what: str) -> int:
    print(f"{lines:7d}  {what}")
    return lines


elsewhere = count(*ELSEWHERE)
trunk = say(count(*TRUNK), "the trunk: the border, the core, the tensor, the walk")
composed = count(COMPOSED)
heart = trunk + say(elsewhere, "pages in folders of the trunk") + sum(say(count(part), part) for part in FAMILIES)
say(heart, "the heart: the trunk, and the pages of all families")
say(composed, COMPOSED)
say(heart + composed + sum(say(count(part), part) for part in REST), "all")
