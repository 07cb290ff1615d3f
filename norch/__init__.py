"""norch: a deep-learning framework small enough to read in an afternoon and fast enough to keep.

This file only hands names on; the map of folders in README.md says where things live. What a program may do without
(layers, optimizers and so on) is imported when it is first asked for.
"""

from math import e, inf, nan, pi
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import _start as _start  # isort: skip  (the first, as it says)
from . import autograd
from ._handle import Size
from ._repr import set_printoptions
from ._threads import get_num_threads, set_num_threads
from .autograd import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from .autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from .autograd.anomaly import set_detect_anomaly as set_anomaly_enabled
from .autograd.grad_mode import inference_mode
from .create import (
    arange,
    as_tensor,
    asarray,
    empty,
    empty_like,
    empty_strided,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    logspace,
    ones,
    ones_like,
    scalar_tensor,
    tensor,
    tril_indices,
    triu_indices,
    zeros,
    zeros_like,
)
from .device import device, get_default_device, set_default_device
from .dtype import BY_NAME as _DTYPES
from .dtype import (
    bfloat16,
    can_cast,
    contiguous_format,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    memory_format,
    preserve_format,
    promote_types,
    set_default_dtype,
    short,
    uint8,
)
from .dtype import bool_ as bool  # noqa: A004
from .dtype import double as double
from .dtype import float_ as float  # noqa: A004
from .dtype import int_ as int  # noqa: A004
from .dtype import long as long
from .errors import (
    ArgumentError,
    BoundsError,
    DeviceError,
    DivisionError,
    DTypeError,
    Error,
    OutOfMemoryError,
    ShapeError,
)
from .ops.composed.diagonal import diag, diag_embed, diagflat, trace, tril, triu
from .ops.composed.distance import *  # noqa: F403
from .ops.composed.einsum import einsum
from .ops.composed.grid import *  # noqa: F403
from .ops.composed.order import *  # noqa: F403
from .ops.composed.pad import constant_pad_nd
from .ops.composed.pointwise import *  # noqa: F403
from .ops.composed.portable import *  # noqa: F403
from .ops.composed.products import *  # noqa: F403
from .ops.composed.shape import *  # noqa: F403
from .ops.composed.statistics import *  # noqa: F403
from .ops.copy import cat, clone, is_floating_point, result_type, stack
from .ops.getitem import index_put
from .ops.index import (
    argwhere,
    gather,
    index_add,
    index_copy,
    index_fill,
    index_reduce,
    index_select,
    masked_fill,
    masked_scatter,
    masked_select,
    nonzero,
    put,
    scatter,
    scatter_add,
    scatter_reduce,
    take,
    take_along_dim,
)
from .ops.matmul import bmm, dot, matmul, mm, mv, vdot
from .ops.norm import norm
from .ops.pointwise import *  # noqa: F403
from .ops.reduce import *  # noqa: F403
from .ops.scan import *  # noqa: F403
from .ops.softmax import log_softmax, softmax
from .ops.sort import *  # noqa: F403
from .ops.view import (
    as_strided,
    broadcast_to,
    diagonal,
    flatten,
    narrow,
    permute,
    reshape,
    select,
    squeeze,
    t,
    transpose,
    unsqueeze,
)
from .random import (
    Generator,
    bernoulli,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    multinomial,
    normal,
    poisson,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
)
from .tensor import Tensor, is_nonzero, is_tensor, numel

__version__ = "0.1.0"
newaxis = None

# Methods of Tensor that PyTorch has as functions too, beside all that work in place.
_METHODS = frozenset("conj detach get_device is_complex is_conj is_inference is_neg resolve_conj resolve_neg".split())

# Modules that are imported when they are first asked for, and what is found in one of them.
_LATER = frozenset("backends cuda distributions func legacy linalg memory nn optim serialization testing utils".split())
_FOUND_IN = {
    "nn.functional": "celu celu_ rrelu rrelu_ selu selu_ threshold threshold_ alpha_dropout dropout channel_shuffle "
    "pixel_shuffle pixel_unshuffle conv1d conv2d conv_transpose1d conv_transpose2d group_norm layer_norm rms_norm "
    "adaptive_avg_pool1d avg_pool1d max_pool1d max_pool2d",
    "serialization": "load save",
    "func": "vmap",
    "backends": "are_deterministic_algorithms_enabled get_float32_matmul_precision set_float32_matmul_precision "
    "use_deterministic_algorithms",
    "legacy": "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor "
    "LongTensor ShortTensor",
}
_PLACES = {name: place for place, names in _FOUND_IN.items() for name in names.split()}

globals().update(_DTYPES)  # all of the table; the names above are for type checkers

if _TYPE_CHECKING:
    from . import cuda, distributions, func, linalg, memory, nn, optim, utils
    from .func import vmap
    from .nn.functional import celu, celu_, rrelu, rrelu_, selu, selu_, threshold, threshold_
    from .serialization import load, save


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_PLACES})


def __getattr__(name: str) -> _Any:
    if name in _LATER or name in _PLACES:
        from importlib import import_module

        module = import_module("." + _PLACES.get(name, name), __name__)
        return getattr(module, name) if name in _PLACES else module
    if (name in _METHODS or name.endswith("_")) and name[0] != "_" and hasattr(Tensor, name):
        return getattr(Tensor, name)
    from . import _left_out

    raise _left_out.missing(__name__, name)
