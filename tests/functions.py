"""Leaves and Functions that several test files use."""

import norch
from norch.autograd import Function


def leaf(*values, dtype=None):
    return norch.tensor(
        values[0] if len(values) == 1 else list(values), dtype=dtype or norch.float64, requires_grad=True
    )


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        out = x.exp()
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Split(Function):
    """Two outputs and one that is no number of x."""

    seen = None

    @staticmethod
    def forward(ctx, x, factor, name=None):
        ctx.factor = factor
        signs = (x > 0).to(x.dtype)
        ctx.mark_non_differentiable(signs)
        ctx.save_for_backward(x)
        return x * factor, x * x, signs

    @staticmethod
    def backward(ctx, g1, g2, g3):
        (x,) = ctx.saved_tensors
        Split.seen = g1.tolist()
        assert ctx.needs_input_grad[:2] == (True, False)
        return g1 * ctx.factor + g2 * 2 * x, None, None
