"""Where NVRTC is, which compiles chains of a recording on a CUDA device (csrc/cuda/chain_compile.cu): the file that
NORCH_NVRTC_LIBRARY names, or the wheel nvidia-cuda-nvrtc or nvidia-cuda-nvrtc-cu12 (`pip install norch-dl[cuda]` brings
the latter), or the system's library."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from .library import lib

_IN_WHEELS = ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12")
_named = False


def _candidates() -> list[str]:
    chosen = os.environ.get("NORCH_NVRTC_LIBRARY")
    if chosen:
        return [chosen] if chosen != "0" else []
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    wheels = [str(Path(folder) / name) for name in _IN_WHEELS for folder in folders]
    return [*(path for path in wheels if os.path.exists(path)), "libnvrtc.so.13", "libnvrtc.so.12"]


def name_nvrtc() -> None:
    """Names the libraries to the backend, which loads one when it needs it."""
    global _named
    if not _named:
        lib.norch_set_nvrtc("\n".join(_candidates()).encode())
        _named = True
