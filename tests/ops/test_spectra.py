"""stft, istft and their windows against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch

pytest.importorskip("scipy")
if DEVICE != "cpu":
    pytest.skip("no kernels for complex numbers on CUDA", allow_module_level=True)

WINDOWS = ("bartlett", "blackman", "hamming", "hann", "kaiser")


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 16, 17])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows_like_torch(torch: Any, name: str, length: int, periodic: bool) -> None:
    for dtype in ("float32", "float64"):
        found, wanted = (
            getattr(m, f"{name}_window")(length, periodic, dtype=getattr(m, dtype)) for m in (norch, torch)
        )
        assert found.dtype.name == dtype
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), atol=1e-6 if dtype == "float32" else 1e-14)
    assert getattr(norch, f"{name}_window")(4).dtype is norch.float32


def test_windows_with_options(torch: Any) -> None:
    for m in (norch, torch):
        assert m.hann_window(3, requires_grad=True).requires_grad
    found, wanted = (m.hamming_window(9, False, 0.5, 0.4).numpy() for m in (norch, torch))
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    found, wanted = (m.kaiser_window(9, False, 5.0).numpy() for m in (norch, torch))
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    with pytest.raises(norch.ArgumentError, match="hann_window: window_length must not be negative"):
        norch.hann_window(-1)
    with pytest.raises(norch.DTypeError, match="hann_window: expected a dtype of floats"):
        norch.hann_window(3, dtype=norch.int64)


TRANSFORMS: dict[str, dict[str, Any]] = {
    "plain": {"n_fft": 16},
    "steps": {"n_fft": 16, "hop_length": 5},
    "a short window": {"n_fft": 16, "win_length": 10},
    "a window": {"n_fft": 16, "hop_length": 4, "window": 16},
    "a window of an odd size": {"n_fft": 15, "hop_length": 4, "win_length": 11, "window": 11},
    "normalised": {"n_fft": 16, "normalized": True},
    "not centred": {"n_fft": 16, "center": False},
    "of all frequencies": {"n_fft": 16, "onesided": False, "window": 16},
    "other ends": {"n_fft": 16, "pad_mode": "constant"},
}


@pytest.mark.parametrize("shape", [(64,), (3, 61)])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_like_torch(torch: Any, name: str, shape: Any) -> None:
    options = dict(TRANSFORMS[name])
    array = np.random.default_rng(0).normal(size=shape)
    results = []
    for m in (norch, torch):
        given = dict(options)
        if "window" in given:
            given["window"] = m.hamming_window(given["window"], dtype=m.float64)
        x = m.tensor(array, requires_grad=True)
        spectrum = x.stft(**given, return_complex=True)
        spectrum.abs().sum().backward()
        given.pop("pad_mode", None)
        back = m.istft(spectrum.detach(), **given)
        exact = m.istft(spectrum.detach(), **given, length=50)
        pairs = m.stft(x, **options | {k: v for k, v in given.items() if k == "window"}, return_complex=False)
        results.append([spectrum, x.grad, back, exact, pairs])
    for found, wanted in zip(*results, strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-9, atol=1e-9)


def test_complex_signals_like_torch(torch: Any) -> None:
    rng = np.random.default_rng(1)
    array = rng.normal(size=40) + 1j * rng.normal(size=40)
    results = []
    for m in (norch, torch):
        spectrum = m.stft(m.tensor(array), 8, pad_mode="constant")
        results.append((spectrum, m.istft(spectrum, 8, onesided=False, return_complex=True)))
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), atol=1e-12)
    np.testing.assert_allclose(results[0][1].numpy(), array, atol=1e-12)


def test_refusals() -> None:
    x = norch.ones(32)
    for call, error, message in (
        (lambda: norch.stft(x, 8), norch.ArgumentError, "stft: return_complex must be given"),
        (lambda: norch.stft(x[:2], 8, center=False, return_complex=True), norch.ShapeError, "frames of 8 do not fit 2"),
        (lambda: norch.stft(x, 8, win_length=9, return_complex=True), norch.ArgumentError, "stft: expected 0 < win"),
        (lambda: norch.stft(x, 8, window=x, return_complex=True), norch.ShapeError, r"window of shape \(8,\)"),
        (lambda: norch.stft(x.long(), 8, return_complex=True), norch.ShapeError, "expected floats"),
        (lambda: norch.istft(norch.ones(5, 3), 8), norch.ShapeError, "expected complex numbers"),
        (lambda: norch.istft(norch.ones(6, 3) + 0j, 8), norch.ShapeError, "6 frequencies do not fit n_fft 8"),
        (
            lambda: norch.istft(norch.ones(5, 3) + 0j, 8, 8, window=norch.hann_window(8), center=False),
            norch.ArgumentError,
            "add up to 0",
        ),
    ):
        with pytest.raises(error, match=message):
            call()
    with pytest.warns(UserWarning, match="zeros follow"):
        assert norch.istft(norch.ones(5, 3) + 0j, 8, length=40).shape == (40,)


def test_istft_of_spectra_that_are_no_real_signals_is_pytorchs(torch):
    rng = np.random.default_rng(0)
    for rows, onesided in ((4, None), (6, None), (6, False)):
        spectra = rng.normal(size=(rows, 3)) + 1j * rng.normal(size=(rows, 3))
        window = np.hanning(8)[1:-1]
        ours, theirs = (
            m.istft(m.tensor(spectra), 6, window=m.tensor(window), onesided=onesided).numpy() for m in (norch, torch)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
