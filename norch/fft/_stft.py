"""Short-time Fourier transforms and their windows, composed of norch.fft."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .. import fft
from .._binding.numbers import int64
from .._package.typing import DeviceLike
from ..autograd.levels import holds
from ..dtype import dtype as DType
from ..dtype import float64
from ..errors import ArgumentError, DTypeError, ShapeError, stacklevel_of_user
from ..ops._entry import rename_errors
from ..ops._operand import tensor_of
from ..ops._out import makes
from ..ops.complex import view_as_real
from ..ops.composed.pad import pad
from ..ops.copy import cat
from ..ops.create import arange, dtype_or_default, ones
from ..ops.special import i0
from ..tensor import Tensor

# ---- windows ---------------------------------------------------------------------------------------------------------


def _window(name: str, formula: Any, length: Any, periodic: bool, dtype: DType | None, device: Any) -> Tensor:
    """formula(n, N) for n = 0 ... N, a window of N + 1 elements; a periodic window lacks the last one. formula may
    write to n. Windows are symmetric, so half of n is enough.
    """
    kind = dtype_or_default(dtype)
    if not kind.is_floating_point:
        raise DTypeError(f"{name}: expected a dtype of floats, got {kind.name}")
    if (count := int64(length, f"{name}: window_length")) < 0:
        raise ArgumentError(f"{name}: window_length must not be negative, got {count}")
    if count < 2:
        return ones(count, dtype=kind, device=device)
    last = count if periodic else count - 1
    half = formula(arange(last // 2 + 1, dtype=float64, device=device), last).to(kind)
    return cat([half, half[bool(periodic) : (last + 1) // 2].flip(0)])


@makes(out=False)
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, device: DeviceLike = None,
) -> Tensor:  # fmt: skip
    """The Bartlett window, a triangle from 0 to 1 and back to 0. A periodic window, the default and what stft() needs,
    is a window of one element more without its last element.

    >>> norch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    triangle = lambda n, last: n.mul_(2 / last)  # noqa: E731
    return _window("bartlett_window", triangle, window_length, periodic, dtype, device)


@makes(out=False)
def hann_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, device: DeviceLike = None,
) -> Tensor:  # fmt: skip
    """The Hann window sin^2(pi n / N). periodic acts as in bartlett_window().

    >>> norch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    square = lambda n, last: n.mul_(math.pi / last).sin_().square_()  # noqa: E731
    return _window("hann_window", square, window_length, periodic, dtype, device)


@makes(out=False)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: DType | None = None,
    device: DeviceLike = None,
) -> Tensor:  # fmt: skip
    """The Hamming window alpha - beta cos(2 pi n / N). periodic acts as in bartlett_window().

    >>> norch.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    cosine = lambda n, last: n.mul_(2 * math.pi / last).cos_().mul_(-beta).add_(alpha)  # noqa: E731
    return _window("hamming_window", cosine, window_length, periodic, dtype, device)


@makes(out=False)
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, device: DeviceLike = None,
) -> Tensor:  # fmt: skip
    """The Blackman window 0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N). periodic acts as in bartlett_window().

    >>> norch.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """

    def cosines(n: Any, last: int) -> Any:
        cosine = n.mul_(2 * math.pi / last).cos_()  # cos(2 x) is 2 cos(x)^2 - 1
        return (cosine * 0.16).sub_(0.5).mul_(cosine).add_(0.34)

    return _window("blackman_window", cosines, window_length, periodic, dtype, device)


@makes(out=False)
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: DType | None = None,
    device: DeviceLike = None,
) -> Tensor:  # fmt: skip
    """The Kaiser window i0(beta sqrt(1 - (2 n / N - 1)^2)) / i0(beta). periodic acts as in bartlett_window().

    >>> norch.kaiser_window(4, beta=2.0)
    tensor([0.4387, 0.8348, 1.0000, 0.8348])
    """

    def bessel(n: Any, last: int) -> Any:
        root = n.mul_(2 / last).sub_(1).square_().neg_().add_(1).clamp_(min=0).sqrt_()
        return i0(root.mul_(beta)).div_(i0(n.new_full((), beta)))

    return _window("kaiser_window", bessel, window_length, periodic, dtype, device)


# ---- transforms ------------------------------------------------------------------------------------------------------


def _frame(name: str, n_fft: Any, hop_length: Any, win_length: Any, window: Any, like: Any) -> tuple[int, int, Any]:
    """The size of frames, their distance, and their window, padded with zeros if it is shorter; None if the window is
    all ones.
    """
    size = int64(n_fft, f"{name}: n_fft")
    step = size // 4 if hop_length is None else int64(hop_length, f"{name}: hop_length")
    width = size if win_length is None else int64(win_length, f"{name}: win_length")
    if size < 1 or step < 1 or not 0 < width <= size:
        raise ArgumentError(f"{name}: expected 0 < win_length <= n_fft and 0 < hop_length, got {width}, {size}, {step}")
    if window is not None and tuple(tensor_of(window, name).shape) != (width,):
        raise ShapeError(f"{name}: expected a window of shape ({width},), got {tuple(window.shape)}")
    if width < size:
        window = ones(width, dtype=like.dtype, device=like.device) if window is None else window
        before = (size - width) // 2
        window = pad(window, (before, size - width - before))
    return size, step, window


@rename_errors
def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """The Fourier transforms of frames of n_fft elements of input (L) or (B, L), which are hop_length (default n_fft //
    4) apart:

    X[w, m] = sum over k of window[k] input[m hop_length + k] e^(-2 pi i w k / n_fft), of shape (..., frequencies,
    frames).

    window has win_length (default n_fft) elements, and is in the middle of a frame. With center the frames begin n_fft
    / 2 earlier, and pad_mode continues the ends of input. normalized multiplies by n_fft^-1/2. onesided, the default
    for real numbers, gives the first n_fft // 2 + 1 frequencies only. For real numbers return_complex is required;
    False gives pairs of real numbers.

    >>> norch.stft(norch.ones(16), 8, return_complex=True).shape
    norch.Size([5, 9])
    """
    if align_to_window is not None:
        raise NotImplementedError("stft: align_to_window: frames begin at their place, or with center around it")
    x = tensor_of(input, "stft")
    if x.ndim not in (1, 2) or x.dtype.kind not in "fc":
        raise ShapeError(f"stft: expected floats or complex numbers (L) or (B, L), got {x.dtype.name} {tuple(x.shape)}")
    size, step, window = _frame("stft", n_fft, hop_length, win_length, window, x)
    is_complex = x.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not is_complex:
            raise ArgumentError("stft: return_complex must be given for real numbers; True gives a complex tensor")
        return_complex = True
    onesided = not is_complex if onesided is None else onesided
    if onesided and is_complex:
        raise ArgumentError("stft: onesided needs a real input and window")
    signal = x if x.ndim == 2 else x.unsqueeze(0)
    if center:
        signal = pad(signal.unsqueeze(1), (size // 2, size // 2), mode=pad_mode).squeeze(1)
    if signal.shape[1] < size:
        raise ShapeError(f"stft: frames of {size} do not fit {signal.shape[1]} elements")
    frames = signal.unfold(-1, size, step)
    frames = frames if window is None else frames * window
    norm = "ortho" if normalized else None
    out = (fft.rfft(frames, norm=norm) if onesided else fft.fft(frames, norm=norm)).transpose(1, 2)
    out = out if x.ndim == 2 else out.squeeze(0)
    return out if return_complex else view_as_real(out)


@rename_errors
def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
    length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal (L) or (B, L) whose stft() with these arguments is nearest to input, which is complex. The frames,
    times the window, are added and divided by the sum of the squared windows (Griffin and Lim, 1984); ArgumentError
    where that sum is 0. length is the length of the result, which is padded with zeros if the frames do not reach it.

    >>> x = norch.arange(16.0)
    >>> norch.allclose(norch.istft(norch.stft(x, 8, return_complex=True), 8), x, atol=1e-5)
    True
    """
    x = tensor_of(input, "istft")
    if not x.is_complex() or x.ndim not in (2, 3) or 0 in x.shape:
        raise ShapeError(
            f"istft: expected complex numbers, (frequencies, frames) or in batches, got {x.dtype.name} {tuple(x.shape)}"
        )
    like = x.real
    size, step, window = _frame("istft", n_fft, hop_length, win_length, window, like)
    frequencies = x.shape[-2]
    onesided = frequencies != size if onesided is None else onesided
    if frequencies != (size // 2 + 1 if onesided else size) or (onesided and return_complex):
        raise ShapeError(f"istft: {frequencies} frequencies do not fit n_fft {size}, or return_complex is onesided")
    spectra, norm = (x if x.ndim == 3 else x.unsqueeze(0)).transpose(1, 2), "ortho" if normalized else None
    if return_complex:
        frames = fft.ifft(spectra, norm=norm)
    else:  # a real signal: of all frequencies the second half is known by the first
        frames = fft.irfft(spectra[..., : size // 2 + 1], size, norm=norm)
    window = ones(size, dtype=like.dtype, device=x.device) if window is None else window
    count = frames.shape[1]
    places = (arange(count, device=x.device).unsqueeze(1) * step + arange(size, device=x.device)).flatten()
    total = size + step * (count - 1)
    weights = window.square().expand(count, size).flatten()
    signal = frames.new_zeros((len(frames), total)).index_add(1, places, (frames * window).flatten(1))
    weights = weights.new_zeros(total).index_add(0, places, weights)
    start = size // 2 if center else 0
    end = total - start if length is None else min(start + int64(length, "istft: length"), total)
    signal, weights = signal[:, start:end], weights[start:end]
    if not holds(weights.abs() > 1e-11):
        raise ArgumentError("istft: the squared windows add up to 0 somewhere, where the signal is not known")
    signal = signal / weights
    if length is not None and signal.shape[1] < length:
        warnings.warn(
            f"istft: the frames reach {signal.shape[1]} of {length} elements; zeros follow",
            stacklevel=stacklevel_of_user(),
        )
        signal = pad(signal, (0, length - signal.shape[1]))
    return signal if x.ndim == 3 else signal.squeeze(0)
