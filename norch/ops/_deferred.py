"""Functions and methods whose module is imported at their first use, for the time of `import norch`."""

from __future__ import annotations

from collections.abc import Callable

from .._package.typing import Any

# Modules, relative to norch, with their functions in norch, and with the methods of Tensor that they declare.
FUNCTIONS = {
    ".fft._stft": "bartlett_window blackman_window hamming_window hann_window istft kaiser_window stft",
    ".ops.composed.activation": "hardshrink prelu threshold",
    ".ops.composed.diagonal": "diag diag_embed diagflat trace tril triu",
    ".ops.composed.distance": "cdist cosine_similarity pairwise_distance pdist renorm",
    ".ops.composed.einsum": "einsum",
    ".ops.composed.grid": "cartesian_prod combinations meshgrid unravel_index vander",
    ".ops.composed.histogram": "histc histogram",
    ".ops.composed.numeric": "gcd gradient heaviside lcm nextafter",
    ".ops.composed.order": "bincount diff isin kthvalue mode nanquantile quantile unique unique_consecutive",
    ".ops.composed.products": "addbmm addmm addmv addr baddbmm bilinear chain_matmul cross ger inner kron matrix_power "
    "outer tensordot",
    ".ops.composed.repeat": "repeat_interleave tile",
    ".ops.composed.statistics": "corrcoef cov cumulative_trapezoid trapezoid trapz",
    ".ops.new": "",
    ".ops.special": "i0 igamma igammac",
}
_METHODS = {
    ".ops.composed.activation": "hardshrink prelu",
    ".ops.composed.diagonal": "diag diag_embed diagflat fill_diagonal_ trace tril tril_ triu triu_",
    ".ops.composed.distance": "renorm renorm_",
    ".ops.composed.histogram": "histc histogram",
    ".ops.composed.numeric": "gcd gcd_ heaviside heaviside_ lcm lcm_ nextafter nextafter_",
    ".ops.composed.order": "bincount diff kthvalue mode nanquantile quantile unique unique_consecutive",
    ".ops.composed.products": "addbmm addbmm_ addmm addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_ cross ger inner "
    "kron matrix_power outer",
    ".ops.composed.repeat": "repeat repeat_interleave tile",
    ".ops.composed.statistics": "corrcoef cov",
    ".ops.new": "new new_empty new_empty_strided new_full new_ones new_tensor new_zeros",
    ".ops.special": "i0 i0_ igamma igamma_ igammac igammac_",
}


def _imported(module: str) -> Any:
    from importlib import import_module  # lazy, as the modules themselves

    return import_module(module)


class DeferredMethod:
    """A method whose module is imported at its first use. The function of that module then replaces it."""

    def __init__(self, module: str, name: str):
        self.module = module
        self.name = name

    def function(self) -> Callable[..., Any]:
        """The deferred function."""
        return getattr(_imported(self.module), self.name)

    def __get__(self, instance: Any, owner: type) -> Any:
        function = self.function()
        for cls in owner.__mro__:
            if vars(cls).get(self.name) is self:  # no other thread was faster
                setattr(cls, self.name, function)
        return function if instance is None else function.__get__(instance, owner)


class _DeclaredMethod(DeferredMethod):
    """One that its module declares with @method or op(): without out=, which the function in norch takes."""

    def function(self) -> Callable[..., Any]:
        from .op import METHODS

        _imported(self.module)
        return METHODS[self.name]


def deferred_methods() -> dict[str, DeferredMethod]:
    """The methods of Tensor that wait for the modules above."""
    declared = {name: f"norch{module}" for module, names in _METHODS.items() for name in names.split()}
    return {
        **{name: DeferredMethod("norch.fft._stft", name) for name in ("istft", "stft")},
        **{name: _DeclaredMethod(module, name) for name, module in declared.items()},
    }
