"""VonMises, of angles."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._package.typing import Operand
from ..autograd import no_grad
from ..ops.create import empty_like
from ..ops.pointwise import where
from ..ops.random import rand_like
from ..ops.special import bessel_complement, i0e
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all


def _drawn(k: Tensor, r: Tensor) -> Tensor:
    """Angles >= 0 with these concentrations, by rejection. A concentration of NaN gives NaN, because it would be
    rejected forever.
    """
    draws, left = empty_like(k).fill_(math.nan), (k == k).nonzero().squeeze(1)
    while left.numel():
        z = (math.pi * rand_like(k[left])).cos()
        f = (1 + r[left] * z) / (r[left] + z)
        c = k[left] * (r[left] - f)
        u = 1 - rand_like(c)
        accepted = (c * (2 - c) > u) | ((c / u).log() + 1 >= c)
        angle = (rand_like(c) - 0.5).sign() * f.clamp(-1, 1).acos()
        draws[left[accepted]] = angle[accepted]
        left = left[~accepted]
    return draws


class VonMises(Distribution):
    """The von Mises distribution of angles x, with the density exp(concentration cos(x - loc)) / (2 pi
    I0(concentration)). loc and concentration > 0 are numbers, or tensors that broadcast. Draws are in [-pi, pi), by
    rejection (Best and Fisher, Efficient Simulation of the von Mises Distribution, Applied Statistics 28, 1979).
    variance is the circular variance, 1 - I1 / I0.

    >>> norch.distributions.VonMises(0.0, 1.0).log_prob(norch.tensor(0.0))
    tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return bessel_complement(self.concentration)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            k = self.concentration.double().expand(shape).reshape(-1)
            tau = 1 + (1 + 4 * k.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))  # rho loses the digits of small k
            turned = _drawn(k, r).reshape(shape) + self.loc.double() + math.pi
            return (turned % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value: Operand) -> Tensor:
        x, k = self._validate_sample(value), self.concentration
        return k * ((x - self.loc).cos() - 1) - math.log(2 * math.pi) - i0e(k).log()
