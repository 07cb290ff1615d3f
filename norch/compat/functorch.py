"""The package functorch, which PyTorch installs beside torch: norch.func's transforms, and models as pure functions of
their parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import norch

from .._package.exports import publish
from ..func import functional_call as functional_call
from ..func import grad as grad
from ..func import grad_and_value as grad_and_value
from ..func import hessian as hessian
from ..func import jacfwd as jacfwd
from ..func import jacrev as jacrev
from ..func import jvp as jvp
from ..func import stack_module_state
from ..func import vjp as vjp
from ..func import vmap as vmap
from ..nn.module import Module
from ..tensor import Tensor

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functional_call", "grad",
    "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "vjp",
    "vmap",
]  # fmt: skip
Tensors = Sequence[Tensor]


class FunctionalModuleWithBuffers(Module):
    """A model as a function: called with its parameters, its buffers and the arguments of the model."""

    def __init__(self, stateless_model: Module) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(name for name, _ in stateless_model.named_parameters())
        self.buffer_names = tuple(name for name, _ in stateless_model.named_buffers())

    def forward(self, params: Tensors, buffers: Tensors, *args: Any, **kwargs: Any) -> Any:
        names = dict(zip(self.param_names, params, strict=True)) | dict(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, names, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A model as a function: called with its parameters and the arguments of the model."""

    def forward(self, params: Tensors, *args: Any, **kwargs: Any) -> Any:
        return super().forward(params, (), *args, **kwargs)


def _state_of(model: Module, detached: bool) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    params: tuple[Any, ...] = tuple(model.parameters())
    return (tuple(p.detach() for p in params) if detached else params), tuple(model.buffers())


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """(f(params, *inputs), params). RuntimeError for a model with buffers.

    >>> f, params = norch._functorch.make_functional.make_functional(norch.nn.Linear(3, 2))
    >>> f(params, norch.ones(1, 3)).shape
    norch.Size([1, 2])
    """
    params, buffers = _state_of(model, disable_autograd_tracking)
    if buffers:
        raise RuntimeError("make_functional: the model has buffers; make_functional_with_buffers() takes them")
    return FunctionalModule(copy.deepcopy(model)), params


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(f(params, buffers, *inputs), params, buffers)."""
    return FunctionalModuleWithBuffers(copy.deepcopy(model)), *_state_of(model, disable_autograd_tracking)


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """One model's function, and parameters and buffers stacked over the models, for vmap(). RuntimeError unless all
    models have the same class."""
    if len({type(model) for model in models}) != 1:
        raise RuntimeError("combine_state_for_ensemble: the models must be of one class")
    params, buffers = stack_module_state(list(models))
    return make_functional_with_buffers(models[0])[0], tuple(params.values()), tuple(buffers.values())


def make_fx(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError."""
    raise NotImplementedError("functorch.make_fx: norch.fx.symbolic_trace() traces modules")


__version__ = norch.__version__
publish(globals(), name="functorch")
