"""Optimizers and learning-rate schedules: the names that the folder exports; nothing is defined here."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._exports import lazy as _lazy
from .._left_out import nothing_more as _nothing_more
from . import lr_scheduler as lr_scheduler
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .adaptive import Adadelta, Adagrad, RMSprop, Rprop
from .optimizer import Optimizer
from .sgd import SGD

if _TYPE_CHECKING:
    from . import swa_utils as swa_utils
    from .extras.lbfgs import LBFGS

__all__ = [
    "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop",
    "lr_scheduler",
]  # fmt: skip

__getattr__ = _lazy(globals(), {".": "swa_utils", ".extras.lbfgs": "LBFGS"}, _nothing_more(__name__))
