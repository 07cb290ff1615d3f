"""__torch_function__, by which classes override operations on their instances. overrides.py has the public names.

Nothing is checked until there is such an instance. Then public functions, and methods with arguments other than self,
begin at an entry (entries.py), which looks at the types of the arguments. Methods, operators and attributes of a
subclass of Tensor are found in the subclass itself, where begin() puts them; those of plain tensors do not change.
Objects that are no tensors are noticed when a function refuses them: instead().

The order of the protocol is PyTorch's: modes, then classes before their bases, then from left to right.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)

from .._binding.library import lib
from .._tensor.handle import Handle
from ..autograd.grad_mode import mode
from ..autograd.gradients import grad
from ..device import device
from ..dtype import dtype
from ..ops._deferred import DeferredMethod
from ..ops._rows import is_row
from ..tensor import Tensor, disabled_torch_function
from .entries import NOTHING, PLAIN, Entry, entry_of
from .typing import Any, cast


class _State(threading.local):
    disabled = False  # whether subclasses and other objects override nothing, but for those in which not all is in C
    bare = False  # whether these do not, either
    _modes: tuple[Any, ...] = ()

    @property
    def modes(self) -> tuple[Any, ...]:
        """Instances of TorchFunctionMode, the innermost last. While there is one, C leaves calls to Python."""
        return self._modes

    @modes.setter
    def modes(self, modes: tuple[Any, ...]) -> None:
        self._modes, mode.overridden = modes, bool(modes)


state = _State()

# ---- whose __torch_function__ is called ------------------------------------------------------------------------------

_PLAIN = frozenset((Tensor, int, float, bool, complex, str, type(None), type(...), slice, dtype, device))
_plain = set(_PLAIN)
PLAIN |= _plain


def overrides(kind: type) -> bool:
    """Whether a class overrides operations on its instances."""
    if kind in _PLAIN:
        return False
    handler = getattr(kind, "__torch_function__", None)
    return handler is not None and handler is not disabled_torch_function and not _of_pytorch(kind)


def _of_pytorch(kind: type) -> bool:
    """Whether cls is a class of PyTorch's tensors, imported beside norch. These override PyTorch's functions, not
    norch's.
    """
    named = (f"{base.__module__}.{base.__name__}" for base in kind.__mro__)
    return not issubclass(kind, Handle) and "torch.Tensor" in named


def _is_of_pytorch(func: Any) -> bool:
    """Whether function belongs to PyTorch, imported beside norch. It cannot compute with norch's tensors."""
    pytorch = sys.modules.get("torch")
    if pytorch is None or pytorch is sys.modules["norch"]:
        return False
    in_c = type(func) in (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType)
    return in_c or (getattr(func, "__module__", None) or "").partition(".")[0] == "torch"


def holds_elements(x: Any) -> bool:
    """Whether x, such as a sparse tensor, has elements that C does not have, so that no setting turns its overrides
    off.
    """
    return isinstance(x, Handle) and x._in_coordinates  # type: ignore[attr-defined]


def overloaded(values: Any, deeper: bool = True) -> list[Any]:
    """The first of each type of overriding objects among values, and in lists and tuples there, subclasses first."""
    overloads: list[Any] = []
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            continue
        if overrides(kind):
            several = [value]
        else:
            several = overloaded(value, False) if deeper and isinstance(value, (list, tuple)) else []
        for item in several:
            if all(type(item) is not type(other) for other in overloads):
                at = next((i for i, other in enumerate(overloads) if isinstance(item, type(other))), len(overloads))
                overloads.insert(at, item)
    return overloads


def overridden(public: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of a call of public, a public function, if something overrides it; else NOTHING."""
    if state.bare:
        return NOTHING
    overloads = overloaded((*arguments, *named.values()) if named else arguments)
    if state.disabled:
        overloads = [value for value in overloads if holds_elements(value)]
    if not overloads and not state.modes:
        return NOTHING
    return dispatch(public, overloads, arguments, named)


def dispatch(public: Any, overloads: list[Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of the innermost mode, or of the first of these objects whose __torch_function__ implements public;
    TypeError if none does."""
    types = tuple(map(type, overloads))
    if state.modes:
        modes = state.modes
        state.modes = modes[:-1]
        try:
            result = modes[-1].__torch_function__(public, types, arguments, named)
        finally:
            state.modes = modes
        if result is not NotImplemented:
            return result
    for value in overloads:
        result = value.__torch_function__(public, types, arguments, named)
        if result is not NotImplemented:
            return result
    kinds = [*map(type, overloads), *map(type, state.modes[-1:])]
    name = f"{getattr(public, '__module__', '')}.{getattr(public, '__name__', public)}"
    raise TypeError(f"no implementation found for {name!r} on types that implement __torch_function__: {kinds}")


def by_default(cls: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Tensor.__torch_function__: the result of func, with its tensors as instances of cls."""
    if not all(issubclass(cls, kind) for kind in types) or _is_of_pytorch(func):
        return NotImplemented
    result = without_subclasses(func, args, kwargs)
    return result if func in unwrapped() else _as_class(result, cls)


def without_subclasses(func: Any, args: Any, kwargs: Any) -> Any:
    """The result of func while subclasses override nothing."""
    before, state.disabled = state.disabled, True
    try:
        return func(*args, **(kwargs or {}))
    finally:
        state.disabled = before


def in_c(func: Any, args: Any, kwargs: Any) -> Any:
    """The result of func by C, which knows the shapes, dtypes, gradients and the like of sparse tensors, too."""
    before, state.bare = state.bare, True
    try:
        return func(*args, **(kwargs or {}))
    finally:
        state.bare = before


def unwrapped() -> set[Any]:
    """What gives the objects that it holds, and no new ones."""
    return {Tensor.grad.__get__, Tensor._base.__get__}


def _as_class(value: Any, cls: Any) -> Any:
    if cls is Tensor:
        return value
    if isinstance(value, Handle):
        return value if isinstance(value, cls) else value.as_subclass(cls)  # type: ignore[attr-defined]
    if isinstance(value, (tuple, list)) and value and not all(type(item) in _PLAIN - {Tensor} for item in value):
        parts = [_as_class(item, cls) for item in value]
        return type(value)._make(parts) if hasattr(value, "_make") else type(value)(parts)
    return value


def instead(public: Any, arguments: tuple[Any, ...], named: dict[str, Any], error: Exception) -> Any:
    """The result of a call that refused objects that are no tensors, by __torch_function__ of these; else raises error.
    From then on functions look for such objects themselves."""
    if not state.disabled:
        public = getattr(Tensor, _PASSED_AS.get(public.__name__, ""), public)
        overloads = [value for value in overloaded((*arguments, *named.values())) if not isinstance(value, Handle)]
        if overloads:
            begin()
            return dispatch(public, overloads, arguments, named)
    try:
        raise error from error.__cause__
    finally:
        del error  # as in ops/_instead.py


# ---- functions -------------------------------------------------------------------------------------------------------

# Modules whose public functions can be overridden, and functions that cannot.
MODULES = ["norch", "norch.nn.functional", "norch.nn.init", "norch.linalg", "norch.fft", "norch.special"]
IGNORED = frozenset(
    "are_deterministic_algorithms_enabled broadcast_shapes can_cast capture clear_autocast_cache compile "
    "from_dlpack from_numpy get_autocast_dtype get_default_device get_default_dtype get_float32_matmul_precision "
    "get_num_threads get_rng_state initial_seed is_anomaly_check_nan_enabled is_anomaly_enabled "
    "is_autocast_cache_enabled is_autocast_enabled is_grad_enabled is_tensor load manual_seed promote_types save seed "
    "set_anomaly_enabled set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled set_default_device "
    "set_default_dtype set_float32_matmul_precision set_num_threads set_printoptions set_rng_state take_out typename "
    "handle_torch_function has_torch_function has_torch_function_unary "
    "has_torch_function_variadic use_deterministic_algorithms vmap calculate_gain".split()
)
# Operators that PyTorch passes as methods of another name.
_PASSED_AS = {
    **{f"__{name}__": name for name in "add sub mul matmul pow neg abs lt gt le ge ne".split()},
    **{f"__i{name}__": f"{name}_" for name in "add sub mul pow".split()},
    "__truediv__": "div", "__mod__": "remainder", "__pos__": "positive", "__radd__": "add", "__rmul__": "mul",
    "__itruediv__": "div_", "__imod__": "remainder_", "__ifloordiv__": "floor_divide_",
}  # fmt: skip

_TAKING_DATA = ("as_tensor", "asarray", "tensor")  # only modes override them

# What layers call that is not the public form.
_OF_LAYERS = [*(("norch.ops.pointwise", name) for name in ("relu", "sigmoid", "tanh")), ("norch.ops.view", "flatten")]

_begun = False
_on: dict[int, Entry] = {}  # entries that look for overrides
_methods: dict[int, tuple[Entry, Any]] = {}  # those that do only while a mode is active


def begin(cls: type | None = None) -> None:
    """Lets functions look for overrides. cls: a subclass of Tensor that is about to get an instance."""
    global _begun
    if cls is not None:
        _install(next(base for base in reversed(cls.__mro__) if issubclass(base, Tensor) and base is not Tensor))
    if _begun:
        return
    _begun = True
    from ..nn.parameter import Parameter
    from . import exports as _exports

    _plain.add(Parameter)
    PLAIN.add(Parameter)
    engine: Any = import_module("norch.autograd.engine")
    engine.without_subclasses = without_subclasses
    _let_look(cast(FunctionType, grad), grad)
    for module in MODULES:
        namespace = vars(import_module(module))
        for name in {*dir(import_module(module))} & {*namespace}:  # public names
            _watch(module, name, namespace[name])
    public = import_module("norch.nn.functional")
    for module, name in _OF_LAYERS:
        _let_look(getattr(import_module(module), name), getattr(public, name, None) or getattr(Tensor, name))
    for name in sorted(_public_names()):
        method = _method_of_tensor(name)
        if type(method) is FunctionType and _takes_tensors(method) and (name[:2] != "__" or _is_operator(name, method)):
            _let_look(method, getattr(Tensor, _PASSED_AS.get(name, name)))
    _exports.watchers.append(_watch)


def _method_of_tensor(name: str) -> Any:
    """The function of a method of Tensor, imported if it is lazy; or another attribute of that name."""
    method = _static(Tensor, name)
    computes = isinstance(method, DeferredMethod) and method.module.startswith(
        ("norch.ops", "norch.fft", "norch.sparse")
    )
    in_c = type(method) is not FunctionType and hasattr(method, "__wrapped__")  # csrc/python/method.c
    return getattr(Tensor, name) if computes or in_c else method


def _is_operator(name: str, method: FunctionType) -> bool:
    """Whether a method is an operator of its first operand, or its in-place form. For a reflected operator Python has
    tried the other operand.
    """
    return name[:3] == "__i" or is_row(method) or name in ("__matmul__", "__pow__")


def _takes_tensors(method: FunctionType) -> bool:
    """Whether a method takes tensors besides self."""
    first = method.__code__.co_varnames[:1]
    return any(
        name not in (*first, "return") and (name == "other" or "Tensor" in str(kind) or "Operand" in str(kind))
        for name, kind in method.__annotations__.items()
    )


def _let_look(function: FunctionType, public: Any) -> None:
    if id(function) not in _on:
        _methods.pop(id(function), None)  # it goes on looking when a mode ends
        entry = _on[id(function)] = entry_of(function)
        entry.change(override=_looking(public))


def _looking(public: Any) -> Any:
    if public.__name__ == "einsum":  # as PyTorch passes it: the operands one by one
        return lambda args, named: overridden(
            public,
            (args[0], *args[1]) if len(args) == 2 and isinstance(args[1], (list, tuple)) else args,
            named,
        )
    return lambda arguments, named: overridden(public, arguments, named)


def _takes_any(code: CodeType) -> bool:
    """Whether a function has parameters."""
    return bool(code.co_argcount or code.co_flags & 12)


def _watch(module: str, name: str, function: Any) -> None:
    """Lets a function of a public module look for overrides."""
    module = f"n{module[1:]}" if module.startswith("torch") else module  # as norch.as_torch() calls them
    if type(function) is not FunctionType or name[0] == "_" or name in IGNORED or module not in MODULES:
        return
    if name in _TAKING_DATA:
        entry_of(function).change(
            override=lambda arguments, named: overridden(function, arguments, named) if state.modes else NOTHING
        )
    elif function.__module__.startswith(("norch", "torch")) and _takes_any(function.__code__):
        _let_look(function, function)


# ---- methods of subclasses -------------------------------------------------------------------------------------------

_OWN = frozenset(  # methods and attributes that are not overridden
    "__new__ __init__ __init_subclass__ __class__ __reduce__ __reduce_ex__ __deepcopy__ __dir__ __iter__ "
    "__hash__ __dict__ __weakref__ __slots__ __doc__ __module__ __dictoffset__ __array_priority__ "
    "__torch_function__ as_subclass __dlpack__ __dlpack_device__ __annotations__ __firstlineno__ "
    "__static_attributes__ __orig_bases__ __parameters__".split()
)


def _public_names() -> set[str]:
    names = {name for base in Tensor.__mro__[:-1] for name in vars(base)}
    return {name for name in names - _OWN if name[0] != "_" or name[:2] == "__"}


def _static(cls: type, name: str) -> Any:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


class _Attribute:
    """An attribute of Tensor in a subclass that overrides it."""

    def __init__(self, base: Any):
        self.base = base

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self.base.__get__(None, owner)
        result = overridden(self.base.__get__, (instance,), {})
        return self.base.__get__(instance, owner) if result is NOTHING else result

    def __set__(self, instance: Any, value: Any) -> None:
        if overridden(self.base.__set__, (instance, value), {}) is NOTHING:
            self.base.__set__(instance, value)

    def __delete__(self, instance: Any) -> None:
        self.base.__delete__(instance)


def _method(name: str, base: Any) -> Any:
    """A method of Tensor in a subclass that overrides it."""
    is_reflected = name[:3] == "__r" and f"__{name[3:]}" in _PASSED_AS or name in ("__rand__", "__ror__", "__rxor__")
    is_operator = name[:2] == "__" and (hasattr(int, name) or name[:3] == "__i" or name.endswith("matmul__"))

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        function = base if type(base) is FunctionType else getattr(Tensor, name)
        if state.bare:
            return function(self, *arguments, **named)
        public, operands = getattr(Tensor, _PASSED_AS.get(name, name)), (self, *arguments)
        if is_reflected and isinstance(arguments[0], Handle):  # the operator of a plain tensor
            forward = f"__{name[3:]}"
            public, operands = getattr(Tensor, _PASSED_AS.get(forward, forward)), (arguments[0], self)
        try:
            result = overridden(public, operands, named)
        except TypeError:
            if is_operator and not overloaded(arguments) and function(self, *arguments) is NotImplemented:
                return NotImplemented
            raise
        return function(self, *arguments, **named) if result is NOTHING else result

    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    method.__doc__ = None if type(base) is not FunctionType else base.__doc__
    return method


def _install(cls: type) -> None:
    """Adds methods and attributes of Tensor that look for overrides to cls, a class whose bases have none."""
    if "_overrides" in vars(cls):
        return
    cls._overrides = True  # type: ignore[attr-defined]
    for name in _public_names():
        base = _static(Tensor, name)
        if isinstance(base, DeferredMethod) and base.module.startswith("norch.ops"):  # it may be a property
            getattr(Tensor, name)
            base = _static(Tensor, name)
        if base is None or isinstance(base, (staticmethod, classmethod)):
            continue
        if _static(cls, name) is not base:  # a method of its own, which may call super()'s: that one looks itself
            if type(method := _method_of_tensor(name)) is FunctionType:
                _let_look(method, getattr(Tensor, _PASSED_AS.get(name, name)))
            continue
        if isinstance(base, (property, MemberDescriptorType, GetSetDescriptorType)):
            setattr(cls, name, _Attribute(base))
        elif callable(base) or hasattr(base, "function"):
            setattr(cls, name, _method(name, base))


# ---- modes -----------------------------------------------------------------------------------------------------------

_lock = threading.Lock()
_active = 0  # modes in all threads


def change_modes(change: int) -> None:
    """Counts a mode that begins (1) or ends (-1). While there is one, all methods look for it, also methods of plain
    tensors.
    """
    begin()
    lib.norch_captured_slow_path(change)
    with _lock:
        _change_modes(change)


def _change_modes(change: int) -> None:
    global _active
    _active += change
    if not _methods:
        for name in sorted(_public_names()):
            method = _method_of_tensor(name)
            if type(method) is FunctionType and id(method) not in _on:
                _methods[id(method)] = entry_of(method), _looking(getattr(Tensor, _PASSED_AS.get(name, name)))
    if _active == (change > 0):
        for entry, override in _methods.values():
            entry.change(override=override if _active else None)
        PLAIN.clear() if _active else PLAIN.update(_plain)
