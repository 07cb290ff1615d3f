"""``norch.distributions``: random distributions for reinforcement learning and variational methods.

Files have PyTorch's names. Formulas: Johnson, Kotz, Balakrishnan, "Continuous Univariate Distributions"
(1994), and Johnson, Kemp, Kotz, "Univariate Discrete Distributions" (2005).
"""

from .._exports import publish as _publish
from . import constraints as constraints
from .bernoulli import Bernoulli
from .categorical import Categorical
from .distribution import Distribution
from .exponential import Exponential
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .log_normal import LogNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from .uniform import Uniform

__all__ = [
    "Bernoulli", "Categorical", "Distribution", "Exponential", "Independent", "Laplace", "LogNormal", "Normal",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Uniform", "kl_divergence", "register_kl",
]  # fmt: skip

_publish(globals(), {".": "constraints"})
