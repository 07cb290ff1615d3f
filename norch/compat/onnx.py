"""``norch.onnx``: importable, for programs that can export. norch writes no ONNX files."""

from __future__ import annotations

from .._exports import publish
from .refused import refused

__all__ = ["ONNXProgram", "export", "is_in_onnx_export"]
publish(globals(), name="norch.onnx")


def is_in_onnx_export() -> bool:
    """False: nothing is exported."""
    return False


ONNXProgram, export = refused(
    "norch.onnx",
    "norch writes no ONNX files; the same model in PyTorch, with this one's weights, can be exported there",
    "ONNXProgram export",
)
