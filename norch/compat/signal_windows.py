"""torch.signal.windows: windows of M elements, symmetric or, with sym=False, periodic for a Fourier transform."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import norch

from ..tensor import Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def _window(name: str, formula: Callable[[Any, int], Any], M: int, sym: bool, options: dict[str, Any]) -> Tensor:  # noqa: N803
    """formula(n, N) at n = 0 ... M - 1; N is the index of the last element of the symmetric window."""
    dtype, device = options.pop("dtype", None), options.pop("device", None)
    requires_grad, layout = options.pop("requires_grad", False), options.pop("layout", None)
    if options:
        raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(options))!r}")
    dtype = norch.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout not in (None, norch.strided):  # type: ignore[attr-defined]
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (norch.float32, norch.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    n = norch.arange(M, dtype=norch.float64)
    window = n + 1 if M < 2 else formula(n, M - 1 if sym else M)
    return window.to(device=device, dtype=dtype).requires_grad_(requires_grad)


def _cosines(n: Any, last: int, weights: Iterable[float]) -> Any:
    return sum((-1) ** i * a * (2 * math.pi / last * i * n).cos() for i, a in enumerate(weights))


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any  # noqa: N803
) -> Tensor:  # fmt: skip
    """exp(-|n - center| / tau), with the centre in the middle."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def falling(n: Any, last: int) -> Any:
        return (-(n - (last / 2 if center is None else center)).abs() / tau).exp()

    return _window("exponential", falling, M, sym, options)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """sin(pi (n + 1/2) / M)."""
    return _window("cosine", lambda n, last: (math.pi / (last + 1) * (n + 0.5)).sin(), M, sym, options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """exp(-((n - N/2) / std)^2 / 2)."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _window("gaussian", lambda n, last: (-(((n - last / 2) / std) ** 2) / 2).exp(), M, sym, options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta)."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def bessel(n: Any, last: int) -> Any:
        root = (1 - (2 * n / last - 1) ** 2).clamp(min=0).sqrt()
        return norch.i0(beta * root) / norch.i0(norch.tensor(beta, dtype=n.dtype))

    return _window("kaiser", bessel, M, sym, options)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """The sum of (-1)^i a[i] cos(2 pi i n / N)."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not (weights := list(a)):
        raise ValueError("Coefficients cannot be empty")
    return _window("general_cosine", lambda n, last: _cosines(n, last, weights), M, sym, options)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """A triangle from 0 over 1 back to 0."""
    return _window("bartlett", lambda n, last: 1 - (2 * n / last - 1).abs(), M, sym, options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)
