"""Written by `make stubs` from the code; a test tells when it is old."""

import builtins
from collections.abc import Sequence
from norch._handle import Handle
from norch._typing import DeviceLike, Index, Operand
from norch.dtype import dtype as _dtype
from norch.ops._results import aminmax_result, cummax_result, cummin_result, frexp_result, kthvalue_result, max_result, median_result, min_result, mode_result, nanmedian_result, sort_result, topk_result
from norch.ops.linalg import factor
from norch.ops.linalg.householder import geqrf_result
from norch.ops.linalg.solve import slogdet_result
from norch.ops.linalg.torch_names import svd_result, triangular_solve_result
from norch.ops.reduce import Dims
from norch.ops.view import Axes
from norch.random import Generator
from norch.tensor import Tensor
from typing import Any, Literal, overload
from typing_extensions import Self

class DeclaredMethods(Handle):
    """The methods of Tensor that norch/ops declares."""
    
    __slots__ = ()
    
    @property
    def H(self) -> Tensor: ...
    @property
    def T(self) -> Tensor: ...
    def __abs__(input) -> Tensor: """|x|."""
    def __add__(input, other: Operand) -> Tensor: ...
    def __and__(input, other: Operand) -> Tensor: """a & b, for integers and bool."""
    def __eq__(input, other: Any) -> Tensor: """Where a == b."""  # type: ignore[override]
    def __floordiv__(input, other: Operand) -> Tensor: """a / b rounded down. Integer division by 0 raises ZeroDivisionError."""
    def __ge__(input, other: Operand) -> Tensor: """Where a >= b."""
    def __getitem__(x, index: Index) -> Tensor: """x[index]: a view for integers, slices, ... and None, else a new tensor."""
    def __gt__(input, other: Operand) -> Tensor: """Where a > b."""
    def __iadd__(self, other: Operand) -> Self: """add() in place."""
    def __iand__(self, other: Operand) -> Self: """bitwise_and() in place."""
    def __ifloordiv__(self, other: Operand) -> Self: """floor_divide() in place."""
    def __ilshift__(self, other: Operand) -> Self: """bitwise_left_shift() in place."""
    def __imod__(self, other: Operand) -> Self: """remainder() in place."""
    def __imul__(self, other: Operand) -> Self: """mul() in place."""
    def __invert__(input) -> Tensor: """Each bit inverted; for bool, logical not."""
    def __ior__(self, other: Operand) -> Self: """bitwise_or() in place."""
    def __ipow__(self, other: Operand) -> Self: ...
    def __irshift__(self, other: Operand) -> Self: """bitwise_right_shift() in place."""
    def __isub__(self, other: Operand) -> Self: """sub() in place."""
    def __itruediv__(self, other: Operand) -> Self: """div() in place."""
    def __ixor__(self, other: Operand) -> Self: """bitwise_xor() in place."""
    def __le__(input, other: Operand) -> Tensor: """Where a <= b."""
    def __lshift__(input, other: Operand) -> Tensor: """a * 2**b modulo the size of the integer; 0 where b < 0."""
    def __lt__(input, other: Operand) -> Tensor: """Where a < b."""
    def __matmul__(self, other: Operand) -> Tensor: ...
    def __mod__(input, other: Operand) -> Tensor: """a - b * floor(a / b): the sign of b. An integer divisor 0 raises."""
    def __mul__(input, other: Operand) -> Tensor: """a * b."""
    def __ne__(input, other: Any) -> Tensor: """Where a != b."""  # type: ignore[override]
    def __neg__(input) -> Tensor: """-x. Not for bool."""
    def __or__(input, other: Operand) -> Tensor: """a | b, for integers and bool."""
    def __pos__(input) -> Tensor: """input itself. Not for bool."""
    def __pow__(self, other: Operand) -> Tensor: ...
    def __radd__(self, other: Operand) -> Tensor: ...
    def __rand__(self, other: Operand) -> Tensor: ...
    def __rfloordiv__(self, other: Operand) -> Tensor: ...
    def __rlshift__(self, other: Operand) -> Tensor: ...
    def __rmatmul__(self, other: Operand) -> Tensor: ...
    def __rmod__(self, other: Operand) -> Tensor: ...
    def __rmul__(self, other: Operand) -> Tensor: ...
    def __ror__(self, other: Operand) -> Tensor: ...
    def __rpow__(self, other: Operand) -> Tensor: ...
    def __rrshift__(self, other: Operand) -> Tensor: ...
    def __rshift__(input, other: Operand) -> Tensor: """a / 2**b rounded down; for b < 0 its sign: 0 or -1."""
    def __rsub__(self, other: Operand) -> Tensor: ...
    def __rtruediv__(self, other: Operand) -> Tensor: ...
    def __rxor__(self, other: Operand) -> Tensor: ...
    def __setitem__(x, index: Index, value: Operand) -> None: """x[index] = value: value is broadcast and cast."""
    def __sub__(input, other: Operand) -> Tensor: ...
    def __truediv__(input, other: Operand) -> Tensor: """a / b as floats."""
    def __xor__(input, other: Operand) -> Tensor: """a ^ b, for integers and bool."""
    def abs(input) -> Tensor: """|x|."""
    def abs_(self) -> Self: """abs() in place."""
    def absolute(input) -> Tensor: """|x|."""
    def absolute_(self) -> Self: """abs() in place."""
    def acos(input) -> Tensor: """Arc cosine in radians; NaN outside [-1, 1]."""
    def acos_(self) -> Self: """acos() in place."""
    def acosh(input) -> Tensor: """Inverse hyperbolic cosine; NaN below 1."""
    def acosh_(self) -> Self: """acosh() in place."""
    def add(input, other: Operand, second: Any = ..., *, alpha: Any = ...) -> Tensor: """input + alpha * other; add(input, alpha, other) is the older way to say it."""
    def add_(self, other: Operand, second: Any = ..., *, alpha: Any = ...) -> Self: """add() in place."""
    def addbmm(input, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor: """beta * input + alpha * the sum of the products of all pairs of matrices, as addmm()."""
    def addbmm_(input, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Self: """addbmm() in place."""
    def addcdiv(input, tensor1: Tensor, tensor2: Tensor, third: Any = ..., *, value: Any = ...) -> Tensor: """input + value * tensor1 / tensor2, floats; addcdiv(input, value, tensor1, tensor2) is the older way to say it."""
    def addcdiv_(input, tensor1: Tensor, tensor2: Tensor, third: Any = ..., *, value: Any = ...) -> Self: """addcdiv() in place."""
    def addcmul(input, tensor1: Tensor, tensor2: Tensor, third: Any = ..., *, value: Any = ...) -> Tensor: """input + value * tensor1 * tensor2; addcmul(input, value, tensor1, tensor2) is the older way to say it."""
    def addcmul_(input, tensor1: Tensor, tensor2: Tensor, third: Any = ..., *, value: Any = ...) -> Self: """addcmul() in place."""
    def addmm(input, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor: """beta * input + alpha * (mat1 @ mat2); input broadcasts to the product, and is not read when beta is 0."""
    def addmm_(input, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Self: """addmm() in place."""
    def addmv(input, mat: Tensor, vec: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor: """beta * input + alpha * (mat @ vec), as addmm()."""
    def addmv_(input, mat: Tensor, vec: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Self: """addmv() in place."""
    def addr(input, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor: """beta * input + alpha * outer(vec1, vec2), as addmm(); dtypes are promoted."""
    def addr_(input, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Self: """addr() in place."""
    def adjoint(input) -> Tensor: """The conjugate transpose of the last two axes, as mH; a view as mT where the numbers are real."""
    def all(input, dim: Dims = ..., keepdim: builtins.bool = ...) -> Tensor: """Whether every element is non-zero, over all or the axes dim. uint8 gives uint8."""
    def allclose(input, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> builtins.bool: """Whether all of isclose."""
    def amax(input, dim: Dims = ..., keepdim: builtins.bool = ...) -> Tensor: """The largest element, over all or the axes dim; NaN wins. Equal ones share the gradient (NaN beside a NaN)."""
    def amin(input, dim: Dims = ..., keepdim: builtins.bool = ...) -> Tensor: """The smallest element, over all or the axes dim; NaN wins. Equal ones share the gradient (NaN beside a NaN)."""
    def aminmax(input, *, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> aminmax_result: """(min, max): amin() and amax(), of all or over the axis dim."""
    def angle(input) -> Tensor: """The angle in radians, in (-pi, pi]: atan2 of the parts; of a real number 0 or pi, and NaN of NaN."""
    def any(input, dim: Dims = ..., keepdim: builtins.bool = ...) -> Tensor: """Whether one element is non-zero, over all or the axes dim. uint8 gives uint8."""
    def arccos(input) -> Tensor: """Arc cosine in radians; NaN outside [-1, 1]."""
    def arccos_(self) -> Self: """acos() in place."""
    def arccosh(input) -> Tensor: """Inverse hyperbolic cosine; NaN below 1."""
    def arccosh_(self) -> Self: """acosh() in place."""
    def arcsin(input) -> Tensor: """Arc sine in radians; NaN outside [-1, 1]."""
    def arcsin_(self) -> Self: """asin() in place."""
    def arcsinh(input) -> Tensor: """Inverse hyperbolic sine."""
    def arcsinh_(self) -> Self: """asinh() in place."""
    def arctan(input) -> Tensor: """Arc tangent in radians."""
    def arctan2(input, other: Operand) -> Tensor: """The angle of the point (b, a) in radians, in (-pi, pi]."""
    def arctan2_(self, other: Operand) -> Self: """atan2() in place."""
    def arctan_(self) -> Self: """atan() in place."""
    def arctanh(input) -> Tensor: """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
    def arctanh_(self) -> Self: """atanh() in place."""
    def argmax(input, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor: """The index (int64) of the largest element along dim, or in the flattened tensor; the first of equals."""
    def argmin(input, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor: """The index (int64) of the smallest element along dim, or in the flattened tensor; the first of equals."""
    def argsort(input, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool = ...) -> Tensor: """The indices of sort()."""
    def argwhere(input) -> Tensor: """The indices of all elements that are not 0, a row each."""
    def as_strided(input, size: Any, stride: Any, storage_offset: builtins.int | None = ...) -> Tensor: """The storage of input in any shape and strides (in elements), which must stay inside it; ArgumentError otherwise."""
    def as_strided_(input, size: Any, stride: Any, storage_offset: builtins.int | None = ...) -> Self: """as_strided() in place: this tensor itself gets the shape. Views of it keep theirs."""
    def as_strided_scatter(input, src: Tensor, size: Any, stride: Any, storage_offset: builtins.int | None = ...) -> Tensor: """A copy of input whose elements that as_strided(size, stride, storage_offset) would show are those of src."""
    def asin(input) -> Tensor: """Arc sine in radians; NaN outside [-1, 1]."""
    def asin_(self) -> Self: """asin() in place."""
    def asinh(input) -> Tensor: """Inverse hyperbolic sine."""
    def asinh_(self) -> Self: """asinh() in place."""
    def atan(input) -> Tensor: """Arc tangent in radians."""
    def atan2(input, other: Operand) -> Tensor: """The angle of the point (b, a) in radians, in (-pi, pi]."""
    def atan2_(self, other: Operand) -> Self: """atan2() in place."""
    def atan_(self) -> Self: """atan() in place."""
    def atanh(input) -> Tensor: """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
    def atanh_(self) -> Self: """atanh() in place."""
    def baddbmm(input, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Tensor: """beta * input + alpha * (batch1 @ batch2) for batches of matrices, as addmm()."""
    def baddbmm_(input, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = ..., alpha: builtins.float = ...) -> Self: """baddbmm() in place."""
    def bernoulli(input, p: builtins.float | None = ..., *, generator: Generator | None = ...) -> Tensor: """Draws 1 with the probability in each element of input, or with probability p in the shape of input; else 0."""
    def bernoulli_(self, p: Operand = ..., *, generator: Generator | None = ...) -> Self: """Fills with 1 with probability p (a number, or a tensor that broadcasts), else 0."""
    def bfloat16(self, memory_format: Any = ...) -> Tensor: """In dtype bfloat16."""
    def bincount(input, weights: Tensor | None = ..., minlength: builtins.int = ...) -> Tensor: """How often each number 0, 1, ... occurs in input (1-d, integers, none negative): (n,), n at least minlength."""
    def bitwise_and(input, other: Operand) -> Tensor: """a & b, for integers and bool."""
    def bitwise_and_(self, other: Operand) -> Self: """bitwise_and() in place."""
    def bitwise_left_shift(input, other: Operand) -> Tensor: """a * 2**b modulo the size of the integer; 0 where b < 0."""
    def bitwise_left_shift_(self, other: Operand) -> Self: """bitwise_left_shift() in place."""
    def bitwise_not(input) -> Tensor: """Each bit inverted; for bool, logical not."""
    def bitwise_not_(self) -> Self: """bitwise_not() in place."""
    def bitwise_or(input, other: Operand) -> Tensor: """a | b, for integers and bool."""
    def bitwise_or_(self, other: Operand) -> Self: """bitwise_or() in place."""
    def bitwise_right_shift(input, other: Operand) -> Tensor: """a / 2**b rounded down; for b < 0 its sign: 0 or -1."""
    def bitwise_right_shift_(self, other: Operand) -> Self: """bitwise_right_shift() in place."""
    def bitwise_xor(input, other: Operand) -> Tensor: """a ^ b, for integers and bool."""
    def bitwise_xor_(self, other: Operand) -> Self: """bitwise_xor() in place."""
    def bmm(input, mat2: Tensor) -> Tensor: """Products of matrices pair by pair, (B, M, K) and (B, K, N)."""
    def bool(self, memory_format: Any = ...) -> Tensor: """In dtype bool."""
    def broadcast_to(input, size: Any) -> Tensor: """input.expand(size)."""
    def byte(self, memory_format: Any = ...) -> Tensor: """In dtype uint8."""
    def cauchy_(self, median: builtins.float = ..., sigma: builtins.float = ..., *, generator: Generator | None = ...) -> Tensor: """Fills with numbers drawn from a Cauchy distribution."""
    def ceil(input) -> Tensor: """The smallest integer not below x."""
    def ceil_(self) -> Self: """ceil() in place."""
    def char(self, memory_format: Any = ...) -> Tensor: """In dtype int8."""
    def cholesky(input, upper: builtins.bool = ...) -> Tensor: """linalg.cholesky() of symmetric positive definite matrices (..., N, N)."""
    def cholesky_inverse(L, upper: builtins.bool = ...) -> Tensor: """The inverse of A = L L^T, or of L^T L with upper, given L (..., N, N)."""
    def cholesky_solve(B, L: Tensor, upper: builtins.bool = ...) -> Tensor: """X of A X = B, B (..., N, K), given L, (..., N, N), with A = L L^T, or A = L^T L with upper."""
    def chunk(input, chunks: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]: """Views of at most chunks parts along dim, all of one size but the last."""
    def clamp(input, min: Operand | None = ..., max: Operand | None = ...) -> Tensor: """input held between min and max (numbers or tensors); NaN stays. With min above max, max."""
    def clamp_(self, min: Operand | None = ..., max: Operand | None = ...) -> Self: """clamp() in place."""
    def clamp_max(input, max: Any) -> Tensor: """input, at most max (a number or a tensor); NaN stays."""
    def clamp_max_(self, max: Operand) -> Self: """clamp_max() in place."""
    def clamp_min(input, min: Any) -> Tensor: """input, at least min (a number or a tensor); NaN stays."""
    def clamp_min_(self, min: Operand) -> Self: """clamp_min() in place."""
    def clip(input, min: Operand | None = ..., max: Operand | None = ...) -> Tensor: """input held between min and max (numbers or tensors); NaN stays. With min above max, max."""
    def clip_(self, min: Operand | None = ..., max: Operand | None = ...) -> Self: """clamp() in place."""
    def clone(input, *, memory_format: Any = ...) -> Tensor: """A copy, C-ordered; the gradient passes through."""
    def conj(input) -> Tensor: """The complex conjugates, a new tensor; a real tensor itself."""
    def conj_physical(input) -> Tensor: """conj(), which computes at once."""
    def conj_physical_(input) -> Self: """conj_physical() in place."""
    def contiguous(x, memory_format: Any = ...) -> Tensor: """x itself when its elements lie in C order, else a clone."""
    def copy_(x, src: Operand, non_blocking: builtins.bool = ...) -> Tensor: """Writes src, broadcast and cast, into x."""
    def copysign(input, other: Operand) -> Tensor: """|a| with the sign of b. Integers become floats."""
    def copysign_(self, other: Operand) -> Self: """copysign() in place."""
    def corrcoef(input) -> Tensor: """The correlations of variables, one a row: cov() over the product of their standard deviations, within [-1, 1]."""
    def cos(input) -> Tensor: """Cosine of x radians. Integers become floats."""
    def cos_(self) -> Self: """cos() in place."""
    def cosh(input) -> Tensor: """Hyperbolic cosine."""
    def cosh_(self) -> Self: """cosh() in place."""
    def count_nonzero(input, dim: Dims = ...) -> Tensor: """How many elements are not 0 (int64), of all or over the axes dim."""
    def cov(input, *, correction: builtins.float = ..., fweights: Tensor | None = ..., aweights: Tensor | None = ...) -> Tensor: """The covariances of variables, one a row of input (a vector is one variable), over observations, one a column."""
    def cpu(self, memory_format: Any = ...) -> Tensor: """On the CPU; itself if it is there."""
    def cross(input, other: Tensor, dim: builtins.int | None = ...) -> Tensor: """The cross product of vectors of three elements along dim (default: the first axis of size 3)."""
    def cuda(self, device: DeviceLike = ..., non_blocking: builtins.bool = ..., memory_format: Any = ...) -> Tensor: """On a CUDA device, the current one unless another is named; itself if it is there. See to()."""
    def cummax(input, dim: builtins.int) -> cummax_result: """The largest element so far along dim, and its index (the last of equals): (values, indices). NaN wins."""
    def cummin(input, dim: builtins.int) -> cummin_result: """The smallest element so far along dim, and its index (the last of equals): (values, indices). NaN wins."""
    def cumprod(input, dim: builtins.int, *, dtype: _dtype | None = ...) -> Tensor: """The products of all elements up to each along dim. Integers and bool multiply in int64, or in dtype."""
    def cumprod_(self, dim: builtins.int, *, dtype: _dtype | None = ...) -> Self: """cumprod() in place."""
    def cumsum(input, dim: builtins.int, *, dtype: _dtype | None = ...) -> Tensor: """The sums of all elements up to each along dim. Integers and bool add up in int64, or in dtype."""
    def cumsum_(self, dim: builtins.int, *, dtype: _dtype | None = ...) -> Self: """cumsum() in place."""
    def deg2rad(input) -> Tensor: """Degrees as radians. Integers become floats."""
    def deg2rad_(input) -> Self: """deg2rad() in place."""
    def det(A) -> Tensor: """The determinants (...) of A (..., N, N); with a derivative for singular matrices too."""
    def diag(input, diagonal: builtins.int = ...) -> Tensor: """Of a vector, the matrix with it on a diagonal; of a matrix, a copy of a diagonal."""
    def diag_embed(input, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor: """Matrices, in the axes dim1 and dim2, whose diagonals are the last axis; zeros elsewhere."""
    def diagflat(input, offset: builtins.int = ...) -> Tensor: """The matrix with all elements on a diagonal."""
    def diagonal(input, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor: """The diagonal of two axes, as the last axis; offset above it (or, negative, below)."""
    def diagonal_scatter(input, src: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor: """A copy of input whose diagonal is src."""
    def diff(input, n: builtins.int = ..., dim: builtins.int = ..., prepend: Tensor | None = ..., append: Tensor | None = ...) -> Tensor: """Each element less the one before it along dim, n times over; for bool, whether they differ."""
    def digamma(input) -> Tensor: """Derivative of lgamma; NaN at negative integers."""
    def digamma_(self) -> Self: """digamma() in place."""
    def dist(input, other: Tensor, p: builtins.float = ...) -> Tensor: """The p-norm of input - other, a number: sum(|input - other|**p)**(1/p). Floats only."""
    def div(input, other: Operand, *, rounding_mode: str | None = ...) -> Tensor: """input / other as floats; with rounding_mode "floor" or "trunc" rounded, integers staying integers."""
    def div_(self, other: Operand, *, rounding_mode: str | None = ...) -> Self: """div() in place."""
    def divide(input, other: Operand, *, rounding_mode: str | None = ...) -> Tensor: """input / other as floats; with rounding_mode "floor" or "trunc" rounded, integers staying integers."""
    def divide_(self, other: Operand, *, rounding_mode: str | None = ...) -> Self: """div() in place."""
    def dot(input, tensor: Tensor) -> Tensor: """The sum of products of two vectors of one size."""
    def double(self, memory_format: Any = ...) -> Tensor: """In dtype float64."""
    def dsplit(input, indices_or_sections: Any = ..., *, indices: Any = ..., sections: builtins.int | None = ...) -> tuple[Tensor, ...]: """Views of parts along the third axis, into equal sections or cut before indices."""
    def eq(input, other: Operand) -> Tensor: """Where a == b."""
    def eq_(self, other: Operand) -> Self: """eq() in place."""
    def equal(input, other: Tensor) -> builtins.bool: """Whether both have one shape and the same elements; NaN equals nothing."""
    def erf(input) -> Tensor: """Error function: 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x."""
    def erf_(self) -> Self: """erf() in place."""
    def erfc(input) -> Tensor: """1 - erf(x)."""
    def erfc_(self) -> Self: """erfc() in place."""
    def erfinv(input) -> Tensor: """The number whose erf is x; infinite at -1 and 1, NaN beyond."""
    def erfinv_(self) -> Self: """erfinv() in place."""
    def exp(input) -> Tensor: """e**x. Integers become floats."""
    def exp2(input) -> Tensor: """2**x. Integers become floats."""
    def exp2_(self) -> Self: """exp2() in place."""
    def exp_(self) -> Self: """exp() in place."""
    def expand(x, *shape: Any, size: Any = ...) -> Tensor: """Sizes of 1 (and new leading axes) broadcast to shape, by stride 0; -1 keeps a size."""
    def expand_as(x, other: Tensor) -> Tensor: """x broadcast to the shape of other."""
    def expm1(input) -> Tensor: """e**x - 1, exact near 0. Integers become floats."""
    def expm1_(self) -> Self: """expm1() in place."""
    def exponential_(self, lambd: builtins.float = ..., *, generator: Generator | None = ...) -> Tensor: """Fills with numbers of density lambd * exp(-lambd * x)."""
    def fill_(x, value: Any) -> Tensor: """Sets every element of x to value, a number or a 0-d tensor."""
    def fill_diagonal_(x, fill_value: Any, wrap: builtins.bool = ...) -> Tensor: """Writes a number to the elements whose indices are all equal; wrap: the diagonal of a tall matrix starts again."""
    def fix(input) -> Tensor: """x without its fraction."""
    def fix_(self) -> Self: """trunc() in place."""
    def flatten(input, start_dim: builtins.int = ..., end_dim: builtins.int = ...) -> Tensor: """The axes from start_dim to end_dim as one."""
    def flip(input, *dims_: Any, dims: Any = ...) -> Tensor: """A copy with the order along these axes reversed; x[::-1] is the view."""
    def fliplr(input) -> Tensor: """flip(input, 1)."""
    def flipud(input) -> Tensor: """flip(input, 0)."""
    def float(self, memory_format: Any = ...) -> Tensor: """In dtype float32."""
    def float_power(input, exponent: Operand) -> Tensor: """input ** exponent in float64, or complex128."""
    def float_power_(self, exponent: builtins.float) -> Self: """float_power() in place, for float64 and complex128 only."""
    def floor(input) -> Tensor: """The largest integer not above x."""
    def floor_(self) -> Self: """floor() in place."""
    def floor_divide(input, other: Operand) -> Tensor: """a / b rounded down. Integer division by 0 raises ZeroDivisionError."""
    def floor_divide_(self, other: Operand) -> Self: """floor_divide() in place."""
    def fmax(input, other: Operand) -> Tensor: """The larger of a and b; NaN loses. Of equal ones a has the gradient."""
    def fmin(input, other: Operand) -> Tensor: """The smaller of a and b; NaN loses. Of equal ones a has the gradient."""
    def fmod(input, other: Operand) -> Tensor: """a - b * trunc(a / b): the sign of a. An integer divisor 0 raises."""
    def fmod_(self, other: Operand) -> Self: """fmod() in place."""
    def frac(input) -> Tensor: """input - trunc(input). Floats only."""
    def frac_(input) -> Self: """frac() in place."""
    def frexp(input) -> frexp_result: """(mantissa, exponent), input = mantissa * 2**exponent and 0.5 <= |mantissa| < 1; 0, inf and NaN stay. Floats only."""
    def gather(input, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = ...) -> Tensor: """out[i][j] = x[index[i][j]][j] for dim 0, and so on; the shape of index (integers)."""
    def gcd(input, other: Any) -> Any: """The greatest common divisors of integers, not negative; gcd(0, 0) is 0. By Euclid's algorithm."""
    def gcd_(input, other: Any) -> Self: """gcd() in place."""
    def ge(input, other: Operand) -> Tensor: """Where a >= b."""
    def ge_(self, other: Operand) -> Self: """ge() in place."""
    def geometric_(self, p: builtins.float, *, generator: Generator | None = ...) -> Tensor: """Fills with the number of trials up to the first success, each of which has probability p."""
    def geqrf(A) -> geqrf_result: """(a, tau) of the QR decomposition of A (..., M, N): a (..., M, N) holds R in its upper triangle and below it the reflections whose product is Q, tau (..., K) their factors, K = min(M, N). householder_product() and ormqr() take them. It has no derivative; linalg.qr() has one."""
    def ger(input, vec2: Tensor) -> Tensor: """out[i][j] = input[i] * vec2[j] for two vectors."""
    def greater(input, other: Operand) -> Tensor: """Where a > b."""
    def greater_(self, other: Operand) -> Self: """gt() in place."""
    def greater_equal(input, other: Operand) -> Tensor: """Where a >= b."""
    def greater_equal_(self, other: Operand) -> Self: """ge() in place."""
    def gt(input, other: Operand) -> Tensor: """Where a > b."""
    def gt_(self, other: Operand) -> Self: """gt() in place."""
    def half(self, memory_format: Any = ...) -> Tensor: """In dtype float16."""
    def hardshrink(input, lambd: builtins.float = ...) -> Tensor: """input, but 0 where |input| <= lambd. Floats only."""
    def heaviside(input, values: Any) -> Any: """0 where input is negative, 1 where it is positive, and values where it is 0 (as in PyTorch 0 for NaN)."""
    def heaviside_(input, values: Any) -> Self: """heaviside() in place."""
    def histc(input, bins: builtins.int = ..., min: builtins.float = ..., max: builtins.float = ...) -> Any: """How many elements lie in each of `bins` equal parts of [min, max], in the dtype of input, a float."""
    def histogram(input, bins: Any, *, range: Any = ..., weight: Any = ..., density: builtins.bool = ...) -> Any: """(hist, bin_edges): the sums of the weights (None: 1) of the elements in each bin, and the edges of the bins."""
    def hsplit(input, indices_or_sections: Any = ..., *, indices: Any = ..., sections: builtins.int | None = ...) -> tuple[Tensor, ...]: """Views of parts along the second axis (the first of a vector), into equal sections or cut before indices."""
    def hypot(input, other: Operand) -> Tensor: """sqrt(a * a + b * b), without overflow on the way. Floats only."""
    def hypot_(self, other: Operand) -> Self: """hypot() in place."""
    @property
    def imag(self) -> Tensor: ...
    def index_add(input, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Any = ...) -> Tensor: """A copy of x to whose parts at the given indices (1-d) of an axis alpha times those of source are added."""
    def index_add_(x, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Any = ...) -> Self: """index_add() in place."""
    def index_copy(input, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor: """A copy of x whose parts at the given indices (1-d) of an axis are source's."""
    def index_copy_(x, dim: builtins.int, index: Tensor, source: Tensor) -> Self: """index_copy() in place."""
    def index_fill(input, dim: builtins.int, index: Tensor, value: Operand) -> Tensor: """A copy of x whose parts at the given indices (1-d) of an axis are value, a number or a 0-d tensor."""
    def index_fill_(x, dim: builtins.int, index: Tensor, value: Any) -> Self: """index_fill() in place."""
    def index_put(input, indices: Any, values: Tensor, accumulate: builtins.bool = ...) -> Tensor: """index_put_() into a copy."""
    def index_put_(x, indices: Any, values: Tensor, accumulate: builtins.bool = ...) -> Self: """x[indices] = values, or += with accumulate (equal indices then add up); indices: a tuple of tensors or None."""
    def index_reduce(input, dim: builtins.int, index: Tensor, source: Tensor, reduce: str, *, include_self: builtins.bool = ...) -> Tensor: """A copy of x into whose parts at the given indices (1-d) of an axis those of source are reduced: by "prod", "mean", "amax" or "amin", together with what is there, or without it."""
    def index_reduce_(input, dim: builtins.int, index: Tensor, source: Tensor, reduce: str, *, include_self: builtins.bool = ...) -> Self: """index_reduce() in place."""
    def index_select(input, dim: builtins.int, index: Tensor) -> Tensor: """The parts of x at the given indices (1-d) of an axis, in their order."""
    def inner(input, other: Tensor) -> Tensor: """The sum of products over the last axis of both; with a number, or a tensor of no axis, the product."""
    def int(self, memory_format: Any = ...) -> Tensor: """In dtype int32."""
    def inverse(A) -> Tensor: """The inverses (..., N, N) of A (..., N, N). LinAlgError for singular ones. solve(A, B) is faster than inv(A) @ B, and more accurate."""
    def is_complex(input) -> builtins.bool: """Whether the dtype of a tensor is complex."""
    def is_conj(self) -> builtins.bool: """False, as for every tensor here: conj() computes the conjugate at once."""
    def is_inference(self) -> builtins.bool: """False, as for every tensor here: conj() computes the conjugate at once."""
    is_ipu: builtins.bool
    is_maia: builtins.bool
    is_meta: builtins.bool
    is_mkldnn: builtins.bool
    is_mps: builtins.bool
    is_mtia: builtins.bool
    def is_neg(self) -> builtins.bool: """False, as for every tensor here: conj() computes the conjugate at once."""
    is_nested: builtins.bool
    def is_pinned(self, device: DeviceLike = ...) -> builtins.bool: """Whether its memory is that of pin_memory()."""
    is_quantized: builtins.bool
    def is_same_size(input, other: Tensor) -> builtins.bool: """Whether two tensors have one shape."""
    def is_signed(input) -> builtins.bool: """Whether the dtype has negative numbers."""
    is_sparse: builtins.bool
    is_sparse_csr: builtins.bool
    is_vulkan: builtins.bool
    is_xla: builtins.bool
    is_xpu: builtins.bool
    def isclose(input, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> Tensor: """Where |input - other| <= atol + rtol * |other|."""
    def isfinite(input) -> Tensor: """Where x is neither infinite nor NaN."""
    def isinf(input) -> Tensor: """Where x is infinite."""
    def isnan(input) -> Tensor: """Where x is NaN."""
    def isneginf(input) -> Tensor: """Where input is -inf."""
    def isposinf(input) -> Tensor: """Where input is +inf."""
    def isreal(input) -> Tensor: """Where the imaginary part is 0: everywhere in a real tensor."""
    def kron(input, other: Tensor) -> Tensor: """The Kronecker product: every element of input times all of other, block by block along each axis."""
    def kthvalue(input, k: builtins.int, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> kthvalue_result: """The k-th smallest element along dim, the first for k = 1, and its index: (values, indices). NaN is the largest."""
    def lcm(input, other: Any) -> Any: """The least common multiples of integers, not negative; 0 where one of both is 0."""
    def lcm_(input, other: Any) -> Self: """lcm() in place."""
    def ldexp(input, other: Operand) -> Tensor: """input * 2**other, as floats: of input's dtype, where other is of integers."""
    def ldexp_(input, other: Operand) -> Self: """ldexp() in place."""
    def le(input, other: Operand) -> Tensor: """Where a <= b."""
    def le_(self, other: Operand) -> Self: """le() in place."""
    def lerp(input, end: Tensor, weight: Operand) -> Tensor: """input + weight * (end - input): from input, at weight 0, to end, at weight 1. Floats only."""
    def lerp_(input, end: Tensor, weight: Operand) -> Self: """lerp() in place."""
    def less(input, other: Operand) -> Tensor: """Where a < b."""
    def less_(self, other: Operand) -> Self: """lt() in place."""
    def less_equal(input, other: Operand) -> Tensor: """Where a <= b."""
    def less_equal_(self, other: Operand) -> Self: """le() in place."""
    def lgamma(input) -> Tensor: """Logarithm of the absolute value of the gamma function."""
    def lgamma_(self) -> Self: """lgamma() in place."""
    def log(input) -> Tensor: """Natural logarithm; -inf at 0, NaN below. Integers become floats."""
    def log10(input) -> Tensor: """Logarithm to base 10. Integers become floats."""
    def log10_(self) -> Self: """log10() in place."""
    def log1p(input) -> Tensor: """log(1 + x), exact near 0. Integers become floats."""
    def log1p_(self) -> Self: """log1p() in place."""
    def log2(input) -> Tensor: """Logarithm to base 2. Integers become floats."""
    def log2_(self) -> Self: """log2() in place."""
    def log_(self) -> Self: """log() in place."""
    def log_normal_(self, mean: builtins.float = ..., std: builtins.float = ..., *, generator: Generator | None = ...) -> Tensor: """Fills with numbers whose logarithms are normal, of the given mean and deviation."""
    def log_softmax(input, dim: builtins.int, dtype: _dtype | None = ...) -> Tensor: """The logarithms of probabilities that sum to 1 along dim: x - logsumexp(x), exact for large x too."""
    def logaddexp(input, other: Operand) -> Tensor: """log(e**a + e**b), without overflow. Floats only."""
    def logaddexp2(input, other: Operand) -> Tensor: """log2(2**a + 2**b), without overflow. Floats only."""
    def logcumsumexp(input, dim: builtins.int) -> Tensor: """log(cumsum(exp(x))) along dim, without overflow. Floats only."""
    def logdet(A) -> Tensor: """The logarithms of the determinants of A (..., N, N): NaN for negative ones, -inf for 0."""
    def logical_and(input, other: Operand) -> Tensor: """Where both are non-zero."""
    def logical_and_(self, other: Operand) -> Self: """logical_and() in place."""
    def logical_not(input) -> Tensor: """Where x is 0 or False."""
    def logical_not_(self) -> Self: """logical_not() in place."""
    def logical_or(input, other: Operand) -> Tensor: """Where one is non-zero."""
    def logical_or_(self, other: Operand) -> Self: """logical_or() in place."""
    def logical_xor(input, other: Operand) -> Tensor: """Where exactly one is non-zero."""
    def logical_xor_(self, other: Operand) -> Self: """logical_xor() in place."""
    def logit(input, eps: builtins.float | None = ...) -> Tensor: """log(x / (1 - x)), the inverse of sigmoid; with eps, x is first held between eps and 1 - eps."""
    def logit_(input, eps: builtins.float | None = ...) -> Self: """logit() in place."""
    def logsumexp(input, dim: Dims = ..., keepdim: builtins.bool = ...) -> Tensor: """log(sum(exp(x))) over all elements or the axes dim, without overflow. Integers become floats."""
    def long(self, memory_format: Any = ...) -> Tensor: """In dtype int64."""
    def lt(input, other: Operand) -> Tensor: """Where a < b."""
    def lt_(self, other: Operand) -> Self: """lt() in place."""
    def lu(A, pivot: builtins.bool = ..., get_infos: builtins.bool = ...) -> tuple[Tensor, ...]: """linalg.lu_factor(): (LU, pivots), and info with get_infos."""
    def lu_solve(b, LU_data: Tensor, LU_pivots: Tensor) -> Tensor: """linalg.lu_solve() with the right side first."""
    @property
    def mH(self) -> Tensor: ...
    @property
    def mT(self) -> Tensor: ...
    def masked_fill(input, mask: Tensor, value: Operand) -> Tensor: """value, a number or a 0-d tensor, where mask (bool) holds, x elsewhere; x and mask broadcast."""
    def masked_fill_(x, mask: Tensor, value: Operand) -> Self: """Sets x to value, a number or a 0-d tensor, where mask (bool, broadcast to x) holds."""
    def masked_scatter(input, mask: Tensor, source: Tensor) -> Tensor: """A copy of x (broadcast with mask) in which the first elements of source replace those where mask (bool) holds."""
    def masked_scatter_(x, mask: Tensor, source: Tensor) -> Self: """Writes the first elements of source where mask (bool, broadcast to x) holds, in order."""
    def masked_select(input, mask: Tensor) -> Tensor: """The elements of x where mask (bool) holds, in one axis; x and mask broadcast."""
    def matmul(input, other: Operand) -> Tensor: """The matrix product by NumPy's rules: vectors, matrices, and batches that broadcast."""
    def matrix_exp(A) -> Tensor: """The sums of A^k / k! over all k, for A (..., N, N)."""
    def matrix_power(input, n: builtins.int) -> Tensor: """Square matrices (..., M, M) multiplied n times by themselves; the identity for 0, powers of the inverse for negative n, LinAlgError where there is none."""
    @overload
    def max(input, dim: None = ..., keepdim: builtins.bool = ..., *, other: None = ...) -> Tensor: ...
    @overload
    def max(input, dim: builtins.int, keepdim: builtins.bool = ...) -> max_result: ...
    @overload
    def max(input, dim: Tensor) -> Tensor: ...
    @overload
    def max(input, *, other: Tensor) -> Tensor: ...
    def maximum(input, other: Operand) -> Tensor: """The larger of a and b; NaN wins. Equal ones share the gradient."""
    def mean(input, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: _dtype | None = ...) -> Tensor: """The mean over all elements, or over the axes dim. Floats only; NaN over no elements."""
    @overload
    def median(input, dim: None = ..., keepdim: builtins.bool = ...) -> Tensor: ...
    @overload
    def median(input, dim: builtins.int, keepdim: builtins.bool = ...) -> median_result: ...
    @overload
    def min(input, dim: None = ..., keepdim: builtins.bool = ..., *, other: None = ...) -> Tensor: ...
    @overload
    def min(input, dim: builtins.int, keepdim: builtins.bool = ...) -> min_result: ...
    @overload
    def min(input, dim: Tensor) -> Tensor: ...
    @overload
    def min(input, *, other: Tensor) -> Tensor: ...
    def minimum(input, other: Operand) -> Tensor: """The smaller of a and b; NaN wins. Equal ones share the gradient."""
    def mm(input, mat2: Tensor) -> Tensor: """The product of two matrices, (M, K) and (K, N)."""
    def mode(input, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> mode_result: """The most frequent element along dim (the smallest of those), and the last index of it: (values, indices)."""
    def moveaxis(input, source: Axes, destination: Axes) -> Tensor: """The axes of source at the positions of destination; the others keep their order."""
    def movedim(input, source: Axes, destination: Axes) -> Tensor: """The axes of source at the positions of destination; the others keep their order."""
    def msort(input) -> Tensor: """The values of sort() along the first axis."""
    def mul(input, other: Operand) -> Tensor: """a * b."""
    def mul_(self, other: Operand) -> Self: """mul() in place."""
    def multinomial(input, num_samples: builtins.int, replacement: builtins.bool = ..., *, generator: Generator | None = ...) -> Tensor: """Draws num_samples categories, int64, from each row of weights, which are not negative and need not sum to 1."""
    def multiply(input, other: Operand) -> Tensor: """a * b."""
    def multiply_(self, other: Operand) -> Self: """mul() in place."""
    def mv(input, vec: Tensor) -> Tensor: """A matrix (M, K) times a vector (K)."""
    def mvlgamma(input, p: builtins.int) -> Tensor: """The logarithm of the multivariate gamma function of dimension p. Integers become floats."""
    def mvlgamma_(input, p: builtins.int) -> Self: """mvlgamma() in place."""
    def nan_to_num(input, nan: builtins.float = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ...) -> Tensor: """Numbers in place of NaN and the infinities: posinf and neginf are by default the dtype's largest and smallest."""
    def nan_to_num_(input, nan: builtins.float = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ...) -> Self: """nan_to_num() in place."""
    def nanmean(input, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: _dtype | None = ...) -> Tensor: """mean() of what is not NaN; NaN where nothing is left."""
    @overload
    def nanmedian(input, dim: None = ..., keepdim: builtins.bool = ...) -> Tensor: ...
    @overload
    def nanmedian(input, dim: builtins.int, keepdim: builtins.bool = ...) -> nanmedian_result: ...
    def nanquantile(input, q: Operand, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ...) -> Tensor: """quantile() of what is not NaN."""
    def nansum(input, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: _dtype | None = ...) -> Tensor: """sum() of what is not NaN."""
    def narrow(input, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor: """length elements of an axis, from start on."""
    def ne(input, other: Operand) -> Tensor: """Where a != b."""
    def ne_(self, other: Operand) -> Self: """ne() in place."""
    def neg(input) -> Tensor: """-x. Not for bool."""
    def neg_(self) -> Self: """neg() in place."""
    def negative(input) -> Tensor: """-x. Not for bool."""
    def negative_(self) -> Self: """neg() in place."""
    def new(self, *data: Any, size: Any = ...) -> Tensor: """Tensor(*data), of sizes or values, in this dtype and on this device: the older new_tensor()."""
    def new_empty(self, *shape: Any, size: Any = ..., **more: Any) -> Tensor: """Undefined elements in the given shape, in this dtype and on this device unless given."""
    def new_empty_strided(self, size: Any, stride: Any, **more: Any) -> Tensor: """Undefined elements in the given shape and strides, in this dtype and on this device unless given."""
    def new_full(self, size: Any, fill_value: builtins.float, **more: Any) -> Tensor: """fill_value in the given shape, in this dtype and on this device unless given."""
    def new_ones(self, *shape: Any, size: Any = ..., **more: Any) -> Tensor: """Ones in the given shape, in this dtype and on this device unless given."""
    def new_tensor(self, data: Any, **more: Any) -> Tensor: """The values in data, in this dtype and on this device; see norch.tensor."""
    def new_zeros(self, *shape: Any, size: Any = ..., **more: Any) -> Tensor: """Zeros in the given shape, in this dtype and on this device unless given."""
    def nextafter(input, other: Any) -> Any: """The next number of the dtype after input in the direction of other. Floats of one dtype."""
    def nextafter_(input, other: Any) -> Self: """nextafter() in place."""
    @overload
    def nonzero(input, *, as_tuple: Literal[False] = ...) -> Tensor: ...
    @overload
    def nonzero(input, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
    def norm(input, p: Any = ..., dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: _dtype | None = ...) -> Tensor: """The p-norm of all elements, or over the axes dim, taken as one vector; "fro" is 2."""
    def normal_(self, mean: builtins.float = ..., std: builtins.float = ..., *, generator: Generator | None = ...) -> Tensor: """Fills with numbers drawn from a normal distribution."""
    def not_equal(input, other: Operand) -> Tensor: """Where a != b."""
    def not_equal_(self, other: Operand) -> Self: """ne() in place."""
    def orgqr(A, tau: Tensor) -> Tensor: """The first N columns of H_1 ... H_K, (..., M, N), for the reflections in the columns of A (..., M, N), M >= N, and their factors tau (..., K), K <= N: the Q of geqrf(). ShapeError for other shapes."""
    def ormqr(input, tau: Tensor, other: Tensor, left: builtins.bool = ..., transpose: builtins.bool = ...) -> Tensor: """Q other, or other Q without left, for other (..., M, N) and the whole square Q = H_1 ... H_K of geqrf(): input (..., M, K), (..., N, K) without left, tau (..., K). Q^H stands in place of Q with transpose."""
    def outer(input, vec2: Tensor) -> Tensor: """out[i][j] = input[i] * vec2[j] for two vectors."""
    def permute(input, *dims_: Any, dims: Any = ...) -> Tensor: """The axes in another order."""
    def pin_memory(self, device: DeviceLike = ...) -> Tensor: """A copy in page-locked memory of the host, from which to(device, non_blocking=True) copies to a CUDA device in the background. This tensor itself where it is pinned already, or where there is no CUDA device. DeviceError for a tensor that is not on the CPU."""
    def pinverse(input, rcond: builtins.float = ...) -> Tensor: """linalg.pinv() with singular values up to rcond times the largest taken as 0."""
    def polygamma(self, n: Any) -> Tensor: """The n-th derivative of digamma at self."""
    def polygamma_(self, n: builtins.int) -> Self: """polygamma() in place."""
    def positive(input) -> Tensor: """input itself. Not for bool."""
    def pow(input, exponent: Operand) -> Tensor: """input ** exponent. Integers to a negative power raise ValueError; of bools True and False are the only powers."""
    def pow_(self, exponent: Operand) -> Self: """pow() in place."""
    def prelu(input, weight: Tensor) -> Tensor: """input, times weight where it is negative: one weight, or one for each channel (dimension 1). Floats only."""
    def prod(input, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, dtype: _dtype | None = ...) -> Tensor: """The product over all elements, or over the axis dim. Integers and bool multiply in int64."""
    def put(input, index: Tensor, source: Tensor, accumulate: builtins.bool = ...) -> Tensor: """put_() into a copy."""
    def put_(x, index: Tensor, source: Tensor, accumulate: builtins.bool = ...) -> Self: """Writes source into x, as if it were flat, at the given indices; with accumulate it is added there."""
    def qr(input, some: builtins.bool = ...) -> factor.qr_result: """linalg.qr(): "reduced", or "complete" without some."""
    def quantile(input, q: Operand, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ...) -> Tensor: """The q-th quantiles (q a number or 1-d tensor in [0, 1]) of all elements or along dim; NaN where there is one."""
    def rad2deg(input) -> Tensor: """Radians as degrees. Integers become floats."""
    def rad2deg_(input) -> Self: """rad2deg() in place."""
    def random_(self, from_: builtins.int | None = ..., to: Any = ..., *, generator: Generator | None = ...) -> Tensor: """Fills with integers from [from_, to), or from [0, from_) without to. The upper bound None, which is the default, stands for the largest integer up to which the dtype holds all integers."""
    def ravel(input) -> Tensor: """All elements in one axis: a view of a contiguous tensor, else a copy."""
    @property
    def real(self) -> Tensor: ...
    def reciprocal(input) -> Tensor: """1 / x. Integers become floats."""
    def reciprocal_(self) -> Self: """reciprocal() in place."""
    def record_stream(self, s: Any) -> None: """Says that the stream s (norch.cuda.Stream) uses this tensor, which was made in another: once it is freed, its memory is not used anew before what s has been given until then is done. DeviceError on the CPU."""
    def relu(input) -> Tensor: """The larger of x and 0; NaN stays."""
    def relu_(self) -> Self: """relu() in place."""
    def remainder(input, other: Operand) -> Tensor: """a - b * floor(a / b): the sign of b. An integer divisor 0 raises."""
    def remainder_(self, other: Operand) -> Self: """remainder() in place."""
    def renorm(input, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor: """input with its parts along dim, whose p-norm is more than maxnorm, scaled down to that. p is positive."""
    def renorm_(input, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Self: """renorm() in place."""
    def repeat(input, *repeats_: Any, repeats: Any = ...) -> Tensor: """A copy made of so many copies along each axis; more numbers than axes put new ones in front."""
    def repeat_interleave(input, repeats: Operand | None = ..., dim: builtins.int | None = ..., *, output_size: builtins.int | None = ...) -> Tensor: """Each element along dim (of all, without dim) so many times in a row; repeats: one number, or one for each."""
    def reshape(input, *sizes_: Any, shape: Any = ...) -> Tensor: """input in another shape of as many elements, one size may be -1: a view where the strides allow, else a copy."""
    def reshape_as(self, other: Tensor) -> Tensor: """reshape(other.shape)."""
    def resolve_conj(self) -> Tensor: """The tensor itself, as no conjugate waits to be computed."""
    def resolve_neg(self) -> Tensor: """The tensor itself, as no conjugate waits to be computed."""
    @property
    def retains_grad(self) -> builtins.bool: ...
    def roll(input, shifts: Axes, dims: Axes = ...) -> Tensor: """A copy whose elements moved on by shifts along dims, those from the end to the front; over all without dims."""
    def rot90(input, k: builtins.int = ..., dims: Sequence[builtins.int] = ...) -> Tensor: """A copy rotated k times by 90 degrees in the plane of two axes, from the first towards the second."""
    def round(input, *, decimals: builtins.int = ...) -> Tensor: """The nearest number with so many decimals (negative ones: tens, hundreds ...), halves to the even one."""
    def round_(input, *, decimals: builtins.int = ...) -> Self: """round() in place."""
    def rsqrt(input) -> Tensor: """1 / sqrt(x). Integers become floats."""
    def rsqrt_(self) -> Self: """rsqrt() in place."""
    def scatter(input, dim: builtins.int, index: Tensor, src: Operand | None = ..., *, value: Any = ..., reduce: str | None = ...) -> Tensor: """A copy of x with out[index[i][j]][j] = src[i][j] for dim 0, and so on; the last of several stays."""
    def scatter_(x, dim: builtins.int, index: Tensor, src: Operand | None = ..., *, value: Any = ..., reduce: str | None = ...) -> Self: """scatter() in place."""
    def scatter_add(input, dim: builtins.int, index: Tensor, src: Operand) -> Tensor: """A copy of x with out[index[i][j]][j] += src[i][j] for dim 0, and so on."""
    def scatter_add_(x, dim: builtins.int, index: Tensor, src: Tensor) -> Self: """scatter_add() in place."""
    def scatter_reduce(input, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = ...) -> Tensor: """A copy of x into which src[i][j] is reduced at index[i][j] of dim 0, and so on: by "sum", "prod", "mean", "amax" or "amin", together with what is there or, without include_self, instead of it."""
    def scatter_reduce_(input, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = ...) -> Self: """scatter_reduce() in place."""
    def select(input, dim: builtins.int, index: builtins.int) -> Tensor: """The part at one index of an axis, without that axis; IndexError when out of range."""
    def select_scatter(input, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor: """A copy of input whose part select(dim, index) is src."""
    def sgn(input) -> Tensor: """-1, 0 or 1 as sign(); of complex numbers x / |x|, 0 at 0."""
    def sgn_(input) -> Self: """sgn() in place."""
    def short(self, memory_format: Any = ...) -> Tensor: """In dtype int16."""
    def sigmoid(input) -> Tensor: """1 / (1 + e**-x). Integers become floats."""
    def sigmoid_(self) -> Self: """sigmoid() in place."""
    def sign(input) -> Tensor: """-1, 0 or 1; 0 for NaN."""
    def sign_(self) -> Self: """sign() in place."""
    def signbit(input) -> Tensor: """Where the sign is a minus, that of -0.0 too."""
    def sin(input) -> Tensor: """Sine of x radians. Integers become floats."""
    def sin_(self) -> Self: """sin() in place."""
    def sinc(input) -> Tensor: """sin(pi x) / (pi x), 1 at 0."""
    def sinc_(self) -> Self: """sinc() in place."""
    def sinh(input) -> Tensor: """Hyperbolic sine."""
    def sinh_(self) -> Self: """sinh() in place."""
    def slice_scatter(input, src: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ...) -> Tensor: """A copy of input whose part start:end:step along dim is src."""
    def slogdet(A) -> slogdet_result: """(sign, logabsdet) of the determinants of A (..., N, N): det = sign * exp(logabsdet), without overflow. A singular matrix has 0 and -inf. Of a complex matrix the sign is a number of absolute value 1."""
    def softmax(input, dim: builtins.int, dtype: _dtype | None = ...) -> Tensor: """exp(x) over its sum along dim: probabilities that sum to 1, stable for large x. Integers become floats."""
    def sort(input, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool | None = ...) -> sort_result: """(values, indices) along dim in ascending or descending order; equal ones keep theirs, NaN is the greatest."""
    def split(tensor, split_size_or_sections: Any = ..., dim: builtins.int = ..., *, split_size: Any = ...) -> tuple[Tensor, ...]: """Views of parts of one size along dim (the last may be smaller), or of each of the given sizes."""
    def split_with_sizes(input, split_sizes: Sequence[builtins.int], dim: builtins.int = ...) -> tuple[Tensor, ...]: """Views of parts of the given sizes along dim; the sizes must add up to its own."""
    def sqrt(input) -> Tensor: """Square root; NaN below 0. Integers become floats."""
    def sqrt_(self) -> Self: """sqrt() in place."""
    def square(input) -> Tensor: """x * x."""
    def square_(self) -> Self: """square() in place."""
    def squeeze(input, dim: Any = ...) -> Tensor: """Without the axes of size 1: all of them, or those of dim that are."""
    def squeeze_(input, dim: Any = ...) -> Self: """squeeze() in place: this tensor itself gets the shape. Views of it keep theirs."""
    def std(input, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Tensor: """The standard deviation: the square root of var()."""
    def sub(input, other: Operand, second: Any = ..., *, alpha: Any = ...) -> Tensor: """input - alpha * other; sub(input, alpha, other) is the older way to say it."""
    def sub_(self, other: Operand, second: Any = ..., *, alpha: Any = ...) -> Self: """sub() in place."""
    def subtract(input, other: Operand, second: Any = ..., *, alpha: Any = ...) -> Tensor: """input - alpha * other; sub(input, alpha, other) is the older way to say it."""
    def subtract_(self, other: Operand, second: Any = ..., *, alpha: Any = ...) -> Self: """sub() in place."""
    def sum(input, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: _dtype | None = ...) -> Tensor: """The sum over all elements, or over the axes dim."""
    def sum_to_size(self, *size: Any) -> Tensor: """Summed over the axes that broadcasting from size would have added or repeated."""
    def svd(input, some: builtins.bool = ..., compute_uv: builtins.bool = ...) -> svd_result: """(U, S, V) with input = U diag(S) V^H: linalg.svd() with V in place of V^H, reduced with some. Without compute_uv U and V are zeros."""
    def swapaxes(input, axis0: builtins.int, axis1: builtins.int) -> Tensor: """transpose(input, axis0, axis1)."""
    def swapaxes_(input, axis0: builtins.int, axis1: builtins.int) -> Self: """swapaxes() in place: this tensor itself gets the shape. Views of it keep theirs."""
    def swapdims(input, dim0: Any, dim1: builtins.int | None = ...) -> Tensor: """Two axes exchanged; or, with a sequence of all axes as dim0, in another order, as NumPy has it."""
    def swapdims_(input, axis0: builtins.int, axis1: builtins.int) -> Self: """swapaxes() in place: this tensor itself gets the shape. Views of it keep theirs."""
    def t(input) -> Tensor: """A matrix transposed; vectors and numbers as they are."""
    def t_(input) -> Self: """t() in place: this tensor itself gets the shape. Views of it keep theirs."""
    def take(input, index: Tensor) -> Tensor: """The elements of x, as if it were flat, at the given indices; the shape of index."""
    def take_along_dim(input, indices: Tensor, dim: builtins.int | None = ...) -> Tensor: """gather() whose other axes are broadcast, and whose indices may be negative; without dim of the flattened x."""
    def tan(input) -> Tensor: """Tangent of x radians. Integers become floats."""
    def tan_(self) -> Self: """tan() in place."""
    def tanh(input) -> Tensor: """Hyperbolic tangent."""
    def tanh_(self) -> Self: """tanh() in place."""
    def tensor_split(input, indices_or_sections: Any = ..., dim: builtins.int = ..., *, indices: Any = ..., sections: Any = ...) -> tuple[Tensor, ...]: """Views of parts along dim: cut before each of the given indices, or into so many parts, the first ones longer."""
    def tile(input, *counts: Any, dims: Any = ...) -> Tensor: """repeat(), where missing numbers in front count as 1."""
    def to(x, *arguments: Any, dtype: _dtype | None = ..., device: DeviceLike = ..., copy: builtins.bool = ..., non_blocking: builtins.bool = ..., memory_format: Any = ...) -> Tensor: """x in another dtype, on another device, or like another tensor: to(norch.float64), to("cuda"), to(other)."""
    def topk(input, k: builtins.int, dim: builtins.int = ..., largest: builtins.bool = ..., sorted: builtins.bool = ...) -> topk_result: """The k largest (or smallest) elements along dim in order, and their indices: (values, indices)."""
    def trace(input) -> Tensor: """The sum over the diagonal of a matrix."""
    def transpose(input, dim0: Any, dim1: builtins.int | None = ...) -> Tensor: """Two axes exchanged; or, with a sequence of all axes as dim0, in another order, as NumPy has it."""
    def transpose_(input, dim0: Any, dim1: builtins.int | None = ...) -> Self: """transpose() in place: this tensor itself gets the shape. Views of it keep theirs."""
    def triangular_solve(b, A: Tensor, upper: builtins.bool = ..., transpose: builtins.bool = ..., unitriangular: builtins.bool = ...) -> triangular_solve_result: """(solution, A) of A X = b, or A^T X = b with transpose; linalg.solve_triangular() has the other order."""
    def tril(input, diagonal: builtins.int = ...) -> Tensor: """The lower triangle of matrices, up to a diagonal; zeros above."""
    def tril_(input, diagonal: builtins.int = ...) -> Self: """tril() in place."""
    def triu(input, diagonal: builtins.int = ...) -> Tensor: """The upper triangle of matrices, from a diagonal on; zeros below."""
    def triu_(input, diagonal: builtins.int = ...) -> Self: """triu() in place."""
    def true_divide(input, other: Operand) -> Tensor: """a / b as floats."""
    def true_divide_(self, other: Operand) -> Self: """div() in place."""
    def trunc(input) -> Tensor: """x without its fraction."""
    def trunc_(self) -> Self: """trunc() in place."""
    @overload
    def type(self, dtype: None = ..., non_blocking: builtins.bool = ...) -> str: ...
    @overload
    def type(self, dtype: _dtype | str | builtins.type[Any], non_blocking: builtins.bool = ...) -> Tensor: ...
    def type_as(self, other: Tensor) -> Tensor: """In the dtype of other."""
    def unbind(input, dim: builtins.int = ...) -> tuple[Tensor, ...]: """Views of the parts along an axis, without that axis."""
    def unflatten(input, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor: """One axis as several, of the given sizes, one of which may be -1."""
    def unfold(x, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor: """Windows of size elements along an axis, step apart, as a new last axis."""
    def uniform_(self, from_: builtins.float = ..., to: builtins.float = ..., *, generator: Generator | None = ...) -> Tensor: """Fills with numbers drawn uniformly from [from_, to)."""
    @overload
    def unique(input, sorted: builtins.bool = ..., return_inverse: Literal[False] = ..., return_counts: Literal[False] = ..., dim: builtins.int | None = ...) -> Tensor: ...
    @overload
    def unique(input, sorted: builtins.bool = ..., *, return_inverse: Literal[True], return_counts: Literal[False] = ..., dim: builtins.int | None = ...) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique(input, sorted: builtins.bool = ..., *, return_inverse: Literal[False] = ..., return_counts: Literal[True], dim: builtins.int | None = ...) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique(input, sorted: builtins.bool = ..., *, return_inverse: Literal[True], return_counts: Literal[True], dim: builtins.int | None = ...) -> tuple[Tensor, Tensor, Tensor]: ...
    @overload
    def unique(input, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any: ...
    @overload
    def unique_consecutive(input, return_inverse: Literal[False] = ..., return_counts: Literal[False] = ..., dim: builtins.int | None = ...) -> Tensor: ...
    @overload
    def unique_consecutive(input, *, return_inverse: Literal[True], return_counts: Literal[False] = ..., dim: builtins.int | None = ...) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique_consecutive(input, *, return_inverse: Literal[False] = ..., return_counts: Literal[True], dim: builtins.int | None = ...) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique_consecutive(input, *, return_inverse: Literal[True], return_counts: Literal[True], dim: builtins.int | None = ...) -> tuple[Tensor, Tensor, Tensor]: ...
    @overload
    def unique_consecutive(input, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any: ...
    def unsqueeze(input, dim: builtins.int) -> Tensor: """With a new axis of size 1 at dim."""
    def unsqueeze_(input, dim: builtins.int) -> Self: """unsqueeze() in place: this tensor itself gets the shape. Views of it keep theirs."""
    def var(input, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Tensor: """The variance over all elements, or over the axes dim: squared deviations summed, over n - correction."""
    def vdot(input, other: Tensor) -> Tensor: """dot() with input conjugated."""
    def view(x, *shape: Any, size: Any = ..., dtype: _dtype | None = ...) -> Tensor: """x in another shape of as many elements, one size may be -1; ShapeError where the strides would need a copy."""
    def view_as(self, other: Tensor) -> Tensor: """view(other.shape)."""
    def vsplit(input, indices_or_sections: Any = ..., *, indices: Any = ..., sections: builtins.int | None = ...) -> tuple[Tensor, ...]: """Views of parts along the first axis, into equal sections or cut before indices."""
    def where(self, condition: Tensor, other: Operand) -> Tensor: """self where condition holds, other elsewhere."""
    def xlogy(input, other: Operand) -> Tensor: """a * log(b), 0 where a is 0 and b no NaN. Integers become floats."""
    def xlogy_(self, other: Operand) -> Self: """xlogy() in place."""
    def zero_(x) -> Tensor: """Sets every element of x to 0."""
