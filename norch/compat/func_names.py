"""Functions of torch.func beside the transforms: of a linear map at a point, of batch norms within vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..func import jvp
from ..nn.module import Module
from ..nn.norm import _BatchNorm
from ..utils import _pytree as pytree


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(func(*primals), the function that maps tangents of the arguments to those of the result)."""

    def tangents_to_result(*tangents: Any) -> Any:
        if pytree.tree_structure(tangents) != pytree.tree_structure(primals):
            raise RuntimeError("linearize: tangents have the structure of the primals")
        return jvp(func, primals, tangents)[1]

    return func(*primals), tangents_to_result


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """func: norch's traces have no writes in place that would have to be removed."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for remove=. Valid options are:\n"
            f"     remove='mutations': all inplace and out= operators will be removed from the program.\n"
            f"     remove='mutations_and_views': In addition to the above, all aliasing operators {{view}} will be "
            f"replaced with their non-aliasing counterparts, {{view}}_copy.\nreceived remove={remove}."
        )
    return func


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Removes the running statistics, which vmap() cannot update, from a model's batch norms; returns the model."""
    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
