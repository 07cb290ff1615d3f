"""Written by `make stubs` from the code; a test fails when it is out of date."""

import builtins
from collections.abc import Sequence
from norch import accelerator as accelerator, amp as amp, array_api as array_api, autograd as autograd, backends as backends, compiler as compiler, cpu as cpu, cuda as cuda, distributed as distributed, distributions as distributions, errors as errors, fft as fft, func as func, fx as fx, hub as hub, jit as jit, linalg as linalg, memory as memory, multiprocessing as multiprocessing, nn as nn, onnx as onnx, optim as optim, profiler as profiler, random as random, serialization as serialization, special as special, storage as storage, testing as testing, utils as utils, version as version
from norch._metadata import numel as numel
from norch._protocols import is_nonzero as is_nonzero
from norch._repr import set_printoptions as set_printoptions
from norch._size import Size as Size
from norch._stft import bartlett_window as bartlett_window, blackman_window as blackman_window, hamming_window as hamming_window, hann_window as hann_window, istft as istft, kaiser_window as kaiser_window, stft as stft
from norch._threads import get_num_threads as get_num_threads, set_num_threads as set_num_threads
from norch._typing import DTypeLike, DeviceLike, Operand
from norch.amp.autocast_mode import autocast as autocast, clear_autocast_cache as clear_autocast_cache, get_autocast_dtype as get_autocast_dtype, is_autocast_cache_enabled as is_autocast_cache_enabled, is_autocast_enabled as is_autocast_enabled, set_autocast_cache_enabled as set_autocast_cache_enabled, set_autocast_dtype as set_autocast_dtype, set_autocast_enabled as set_autocast_enabled
from norch.amp.grad_scaler import GradScaler as GradScaler
from norch.autograd.anomaly import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled, is_anomaly_enabled as is_anomaly_enabled, set_detect_anomaly as _set_detect_anomaly
from norch.autograd.grad_mode import enable_grad as enable_grad, inference_mode as inference_mode, is_grad_enabled as is_grad_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled
from norch.compat.as_torch import as_torch as as_torch
from norch.compat.backends import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled, get_float32_matmul_precision as get_float32_matmul_precision, set_float32_matmul_precision as set_float32_matmul_precision, use_deterministic_algorithms as use_deterministic_algorithms
from norch.compat.legacy import _TensorType
from norch.compat.typed_storage import TypedStorage as TypedStorage
from norch.device import device as device, get_default_device as get_default_device, set_default_device as set_default_device
from norch.dtype import can_cast as can_cast, dtype as dtype, finfo as finfo, get_default_dtype as get_default_dtype, iinfo as iinfo, memory_format as memory_format, promote_types as promote_types, set_default_dtype as set_default_dtype
from norch.errors import ArgumentError as ArgumentError, BoundsError as BoundsError, CaptureError as CaptureError, DTypeError as DTypeError, DeviceError as DeviceError, DivisionError as DivisionError, Error as Error, LinAlgError as LinAlgError, MetaError as MetaError, OutOfMemoryError as OutOfMemoryError, ShapeError as ShapeError
from norch.func import vmap as vmap
from norch.nn.functional._activation import celu as celu, rrelu as rrelu, selu as selu
from norch.nn.functional._dropout import alpha_dropout as alpha_dropout, dropout as dropout
from norch.nn.functional._vision import channel_shuffle as channel_shuffle, pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle
from norch.ops._results import aminmax_result, cummax_result, cummin_result, frexp_result, kthvalue_result, max_result, median_result, min_result, mode_result, nanmedian_result, sort_result, topk_result
from norch.ops.complex import conj as conj, imag as imag, is_complex as is_complex, real as real, view_as_complex as view_as_complex, view_as_real as view_as_real
from norch.ops.composed.adaptive_pool import adaptive_avg_pool1d as adaptive_avg_pool1d
from norch.ops.composed.diagonal import diag_embed as diag_embed, diagflat as diagflat, trace as trace
from norch.ops.composed.distance import cdist as cdist, cosine_similarity as cosine_similarity, pairwise_distance as pairwise_distance, pdist as pdist
from norch.ops.composed.einsum import einsum as einsum
from norch.ops.composed.grid import cartesian_prod as cartesian_prod, combinations as combinations, meshgrid as meshgrid, unravel_index as unravel_index, vander as vander
from norch.ops.composed.numeric import gradient as gradient
from norch.ops.composed.order import bincount as bincount
from norch.ops.composed.pad import constant_pad_nd as constant_pad_nd
from norch.ops.composed.pointwise import dist as dist, equal as equal, fill as fill, hardshrink as hardshrink, isreal as isreal, positive as positive, prelu as prelu, rsub as rsub, threshold as threshold
from norch.ops.composed.products import bilinear as bilinear
from norch.ops.composed.shape import adjoint as adjoint, as_strided_scatter as as_strided_scatter, block_diag as block_diag, broadcast_shapes as broadcast_shapes, broadcast_tensors as broadcast_tensors, diagonal_scatter as diagonal_scatter, flip as flip, fliplr as fliplr, flipud as flipud, movedim as movedim, ravel as ravel, repeat_interleave as repeat_interleave, roll as roll, rot90 as rot90, select_scatter as select_scatter, slice_scatter as slice_scatter, swapaxes as swapaxes, tile as tile, unflatten as unflatten
from norch.ops.composed.split import chunk as chunk, split as split, split_with_sizes as split_with_sizes, tensor_split as tensor_split, unbind as unbind
from norch.ops.composed.statistics import corrcoef as corrcoef, cov as cov, cumulative_trapezoid as cumulative_trapezoid, trapezoid as trapezoid
from norch.ops.composed.type_properties import is_same_size as is_same_size, is_signed as is_signed, typename as typename
from norch.ops.conv import Sizes
from norch.ops.copy import clone as clone, is_floating_point as is_floating_point, result_type as result_type
from norch.ops.create import empty_like as empty_like, empty_strided as empty_strided, full_like as full_like, scalar_tensor as scalar_tensor, tril_indices as tril_indices, triu_indices as triu_indices
from norch.ops.getitem import index_put as index_put
from norch.ops.index import argwhere as argwhere, index_fill as index_fill, masked_fill as masked_fill, masked_scatter as masked_scatter, put as put
from norch.ops.linalg import factor
from norch.ops.linalg.householder import geqrf_result
from norch.ops.linalg.lobpcg import lobpcg as lobpcg
from norch.ops.linalg.solve import det as det, logdet as logdet, matrix_exp as matrix_exp, slogdet as slogdet
from norch.ops.linalg.torch_names import lu as lu, pca_lowrank as pca_lowrank, pinverse as pinverse, svd_lowrank as svd_lowrank, svd_result, triangular_solve_result
from norch.ops.normalization import group_norm as group_norm, layer_norm as layer_norm, rms_norm as rms_norm
from norch.ops.pointwise import allclose as allclose, isclose as isclose
from norch.ops.pool import Sizes, avg_pool1d as avg_pool1d
from norch.ops.random import poisson as poisson, randint_like as randint_like
from norch.ops.reduce import Dims, count_nonzero as count_nonzero
from norch.ops.sort import argsort as argsort
from norch.ops.values import as_tensor as as_tensor, asarray as asarray, from_numpy as from_numpy, tensor as tensor
from norch.ops.view import as_strided as as_strided, broadcast_to as broadcast_to, diagonal as diagonal, flatten as flatten, narrow as narrow, permute as permute, reshape as reshape, select as select, squeeze as squeeze, t as t, transpose as transpose, unsqueeze as unsqueeze
from norch.program.captured import capture as capture
from norch.program.compiled import compile as compile
from norch.random import Generator as Generator, get_rng_state as get_rng_state, initial_seed as initial_seed, manual_seed as manual_seed, seed as seed, set_rng_state as set_rng_state
from norch.serialization import load as load, save as save
from norch.storage import Storage as _Storage
from norch.tensor import Tensor as Tensor, is_tensor as is_tensor
from norch.utils.dlpack import from_dlpack as from_dlpack, to_dlpack as to_dlpack
from typing import Any, Literal, overload

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
UntypedStorage = _Storage
__version__: str
def abs(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """|x|."""
def absolute(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """|x|."""
def acos(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Arc cosine in radians; NaN outside [-1, 1]."""
def acosh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Inverse hyperbolic cosine; NaN below 1."""
def add(input: Operand, other: Operand, second: Any = ..., *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor: """input + alpha * other; add(input, alpha, other) is the older way to say it."""
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: builtins.complex = ..., alpha: builtins.complex = ..., out: Tensor | None = ...) -> Tensor: """beta * input + alpha * the sum of the products of all pairs of matrices, as addmm()."""
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, third: Any = ..., *, value: Any = ..., out: Tensor | None = ...) -> Tensor: """input + value * tensor1 / tensor2, floats; addcdiv(input, value, tensor1, tensor2) is the older way to say it."""
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, third: Any = ..., *, value: Any = ..., out: Tensor | None = ...) -> Tensor: """input + value * tensor1 * tensor2; addcmul(input, value, tensor1, tensor2) is the older way to say it."""
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: builtins.complex = ..., alpha: builtins.complex = ..., out: Tensor | None = ...) -> Tensor: """beta * input + alpha * (mat1 @ mat2); input broadcasts to the product. What has the factor 0 is not read, so that its NaNs are none of the result's; but for baddbmm() and addr(), of which this holds for beta only."""
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: builtins.complex = ..., alpha: builtins.complex = ..., out: Tensor | None = ...) -> Tensor: """beta * input + alpha * (mat @ vec), as addmm()."""
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: builtins.complex = ..., alpha: builtins.complex = ..., out: Tensor | None = ...) -> Tensor: """beta * input + alpha * outer(vec1, vec2), as addmm(); dtypes are promoted."""
def all(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """Whether every element is non-zero, over all or the axes dim. uint8 gives uint8."""
def amax(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """The largest element, over all or the axes dim; NaN wins. Equal ones share the gradient (NaN beside a NaN)."""
def amin(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """The smallest element, over all or the axes dim; NaN wins. Equal ones share the gradient (NaN beside a NaN)."""
def aminmax(input: Tensor, *, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., out: tuple[Tensor, ...] | None = ...) -> aminmax_result: """(min, max): amin() and amax(), of all or over the axis dim."""
def angle(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The angle in radians, in (-pi, pi]: atan2 of the parts; of a real number 0 or pi, and NaN of NaN."""
def any(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """Whether one element is non-zero, over all or the axes dim. uint8 gives uint8."""
def arange(start: Tensor | builtins.float = ..., end: Tensor | builtins.float | None = ..., step: Tensor | builtins.float = ..., *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """start, start + step ... up to end, which is excluded. int64 where all three are integers, else the default dtype."""
def arccos(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Arc cosine in radians; NaN outside [-1, 1]."""
def arccosh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Inverse hyperbolic cosine; NaN below 1."""
def arcsin(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Arc sine in radians; NaN outside [-1, 1]."""
def arcsinh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Inverse hyperbolic sine."""
def arctan(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Arc tangent in radians."""
def arctan2(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """The angle of the point (b, a) in radians, in (-pi, pi]."""
def arctanh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
def argmax(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """The index (int64) of the largest element along dim, or in the flattened tensor; the first of equals."""
def argmin(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """The index (int64) of the smallest element along dim, or in the flattened tensor; the first of equals."""
def asin(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Arc sine in radians; NaN outside [-1, 1]."""
def asinh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Inverse hyperbolic sine."""
def atan(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Arc tangent in radians."""
def atan2(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """The angle of the point (b, a) in radians, in (-pi, pi]."""
def atanh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
def atleast_1d(*tensors: Any) -> Any: """Views with at least 1 dimensions: of one tensor, or a tuple of those of several."""
def atleast_2d(*tensors: Any) -> Any: """Views with at least 2 dimensions: of one tensor, or a tuple of those of several."""
def atleast_3d(*tensors: Any) -> Any: """Views with at least 3 dimensions: of one tensor, or a tuple of those of several."""
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: builtins.complex = ..., alpha: builtins.complex = ..., out: Tensor | None = ...) -> Tensor: """beta * input + alpha * (batch1 @ batch2) for batches of matrices, as addmm()."""
def bernoulli(input: Tensor, p: builtins.float | None = ..., *, generator: Generator | None = ..., out: Tensor | None = ...) -> Tensor: """Draws 1 with the probability in each element of input, or with probability p in the shape of input; else 0."""
bfloat16: dtype
def bitwise_and(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a & b, for integers and bool."""
def bitwise_left_shift(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a * 2**b modulo the size of the integer; 0 where b < 0."""
def bitwise_not(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Each bit inverted; for bool, logical not."""
def bitwise_or(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a | b, for integers and bool."""
def bitwise_right_shift(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a / 2**b rounded down; for b < 0 its sign: 0 or -1."""
def bitwise_xor(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a ^ b, for integers and bool."""
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = ...) -> Tensor: """Products of matrices pair by pair, (B, M, K) and (B, K, N)."""
bool: dtype
def bucketize(input: Tensor, boundaries: Tensor, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """searchsorted() of input among 1-d boundaries."""
def cat(tensors: Sequence[Tensor], dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor: """The tensors one after the other along dim (axis, as NumPy says); all other sizes must agree, dtypes are promoted."""
cdouble: dtype
def ceil(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The smallest integer not below x."""
def celu_(input: Tensor, alpha: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor: """celu() in place."""
cfloat: dtype
def chain_matmul(*matrices: Tensor, out: Tensor | None = ...) -> Tensor: """The product of matrices one after the other, in the order that costs least."""
channels_last: memory_format
channels_last_3d: memory_format
def cholesky(input: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """linalg.cholesky() of symmetric positive definite matrices (..., N, N)."""
def cholesky_inverse(L: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """The inverse of A = L L^H, or of L^H L with upper, given L (..., N, N)."""
def cholesky_solve(B: Tensor, L: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """X of A X = B, B (..., N, K), given L, (..., N, N), with A = L L^H, or A = L^H L with upper."""
def clamp(input: Tensor, min: Operand | None = ..., max: Operand | None = ..., *, out: Tensor | None = ...) -> Tensor: """input held between min and max (numbers or tensors); NaN stays. With min above max, max."""
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = ...) -> Tensor: """input, at most max (a number or a tensor); NaN stays."""
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = ...) -> Tensor: """input, at least min (a number or a tensor); NaN stays."""
def clip(input: Tensor, min: Operand | None = ..., max: Operand | None = ..., *, out: Tensor | None = ...) -> Tensor: """input held between min and max (numbers or tensors); NaN stays. With min above max, max."""
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: """The tensors side by side; vectors count as columns."""
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = ...) -> Tensor: """real + i imag, of two tensors of one dtype, float32 or float64, which are broadcast."""
complex128: dtype
complex64: dtype
def concat(tensors: Sequence[Tensor], dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor: """The tensors one after the other along dim (axis, as NumPy says); all other sizes must agree, dtypes are promoted."""
def concatenate(tensors: Sequence[Tensor], dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor: """The tensors one after the other along dim (axis, as NumPy says); all other sizes must agree, dtypes are promoted."""
def conj_physical(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """conj(), which computes at once."""
contiguous_format: memory_format
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes | str = ..., dilation: Sizes = ..., groups: builtins.int = ...) -> Tensor: """input (N, C, L) or (C, L) with weight (O, C / groups, K) and bias (O): (N, O, L') or (O, L')."""
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes | str = ..., dilation: Sizes = ..., groups: builtins.int = ...) -> Tensor: """input (N, C, H, W) or (C, H, W) with weight (O, C / groups, KH, KW) and bias (O); otherwise as conv1d."""
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes | str = ..., dilation: Sizes = ..., groups: builtins.int = ...) -> Tensor: """input (N, C, D, H, W) or (C, D, H, W) with weight (O, C / groups, KD, KH, KW) and bias (O); otherwise as conv1d. While it runs it takes KD times the memory of input."""
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes = ..., output_padding: Sizes = ..., groups: builtins.int = ..., dilation: Sizes = ...) -> Tensor: """The adjoint of conv1d: input (N, C, L) with weight (C, O / groups, K) and bias (O) gives (N, O, L')."""
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes = ..., output_padding: Sizes = ..., groups: builtins.int = ..., dilation: Sizes = ...) -> Tensor: """The adjoint of conv2d: input (N, C, H, W) with weight (C, O / groups, KH, KW) and bias (O)."""
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes = ..., output_padding: Sizes = ..., groups: builtins.int = ..., dilation: Sizes = ...) -> Tensor: """The adjoint of conv3d: input (N, C, D, H, W) with weight (C, O / groups, KD, KH, KW) and bias (O)."""
def copysign(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """|a| with the sign of b. Integers become floats."""
def cos(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Cosine of x radians. Integers become floats."""
def cosh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Hyperbolic cosine."""
def cross(input: Tensor, other: Tensor, dim: builtins.int | None = ..., *, out: Tensor | None = ...) -> Tensor: """The cross product of vectors of three elements along dim (default: the first axis of size 3)."""
def cummax(input: Tensor, dim: builtins.int, *, out: tuple[Tensor, ...] | None = ...) -> cummax_result: """The largest element so far along dim, and its index (the last of equals): (values, indices). NaN wins."""
def cummin(input: Tensor, dim: builtins.int, *, out: tuple[Tensor, ...] | None = ...) -> cummin_result: """The smallest element so far along dim, and its index (the last of equals): (values, indices). NaN wins."""
def cumprod(input: Tensor, dim: builtins.int, *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The products of all elements up to each along dim. Integers and bool multiply in int64, or in dtype."""
def cumsum(input: Tensor, dim: builtins.int, *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The sums of all elements up to each along dim. Integers and bool add up in int64, or in dtype."""
default_generator: Generator
def deg2rad(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Degrees as radians. Integers become floats."""
def diag(input: Tensor, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor: """Of a vector, the matrix with it on a diagonal; of a matrix, a copy of a diagonal."""
def diff(input: Tensor, n: builtins.int = ..., dim: builtins.int = ..., prepend: Tensor | None = ..., append: Tensor | None = ..., *, out: Tensor | None = ...) -> Tensor: """Each element less the one before it along dim, n times over; for bool, whether they differ."""
def digamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Derivative of lgamma; NaN at negative integers."""
def div(input: Tensor, other: Operand, *, rounding_mode: str | None = ..., out: Tensor | None = ...) -> Tensor: """input / other as floats; with rounding_mode "floor" or "trunc" rounded, integers staying integers."""
def divide(input: Tensor, other: Operand, *, rounding_mode: str | None = ..., out: Tensor | None = ...) -> Tensor: """input / other as floats; with rounding_mode "floor" or "trunc" rounded, integers staying integers."""
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = ...) -> Tensor: """The sum of products of two vectors of one size."""
double: dtype
def dsplit(input: Tensor, indices_or_sections: Any = ..., *, indices: Any = ..., sections: builtins.int | None = ...) -> tuple[Tensor, ...]: """Views of parts along the third axis, into equal sections or cut before indices."""
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: """The tensors one behind the other, along the third axis."""
e: builtins.float
def empty(*shape: Any, size: Any = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., memory_format: Any = ..., out: Tensor | None = ...) -> Tensor: """A tensor of undefined elements: whatever the memory held."""
def eq(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a == b."""
def erf(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Error function: 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x."""
def erfc(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """1 - erf(x)."""
def erfinv(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The number whose erf is x; infinite at -1 and 1, NaN beyond."""
def exp(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """e**x. Integers become floats."""
def exp2(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """2**x. Integers become floats."""
def expm1(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """e**x - 1, exact near 0. Integers become floats."""
def eye(n: builtins.int, m: builtins.int | None = ..., *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """An (n, m) matrix with ones on its diagonal; m is n unless given."""
def fix(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """x without its fraction."""
float: dtype
float16: dtype
float32: dtype
float64: dtype
def float_power(input: Tensor, exponent: Operand, *, out: Tensor | None = ...) -> Tensor: """input ** exponent in float64, or complex128."""
def floor(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The largest integer not above x."""
def floor_divide(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a / b rounded down. Integer division by 0 raises ZeroDivisionError."""
def fmax(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """The larger of a and b; NaN loses. Of equal ones a has the gradient."""
def fmin(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """The smaller of a and b; NaN loses. Of equal ones a has the gradient."""
def fmod(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a - b * trunc(a / b): the sign of a. An integer divisor 0 raises."""
def frac(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """input - trunc(input). Floats only."""
def frexp(input: Tensor, *, out: tuple[Tensor, ...] | None = ...) -> frexp_result: """(mantissa, exponent), input = mantissa * 2**exponent and 0.5 <= |mantissa| < 1; 0, inf and NaN stay. Floats only."""
def full(size: Any, fill_value: Operand, *, dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """A tensor of one value. Its dtype follows the value unless given: int64 for an integer, bool for a bool."""
def gather(input: Tensor, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """out[i][j] = x[index[i][j]][j] for dim 0, and so on; the shape of index (integers)."""
def gcd(input: Any, other: Any, *, out: Any = ...) -> Any: """The greatest common divisors of integers, not negative; gcd(0, 0) is 0. By Euclid's algorithm."""
def ge(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a >= b."""
def geqrf(A: Tensor, *, out: tuple[Tensor, ...] | None = ...) -> geqrf_result: """(a, tau) of the QR decomposition of A (..., M, N): a (..., M, N) holds R in its upper triangle and below it the reflections whose product is Q, tau (..., K) their factors, K = min(M, N). householder_product() and ormqr() take them. It has no derivative; linalg.qr() has one."""
def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = ...) -> Tensor: """out[i][j] = input[i] * vec2[j] for two vectors."""
def greater(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a > b."""
def greater_equal(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a >= b."""
def gt(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a > b."""
half: dtype
def heaviside(input: Any, values: Any, *, out: Any = ...) -> Any: """0 where input is negative, 1 where it is positive, and values where it is 0 (as in PyTorch 0 for NaN)."""
def histc(input: Any, bins: builtins.int = ..., min: builtins.float = ..., max: builtins.float = ..., *, out: Any = ...) -> Any: """How many elements lie in each of `bins` equal parts of [min, max], in the dtype of input, a float."""
def histogram(input: Any, bins: Any, *, range: Any = ..., weight: Any = ..., density: builtins.bool = ..., out: Any = ...) -> Any: """(hist, bin_edges): the sums of the weights (None: 1) of the elements in each bin, and the edges of the bins."""
def hsplit(input: Tensor, indices_or_sections: Any = ..., *, indices: Any = ..., sections: builtins.int | None = ...) -> tuple[Tensor, ...]: """Views of parts along the second axis (the first of a vector), into equal sections or cut before indices."""
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: """The tensors side by side: along the second axis, or the first of vectors."""
def hypot(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """sqrt(a * a + b * b), without overflow on the way. Floats only."""
def i0(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Modified Bessel function of the first kind, of order 0; even, from 1 at 0. Integers become floats."""
def igamma(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Regularised lower incomplete gamma function P(a, x), in [0, 1]; NaN where an argument is negative. Differentiable by x."""
def igammac(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), exact where small. Differentiable by x."""
def index_add(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor: """A copy of x to whose parts at the given indices (1-d) of an axis alpha times those of source are added."""
def index_copy(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, *, out: Tensor | None = ...) -> Tensor: """A copy of x whose parts at the given indices (1-d) of an axis are source's."""
def index_reduce(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, reduce: str, *, include_self: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """A copy of x into whose parts at the given indices (1-d) of an axis those of source are reduced: by "prod", "mean", "amax" or "amin", together with what is there, or without it."""
def index_select(input: Tensor, dim: builtins.int, index: Tensor, *, out: Tensor | None = ...) -> Tensor: """The parts of x at the given indices (1-d) of an axis, in their order."""
inf: builtins.float
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: """The sum of products over the last axis of both; with a number, or a tensor of no axis, the product."""
int: dtype
int16: dtype
int32: dtype
int64: dtype
int8: dtype
def inverse(A: Tensor, *, out: Tensor | None = ...) -> Tensor: """The inverses (..., N, N) of A (..., N, N). LinAlgError for singular ones. solve(A, B) is faster than inv(A) @ B, and more accurate."""
def isfinite(input: Tensor) -> Tensor: """Where x is neither infinite nor NaN."""
def isin(elements: Operand, test_elements: Tensor, *, assume_unique: builtins.bool = ..., invert: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Where elements are among test_elements; with invert where they are not. Either may be a number."""
def isinf(input: Tensor) -> Tensor: """Where x is infinite."""
def isnan(input: Tensor) -> Tensor: """Where x is NaN."""
def isneginf(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Where input is -inf."""
def isposinf(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Where input is +inf."""
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: """The Kronecker product: every element of input times all of other, block by block along each axis."""
def kthvalue(input: Tensor, k: builtins.int, dim: builtins.int = ..., keepdim: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> kthvalue_result: """The k-th smallest element along dim, the first for k = 1, and its index: (values, indices). NaN is the largest."""
def lcm(input: Any, other: Any, *, out: Any = ...) -> Any: """The least common multiples of integers, not negative; 0 where one of both is 0."""
def ldexp(input: Tensor, other: Operand, *, out: Tensor | None = ...) -> Tensor: """input * 2**other, as floats: of input's dtype, where other is of integers."""
def le(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a <= b."""
def lerp(input: Tensor, end: Tensor, weight: Operand, *, out: Tensor | None = ...) -> Tensor: """input + weight * (end - input): from input, at weight 0, to end, at weight 1. Floats only."""
def less(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a < b."""
def less_equal(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a <= b."""
def lgamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Logarithm of the absolute value of the gamma function."""
def linspace(start: Operand, end: Operand, steps: builtins.int, *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """steps evenly spaced numbers from start to end, both included."""
def log(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Natural logarithm; -inf at 0, NaN below. Integers become floats."""
def log10(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Logarithm to base 10. Integers become floats."""
def log1p(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """log(1 + x), exact near 0. Integers become floats."""
def log2(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Logarithm to base 2. Integers become floats."""
def log_softmax(input: Tensor, dim: builtins.int, dtype: dtype | None = ..., *, out: Tensor | None = ...) -> Tensor: """The logarithms of probabilities that sum to 1 along dim: x - logsumexp(x), exact for large x too."""
def logaddexp(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """log(e**a + e**b), without overflow. Floats and complex numbers."""
def logaddexp2(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """log2(2**a + 2**b), without overflow. Floats only."""
def logcumsumexp(input: Tensor, dim: builtins.int, *, out: Tensor | None = ...) -> Tensor: """log(cumsum(exp(x))) along dim, without overflow. Floats and complex numbers, of which each sum takes calls of its own."""
def logical_and(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where both are non-zero."""
def logical_not(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Where x is 0 or False."""
def logical_or(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where one is non-zero."""
def logical_xor(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where exactly one is non-zero."""
def logit(input: Tensor, eps: builtins.float | None = ..., *, out: Tensor | None = ...) -> Tensor: """log(x / (1 - x)), the inverse of sigmoid; with eps, x is first held between eps and 1 - eps."""
def logspace(start: builtins.float, end: builtins.float, steps: builtins.int, base: builtins.float = ..., *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """base to the power of linspace(start, end, steps)."""
def logsumexp(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """log(sum(exp(x))) over all elements or the axes dim, without overflow. Integers become floats."""
long: dtype
def lt(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a < b."""
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = ...) -> Tensor: """linalg.lu_solve() with the right side first."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: builtins.bool = ..., unpack_pivots: builtins.bool = ..., *, out: Any = ...) -> Any: """(P, L, U) of what lu_factor() gave; P is empty without unpack_pivots, L and U without unpack_data."""
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = ...) -> Tensor: """The elements of x where mask (bool) holds, in one axis; x and mask broadcast."""
def matmul(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """The matrix product by NumPy's rules: vectors, matrices, and batches that broadcast."""
def matrix_power(input: Tensor, n: builtins.int, *, out: Tensor | None = ...) -> Tensor: """The n-th power of square matrices (..., M, M): the identity for 0, powers of the inverse for negative n. LinAlgError if there is no inverse, ShapeError if a matrix is not square."""
@overload
def max(input: Tensor, dim: None = ..., keepdim: builtins.bool = ..., *, other: None = ..., out: Tensor | None = ...) -> Tensor: ...
@overload
def max(input: Tensor, dim: builtins.int, keepdim: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> max_result: ...
@overload
def max(input: Tensor, dim: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def max(input: Tensor, *, other: Tensor, out: Tensor | None = ...) -> Tensor: ...
@overload
def max_pool1d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: builtins.bool = ..., return_indices: Literal[False] = ...) -> Tensor: ...
@overload
def max_pool1d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: builtins.bool = ..., *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool1d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any: ...
@overload
def max_pool2d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: builtins.bool = ..., return_indices: Literal[False] = ...) -> Tensor: ...
@overload
def max_pool2d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: builtins.bool = ..., *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any: ...
@overload
def max_pool3d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: builtins.bool = ..., return_indices: Literal[False] = ...) -> Tensor: ...
@overload
def max_pool3d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: builtins.bool = ..., *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any: ...
def maximum(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """The larger of a and b; NaN wins. Equal ones share the gradient."""
def mean(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The mean over all elements, or over the axes dim. Floats only; NaN over no elements."""
@overload
def median(input: Tensor, dim: None = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: ...
@overload
def median(input: Tensor, dim: builtins.int, keepdim: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> median_result: ...
@overload
def min(input: Tensor, dim: None = ..., keepdim: builtins.bool = ..., *, other: None = ..., out: Tensor | None = ...) -> Tensor: ...
@overload
def min(input: Tensor, dim: builtins.int, keepdim: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> min_result: ...
@overload
def min(input: Tensor, dim: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def min(input: Tensor, *, other: Tensor, out: Tensor | None = ...) -> Tensor: ...
def minimum(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """The smaller of a and b; NaN wins. Equal ones share the gradient."""
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = ...) -> Tensor: """The product of two matrices, (M, K) and (K, N)."""
def mode(input: Tensor, dim: builtins.int = ..., keepdim: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> mode_result: """The most frequent element along dim (the smallest of those), and the last index of it: (values, indices)."""
moveaxis = movedim
def msort(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The values of sort() along the first axis."""
def mul(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a * b."""
def multinomial(input: Tensor, num_samples: builtins.int, replacement: builtins.bool = ..., *, generator: Generator | None = ..., out: Tensor | None = ...) -> Tensor: """Draws num_samples categories, int64, from each row of weights, which are not negative and need not sum to 1."""
def multiply(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a * b."""
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = ...) -> Tensor: """A matrix (M, K) times a vector (K)."""
def mvlgamma(input: Tensor, p: builtins.int, *, out: Tensor | None = ...) -> Tensor: """The logarithm of the multivariate gamma function of dimension p. Integers become floats."""
nan: builtins.float
def nan_to_num(input: Tensor, nan: builtins.float = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ..., *, out: Tensor | None = ...) -> Tensor: """Numbers in place of NaN and the infinities: posinf and neginf are by default the dtype's largest and smallest."""
def nanmean(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The mean of the elements that are not NaN, over all or over the axes dim; NaN if there is none."""
@overload
def nanmedian(input: Tensor, dim: None = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: ...
@overload
def nanmedian(input: Tensor, dim: builtins.int, keepdim: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> nanmedian_result: ...
def nanquantile(input: Tensor, q: Operand, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ..., out: Tensor | None = ...) -> Tensor: """quantile() of the elements that are not NaN."""
def nansum(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The sum of the elements that are not NaN, over all or over the axes dim."""
def ne(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a != b."""
def neg(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """-x. Not for bool."""
def negative(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """-x. Not for bool."""
newaxis: None
def nextafter(input: Any, other: Any, *, out: Any = ...) -> Any: """The next number of the dtype after input in the direction of other. Floats of one dtype."""
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = ..., out: Tensor | None = ...) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True], out: tuple[Tensor, ...] | None = ...) -> tuple[Tensor, ...]: ...
def norm(input: Tensor, p: Any = ..., dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The p-norm of all elements, or over the axes dim, taken as one vector; "fro" is 2."""
def normal(mean: Operand = ..., std: Operand = ..., size: Any = ..., *, generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Numbers drawn from normal distributions. mean and std are tensors, which broadcast, or two numbers with a size; in a complex dtype these are as in normal_()."""
def not_equal(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a != b."""
def ones(*shape: Any, size: Any = ..., dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Ones, of the default dtype unless given."""
def ones_like(input: Tensor, *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor: """Ones in the shape and dtype of input, on its device."""
def orgqr(A: Tensor, tau: Tensor, *, out: Tensor | None = ...) -> Tensor: """The first N columns of H_1 ... H_K, (..., M, N), for the reflections in the columns of A (..., M, N), M >= N, and their factors tau (..., K), K <= N: the Q of geqrf(). ShapeError for other shapes."""
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: builtins.bool = ..., transpose: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """Q other, or other Q without left, for other (..., M, N) and the whole square Q = H_1 ... H_K of geqrf(): input (..., M, K), (..., N, K) without left, tau (..., K). Q^H stands in place of Q with transpose."""
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = ...) -> Tensor: """out[i][j] = input[i] * vec2[j] for two vectors."""
pi: builtins.float
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = ...) -> Tensor: """abs e**(i angle): complex numbers of absolute values and angles in radians."""
def polygamma(n: builtins.int, input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The n-th derivative of digamma: (-1)**(n + 1) n! sum((input + k)**-(n + 1)). Integers become floats."""
def pow(input: Operand, exponent: Operand, *, out: Tensor | None = ...) -> Tensor: """input ** exponent. Integers to a negative power raise ValueError; of bools True and False are the only powers."""
preserve_format: memory_format
def prod(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The product over all elements, or over the axis dim. Integers and bool multiply in int64."""
def qr(input: Tensor, some: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> factor.qr_result: """linalg.qr(): "reduced", or "complete" without some."""
def quantile(input: Tensor, q: Operand, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ..., out: Tensor | None = ...) -> Tensor: """The q-th quantiles (q a number or 1-d tensor in [0, 1]) of all elements or along dim; NaN where there is one."""
def rad2deg(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Radians as degrees. Integers become floats."""
def rand(*shape: Any, size: Any = ..., generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Numbers drawn uniformly from [0, 1)."""
def rand_like(input: Tensor, *, generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor: """rand() in the shape and dtype of input, on its device."""
def randint(low: Any = ..., high: Any = ..., size: Any = ..., *, generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Integers drawn uniformly from [low, high), by default int64: randint(low, high, size) or randint(high, size)."""
def randn(*shape: Any, size: Any = ..., generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Numbers drawn from the normal distribution of mean 0 and variance 1."""
def randn_like(input: Tensor, *, generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor: """randn() in the shape and dtype of input, on its device."""
def randperm(n: builtins.int, *, generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """The integers 0, 1, ... n - 1 in random order; int64 unless given."""
def reciprocal(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """1 / x. Integers become floats."""
def relu(input: Tensor) -> Tensor: """The larger of x and 0; NaN stays."""
def remainder(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a - b * floor(a / b): the sign of b. An integer divisor 0 raises."""
def renorm(input: Tensor, p: builtins.float, dim: builtins.int, maxnorm: builtins.float, *, out: Tensor | None = ...) -> Tensor: """input with its parts along dim, whose p-norm is more than maxnorm, scaled down to that. p is positive."""
def round(input: Tensor, *, decimals: builtins.int = ..., out: Tensor | None = ...) -> Tensor: """The nearest number with so many decimals (negative ones: tens, hundreds ...), halves to the even one."""
def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: """The tensors one below the other; vectors count as rows."""
def rrelu_(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor: """rrelu() in place."""
def rsqrt(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """1 / sqrt(x). Integers become floats."""
def scatter(input: Tensor, dim: builtins.int, index: Tensor, src: Operand | None = ..., *, value: Any = ..., reduce: str | None = ..., out: Tensor | None = ...) -> Tensor: """A copy of x with out[index[i][j]][j] = src[i][j] for dim 0, and so on; the last of several stays."""
def scatter_add(input: Tensor, dim: builtins.int, index: Tensor, src: Operand, *, out: Tensor | None = ...) -> Tensor: """A copy of x with out[index[i][j]][j] += src[i][j] for dim 0, and so on."""
def scatter_reduce(input: Tensor, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """A copy of x into which src[i][j] is reduced at index[i][j] of dim 0, and so on: by "sum", "prod", "mean", "amax" or "amin", together with what is there or, without include_self, instead of it."""
def searchsorted(sorted_sequence: Tensor, input: Operand, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., side: str | None = ..., sorter: Tensor | None = ..., out: Tensor | None = ...) -> Tensor: """Where each value of input is to be put into the sorted last axis of sorted_sequence, before its equals (side "left") or behind them ("right")."""
def selu_(input: Tensor, inplace: builtins.bool = ...) -> Tensor: """selu() in place."""
set_anomaly_enabled = _set_detect_anomaly
def sgn(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """-1, 0 or 1 as sign(); of complex numbers x / |x|, 0 at 0."""
short: dtype
def sigmoid(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """1 / (1 + e**-x). Integers become floats."""
def sign(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """-1, 0 or 1; 0 for NaN."""
def signbit(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Where the sign is a minus, that of -0.0 too."""
def sin(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Sine of x radians. Integers become floats."""
def sinc(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """sin(pi x) / (pi x), 1 at 0."""
def sinh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Hyperbolic sine."""
def softmax(input: Tensor, dim: builtins.int, dtype: dtype | None = ..., *, out: Tensor | None = ...) -> Tensor: """exp(x) over its sum along dim: probabilities that sum to 1, stable for large x. Integers become floats."""
def sort(input: Tensor, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool | None = ..., *, out: tuple[Tensor, ...] | None = ...) -> sort_result: """(values, indices) along dim in ascending or descending order; equal ones keep theirs, NaN is the greatest."""
def sqrt(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Square root; NaN below 0. Integers become floats."""
def square(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """x * x."""
def stack(tensors: Sequence[Tensor], dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor: """Tensors of one shape along a new axis dim (or axis, as NumPy says)."""
def std(input: Tensor, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ..., out: Tensor | None = ...) -> Tensor: """The standard deviation: the square root of var()."""
def std_mean(input: Tensor, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> tuple[Tensor, Tensor]: """(std(), mean())."""
def sub(input: Operand, other: Operand, second: Any = ..., *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor: """input - alpha * other; sub(input, alpha, other) is the older way to say it."""
def subtract(input: Operand, other: Operand, second: Any = ..., *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor: """input - alpha * other; sub(input, alpha, other) is the older way to say it."""
def sum(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The sum over all elements, or over the axes dim. Integers and bool add up in int64."""
def svd(input: Tensor, some: builtins.bool = ..., compute_uv: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> svd_result: """(U, S, V) with input = U diag(S) V^H: linalg.svd() with V in place of V^H, reduced with some. Without compute_uv U and V are zeros."""
swapdims = transpose
def take(input: Tensor, index: Tensor, *, out: Tensor | None = ...) -> Tensor: """The elements of x, as if it were flat, at the given indices; the shape of index."""
def take_along_dim(input: Tensor, indices: Tensor, dim: builtins.int | None = ..., *, out: Tensor | None = ...) -> Tensor: """gather() whose other axes are broadcast, and whose indices may be negative; without dim of the flattened x."""
def tan(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Tangent of x radians. Integers become floats."""
def tanh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Hyperbolic tangent."""
def tensordot(a: Tensor, b: Tensor, dims: Any = ..., *, axes: Any = ..., out: Tensor | None = ...) -> Tensor: """The sum of products over several axes of a and as many of b; the axes left, a's first, are those of the result."""
def threshold_(input: Tensor, threshold: builtins.float, value: builtins.float) -> Tensor: """threshold() in place."""
def topk(input: Tensor, k: builtins.int, dim: builtins.int = ..., largest: builtins.bool = ..., sorted: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> topk_result: """The k largest (or smallest) elements along dim in order, and their indices: (values, indices)."""
trapz = trapezoid
def triangular_solve(b: Tensor, A: Tensor, upper: builtins.bool = ..., transpose: builtins.bool = ..., unitriangular: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> triangular_solve_result: """(solution, A) of A X = b, or A^T X = b with transpose; linalg.solve_triangular() has the other order."""
def tril(input: Tensor, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor: """The lower triangle of matrices, up to a diagonal; zeros above."""
def triu(input: Tensor, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor: """The upper triangle of matrices, from a diagonal on; zeros below."""
def true_divide(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a / b as floats."""
def trunc(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """x without its fraction."""
uint8: dtype
@overload
def unique(input: Tensor, sorted: builtins.bool = ..., return_inverse: Literal[False] = ..., return_counts: Literal[False] = ..., dim: builtins.int | None = ...) -> Tensor: ...
@overload
def unique(input: Tensor, sorted: builtins.bool = ..., *, return_inverse: Literal[True], return_counts: Literal[False] = ..., dim: builtins.int | None = ...) -> tuple[Tensor, Tensor]: ...
@overload
def unique(input: Tensor, sorted: builtins.bool = ..., *, return_inverse: Literal[False] = ..., return_counts: Literal[True], dim: builtins.int | None = ...) -> tuple[Tensor, Tensor]: ...
@overload
def unique(input: Tensor, sorted: builtins.bool = ..., *, return_inverse: Literal[True], return_counts: Literal[True], dim: builtins.int | None = ...) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def unique(input: Tensor, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any: ...
@overload
def unique_consecutive(input: Tensor, return_inverse: Literal[False] = ..., return_counts: Literal[False] = ..., dim: builtins.int | None = ...) -> Tensor: ...
@overload
def unique_consecutive(input: Tensor, *, return_inverse: Literal[True], return_counts: Literal[False] = ..., dim: builtins.int | None = ...) -> tuple[Tensor, Tensor]: ...
@overload
def unique_consecutive(input: Tensor, *, return_inverse: Literal[False] = ..., return_counts: Literal[True], dim: builtins.int | None = ...) -> tuple[Tensor, Tensor]: ...
@overload
def unique_consecutive(input: Tensor, *, return_inverse: Literal[True], return_counts: Literal[True], dim: builtins.int | None = ...) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def unique_consecutive(input: Tensor, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any: ...
def var(input: Tensor, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ..., out: Tensor | None = ...) -> Tensor: """The variance over all elements, or over the axes dim: the sum of squared deviations / (n - correction)."""
def var_mean(input: Tensor, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> tuple[Tensor, Tensor]: """(var(), mean())."""
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: """dot() with input conjugated."""
def vsplit(input: Tensor, indices_or_sections: Any = ..., *, indices: Any = ..., sections: builtins.int | None = ...) -> tuple[Tensor, ...]: """Views of parts along the first axis, into equal sections or cut before indices."""
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: """The tensors one below the other; vectors count as rows."""
@overload
def where(condition: Tensor, input: None = ..., other: None = ..., *, out: tuple[Tensor, ...] | None = ...) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: ...
def xlogy(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a * log(b), 0 where a is 0 and b no NaN. Integers become floats."""
def zeros(*shape: Any, size: Any = ..., dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Zeros, of the default dtype unless given."""
def zeros_like(input: Tensor, *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., memory_format: Any = ...) -> Tensor: """Zeros in the shape and dtype of input, on its device."""
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
i0_ = Tensor.i0_
igamma_ = Tensor.igamma_
igammac_ = Tensor.igammac_
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
