"""What is timed on a GPU: the groups in the order of the table, and their cases."""

from __future__ import annotations

from . import cases_bandwidth, cases_index, cases_layers, cases_models, cases_products, cases_small
from .library import Case

GROUPS = {
    "bandwidth": "bandwidth: float32, 1e8 elements, rows of 1024, beside the rate of a copy",
    "products": "products of matrices",
    "layers": "layers: f, fwd forward alone, f+b with gradients",
    "order and index": "order, scans, reductions of odd shapes, indices",
    "small and copies": "small calls, copies, random numbers, other dtypes",
    "training steps": "training steps: forward, backward, update",
}

CASES: list[Case] = [
    *cases_bandwidth.CASES,
    *cases_products.CASES,
    *cases_layers.CASES,
    *cases_index.CASES,
    *cases_small.CASES,
    *cases_models.CASES,
]
