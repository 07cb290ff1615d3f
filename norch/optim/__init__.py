"""Optimizers and learning-rate schedules: the names that the folder exports; nothing is defined here."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._exports import lazy as _lazy
from .._left_out import nothing_more as _nothing_more
from . import lr_scheduler as lr_scheduler
from .adam import Adam, AdamW
from .adaptive import Adagrad, RMSprop
from .composed import Adadelta, Adamax, NAdam, RAdam, Rprop
from .optimizer import Optimizer
from .sgd import SGD

if _TYPE_CHECKING:
    from . import swa_utils as swa_utils
    from .extras.composed import ASGD, Adafactor, Muon
    from .extras.lbfgs import LBFGS

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "lr_scheduler",
]  # fmt: skip

_LAZY = {".": "swa_utils", ".extras.composed": "ASGD Adafactor Muon", ".extras.lbfgs": "LBFGS"}
__getattr__ = _lazy(globals(), _LAZY, _nothing_more(__name__))
