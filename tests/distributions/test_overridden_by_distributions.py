"""Methods of distributions and transforms reach those that a subclass overrides where PyTorch's do."""

from typing import Any

import pytest
from conftest import DEVICE

import norch
from norch import distributions as d
from norch.testing import assert_close


class StraightThrough(d.Normal):
    """rsample() by way of sample(): draws with the derivative of the mean."""

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.sample(sample_shape) + (self.loc - self.loc.detach())


def test_the_sample_of_a_normal_does_not_call_rsample() -> None:
    loc = norch.zeros(3, device=DEVICE).requires_grad_()
    normal = StraightThrough(loc, norch.ones(3, device=DEVICE))
    assert not normal.sample((2,)).requires_grad
    normal.rsample((2,)).sum().backward()
    assert_close(loc.grad, norch.full((3,), 2.0, device=DEVICE))
    assert d.Independent(normal, 1).rsample().requires_grad


class Constant(d.Laplace):
    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.loc + norch.zeros(self._extended_shape(sample_shape), device=DEVICE)


def test_the_sample_of_others_calls_it() -> None:
    laplace = Constant(norch.ones(2, device=DEVICE).requires_grad_(), 1.0)
    assert_close(laplace.sample((3,)), norch.ones(3, 2, device=DEVICE))
    assert not laplace.sample().requires_grad


class Wide(d.Normal):
    @property
    def stddev(self) -> Any:
        return 2 * self.scale


def test_the_variance_of_a_normal_is_that_of_its_stddev() -> None:
    wide = Wide(norch.zeros(2, device=DEVICE), 1.5)
    assert_close(wide.variance, norch.full((2,), 9.0, device=DEVICE))
    assert_close(d.Independent(wide, 1).variance, wide.variance)


class Noisy(d.ExpTransform):
    calls = 0

    def _call(self, x: Any) -> Any:
        self.calls += 1
        return super()._call(x)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_chain_takes_its_image_from_the_caller(parts: int) -> None:
    last = Noisy()
    chain = d.ComposeTransform([*[d.AffineTransform(0.0, 2.0)] * (parts - 1), last])
    x = norch.tensor([0.25, 0.5], device=DEVICE)
    y = chain(x)
    assert_close(chain.log_abs_det_jacobian(x, y), x * parts + (parts - 1) * norch.log(norch.tensor(2.0)).item())
    assert last.calls == 1
