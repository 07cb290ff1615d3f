"""Names of torch.utils.checkpoint besides checkpoint(), which checkpoints of other libraries call."""

from __future__ import annotations

import contextlib
import enum
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from .. import cuda, random
from ..autograd import Function, backward, enable_grad, no_grad
from ..autograd.autocast import current, using
from ..errors import Error
from ..tensor import Tensor


class CheckpointError(Error):
    """PyTorch raises it if the recomputation differs from the first call."""


class CheckpointPolicy(enum.Enum):
    """What a selective checkpoint does with an operator's result. Here all results are recomputed."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class DefaultDeviceType:
    """The device type that checkpoints assume for arguments on the CPU."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._default_device_type or ("cuda" if cuda.is_available() else "cpu")


def _infer_device_type(*args: Any) -> str:
    kinds = (x.device.type for x in args if isinstance(x, Tensor))
    return next((kind for kind in kinds if kind != "cpu"), DefaultDeviceType.get_device_type())


def noop_context_fn() -> tuple[Any, Any]:
    return contextlib.nullcontext(), contextlib.nullcontext()


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """Contexts that save nothing: a selective checkpoint gives the same results as a full one."""
    if not callable(policy_fn_or_list) and not isinstance(policy_fn_or_list, list):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    return noop_context_fn()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Does nothing: the whole function is recomputed."""
    yield


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Does nothing."""
    yield


def check_backward_validity(inputs: Iterable[Any]) -> None:
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    kept = (x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)
    return tuple(kept)


class CheckpointFunction(Function):
    """PyTorch's reentrant checkpoint: backward() recomputes the function and calls backward() on its graph."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function, ctx.preserve_rng_state, ctx.setting = run_function, preserve_rng_state, current()
        ctx.state = random.get_rng_state()
        ctx.others = [None if isinstance(x, Tensor) else x for x in args]
        ctx.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        inputs = list(ctx.others)
        for i, x in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[i] = x
        inputs = list(detach_variable(tuple(inputs)))
        with random.fork_rng(enabled=ctx.preserve_rng_state), enable_grad(), using(ctx.setting.changed(cache={})):
            if ctx.preserve_rng_state:
                random.set_rng_state(ctx.state)
            outputs = ctx.run_function(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(y, g) for y, g in zip(outputs, grads, strict=True) if isinstance(y, Tensor) and y.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward(*map(list, zip(*pairs, strict=True)))  # type: ignore[arg-type]
        return None, None, *(x.grad if isinstance(x, Tensor) else None for x in inputs)
