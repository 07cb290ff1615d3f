"""Functions and methods whose module is imported, or that are made, at their first use, so that `import norch` takes
less time."""

from __future__ import annotations

from collections.abc import Callable

from .._package.typing import Any

# Modules, relative to norch, with what they declare: functions of norch | functions and methods of Tensor | methods.
_MODULES = {
    ".fft._stft": "bartlett_window blackman_window hamming_window hann_window kaiser_window | istft stft |",
    ".ops.complex": "complex polar view_as_complex view_as_real | angle conj conj_physical imag is_complex real | "
    "conj_physical_",
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
    "isposinf isreal ldexp logit mvlgamma nan_to_num polygamma rad2deg round | addcdiv_ addcmul_ deg2rad_ "
    "float_power_ frac_ ldexp_ logit_ mvlgamma_ nan_to_num_ polygamma_ rad2deg_ round_",
    ".ops.composed.products": "bilinear chain_matmul tensordot | addbmm addmm addmv addr baddbmm cross ger inner kron "
    "matrix_power outer | addbmm_ addmm_ addmv_ addr_ baddbmm_",
    ".ops.composed.repeat": "| repeat_interleave tile | repeat",
    ".ops.composed.shape": "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors "
    "column_stack concat concatenate dstack hstack row_stack vstack | adjoint as_strided_scatter diagonal_scatter "
    "flip fliplr flipud moveaxis movedim ravel roll rot90 select_scatter slice_scatter swapaxes swapdims unflatten | "
    "H T mH mT sum_to_size swapaxes_ swapdims_",
    ".ops.composed.split": "| chunk dsplit hsplit split split_with_sizes tensor_split unbind vsplit |",
    ".ops.composed.statistics": "cumulative_trapezoid trapezoid trapz | corrcoef cov |",
    ".ops.composed.type_properties": "typename | is_same_size is_signed | _indices _nnz _values ccol_indices coalesce "
    "col_indices crow_indices dense_dim dequantize indices is_coalesced is_conj is_inference is_neg resolve_conj "
    "resolve_neg retains_grad row_indices sparse_dim to_dense type values",
    ".ops.getitem": "| index_put | __getitem__ __setitem__ index_put_",
    ".ops.index": "| argwhere index_add index_copy index_fill index_select masked_fill masked_scatter masked_select "
    "nonzero put take | index_add_ index_copy_ index_fill_ masked_fill_ masked_scatter_ put_",
    ".ops.linalg.torch_names": "lobpcg lu_unpack pca_lowrank svd_lowrank | cholesky cholesky_inverse cholesky_solve "
    "det geqrf inverse logdet lu lu_solve matrix_exp orgqr ormqr pinverse qr slogdet svd triangular_solve |",
    ".ops.matmul": "| bmm dot matmul mm mv vdot | __matmul__ __rmatmul__",
    ".ops.new": "| | new new_empty new_empty_strided new_full new_ones new_tensor new_zeros",
    ".ops.norm": "| norm |",
    ".ops.random": "normal poisson rand rand_like randint randint_like randn randn_like randperm | bernoulli "
    "multinomial | bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_",
    ".ops.reduce": "std_mean var_mean | all amax amin aminmax any argmax argmin count_nonzero logsumexp max mean min "
    "nanmean nansum prod std sum var |",
    ".ops.scan": "| cummax cummin cumprod cumsum logcumsumexp | cumprod_ cumsum_",
    ".ops.scatter": "| gather index_reduce scatter scatter_add scatter_reduce take_along_dim | index_reduce_ scatter_ "
    "scatter_add_ scatter_reduce_",
    ".ops.softmax": "| log_softmax softmax |",
    ".ops.sort": "bucketize searchsorted | argsort median msort nanmedian sort topk |",
    ".ops.special": "| i0 igamma igammac | i0_ igamma_ igammac_",
    ".ops.transcendental": "| acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 "
    "atanh cosh digamma erf erfc erfinv hypot lgamma logaddexp logaddexp2 sinc sinh tan xlogy | acos_ acosh_ arccos_ "
    "arccosh_ arcsin_ arcsinh_ arctan2_ arctan_ arctanh_ asin_ asinh_ atan2_ atan_ atanh_ cosh_ digamma_ erf_ erfc_ "
    "erfinv_ hypot_ lgamma_ sinc_ sinh_ tan_ xlogy_",
    ".sparse.compressed": "| | to_sparse_csc to_sparse_csr",
    ".sparse.coo": "| | sparse_mask to_sparse to_sparse_coo",
}
_DECLARED = {module: [column.split() for column in names.split("|")] for module, names in _MODULES.items()}

FUNCTIONS = {module: " ".join(only + both) for module, (only, both, _) in _DECLARED.items()}


def _imported(module: str) -> Any:
    from importlib import import_module  # lazy, as the modules themselves

    return import_module(module)


class DeferredMethod:
    """A method whose module is imported at its first use. The function of that module then replaces it."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str):
        self.module = module
        self.name = name

    def function(self) -> Callable[..., Any]:
        """The deferred function."""
        return getattr(_imported(self.module), self.name)

    def __get__(self, instance: Any, owner: type) -> Any:
        from ._rows import as_method

        function = self.function()
        for cls in owner.__mro__:
            if vars(cls).get(self.name) is self:  # no other thread was faster
                setattr(cls, self.name, as_method(function))
        return function if instance is None else function.__get__(instance, owner)


class _DeclaredMethod(DeferredMethod):
    """A method of the table above, that its module declares with @method or op(), so without out=, or defines."""

    __slots__ = ("declared",)

    def __init__(self, module: str, name: str, declared: dict[str, Any]):
        super().__init__(module, name)
        self.declared = declared

    def function(self) -> Callable[..., Any]:
        module = _imported(self.module)
        method = self.declared[self.name]
        if method is self:
            return getattr(module, self.name)
        if isinstance(method, DeferredMethod):
            method = method.function()
        if self.name[:2] == "__":
            method.__name__ = self.name
        return method


def deferred_methods(declared: dict[str, Any]) -> dict[str, DeferredMethod]:
    """The methods of Tensor whose modules (see above) are not imported yet. These add their functions to declared."""
    return {
        name: _DeclaredMethod(f"norch{module}", name, declared)
        for module, (_, both, only) in _DECLARED.items()
        for name in both + only
        if name not in declared
    }
