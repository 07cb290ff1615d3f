"""Functions of torch.special that few programs call: computed by SciPy, without derivatives, as in PyTorch."""

from __future__ import annotations

from typing import Any

import norch

from ..tensor import Tensor

# {function: SciPy's name}. Functions with "shifted" are evaluated at 2 x - 1.
OF_ONE = {
    "airy_ai": "airy", "bessel_j0": "j0", "bessel_j1": "j1", "bessel_y0": "y0", "bessel_y1": "y1",
    "modified_bessel_i0": "i0", "modified_bessel_i1": "i1", "modified_bessel_k0": "k0", "modified_bessel_k1": "k1",
    "scaled_modified_bessel_k0": "k0e", "scaled_modified_bessel_k1": "k1e", "spherical_bessel_j0": "spherical_jn",
}  # fmt: skip
POLYNOMIALS = {
    "chebyshev_polynomial_t": "eval_chebyt", "chebyshev_polynomial_u": "eval_chebyu",
    "chebyshev_polynomial_v": "V", "chebyshev_polynomial_w": "W",
    "hermite_polynomial_h": "eval_hermite", "hermite_polynomial_he": "eval_hermitenorm",
    "laguerre_polynomial_l": "eval_laguerre", "legendre_polynomial_p": "eval_legendre",
}  # fmt: skip


def _special() -> Any:
    try:
        import scipy.special  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(
            "this function of norch.special needs SciPy; pip install 'norch-dl[linalg]' brings it"
        ) from error
    return scipy.special


def _numbers(x: Any, dtype: Any) -> Any:
    return x.detach().cpu().to(dtype).double().numpy() if isinstance(x, Tensor) else x


def _written(values: Any, like: Tensor, dtype: Any, out: Any) -> Tensor:
    result = norch.as_tensor(values).to(dtype=dtype, device=like.device)
    return result if out is None else out.copy_(result)


def _of_one(name: str) -> Any:
    def function(input: Tensor, *, out: Any = None) -> Tensor:
        dtype = input.dtype if input.is_floating_point() else norch.get_default_dtype()
        x, theirs = _numbers(input, dtype), OF_ONE[name]
        if theirs == "airy":
            values = _special().airy(x)[0]
        elif theirs == "spherical_jn":
            values = _special().spherical_jn(0, abs(x))
        else:
            values = getattr(_special(), theirs)(x)
        return _written(values, input, dtype, out)

    function.__name__ = function.__qualname__ = name
    return function


def _polynomial(name: str) -> Any:
    theirs, shifted = POLYNOMIALS[name.removeprefix("shifted_")], name.startswith("shifted_")

    def function(input: Any, n: Any, *, out: Any = None) -> Tensor:
        like = input if isinstance(input, Tensor) else n
        if not isinstance(like, Tensor):
            raise TypeError(f"{name}: input or n must be a tensor, not {type(input).__name__} and {type(n).__name__}")
        dtype = norch.result_type(input, n)
        dtype = dtype if dtype.is_floating_point else norch.get_default_dtype()
        x, degree = _numbers(input, dtype), _numbers(n, norch.float64)
        values = _evaluated(theirs, degree, 2 * x - 1 if shifted else x)
        return _written(values, like, dtype, out)

    function.__name__ = function.__qualname__ = name
    return function


def _evaluated(theirs: str, degree: Any, x: Any) -> Any:
    """The polynomial of this degree, truncated to an integer; 0 for a negative degree."""
    import numpy as np

    degree = np.trunc(degree)
    at_least_0 = np.maximum(degree, 0).astype(np.int64)
    if theirs in ("V", "W"):  # Chebyshev's third and fourth kind, from the second kind
        before = np.where(at_least_0 > 0, _special().eval_chebyu(np.maximum(at_least_0 - 1, 0), x), 0.0)
        values = _special().eval_chebyu(at_least_0, x) + (before if theirs == "W" else -before)
    else:
        values = getattr(_special(), theirs)(at_least_0, x)
    return np.where(degree < 0, 0.0, values)


airy_ai, bessel_j0, bessel_j1, bessel_y0, bessel_y1 = map(
    _of_one, "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1".split()
)
modified_bessel_i0, modified_bessel_i1, modified_bessel_k0, modified_bessel_k1 = map(
    _of_one, "modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1".split()
)
scaled_modified_bessel_k0, scaled_modified_bessel_k1, spherical_bessel_j0 = map(
    _of_one, "scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0".split()
)
globals().update({name: _polynomial(name) for name in POLYNOMIALS})
globals().update({f"shifted_{name}": _polynomial(f"shifted_{name}") for name in POLYNOMIALS if name[:4] == "cheb"})
