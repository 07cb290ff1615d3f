"""The sparse tensors of these tests, and how what norch and PyTorch give is compared."""

from __future__ import annotations

from typing import Any

import numpy as np

import norch


def sparse(
    t: Any, indices: Any = ((0, 1, 1), (2, 0, 2)), values: Any = (3.0, 4.0, 5.0), shape: Any = (2, 3), **how: Any
) -> Any:
    return t.sparse_coo_tensor(t.tensor(indices), t.tensor(values), shape, **how)


def both(torch: Any, program: Any) -> None:
    """Runs program(t) with both, and compares what it gives."""
    found, wanted = program(norch), program(torch)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(plain(a), plain(b), rtol=2e-5, atol=2e-6)


def plain(x: Any) -> Any:
    if not hasattr(x, "detach"):
        return x
    x = x.detach()
    return (x.to_dense() if x.is_sparse else x).numpy()
