"""Chi2, the distribution of a sum of squares of normal variables."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import constraints
from .distribution import broadcast_all
from .gamma import Gamma


class Chi2(Gamma):
    """The chi-squared distribution: that of the sum of the squares of df independent standard normal variables. df is a
    positive number or tensor.

    >>> norch.distributions.Chi2(3.0).variance
    tensor(6.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (self.df,) = broadcast_all(df)
        super().__init__(self.df / 2, 0.5, validate_args)

    @property
    def mode(self) -> Tensor:
        return (self.df - 2).clamp(min=0)
