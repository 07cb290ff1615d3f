"""``norch.utils``: data loading, checkpoints, and memory shared with other libraries."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._exports import publish as _publish
from . import checkpoint as checkpoint
from . import data as data

if _TYPE_CHECKING:
    from . import _pytree as _pytree
    from . import dlpack as dlpack
    from . import tensorboard as tensorboard

__all__ = ["checkpoint", "data"]

_publish(globals(), {".": "_pytree dlpack tensorboard"})
