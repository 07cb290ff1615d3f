"""Products beyond those of cases.py: norch.linalg, einsum's kin, powers and chains."""

from __future__ import annotations

import pytest

import norch


def test_linalg_sends_decompositions_elsewhere() -> None:
    with pytest.raises(AttributeError, match=r"no svd.*numpy\.linalg and scipy\.linalg"):
        _ = norch.linalg.svd
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = norch.linalg.nonsense
