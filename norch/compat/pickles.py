"""What plain pickles of PyTorch's tensors call (pickle.dump, joblib): norch reads them where `torch` means norch."""

from __future__ import annotations

import io
from typing import Any

import norch

from .._files import pytorch
from .placeholders import layout

_rebuild_tensor_v2: Any = pytorch.NAMES["torch._utils", "_rebuild_tensor_v2"]
_rebuild_tensor: Any = pytorch.NAMES["torch._utils", "_rebuild_tensor"]
_rebuild_meta_tensor_no_storage: Any = pytorch.NAMES["torch._utils", "_rebuild_meta_tensor_no_storage"]
_rebuild_parameter: Any = pytorch.NAMES["torch._utils", "_rebuild_parameter"]
_rebuild_parameter_with_state: Any = pytorch.NAMES["torch._utils", "_rebuild_parameter_with_state"]


def _load_from_bytes(b: bytes) -> Any:
    """The storage in a file of torch.save() that is part of a pickle."""
    return norch.load(io.BytesIO(b), weights_only=False)


def _get_layout(name: str) -> Any:
    """A layout, by its text."""
    return layout(name.rpartition(".")[2])
