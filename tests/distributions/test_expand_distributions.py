"""Distributions: expand() of subclasses, what a class says of its support, and draws that fit it."""

from typing import Any

import pytest

import norch
from norch import distributions as D  # noqa: N812
from norch.testing import assert_close


def test_expand_fills_what_a_class_of_a_program_has_made():
    class Scaled(D.Normal):
        def __init__(self, factor, validate_args=None):
            self.factor = factor
            super().__init__(norch.zeros(2), factor * norch.ones(2), validate_args=validate_args)

        def expand(self, batch_shape, _instance=None):
            made = self._get_checked_instance(Scaled, _instance)
            made.factor = self.factor
            return super().expand(batch_shape, _instance=made)

    wide = Scaled(3.0).expand((4, 2))
    assert type(wide) is Scaled and wide.factor == 3.0 and tuple(wide.scale.shape) == (4, 2)
    wide.sample()


@pytest.mark.parametrize("renamed", [False, True])
def test_expand_keeps_the_class_of_a_program(renamed, monkeypatch):
    """renamed: as as_torch() renames the modules of norch's classes."""
    normal, chooses = D.Normal(norch.zeros(2), 1.0), D.Categorical(norch.ones(2))
    made: tuple[tuple[type[Any], tuple[Any, ...]], ...] = (
        (D.LogNormal, (norch.zeros(2), 1.0)), (D.LogisticNormal, (norch.zeros(2), 1.0)), (D.Independent, (normal, 1)),
        (D.RelaxedOneHotCategorical, (1.0, norch.ones(2))), (D.MixtureSameFamily, (chooses, normal)),
    )  # fmt: skip
    for base, arguments in made:
        if renamed:
            monkeypatch.setattr(base, "__module__", base.__module__.replace("norch", "torch"))
        own = type("Own", (base,), {})
        for cls in (base, own):
            one = cls(*arguments)
            wide = one.expand((4, *one.batch_shape))
            assert type(wide) is cls and tuple(wide.batch_shape) == (4, *one.batch_shape)
            assert_close(wide.log_prob(x := wide.sample()), one.log_prob(x))


def test_the_support_of_a_class_tells_its_events():
    for cls, discrete in ((D.Uniform, False), (D.Categorical, True), (D.Binomial, True), (D.OneHotCategorical, True)):
        assert cls.support.is_discrete is discrete and cls.support.event_dim == (cls is D.OneHotCategorical)
    for cls in (D.Independent, D.TransformedDistribution, D.MixtureSameFamily):
        assert D.constraints.is_dependent(cls.support)
        with pytest.raises(NotImplementedError, match="event_dim"):
            _ = cls.support.event_dim
    assert not D.Independent(D.Uniform(norch.zeros(2), 1.0), 1).support.is_discrete


def test_wishart_draws_of_few_degrees_have_a_density():
    """Rounding makes some of the first draws singular."""
    norch.manual_seed(0)
    few = D.Wishart(norch.tensor([2.5, 3.0]), norch.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]]))
    assert few.log_prob(few.sample((3000,))).isfinite().all()
