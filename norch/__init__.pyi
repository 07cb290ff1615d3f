"""Written by `make stubs` from the code; a test fails when it is out of date."""

import builtins
from collections.abc import Sequence
from norch import accelerator as accelerator, amp as amp, array_api as array_api, autograd as autograd, backends as backends, compiler as compiler, cpu as cpu, cuda as cuda, distributed as distributed, distributions as distributions, errors as errors, fft as fft, func as func, fx as fx, hub as hub, jit as jit, linalg as linalg, memory as memory, multiprocessing as multiprocessing, nn as nn, onnx as onnx, optim as optim, overrides as overrides, profiler as profiler, quasirandom as quasirandom, random as random, serialization as serialization, sparse as sparse, special as special, storage as storage, testing as testing, utils as utils, version as version
from norch._binding.threads import get_num_threads as get_num_threads, set_num_threads as set_num_threads
from norch._package.typing import DTypeLike, DeviceLike, Operand
from norch._tensor.representation import set_printoptions as set_printoptions
from norch._tensor.size import Size as Size
from norch.amp.autocast_mode import autocast as autocast, clear_autocast_cache as clear_autocast_cache, get_autocast_dtype as get_autocast_dtype, is_autocast_cache_enabled as is_autocast_cache_enabled, is_autocast_enabled as is_autocast_enabled, set_autocast_cache_enabled as set_autocast_cache_enabled, set_autocast_dtype as set_autocast_dtype, set_autocast_enabled as set_autocast_enabled
from norch.amp.grad_scaler import GradScaler as GradScaler
from norch.autograd.anomaly import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled, is_anomaly_enabled as is_anomaly_enabled, set_detect_anomaly as _set_detect_anomaly
from norch.autograd.grad_mode import enable_grad as enable_grad, inference_mode as inference_mode, is_grad_enabled as is_grad_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled
from norch.backends import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled, get_float32_matmul_precision as get_float32_matmul_precision, set_float32_matmul_precision as set_float32_matmul_precision, use_deterministic_algorithms as use_deterministic_algorithms
from norch.compat.as_torch import as_torch as as_torch
from norch.compat.legacy import _TensorType
from norch.compat.typed_storage import TypedStorage as TypedStorage
from norch.device import device as device, get_default_device as get_default_device, set_default_device as set_default_device
from norch.dtype import can_cast as can_cast, dtype as dtype, finfo as finfo, get_default_dtype as get_default_dtype, iinfo as iinfo, memory_format as memory_format, promote_types as promote_types, set_default_dtype as set_default_dtype
from norch.errors import ArgumentError as ArgumentError, BoundsError as BoundsError, CaptureError as CaptureError, DTypeError as DTypeError, DeviceError as DeviceError, DivisionError as DivisionError, Error as Error, LinAlgError as LinAlgError, MetaError as MetaError, OutOfMemoryError as OutOfMemoryError, ShapeError as ShapeError
from norch.func import vmap as vmap
from norch.nn.functional._dropout import dropout as dropout
from norch.nn.functional._vision import channel_shuffle as channel_shuffle, pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle
from norch.nn.quantization import quantize as quantize
from norch.ops._results import aminmax_result, cummax_result, cummin_result, frexp_result, histogram_result, kthvalue_result, max_result, median_result, min_result, mode_result, nanmedian_result, sort_result, topk_result
from norch.ops.composed.activation import threshold as threshold
from norch.ops.composed.adaptive_pool import adaptive_avg_pool1d as adaptive_avg_pool1d
from norch.ops.composed.distance import cdist as cdist, cosine_similarity as cosine_similarity, pairwise_distance as pairwise_distance, pdist as pdist
from norch.ops.composed.grid import cartesian_prod as cartesian_prod, combinations as combinations, meshgrid as meshgrid, unravel_index as unravel_index, vander as vander
from norch.ops.composed.numeric import gradient as gradient
from norch.ops.composed.pointwise import rsub as rsub
from norch.ops.composed.products import bilinear as bilinear
from norch.ops.composed.shape import block_diag as block_diag, broadcast_shapes as broadcast_shapes, broadcast_tensors as broadcast_tensors
from norch.ops.composed.statistics import cumulative_trapezoid as cumulative_trapezoid, trapezoid as trapezoid
from norch.ops.composed.type_properties import typename as typename
from norch.ops.conv import Sizes
from norch.ops.linalg import factor, householder
from norch.ops.linalg.factor import lu_result
from norch.ops.linalg.solve import slogdet_result
from norch.ops.linalg.torch_names import svd_result, triangular_solve_result
from norch.ops.normalization import group_norm as group_norm, layer_norm as layer_norm, rms_norm as rms_norm
from norch.ops.pool import Sizes, avg_pool1d as avg_pool1d
from norch.ops.random import randint_like as randint_like
from norch.ops.reduce import Dims
from norch.ops.values import as_tensor as as_tensor, asarray as asarray, from_numpy as from_numpy, frombuffer as frombuffer, tensor as tensor
from norch.ops.view import Axes
from norch.overrides import DisableTorchFunction as DisableTorchFunction, DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from norch.program.captured import capture as capture
from norch.program.compiled import compile as compile
from norch.random import Generator as Generator, get_rng_state as get_rng_state, initial_seed as initial_seed, manual_seed as manual_seed, seed as seed, set_rng_state as set_rng_state
from norch.serialization import load as load, save as save
from norch.sparse import spmm as spmm
from norch.sparse.coo import sparse_coo_tensor as sparse_coo_tensor
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
def add(input: Operand, other: Operand, second: Any = ..., *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor: """input + alpha * other; add(input, alpha, other) is an older form."""
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: builtins.complex = ..., alpha: builtins.complex = ..., out: Tensor | None = ...) -> Tensor: """beta * input + alpha * the sum of the products of all pairs of matrices, as addmm()."""
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, third: Any = ..., *, value: Any = ..., out: Tensor | None = ...) -> Tensor: """input + value * tensor1 / tensor2, floats; addcdiv(input, value, tensor1, tensor2) is an older form."""
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, third: Any = ..., *, value: Any = ..., out: Tensor | None = ...) -> Tensor: """input + value * tensor1 * tensor2; addcmul(input, value, tensor1, tensor2) is an older form."""
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: builtins.complex = ..., alpha: builtins.complex = ..., out: Tensor | None = ...) -> Tensor: """beta * input + alpha * (mat1 @ mat2); input broadcasts to the product. What has the factor 0 is not read, so that its NaNs are none of the result's; but for baddbmm() and addr(), of which this holds for beta only."""
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: builtins.complex = ..., alpha: builtins.complex = ..., out: Tensor | None = ...) -> Tensor: """beta * input + alpha * (mat @ vec), as addmm()."""
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: builtins.complex = ..., alpha: builtins.complex = ..., out: Tensor | None = ...) -> Tensor: """beta * input + alpha * outer(vec1, vec2), as addmm(); dtypes are promoted."""
def adjoint(input: Tensor) -> Tensor: """The conjugate transpose of the last two axes, as mH; a view as mT where the numbers are real."""
def all(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """Whether every element is non-zero, over all or the axes dim. uint8 gives uint8."""
def allclose(input: Tensor, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> builtins.bool: """Whether all of isclose."""
def alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor: """Dropout that keeps mean 0 and variance 1 of the output of selu(): dropped elements take the limit of selu() at -inf, and the result is scaled and shifted (Klambauer et al. 2017)."""
def amax(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """The largest element, over all or the axes dim; NaN wins. Equal ones share the gradient (NaN beside a NaN)."""
def amin(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """The smallest element, over all or the axes dim; NaN wins. Equal ones share the gradient (NaN beside a NaN)."""
def aminmax(input: Tensor, *, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., out: tuple[Tensor, ...] | None = ...) -> aminmax_result: """(min, max): amin() and amax(), of all or over the axis dim."""
def angle(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The angle in radians, in (-pi, pi]: atan2 of the parts; of a real number 0 or pi, and NaN of NaN."""
def any(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """Whether one element is non-zero, over all or the axes dim. uint8 gives uint8."""
def arange(start: Tensor | builtins.float = ..., end: Tensor | builtins.float | None = ..., step: Tensor | builtins.float = ..., *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """start, start + step ... up to end, which is excluded. int64 where all three are integers, else the default dtype."""
def arccos(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Arc cosine in radians; NaN outside [-1, 1]."""
def arccosh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Inverse hyperbolic cosine; NaN below 1."""
def arcsin(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Arc sine in radians; NaN outside [-1, 1]."""
def arcsinh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Inverse hyperbolic sine."""
def arctan(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Arc tangent in radians."""
def arctan2(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """The angle of the point (b, a) in radians, in (-pi, pi]."""
def arctanh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
def argmax(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """The index (int64) of the largest element along dim, or in the flattened tensor; the first of equals."""
def argmin(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """The index (int64) of the smallest element along dim, or in the flattened tensor; the first of equals."""
def argsort(input: Tensor, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool = ...) -> Tensor: """The indices of sort()."""
def argwhere(input: Tensor) -> Tensor: """The indices of all elements that are not 0, one row for each."""
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: builtins.int | None = ...) -> Tensor: """The storage of input in any shape and strides (in elements), which must stay inside it; ArgumentError otherwise."""
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: builtins.int | None = ...) -> Tensor: """A copy of input whose elements that as_strided(size, stride, storage_offset) would show are those of src."""
def asin(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Arc sine in radians; NaN outside [-1, 1]."""
def asinh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Inverse hyperbolic sine."""
def atan(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Arc tangent in radians."""
def atan2(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """The angle of the point (b, a) in radians, in (-pi, pi]."""
def atanh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Any: """Views with at least 1 axes: of one tensor, or a tuple of those of several."""
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Any: """Views with at least 2 axes: of one tensor, or a tuple of those of several."""
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Any: """Views with at least 3 axes: of one tensor, or a tuple of those of several."""
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: builtins.complex = ..., alpha: builtins.complex = ..., out: Tensor | None = ...) -> Tensor: """beta * input + alpha * (batch1 @ batch2) for batches of matrices, as addmm()."""
def bartlett_window(window_length: builtins.int, periodic: builtins.bool = ..., *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ...) -> Tensor: """A triangle from 0 over 1 back to 0. periodic: without the last element of a window of one more, for stft()."""
def bernoulli(input: Tensor, p: builtins.float | Tensor | None = ..., *, generator: Generator | None = ..., out: Tensor | None = ...) -> Tensor: """Draws 1 with the probability in each element of input, or with probability p in the shape of input; else 0."""
bfloat16: dtype
def bincount(input: Tensor, weights: Tensor | None = ..., minlength: builtins.int = ...) -> Tensor: """How often each of 0, 1, ... occurs in input, a vector of integers that are not negative: at least minlength counts."""
def bitwise_and(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a & b, for integers and bool."""
def bitwise_left_shift(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a * 2**b modulo the size of the integer; 0 where b < 0."""
def bitwise_not(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Each bit inverted; for bool, logical not."""
def bitwise_or(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a | b, for integers and bool."""
def bitwise_right_shift(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a / 2**b rounded down; for b < 0 its sign: 0 or -1."""
def bitwise_xor(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a ^ b, for integers and bool."""
def blackman_window(window_length: builtins.int, periodic: builtins.bool = ..., *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ...) -> Tensor: """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N). periodic: as for bartlett_window()."""
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = ...) -> Tensor: """Products of matrices pair by pair, (B, M, K) and (B, K, N)."""
bool: dtype
def broadcast_to(input: Tensor, *sizes_: Any, size: Any = ...) -> Tensor: """input.expand(size)."""
def bucketize(input: Tensor, boundaries: Tensor, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """searchsorted() of input among 1-d boundaries."""
def cat(tensors: Sequence[Tensor], dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor: """The tensors joined along dim (NumPy's name: axis); all other sizes must agree, and dtypes are promoted."""
cdouble: dtype
def ceil(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The smallest integer not below x."""
def celu(input: Tensor, alpha: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor: """x if x > 0, else alpha * (exp(x / alpha) - 1) (Barron 2017). Floats only; DivisionError if alpha is 0."""
def celu_(input: Tensor, alpha: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor: """celu() in place."""
cfloat: dtype
def chain_matmul(*matrices: Tensor, out: Tensor | None = ...) -> Tensor: """The product of several matrices, multiplied in the order that costs least."""
channels_last: memory_format
channels_last_3d: memory_format
def cholesky(input: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """linalg.cholesky() of symmetric positive definite matrices (..., N, N)."""
def cholesky_inverse(input: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """The inverse of A = L L^H, or of L^H L with upper, given L, input (..., N, N)."""
def cholesky_solve(input: Tensor, input2: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """X of A X = input, (..., N, K), given L, input2 (..., N, N), with A = L L^H, or A = L^H L with upper."""
def chunk(input: Tensor, chunks: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]: """Views of at most chunks parts along dim, all of one size but the last."""
def clamp(input: Tensor, min: Operand | None = ..., max: Operand | None = ..., *, out: Tensor | None = ...) -> Tensor: """input limited to [min, max], which are numbers or tensors; NaN stays. With min above max, max."""
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = ...) -> Tensor: """input, at most max (a number or a tensor); NaN stays."""
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = ...) -> Tensor: """input, at least min (a number or a tensor); NaN stays."""
def clip(input: Tensor, min: Operand | None = ..., max: Operand | None = ..., *, out: Tensor | None = ...) -> Tensor: """input limited to [min, max], which are numbers or tensors; NaN stays. With min above max, max."""
def clone(input: Tensor, *, memory_format: Any = ...) -> Tensor: """A copy, C-ordered; the gradient passes through."""
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: """The tensors joined along the second axis; vectors count as columns."""
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = ...) -> Tensor: """real + i imag, of two tensors of one dtype, float32 or float64, which are broadcast."""
complex128: dtype
complex64: dtype
def concat(tensors: Sequence[Tensor], dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor: """The tensors joined along dim (NumPy's name: axis); all other sizes must agree, and dtypes are promoted."""
def concatenate(tensors: Sequence[Tensor], dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor: """The tensors joined along dim (NumPy's name: axis); all other sizes must agree, and dtypes are promoted."""
def conj(input: Tensor) -> Tensor: """The complex conjugates, a new tensor; a real tensor itself."""
def conj_physical(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """conj(), which computes at once."""
def constant_pad_nd(input: Tensor, pad: Sequence[builtins.int], value: builtins.float = ...) -> Tensor: """pad(input, pad, "constant", value)."""
contiguous_format: memory_format
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes | str = ..., dilation: Sizes = ..., groups: builtins.int = ...) -> Tensor: """input (N, C, L) or (C, L) with weight (O, C / groups, K) and bias (O): (N, O, L') or (O, L')."""
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes | str = ..., dilation: Sizes = ..., groups: builtins.int = ...) -> Tensor: """input (N, C, H, W) or (C, H, W) with weight (O, C / groups, KH, KW) and bias (O); otherwise as conv1d."""
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes | str = ..., dilation: Sizes = ..., groups: builtins.int = ...) -> Tensor: """input (N, C, D, H, W) or (C, D, H, W) with weight (O, C / groups, KD, KH, KW) and bias (O); otherwise as conv1d. While it runs it takes KD times the memory of input."""
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes = ..., output_padding: Sizes = ..., groups: builtins.int = ..., dilation: Sizes = ...) -> Tensor: """The adjoint of conv1d: input (N, C, L) with weight (C, O / groups, K) and bias (O) gives (N, O, L')."""
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes = ..., output_padding: Sizes = ..., groups: builtins.int = ..., dilation: Sizes = ...) -> Tensor: """The adjoint of conv2d: input (N, C, H, W) with weight (C, O / groups, KH, KW) and bias (O)."""
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes = ..., output_padding: Sizes = ..., groups: builtins.int = ..., dilation: Sizes = ...) -> Tensor: """The adjoint of conv3d: input (N, C, D, H, W) with weight (C, O / groups, KD, KH, KW) and bias (O)."""
def copysign(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """|a| with the sign of b. Integers become floats."""
def corrcoef(input: Tensor) -> Tensor: """The correlations of variables, one in each row: cov() divided by their standard deviations, and limited to [-1, 1] (complex: both parts)."""
def cos(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Cosine of x radians. Integers become floats."""
def cosh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Hyperbolic cosine. Integers become floats."""
def count_nonzero(input: Tensor, dim: Dims = ...) -> Tensor: """How many elements are not 0 (int64), of all or over the axes dim."""
def cov(input: Tensor, *, correction: builtins.float = ..., fweights: Tensor | None = ..., aweights: Tensor | None = ...) -> Tensor: """The covariances of variables over observations: each row of input is a variable (a vector is one), each column an observation. Of complex variables the second is conjugated."""
def cross(input: Tensor, other: Tensor, dim: builtins.int | None = ..., *, out: Tensor | None = ...) -> Tensor: """The cross product of vectors of three elements along dim (default: the first axis of size 3)."""
def cummax(input: Tensor, dim: builtins.int, *, out: tuple[Tensor, ...] | None = ...) -> cummax_result: """The largest element so far along dim, and its index (the last of equals): (values, indices). NaN wins."""
def cummin(input: Tensor, dim: builtins.int, *, out: tuple[Tensor, ...] | None = ...) -> cummin_result: """The smallest element so far along dim, and its index (the last of equals): (values, indices). NaN wins."""
def cumprod(input: Tensor, dim: builtins.int, *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The products of all elements up to each along dim. Integers and bool multiply in int64, or in dtype."""
def cumsum(input: Tensor, dim: builtins.int, *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The sums of all elements up to each along dim. Integers and bool add up in int64, or in dtype."""
default_generator: Generator
def deg2rad(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Degrees as radians. Integers become floats."""
def det(input: Tensor) -> Tensor: """linalg.det()."""
def diag(input: Tensor, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor: """The matrix with a vector on a diagonal, or a copy of the diagonal of a matrix."""
def diag_embed(input: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor: """Matrices, in the axes dim1 and dim2, whose diagonals are the last axis; zeros elsewhere."""
def diagflat(input: Tensor, offset: builtins.int = ...) -> Tensor: """The matrix with all elements on a diagonal."""
def diagonal(input: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor: """The diagonal of two axes as the last axis, offset above the main diagonal (negative: below)."""
def diagonal_scatter(input: Tensor, src: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor: """A copy of input whose diagonal is src."""
def diff(input: Tensor, n: builtins.int = ..., dim: builtins.int = ..., prepend: Tensor | None = ..., append: Tensor | None = ..., *, out: Tensor | None = ...) -> Tensor: """Each element minus the one before it along dim, repeated n times; for bool, whether they differ."""
def digamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Derivative of lgamma; NaN at negative integers."""
def dist(input: Tensor, other: Tensor, p: builtins.float = ...) -> Tensor: """The p-norm of input - other, a number: sum(|input - other|**p)**(1/p). Floats and complex numbers only."""
def div(input: Tensor, other: Operand, *, rounding_mode: str | None = ..., out: Tensor | None = ...) -> Tensor: """input / other as floats; with rounding_mode "floor" or "trunc" rounded, integers staying integers."""
def divide(input: Tensor, other: Operand, *, rounding_mode: str | None = ..., out: Tensor | None = ...) -> Tensor: """input / other as floats; with rounding_mode "floor" or "trunc" rounded, integers staying integers."""
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = ...) -> Tensor: """The sum of the products of two vectors of the same size."""
double: dtype
dsmm = spmm
def dsplit(input: Tensor, indices_or_sections: Any = ..., *, indices: Any = ..., sections: builtins.int | None = ...) -> tuple[Tensor, ...]: """Views of parts along the third axis, into equal sections or cut before indices."""
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: """The tensors joined along the third axis."""
e: builtins.float
def einsum(equation: Any, *operands: Tensor | Any) -> Tensor: """The product of the operands' elements, summed over all labels that the output lacks."""
def empty(*shape: Any, size: Any = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., memory_format: Any = ..., out: Tensor | None = ...) -> Tensor: """A tensor of undefined elements: whatever the memory held."""
def empty_like(input: Tensor, *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., memory_format: Any = ...) -> Tensor: """Undefined elements in the shape and dtype of input, on its device."""
def empty_strided(size: Any, stride: Any, *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ...) -> Tensor: """A tensor of undefined elements with the given strides, which must not be negative."""
def eq(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a == b."""
def equal(input: Tensor, other: Tensor) -> builtins.bool: """Whether both have the same shape and the same elements; NaN equals nothing."""
def erf(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Error function: 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x."""
def erfc(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """1 - erf(x)."""
def erfinv(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The number whose erf is x; infinite at -1 and 1, NaN beyond."""
def exp(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """e**x. Integers become floats."""
def exp2(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """2**x. Integers become floats."""
def expm1(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """e**x - 1, exact near 0. Integers become floats."""
def eye(n: builtins.int, m: builtins.int | None = ..., *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """An (n, m) matrix with ones on its diagonal; m is n unless given."""
def fill(input: Tensor, value: Any) -> Tensor: """A copy of input with every element set to value, a number or a 0-d tensor."""
def fix(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """x without its fraction."""
def flatten(input: Tensor, start_dim: builtins.int = ..., end_dim: builtins.int = ...) -> Tensor: """The axes from start_dim to end_dim as one."""
def flip(input: Tensor, *dims_: Any, dims: Any = ...) -> Tensor: """A copy with the order along these axes reversed; x[::-1] is the view."""
def fliplr(input: Tensor) -> Tensor: """flip(input, 1)."""
def flipud(input: Tensor) -> Tensor: """flip(input, 0)."""
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
def full(size: Any, fill_value: Operand, *, dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """A tensor of one value. Its dtype follows the value unless given: int64 for an integer, bool for a bool."""
def full_like(input: Tensor, fill_value: builtins.float, *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., memory_format: Any = ...) -> Tensor: """fill_value in the shape and dtype of input, on its device, with its strides where input is dense in memory."""
def gather(input: Tensor, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """out[i][j] = x[index[i][j]][j] for dim 0, likewise for the others; the result has the shape of index (integers)."""
def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: """The greatest common divisors of integers, not negative; gcd(0, 0) is 0. By Euclid's algorithm."""
def ge(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a >= b."""
def geqrf(input: Tensor, *, out: tuple[Tensor, ...] | None = ...) -> householder.geqrf_result: """(a, tau) of the QR decomposition of input (..., M, N): R in the upper triangle of a, and below it the reflections whose product is Q, with the factors tau. householder_product() and ormqr() take both; linalg.qr() gives Q and R."""
def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = ...) -> Tensor: """out[i][j] = input[i] * vec2[j] for two vectors."""
def greater(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a > b."""
def greater_equal(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a >= b."""
def gt(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a > b."""
half: dtype
def hamming_window(window_length: builtins.int, periodic: builtins.bool = ..., alpha: builtins.float = ..., beta: builtins.float = ..., *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ...) -> Tensor: """alpha - beta cos(2 pi n / N). periodic: as for bartlett_window()."""
def hann_window(window_length: builtins.int, periodic: builtins.bool = ..., *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ...) -> Tensor: """sin^2(pi n / N). periodic: as for bartlett_window()."""
def hardshrink(input: Tensor, lambd: builtins.float = ..., *, out: Tensor | None = ...) -> Tensor: """input, but 0 where |input| <= lambd. Floats only."""
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = ...) -> Tensor: """0 where input is negative, 1 where it is positive, and values where it is 0 (as in PyTorch 0 for NaN)."""
def histc(input: Tensor, bins: builtins.int = ..., min: builtins.float = ..., max: builtins.float = ..., *, out: Tensor | None = ...) -> Tensor: """How many elements lie in each of `bins` equal parts of [min, max], in the dtype of input, a float."""
def histogram(input: Tensor, bins: Any = ..., *, range: Any = ..., weight: Any = ..., density: builtins.bool = ..., out: tuple[Tensor, ...] | None = ...) -> histogram_result: """(hist, bin_edges): the sums of the weights (None: 1) of the elements in each bin, and the edges of the bins."""
def hsplit(input: Tensor, indices_or_sections: Any = ..., *, indices: Any = ..., sections: builtins.int | None = ...) -> tuple[Tensor, ...]: """Views of parts along the second axis (the first of a vector), into equal sections or cut before indices."""
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: """The tensors joined along the second axis (vectors: along the first)."""
def hypot(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """sqrt(a * a + b * b), without overflow on the way. Floats only."""
def i0(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The modified Bessel function of the first kind, of order 0. Integers become floats."""
def igamma(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Regularised lower incomplete gamma function P(a, x), in [0, 1]; NaN where an argument is negative. Differentiable by x."""
def igammac(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), exact where small. Differentiable by x."""
def imag(input: Tensor) -> Tensor: """The imaginary parts, a view. DTypeError for a real tensor."""
def index_add(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor: """A copy of x with alpha times the parts of source added to the parts at the given indices (1-d) of an axis."""
def index_copy(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, *, out: Tensor | None = ...) -> Tensor: """A copy of x with the parts at the indices (1-d) of an axis replaced by those of source."""
def index_fill(input: Tensor, dim: builtins.int, index: Tensor, value: Operand) -> Tensor: """A copy of x whose parts at the given indices (1-d) of an axis are value, a number or a 0-d tensor."""
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: builtins.bool = ...) -> Tensor: """index_put_() into a copy."""
def index_reduce(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, reduce: str, *, include_self: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """A copy of x with the parts of source reduced into the parts at the given indices (1-d) of an axis, by "prod", "mean", "amax" or "amin"; include_self says whether x's own parts take part."""
def index_select(input: Tensor, dim: builtins.int, index: Tensor, *, out: Tensor | None = ...) -> Tensor: """The parts of x at the given indices (1-d) of an axis, in their order."""
inf: builtins.float
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: """The sum of products over the last axis of both; with a number, or a tensor of no axis, the product."""
int: dtype
int16: dtype
int32: dtype
int64: dtype
int8: dtype
def inverse(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """linalg.inv()."""
def is_complex(input: Tensor) -> builtins.bool: """Whether the dtype of a tensor is complex."""
def is_floating_point(input: Tensor) -> builtins.bool: """Whether the dtype of a tensor is a float."""
def is_nonzero(input: Tensor) -> builtins.bool: """Whether the only element is not zero; ValueError where there is not exactly one."""
def is_same_size(input: Tensor, other: Tensor) -> builtins.bool: """Whether two tensors have one shape."""
def is_signed(input: Tensor) -> builtins.bool: """Whether the dtype has negative numbers."""
def isclose(input: Tensor, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> Tensor: """Where |input - other| <= atol + rtol * |other|."""
def isfinite(input: Tensor) -> Tensor: """Where x is neither infinite nor NaN."""
def isin(elements: Operand, test_elements: Tensor, *, assume_unique: builtins.bool = ..., invert: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Whether each element is among test_elements; with invert, whether it is not. Either may be a number."""
def isinf(input: Tensor) -> Tensor: """Where x is infinite."""
def isnan(input: Tensor) -> Tensor: """Where x is NaN."""
def isneginf(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Where input is -inf."""
def isposinf(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Where input is +inf."""
def isreal(input: Tensor) -> Tensor: """Where the imaginary part is 0: everywhere in a real tensor."""
def istft(input: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., length: builtins.int | None = ..., return_complex: builtins.bool = ...) -> Tensor: """The signal (L) or (B, L) of which stft() with these arguments gives input, complex, as near as there is one."""
def kaiser_window(window_length: builtins.int, periodic: builtins.bool = ..., beta: builtins.float = ..., *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ...) -> Tensor: """i0(beta sqrt(1 - (2 n / N - 1)^2)) / i0(beta). periodic: as for bartlett_window()."""
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: """The Kronecker product: every element of input times all of other, block by block along each axis."""
def kthvalue(input: Tensor, k: builtins.int, dim: builtins.int = ..., keepdim: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> kthvalue_result: """The k-th smallest element along dim, the first for k = 1, and its index: (values, indices). NaN is the largest."""
def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: """The least common multiples of integers, not negative; 0 where either is 0."""
def ldexp(input: Tensor, other: Operand, *, out: Tensor | None = ...) -> Tensor: """input * 2**other, as floats; in the dtype of input where other holds integers."""
def le(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a <= b."""
def lerp(input: Tensor, end: Tensor, weight: Operand, *, out: Tensor | None = ...) -> Tensor: """input + weight * (end - input): from input, at weight 0, to end, at weight 1. Floats only."""
def less(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a < b."""
def less_equal(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a <= b."""
def lgamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Logarithm of the absolute value of the gamma function."""
def linspace(start: Operand, end: Operand, steps: builtins.int, *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """steps evenly spaced numbers from start to end, both included."""
def lobpcg(A: Tensor, k: builtins.int | None = ..., B: Tensor | None = ..., X: Tensor | None = ..., n: builtins.int | None = ..., iK: Tensor | None = ..., niter: builtins.int | None = ..., tol: builtins.float | None = ..., largest: builtins.bool | None = ..., method: str | None = ..., tracker: None = ..., ortho_iparams: dict[str, builtins.int] | None = ..., ortho_fparams: dict[str, builtins.float] | None = ..., ortho_bparams: dict[str, builtins.bool] | None = ...) -> tuple[Tensor, Tensor]: """The k largest eigenvalues E (..., k), in descending order, and vectors (..., m, k) of A x = E B x for symmetric A (..., m, m) and positive definite B (None: I); the smallest, in ascending order, with largest=False. B-orthonormal vectors are returned."""
def log(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Natural logarithm; -inf at 0, NaN below. Integers become floats."""
def log10(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Logarithm to base 10. Integers become floats."""
def log1p(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """log(1 + x), exact near 0. Integers become floats."""
def log2(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Logarithm to base 2. Integers become floats."""
def log_softmax(input: Tensor, dim: builtins.int, dtype: dtype | None = ..., *, out: Tensor | None = ...) -> Tensor: """The logarithms of probabilities that sum to 1 along dim: x - logsumexp(x), exact for large x too."""
def logaddexp(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """log(e**a + e**b), without overflow. Floats and complex numbers."""
def logaddexp2(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """log2(2**a + 2**b), without overflow. Floats only."""
def logcumsumexp(input: Tensor, dim: builtins.int, *, out: Tensor | None = ...) -> Tensor: """log(cumsum(exp(x))) along dim, without overflow. Floats and complex numbers, of which each sum takes calls of its own."""
def logdet(input: Tensor) -> Tensor: """The logarithm of det(): NaN where that is negative, -inf where it is 0."""
def logical_and(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where both are non-zero."""
def logical_not(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Where x is 0 or False."""
def logical_or(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where one is non-zero."""
def logical_xor(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where exactly one is non-zero."""
def logit(input: Tensor, eps: builtins.float | None = ..., *, out: Tensor | None = ...) -> Tensor: """log(x / (1 - x)), the inverse of sigmoid; with eps, x is first limited to [eps, 1 - eps]."""
def logspace(start: builtins.float, end: builtins.float, steps: builtins.int, base: builtins.float = ..., *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """base to the power of linspace(start, end, steps)."""
def logsumexp(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """log(sum(exp(x))) over all elements or the axes dim, without overflow. Integers become floats."""
long: dtype
def lt(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a < b."""
def lu(A: Tensor, pivot: builtins.bool = ..., get_infos: builtins.bool = ...) -> tuple[Tensor, ...]: """linalg.lu_factor(): (LU, pivots), and info with get_infos."""
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = ...) -> Tensor: """linalg.lu_solve() with the right side first."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: builtins.bool = ..., unpack_pivots: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> lu_result: """(P, L, U) of what lu_factor() gave; P is empty without unpack_pivots, L and U without unpack_data."""
def masked_fill(input: Tensor, mask: Tensor, value: Operand) -> Tensor: """value, a number or a 0-d tensor, where mask (bool) holds, x elsewhere; x and mask broadcast."""
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor: """A copy of x (broadcast with mask) in which the first elements of source replace those where mask (bool) holds."""
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = ...) -> Tensor: """The elements of x where mask (bool) holds, in one axis; x and mask broadcast."""
def matmul(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """The matrix product by NumPy's rules: vectors, matrices, and batches that broadcast."""
def matrix_exp(input: Tensor) -> Tensor: """linalg.matrix_exp()."""
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
def moveaxis(input: Tensor, source: Axes, destination: Axes) -> Tensor: """The axes of source at the positions of destination; the others keep their order."""
def movedim(input: Tensor, source: Axes, destination: Axes) -> Tensor: """The axes of source at the positions of destination; the others keep their order."""
def msort(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The values of sort() along the first axis."""
def mul(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a * b."""
def multinomial(input: Tensor, num_samples: builtins.int, replacement: builtins.bool = ..., *, generator: Generator | None = ..., out: Tensor | None = ...) -> Tensor: """Draws num_samples categories, int64, from each row of weights, which are not negative and need not sum to 1."""
def multiply(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a * b."""
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = ...) -> Tensor: """A matrix (M, K) times a vector (K)."""
def mvlgamma(input: Tensor, p: builtins.int, *, out: Tensor | None = ...) -> Tensor: """The logarithm of the multivariate gamma function of dimension p. Integers become floats."""
nan: builtins.float
def nan_to_num(input: Tensor, nan: builtins.float | None = ..., posinf: builtins.float | None = ..., neginf: builtins.float | None = ..., *, out: Tensor | None = ...) -> Tensor: """input with numbers in place of NaN and infinities: by default 0, and the dtype's largest and smallest number."""
def nanmean(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The mean of the elements that are not NaN, over all or over the axes dim; NaN if there is none."""
@overload
def nanmedian(input: Tensor, dim: None = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: ...
@overload
def nanmedian(input: Tensor, dim: builtins.int, keepdim: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> nanmedian_result: ...
def nanquantile(input: Tensor, q: Operand, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ..., out: Tensor | None = ...) -> Tensor: """quantile() of the elements that are not NaN."""
def nansum(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The sum of the elements that are not NaN, over all or over the axes dim."""
def narrow(input: Tensor, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor: """length elements of an axis, from start on."""
def ne(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a != b."""
def neg(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """-x. Not for bool."""
def negative(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """-x. Not for bool."""
newaxis: None
def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: """The number of the dtype that comes next after input, towards other. Floats of one dtype."""
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = ..., out: Tensor | None = ...) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True], out: tuple[Tensor, ...] | None = ...) -> tuple[Tensor, ...]: ...
def norm(input: Tensor, p: Any = ..., dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The p-norm of all elements, or over the axes dim, taken as one vector; "fro" is 2."""
def normal(mean: Operand = ..., std: Operand = ..., size: Any = ..., *, generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Numbers drawn from normal distributions. mean and std are tensors, which broadcast, or two numbers with a size; in a complex dtype these are as in normal_()."""
def not_equal(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """Where a != b."""
def numel(input: Tensor) -> builtins.int: """The number of elements."""
def ones(*shape: Any, size: Any = ..., dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Ones, of the default dtype unless given."""
def ones_like(input: Tensor, *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., memory_format: Any = ...) -> Tensor: """Ones in the shape and dtype of input, on its device."""
def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = ...) -> Tensor: """linalg.householder_product()."""
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: builtins.bool = ..., transpose: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor: """Q input3, or input3 Q without left, of the Q that geqrf() gives as input and input2; of Q^H with transpose."""
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = ...) -> Tensor: """out[i][j] = input[i] * vec2[j] for two vectors."""
def pca_lowrank(A: Tensor, q: builtins.int | None = ..., center: builtins.bool = ..., niter: builtins.int = ...) -> svd_result: """svd_lowrank() of observations, the rows of A (..., m, n), less the means of the columns unless center=False: the columns of V are the principal directions. q: None means min(6, m, n)."""
def permute(input: Tensor, *dims_: Any, dims: Any = ...) -> Tensor: """The axes in another order."""
pi: builtins.float
def pinverse(input: Tensor, rcond: builtins.float = ...) -> Tensor: """linalg.pinv() with singular values up to rcond times the largest taken as 0."""
def poisson(input: Tensor, generator: Generator | None = ...) -> Tensor: """Numbers drawn from the Poisson distributions whose rates input holds, in its shape and dtype."""
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = ...) -> Tensor: """abs e**(i angle): complex numbers of absolute values and angles in radians."""
def polygamma(n: builtins.int, input: Tensor, *, out: Tensor | None = ...) -> Tensor: """The n-th derivative of digamma: (-1)**(n + 1) n! sum((input + k)**-(n + 1)). Integers become floats."""
def positive(input: Tensor) -> Tensor: """input itself. Not for bool."""
def pow(input: Operand, exponent: Operand, *, out: Tensor | None = ...) -> Tensor: """input ** exponent. Integers to a negative power raise ValueError; of bools True and False are the only powers."""
def prelu(input: Tensor, weight: Tensor) -> Tensor: """input, times weight where it is negative: one weight, or one for each channel (dimension 1) (He et al. 2015). Floats only."""
preserve_format: memory_format
def prod(input: Tensor, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The product over all elements, or over the axis dim. Integers and bool multiply in int64."""
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: builtins.bool = ...) -> Tensor: """put_() into a copy."""
def qr(input: Tensor, some: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> factor.qr_result: """linalg.qr(): "reduced", or "complete" without some."""
def quantile(input: Tensor, q: Operand, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ..., out: Tensor | None = ...) -> Tensor: """The q-th quantiles of all elements or along dim, NaN if there is a NaN; q is a number or a vector in [0, 1]."""
def rad2deg(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Radians as degrees. Integers become floats."""
def rand(*shape: Any, size: Any = ..., generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Numbers drawn uniformly from [0, 1)."""
def rand_like(input: Tensor, *, generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., memory_format: Any = ...) -> Tensor: """rand() in the shape and dtype of input, on its device."""
def randint(low: Any = ..., high: Any = ..., size: Any = ..., *, generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Integers drawn uniformly from [low, high), by default int64: randint(low, high, size) or randint(high, size)."""
def randn(*shape: Any, size: Any = ..., generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Numbers drawn from the normal distribution of mean 0 and variance 1."""
def randn_like(input: Tensor, *, generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., memory_format: Any = ...) -> Tensor: """randn() in the shape and dtype of input, on its device."""
def randperm(n: builtins.int, *, generator: Generator | None = ..., dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """The integers 0, 1, ... n - 1 in random order; int64 unless given."""
def ravel(input: Tensor) -> Tensor: """All elements in one axis: a view of a contiguous tensor, else a copy."""
def real(input: Tensor) -> Tensor: """The real parts, a view; of a real tensor the tensor itself."""
def reciprocal(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """1 / x. Integers become floats."""
def relu(input: Tensor) -> Tensor: """The larger of x and 0; NaN stays."""
def remainder(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a - b * floor(a / b): the sign of b. An integer divisor 0 raises."""
def renorm(input: Tensor, p: builtins.float, dim: builtins.int, maxnorm: builtins.float, *, out: Tensor | None = ...) -> Tensor: """input with each part along dim whose p-norm exceeds maxnorm scaled down to maxnorm. p is positive."""
def repeat_interleave(input: Tensor | None = ..., repeats: Operand | None = ..., dim: builtins.int | None = ..., *, output_size: builtins.int | None = ...) -> Tensor: """Each element along dim (without dim, of the flattened tensor), repeated as often as repeats says: one number, or one for each element."""
def reshape(input: Tensor, *sizes_: Any, shape: Any = ...) -> Tensor: """input in another shape of as many elements, one size may be -1: a view where the strides allow, else a copy."""
def result_type(*operands: Operand, **named: Any) -> dtype: """The dtype of the result of an operation on two tensors or numbers, whatever the names of the arguments."""
def roll(input: Tensor, shifts: Axes, dims: Axes = ...) -> Tensor: """A copy whose elements are moved by shifts along dims, from the end back to the front; without dims in the flattened tensor."""
def rot90(input: Tensor, k: builtins.int = ..., dims: Sequence[builtins.int] = ...) -> Tensor: """A copy rotated k times by 90 degrees in the plane of two axes, from the first towards the second."""
def round(input: Tensor, *, decimals: builtins.int = ..., out: Tensor | None = ...) -> Tensor: """input rounded to this many decimals (negative: to tens, hundreds ...), halves to the even digit."""
def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: """The tensors joined along the first axis; vectors count as rows."""
def rrelu(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor: """leaky_relu() with a random slope per element, uniform in [lower, upper), in training, and with the mean of both otherwise (Xu et al. 2015). Floats only."""
def rrelu_(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor: """rrelu() in place."""
def rsqrt(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """1 / sqrt(x). Integers become floats."""
def scalar_tensor(s: builtins.float, *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ...) -> Tensor: """A number as a 0-d tensor, of the default dtype unless given."""
def scatter(input: Tensor, dim: builtins.int, index: Tensor, src: Operand | None = ..., *, value: Any = ..., reduce: str | None = ..., out: Tensor | None = ...) -> Tensor: """A copy of x with out[index[i][j]][j] = src[i][j] for dim 0, likewise for the others; of several writes the last one stays."""
def scatter_add(input: Tensor, dim: builtins.int, index: Tensor, src: Operand, *, out: Tensor | None = ...) -> Tensor: """A copy of x with out[index[i][j]][j] += src[i][j] for dim 0, likewise for the others."""
def scatter_reduce(input: Tensor, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """A copy of x with src[i][j] reduced into out[index[i][j]][j] for dim 0 (likewise for the others), by "sum", "prod", "mean", "amax" or "amin"; include_self says whether x's own elements take part."""
def searchsorted(sorted_sequence: Tensor, input: Operand, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., side: str | None = ..., sorter: Tensor | None = ..., out: Tensor | None = ...) -> Tensor: """The index at which each value of input belongs in the sorted last axis of sorted_sequence: before equal elements (side "left") or after them ("right")."""
def select(input: Tensor, dim: builtins.int, index: builtins.int) -> Tensor: """The part at one index of an axis, without that axis; IndexError when out of range."""
def select_scatter(input: Tensor, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor: """A copy of input whose part select(dim, index) is src."""
def selu(input: Tensor, inplace: builtins.bool = ...) -> Tensor: """scale * elu(x, alpha), with constants that keep mean 0 and variance 1 (Klambauer et al. 2017). Floats only."""
def selu_(input: Tensor, inplace: builtins.bool = ...) -> Tensor: """selu() in place."""
set_anomaly_enabled = _set_detect_anomaly
def sgn(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """-1, 0 or 1 as sign(); of complex numbers x / |x|, 0 at 0."""
short: dtype
def sigmoid(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """1 / (1 + e**-x). Integers become floats."""
def sign(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """-1, 0 or 1; 0 for NaN."""
def signbit(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Where the sign is a minus, that of -0.0 too."""
def sin(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Sine of x radians. Integers become floats."""
def sinc(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """sin(pi x) / (pi x), 1 at 0. Integers become floats."""
def sinh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Hyperbolic sine. Integers become floats."""
def slice_scatter(input: Tensor, src: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor: """A copy of input whose part start:end:step along dim is src."""
def slogdet(input: Tensor) -> slogdet_result: """linalg.slogdet()."""
def softmax(input: Tensor, dim: builtins.int, dtype: dtype | None = ..., *, out: Tensor | None = ...) -> Tensor: """exp(x) over its sum along dim: probabilities that sum to 1, stable for large x. Integers become floats."""
def sort(input: Tensor, dim: builtins.int = ..., descending: builtins.bool = ..., stable: builtins.bool | None = ..., *, out: tuple[Tensor, ...] | None = ...) -> sort_result: """(values, indices) along dim in ascending or descending order; equal elements keep their order, and NaN is the greatest."""
def split(tensor: Tensor, split_size_or_sections: Any = ..., dim: builtins.int = ..., *, split_size: Any = ...) -> tuple[Tensor, ...]: """Views of parts of the same size along dim (the last may be smaller), or of the given sizes."""
def split_with_sizes(input: Tensor, split_sizes: Sequence[builtins.int], dim: builtins.int = ...) -> tuple[Tensor, ...]: """Views of parts of the given sizes along dim; the sizes must add up to its own."""
def sqrt(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Square root; NaN below 0. Integers become floats."""
def square(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """x * x."""
def squeeze(input: Tensor, dim: Any = ...) -> Tensor: """A view without the axes of size 1: without all of them, or those in dim."""
def stack(tensors: Sequence[Tensor], dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor: """Tensors of the same shape, joined along a new axis dim (NumPy's name: axis)."""
def std(input: Tensor, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ..., out: Tensor | None = ...) -> Tensor: """The standard deviation: the square root of var()."""
def std_mean(input: Tensor, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> tuple[Tensor, Tensor]: """(std(), mean())."""
def stft(input: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., pad_mode: str = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., return_complex: builtins.bool | None = ..., align_to_window: builtins.bool | None = ...) -> Tensor: """Fourier transforms of frames of n_fft elements of input (L) or (B, L), hop_length (n_fft // 4) apart."""
def sub(input: Operand, other: Operand, second: Any = ..., *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor: """input - alpha * other; sub(input, alpha, other) is an older form."""
def subtract(input: Operand, other: Operand, second: Any = ..., *, alpha: Any = ..., out: Tensor | None = ...) -> Tensor: """input - alpha * other; sub(input, alpha, other) is an older form."""
def sum(input: Tensor, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: dtype | None = ..., out: Tensor | None = ...) -> Tensor: """The sum over all elements, or over the axes dim. Integers and bool add up in int64."""
def svd(input: Tensor, some: builtins.bool = ..., compute_uv: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> svd_result: """(U, S, V) with input = U diag(S) V^H: linalg.svd() with V in place of V^H, reduced with some. Without compute_uv U and V are zeros."""
def svd_lowrank(A: Tensor, q: builtins.int | None = ..., niter: builtins.int | None = ..., M: Tensor | None = ...) -> svd_result: """(U, S, V) with A - M = U diag(S) V^H nearly, for the q largest singular values of matrices (..., m, n): U (..., m, q), S (..., q), V (..., n, q). M broadcasts to A (None: 0)."""
def swapaxes(input: Tensor, axis0: builtins.int, axis1: builtins.int) -> Tensor: """transpose(input, axis0, axis1)."""
def swapdims(input: Tensor, dim0: Any, dim1: builtins.int | None = ...) -> Tensor: """A view with two axes exchanged; or, as in NumPy, with all axes in the order of the sequence dim0."""
def t(input: Tensor) -> Tensor: """A view of a matrix, transposed; vectors and numbers are returned unchanged."""
def take(input: Tensor, index: Tensor, *, out: Tensor | None = ...) -> Tensor: """The elements of the flattened x at the given indices, in the shape of index."""
def take_along_dim(input: Tensor, indices: Tensor, dim: builtins.int | None = ..., *, out: Tensor | None = ...) -> Tensor: """gather() with the other axes broadcast and negative indices allowed; without dim in the flattened x."""
def tan(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Tangent of x radians. Integers become floats."""
def tanh(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """Hyperbolic tangent. Integers become floats."""
def tensor_split(input: Tensor, indices_or_sections: Any = ..., dim: builtins.int = ..., *, indices: Any = ..., sections: Any = ...) -> tuple[Tensor, ...]: """Views of parts along dim: cut before each of the given indices, or into so many parts, the first ones longer."""
def tensordot(a: Tensor, b: Tensor, dims: Any = ..., *, axes: Any = ..., out: Tensor | None = ...) -> Tensor: """The sum of products over some axes of a and as many of b; the result has the other axes, a's first."""
def threshold_(input: Tensor, threshold: builtins.float, value: builtins.float) -> Tensor: """threshold() in place."""
def tile(input: Tensor, *counts: Any, dims: Any = ...) -> Tensor: """repeat(), where missing numbers in front count as 1."""
def topk(input: Tensor, k: builtins.int, dim: builtins.int = ..., largest: builtins.bool = ..., sorted: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> topk_result: """The k largest (or smallest) elements along dim in order, and their indices: (values, indices)."""
def trace(input: Tensor) -> Tensor: """The sum over the diagonal of a matrix."""
def transpose(input: Tensor, dim0: Any, dim1: builtins.int | None = ...) -> Tensor: """A view with two axes exchanged; or, as in NumPy, with all axes in the order of the sequence dim0."""
trapz = trapezoid
def triangular_solve(input: Tensor, A: Tensor, upper: builtins.bool = ..., transpose: builtins.bool = ..., unitriangular: builtins.bool = ..., *, out: tuple[Tensor, ...] | None = ...) -> triangular_solve_result: """(solution, A) of A X = input, or A^T X = input with transpose; linalg.solve_triangular() has the other order."""
def tril(input: Tensor, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor: """The lower triangle of matrices, up to a diagonal; zeros above."""
def tril_indices(row: builtins.int, col: builtins.int, offset: builtins.int = ..., *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ...) -> Tensor: """Rows and columns, (2, N), of the lower triangle of a (row, col) matrix, row by row."""
def triu(input: Tensor, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor: """The upper triangle of matrices, from a diagonal on; zeros below."""
def triu_indices(row: builtins.int, col: builtins.int, offset: builtins.int = ..., *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ...) -> Tensor: """Rows and columns, (2, N), of the upper triangle of a (row, col) matrix, row by row."""
def true_divide(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a / b as floats."""
def trunc(input: Tensor, *, out: Tensor | None = ...) -> Tensor: """x without its fraction."""
uint8: dtype
def unbind(input: Tensor, dim: builtins.int = ...) -> tuple[Tensor, ...]: """Views of the parts along an axis, without that axis."""
def unflatten(input: Tensor, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor: """A view with one axis divided into several of the given sizes, one of which may be -1."""
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
def unsqueeze(input: Tensor, dim: builtins.int) -> Tensor: """With a new axis of size 1 at dim."""
def var(input: Tensor, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ..., out: Tensor | None = ...) -> Tensor: """The variance over all elements, or over the axes dim: the sum of squared deviations / (n - correction)."""
def var_mean(input: Tensor, dim: Dims = ..., unbiased: builtins.bool | None = ..., keepdim: builtins.bool = ..., *, correction: builtins.float | None = ...) -> tuple[Tensor, Tensor]: """(var(), mean())."""
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor: """dot() with input conjugated."""
def view_as_complex(input: Tensor) -> Tensor: """A view of pairs (..., 2) of float32 or float64 as complex numbers (...): the inverse of view_as_real()."""
def view_as_real(input: Tensor) -> Tensor: """A view of complex numbers (...) as their real and imaginary parts (..., 2). DTypeError for real tensors."""
def vsplit(input: Tensor, indices_or_sections: Any = ..., *, indices: Any = ..., sections: builtins.int | None = ...) -> tuple[Tensor, ...]: """Views of parts along the first axis, into equal sections or cut before indices."""
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = ...) -> Tensor: """The tensors joined along the first axis; vectors count as rows."""
@overload
def where(condition: Tensor, input: None = ..., other: None = ..., *, out: tuple[Tensor, ...] | None = ...) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: ...
def xlogy(input: Operand, other: Operand, *, out: Tensor | None = ...) -> Tensor: """a * log(b), 0 where a is 0 and b no NaN. Integers become floats."""
def zeros(*shape: Any, size: Any = ..., dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: """Zeros, of the default dtype unless given."""
def zeros_like(input: Tensor, *, dtype: dtype | None = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ..., layout: Any = ..., pin_memory: builtins.bool = ..., memory_format: Any = ...) -> Tensor: """Zeros in the shape and dtype of input, on its device."""
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
