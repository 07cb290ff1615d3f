"""torchaudio's operators in C++: the loops of its filters."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .operators import COMPOSITE, REGISTERED, Operation


def _lfilter_core_loop(input_signal_windows: Tensor, a_coeffs_flipped: Tensor, padded_output_waveform: Tensor) -> None:
    """Writes y[t] = x[t] - sum of a[k] y[t - k] to the waveform (batch, channels, time + order - 1), whose first order
    - 1 elements are inputs; x (batch, channels, time), a (channels, order), the last coefficient first."""
    order = a_coeffs_flipped.shape[1]
    coefficients = a_coeffs_flipped.t()[None].permute(0, 2, 1)
    for t in range(input_signal_windows.shape[2]):
        before = padded_output_waveform[:, :, t : t + order]
        value = input_signal_windows[:, :, t] - (before * coefficients).sum(-1)
        padded_output_waveform[:, :, t + order - 1] = value


def _overdrive_core_loop(
    waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output_waveform: Tensor
) -> None:
    """Writes half the waveform plus 0.75 of temp, without its constant part, to output_waveform (channels, time)."""
    for t in range(waveform.shape[-1]):
        last_out.copy_(temp[:, t] - last_in + 0.995 * last_out)
        last_in.copy_(temp[:, t])
        output_waveform[:, t] = waveform[:, t] * 0.5 + last_out * 0.75


def is_align_available() -> bool:
    """False: norch has no forced_align()."""
    return False


def cuda_version() -> Any:
    """None: nothing is compiled for CUDA."""
    return None


for _namespace, _functions in (
    ("torchaudio", (_lfilter_core_loop, _overdrive_core_loop)),
    ("_torchaudio", (is_align_available, cuda_version)),
):
    for _function in _functions:
        _name = f"{_namespace}::{_function.__name__}"
        REGISTERED[_name] = Operation(_name)
        REGISTERED[_name].kernels[COMPOSITE] = _function
