"""``norch.quasirandom``: points that fill a cube more evenly than random ones do.

Sobol (1967), by the Gray code of Antonov and Saleev (1979); scrambling as Matousek (1998): a random lower triangular
matrix times the binary digits of each coordinate, and a random shift of them.
"""

from __future__ import annotations

from typing import Any

from .._package.exports import publish
from ..dtype import dtype as DType
from ..dtype import float32, get_default_dtype, int64
from ..errors import ArgumentError
from ..ops.create import arange, eye, zeros
from ..ops.random import randint
from ..ops.values import tensor
from ..random import Generator
from ..tensor import Tensor

__all__ = ["SobolEngine"]

BITS = 30  # of a coordinate


def _directions(dimension: int) -> list[list[int]]:
    """The direction numbers of each dimension, BITS of them, each a binary fraction of BITS digits."""
    from base64 import b85decode

    from ._sobol_numbers import COUNTS, PACKED

    left = int.from_bytes(b85decode(PACKED), "little")
    directions = [[1 << (BITS - 1 - i) for i in range(BITS)]]
    degrees = [degree for degree, count in enumerate(COUNTS, 1) for _ in range(count)]
    for s in degrees[: dimension - 1]:
        used = s - 1 + s * (s - 1) // 2
        initial, left = left & ((1 << used) - 1), left >> used
        inner, initial = initial & ((1 << (s - 1)) - 1), initial >> (s - 1)
        v = [1 << (BITS - 1)]
        for i in range(1, s):
            v.append(((initial & ((1 << i) - 1)) << 1 | 1) << (BITS - 1 - i))
            initial >>= i
        for i in range(s, BITS):  # the recurrence of the polynomial, whose highest coefficients come first
            new = v[i - s] ^ v[i - s] >> s
            for k in range(1, s):
                if inner >> (s - 1 - k) & 1:
                    new ^= v[i - k]
            v.append(new)
        directions.append(v)
    return directions


class SobolEngine:
    """The Sobol sequence of points in [0, 1)^dimension, for up to 1,111 dimensions (PyTorch: 21,201). scramble: another
    sequence of the same evenness for each seed, an int, or None for a random one. ValueError for other dimensions.

    Without scrambling the points are PyTorch's, bit for bit.

    >>> engine = norch.quasirandom.SobolEngine(2)
    >>> engine.draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = BITS
    MAXDIM = 1111

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"SobolEngine: dimension is in 1 ... {self.MAXDIM}, not {dimension}")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = tensor(_directions(dimension), dtype=int64, device="cpu")  # (dimension, BITS)
        self.shift = zeros(dimension, dtype=int64, device="cpu")
        if scramble:
            self._scramble()
        self.num_generated = 0

    def _scramble(self) -> None:
        generator = Generator()
        if self.seed is None:
            generator.seed()
        else:
            generator.manual_seed(self.seed)
        digits = arange(BITS - 1, -1, -1, device="cpu")
        shape = (self.dimension, BITS, BITS)
        self.shift = (randint(2, shape[:2], generator=generator, device="cpu") << digits).sum(-1)
        lower = randint(2, shape, generator=generator, device="cpu").tril(-1) + eye(BITS, dtype=int64, device="cpu")
        bits = (self.sobolstate.unsqueeze(-2) >> digits.unsqueeze(-1)) & 1  # (dimension, digit, number)
        self.sobolstate = (((lower.to(float32) @ bits.to(float32)).to(int64) & 1) << digits.unsqueeze(-1)).sum(-2)

    @property
    def quasi(self) -> Tensor:
        """The coordinates of the last point as integers of BITS bits; before the first draw those of the first."""
        return self._integers(max(0, self.num_generated - 1), 1)[0]

    def _integers(self, first: int, count: int) -> Tensor:
        """The points first, first + 1, ... as integers, (count, dimension)."""
        index = arange(first, first + count, device="cpu")
        gray = (index ^ (index >> 1)).unsqueeze(-1)
        integers = self.shift.expand(count, self.dimension)
        for bit in range((first + count - 1).bit_length() if count else 0):
            integers = integers ^ (gray >> bit & 1) * self.sobolstate[:, bit]
        return integers

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next n points, (n, dimension), of dtype, by default the default one. ArgumentError after 2^30 points."""
        if n < 0 or self.num_generated + n > 1 << BITS:
            raise ArgumentError(f"draw: {n} points after {self.num_generated}, of {1 << BITS}")
        dtype = get_default_dtype() if dtype is None else dtype
        if out is not None and tuple(out.shape) != (n, self.dimension):
            raise ArgumentError(f"draw: out of shape {tuple(out.shape)} for points of {(n, self.dimension)}")
        points = self._integers(self.num_generated, n).to(dtype) * 2.0**-BITS
        self.num_generated += n
        return points if out is None else out.copy_(points)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next 2^m points. ValueError where this does not make a power of two in all, for which alone the sequence
        is balanced."""
        total = self.num_generated + 2**m
        if m < 0 or int(total) & (int(total) - 1):
            raise ValueError(
                f"draw_base2: {self.num_generated} points and 2^{m} are no power of two; draw() draws them"
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Goes back to the first point. Returns the engine."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skips n points. Returns the engine."""
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        options: list[Any] = [f"dimension={self.dimension}"]
        options += ["scramble=True"] * self.scramble + [f"seed={self.seed}"] * (self.seed is not None)
        return f"SobolEngine({', '.join(options)})"


publish(globals())
