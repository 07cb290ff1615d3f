"""Parametrizations: an attribute of a module, such as its weight, is computed from the parameters that are trained.

A module with a parametrization gets a subclass of its class, created once per class, that computes such attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakValueDictionary

from ..._package.exports import publish
from ..._package.recording import here
from ...autograd import no_grad
from ...errors import ArgumentError
from ...tensor import Tensor
from ..container import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "type_before_parametrizations",
]  # fmt: skip

_cache: dict[Any, Tensor] | None = None  # inside cached(): the result of each ParametrizationList


def _register(module: Any, name: str, value: Tensor) -> None:
    """Registers a Parameter as a parameter and another tensor as a buffer."""
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


class ParametrizationList(ModuleList):
    """The modules that compute one attribute, applied in order. The input of the first is `original`, a parameter or
    buffer, or `original0`, `original1` ... if its right_inverse() returns several tensors.

    >>> layer = norch.nn.utils.parametrizations.weight_norm(norch.nn.Linear(2, 3))
    >>> layer.parametrizations.weight.original0.shape
    norch.Size([3, 1])
    """

    is_tensor: bool
    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        value: Any = original
        with no_grad():
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):  # then the value is the first original, as without one
                        value = module.right_inverse(value)
        self.is_tensor = isinstance(value, Tensor)
        if self.is_tensor:
            if value is not original:
                original.data = value.detach()
            _register(self, "original", original)
            return
        self.ntensors = len(value)
        for number, part in enumerate(value):
            if not isinstance(part, Tensor):
                raise ValueError(f"right_inverse() must return tensors, not {type(part).__name__}")
            is_trained = isinstance(original, Parameter) and part.is_floating_point()
            leaf = part.detach()
            _register(self, f"original{number}", Parameter(leaf, original.requires_grad) if is_trained else leaf)

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{number}") for number in range(self.ntensors)]

    def forward(self) -> Tensor:
        """The value of the attribute."""
        if here.trace is not None:
            here.trace.guard(globals(), "_cache", _cache)
        if _cache is not None and self in _cache:
            return _cache[self]
        first, *rest = self
        x = first(*self._originals())
        for module in rest:
            x = module(x)
        if _cache is not None:
            _cache[self] = x
        return x

    @no_grad()
    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that forward() returns value, with the right_inverse() of each module."""
        parts: Any = value
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                raise NotImplementedError(f"{type(module).__name__} has no right_inverse(): its result cannot be set")
            parts = module.right_inverse(parts)
        for original, part in zip(self._originals(), [parts] if self.is_tensor else parts, strict=True):
            original.data = part.detach()


_subclasses: WeakValueDictionary[type, type] = WeakValueDictionary()  # class: its parametrized subclass, while in use


def _parametrized(base: Any) -> Any:
    """The subclass of base that computes the attributes named in `parametrizations`."""
    subclass = _subclasses.get(base)
    if subclass is not None:
        return subclass

    def lookup(self: Any, name: str) -> Any:
        lists = self.__dict__.get("parametrizations", ())
        if name in lists:
            return lists[name]()
        if hasattr(base, "__getattr__"):
            return base.__getattr__(self, name)
        return object.__getattribute__(self, name)  # raises

    def assign(self: Any, name: str, value: Any) -> None:
        lists = self.__dict__.get("parametrizations", ())
        if name in lists:
            lists[name].right_inverse(value)
        else:
            base.__setattr__(self, name, value)

    def reduce(self: Any, protocol: Any) -> Any:
        return _new, (base,), self.__dict__

    methods = {"__getattr__": lookup, "__setattr__": assign, "__reduce_ex__": reduce}
    subclass = _subclasses[base] = type(f"Parametrized{base.__name__}", (base,), {**methods, "_base": base})
    return subclass


def _new(base: type) -> Any:
    """An empty parametrized module; pickle and copy fill it."""
    return object.__new__(_parametrized(base))


def register_parametrization(module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Replaces module.<tensor_name>, a parameter or buffer, by parametrization(original); the original is
    module.parametrizations.<tensor_name>.original. A further parametrization is applied to the result. Returns module.

    parametrization.right_inverse(value), if defined, computes the first original, and the new one when
    `module.<tensor_name>` is assigned. Unless unsafe, the result must have the same shape and dtype: ArgumentError
    otherwise. ValueError if there is no such parameter or buffer.

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
        listed = module.parametrizations[tensor_name]
        if not unsafe:
            with no_grad():
                x = getattr(module, tensor_name)
                result = parametrization(x)
                _check_result(x, result, tensor_name)
                if hasattr(parametrization, "right_inverse"):
                    with suppress(NotImplementedError):
                        _check_result(x, parametrization.right_inverse(result), tensor_name, "its right_inverse()")
        listed.append(parametrization)
        listed.unsafe |= unsafe
        return module
    original = {**module._parameters, **module._buffers}.get(tensor_name)
    if original is None:
        raise ValueError(f"{module._get_name()} has no parameter or buffer {tensor_name!r}")
    if not unsafe:  # before anything is changed
        with no_grad():
            initial = original
            if hasattr(parametrization, "right_inverse"):
                with suppress(NotImplementedError):
                    initial = parametrization.right_inverse(original.clone())
            several = not isinstance(initial, Tensor)
            if several and not (isinstance(initial, Sequence) and all(isinstance(x, Tensor) for x in initial)):
                raise ArgumentError(
                    f"register_parametrization: right_inverse() must return a tensor, or a sequence of tensors, for "
                    f"{tensor_name!r}"
                )
            _check_result(original, parametrization(*initial) if several else parametrization(initial), tensor_name)
    parametrizations = ParametrizationList([parametrization], original, unsafe)
    module._unbind(tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
        module.__class__ = _parametrized(type_before_parametrizations(module))
    module.parametrizations[tensor_name] = parametrizations
    return module


def _check_result(original: Tensor, result: Any, name: str, giver: str = "the parametrization") -> None:
    found = (tuple(result.shape), result.dtype) if isinstance(result, Tensor) else type(result).__name__
    if found != (tuple(original.shape), original.dtype):
        expected = f"{tuple(original.shape)} of {original.dtype}"
        raise ArgumentError(f"register_parametrization: {name!r} is {expected}, {giver} gives {found}")


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether module has parametrized parameters or buffers, or one of this name.

    >>> norch.nn.utils.parametrize.is_parametrized(norch.nn.Linear(3, 2))
    False
    """
    lists = module.__dict__.get("parametrizations")
    if not isinstance(lists, ModuleDict) or type(module) is type_before_parametrizations(module):
        return False
    return bool(len(lists)) if tensor_name is None else tensor_name in lists


def type_before_parametrizations(module: Any) -> type:
    """The class that module had before it was parametrized.

    >>> layer = norch.nn.utils.parametrizations.weight_norm(norch.nn.Linear(2, 3))
    >>> type(layer).__name__, norch.nn.utils.parametrize.type_before_parametrizations(layer).__name__
    ('ParametrizedLinear', 'Linear')
    """
    cls: type = type(module)
    return cls.__dict__.get("_base", cls)


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Makes module.<tensor_name> an ordinary parameter or buffer again: with its current value, or, without
    leave_parametrized, the original, which must be a single tensor (ValueError). Returns module.

    >>> layer = norch.nn.utils.parametrizations.weight_norm(norch.nn.Linear(2, 3))
    >>> norch.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    Linear(in_features=2, out_features=3, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"{module._get_name()} has no parametrization of {tensor_name!r}")
    parametrizations = module.parametrizations[tensor_name]
    if not leave_parametrized and not parametrizations.is_tensor:
        raise ValueError(f"remove_parametrizations: {tensor_name!r} has several originals: use leave_parametrized=True")
    with no_grad():
        current = getattr(module, tensor_name)
    if parametrizations.is_tensor:
        value = parametrizations.original
        if leave_parametrized:
            value.data = current
    else:
        value = Parameter(current) if any(x.requires_grad for x in parametrizations._originals()) else current
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        module.__class__ = type_before_parametrizations(module)
        module._unbind("parametrizations")
    _register(module, tensor_name, value)
    return module


@contextmanager
def cached() -> Iterator[None]:
    """A context in which each parametrized tensor is computed once, when it is first read.

    >>> layer = norch.nn.utils.parametrizations.weight_norm(norch.nn.Linear(2, 2))
    >>> with norch.nn.utils.parametrize.cached():
    ...     print(layer.weight is layer.weight)
    True
    """
    global _cache
    outer = _cache
    try:
        _cache = {} if outer is None else outer
        yield
    finally:
        _cache = outer


publish(globals())
