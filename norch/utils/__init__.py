"""``norch.utils``: data loading, checkpoints, memory shared with other libraries and their files, and sight of models:
tables, pictures of graphs, learning rates (docs/seeing.md)."""

from .._exports import lazy as _lazy
from .._left_out import nothing_more as _nothing_more
from .._typing import TYPE_CHECKING as _TYPE_CHECKING
from . import checkpoint as checkpoint
from . import data as data

__all__ = ["checkpoint", "data", "draw_graph", "lr_find", "summary"]
__dir__ = __all__.copy  # completion shows the public names only

if _TYPE_CHECKING:
    from ._draw_graph import draw_graph
    from ._lr_find import lr_find
    from ._summary import summary

__getattr__ = _lazy(
    globals(),
    {
        ".": "_pytree dlpack safetensors tensorboard",
        "._draw_graph": "draw_graph",
        "._lr_find": "lr_find",
        "._summary": "summary",
    },
    _nothing_more(__name__),
)
