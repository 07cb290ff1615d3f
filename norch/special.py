"""``norch.special``: functions of mathematical physics and statistics under the names of ``torch.special``.

What ``norch`` itself has is the same function under another name here: ``psi`` is ``norch.digamma``.
"""

from __future__ import annotations

from ._package.exports import publish
from .ops._public import publish_operations
from .ops.composed.pointwise import logit, mvlgamma, polygamma, round
from .ops.pointwise import exp2, expm1, log1p, sigmoid
from .ops.reduce import logsumexp
from .ops.softmax import log_softmax, softmax
from .ops.special import entr, erfcx, i0, i0e, i1, i1e, igamma, igammac, log_ndtr, ndtr, ndtri, xlog1py, zeta
from .ops.transcendental import digamma, erf, erfc, erfinv, lgamma, sinc, xlogy

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln",
    "i0", "i0e", "i1", "i1e", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "multigammaln", "ndtr",
    "ndtri", "polygamma", "psi", "round", "sinc", "softmax", "xlog1py", "xlogy", "zeta",
]  # fmt: skip

psi, gammaln, multigammaln, expit = digamma, lgamma, mvlgamma, sigmoid
gammainc, gammaincc = igamma, igammac

publish_operations(globals(), __all__, without_out=("log_softmax", "softmax"))
publish(globals())
