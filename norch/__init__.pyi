"""Written by `make stubs` from the code; a test tells when it is old."""

import builtins
from norch import amp as amp, array_api as array_api, autograd as autograd, backends as backends, compiler as compiler, cpu as cpu, cuda as cuda, distributed as distributed, distributions as distributions, errors as errors, fft as fft, func as func, fx as fx, hub as hub, jit as jit, linalg as linalg, memory as memory, multiprocessing as multiprocessing, nn as nn, onnx as onnx, optim as optim, profiler as profiler, random as random, serialization as serialization, storage as storage, testing as testing, utils as utils
from norch._handle import Size as Size
from norch._repr import set_printoptions as set_printoptions
from norch._threads import get_num_threads as get_num_threads, set_num_threads as set_num_threads
from norch._typing import Operand
from norch.amp.autocast_mode import autocast as autocast, clear_autocast_cache as clear_autocast_cache, get_autocast_dtype as get_autocast_dtype, is_autocast_cache_enabled as is_autocast_cache_enabled, is_autocast_enabled as is_autocast_enabled, set_autocast_cache_enabled as set_autocast_cache_enabled, set_autocast_dtype as set_autocast_dtype, set_autocast_enabled as set_autocast_enabled
from norch.amp.grad_scaler import GradScaler as GradScaler
from norch.autograd.anomaly import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled, is_anomaly_enabled as is_anomaly_enabled, set_detect_anomaly as _set_detect_anomaly
from norch.autograd.grad_mode import enable_grad as enable_grad, inference_mode as inference_mode, is_grad_enabled as is_grad_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled
from norch.compat.backends import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled, get_float32_matmul_precision as get_float32_matmul_precision, set_float32_matmul_precision as set_float32_matmul_precision, use_deterministic_algorithms as use_deterministic_algorithms
from norch.compat.legacy import _TensorType
from norch.device import device as device, get_default_device as get_default_device, set_default_device as set_default_device
from norch.dtype import can_cast as can_cast, dtype as dtype, finfo as finfo, get_default_dtype as get_default_dtype, iinfo as iinfo, memory_format as memory_format, promote_types as promote_types, set_default_dtype as set_default_dtype
from norch.errors import ArgumentError as ArgumentError, BoundsError as BoundsError, CaptureError as CaptureError, DTypeError as DTypeError, DeviceError as DeviceError, DivisionError as DivisionError, Error as Error, LinAlgError as LinAlgError, OutOfMemoryError as OutOfMemoryError, ShapeError as ShapeError
from norch.func import vmap as vmap
from norch.nn.functional._activation import celu as celu, rrelu as rrelu, selu as selu
from norch.nn.functional._dropout import alpha_dropout as alpha_dropout, dropout as dropout
from norch.nn.functional._vision import channel_shuffle as channel_shuffle, pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle
from norch.ops.complex import angle as angle, complex as complex, conj as conj, conj_physical as conj_physical, imag as imag, is_complex as is_complex, polar as polar, real as real, view_as_complex as view_as_complex, view_as_real as view_as_real
from norch.ops.composed.adaptive_pool import adaptive_avg_pool1d as adaptive_avg_pool1d
from norch.ops.composed.diagonal import diag as diag, diag_embed as diag_embed, diagflat as diagflat, trace as trace, tril as tril, triu as triu
from norch.ops.composed.distance import cdist as cdist, cosine_similarity as cosine_similarity, pairwise_distance as pairwise_distance, pdist as pdist, renorm as renorm
from norch.ops.composed.einsum import einsum as einsum
from norch.ops.composed.grid import cartesian_prod as cartesian_prod, combinations as combinations, meshgrid as meshgrid, unravel_index as unravel_index, vander as vander
from norch.ops.composed.histogram import histc as histc, histogram as histogram
from norch.ops.composed.numeric import gcd as gcd, gradient as gradient, heaviside as heaviside, lcm as lcm, nextafter as nextafter
from norch.ops.composed.order import bincount as bincount, diff as diff, isin as isin, kthvalue as kthvalue, mode as mode, nanquantile as nanquantile, quantile as quantile, unique as unique, unique_consecutive as unique_consecutive
from norch.ops.composed.pad import constant_pad_nd as constant_pad_nd
from norch.ops.composed.pointwise import addcdiv as addcdiv, addcmul as addcmul, deg2rad as deg2rad, dist as dist, equal as equal, fill as fill, float_power as float_power, frac as frac, frexp as frexp, hardshrink as hardshrink, isneginf as isneginf, isposinf as isposinf, isreal as isreal, ldexp as ldexp, logit as logit, mvlgamma as mvlgamma, nan_to_num as nan_to_num, polygamma as polygamma, positive as positive, prelu as prelu, rad2deg as rad2deg, round as round, rsub as rsub, threshold as threshold
from norch.ops.composed.products import addbmm as addbmm, addmm as addmm, addmv as addmv, addr as addr, baddbmm as baddbmm, bilinear as bilinear, chain_matmul as chain_matmul, cross as cross, inner as inner, kron as kron, matrix_power as matrix_power, outer as outer, tensordot as tensordot
from norch.ops.composed.shape import adjoint as adjoint, as_strided_scatter as as_strided_scatter, block_diag as block_diag, broadcast_shapes as broadcast_shapes, broadcast_tensors as broadcast_tensors, chunk as chunk, column_stack as column_stack, diagonal_scatter as diagonal_scatter, dstack as dstack, flip as flip, fliplr as fliplr, flipud as flipud, hstack as hstack, movedim as movedim, ravel as ravel, repeat_interleave as repeat_interleave, roll as roll, rot90 as rot90, select_scatter as select_scatter, slice_scatter as slice_scatter, split as split, split_with_sizes as split_with_sizes, swapaxes as swapaxes, tensor_split as tensor_split, tile as tile, unbind as unbind, unflatten as unflatten, vstack as vstack
from norch.ops.composed.statistics import corrcoef as corrcoef, cov as cov, cumulative_trapezoid as cumulative_trapezoid, trapezoid as trapezoid
from norch.ops.composed.type_properties import is_same_size as is_same_size, is_signed as is_signed, typename as typename
from norch.ops.conv import conv1d as conv1d, conv2d as conv2d, conv_transpose1d as conv_transpose1d, conv_transpose2d as conv_transpose2d
from norch.ops.conv3d import conv3d as conv3d, conv_transpose3d as conv_transpose3d
from norch.ops.copy import cat as cat, clone as clone, is_floating_point as is_floating_point, result_type as result_type, stack as stack
from norch.ops.create import arange as arange, empty as empty, empty_like as empty_like, empty_strided as empty_strided, eye as eye, full as full, full_like as full_like, linspace as linspace, logspace as logspace, ones as ones, ones_like as ones_like, scalar_tensor as scalar_tensor, tril_indices as tril_indices, triu_indices as triu_indices, zeros as zeros, zeros_like as zeros_like
from norch.ops.getitem import index_put as index_put
from norch.ops.index import argwhere as argwhere, index_add as index_add, index_fill as index_fill, index_select as index_select, masked_fill as masked_fill, masked_scatter as masked_scatter, masked_select as masked_select, nonzero as nonzero, put as put, take as take
from norch.ops.linalg.factor import lu_unpack as lu_unpack
from norch.ops.linalg.solve import det as det, inv as _inv, logdet as logdet, matrix_exp as matrix_exp, slogdet as slogdet
from norch.ops.linalg.torch_names import cholesky as cholesky, cholesky_inverse as cholesky_inverse, cholesky_solve as cholesky_solve, lu as lu, lu_solve as lu_solve, pca_lowrank as pca_lowrank, pinverse as pinverse, qr as qr, svd as svd, svd_lowrank as svd_lowrank, triangular_solve as triangular_solve
from norch.ops.matmul import bmm as bmm, dot as dot, matmul as matmul, mm as mm, mv as mv, vdot as vdot
from norch.ops.norm import norm as norm
from norch.ops.normalization import group_norm as group_norm, layer_norm as layer_norm, rms_norm as rms_norm
from norch.ops.pointwise import add as add, allclose as allclose, clamp as clamp, clamp_max as clamp_max, clamp_min as clamp_min, div as div, isclose as isclose, lerp as lerp, pow as pow, sgn as sgn, sub as sub, where as where
from norch.ops.pool import avg_pool1d as avg_pool1d, max_pool1d as max_pool1d, max_pool2d as max_pool2d, max_pool3d as max_pool3d
from norch.ops.random import bernoulli as bernoulli, multinomial as multinomial, normal as normal, poisson as poisson, rand as rand, rand_like as rand_like, randint as randint, randint_like as randint_like, randn as randn, randn_like as randn_like, randperm as randperm
from norch.ops.reduce import Dims, all as all, amax as amax, amin as amin, aminmax as aminmax, any as any, argmax as argmax, argmin as argmin, count_nonzero as count_nonzero, logsumexp as logsumexp, max as max, mean as mean, min as min, nanmean as nanmean, nansum as nansum, prod as prod, sum as sum
from norch.ops.scan import cummax as cummax, cummin as cummin, cumprod as cumprod, cumsum as cumsum, logcumsumexp as logcumsumexp
from norch.ops.scatter import gather as gather, index_reduce as index_reduce, scatter as scatter, scatter_add as scatter_add, scatter_reduce as scatter_reduce, take_along_dim as take_along_dim
from norch.ops.softmax import log_softmax as log_softmax, softmax as softmax
from norch.ops.sort import argsort as argsort, bucketize as bucketize, median as median, msort as msort, nanmedian as nanmedian, searchsorted as searchsorted, sort as sort, topk as topk
from norch.ops.values import as_tensor as as_tensor, asarray as asarray, from_numpy as from_numpy, tensor as tensor
from norch.ops.view import as_strided as as_strided, broadcast_to as broadcast_to, diagonal as diagonal, flatten as flatten, narrow as narrow, permute as permute, reshape as reshape, select as select, squeeze as squeeze, t as t, transpose as transpose, unsqueeze as unsqueeze
from norch.program.captured import capture as capture
from norch.program.compiled import compile as compile
from norch.random import Generator as Generator, get_rng_state as get_rng_state, initial_seed as initial_seed, manual_seed as manual_seed, seed as seed, set_rng_state as set_rng_state
from norch.serialization import load as load, save as save
from norch.tensor import Tensor as Tensor, is_nonzero as is_nonzero, is_tensor as is_tensor, numel as numel
from norch.utils.dlpack import from_dlpack as from_dlpack, to_dlpack as to_dlpack
from typing import Any, overload

BFloat16Tensor: _TensorType
BoolTensor: _TensorType
ByteTensor: _TensorType
CharTensor: _TensorType
DoubleTensor: _TensorType
FloatTensor: _TensorType
HalfTensor: _TensorType
IntTensor: _TensorType
LongTensor: _TensorType
ShortTensor: _TensorType
__version__: str
def abs(input: Tensor) -> Tensor: """|x|."""
def absolute(input: Tensor) -> Tensor: """|x|."""
def acos(input: Tensor) -> Tensor: """Arc cosine in radians; NaN outside [-1, 1]."""
def acosh(input: Tensor) -> Tensor: """Inverse hyperbolic cosine; NaN below 1."""
def arccos(input: Tensor) -> Tensor: """Arc cosine in radians; NaN outside [-1, 1]."""
def arccosh(input: Tensor) -> Tensor: """Inverse hyperbolic cosine; NaN below 1."""
def arcsin(input: Tensor) -> Tensor: """Arc sine in radians; NaN outside [-1, 1]."""
def arcsinh(input: Tensor) -> Tensor: """Inverse hyperbolic sine."""
def arctan(input: Tensor) -> Tensor: """Arc tangent in radians."""
def arctan2(input: Operand, other: Operand) -> Tensor: """The angle of the point (b, a) in radians, in (-pi, pi]."""
def arctanh(input: Tensor) -> Tensor: """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
def asin(input: Tensor) -> Tensor: """Arc sine in radians; NaN outside [-1, 1]."""
def asinh(input: Tensor) -> Tensor: """Inverse hyperbolic sine."""
def atan(input: Tensor) -> Tensor: """Arc tangent in radians."""
def atan2(input: Operand, other: Operand) -> Tensor: """The angle of the point (b, a) in radians, in (-pi, pi]."""
def atanh(input: Tensor) -> Tensor: """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
def atleast_1d(*tensors: Any) -> Any: """Views with at least 1 dimensions: of one tensor, or a tuple of those of several."""
def atleast_2d(*tensors: Any) -> Any: """Views with at least 2 dimensions: of one tensor, or a tuple of those of several."""
def atleast_3d(*tensors: Any) -> Any: """Views with at least 3 dimensions: of one tensor, or a tuple of those of several."""
bfloat16: dtype
def bitwise_and(input: Operand, other: Operand) -> Tensor: """a & b, for integers and bool."""
def bitwise_left_shift(input: Operand, other: Operand) -> Tensor: """a * 2**b modulo the size of the integer; 0 where b < 0."""
def bitwise_not(input: Tensor) -> Tensor: """Each bit inverted; for bool, logical not."""
def bitwise_or(input: Operand, other: Operand) -> Tensor: """a | b, for integers and bool."""
def bitwise_right_shift(input: Operand, other: Operand) -> Tensor: """a / 2**b rounded down; for b < 0 its sign: 0 or -1."""
def bitwise_xor(input: Operand, other: Operand) -> Tensor: """a ^ b, for integers and bool."""
bool: dtype
cdouble: dtype
def ceil(input: Tensor) -> Tensor: """The smallest integer not below x."""
def celu_(input: Tensor, alpha: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor: """celu() in place."""
cfloat: dtype
clip = clamp
complex128: dtype
complex64: dtype
concat = cat
concatenate = cat
contiguous_format: memory_format
def copysign(input: Operand, other: Operand) -> Tensor: """|a| with the sign of b. Integers become floats."""
def cos(input: Tensor) -> Tensor: """Cosine of x radians. Integers become floats."""
def cosh(input: Tensor) -> Tensor: """Hyperbolic cosine."""
default_generator: Generator
def digamma(input: Tensor) -> Tensor: """Derivative of lgamma; NaN at negative integers."""
divide = div
double: dtype
def dsplit(input: Tensor, indices_or_sections: Any = ..., *, indices: Any = ..., sections: builtins.int | None = ...) -> tuple[Tensor, ...]: """Views of parts along the third axis, into equal sections or cut before indices."""
e: builtins.float
def eq(input: Operand, other: Operand) -> Tensor: """Where a == b."""
def erf(input: Tensor) -> Tensor: """Error function: 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x."""
def erfc(input: Tensor) -> Tensor: """1 - erf(x)."""
def erfinv(input: Tensor) -> Tensor: """The number whose erf is x; infinite at -1 and 1, NaN beyond."""
def exp(input: Tensor) -> Tensor: """e**x. Integers become floats."""
def exp2(input: Tensor) -> Tensor: """2**x. Integers become floats."""
def expm1(input: Tensor) -> Tensor: """e**x - 1, exact near 0. Integers become floats."""
def fix(input: Tensor) -> Tensor: """x without its fraction."""
float: dtype
float16: dtype
float32: dtype
float64: dtype
def floor(input: Tensor) -> Tensor: """The largest integer not above x."""
def floor_divide(input: Operand, other: Operand) -> Tensor: """a / b rounded down. Integer division by 0 raises ZeroDivisionError."""
def fmax(input: Operand, other: Operand) -> Tensor: """The larger of a and b; NaN loses. Of equal ones a has the gradient."""
def fmin(input: Operand, other: Operand) -> Tensor: """The smaller of a and b; NaN loses. Of equal ones a has the gradient."""
def fmod(input: Operand, other: Operand) -> Tensor: """a - b * trunc(a / b): the sign of a. An integer divisor 0 raises."""
def ge(input: Operand, other: Operand) -> Tensor: """Where a >= b."""
ger = outer
def greater(input: Operand, other: Operand) -> Tensor: """Where a > b."""
def greater_equal(input: Operand, other: Operand) -> Tensor: """Where a >= b."""
def gt(input: Operand, other: Operand) -> Tensor: """Where a > b."""
half: dtype
def hsplit(input: Tensor, indices_or_sections: Any = ..., *, indices: Any = ..., sections: builtins.int | None = ...) -> tuple[Tensor, ...]: """Views of parts along the second axis (the first of a vector), into equal sections or cut before indices."""
def hypot(input: Operand, other: Operand) -> Tensor: """sqrt(a * a + b * b), without overflow on the way. Floats only."""
def index_copy(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor: """A copy of x whose parts at the given indices (1-d) of an axis are source's."""
inf: builtins.float
int: dtype
int16: dtype
int32: dtype
int64: dtype
int8: dtype
inverse = _inv
def isfinite(input: Tensor) -> Tensor: """Where x is neither infinite nor NaN."""
def isinf(input: Tensor) -> Tensor: """Where x is infinite."""
def isnan(input: Tensor) -> Tensor: """Where x is NaN."""
def le(input: Operand, other: Operand) -> Tensor: """Where a <= b."""
def less(input: Operand, other: Operand) -> Tensor: """Where a < b."""
def less_equal(input: Operand, other: Operand) -> Tensor: """Where a <= b."""
def lgamma(input: Tensor) -> Tensor: """Logarithm of the absolute value of the gamma function."""
def log(input: Tensor) -> Tensor: """Natural logarithm; -inf at 0, NaN below. Integers become floats."""
def log10(input: Tensor) -> Tensor: """Logarithm to base 10. Integers become floats."""
def log1p(input: Tensor) -> Tensor: """log(1 + x), exact near 0. Integers become floats."""
def log2(input: Tensor) -> Tensor: """Logarithm to base 2. Integers become floats."""
def logaddexp(input: Operand, other: Operand) -> Tensor: """log(e**a + e**b), without overflow. Floats only."""
def logaddexp2(input: Operand, other: Operand) -> Tensor: """log2(2**a + 2**b), without overflow. Floats only."""
def logical_and(input: Operand, other: Operand) -> Tensor: """Where both are non-zero."""
def logical_not(input: Tensor) -> Tensor: """Where x is 0 or False."""
def logical_or(input: Operand, other: Operand) -> Tensor: """Where one is non-zero."""
def logical_xor(input: Operand, other: Operand) -> Tensor: """Where exactly one is non-zero."""
long: dtype
def lt(input: Operand, other: Operand) -> Tensor: """Where a < b."""
def maximum(input: Operand, other: Operand) -> Tensor: """The larger of a and b; NaN wins. Equal ones share the gradient."""
def minimum(input: Operand, other: Operand) -> Tensor: """The smaller of a and b; NaN wins. Equal ones share the gradient."""
moveaxis = movedim
def mul(input: Operand, other: Operand) -> Tensor: """a * b."""
def multiply(input: Operand, other: Operand) -> Tensor: """a * b."""
nan: builtins.float
def ne(input: Operand, other: Operand) -> Tensor: """Where a != b."""
def neg(input: Tensor) -> Tensor: """-x. Not for bool."""
def negative(input: Tensor) -> Tensor: """-x. Not for bool."""
newaxis: None
def not_equal(input: Operand, other: Operand) -> Tensor: """Where a != b."""
pi: builtins.float
preserve_format: memory_format
def reciprocal(input: Tensor) -> Tensor: """1 / x. Integers become floats."""
def relu(input: Tensor) -> Tensor: """The larger of x and 0; NaN stays."""
def remainder(input: Operand, other: Operand) -> Tensor: """a - b * floor(a / b): the sign of b. An integer divisor 0 raises."""
row_stack = vstack
def rrelu_(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor: """rrelu() in place."""
def rsqrt(input: Tensor) -> Tensor: """1 / sqrt(x). Integers become floats."""
def selu_(input: Tensor, inplace: builtins.bool = ...) -> Tensor: """selu() in place."""
set_anomaly_enabled = _set_detect_anomaly
short: dtype
def sigmoid(input: Tensor) -> Tensor: """1 / (1 + e**-x). Integers become floats."""
def sign(input: Tensor) -> Tensor: """-1, 0 or 1; 0 for NaN."""
def signbit(input: Tensor) -> Tensor: """Where the sign is a minus, that of -0.0 too."""
def sin(input: Tensor) -> Tensor: """Sine of x radians. Integers become floats."""
def sinc(input: Tensor) -> Tensor: """sin(pi x) / (pi x), 1 at 0."""
def sinh(input: Tensor) -> Tensor: """Hyperbolic sine."""
def sqrt(input: Tensor) -> Tensor: """Square root; NaN below 0. Integers become floats."""
def square(input: Tensor) -> Tensor: """x * x."""
def std(input: Tensor, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Tensor: """The standard deviation: the square root of var()."""
def std_mean(input: Tensor, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> tuple[Tensor, Tensor]: """(std(), mean())."""
subtract = sub
swapdims = transpose
def tan(input: Tensor) -> Tensor: """Tangent of x radians. Integers become floats."""
def tanh(input: Tensor) -> Tensor: """Hyperbolic tangent."""
def threshold_(input: Tensor, threshold: builtins.float, value: builtins.float) -> Tensor: """threshold() in place."""
trapz = trapezoid
def true_divide(input: Operand, other: Operand) -> Tensor: """a / b as floats."""
def trunc(input: Tensor) -> Tensor: """x without its fraction."""
uint8: dtype
def var(input: Tensor, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> Tensor: """The variance over all elements, or over the axes dim: squared deviations summed, over n - correction."""
def var_mean(input: Tensor, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> tuple[Tensor, Tensor]: """(var(), mean())."""
def vsplit(input: Tensor, indices_or_sections: Any = ..., *, indices: Any = ..., sections: builtins.int | None = ...) -> tuple[Tensor, ...]: """Views of parts along the first axis, into equal sections or cut before indices."""
def xlogy(input: Operand, other: Operand) -> Tensor: """a * log(b), 0 where a is 0 and b no NaN. Integers become floats."""
abs_ = Tensor.abs_
absolute_ = Tensor.absolute_
acos_ = Tensor.acos_
acosh_ = Tensor.acosh_
add_ = Tensor.add_
addbmm_ = Tensor.addbmm_
addcdiv_ = Tensor.addcdiv_
addcmul_ = Tensor.addcmul_
addmm_ = Tensor.addmm_
addmv_ = Tensor.addmv_
addr_ = Tensor.addr_
arccos_ = Tensor.arccos_
arccosh_ = Tensor.arccosh_
arcsin_ = Tensor.arcsin_
arcsinh_ = Tensor.arcsinh_
arctan2_ = Tensor.arctan2_
arctan_ = Tensor.arctan_
arctanh_ = Tensor.arctanh_
as_strided_ = Tensor.as_strided_
asin_ = Tensor.asin_
asinh_ = Tensor.asinh_
atan2_ = Tensor.atan2_
atan_ = Tensor.atan_
atanh_ = Tensor.atanh_
baddbmm_ = Tensor.baddbmm_
bernoulli_ = Tensor.bernoulli_
bitwise_and_ = Tensor.bitwise_and_
bitwise_left_shift_ = Tensor.bitwise_left_shift_
bitwise_not_ = Tensor.bitwise_not_
bitwise_or_ = Tensor.bitwise_or_
bitwise_right_shift_ = Tensor.bitwise_right_shift_
bitwise_xor_ = Tensor.bitwise_xor_
cauchy_ = Tensor.cauchy_
ceil_ = Tensor.ceil_
clamp_ = Tensor.clamp_
clamp_max_ = Tensor.clamp_max_
clamp_min_ = Tensor.clamp_min_
clip_ = Tensor.clip_
conj_physical_ = Tensor.conj_physical_
copy_ = Tensor.copy_
copysign_ = Tensor.copysign_
cos_ = Tensor.cos_
cosh_ = Tensor.cosh_
cumprod_ = Tensor.cumprod_
cumsum_ = Tensor.cumsum_
deg2rad_ = Tensor.deg2rad_
detach = Tensor.detach
digamma_ = Tensor.digamma_
div_ = Tensor.div_
divide_ = Tensor.divide_
eq_ = Tensor.eq_
erf_ = Tensor.erf_
erfc_ = Tensor.erfc_
erfinv_ = Tensor.erfinv_
exp2_ = Tensor.exp2_
exp_ = Tensor.exp_
expm1_ = Tensor.expm1_
exponential_ = Tensor.exponential_
fill_ = Tensor.fill_
fill_diagonal_ = Tensor.fill_diagonal_
fix_ = Tensor.fix_
float_power_ = Tensor.float_power_
floor_ = Tensor.floor_
floor_divide_ = Tensor.floor_divide_
fmod_ = Tensor.fmod_
frac_ = Tensor.frac_
gcd_ = Tensor.gcd_
ge_ = Tensor.ge_
geometric_ = Tensor.geometric_
get_device = Tensor.get_device
greater_ = Tensor.greater_
greater_equal_ = Tensor.greater_equal_
gt_ = Tensor.gt_
heaviside_ = Tensor.heaviside_
hypot_ = Tensor.hypot_
index_add_ = Tensor.index_add_
index_copy_ = Tensor.index_copy_
index_fill_ = Tensor.index_fill_
index_put_ = Tensor.index_put_
index_reduce_ = Tensor.index_reduce_
is_conj = Tensor.is_conj
is_inference = Tensor.is_inference
is_neg = Tensor.is_neg
lcm_ = Tensor.lcm_
ldexp_ = Tensor.ldexp_
le_ = Tensor.le_
lerp_ = Tensor.lerp_
less_ = Tensor.less_
less_equal_ = Tensor.less_equal_
lgamma_ = Tensor.lgamma_
log10_ = Tensor.log10_
log1p_ = Tensor.log1p_
log2_ = Tensor.log2_
log_ = Tensor.log_
log_normal_ = Tensor.log_normal_
logical_and_ = Tensor.logical_and_
logical_not_ = Tensor.logical_not_
logical_or_ = Tensor.logical_or_
logical_xor_ = Tensor.logical_xor_
logit_ = Tensor.logit_
lt_ = Tensor.lt_
masked_fill_ = Tensor.masked_fill_
masked_scatter_ = Tensor.masked_scatter_
mul_ = Tensor.mul_
multiply_ = Tensor.multiply_
mvlgamma_ = Tensor.mvlgamma_
nan_to_num_ = Tensor.nan_to_num_
ne_ = Tensor.ne_
neg_ = Tensor.neg_
negative_ = Tensor.negative_
nextafter_ = Tensor.nextafter_
normal_ = Tensor.normal_
not_equal_ = Tensor.not_equal_
polygamma_ = Tensor.polygamma_
pow_ = Tensor.pow_
put_ = Tensor.put_
rad2deg_ = Tensor.rad2deg_
random_ = Tensor.random_
reciprocal_ = Tensor.reciprocal_
relu_ = Tensor.relu_
remainder_ = Tensor.remainder_
renorm_ = Tensor.renorm_
resolve_conj = Tensor.resolve_conj
resolve_neg = Tensor.resolve_neg
round_ = Tensor.round_
rsqrt_ = Tensor.rsqrt_
scatter_ = Tensor.scatter_
scatter_add_ = Tensor.scatter_add_
scatter_reduce_ = Tensor.scatter_reduce_
sgn_ = Tensor.sgn_
sigmoid_ = Tensor.sigmoid_
sign_ = Tensor.sign_
sin_ = Tensor.sin_
sinc_ = Tensor.sinc_
sinh_ = Tensor.sinh_
sqrt_ = Tensor.sqrt_
square_ = Tensor.square_
squeeze_ = Tensor.squeeze_
sub_ = Tensor.sub_
subtract_ = Tensor.subtract_
swapaxes_ = Tensor.swapaxes_
swapdims_ = Tensor.swapdims_
t_ = Tensor.t_
tan_ = Tensor.tan_
tanh_ = Tensor.tanh_
transpose_ = Tensor.transpose_
tril_ = Tensor.tril_
triu_ = Tensor.triu_
true_divide_ = Tensor.true_divide_
trunc_ = Tensor.trunc_
uniform_ = Tensor.uniform_
unsqueeze_ = Tensor.unsqueeze_
xlogy_ = Tensor.xlogy_
zero_ = Tensor.zero_
