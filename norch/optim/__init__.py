"""Optimizers and learning-rate schedules: the names that the folder exports; nothing is defined here."""

from typing import Any as _Any

from .._left_out import nothing_more as _nothing_more
from . import lr_scheduler as lr_scheduler
from .adam import Adam, AdamW
from .adaptive import Adagrad, RMSprop
from .composed import Adadelta, Adamax, NAdam, RAdam, Rprop
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

_missing = _nothing_more(__name__)


def __getattr__(name: str) -> _Any:
    if name == "swa_utils":  # imported on first use
        from importlib import import_module

        return import_module(".swa_utils", __name__)
    return _missing(name)
