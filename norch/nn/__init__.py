"""Layers, losses, containers and Module, their base. This file only collects names."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._exports import exported as _exported
from .._exports import publish as _publish
from . import functional as functional
from . import init as init
from . import utils as utils
from .activation import *  # noqa: F403
from .attention import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .embedding import *  # noqa: F403
from .flatten import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module as Module
from .norm import *  # noqa: F403
from .pad import *  # noqa: F403
from .parameter import Parameter as Parameter
from .pool import *  # noqa: F403
from .recurrent import *  # noqa: F403
from .resample import *  # noqa: F403
from .transformer import *  # noqa: F403

if _TYPE_CHECKING:
    from ..distributed.sync_batch_norm import SyncBatchNorm as SyncBatchNorm
    from . import parallel as parallel
    from .extras.ctc import CTCLoss as CTCLoss
    from .extras.embedding_bag import EmbeddingBag as EmbeddingBag
    from .parallel import DataParallel as DataParallel

__all__ = _exported(
    globals(), "functional", "init", "utils", "CTCLoss", "DataParallel", "EmbeddingBag", "SyncBatchNorm"
)

_LAZY = {
    ".": "modules parallel",
    ".extras.ctc": "CTCLoss",
    ".extras.embedding_bag": "EmbeddingBag",
    ".parallel": "DataParallel",
    "..distributed.sync_batch_norm": "SyncBatchNorm",
}
_publish(globals(), _LAZY)
