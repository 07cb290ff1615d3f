"""Optimizers and learning-rate schedules: the names that the folder exports; nothing is defined here."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._exports import publish as _publish
from . import lr_scheduler as lr_scheduler
from .adam import Adam, AdamW
from .adaptive import Adagrad, RMSprop
from .composed import Adadelta, Adamax, NAdam, RAdam, Rprop
from .optimizer import Optimizer
from .sgd import SGD

if _TYPE_CHECKING:
    from . import swa_utils as swa_utils
    from .extras.lbfgs import LBFGS as LBFGS

__all__ = [
    "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop",
    "lr_scheduler",
]  # fmt: skip

_publish(globals(), {".": "swa_utils", ".extras.lbfgs": "LBFGS"})
