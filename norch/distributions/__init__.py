"""``norch.distributions``: random distributions for reinforcement learning and variational methods.

Files have PyTorch's names. Formulas: Johnson, Kotz, Balakrishnan, "Continuous Univariate Distributions"
(1994), and Johnson, Kemp, Kotz, "Univariate Discrete Distributions" (2005).
"""

from .._exports import publish as _publish
from . import constraints as constraints
from . import transforms as transforms
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .chi2 import Chi2
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exponential import Exponential
from .gamma import Gamma
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .log_normal import LogNormal
from .mixture_same_family import MixtureSameFamily
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from .poisson import Poisson
from .studentT import StudentT
from .transformed_distribution import TransformedDistribution
from .transforms import *  # noqa: F403
from .uniform import Uniform

__all__ = [
    *transforms.__all__, "Bernoulli", "Beta", "Binomial", "Categorical", "Chi2", "Dirichlet", "Distribution",
    "Exponential", "Gamma", "Independent", "Laplace", "LogNormal", "MixtureSameFamily", "MultivariateNormal", "Normal",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Poisson", "StudentT", "TransformedDistribution",
    "Uniform", "kl_divergence", "register_kl",
]  # fmt: skip

_publish(globals(), {".": "constraints transforms"})
