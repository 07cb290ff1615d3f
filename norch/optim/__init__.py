"""``norch.optim``: optimizers. ``norch.optim.lr_scheduler`` has learning-rate schedules."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._package.exports import publish as _publish
from . import lr_scheduler as lr_scheduler
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .adaptive import Adadelta, Adagrad, RMSprop, Rprop
from .extras.composed import ASGD, Adafactor, Muon
from .extras.lbfgs import LBFGS
from .extras.sparse_adam import SparseAdam
from .optimizer import Optimizer
from .sgd import SGD

if _TYPE_CHECKING:
    from . import swa_utils as swa_utils

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler",
]  # fmt: skip

_publish(globals(), {".": "swa_utils"})
