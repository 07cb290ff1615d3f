"""Networks whose weights norch.quantize stores in 8 or 4 bits, by norch.capture: the group "quantised". PyTorch is in
float32; ONNX Runtime has 8 bits, in the activations too.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from .cases_inference import classify, resnet18
from .cases_sequences import decode, embed
from .library import Case, Marks


def _case(name: str, setup: Any, dtype: str, marks: Marks, tolerance: float) -> Case:
    setup = partial(setup, dtype=dtype)
    return Case("quantised", f"{name}, {dtype}", setup, None, marks, True, tolerance, ("float32", "onnxruntime"))


CASES = [
    _case("GPT-2 small, a token after 256", decode, "int8", Marks(2.5, 3.5), 0.1),
    _case("GPT-2 small, a token after 256", decode, "int4", Marks(2.5, 3.5), 0.5),
    _case("MiniLM-L6, 128 tokens", embed, "int8", Marks(1.0, 1.3), 0.1),
    _case("ResNet-18, batch 1", partial(classify, resnet18), "int8", Marks(0.8, 1.0), 0.1),
]
