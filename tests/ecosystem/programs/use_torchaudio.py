"""torchaudio: spectra, filters and models of sound."""

import torch
import torchaudio
import torchaudio.functional as F
import torchaudio.transforms as T
from numbers_made import array, fill, show

wave = torch.tensor(array(1, 4000)).float() * 0.1
show(
    "spectrogram",
    T.Spectrogram(n_fft=256)(wave),
    T.MelSpectrogram(8000, n_fft=256, n_mels=20)(wave),
    T.MFCC(8000, 13, melkwargs={"n_fft": 256, "n_mels": 20})(wave),
)
show(
    "db",
    T.AmplitudeToDB()(T.MelSpectrogram(8000, n_fft=256, n_mels=20)(wave)),
    T.GriffinLim(n_fft=64, n_iter=2, rand_init=False)(T.Spectrogram(n_fft=64)(wave)),
)
show("resample", T.Resample(8000, 6000)(wave), T.Fade(100, 200)(wave), T.Vol(0.5)(wave))
show(
    "filters",
    F.lowpass_biquad(wave[:, :400], 8000, 1000.0),
    F.highpass_biquad(wave[:, :400], 8000, 500.0),
    F.equalizer_biquad(wave[:, :400], 8000, 900.0, 3.0),
    F.overdrive(wave[:, :300]),
)
show(
    "features",
    F.compute_deltas(T.Spectrogram(n_fft=64)(wave)),
    F.spectral_centroid(wave, 8000, 0, torch.hann_window(128), 128, 64, 128),
    F.mu_law_encoding(wave, 256),
    F.detect_pitch_frequency(wave, 8000),
)
x = wave[:, :800].clone().requires_grad_()
T.Spectrogram(n_fft=64)(x).sum().backward()
show("gradient", x.grad)
model = fill(torchaudio.models.Wav2Letter(num_classes=5, input_type="mfcc", num_features=13), 0.02).eval()
show("wav2letter", model(torch.tensor(array(1, 13, 60)).float()))
conformer = fill(
    torchaudio.models.Conformer(input_dim=16, num_heads=2, ffn_dim=24, num_layers=2, depthwise_conv_kernel_size=5)
).eval()
show("conformer", *conformer(torch.tensor(array(2, 12, 16)).float(), torch.tensor([12, 9])))
