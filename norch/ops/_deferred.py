"""Functions and methods whose module is imported at their first use, so that `import norch` takes less time."""

from __future__ import annotations

from collections.abc import Callable

from .._package.typing import Any

# Modules, relative to norch, with what they declare: functions of norch | functions and methods of Tensor | methods.
_MODULES = {
    ".fft._stft": "bartlett_window blackman_window hamming_window hann_window kaiser_window | istft stft |",
    ".ops.composed.activation": "threshold | hardshrink prelu |",
    ".ops.composed.diagonal": "| diag diag_embed diagflat trace tril triu | fill_diagonal_ tril_ triu_",
    ".ops.composed.distance": "cdist cosine_similarity pairwise_distance pdist | renorm | renorm_",
    ".ops.composed.einsum": "einsum | |",
    ".ops.composed.grid": "cartesian_prod combinations meshgrid unravel_index vander | |",
    ".ops.composed.histogram": "| histc histogram |",
    ".ops.composed.numeric": "gradient | gcd heaviside lcm nextafter | gcd_ heaviside_ lcm_ nextafter_",
    ".ops.composed.order": "isin | bincount diff kthvalue mode nanquantile quantile unique unique_consecutive |",
    ".ops.composed.pad": "constant_pad_nd | |",
    ".ops.composed.pointwise": "fill rsub | addcdiv addcmul deg2rad dist equal float_power frac frexp isneginf "
    "isposinf isreal ldexp logit mvlgamma nan_to_num polygamma rad2deg round | addcdiv_ addcmul_ deg2rad_ float_power_ "
    "frac_ ldexp_ logit_ mvlgamma_ nan_to_num_ polygamma_ rad2deg_ round_",
    ".ops.composed.products": "bilinear chain_matmul tensordot | addbmm addmm addmv addr baddbmm cross ger inner "
    "kron matrix_power outer | addbmm_ addmm_ addmv_ addr_ baddbmm_",
    ".ops.composed.repeat": "| repeat_interleave tile | repeat",
    ".ops.composed.split": "| chunk dsplit hsplit split split_with_sizes tensor_split unbind vsplit |",
    ".ops.composed.statistics": "cumulative_trapezoid trapezoid trapz | corrcoef cov |",
    ".ops.new": "| | new new_empty new_empty_strided new_full new_ones new_tensor new_zeros",
    ".ops.norm": "| norm |",
    ".ops.scan": "| cummax cummin cumprod cumsum logcumsumexp | cumprod_ cumsum_",
    ".ops.scatter": "| gather index_reduce scatter scatter_add scatter_reduce take_along_dim | index_reduce_ scatter_ "
    "scatter_add_ scatter_reduce_",
    ".ops.softmax": "| log_softmax softmax |",
    ".ops.sort": "bucketize searchsorted | argsort median msort nanmedian sort topk |",
    ".sparse.compressed": "| | to_sparse_csc to_sparse_csr",
    ".sparse.coo": "| | sparse_mask to_sparse to_sparse_coo",
    ".ops.special": "| i0 igamma igammac | i0_ igamma_ igammac_",
}
_DECLARED = {module: [column.split() for column in names.split("|")] for module, names in _MODULES.items()}

FUNCTIONS = {module: " ".join(only + both) for module, (only, both, _) in _DECLARED.items()}


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
    """A method that its module declares with @method or op(). It takes no out=; the function in norch does."""

    def function(self) -> Callable[..., Any]:
        from .op import METHODS

        _imported(self.module)
        return METHODS[self.name]


def deferred_methods() -> dict[str, DeferredMethod]:
    """The methods of Tensor whose modules (see above) are not imported yet."""
    return {
        name: (_DeclaredMethod if module[:5] == ".ops." else DeferredMethod)(f"norch{module}", name)
        for module, (_, both, only) in _DECLARED.items()
        for name in both + only
    }
