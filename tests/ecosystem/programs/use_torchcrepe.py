"""torchcrepe: its shipped weights find the pitch of a sine."""

import numpy as np
import torch
import torchcrepe
from numbers_made import show

np.random.seed(0)  # of the dither of pitches
wave = torch.tensor(np.sin(2 * np.pi * 220 * np.arange(8000) / 16000), dtype=torch.float32)[None]
pitch, sure = torchcrepe.predict(
    wave,
    16000,
    160,
    50,
    550,
    "tiny",
    batch_size=64,
    device="cpu",
    decoder=torchcrepe.decode.argmax,
    return_periodicity=True,
)
assert abs(pitch.median() - 220) < 5
show("pitch", pitch, sure)
show("embedding", torchcrepe.embed(wave, 16000, 800, "tiny", batch_size=64, device="cpu"))
