"""``norch.nn``: layers, losses, containers and Module, their base."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._package.exports import exported as _exported
from .._package.exports import publish as _publish
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
    from . import quantization as quantization
    from .extras.adaptive_softmax import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
    from .extras.buffer import Buffer as Buffer
    from .extras.ctc import CTCLoss as CTCLoss
    from .extras.embedding_bag import EmbeddingBag as EmbeddingBag
    from .extras.fractional_pool import FractionalMaxPool2d as FractionalMaxPool2d
    from .extras.fractional_pool import FractionalMaxPool3d as FractionalMaxPool3d
    from .extras.lazy import *  # noqa: F403
    from .extras.uninitialized import UninitializedBuffer as UninitializedBuffer
    from .extras.uninitialized import UninitializedParameter as UninitializedParameter
    from .extras.unpool import MaxUnpool1d as MaxUnpool1d
    from .extras.unpool import MaxUnpool2d as MaxUnpool2d
    from .extras.unpool import MaxUnpool3d as MaxUnpool3d
    from .parallel import DataParallel as DataParallel

_LAZY = {
    ".": "modules parallel quantization",
    ".extras.adaptive_softmax": "AdaptiveLogSoftmaxWithLoss",
    ".extras.buffer": "Buffer",
    ".extras.ctc": "CTCLoss",
    ".extras.embedding_bag": "EmbeddingBag",
    ".extras.fractional_pool": "FractionalMaxPool2d FractionalMaxPool3d",
    ".extras.lazy": "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d "
    "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d "
    "LazyInstanceNorm3d LazyLinear",
    ".extras.unpool": "MaxUnpool1d MaxUnpool2d MaxUnpool3d",
    ".extras.uninitialized": "UninitializedBuffer UninitializedParameter",
    ".parallel": "DataParallel",
    "..distributed.sync_batch_norm": "SyncBatchNorm",
}
__all__ = _exported(
    globals(), "functional", "init", "utils", *(name for path in _LAZY if path != "." for name in _LAZY[path].split())
)
_publish(globals(), _LAZY)
