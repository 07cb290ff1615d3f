"""Optimizers and learning-rate schedules: the face of the folder, which defines nothing."""

from typing import Any as _Any

from . import lr_scheduler as lr_scheduler
from .adam import Adam, AdamW
from .adaptive import Adagrad, RMSprop
from .further import Adadelta, Adamax, NAdam, RAdam, Rprop
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]


def __getattr__(name: str) -> _Any:
    from .. import _left_out

    raise _left_out.missing("optim", __name__, name)
