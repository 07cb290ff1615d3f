"""Checkpoints, which trade time for memory: the tensors that a function saves for backward are freed, and recomputed in
backward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from .. import cuda
from .._package.exports import publish
from .._tensor.handle import Handle, alias, next_seq
from ..autograd import enable_grad, is_grad_enabled, saved_hooks
from ..autograd.autocast import current, using
from ..autograd.function import Output, Outputs
from ..autograd.node import Node
from ..autograd.record import gradient_edge
from ..autograd.region import region, walk_to
from ..autograd.saved import TensorHolder, changed, freed
from ..autograd.transforms import leaves
from ..errors import ArgumentError
from ..random import fork_rng, get_rng_state, set_rng_state
from ..tensor import Tensor

__all__ = ["checkpoint", "checkpoint_sequential", "get_device_states", "set_device_states"]


class Checkpoint(Node):
    """The node that replaces the graph of a function. recompute() calls it again."""

    __slots__ = ("recompute",)
    recompute: Callable[[], list[Any]] | None

    def propagate(self, g: Any) -> tuple[Any, ...]:
        if self.recompute is None:
            raise freed(self)
        outs, recorded = self.recompute(), is_grad_enabled()
        roots = [(gradient_edge(outs[i]), grad) for i, grad in (g if isinstance(g, Outputs) else {0: g}).items()]
        return walk_to(self.edges, roots, recorded, recorded)

    def release(self) -> None:
        self.recompute = None


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Calls function(*args, **kwargs), which returns a tensor, or a tuple or list with tensors, and keeps only the
    arguments. backward calls function again under the same autocast and, if preserve_rng_state, with the same random
    numbers. context_fn() returns a context for each of the two calls.

    Error in backward if an argument was changed in place since. Constants in containers or keyword arguments may
    change; with use_reentrant=True also arguments that function itself changes.

    Error in backward also if the second call saves another number of tensors, or other shapes, dtypes or operations,
    than the first: the gradient would belong to another function. determinism_check="none" and use_reentrant=True omit
    that.

    Gradients also reach leaves that function uses but that are not arguments. The implementation is PyTorch's for
    use_reentrant=False; debug and early_stop have no effect.

    >>> from norch.utils.checkpoint import checkpoint
    >>> x = norch.zeros(2, requires_grad=True)
    >>> checkpoint(lambda x: x.exp().exp(), x).sum().backward()
    >>> x.grad
    tensor([2.7183, 2.7183])
    """

    def call() -> list[Any]:
        result = function(*args, **kwargs)
        kind[0] = type(result) if isinstance(result, (tuple, list)) else None
        return [result] if kind[0] is None else list(result)

    def recompute() -> list[Any]:
        for x, version in versions.items():
            if x._version != version:
                raise changed(whole, x)
        with enable_grad(), using(setting.changed(cache={})), fork_rng(enabled=preserve_rng_state), again:
            if preserve_rng_state:
                set_rng_state(state)
            begin, outs = next_seq(), call()
        if saved is not None and not saved_hooks.are_active():
            now = _saved_by(region([edge for out in outs if (edge := _edge(out)) is not None], begin)[0])
            if now is not None and now != saved:
                raise _differs(saved, now)
        return outs

    if determinism_check not in ("default", "none"):
        raise ArgumentError(f"checkpoint: determinism_check is 'default' or 'none', not {determinism_check!r}")
    kind: list[Any] = [None]
    # As in PyTorch, constants in containers and keyword arguments may change, such as counters.
    checked = [x for x in leaves((args, kwargs)) if x.requires_grad or any(x is argument for argument in args)]
    versions = {x: x._version for x in checked}
    state, start, setting = get_rng_state(), next_seq(), current()
    first, again = (nullcontext(), nullcontext()) if context_fn is None else context_fn()
    with first:
        outs = call()
    if use_reentrant:  # as in PyTorch, function may then write to constants
        versions |= {x: x._version for x in checked if not x.requires_grad}
    nodes = [_edge(out) for out in outs]
    inside, leading = region([node for node in nodes if node is not None], start)
    is_checked = determinism_check != "none" and not use_reentrant and not saved_hooks.are_active()
    saved = _saved_by(inside) if is_checked else None
    if inside and is_grad_enabled():
        whole = Checkpoint(*dict.fromkeys(edge for _, edge in leading))
        whole.recompute = recompute
        for i, node in enumerate(nodes):
            if node in inside:  # the recorded graph is freed with the tensors it made
                outs[i] = alias(outs[i])
                outs[i]._node = whole if len(outs) == 1 else Output(whole, i)
    return outs[0] if kind[0] is None else kind[0](outs)


def _edge(out: Any) -> Node | None:
    return gradient_edge(out) if isinstance(out, Handle) else None


def _saved_by(nodes: set[Node]) -> list[tuple[str, tuple[int, ...], Any]] | None:
    """The operation, shape and dtype of each tensor that nodes save, in the order of recording. Casts save none, so it
    does not matter whether autocast had a cast already. None for calls of compiled functions, which save their tensors
    in a recording once it exists."""
    if any(node.is_whole for node in nodes):
        return None
    found = []
    for node in sorted(nodes, key=lambda node: node.seq):
        for value in node._saved or ():
            for x in value.tensors() if isinstance(value, TensorHolder) else (value,):
                if isinstance(x, Tensor) and not x.is_meta:
                    found.append((node.name(), tuple(x.shape), x.dtype))
    return found


def _differs(before: list[Any], now: list[Any]) -> Exception:
    from ..compat.checkpoints import CheckpointError  # lazy import, as of compat

    i = next((i for i, (a, b) in enumerate(zip(before, now)) if a != b), min(len(before), len(now)))
    first, second = ("{} of shape {}, {}".format(*each[i]) if i < len(each) else "none" for each in (before, now))
    return CheckpointError(
        "checkpoint: the function did something else when it was called again: it saved "
        f"{len(before)} tensors at first, then {len(now)}; tensor {i} for {first}, then for {second}. "
        "It must not depend on what changes until backward; determinism_check='none' omits this check"
    )


def checkpoint_sequential(
    functions: Sequence[Callable[..., Any]], segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs functions (or the layers of a Sequential) in sequence. All segments but the last are checkpoints.

    >>> model = norch.nn.Sequential(norch.nn.Linear(3, 3), norch.nn.ReLU(), norch.nn.Linear(3, 1))
    >>> x = norch.ones(2, 3, requires_grad=True)
    >>> norch.utils.checkpoint.checkpoint_sequential(model, 2, x).shape
    norch.Size([2, 1])
    """

    def through(layers: list[Callable[..., Any]], x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    layers = list(functions)
    if not 1 <= segments <= max(len(layers), 1):
        raise ArgumentError(f"checkpoint_sequential: {len(layers)} functions in {segments} segments")
    size = len(layers) // segments
    for i in range(segments - 1):
        part = layers[i * size : (i + 1) * size]
        input = checkpoint(through, part, input, use_reentrant=use_reentrant, **kwargs)
    return through(layers[(segments - 1) * size :], input)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The CUDA devices of the tensors in args, and their generators' states."""
    devices = sorted({x.get_device() for x in args if isinstance(x, Tensor) and x.is_cuda})
    return devices, [cuda.get_rng_state(device) for device in devices]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Restores the states from get_device_states()."""
    for device, state in zip(devices, states, strict=True):
        cuda.set_rng_state(state, device)


publish(globals())
