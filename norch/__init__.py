"""norch: a small deep-learning framework with the names and semantics of PyTorch.

This file defines no operation: it gathers the public names. docs/architecture.md has the map of the folders. Modules
that a program may do without (layers, optimizers and so on) are imported when they are first asked for.
"""

from ._binding import start as _start  # isort: skip  (the first, as it says)

from math import e, inf, nan, pi

from . import autograd, ops
from ._package.exports import exported as _exported
from ._package.exports import publish as _publish
from ._package.typing import TYPE_CHECKING as _TYPE_CHECKING
from ._package.typing import Any as _Any
from ._tensor.metadata import numel
from ._tensor.protocols import is_nonzero
from ._tensor.size import Size
from .autograd import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from .autograd.grad_mode import inference_mode
from .device import device, get_default_device, set_default_device
from .dtype import *  # noqa: F403
from .dtype import BY_NAME as _DTYPES
from .dtype import bool_ as bool  # noqa: A004
from .dtype import float_ as float  # noqa: A004
from .dtype import int_ as int  # noqa: A004
from .errors import *  # noqa: F403
from .ops._deferred import FUNCTIONS as _DEFERRED
from .ops._public import function_of as _function_of
from .ops._public import is_operation as _is_operation
from .ops._public import publish_late as _publish_late
from .ops.copy import cat, clone, is_floating_point, result_type, stack
from .ops.create import *  # noqa: F403
from .ops.op import METHODS as _DECLARED
from .ops.pointwise import *  # noqa: F403
from .ops.sums import *  # noqa: F403
from .ops.values import as_tensor, asarray, from_numpy, frombuffer, tensor
from .ops.view import *  # noqa: F403
from .tensor import Tensor, is_tensor

__version__ = "0.2.0"
newaxis = None

# Methods of Tensor that PyTorch has as functions too, beside all that work in place.
_METHODS = frozenset("detach get_device is_conj is_inference is_neg resolve_conj resolve_neg".split())

# What is imported when it is asked for: public modules, and the names of a module.
_MODULES = (
    "__config__ accelerator amp array_api backends compiler cpu cuda distributed distributions errors fft func fx "
    "hub jit linalg memory multiprocessing nn onnx optim overrides profiler quasirandom random serialization sparse "
    "special storage testing utils version"
)
_LAZY = {
    ".": _MODULES,
    "._binding.threads": "get_num_threads set_num_threads",
    "._tensor.representation": "set_printoptions",
    ".autograd.anomaly": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
    **_DEFERRED,
    ".nn.functional": "celu celu_ rrelu rrelu_ selu selu_ threshold_ alpha_dropout dropout channel_shuffle "
    "pixel_shuffle pixel_unshuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d group_norm "
    "layer_norm rms_norm adaptive_avg_pool1d avg_pool1d max_pool1d max_pool2d max_pool3d",
    ".sparse": "dsmm spmm",
    ".sparse.compressed": "sparse_csc_tensor sparse_csr_tensor",
    ".sparse.coo": "sparse_coo_tensor",
    ".amp": "GradScaler autocast clear_autocast_cache get_autocast_dtype is_autocast_cache_enabled is_autocast_enabled "
    "set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled",
    ".random": "Generator default_generator get_rng_state initial_seed manual_seed seed set_rng_state",
    ".serialization": "load save",
    ".nn.quantization": "quantize",
    ".program": "capture compile",
    ".utils.dlpack": "from_dlpack to_dlpack",
    ".func": "vmap",
    ".overrides": "DisableTorchFunction DisableTorchFunctionSubclass",
    ".backends": "are_deterministic_algorithms_enabled get_float32_matmul_precision set_float32_matmul_precision "
    "use_deterministic_algorithms",
    ".compat.as_torch": "as_torch",
    ".compat.legacy": "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor "
    "LongTensor ShortTensor",
    ".compat.typed_storage": "TypedStorage UntypedStorage",
}

# What `import *` takes, too, of what waits.
_STARRED = " ".join([*_DEFERRED.values(), _LAZY["._binding.threads"], _LAZY[".random"]]).split()

if _start.is_traced:
    from .profiler import log as _log

    _log.start()

_operations, _public_form = _publish_late(globals(), _DECLARED)
globals().update(_DTYPES)  # all of the table; the names above are for type checkers

if _TYPE_CHECKING:
    from . import (
        amp,
        array_api,
        cpu,
        cuda,
        distributions,
        fft,
        func,
        linalg,
        memory,
        nn,
        optim,
        profiler,
        sparse,
        special,
        utils,
    )
    from .amp import (
        GradScaler,
        autocast,
        clear_autocast_cache,
        get_autocast_dtype,
        is_autocast_cache_enabled,
        is_autocast_enabled,
        set_autocast_cache_enabled,
        set_autocast_dtype,
        set_autocast_enabled,
    )
    from .compat.as_torch import as_torch
    from .func import vmap
    from .nn.functional import celu, celu_, rrelu, rrelu_, selu, selu_, threshold_
    from .nn.quantization import quantize
    from .program import capture, compile  # noqa: A004
    from .serialization import load, save
    from .sparse import dsmm, spmm
    from .sparse.compressed import sparse_csc_tensor, sparse_csr_tensor
    from .sparse.coo import sparse_coo_tensor
    from .utils.dlpack import from_dlpack, to_dlpack


def _missing(name: str) -> _Any:
    if name in _operations:
        return _public_form(name)
    if (name in _METHODS or name.endswith("_")) and name[0] != "_" and hasattr(Tensor, name):
        return _function_of(getattr(Tensor, name))
    if name.startswith("_foreach_"):
        from .compat.foreach import foreach

        if (found := foreach(name)) is not None:
            return found
    from ._package.left_out import lookup

    return lookup(__name__, name)


# `import *` takes what is here from the start: not what waits, whatever of it has been asked for since.
_waiting = frozenset(" ".join(_LAZY.values()).split())
_loaded = {name: value for name, value in globals().items() if name not in _waiting}
_publish(
    globals(),
    {**_LAZY, ".": _MODULES + " _C", ".fx": "_assert"},
    _missing,
    wrap=lambda name, value: _public_form(name, value) if _is_operation(value, _DECLARED) else value,
    public=lambda: _exported(_loaded, "autograd", *_operations, *_STARRED),
)
# Only now, as its modules are looked for as names first; those named here before placeholders are.
_publish(vars(ops), {".": "activation conv softmax"}, name="norch.ops")
