"""The page that answers "what happens in backward": one short entry an operation.

g is the gradient of the result. Each method gives the gradient of one input; the tensors that it mentions
(self.x, self.a, self.b, self.c, self.out) are what the node saves. Gradients are summed back over broadcast
dimensions, and cast, by the form (forms.py). They are written in recorded operations, so derivatives of
derivatives come by themselves.
"""

from __future__ import annotations

import math
from typing import Any

from .._handle import Handle
from .forms import Binary, Operation, Reduction, Ternary, Unary, ViewOf
from .inplace import zeros_of
from .node import Node

# ruff: noqa: D101, D102, E704  (entries are formulas; their names are those of the operations)
# fmt: off

# ---- pointwise, one input --------------------------------------------------------------------------------------


class _Flat(Unary):
    """Steps: the derivative is 0 wherever there is one."""
    def grad_x(self, g: Any) -> Any: return g.new_zeros(g.shape)


class Neg(Unary):
    def grad_x(self, g: Any) -> Any: return -g


class Abs(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.x.sign()


class Sign(_Flat): pass
class Floor(_Flat): pass
class Ceil(_Flat): pass
class Round(_Flat): pass
class Trunc(_Flat): pass


class Square(Unary):
    def grad_x(self, g: Any) -> Any: return g * (self.x * 2)


class Reciprocal(Unary):
    def grad_x(self, g: Any) -> Any: return -g * (self.out * self.out)


class Sqrt(Unary):
    def grad_x(self, g: Any) -> Any: return g / (self.out * 2)


class Rsqrt(Unary):
    def grad_x(self, g: Any) -> Any: return g * (self.out * self.out * self.out * -0.5)


class Exp(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.out


class Exp2(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.out * math.log(2)


class Expm1(Unary):
    def grad_x(self, g: Any) -> Any: return g * (self.out + 1)


class Log(Unary):
    def grad_x(self, g: Any) -> Any: return g / self.x


class Log2(Unary):
    def grad_x(self, g: Any) -> Any: return g / (self.x * math.log(2))


class Log10(Unary):
    def grad_x(self, g: Any) -> Any: return g / (self.x * math.log(10))


class Log1p(Unary):
    def grad_x(self, g: Any) -> Any: return g / (self.x + 1)


class Sin(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.x.cos()


class Cos(Unary):
    def grad_x(self, g: Any) -> Any: return -g * self.x.sin()


class Tan(Unary):
    def grad_x(self, g: Any) -> Any: return g * (self.out * self.out + 1)


class Asin(Unary):
    def grad_x(self, g: Any) -> Any: return g * (1 - self.x * self.x).rsqrt()


class Acos(Unary):
    def grad_x(self, g: Any) -> Any: return -g * (1 - self.x * self.x).rsqrt()


class Atan(Unary):
    def grad_x(self, g: Any) -> Any: return g / (self.x * self.x + 1)


class Sinh(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.x.cosh()


class Cosh(Unary):
    def grad_x(self, g: Any) -> Any: return g * self.x.sinh()


class Tanh(Unary):
    def grad_x(self, g: Any) -> Any: return g._tanh_backward(self.out)


class Asinh(Unary):
    def grad_x(self, g: Any) -> Any: return g * (self.x * self.x + 1).rsqrt()


class Acosh(Unary):
    def grad_x(self, g: Any) -> Any: return g * (self.x * self.x - 1).rsqrt()


class Atanh(Unary):
    def grad_x(self, g: Any) -> Any: return g / (1 - self.x * self.x)


class Erf(Unary):
    def grad_x(self, g: Any) -> Any: return g * ((self.x * -self.x).exp() * (2 / math.sqrt(math.pi)))


class Erfc(Unary):
    def grad_x(self, g: Any) -> Any: return g * ((self.x * -self.x).exp() * (-2 / math.sqrt(math.pi)))


class Sigmoid(Unary):
    def grad_x(self, g: Any) -> Any: return g._sigmoid_backward(self.out)


class Silu(Unary):
    def grad_x(self, g: Any) -> Any: return g._silu_backward(self.x)


class Gelu(Unary):
    def grad_x(self, g: Any) -> Any: return g._gelu_backward(self.x)


class Relu(Unary):
    def grad_x(self, g: Any) -> Any: return g._relu_backward(self.out)


# ---- pointwise, two inputs -------------------------------------------------------------------------------------


class Add(Binary):
    passes = True
    def grad_a(self, g: Any) -> Any: return g
    def grad_b(self, g: Any) -> Any: return g


class Sub(Binary):
    passes = True
    def grad_a(self, g: Any) -> Any: return g
    def grad_b(self, g: Any) -> Any: return -g


class Mul(Binary):
    def grad_a(self, g: Any) -> Any: return g * self.b
    def grad_b(self, g: Any) -> Any: return g * self.a


class Div(Binary):
    def grad_a(self, g: Any) -> Any: return g / self.b
    def grad_b(self, g: Any) -> Any: return -g * ((self.a / self.b) / self.b)


class Remainder(Binary):  # a - b floor(a / b)
    passes = True
    def grad_a(self, g: Any) -> Any: return g
    def grad_b(self, g: Any) -> Any: return -g * self.a.floor_divide(self.b)


class Pow(Binary):
    def grad_a(self, g: Any) -> Any:  # b = 0 is a constant, also at a = 0 where a ** -1 is infinite
        b = self.b.clone().to(g.dtype)  # for a Python number less 1 is of the default dtype
        return (g * (b * self.a.pow(b - 1))).where(b != 0, 0)

    def grad_b(self, g: Any) -> Any:  # 0 ** b is constant for b >= 0, though log(0) is infinite
        flat = (self.a == 0) & (self.b >= 0)
        return (g * (self.a.pow(self.b) * self.a.to(g.dtype).log())).where(flat.logical_not(), 0)


class Atan2(Binary):  # 0 at the origin, where there is none; a or b may be an integer, whose square could overflow
    def grad_a(self, g: Any) -> Any:
        a, b = self.a.to(g.dtype), self.b.to(g.dtype)
        square = a * a + b * b
        return g * (b / square).where(square != 0, 0)

    def grad_b(self, g: Any) -> Any:
        a, b = self.a.to(g.dtype), self.b.to(g.dtype)
        square = a * a + b * b
        return -g * (a / square).where(square != 0, 0)


class Maximum(Binary):  # equal inputs share the gradient; NaN, which is not less, lets it through
    def grad_a(self, g: Any) -> Any:
        return (g / 2).where(self.a == self.b, g).where((self.a < self.b).logical_not(), 0)

    def grad_b(self, g: Any) -> Any:
        return (g / 2).where(self.a == self.b, g).where((self.b < self.a).logical_not(), 0)


class Minimum(Binary):
    def grad_a(self, g: Any) -> Any:
        return (g / 2).where(self.a == self.b, g).where((self.a > self.b).logical_not(), 0)

    def grad_b(self, g: Any) -> Any:
        return (g / 2).where(self.a == self.b, g).where((self.b > self.a).logical_not(), 0)


class ClampMin(Binary):  # a value at the bound counts as inside
    def grad_a(self, g: Any) -> Any: return g.where(self.a >= self.b, 0)
    def grad_b(self, g: Any) -> Any: return g.where(self.a < self.b, 0)


class ClampMax(Binary):
    def grad_a(self, g: Any) -> Any: return g.where(self.a <= self.b, 0)
    def grad_b(self, g: Any) -> Any: return g.where(self.a > self.b, 0)


class ReluBackward(Binary):  # a is the gradient, b the result of relu
    def grad_a(self, g: Any) -> Any: return g._relu_backward(self.b)
    def grad_b(self, g: Any) -> Any: return None


class SigmoidBackward(Binary):  # a * b * (1 - b)
    def grad_a(self, g: Any) -> Any: return g._sigmoid_backward(self.b)
    def grad_b(self, g: Any) -> Any: return g * self.a * (1 - self.b * 2)


class TanhBackward(Binary):  # a * (1 - b * b)
    def grad_a(self, g: Any) -> Any: return g._tanh_backward(self.b)
    def grad_b(self, g: Any) -> Any: return g * self.a * (self.b * -2)


class SiluBackward(Binary):  # a * s * (1 + b * (1 - s)), s = sigmoid(b)
    def grad_a(self, g: Any) -> Any: return g._silu_backward(self.b)

    def grad_b(self, g: Any) -> Any:
        s = self.b.sigmoid()
        return g * self.a * (s * (1 - s) * (2 + self.b * (1 - s * 2)))


class GeluBackward(Binary):  # a * (Phi(b) + b * phi(b)), Phi and phi of the normal distribution
    def grad_a(self, g: Any) -> Any: return g._gelu_backward(self.b)

    def grad_b(self, g: Any) -> Any:
        square = self.b * self.b
        return g * self.a * ((2 - square) * (square * -0.5).exp() * (1 / math.sqrt(2 * math.pi)))


# ---- pointwise, three inputs -----------------------------------------------------------------------------------


class Where(Ternary):  # a chooses b or c
    def grad_a(self, g: Any) -> Any: return None
    def grad_b(self, g: Any) -> Any: return g.where(self.a, 0)
    def grad_c(self, g: Any) -> Any: return g.where(self.a.logical_not(), 0)


class Clamp(Ternary):  # a between b and c
    def grad_a(self, g: Any) -> Any: return g.where((self.a >= self.b) & (self.a <= self.c), 0)
    def grad_b(self, g: Any) -> Any: return g.where((self.a < self.b) & (self.b < self.c), 0)
    def grad_c(self, g: Any) -> Any: return g.where((self.a > self.c) | (self.c < self.b), 0)


# ---- reductions ------------------------------------------------------------------------------------------------


class Sum(Reduction):
    passes = True
    def grad_x(self, g: Any) -> Any: return self.spread(g)


class Mean(Reduction):  # param: how many elements went into one
    passes = True
    def grad_x(self, g: Any) -> Any: return self.spread(g / self.param)


class MeanSquare(Reduction):  # of all elements, param of them
    def grad_x(self, g: Any) -> Any: return self.x * (g * (2 / self.param))


class Prod(Reduction):
    def grad_x(self, g: Any) -> Any:
        """The product of all others: out / x, but where there is a zero, that of those before and those behind."""
        x = self.x
        if not (x == 0).any().item():
            return self.spread(g * self.out) / x
        line, dim = (x.flatten(), 0) if self.axes is None or x.ndim == 0 else (x, self.axes[0])
        others = line._products_of_others(dim) * line._products_of_others(dim, True)
        return self.spread(g) * others.reshape(x.shape)


class Amax(Reduction):  # equal maxima share the gradient; NaNs, where there are some, are the maxima
    def grad_x(self, g: Any) -> Any:
        chosen = (self.x == self.spread(self.out)) | self.x.isnan()
        share = g / chosen._reduced("sum", self.axes, self.keepdim)
        return self.spread(share).where(chosen, 0)


class Amin(Amax):
    grad_x = Amax.grad_x


class Var(Reduction):  # param: the number of elements less the correction
    def grad_x(self, g: Any) -> Any:
        centred = self.x - self.spread(self.x._reduced("mean", self.axes, self.keepdim))
        return self.spread(g) * centred * (2 / self.param if self.param > 0 else math.nan)


class Std(Reduction):
    def grad_x(self, g: Any) -> Any:
        centred = self.x - self.spread(self.x._reduced("mean", self.axes, self.keepdim))
        slope = g / (self.out.where(self.out != 0, math.inf) * (self.param if self.param > 0 else math.nan))
        return self.spread(slope) * centred


class Norm(Reduction):  # sqrt(sum(x * x)); flat at 0
    def grad_x(self, g: Any) -> Any: return self.spread(g / self.out.where(self.out != 0, math.inf)) * self.x


class Median(Reduction):  # one of the elements; its equals share the gradient
    def grad_x(self, g: Any) -> Any:
        out = self.spread(self.out)
        chosen = (self.x == out) | (self.x.isnan() & out.isnan())
        return self.spread(g / chosen._reduced("sum", self.axes, self.keepdim)).where(chosen, 0)


class Logsumexp(Reduction):
    def grad_x(self, g: Any) -> Any: return self.spread(g) * (self.x - self.spread(self.out)).exp()


class SumTo(Operation):
    """Summed over broadcast dimensions, and cast; goes back by broadcasting."""
    __slots__ = ("like",)
    passes = True
    like: Handle

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return (g._expand_to(self.like),)


class Spread(ViewOf):
    """A reduced shape seen in the full one: the reverse of a reduction."""
    def propagate(self, g: Any) -> tuple[Any, ...]:
        axes, keepdim = self.step[1][1:]
        return (g._reduced("sum", axes, keepdim),)


# ---- products --------------------------------------------------------------------------------------------------


class Matmul(Binary):
    """a @ b, either perhaps transposed. A vector counts as a matrix of one row (a) or one column (b)."""
    __slots__ = ("transposed", "vectors")

    def grad_a(self, g: Any) -> Any:
        if self.vectors != (False, False):
            return self._grad_vectors(g)[0]
        ta, tb = self.transposed
        return self.b._product(g, tb, True) if ta else g._product(self.b, False, not tb)

    def grad_b(self, g: Any) -> Any:
        if self.vectors != (False, False):
            return self._grad_vectors(g)[1]
        ta, tb = self.transposed
        return g._product(self.a, True, ta) if tb else self.a._product(g, not ta, False)

    def _grad_vectors(self, g: Any) -> tuple[Any, Any]:
        (a_vector, b_vector), (ta, tb) = self.vectors, self.transposed
        to_a, to_b = self.edges
        grad_a = grad_b = None
        if a_vector and b_vector:
            grad_a = None if to_a is None else g * self.b
            grad_b = None if to_b is None else g * self.a
        elif b_vector:  # (..., M, K) @ (K): the gradient of a is an outer product
            if to_a is not None:
                grad_a = (g.unsqueeze(-2) * self.b.unsqueeze(-1)) if ta else (g.unsqueeze(-1) * self.b)
            if to_b is not None:
                grad_b = self.a._product(g.unsqueeze(-1), not ta, False).squeeze(-1)
        else:  # (K) @ (..., K, N)
            if to_a is not None:
                grad_a = g.unsqueeze(-2)._product(self.b, False, not tb).squeeze(-2)
            if to_b is not None:
                grad_b = (g.unsqueeze(-1) * self.a) if tb else (self.a.unsqueeze(-1) * g.unsqueeze(-2))
        return grad_a, grad_b


class Linear(Ternary):
    """x @ weight^T + bias, with x (..., K), weight (N, K), bias (N)."""
    __slots__ = ("bias",)  # for its shape; its values are not needed, and may change

    def grad_a(self, g: Any) -> Any: return g._product(self.b)

    def grad_b(self, g: Any) -> Any:
        ndim = g.ndim
        if ndim == 2:
            return g._product(self.a, True)
        if ndim == 1:
            return g.unsqueeze(-1) * self.a
        return g.flatten(0, -2)._product(self.a.flatten(0, -2), True)

    def grad_c(self, g: Any) -> Any:
        total = g._sum_to(self.bias)
        return g.clone() if total is g else total


# ---- views: the gradient goes back the way the elements came ----------------------------------------------------


class Alias(ViewOf):
    def grad_x(self, g: Any) -> Any: return g


class Reshape(ViewOf):
    def grad_x(self, g: Any) -> Any: return g._reshape_to(self.like)


class Permute(ViewOf):
    def grad_x(self, g: Any) -> Any:
        axes = self.step[1][0]
        back = [0] * len(axes)
        for i, axis in enumerate(axes):
            back[axis % len(axes)] = i
        return g.permute(back)


class Transpose(ViewOf):
    def grad_x(self, g: Any) -> Any: return g.transpose(*self.step[1])


class Expand(ViewOf):
    def grad_x(self, g: Any) -> Any: return g._sum_to(self.like)


class Region(ViewOf):
    """Some elements of x, each once (select, slice, diagonal): the others get 0."""
    def grad_x(self, g: Any) -> Any:
        whole = zeros_of(self.like)
        function, arguments = self.step
        function(whole, *arguments).copy_(g)
        return whole


class Unfold(ViewOf):
    """Windows may share elements, so they are added one position at a time."""
    def grad_x(self, g: Any) -> Any:
        whole = zeros_of(self.like)
        dim, size, step = self.step[1]
        if whole.ndim == 0:
            return g.sum()
        dim %= whole.ndim
        windows = g.shape[dim]
        for i in range(size if windows else 0):
            part = whole._slice(dim, i, i + (windows - 1) * step + 1, step)
            part.add_(g.select(-1, i))
        return whole


class Strided(ViewOf):
    """Any strides over the memory of x: gradients are added up in memory of that form, where x then finds its own."""
    def grad_x(self, g: Any) -> Any:
        from ..create import arange  # late, as it stands above

        size, stride, shift, own = self.step[1]
        shape = tuple(self.like.shape)
        if 0 in shape or 0 in size:
            return zeros_of(self.like)
        low, high = zip(_reach(shape, own, 0), _reach(size, stride, shift))
        first, count = min(low), max(high) - min(low) + 1
        flat = g.new_zeros(count)
        where = arange(count, device=g.device)._strided(size, stride, shift - first, (1,)).reshape(-1)
        summed = flat.index_add(0, where, g.reshape(-1))
        return summed._strided(shape, own, -first, (1,)).clone()


def _reach(size: Any, stride: Any, shift: int) -> tuple[int, int]:
    """The lowest and the highest element that strides reach."""
    ends = [(count - 1) * step for count, step in zip(size, stride)]
    return shift + sum(end for end in ends if end < 0), shift + sum(end for end in ends if end > 0)


# ---- copies (indexing: derivatives_index.py) ----------------------------------------------------------------------


class Clone(Operation):
    passes = True
    def propagate(self, g: Any) -> tuple[Any, ...]: return (g,)


class Cast(Operation):
    """To another dtype or device, and back."""
    __slots__ = ("like",)
    passes = True
    def propagate(self, g: Any) -> tuple[Any, ...]: return (g._sum_to(self.like),)


class CopyInto(Operation):
    """src broadcast and cast into a tensor."""
    __slots__ = ("like",)
    passes = True
    def propagate(self, g: Any) -> tuple[Any, ...]: return (g._sum_to(self.like),)


class Cat(Operation):
    __slots__ = ("dim", "dtypes", "sizes")
    passes = True

    def propagate(self, g: Any) -> tuple[Any, ...]:
        parts, start = [], 0
        for edge, size, dtype in zip(self.edges, self.sizes, self.dtypes, strict=True):
            if size is None:  # an empty tensor of one dimension, skipped by cat
                parts.append(None if edge is None else g.new_zeros(0))
                continue
            parts.append(None if edge is None else g._slice(self.dim, start, start + size, 1).to(dtype))
            start += size
        return tuple(parts)


class Stack(Operation):
    __slots__ = ("dim", "dtypes")
    passes = True

    def propagate(self, g: Any) -> tuple[Any, ...]:
        return tuple(
            None if edge is None else g.select(self.dim, i).to(dtype)
            for i, (edge, dtype) in enumerate(zip(self.edges, self.dtypes, strict=True))
        )


__all__ = [name for name, thing in list(globals().items()) if isinstance(thing, type) and issubclass(thing, Node)]
