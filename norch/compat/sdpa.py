"""Which kernel of attention PyTorch may take: norch has one for each case, so that a choice changes no result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NamedTuple


class SDPBackend(IntEnum):
    """PyTorch's kernels of scaled_dot_product_attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any = None, set_priority: bool = False, **enable: bool) -> Iterator[None]:
    """Does nothing, in a `with` statement or as a decorator; backends.cuda.sdp_kernel(enable_flash=...) is the same.

    >>> from norch.nn.attention import SDPBackend, sdpa_kernel
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     pass
    """
    yield


class SDPAParams(NamedTuple):
    """The arguments of an attention, of which backends.cuda.can_use_flash_attention() and its like are asked."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool
