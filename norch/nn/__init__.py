"""Layers, losses, containers and Module, their base. This file only collects names."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._left_out import nothing_more as _nothing_more
from . import (
    activation,
    attention,
    container,
    conv,
    distance,
    dropout,
    embedding,
    flatten,
    linear,
    loss,
    norm,
    pad,
    pool,
    recurrent,
    resample,
    transformer,
)
from . import functional as functional
from . import init as init
from . import utils as utils
from ._lazy import lazy as _lazy
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
from .module import Module
from .norm import *  # noqa: F403
from .pad import *  # noqa: F403
from .parameter import Parameter
from .pool import *  # noqa: F403
from .recurrent import *  # noqa: F403
from .resample import *  # noqa: F403
from .transformer import *  # noqa: F403

if _TYPE_CHECKING:
    from .extras.ctc import CTCLoss
    from .extras.embedding_bag import EmbeddingBag

__all__ = ["CTCLoss", "EmbeddingBag", "Module", "Parameter", "functional", "init", "utils"]
__all__ += activation.__all__
__all__ += attention.__all__
__all__ += container.__all__
__all__ += conv.__all__
__all__ += distance.__all__
__all__ += dropout.__all__
__all__ += embedding.__all__
__all__ += flatten.__all__
__all__ += linear.__all__
__all__ += loss.__all__
__all__ += norm.__all__
__all__ += pad.__all__
__all__ += pool.__all__
__all__ += recurrent.__all__
__all__ += resample.__all__
__all__ += transformer.__all__


def __dir__() -> list[str]:
    return sorted(__all__)


_LAZY = {".extras.ctc": "CTCLoss", ".extras.embedding_bag": "EmbeddingBag"}
__getattr__ = _lazy(globals(), _LAZY, _nothing_more(__name__))
