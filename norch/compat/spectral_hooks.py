"""The hooks of state_dict() and load_state_dict() that PyTorch's nn.utils.spectral_norm() registers, which pickles of
such modules hold."""

from __future__ import annotations

from typing import Any

from ..nn.utils.parametrizations import as_matrix


class _OfNorm:
    def __init__(self, fn: Any) -> None:
        self.fn = fn  # the SpectralNorm


class SpectralNormStateDictHook(_OfNorm):
    """Stores the version of the format."""

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        local_metadata.setdefault("spectral_norm", {})[f"{self.fn.name}.version"] = 1


class SpectralNormLoadStateDictPreHook(_OfNorm):
    """Computes the right singular vector from the weight: PyTorch before 1.0 saved only the weight."""

    def __call__(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        fn, key = self.fn, prefix + self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(f"{fn.name}.version", 0)
        if version > 0 or f"{key}_v" in state_dict:
            return
        lacking = [name for name in (f"{key}_orig", key, f"{key}_u") if name not in state_dict]
        if lacking:
            missing_keys += lacking if strict else []
            return
        original, u = state_dict[f"{key}_orig"], state_dict[f"{key}_u"]
        matrix, sigma = as_matrix(original, fn.dim), (original / state_dict.pop(key)).mean()
        v = matrix.pinverse() @ u
        state_dict[f"{key}_v"] = v * (sigma / (u @ (matrix @ v)))
