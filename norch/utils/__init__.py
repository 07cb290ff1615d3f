"""``norch.utils``: data loading, checkpoints, memory and files shared with other libraries, and inspection of models:
tables, graphs, learning rates (docs/seeing.md)."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._package.exports import publish as _publish
from . import checkpoint as checkpoint
from . import data as data

if _TYPE_CHECKING:
    from . import _pytree as _pytree
    from . import benchmark as benchmark
    from . import dlpack as dlpack
    from . import hooks as hooks
    from . import model_zoo as model_zoo
    from . import safetensors as safetensors
    from . import tensorboard as tensorboard
    from . import weak as weak
    from ._draw_graph import draw_graph
    from ._lr_find import lr_find
    from ._summary import summary

__all__ = ["checkpoint", "data", "draw_graph", "lr_find", "summary"]

_publish(
    globals(),
    {
        ".": "_pytree benchmark dlpack hooks model_zoo safetensors tensorboard weak",
        "._draw_graph": "draw_graph",
        "._lr_find": "lr_find",
        "._summary": "summary",
    },
)
