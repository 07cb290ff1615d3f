"""What is timed, and what it is held against: the groups, one table each, and their cases, one row each.

norch and PyTorch share their face, and so one setup a case; NumPy has its own where the comparison means something.
The outputs of the first call are compared before anything is timed.
"""

from __future__ import annotations

from typing import NamedTuple

from . import (
    cases_attention,
    cases_captured,
    cases_conv,
    cases_einsum,
    cases_elementwise,
    cases_fused,
    cases_inference,
    cases_matmul,
    cases_mixed,
    cases_overhead,
    cases_quantised,
    cases_reductions,
    cases_scaling,
    cases_sequences,
    cases_training,
    cases_vmap,
)
from .library import Case, Marks


class Group(NamedTuple):
    """A table: its title, and the marks for the geometric mean of its cases."""

    title: str
    marks: Marks | None = None


GROUPS = {
    "matmul": Group("matmul: products of float32 matrices", Marks(1.2, 1.4, floor=1.0, numpy=1.0)),
    "conv": Group("conv: convolutions of the shapes of networks, and their gradients", Marks(1.0, 1.3, floor=0.9)),
    "attention": Group("attention: one call with a mask or dropout, and its gradients", Marks(1.0, 1.8, floor=0.95)),
    "mixed": Group("mixed: products of bfloat16 matrices, and a step in autocast", Marks(1.0, 1.3, floor=0.9)),
    "einsum": Group("einsum: products of float32 tensors by labels", Marks(1.2, 1.8, floor=0.9, numpy=1.2)),
    "elementwise": Group("elementwise: float32, one result for each element", Marks(2.5, 3.5, floor=0.95, numpy=1.2)),
    "reductions": Group("reductions: float32, and what normalises by them", Marks(1.6, 2.0, floor=0.95, numpy=2.0)),
    "overhead": Group("overhead: calls with next to nothing to compute", Marks(2.0, 3.0, floor=1.1)),
    "training": Group("training: one step, forward, backward and update (NumPy: derivatives by hand)"),
    "vmap": Group("vmap: per-sample gradients, ensembles, Jacobians, Hessians", Marks(1.0, 2.0, floor=1.0)),
    "captured": Group("captured: the same by norch.capture, and smaller things; PyTorch as it is"),
    "inference": Group("inference: networks by norch.capture; PyTorch as it is; and ONNX Runtime"),
    "quantised": Group(
        "quantised: weights of 8 and 4 bits by norch.quantize; PyTorch in float32, ONNX Runtime in 8 bits"
    ),
    "fused": Group("fused: formulas written out, by norch.capture; eager: without it; PyTorch as it is, and compiled"),
    "sweep": Group("sweep: every function of docs/operations.md, from the cases of the tests (sweep.py)"),
    "import": Group("import: CPU time of a fresh interpreter"),
}
IMPORT_MARKS = Marks(30.0, 60.0)

TABLED: list[Case] = [
    *cases_matmul.CASES,
    *cases_conv.CASES,
    *cases_attention.CASES,
    *cases_mixed.CASES,
    *cases_einsum.CASES,
    *cases_elementwise.CASES,
    *cases_reductions.CASES,
    *cases_overhead.CASES,
    *cases_training.CASES,
    *cases_vmap.CASES,
    *cases_captured.CASES,
    *cases_inference.CASES,
    *cases_sequences.CASES,
    *cases_quantised.CASES,
    *cases_fused.CASES,
]
CASES = TABLED + [case for cases in cases_scaling.SCALING.values() for _, case in cases]  # all that a worker can run
