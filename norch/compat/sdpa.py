"""PyTorch's choice of attention kernels. norch has one kernel for each case, so the choice changes no result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NamedTuple


class SDPBackend(IntEnum):
    """PyTorch's kernels for scaled_dot_product_attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any = None, set_priority: bool = False, **enable: bool) -> Iterator[None]:
    """Does nothing, as a context or a decorator; backends.cuda.sdp_kernel(enable_flash=...) is the same.

    >>> from norch.nn.attention import SDPBackend, sdpa_kernel
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     pass
    """
    yield


class SDPAParams(NamedTuple):
    """The arguments of an attention, for backends.cuda.can_use_flash_attention() and its like."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool
