"""``norch.library``: user-defined operations in Python with derivatives and shape rules, by PyTorch's names.

>>> @norch.library.custom_op("mine::double", mutates_args=())
... def double(x: norch.Tensor) -> norch.Tensor:
...     return x + x
>>> double.register_autograd(lambda ctx, grad: 2 * grad)
>>> x = norch.ones(2, requires_grad=True)
>>> norch.ops.mine.double(x).sum().backward()
>>> x.grad
tensor([2., 2.])
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from .._package.exports import publish
from ..autograd.transforms import leaves
from ..errors import ArgumentError, Error
from .operators import ANY, COMPOSITE, REGISTERED, Operation
from .placeholders import passes

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "impl", "impl_abstract",
    "infer_schema", "opcheck", "register_autocast", "register_autograd", "register_fake", "register_kernel",
    "register_torch_dispatch", "register_vmap", "triton_op",
]  # fmt: skip
publish(globals(), name="norch.library")


def _operation(op: Any) -> Operation:
    """The operation of a name, operation or custom_op() result; a new one for a new name."""
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, Operation):
        return op
    name = str(op).removesuffix(".default")
    if name.count("::") != 1 or not all(name.split("::")):
        raise ArgumentError(f"library: an operation is named like 'namespace::name', not {name!r}")
    return REGISTERED.setdefault(name, Operation(name))


def _decorator(register: Callable[[Any], Any], fn: Any) -> Any:
    """register(fn), or a decorator that does it."""

    def decorate(function: Any) -> Any:
        register(function)
        return function

    return decorate if fn is None else decorate(fn)


def _keys(device_types: Any) -> list[str]:
    if device_types is None or device_types == "default":
        return [ANY]
    return [kind.upper() for kind in ([device_types] if isinstance(device_types, str) else device_types)]


def _without_aliases(name: str, kernel: Any) -> Any:
    """The kernel, which raises Error for a result that shares memory with an argument or another result."""

    @functools.wraps(kernel)
    def checked(*args: Any, **kwargs: Any) -> Any:
        result = kernel(*args, **kwargs)
        seen = {x.untyped_storage().data_ptr() for x in leaves((args, kwargs))}
        for x in leaves(result):
            if (place := x.untyped_storage().data_ptr()) in seen and x.untyped_storage().nbytes():
                raise Error(
                    f"{name}: a result shares memory with an argument or another result; return a clone() of it"
                )
            seen.add(place)
        return result

    return checked


class CustomOpDef:
    """An operation and the functions registered for it. custom_op() makes it."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Any) -> None:
        self._namespace, self._name, self._qualname, self._init_fn = namespace, name, f"{namespace}::{name}", fn
        self._opoverload = REGISTERED[self._qualname] = Operation(self._qualname, schema)
        self.__name__, self.__doc__, self.__wrapped__ = name, fn.__doc__, fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """Registers the kernel for a device type."""
        return _decorator(lambda kernel: self._register(device_types, kernel), fn)

    def _register(self, device_types: Any, kernel: Any) -> None:
        register_kernel(self, device_types, _without_aliases(self._qualname, kernel))

    def register_fake(self, fn: Any, /) -> Any:
        """Registers a function that makes results of the right shapes for tensors without memory."""
        return register_fake(self, fn)

    def register_autograd(self, backward: Any, /, *, setup_context: Any = None) -> None:
        """Registers the derivative. backward(ctx, *grads) returns a gradient for each argument; setup_context(ctx,
        inputs, output) stores what it needs, by ctx.save_for_backward() or as attributes."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func: Any = None) -> Any:
        """Registers the batching rule, as register_vmap()."""
        return register_vmap(self, func)

    register_torch_dispatch = register_autocast = lambda self, *args: passes(args[-1])

    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Any:
        """A context without effect."""
        from contextlib import nullcontext

        return nullcontext()


def custom_op(
    name: str,
    fn: Any = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes a function of tensors an operation named "namespace::name", opaque to autograd.

    register_autograd() gives it a derivative; without one backward() raises RuntimeError.
    """

    def make(function: Any) -> CustomOpDef:
        space, _, short = name.partition("::")
        if not short:
            raise ArgumentError(f"custom_op: an operation is named like 'namespace::name', not {name!r}")
        definition = CustomOpDef(space, short, schema or infer_schema(function, mutates_args=mutates_args), function)
        definition._opoverload.function = None if schema else function
        definition._register(device_types, function)
        return definition

    return make if fn is None else make(fn)


def triton_op(
    name: str, fn: Any = None, /, *, mutates_args: str | Iterable[str], schema: str | None = None
) -> Any:  # fmt: skip
    """custom_op() for a function that calls Triton kernels, which need Triton and CUDA."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Registers an operation's kernel for a device type; without func a decorator."""
    operation = _operation(op)
    return _decorator(lambda fn: operation.kernels.update(dict.fromkeys(_keys(device_types), fn)), func)


def register_fake(
    op: Any, func: Any = None, /, *, lib: Any = None, _stacklevel: int = 1, allow_override: bool = False
) -> Any:
    """Registers the function that makes results on the device "meta"; without func a decorator."""
    operation = _operation(op)
    return _decorator(lambda fn: setattr(operation, "fake", fn), func)


impl_abstract = register_fake


def register_autograd(op: Any, backward: Any, /, *, setup_context: Any = None, lib: Any = None) -> None:
    """Registers an operation's derivative, as CustomOpDef.register_autograd()."""
    operation = _operation(op)
    operation.backward, operation.setup_context = backward, setup_context


def register_vmap(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Registers the function that vmap calls instead of an operation: func(info, in_dims, *args, **kwargs), which
    returns (results, out_dims) as autograd.Function.vmap() does. Without func a decorator."""
    operation = _operation(op)
    return _decorator(lambda fn: setattr(operation, "vmap", fn), func)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Returns func."""
    return passes(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Has no effect: autocast does not cast arguments of custom operations."""


def define(qualname: str, schema: str = "", *, lib: Any = None, tags: Any = ()) -> Any:
    """Declares an operation; impl() registers its kernels."""
    _operation(qualname).schema = schema


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Registers an operation's kernel for device types; without func a decorator."""
    return register_kernel(qualname, types, func)


class Library:
    """A namespace of operations: define() declares them, impl() registers their kernels."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declares an operation, such as "add(Tensor x, Tensor y) -> Tensor"."""
        name = schema.partition("(")[0].strip()
        _operation(f"{self.ns}::{name}").schema = schema
        return name

    def impl(
        self,
        op_name: Any,
        fn: Any = None,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> Any:
        """Registers an operation's kernel for a key: "CPU", "CUDA" or "Meta", or "Autograd..." or
        "CompositeImplicitAutograd" (the default) for a function whose own operations are recorded. Without fn a
        decorator."""
        key = dispatch_key or self.dispatch_key or COMPOSITE
        name = getattr(op_name, "name", op_name)
        operation = _operation(name if "::" in str(name) else f"{self.ns}::{name}")
        if self.ns == "aten" or operation.namespace == "aten":
            raise NotImplementedError(
                f"library: {operation.name}: kernels of norch's own operations cannot be replaced"
            )
        if key == "Meta":
            return _decorator(lambda function: setattr(operation, "fake", function), fn)
        if key.startswith("Autograd"):
            key = COMPOSITE
        return _decorator(lambda function: operation.kernels.__setitem__(key, function), fn)

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Has no effect: operations without a kernel raise."""

    def _register_fake(self, op_name: str, fn: Any, _stacklevel: int = 1, *, allow_override: bool = False) -> None:
        register_fake(f"{self.ns}::{op_name.partition('::')[2] or op_name}", fn)

    def _destroy(self) -> None:
        """Removes the registrations under this namespace."""
        for name in [name for name in REGISTERED if name.startswith(f"{self.ns}::")]:
            del REGISTERED[name]


def fallthrough_kernel(*args: Any, **kwargs: Any) -> Any:
    """A marker for registration; it cannot be called."""
    raise NotImplementedError("library.fallthrough_kernel: it marks a registration and cannot be called")


class _Context:
    """The result of get_ctx(): a fake result cannot have sizes that depend on values."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:  # noqa: A002
        raise NotImplementedError("new_dynamic_size: norch's shapes are numbers and cannot depend on values")

    create_unbacked_symint = new_dynamic_size


def get_ctx() -> _Context:
    """The context for functions of register_fake()."""
    return _Context()


_TYPES = {"Tensor": "Tensor", "int": "SymInt", "float": "float", "bool": "bool", "str": "str", "dtype": "ScalarType",
          "device": "Device", "Number": "Scalar"}  # fmt: skip


def infer_schema(prototype_function: Any, /, *, mutates_args: Any = (), op_name: str | None = None) -> str:
    """The signature of a function in PyTorch's form, from its annotations. ArgumentError for a parameter without
    one."""
    signature = inspect.signature(prototype_function)
    parts, starred = [], False
    for number, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        if parameter.annotation is parameter.empty:
            raise ArgumentError(f"infer_schema: the parameter {name!r} has no annotation")
        kind = _schema_type(parameter.annotation)
        changed = mutates_args == "unknown" or name in mutates_args
        if changed and kind.startswith("Tensor"):
            kind = kind.replace("Tensor", f"Tensor(a{number}!)", 1)
        default = "" if parameter.default is parameter.empty else f"={parameter.default}"
        parts.append(f"{kind} {name}{default}")
    result = signature.return_annotation
    return f"{op_name or ''}({', '.join(parts)}) -> {'()' if result in (None, 'None') else _schema_type(result)}"


def _schema_type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else _text(annotation)
    text = text.replace("typing.", "").replace("collections.abc.", "").strip()
    head, bracket, inside = text.partition("[")
    inside = inside.rsplit("]", 1)[0]
    among = inside.split(",") if head == "Union" else text.split("|") if "|" in text.rpartition("]")[2] + head else []
    if among:  # Number is Union[int, float, bool]
        kinds = {part.strip() for part in among}
        types = kinds - {"None", "NoneType"}
        return _schema_type("Number" if types == {"int", "float", "bool"} else "|".join(types)) + "?" * (types != kinds)
    if head == "Optional":
        return _schema_type(inside) + "?"
    if head.lower() in ("list", "sequence"):
        return _schema_type(inside) + "[]"
    if head.lower() == "tuple":
        return f"({', '.join(_schema_type(part) for part in inside.split(','))})"
    name = head.rpartition(".")[2]
    if name not in _TYPES:
        raise ArgumentError(f"infer_schema: {text} is not a type that operations take")
    return _TYPES[name]


def _text(annotation: Any) -> str:
    return (
        annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else str(annotation)
    )


def opcheck(
    op: Any, args: Any, kwargs: Any = None, *, test_utils: Any = (), raise_exception: bool = True, **tolerances: Any
) -> dict[str, str]:
    """Runs an operation, and checks its derivative, if one is registered and an argument requires it, against finite
    differences (testing.gradcheck)."""
    operation = _operation(op)
    operation(*args, **(kwargs or {}))
    if operation.backward is not None and any(getattr(x, "requires_grad", False) for x in args):
        from ..testing import gradcheck

        wide = [x.double().detach().requires_grad_() if getattr(x, "requires_grad", False) else x for x in args]
        gradcheck(lambda *tensors: operation(*tensors, **(kwargs or {})), wide)
    return {"test_schema": "SUCCESS", "test_autograd_registration": "SUCCESS"}
