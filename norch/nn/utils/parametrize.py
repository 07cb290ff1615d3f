"""Parameters that are functions of others: what a module reads as its weight is computed from what it trains.

A module with such a parameter is of a class of its own, made once for each class of modules, that looks them up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

from ..._left_out import nothing_more
from ...autograd import no_grad
from ...errors import ArgumentError
from ...tensor import Tensor
from ..container import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

_computed: dict[Any, Tensor] | None = None  # within cached(): what each ParametrizationList gives


def _own(module: Any, name: str, value: Tensor) -> None:
    """Registers value as a parameter or a buffer, whichever it is."""
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


class ParametrizationList(ModuleList):
    """Modules applied one after another to `original`, a parameter or buffer, or the first to `original0`,
    `original1` ... where its right_inverse() gives several: what a parametrized module holds for each name."""

    is_tensor: bool
    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        value: Any = original
        with no_grad():
            for one in reversed(modules):
                value = one.right_inverse(value) if hasattr(one, "right_inverse") else value
        self.is_tensor = isinstance(value, Tensor)
        if self.is_tensor:
            if value is not original:
                original.data = value.detach()
            _own(self, "original", original)
            return
        self.ntensors = len(value)
        for number, part in enumerate(value):
            if not isinstance(part, Tensor):
                raise ValueError(f"right_inverse() gives tensors, not {type(part).__name__}")
            trained = isinstance(original, Parameter) and part.is_floating_point()
            leaf = part.detach()
            _own(self, f"original{number}", Parameter(leaf, original.requires_grad) if trained else leaf)

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{number}") for number in range(self.ntensors)]

    def forward(self) -> Tensor:
        """What the module reads."""
        if _computed is not None and self in _computed:
            return _computed[self]
        first, *rest = self
        x = first(*self._originals())
        for one in rest:
            x = one(x)
        if _computed is not None:
            _computed[self] = x
        return x

    @no_grad()
    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that forward() gives value, by the right_inverse() of each module."""
        parts: Any = value
        for one in reversed(list(self)):
            if not hasattr(one, "right_inverse"):
                raise NotImplementedError(f"{type(one).__name__} has no right_inverse(): its result cannot be set")
            parts = one.right_inverse(parts)
        for original, part in zip(self._originals(), [parts] if self.is_tensor else parts, strict=True):
            original.data = part.detach()


_made: WeakValueDictionary[type, type] = WeakValueDictionary()  # of each class its own one, while a module is of that


def _parametrized(base: Any) -> Any:
    """The subclass of base that computes what its `parametrizations` name."""
    made = _made.get(base)
    if made is not None:
        return made

    def lookup(self: Any, name: str) -> Any:
        lists = self.__dict__.get("parametrizations", ())
        if name in lists:
            return lists[name]()
        if hasattr(base, "__getattr__"):
            return base.__getattr__(self, name)
        raise AttributeError(f"{base.__name__!r} object has no attribute {name!r}")

    def assign(self: Any, name: str, value: Any) -> None:
        lists = self.__dict__.get("parametrizations", ())
        if name in lists:
            lists[name].right_inverse(value)
        else:
            base.__setattr__(self, name, value)

    def reduce(self: Any, protocol: Any) -> Any:
        return _blank, (base,), self.__dict__

    methods = {"__getattr__": lookup, "__setattr__": assign, "__reduce_ex__": reduce}
    made = _made[base] = type(f"Parametrized{base.__name__}", (base,), {**methods, "_before": base})
    return made


def _blank(base: type) -> Any:
    """What pickle and copy fill."""
    return object.__new__(_parametrized(base))


def register_parametrization(module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Makes module.<tensor_name>, a parameter or buffer, what parametrization gives of it; the one that is trained is
    module.parametrizations.<tensor_name>.original then. A second parametrization is applied to the result of the first.

    parametrization may have right_inverse(value), which gives what to start from, and by which
    `module.<tensor_name> = value` sets the original. Unless unsafe, it must keep shape and dtype. Gives module back.

    >>> class Positive(norch.nn.Module):
    ...     def forward(self, x):
    ...         return x.exp()
    ...     def right_inverse(self, y):
    ...         return y.log()
    >>> layer = norch.nn.Linear(2, 1, bias=False)
    >>> layer.weight.data.fill_(2.0)
    tensor([[2., 2.]])
    >>> layer = norch.nn.utils.parametrize.register_parametrization(layer, "weight", Positive())
    >>> layer.weight.tolist(), layer.parametrizations.weight.original.tolist()
    ([[2.0, 2.0]], [[0.6931471824645996, 0.6931471824645996]])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        known = module.parametrizations[tensor_name]
        if not unsafe:
            with no_grad():
                x = getattr(module, tensor_name)
                _check_like(x, parametrization(x), tensor_name)
        known.append(parametrization)
        known.unsafe |= unsafe
        return module
    original = {**module._parameters, **module._buffers}.get(tensor_name)
    if original is None:
        raise ValueError(f"{module._get_name()} has no parameter or buffer {tensor_name!r}")
    if not unsafe:  # before anything is changed
        with no_grad():
            start = original
            if hasattr(parametrization, "right_inverse"):
                start = parametrization.right_inverse(original.clone())
            several = not isinstance(start, Tensor)
            _check_like(original, parametrization(*start) if several else parametrization(start), tensor_name)
    found = ParametrizationList([parametrization], original, unsafe)
    module._unbind(tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
        module.__class__ = _parametrized(type_before_parametrizations(module))
    module.parametrizations[tensor_name] = found
    return module


def _check_like(wanted: Tensor, made: Any, name: str) -> None:
    found = (tuple(made.shape), made.dtype) if isinstance(made, Tensor) else type(made).__name__
    if found != (tuple(wanted.shape), wanted.dtype):
        told = f"{tuple(wanted.shape)} of {wanted.dtype}"
        raise ArgumentError(f"register_parametrization: {name!r} is {told}, the parametrization gives {found}")


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether module has parametrized parameters or buffers, or one of this name."""
    lists = module.__dict__.get("parametrizations")
    if not isinstance(lists, ModuleDict) or type(module) is type_before_parametrizations(module):
        return False
    return bool(len(lists)) if tensor_name is None else tensor_name in lists


def type_before_parametrizations(module: Any) -> type:
    """The class of module as it was."""
    kind: type = type(module)
    return kind.__dict__.get("_before", kind)


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Makes module.<tensor_name> an ordinary parameter or buffer: with what it gives now, or, unless
    leave_parametrized, with the original, which must be one tensor then. Gives module back."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"{module._get_name()} has no parametrization of {tensor_name!r}")
    found = module.parametrizations[tensor_name]
    if not leave_parametrized and not found.is_tensor:
        raise ValueError(f"remove_parametrizations: {tensor_name!r} is made of several tensors: leave it parametrized")
    with no_grad():
        now = getattr(module, tensor_name)
    if found.is_tensor:
        value = found.original
        if leave_parametrized:
            value.data = now
    else:
        value = Parameter(now) if any(one.requires_grad for one in found._originals()) else now
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        module.__class__ = type_before_parametrizations(module)
        module._unbind("parametrizations")
    _own(module, tensor_name, value)
    return module


@contextmanager
def cached() -> Iterator[None]:
    """Within it each parametrized tensor is computed once, when it is first read.

    >>> layer = norch.nn.utils.parametrizations.weight_norm(norch.nn.Linear(2, 2))
    >>> with norch.nn.utils.parametrize.cached():
    ...     print(layer.weight is layer.weight)
    True
    """
    global _computed
    outer, _computed = _computed, {} if _computed is None else _computed
    try:
        yield
    finally:
        _computed = outer


__getattr__ = nothing_more(__name__)
