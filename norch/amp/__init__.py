"""``norch.amp``: automatic mixed precision, by the names of ``torch.amp`` (docs/amp.md).

autocast_mode.py sets what a thread casts (autograd/autocast.py), and operations cast by that (ops/_autocast.py);
grad_scaler.py scales losses so that gradients in float16 do not vanish.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._package.exports import publish as _publish

if _TYPE_CHECKING:
    from .autocast_mode import *  # noqa: F403
    from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
    from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
_LAZY = {".autocast_mode": "autocast custom_bwd custom_fwd is_autocast_available", ".grad_scaler": "GradScaler"}
_LAZY[".autocast_mode"] += " clear_autocast_cache get_autocast_dtype is_autocast_cache_enabled is_autocast_enabled"
_LAZY[".autocast_mode"] += " set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled"
_publish(globals(), _LAZY)
