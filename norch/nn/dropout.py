"""The dropout layers: random zeros in training, the identity in eval mode."""

from __future__ import annotations

from . import functional as F
from ._layer import Layer, options

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


@options
class _Dropout(Layer):
    p: float = 0.5
    inplace: bool = False

    def __post_init__(self) -> None:
        if not (isinstance(self.p, (int, float)) and 0 <= self.p <= 1):
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p!r}")

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout, function=F.dropout):
    """In training, zeroes each element with probability p and multiplies the others by 1 / (1 - p), so that the
    expected value stays the same; in eval mode, returns its input (Srivastava et al. 2014, section 4).

    Takes floats of any shape. inplace: writes into the input. p outside [0, 1] raises ValueError.

    >>> norch.nn.Dropout(0.5).eval()(norch.ones(3))
    tensor([1., 1., 1.])
    """


class Dropout1d(_Dropout, function=F.dropout1d):
    """Dropout that zeroes whole channels of (N, C, L) or (C, L) (Tompson et al. 2015). ShapeError for fewer than two
    dimensions.

    >>> norch.nn.Dropout1d(0.2)(norch.ones(2, 3, 4)).shape
    norch.Size([2, 3, 4])
    """


class Dropout2d(_Dropout, function=F.dropout2d):
    """Dropout of whole channels of (N, C, H, W); otherwise as Dropout1d.

    >>> norch.nn.Dropout2d(1.0)(norch.ones(1, 2, 1, 2)).tolist()
    [[[[0.0, 0.0]], [[0.0, 0.0]]]]
    """


class Dropout3d(_Dropout, function=F.dropout3d):
    """Dropout of whole channels of (N, C, D, H, W); otherwise as Dropout1d.

    >>> norch.nn.Dropout3d(0.2)(norch.ones(2, 3, 4, 4, 4)).shape
    norch.Size([2, 3, 4, 4, 4])
    """


class AlphaDropout(_Dropout, function=F.alpha_dropout):
    """Dropout for networks with SELU: elements are set to the negative saturation value of SELU, not to 0, and the
    result is scaled and shifted so that its mean stays 0 and its variance 1 (Klambauer et al. 2017). p and inplace as
    in Dropout.

    >>> norch.nn.AlphaDropout(0.2).eval()(norch.ones(3))
    tensor([1., 1., 1.])
    """


class FeatureAlphaDropout(_Dropout, function=F.feature_alpha_dropout):
    """AlphaDropout that sets whole channels of (N, C, ...).

    >>> norch.nn.FeatureAlphaDropout(0.2)(norch.ones(2, 3, 4)).shape
    norch.Size([2, 3, 4])
    """
