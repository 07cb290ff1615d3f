"""GradScaler: losses in float16 scaled up before backward, and the gradients down again before the step."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from .._package.exports import publish
from ..autograd import no_grad
from ..autograd.autocast import DEVICE_TYPES
from ..cuda import is_available
from ..device import device as Device
from ..dtype import float16, float32, int32
from ..errors import ArgumentError, DTypeError, Error, one_of
from ..ops.copy import stack
from ..ops.create import full
from ..ops.pointwise import isfinite, where
from ..optim import Optimizer
from ..tensor import Tensor

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far an optimizer is in this iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """The state of an optimizer at the start of an iteration: its stage, and for each device of its gradients whether
    one is inf or NaN, as a float32 on the device."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Keeps gradients in float16 from vanishing (Micikevicius et al. 2018, section 3.2). scale(loss).backward() gives
    gradients times a scale. step(optimizer) divides them by it and steps the optimizer, unless one of them is inf or
    NaN. update() sets the scale of the next iteration.

    After a skipped step the scale is multiplied by backoff_factor; after growth_interval steps in a row without a skip,
    by growth_factor. With enabled=False losses and gradients do not change. device is "cuda" or "cpu"; with "cuda" and
    no device there is a warning, and nothing is scaled. Only step() reads a number from the device, so a function that
    norch.capture records can scale and unscale, but cannot call step(). ArgumentError for factors on the wrong side of
    1.

    >>> w = norch.ones(2, requires_grad=True)
    >>> optimizer = norch.optim.SGD([w], lr=0.5)
    >>> scaler = norch.amp.GradScaler("cpu", init_scale=1024.0)
    >>> scaler.scale((w * 2).sum()).backward()
    >>> w.grad
    tensor([2048., 2048.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w
    tensor([0., 0.], requires_grad=True)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        one_of("GradScaler: device", device, DEVICE_TYPES)
        if enabled and device == "cuda" and not is_available():
            warnings.warn("GradScaler: there is no CUDA device, so nothing is scaled", stacklevel=2)
            enabled = False
        if not (growth_factor > 1.0 and backoff_factor < 1.0):
            raise ArgumentError(
                f"GradScaler: growth_factor must be above 1 and backoff_factor below, not {growth_factor} and "
                f"{backoff_factor}"
            )
        self._enabled = enabled
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        # On the device of the first loss: the scale, and the steps since it changed or one was skipped
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        # By the id() of optimizers
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def _started(self, name: str) -> tuple[Tensor, Tensor]:
        if self._scale is None or self._growth_tracker is None:
            raise Error(f"GradScaler.{name}: nothing was scaled yet; call scale(loss).backward() first")
        return self._scale, self._growth_tracker

    # ---- an iteration --------------------------------------------------------------------------------------------

    def scale(self, outputs: Any) -> Any:
        """outputs times the scale: a tensor, or tensors in lists, tuples and other iterables. TypeError otherwise."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._scale = full((), self._init_scale, dtype=float32, device=outputs.device)
                self._growth_tracker = full((), self._init_growth_tracker, dtype=int32, device=outputs.device)
            return outputs * self._scale.to(outputs.device)
        if not isinstance(outputs, Iterable):
            raise TypeError(
                f"GradScaler.scale: expected a tensor or an iterable of tensors, not {type(outputs).__name__}"
            )
        scaled = map(self.scale, outputs)
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of an optimizer by the scale, so that they can be read or clipped before step().
        Without this call step() does it. DTypeError for gradients in float16, since the parameters must be float32.
        Error for a second call since update(), or after step().
        """
        if not self._enabled:
            return
        scale, _ = self._started("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is not OptState.READY:
            done = "step" if state["stage"] is OptState.STEPPED else "unscale_"
            raise Error(f"GradScaler.unscale_: {done}() has been called for this optimizer since the last update()")
        with no_grad():
            inverse = scale.double().reciprocal().float()
            none_found = full((), 0.0, dtype=float32, device=scale.device)
            state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, none_found, False)
        state["stage"] = OptState.UNSCALED

    def _unscale_grads_(
        self, optimizer: Optimizer, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Device, Tensor]:
        """Multiplies the gradients by inv_scale. Returns for each of their devices whether one is inf or NaN, as
        found_inf or 1.
        """
        by_device: dict[Device, list[Tensor]] = {}
        for group in optimizer.param_groups:
            for param in group["params"]:
                if (grad := param.grad) is not None:
                    if grad.dtype is float16 and not allow_fp16:
                        raise DTypeError("GradScaler.unscale_: gradients in float16 cannot be unscaled")
                    by_device.setdefault(grad.device, []).append(grad)
        found = {}
        with no_grad():
            for device, grads in by_device.items():
                found[device] = _found_inf(grads).maximum(found_inf.to(device))
                on_device = inv_scale.to(device)
                for grad in grads:
                    grad.mul_(on_device)
        return found

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Calls unscale_(optimizer), unless that was done, and optimizer.step(*args, **kwargs), unless a gradient is
        inf or NaN. Returns its result, or None. Error for a closure, and for a second call since update().
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise Error("GradScaler.step: a closure cannot be scaled")
        self._started("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise Error("GradScaler.step: step() has been called for this optimizer since the last update()")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise Error("GradScaler.step: no parameter of this optimizer has a gradient")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(self, optimizer: Optimizer, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """optimizer.step(), unless a gradient is inf or NaN."""
        if any(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Sets the scale of the next iteration, after step() of all optimizers. new_scale, a number or a tensor of one
        element, sets it directly. A scale does not grow to inf. Error if no gradient was checked.
        """
        if not self._enabled:
            return
        scale, tracker = self._started("update")
        with no_grad():
            if isinstance(new_scale, Tensor):
                if new_scale.numel() != 1 or new_scale.requires_grad:
                    raise ArgumentError(
                        "GradScaler.update: new_scale is a number, or one element that requires no grad"
                    )
                scale.copy_(new_scale.reshape(()))
            elif new_scale is not None:
                scale.fill_(new_scale)
            else:
                found = [state["found_inf_per_device"] for state in self._per_optimizer_states.values()]
                flags = [flag.to(scale.device) for flags_of_one in found for flag in flags_of_one.values()]
                if not flags:
                    raise Error("GradScaler.update: no gradient was checked since the last update(); call step() first")
                self._adapt(scale, tracker, stack(flags).sum() != 0)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _adapt(self, scale: Tensor, tracker: Tensor, skipped: Tensor) -> None:
        """All on the device: nothing waits for it."""
        steps = tracker + 1
        grows = steps == self._growth_interval
        grown = (scale.double() * self._growth_factor).float()
        less = (scale.double() * self._backoff_factor).float()
        scale.copy_(where(skipped, less, where(grows & isfinite(grown), grown, scale)))
        tracker.copy_(where(skipped | grows, 0, steps))

    # ---- what it is ----------------------------------------------------------------------------------------------

    def is_enabled(self) -> bool:
        """Whether this object scales."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale, which is read from the device; 1.0 if nothing is scaled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def get_growth_factor(self) -> float:
        """The factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets growth_factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor of the scale after a skipped step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets backoff_factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The steps in a row after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets growth_interval."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """The scale, the factors, growth_interval and the number of steps since the scale changed, under PyTorch's
        names. It is empty if nothing is scaled.
        """
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state_dict(), of norch or PyTorch. Error for an empty one, unless nothing is scaled."""
        if not self._enabled:
            return
        if not state_dict:
            raise Error("GradScaler.load_state_dict: it is empty, as that of a GradScaler with enabled=False")
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickle: between iterations only, as it knows optimizers by their place in memory."""
        if self._per_optimizer_states:
            raise Error("GradScaler: copy or pickle it after update(), or before the iteration")
        now = {"_init_scale": self.get_scale(), "_init_growth_tracker": self._get_growth_tracker()}
        return self.__dict__ | now | {"_scale": None, "_growth_tracker": None}


def _found_inf(grads: list[Tensor]) -> Tensor:
    """1.0 if an element of these is inf or NaN, else 0.0; largest and smallest elements keep both."""
    stored = [grad.coalesce().values() if grad.is_sparse else grad for grad in grads]
    extremes = [extreme for grad in stored if grad.numel() for extreme in (grad.amax(), grad.amin())]
    if not extremes:
        return full((), 0.0, device=grads[0].device)
    return (~stack([isfinite(extreme) for extreme in extremes]).all()).float()


publish(globals())
