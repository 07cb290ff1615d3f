"""Module: the base of layers and models. It registers parameters, buffers and submodules by name, and converts, moves
and prints them; _state_dict.py saves and loads them. Subclasses define `forward`.

Each of them is stored twice: in the registry of its kind, which keeps the order for iteration, and in the instance's
`__dict__`, so that `self.weight` is an ordinary attribute look-up; a Registry (_registry.py) writes to both.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .._binding.library import lib
from .._package.typing import DeviceLike, Self
from ..autograd.hooks import RemovableHandle, add_hook
from ..dtype import bfloat16, check_format, float16, float32, float64
from ..errors import DTypeError
from ..ops._deferred import DeferredMethod
from ..ops.copy import parse_to
from ..ops.create import empty, empty_like
from ..tensor import Tensor
from . import _hooks
from ._registry import (
    HOOKS,
    REGISTRIES,
    Registry,
    RegistryAttribute,
    assignment_error,
    names_of_hints,
    restoring,
    set_state,
    unexpected_arguments,
    whole_tree,
    without_entries,
)
from ._state_dict import IncompatibleKeys as IncompatibleKeys
from ._state_dict import StateDict
from .parameter import Parameter


def _no_forward(self: Module, *args: Any) -> Any:
    raise NotImplementedError(f"{type(self).__name__} defines no forward()")


class Module(StateDict):
    """Base of all layers and models. A subclass calls `super().__init__()`, assigns parameters and submodules as
    attributes, and defines `forward`.

    The constructors of layers take the device and dtype of the layer's parameters and buffers; None, the default, means
    the default device and dtype (`norch.set_default_device()`, `norch.set_default_dtype()`). In the shapes of
    docstrings N is the number of samples, C the number of channels, and D, H, W and L are spatial sizes.

    >>> class Net(norch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.fc = norch.nn.Linear(3, 2)
    ...     def forward(self, x):
    ...         return self.fc(x).relu()
    >>> net = Net()
    >>> net(norch.ones(4, 3)).shape
    norch.Size([4, 2])
    >>> [name for name, _ in net.named_parameters()]
    ['fc.weight', 'fc.bias']
    """

    training: bool
    _forward_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _backward_hooks: OrderedDict[int, Callable[..., Any]]
    _backward_pre_hooks: OrderedDict[int, Callable[..., Any]]
    # Annotated as a callable so that a subclass can define forward with any arguments.
    forward: Callable[..., Any] = _no_forward

    call_super_init = False  # whether __init__() calls __init__() of the next class with its arguments

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            raise unexpected_arguments(self, args, kwargs)
        # Not by assignment: __setattr__ needs the registries.
        self.__dict__.update(
            training=True,
            _parameters=Registry.of(self, {}),
            _buffers=Registry.of(self, {}),
            _modules=Registry.of(self, {}),
            _non_persistent_buffers_set=set(),
            **{name: OrderedDict() for name in HOOKS},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ---- calling ------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls `forward(*args, **kwargs)` and the hooks before and after it. An exception gets a note with the module
        that raised it and the arguments of the call."""
        try:
            if (
                self._forward_hooks
                or self._forward_pre_hooks
                or self._backward_hooks
                or self._backward_pre_hooks
                or _hooks.has_global_hooks
            ):
                return _hooks.call(self, args, kwargs)
            return self.forward(*args, **kwargs)
        except Exception as error:
            from . import _error_notes

            _error_notes.note(error, self, args, kwargs)
            raise

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before each forward; a result other than None replaces args. with_kwargs: calls
        `hook(module, args, kwargs)`, which returns None or (args, kwargs). prepend: before the existing hooks."""
        return add_hook(self._forward_pre_hooks, hook, prepend, [(self._forward_pre_hooks_with_kwargs, with_kwargs)])

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args, output)` after each forward; a result other than None replaces output. with_kwargs:
        calls `hook(module, args, kwargs, output)`. always_call: also if forward raises, with output None."""
        options = [(self._forward_hooks_with_kwargs, with_kwargs), (self._forward_hooks_always_called, always_call)]
        return add_hook(self._forward_hooks, hook, prepend, options)

    def register_full_backward_hook(
        self, hook: Callable[[Any, Any, Any], Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)`, with tuples of gradients, after the backward of the module; a
        result other than None replaces grad_input. Inputs are the positional arguments; None means no gradient.

        >>> relu = norch.nn.ReLU()
        >>> handle = relu.register_full_backward_hook(lambda module, inner, outer: print(inner, outer))
        >>> relu(norch.tensor([-1.0, 1.0], requires_grad=True)).sum().backward()
        (tensor([0., 1.]),) (tensor([1., 1.]),)
        """
        return add_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[[Any, Any, Any], Any]) -> RemovableHandle:
        """PyTorch's deprecated name; here an alias of register_full_backward_hook()."""
        return self.register_full_backward_hook(hook)

    def register_full_backward_pre_hook(
        self, hook: Callable[[Any, Any], Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_output)` before the module's backward; a result other than None replaces
        grad_output."""
        return add_hook(self._backward_pre_hooks, hook, prepend)

    _parameters: Any = RegistryAttribute("_parameters")
    _buffers: Any = RegistryAttribute("_buffers")
    _modules: Any = RegistryAttribute("_modules")
    compile = DeferredMethod("norch.program.module_compile", "compile")  # in a package that imports this one

    # ---- registration -------------------------------------------------------------------------------------

    def _registry_of(self, name: str) -> dict[str, Any] | None:
        state = self.__dict__
        for kind in REGISTRIES:
            if name in state.get(kind, ()):
                return state[kind]
        return None

    if not TYPE_CHECKING:  # for type checkers a module has the attributes that its class names

        def __getattr__(self, name: str) -> Any:
            """The parameter, buffer or submodule, for classes with a __getattr__ that calls super().__getattr__(name).
            An ordinary look-up finds these in the instance and never calls this."""
            if (registry := self._registry_of(name)) is not None:
                return registry[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        _look_up_ordinarily(cls)
        restoring(cls)

    @property
    def __globals__(self) -> dict[str, Any]:
        """The names in which typing.get_type_hints(module) looks up the annotations of its class."""
        return names_of_hints(type(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return without_entries(super().__reduce_ex__(protocol))

    def __setstate__(self, state: dict[str, Any]) -> None:
        set_state(self, state)

    def _bind(self, kind: str, name: str, value: Any) -> None:
        state = self.__dict__
        registry: Any = state.get(kind)
        if registry is None:
            raise AttributeError(f"cannot assign {name!r} before super().__init__() was called")
        if value is not None:
            value = _hooks.registered(self, kind, name, value)
        if name not in registry:
            self._unbind(name)
            if hasattr(type(getattr(type(self), name, None)), "__set__"):
                _look_up_after_properties(type(self))
        registry[name] = value
        state[name] = value

    def _unbind(self, name: str) -> None:
        registry = self._registry_of(name)
        if registry is not None:
            del registry[name]
            self._non_persistent_buffers_set.discard(name)
        self.__dict__.pop(name, None)

    def _check_name(self, kind: str, name: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign a {kind} before super().__init__() was called")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string, got {type(name).__name__}")
        if name == "" or "." in name:
            raise KeyError(f"{kind} name can't be empty or contain a dot, got {name!r}")
        if hasattr(self, name) and name not in self.__dict__[f"_{kind}s"]:
            raise KeyError(f"attribute {name!r} already exists")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and type(value) is not Tensor and isinstance(value, Parameter):
            self._bind("_parameters", name, value)
        elif isinstance(value, Module):
            if name in self.__dict__.get("_parameters", ()):
                raise assignment_error("norch.nn.Parameter", value, "parameter", name)
            self._bind("_modules", name, value)
        elif isinstance(value, Tensor) and getattr(value, "_is_buffer", False):
            self.register_buffer(name, value, value.persistent)  # type: ignore[attr-defined]
        else:
            registry = self._registry_of(name)
            if registry is not None:
                self._check_replacement(registry, name, value)
                if registry is self._buffers:
                    value = _hooks.registered(self, "_buffers", name, value)
                registry[name] = value
            object.__setattr__(self, name, value)

    def _check_replacement(self, registry: dict[str, Any], name: str, value: Any) -> None:
        if value is None or (registry is self._buffers and isinstance(value, Tensor)):
            return
        kind, expected = "parameter", "norch.nn.Parameter"
        if registry is self._buffers:
            kind, expected = "buffer", "norch.Tensor"
        elif registry is self._modules:
            kind, expected = "child module", "norch.nn.Module"
        raise assignment_error(expected, value, kind, name)

    def __delattr__(self, name: str) -> None:
        if self._registry_of(name) is not None:
            self._unbind(name)
        else:
            object.__delattr__(self, name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under `name`; None registers an absent one, such as the bias of a layer without bias."""
        self._check_name("parameter", name)
        if param is not None and not isinstance(param, Parameter):
            raise assignment_error("norch.nn.Parameter", param, "parameter", name)
        self._bind("_parameters", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is part of the module but not trained; `state_dict()` contains the persistent ones.

        >>> m = norch.nn.Module()
        >>> m.register_buffer("mean", norch.zeros(2))
        >>> list(m.state_dict())
        ['mean']
        """
        self._check_name("buffer", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise assignment_error("norch.Tensor", tensor, "buffer", name)
        self._bind("_buffers", name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule under `name`."""
        self._check_name("module", name)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._bind("_modules", name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as add_module()."""
        self.add_module(name, module)

    # ---- iteration ----------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """(name, module) of the module itself, named prefix, and of all modules below it, parents first."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """The module itself and all modules below it, each once; or without remove_duplicate as often as it occurs."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of the direct submodules, each once."""
        seen: set[int] = set()
        for name, child in self._modules.items():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def children(self) -> Iterator[Module]:
        """The direct submodules, each once."""
        for _, child in self.named_children():
            yield child

    def _named_members(
        self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        everything = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        walk = everything if recurse else [(prefix, self)]
        for path, module in walk:
            for name, value in module.__dict__[kind].items():
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter), in the order of registration; a shared parameter once."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once, for an optimizer.

        >>> sum(p.numel() for p in norch.nn.Linear(3, 2).parameters())
        8
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(name, buffer), in the order of registration."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path. AttributeError if there is none."""
        module: Any = self
        for name in target.split(".") if target else ():
            module = module._modules.get(name)
            if module is None:
                raise AttributeError(f"{type(self).__name__} has no submodule {target!r} (no {name!r})")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replaces or adds the module at a dotted path. AttributeError if its parent, or with strict the module itself,
        does not exist; ValueError for an empty path, or if module is no Module.

        >>> m = norch.nn.Sequential(norch.nn.Sequential(norch.nn.Tanh()))
        >>> m.set_submodule("0.0", norch.nn.ReLU())
        >>> m[0][0]
        ReLU()
        """
        if not isinstance(module, Module):
            raise ValueError(f"set_submodule: expected a module, not {type(module).__name__}")
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("set_submodule: the name is empty")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path. AttributeError if there is none."""
        return self._member("_parameters", target, "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path. AttributeError if there is none."""
        return self._member("_buffers", target, "buffer")

    def _member(self, kind: str, target: str, label: str) -> Any:
        path, _, name = target.rpartition(".")
        value = self.get_submodule(path).__dict__[kind].get(name)
        if value is None:
            raise AttributeError(f"{type(self).__name__} has no {label} {target!r}")
        return value

    # ---- modes, dtypes, devices ---------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Sets `training`, which for example Dropout reads, for this module and all below it. Returns the module."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)  # a class may override train(), to keep layers in evaluation
        return self

    def eval(self) -> Self:
        """The same as `train(False)`."""
        return self.train(False)

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls `fn(module)` for every module below this one, children first, and then for this one. Returns it."""
        if not callable(fn):
            raise TypeError(f"apply: expected a function of a module, not {type(fn).__name__}")
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets `requires_grad` of every parameter; False freezes the module."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradient of every parameter to None, or to zeros."""
        for param in self.parameters():
            if set_to_none:
                param.grad = None
            elif param.grad is not None:
                param.grad = param.grad.detach().zero_()

    def to(self, *args: Any, memory_format: Any = None, **kwargs: Any) -> Self:
        """`to(dtype)`, `to(device)`, `to(device, dtype)` or `to(tensor)`: converts all parameters, buffers and
        gradients in place; parameters keep their identity. The dtype must be a float or complex dtype; integer and
        bool tensors keep theirs. Raises the errors of `Tensor.to` before anything is changed.

        >>> norch.nn.Linear(3, 2).to(norch.float64).weight.dtype
        norch.float64
        """
        check_format(memory_format, "Module.to")
        dtype, device, non_blocking, _ = parse_to(*args, **kwargs)
        target = empty(0, device="cpu").to(dtype=dtype, device=device)  # raises the errors
        if dtype is not None and not (target.is_floating_point() or target.is_complex()):
            raise DTypeError(f"Module.to only accepts floating point or complex dtypes, got {target.dtype}")

        def converted(tensor: Tensor) -> Tensor:
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            return tensor.to(device=device, dtype=wanted, non_blocking=non_blocking)

        return self._apply(converted)

    def share_memory(self) -> Self:
        """Moves all parameters, buffers and gradients to shared memory: see `Tensor.share_memory_`."""
        for module in whole_tree(self):
            for tensor in (*module._parameters.values(), *module._buffers.values()):
                for shared in () if tensor is None else (tensor, tensor.grad):
                    if shared is not None:
                        shared.share_memory_()
        return self

    def type(self, dst_type: Any) -> Self:
        """Converts all parameters and buffers to a dtype, integers included."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def half(self) -> Self:
        """Converts all float parameters and buffers to float16."""
        return self._apply(_to_floats(float16))

    def bfloat16(self) -> Self:
        """Converts all float parameters and buffers to bfloat16."""
        return self._apply(_to_floats(bfloat16))

    def float(self) -> Self:
        """Converts all float parameters and buffers to float32."""
        return self._apply(_to_floats(float32))

    def double(self) -> Self:
        """Converts all float parameters and buffers to float64."""
        return self._apply(_to_floats(float64))

    def cpu(self) -> Self:
        """Moves all parameters and buffers to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Moves all parameters and buffers to a CUDA device: the current one, or `device`, a number or "cuda:1".
        DeviceError if it does not exist."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def to_empty(self, *, device: DeviceLike, recurse: bool = True) -> Self:
        """Moves all parameters and buffers to a device (None: the current one) without their values: the memory is
        uninitialized. With recurse this includes submodules.
        """
        return self._apply(lambda tensor: empty_like(tensor, device=device), recurse)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replaces every tensor by fn(tensor). All are converted before any is replaced, so an error
        changes nothing. If a subclass overrides this, for tensors that it holds elsewhere, the modules are
        converted one after another."""
        modules = whole_tree(self) if recurse else [self]  # parameters() may leave some out, in a subclass
        if any(type(m)._apply is not Module._apply for m in modules[1:]):
            for child in self.children():
                child._apply(fn)
            modules = [self]
        held = {id(param): param for m in modules for param in m._parameters.values() if param is not None}
        plan = [
            (param, fn(param.detach()), None if param.grad is None else fn(param.grad.detach()))
            for param in held.values()
        ]
        buffers = {id(buffer): buffer for m in modules for buffer in m._buffers.values() if buffer is not None}
        fresh = {key: fn(buffer) for key, buffer in buffers.items()}
        for param, data, grad in plan:
            param.grad = None
            param.data = data
            param.grad = grad
        for module in modules:
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = fresh[id(buffer)]
        return self

    # ---- printing -----------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The text between the parentheses of repr(); subclasses override it."""
        return ""

    def _child_lines(self) -> list[str]:
        return [f"({name}): " + indent(repr(child)) for name, child in self._modules.items()]

    def __repr__(self) -> str:
        extra, children = self.extra_repr(), self._child_lines()
        name = self._get_name()
        if not children and "\n" not in extra:
            return f"{name}({extra})"
        lines = (extra.split("\n") if extra else []) + children
        return f"{name}(\n  " + "\n  ".join(lines) + "\n)"

    _repr_html_ = DeferredMethod("norch.utils._module_html", "_repr_html_")


def _to_floats(dtype: Any) -> Callable[[Tensor], Tensor]:
    return lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor


def _look_up_ordinarily(cls: Any) -> None:
    """Removes the __getattr__ of Module from the look-ups of cls, because it finds only attributes that exist anyway. A
    class that defines __getattr__ keeps it.
    """
    if cls.__getattr__ is Module.__getattr__ and cls.__getattribute__ is object.__getattribute__:  # type: ignore[attr-defined]
        lib.norch_ordinary_lookup(cls)


_look_up_ordinarily(Module)


def _look_up_after_properties(cls: Any) -> None:
    """Makes Python call Module.__getattr__ for instances of cls again. It finds modules that are registered under the
    name of a property, after the property has raised an AttributeError."""
    if cls.__getattr__ is Module.__getattr__:  # type: ignore[attr-defined]
        cls.__getattr__ = Module.__getattr__  # type: ignore[attr-defined]


def indent(text: str) -> str:
    return text.replace("\n", "\n  ")
