"""norch: a deep-learning framework small enough to read in an afternoon and fast enough to keep.

This file only hands names on; the map of folders in README.md says where things live.
"""

from . import autograd, cuda, nn, optim, utils
from ._threads import get_num_threads, set_num_threads
from .autograd import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from .create import (
    arange,
    as_tensor,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from .device import device
from .dtype import bool_ as bool  # noqa: A004
from .dtype import double as double
from .dtype import (
    dtype,
    float32,
    float64,
    get_default_dtype,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
)
from .dtype import float_ as float  # noqa: A004
from .dtype import int_ as int  # noqa: A004
from .dtype import long as long
from .errors import ArgumentError, DeviceError, DTypeError, Error, ShapeError
from .ops.copy import cat, clone, stack
from .ops.index import gather, index_add, index_select, scatter_add
from .ops.matmul import bmm, dot, matmul, mm, mv
from .ops.pointwise import (
    abs,  # noqa: A004
    acos,
    acosh,
    add,
    allclose,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    ceil,
    clamp,
    cos,
    cosh,
    div,
    eq,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    ge,
    gt,
    isclose,
    isfinite,
    isinf,
    isnan,
    le,
    log,
    log1p,
    log2,
    log10,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    pow,  # noqa: A004
    reciprocal,
    relu,
    remainder,
    round,  # noqa: A004
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    sub,
    tan,
    tanh,
    true_divide,
    trunc,
    where,
)
from .ops.reduce import (
    all,  # noqa: A004
    amax,
    amin,
    any,  # noqa: A004
    argmax,
    argmin,
    log_softmax,
    logsumexp,
    max,  # noqa: A004
    mean,
    min,  # noqa: A004
    prod,
    softmax,
    std,
    sum,  # noqa: A004
    var,
)
from .ops.view import (
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
    manual_seed,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
    seed,
)
from .tensor import Size, Tensor, is_tensor

__version__ = "0.1.0"
