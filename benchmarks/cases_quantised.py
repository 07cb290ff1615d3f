"""Networks whose weights norch.quantize stores in 8 or 4 bits, by norch.capture: the group "quantised". In the cases of
"int8 and int8" their activations have 8 bits, too, as always in ONNX Runtime. PyTorch is in float32.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from .cases_inference import classify, resnet18
from .cases_sequences import decode, embed, perceive
from .library import Case, Marks


def _case(name: str, setup: Any, dtype: str, marks: Marks, tolerance: float, activations: str | None = None) -> Case:
    setup = partial(setup, dtype=dtype, activations=activations)
    variants = ("float32", *(("weights",) if activations else ()), "onnxruntime")
    name = f"{name}, {dtype}{f' and {activations}' if activations else ''}"
    return Case("quantised", name, setup, None, marks, True, tolerance, variants)


prefill = partial(decode, cached=0, count=128)
perceptron = partial(perceive, widths=(784, 512, 512, 10), batch=32)

CASES = [
    _case("GPT-2 small, a token after 256", decode, "int8", Marks(2.5, 3.5), 0.1),
    _case("GPT-2 small, a token after 256", decode, "int4", Marks(2.5, 3.5), 0.5),
    _case("GPT-2 small, a token after 256", decode, "int8", Marks(2.5, 3.5), 0.1, "int8"),
    _case("GPT-2 small, the first 128 tokens", prefill, "int8", Marks(2.0, 3.0), 0.2, "int8"),
    _case("MiniLM-L6, 128 tokens", embed, "int8", Marks(1.0, 1.3), 0.1),
    _case("MiniLM-L6, 128 tokens", embed, "int8", Marks(2.0, 3.0), 0.2, "int8"),
    _case("MLP 784-512-512-10, batch 32", perceptron, "int8", Marks(1.5, 2.5), 0.1, "int8"),
    _case("ResNet-18, batch 1", partial(classify, resnet18), "int8", Marks(0.8, 1.0), 0.1),
]
