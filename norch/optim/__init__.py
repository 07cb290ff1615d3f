"""Optimizers and learning-rate schedules: the face of the folder, which defines nothing."""

from typing import Any as _Any

from . import lr_scheduler as lr_scheduler
from .adam import Adam, AdamW
from .adaptive import Adagrad, RMSprop
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]


def __getattr__(name: str) -> _Any:
    from .. import _left_out

    raise _left_out.missing("optim", __name__, name)
