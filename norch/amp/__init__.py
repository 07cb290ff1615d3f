"""``norch.amp``: automatic mixed precision, by the names of ``torch.amp`` (docs/amp.md).

state.py holds what autocast does in each thread, lists.py what it casts, entries.py how operations come to be cast;
grad_scaler.py scales losses so that gradients in float16 do not vanish.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._exports import publish as _publish

if _TYPE_CHECKING:
    from .autocast_mode import autocast as autocast
    from .autocast_mode import clear_autocast_cache as clear_autocast_cache
    from .autocast_mode import custom_bwd as custom_bwd
    from .autocast_mode import custom_fwd as custom_fwd
    from .autocast_mode import get_autocast_dtype as get_autocast_dtype
    from .autocast_mode import is_autocast_available as is_autocast_available
    from .autocast_mode import is_autocast_cache_enabled as is_autocast_cache_enabled
    from .autocast_mode import is_autocast_enabled as is_autocast_enabled
    from .autocast_mode import set_autocast_cache_enabled as set_autocast_cache_enabled
    from .autocast_mode import set_autocast_dtype as set_autocast_dtype
    from .autocast_mode import set_autocast_enabled as set_autocast_enabled
    from .grad_scaler import GradScaler as GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
_LAZY = {".autocast_mode": "autocast custom_bwd custom_fwd is_autocast_available", ".grad_scaler": "GradScaler"}
_LAZY[".autocast_mode"] += " clear_autocast_cache get_autocast_dtype is_autocast_cache_enabled is_autocast_enabled"
_LAZY[".autocast_mode"] += " set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled"
_publish(globals(), _LAZY)
