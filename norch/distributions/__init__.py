"""Random distributions, as reinforcement learning and variational methods use them: the face of the folder."""

from .._left_out import nothing_more as _nothing_more
from . import constraints as constraints
from .continuous import Exponential, Laplace, LogNormal, Normal, Uniform
from .discrete import Bernoulli, Categorical, OneHotCategorical, OneHotCategoricalStraightThrough
from .distribution import Distribution
from .independent import Independent
from .kl import kl_divergence, register_kl

__all__ = [
    "Bernoulli",
    "Categorical",
    "Distribution",
    "Exponential",
    "Independent",
    "Laplace",
    "LogNormal",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Uniform",
    "kl_divergence",
    "register_kl",
]

__getattr__ = _nothing_more(__name__)
