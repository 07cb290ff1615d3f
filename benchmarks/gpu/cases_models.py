"""Training steps: forward, backward and update."""

from __future__ import annotations

from typing import Any

from .. import models
from ..cases_training import mlp_step
from ..library import Run
from .library import OnDevice, cases_of

CASES, add = cases_of("training steps")
NANO = models.Text(layers=6, width=384, heads=6, length=256, batch=64, tied=True)
GPT2 = models.Text(layers=12, width=768, heads=12, length=1024, batch=8, vocabulary=50257, tied=True)
TRIAL = models.Text(layers=1, width=8, heads=2, length=5, batch=2, vocabulary=11, tied=True)


def _gpt(size: models.Text, dtype: str = "float32", autocast: bool = False) -> Any:
    def setup(lib: OnDevice) -> Run:
        device = lib.device.split(":")[0] if autocast else ""
        return models.gpt_step(lib, size=TRIAL if lib.small else size, dtype=dtype, autocast=device)

    return setup


def _toy(lib: OnDevice) -> Run:
    return models.gpt_step(lib, size=TRIAL) if lib.small else models.gpt_step(lib)


def _resnet(lib: OnDevice) -> Run:
    return models.resnet_step(lib, 2, 8, (8, 9)) if lib.small else models.resnet_step(lib)


# A gradient is compared by its norm, over layers of rounding. A relu that a rounding turns on changes a few elements.
add("MLP step 784-128-64-10 B64", mlp_step, 3.0, 4.0, tolerance=1e-4, counted=False)
add("CNN step 28x28 B64", models.cnn_step, 3.0, 4.0, tolerance=1e-3, counted=False)
add("GPT step 2x64 T64 B16 (toy)", _toy, 3.0, 4.0, tolerance=1e-3)
add("GPT step 6x384 T256 B64 (nanoGPT shakespeare)", _gpt(NANO), 1.0, 1.3, tolerance=1e-3)
add("GPT step 6x384 bf16 params", _gpt(NANO, "bfloat16"), 0.9, 1.0, tolerance=5e-2)
add("GPT step 12x768 T1024 B8 V50257 (GPT-2 124M)", _gpt(GPT2), 1.0, 1.3, tolerance=1e-3)
add("GPT step 6x384 bf16 autocast", _gpt(NANO, autocast=True), 0.9, 1.0, tolerance=5e-2, counted=False)
add("GPT step 12x768 bf16 autocast", _gpt(GPT2, autocast=True), 0.8, 1.0, tolerance=5e-2, counted=False)
add("ResNet-18 CIFAR step B128", _resnet, 1.0, 1.3, tolerance=5e-3)
