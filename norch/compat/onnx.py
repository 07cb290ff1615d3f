"""``norch.onnx``: importable, for programs that can export. norch writes no ONNX files."""

from __future__ import annotations

from .._left_out import nothing_more
from .refused import refused

__all__ = ["ONNXProgram", "export", "is_in_onnx_export"]
__dir__ = __all__.copy  # completion shows the public names only
__getattr__ = nothing_more("norch.onnx")


def is_in_onnx_export() -> bool:
    """False: nothing is exported."""
    return False


ONNXProgram, export = refused(
    "norch.onnx",
    "norch writes no ONNX files; the same model in PyTorch, with this one's weights, can be exported there",
    "ONNXProgram export",
)
