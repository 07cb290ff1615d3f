"""Pruning: parameters times masks of 0 and 1, which a hook before each forward multiplies.

A pruned parameter `weight` becomes the parameter weight_orig and the buffer weight_mask; module.weight is their
product. If it is pruned again, elements that are pruned already stay pruned. Functions return the module that they
prune. amount: a number of elements or channels, or as a float their fraction; TypeError and ValueError for other
values.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from ..._package.exports import publish
from ...autograd import no_grad
from ...errors import BoundsError, ShapeError
from ...ops.create import ones_like, zeros_like
from ...ops.random import rand, rand_like
from ...tensor import Tensor
from ..module import Module
from .convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip
publish(globals())


class BasePruningMethod(ABC):
    """Base of the ways to prune, which are hooks. A subclass defines compute_mask() and PRUNING_TYPE, the part of a
    pruned parameter that compute_mask() gets: "unstructured", the elements that are left; "structured", the channels
    along self.dim that are left; "global", everything.

    >>> class Negative(norch.nn.utils.prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def compute_mask(self, t, default_mask):
    ...         return default_mask * (t > 0)
    >>> layer = norch.nn.Linear(2, 1)
    >>> method = Negative.apply(layer, "weight")
    >>> bool((layer.weight >= 0).all())
    True
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for importances t: default_mask with more zeros."""

    def apply_mask(self, module: Any) -> Tensor:
        """The product of the parameter and its mask."""
        mask, orig = (getattr(module, f"{self._tensor_name}_{part}") for part in ("mask", "orig"))
        return mask.to(orig.dtype) * orig

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prunes module.<name>, by importance_scores of its shape unless None. Returns the hook. An error
        changes nothing."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        tensor, hooks = getattr(module, name), list(_hooks(module, name))
        if hooks:
            key, before = hooks[0]
            method = PruningContainer(*(before if isinstance(before, PruningContainer) else (before,)), method)
            mask = getattr(module, f"{name}_mask").clone()
        else:
            mask = ones_like(tensor.detach())
        with no_grad():
            mask = method.compute_mask(_scores(tensor, importance_scores), default_mask=mask)
        if hooks:
            del module._forward_pre_hooks[key]
        else:
            module.register_parameter(f"{name}_orig", tensor)
            delattr(module, name)
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """t times the mask for t, or for importance_scores; default_mask: zeros for elements that are pruned
        already."""
        mask = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(_scores(t, importance_scores), default_mask=mask)

    def remove(self, module: Any) -> None:
        """Makes module.<name> a parameter again, with its current, pruned value."""
        name = self._tensor_name
        orig, weight = module._parameters[f"{name}_orig"], self.apply_mask(module)
        orig.data = weight.detach()
        for each in (name, f"{name}_orig", f"{name}_mask"):
            delattr(module, each)
        setattr(module, name, orig)


def _scores(t: Tensor, importance_scores: Tensor | None) -> Tensor:
    if importance_scores is not None and importance_scores.shape != t.shape:
        raise ShapeError(f"prune: importance_scores of shape {importance_scores.shape} for a tensor of {t.shape}")
    return t if importance_scores is None else importance_scores


def _hooks(module: Any, name: str | None = None) -> Iterator[tuple[int, BasePruningMethod]]:
    """The hooks of module that prune, or that prune module.<name>, with their keys."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and name in (None, hook._tensor_name):
            yield key, hook


class PruningContainer(BasePruningMethod):
    """The methods that have pruned a parameter one after the other; compute_mask() applies the last method to the
    elements that the others have left.

    >>> layer, prune = norch.nn.Linear(4, 2), norch.nn.utils.prune
    >>> first, second = (prune.l1_unstructured(layer, "weight", amount=2) for _ in range(2))
    >>> layer.weight_mask.sum()
    tensor(4.)
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Adds a method: TypeError for another object, ValueError for a method for another parameter."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(f"a PruningContainer of {self._tensor_name!r} takes no method for {method._tensor_name!r}")
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method, mask, left = self._pruning_methods[-1], default_mask.to(t.dtype).clone(), default_mask != 0
        if method.PRUNING_TYPE == "global":
            return method.compute_mask(t, default_mask=mask).to(mask.dtype)
        if method.PRUNING_TYPE == "structured":
            dim = _axis(t, method.dim)  # type: ignore[attr-defined]
            kept = left.movedim(dim, 0).flatten(1).any(1).nonzero().flatten()
            part = method.compute_mask(t.index_select(dim, kept), default_mask=mask.index_select(dim, kept))
            return mask.index_copy(dim, kept, part.to(mask.dtype))
        if method.PRUNING_TYPE != "unstructured":
            raise ValueError(f"unrecognized PRUNING_TYPE {method.PRUNING_TYPE!r}")
        mask[left] = method.compute_mask(t[left], default_mask=mask[left]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but adds the mask.

    >>> layer = norch.nn.Linear(2, 2)
    >>> pruned = norch.nn.utils.prune.Identity.apply(layer, "weight")
    >>> layer.weight_mask
    tensor([[1., 1.],
            [1., 1.]])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _ByAmount(BasePruningMethod):
    def __init__(self, amount: float) -> None:
        if not isinstance(amount, numbers.Real):
            raise TypeError(f"prune: amount is an int or a float, not {amount!r}")
        if not (0 <= amount if isinstance(amount, numbers.Integral) else 0 <= amount <= 1):
            raise ValueError(f"prune: amount {amount!r} is neither a number of elements nor a float from 0 to 1")
        self.amount: Any = amount

    def _count(self, size: int) -> int:
        """The number of pruned elements out of a total."""
        count = int(self.amount) if isinstance(self.amount, numbers.Integral) else round(self.amount * size)
        if count > size:
            raise ValueError(f"prune: amount {count} of {size}")
        return count

    def _importance(self, t: Tensor) -> Tensor:
        """The number of elements of t, or of its channels."""
        raise NotImplementedError


class _Unstructured(_ByAmount):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        least = self._importance(t).flatten().topk(self._count(t.numel()), largest=False).indices
        return default_mask.flatten().index_fill(0, least, 0).view(default_mask.shape)


class RandomUnstructured(_Unstructured):
    """Prunes amount elements, at random.

    >>> layer = norch.nn.Linear(2, 2)
    >>> method = norch.nn.utils.prune.RandomUnstructured.apply(layer, "weight", 0.25)
    >>> layer.weight_mask.sum()
    tensor(3.)
    """

    def _importance(self, t: Tensor) -> Tensor:
        return rand_like(t)


class L1Unstructured(_Unstructured):
    """Prunes the amount elements of the least magnitude.

    >>> layer = norch.nn.Linear(2, 2)
    >>> method = norch.nn.utils.prune.L1Unstructured.apply(layer, "weight", 1)
    >>> (layer.weight == 0).sum()
    tensor(1)
    """

    def _importance(self, t: Tensor) -> Tensor:
        return t.abs()


def _axis(t: Tensor, dim: int) -> int:
    if not -t.ndim <= dim < t.ndim:
        raise BoundsError(f"prune: there is no axis {dim} in shape {tuple(t.shape)}")
    return dim % t.ndim


class _Structured(_ByAmount):
    PRUNING_TYPE = "structured"
    dim: int

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.ndim < 2:
            raise ShapeError(f"prune: shape {tuple(t.shape)} has no channels; it has less than 2 dimensions")
        dim = _axis(t, self.dim)
        kept = self._importance(t).topk(t.shape[dim] - self._count(t.shape[dim])).indices
        return default_mask * zeros_like(default_mask).index_fill(dim, kept, 1)


class RandomStructured(_Structured):
    """Prunes amount channels along an axis, at random.

    >>> layer = norch.nn.Linear(4, 2)
    >>> method = norch.nn.utils.prune.RandomStructured.apply(layer, "weight", 1, dim=0)
    >>> layer.weight_mask.sum()
    tensor(4.)
    """

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _importance(self, t: Tensor) -> Tensor:
        return rand(t.shape[self.dim], device=t.device)


class LnStructured(_Structured):
    """Prunes the amount channels along an axis with the least n-norms; n: as in norm().

    >>> layer = norch.nn.Linear(4, 2)
    >>> method = norch.nn.utils.prune.LnStructured.apply(layer, "weight", 1, n=2, dim=0)
    >>> layer.weight_mask.sum()
    tensor(4.)
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n, self.dim = n, dim

    def _importance(self, t: Tensor) -> Tensor:
        dim = _axis(t, self.dim)
        return t.norm(self.n, tuple(axis for axis in range(t.ndim) if axis != dim))


class CustomFromMask(BasePruningMethod):
    """Prunes the elements where mask, of the parameter's shape, is 0.

    >>> layer = norch.nn.Linear(2, 1)
    >>> method = norch.nn.utils.prune.CustomFromMask.apply(layer, "weight", norch.tensor([[1, 0]]))
    >>> layer.weight_mask
    tensor([[1., 0.]])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise ShapeError(f"prune: a mask of shape {self.mask.shape} for a parameter of {default_mask.shape}")
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Adds a mask of ones.

    >>> layer = norch.nn.utils.prune.identity(norch.nn.Linear(2, 2), "weight")
    >>> layer.weight_mask
    tensor([[1., 1.],
            [1., 1.]])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Prunes amount elements of module.<name>, at random.

    >>> layer = norch.nn.utils.prune.random_unstructured(norch.nn.Linear(2, 2), "weight", amount=0.25)
    >>> layer.weight_mask.sum()
    tensor(3.)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: float, importance_scores: Tensor | None = None) -> Any:
    """Prunes the amount elements of module.<name> of the least magnitude, or where importance_scores are least.

    >>> layer = norch.nn.utils.prune.l1_unstructured(norch.nn.Linear(4, 2), "weight", amount=3)
    >>> layer.weight_mask.sum().item(), sorted(layer.state_dict())
    (5.0, ['bias', 'weight_mask', 'weight_orig'])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Prunes amount channels of module.<name> along an axis, at random.

    >>> layer = norch.nn.utils.prune.random_structured(norch.nn.Linear(4, 2), "weight", amount=1, dim=0)
    >>> layer.weight_mask.sum()
    tensor(4.)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Any:
    """Prunes the amount channels of module.<name> along an axis with the least n-norms, of it or importance_scores.

    >>> layer = norch.nn.utils.prune.ln_structured(norch.nn.Linear(4, 2), "weight", amount=1, n=2, dim=0)
    >>> layer.weight_mask.sum()
    tensor(4.)
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prunes the elements of module.<name> where mask is 0.

    >>> layer = norch.nn.utils.prune.custom_from_mask(norch.nn.Linear(2, 1), "weight", norch.tensor([[1, 0]]))
    >>> layer.weight[0, 1].item() == 0
    True
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes several parameters, (module, name) each, as if they were one. importance_scores: by such pairs.

    >>> a, b = norch.nn.Linear(2, 2), norch.nn.Linear(2, 2)
    >>> prune = norch.nn.utils.prune
    >>> prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=0.5)
    >>> (a.weight_mask.sum() + b.weight_mask.sum()).item()
    4.0
    """
    if not isinstance(parameters, Iterable):
        raise TypeError(f"global_unstructured: expected pairs of a module and a name, not {type(parameters).__name__}")
    scores, listed = {} if importance_scores is None else importance_scores, list(parameters)
    if not isinstance(scores, dict):
        raise TypeError(f"global_unstructured: importance_scores is a dict, not {type(scores).__name__}")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(f"global_unstructured: {pruning_method.__name__} is {method.PRUNING_TYPE}, not unstructured")
    method._tensor_name = "parameters"
    tensors = [getattr(module, name).detach() for module, name in listed]
    masks: list[Any] = [
        getattr(module, f"{name}_mask", ones_like(x)) for (module, name), x in zip(listed, tensors, strict=True)
    ]
    with no_grad():
        importance = [_scores(x, scores.get(pair)) for pair, x in zip(listed, tensors, strict=True)]
        mask = PruningContainer(method).compute_mask(parameters_to_vector(importance), parameters_to_vector(masks))
    for (module, name), part in zip(listed, mask.split([x.numel() for x in tensors]), strict=True):
        custom_from_mask(module, name, part.view(getattr(module, name).shape))


def remove(module: Any, name: str) -> Any:
    """Makes module.<name> a parameter again, with its current, pruned value. ValueError if it is not pruned.

    >>> layer = norch.nn.utils.prune.l1_unstructured(norch.nn.Linear(2, 2), "weight", amount=0.5)
    >>> layer = norch.nn.utils.prune.remove(layer, "weight")
    >>> norch.count_nonzero(layer.weight)
    tensor(2)
    """
    for key, hook in _hooks(module, name):
        hook.remove(module)
        del module._forward_pre_hooks[key]
        return module
    raise ValueError(f"prune.remove: {name!r} of {type(module).__name__} is not pruned")


def is_pruned(module: Any) -> bool:
    """Whether a parameter of module or of a submodule is pruned.

    >>> norch.nn.utils.prune.is_pruned(norch.nn.Linear(2, 2))
    False
    """
    return any(True for each in module.modules() for _ in _hooks(each))
