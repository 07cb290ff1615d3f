"""norch.quasirandom: the points of SobolEngine, against PyTorch and by their evenness."""

import numpy as np
import pytest

import norch
from norch.quasirandom import SobolEngine


@pytest.mark.parametrize("dimension", [1, 2, 3, 40, 1111])
def test_points_are_those_of_torch(torch, dimension):
    ours, theirs = SobolEngine(dimension), torch.quasirandom.SobolEngine(dimension)
    assert (ours.sobolstate.numpy() == theirs.sobolstate.numpy()).all()
    for count in (1, 5, 64, 300):
        assert (ours.draw(count).numpy() == theirs.draw(count).numpy()).all()
    ours.fast_forward(77)
    theirs.fast_forward(77)
    assert (ours.draw(3, dtype=norch.float64).numpy() == theirs.draw(3, dtype=torch.float64).numpy()).all()
    assert (ours.quasi.numpy() == theirs.quasi.numpy()).all() and ours.num_generated == theirs.num_generated
    assert (ours.reset().draw(2).numpy() == theirs.reset().draw(2).numpy()).all()
    for options in ({}, {"scramble": True}, {"scramble": True, "seed": 3}):
        assert repr(SobolEngine(2, **options)) == repr(torch.quasirandom.SobolEngine(2, **options))


@pytest.mark.parametrize("options", [{}, {"scramble": True, "seed": 1}, {"scramble": True, "seed": 2}])
def test_points_are_even(options):
    """Each of 2^10 intervals has one of 2^10 points, in each dimension; so has each square of the first two."""
    points = SobolEngine(5, **options).draw_base2(10, dtype=norch.float64).numpy()
    for column in points.T:
        assert sorted((column * 1024).astype(int).tolist()) == list(range(1024))
    squares = (points[:, 0] * 32).astype(int) * 32 + (points[:, 1] * 32).astype(int)
    assert len(set(squares.tolist())) == 1024


def test_scrambling_is_fixed_by_its_seed():
    first, second = (SobolEngine(3, scramble=True, seed=seed).draw(8) for seed in (1, 2))
    assert (SobolEngine(3, scramble=True, seed=1).draw(8) == first).all() and (first != second).any()
    assert (SobolEngine(3, scramble=True).draw(8) != SobolEngine(3, scramble=True).draw(8)).any()
    means = np.mean([SobolEngine(2, scramble=True, seed=seed).draw(1).numpy() for seed in range(200)], axis=0)
    assert (abs(means - 0.5) < 0.1).all()  # of the first point, too


def test_out_and_errors():
    engine, out = SobolEngine(2), norch.empty(3, 2)
    assert engine.draw(3, out=out) is out and (out == SobolEngine(2).draw(3)).all()
    assert engine.draw(0).shape == (0, 2)
    for call, error, match in (
        (lambda: SobolEngine(0), ValueError, "dimension is in 1 ... 1111, not 0"),
        (lambda: SobolEngine(1112), ValueError, "not 1112"),
        (lambda: engine.draw(-1), norch.ArgumentError, "-1 points after 3"),
        (lambda: engine.draw(1 << 30), norch.ArgumentError, "of 1073741824"),
        (lambda: engine.draw(2, out=out), norch.ArgumentError, "out of shape .3, 2. for points of .2, 2."),
        (lambda: engine.draw_base2(4), ValueError, "3 points and 2.4 are no power of two"),
        (lambda: engine.draw_base2(-1), ValueError, "are no power of two"),
    ):
        with pytest.raises(error, match=match):
            call()
