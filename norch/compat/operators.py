"""``norch.ops.NAMESPACE.NAME``: user-defined operations (library.py), and PyTorch's.

norch cannot load operators that were compiled for PyTorch. It has its own implementation of torchvision's
(torchvision_ops.py).
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import norch

from ..autograd import Function
from ..autograd.levels import Level, within
from ..tensor import Tensor
from . import pytree
from .placeholders import OTHER_PARTS, sentence

REGISTERED: dict[str, Operation] = {}  # by "namespace::name"
# Namespaces that a file of compat/ implements, and the packages whose libraries they replace.
OURS = {"torchvision": "torchvision_ops", "torchaudio": "torchaudio_ops", "_torchaudio": "torchaudio_ops"}
LIBRARIES = {"torchvision": ("_C.",), "torchaudio": ("_torchaudio.", "libtorchaudio.")}
BUILTIN = frozenset(
    "aten prim prims quantized _quantized c10d c10d_functional _c10d_functional _c10d_functional_autograd _dtensor "
    "fsdp symm_mem mkldnn inductor sparse onednn debugprims".split()
)
COMPOSITE = "CompositeImplicitAutograd"  # the kernel's own operations are recorded
ANY = "CompositeExplicitAutograd"


class Operation:
    """An operation of a namespace, callable. PyTorch's overloads, such as .default, are the same object."""

    def __init__(self, name: str, schema: str = "") -> None:
        self.name, self.schema = name, schema
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.fake: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.vmap: Callable[..., Any] | None = None
        self.function: Callable[..., Any] | None = None  # whose parameters the operation has, if no schema was given
        self.__name__ = self._opname = name.rpartition("::")[2]
        self.namespace = name.partition("::")[0]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs and (signature := self.signature):
            args, kwargs = _placed(signature, args, kwargs)
        tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        if self.vmap is not None and within.levels:
            rules = Level.own_rules
            if (level := rules.level_of(tensors)) is not None:
                return rules.by_rule(self.vmap, level, args, kwargs)
        kernel = self.kernel(tensors)
        if kernel is self.kernels.get(COMPOSITE):
            return kernel(*args, **kwargs)
        if not norch.is_grad_enabled() or not any(x.requires_grad for x in tensors):
            with norch.no_grad():
                return kernel(*args, **kwargs)
        return _recorded(self, kernel, args, kwargs)

    @property
    def signature(self) -> inspect.Signature | None:
        """The parameters, or None if they are unknown."""
        if self.function is not None:
            return inspect.signature(self.function)
        return _parsed(self.schema) if self.schema else None

    def kernel(self, tensors: list[Tensor]) -> Callable[..., Any]:
        kinds = [x.device.type for x in tensors]
        if "meta" in kinds and self.fake is not None:
            return self.fake
        kind = next((k for k in kinds if k != "cpu"), "cpu")
        for key in (kind.upper(), ANY, COMPOSITE):
            if key in self.kernels:
                return self.kernels[key]
        raise NotImplementedError(
            f"{self.name}: norch has no kernel for {kind}; there are {', '.join(self.kernels) or 'none'}"
        )

    @property
    def default(self) -> Operation:
        return self

    def overloads(self) -> list[str]:
        return ["default"]

    def __repr__(self) -> str:
        return f"<Operation {self.name}>"


@cache
def _parsed(schema: str) -> inspect.Signature:
    """The parameters of a schema, "(Tensor x, int[] k=[1, 2], *, float j=1.) -> Tensor"."""
    inside = schema.rpartition("->")[0].partition("(")[2].rpartition(")")[0]
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = []
    for part in re.findall(r"""(?:"[^"]*"|'[^']*'|\[[^]]*\]|\([^)]*\)|[^,])+""", inside):
        declared, _, text = part.strip().partition("=")
        if declared == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        default: Any = inspect.Parameter.empty
        if text:
            try:
                default = ast.literal_eval(text)
            except (ValueError, SyntaxError):  # a constant of PyTorch's, such as contiguous_format
                default = text
        found.append(inspect.Parameter(declared.split()[-1], kind, default=default))
    return inspect.Signature(found)


def _placed(signature: inspect.Signature, args: Any, kwargs: Any, defaults: bool = False) -> tuple[Any, dict[str, Any]]:
    """The arguments as PyTorch's dispatcher passes them: by position, but for parameters after "*". Without defaults
    the parameters after the last given one are left out."""
    bound = signature.bind(*args, **kwargs)
    given = dict(bound.arguments)
    bound.apply_defaults()
    if defaults:
        return bound.args, bound.kwargs
    places = [i for i, name in enumerate(bound.arguments) if name in given]
    named = {name: value for name, value in bound.kwargs.items() if name in given}
    return bound.args[: places[-1] + 1 if places else 0], named


class _Node(Function):
    """A call of an operation whose kernel is opaque to autograd. The last argument describes the others."""

    @staticmethod
    def forward(ctx: Any, *leaves: Any) -> Any:
        *values, how = leaves
        ctx.how = how
        args, kwargs = pytree.tree_unflatten(values, how.spec)
        out = how.kernel(*args, **kwargs)
        if how.operation.setup_context is not None:
            if signature := how.operation.signature:
                args, kwargs = _placed(signature, args, kwargs, defaults=True)
            how.operation.setup_context(
                ctx=ctx, inputs=args, output=out, **({"keyword_only_inputs": kwargs} if kwargs else {})
            )
        how.is_list = isinstance(out, list)
        return tuple(out) if how.is_list else out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        how = ctx.how
        if how.operation.backward is None:
            raise RuntimeError(
                f"backward: {how.operation.name} has no derivative; register one with register_autograd()"
            )
        results = how.operation.backward(ctx, *([list(grads)] if how.is_list else grads))
        results = results if isinstance(results, tuple) else (results,)
        spread: list[Any] = []
        for argument, grad in zip(how.args, results):
            count = len(pytree.tree_leaves(argument))
            spread += pytree.tree_leaves(grad) if isinstance(grad, (list, tuple)) else [grad] * count
        return (*spread, *(None,) * (how.count - len(spread)), None)


class _How:
    """The structure of a call's arguments, and the operation."""

    def __init__(self, operation: Operation, kernel: Any, args: Any, spec: Any, count: int) -> None:
        self.operation, self.kernel, self.args, self.spec, self.count = operation, kernel, args, spec, count
        self.is_list = False


def _recorded(operation: Operation, kernel: Any, args: Any, kwargs: Any) -> Any:
    leaves, spec = pytree.tree_flatten((args, kwargs))
    how = _How(operation, kernel, args, spec, len(leaves))
    out = _Node.apply(*leaves, how)
    return list(out) if how.is_list else out


# ---- namespaces ----------------------------------------------------------------------------------------------------


class Namespace:
    """The operations of a namespace, as attributes."""

    def __init__(self, name: str) -> None:
        self.name = self.__name__ = name

    def __reduce__(self) -> Any:
        return namespace, (self.name,)

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        if self.name in OURS:
            import_module(f"norch.compat.{OURS[self.name]}")
            REGISTERED.setdefault(
                f"{self.name}::{name}", Operation(f"{self.name}::{name}")
            )  # without kernels: it refuses
        registered = REGISTERED.get(f"{self.name}::{name}")
        if registered is None and self.name in BUILTIN:
            registered = _builtin(self.name, name)
        if registered is None:
            raise AttributeError(f"no operation {self.name}::{name} is registered", name=name, obj=self)
        return registered


class Builtin:
    """An operation of PyTorch, computed by norch's function of that name. It is a packet of overloads or one of them;
    two are equal if their names are."""

    def __init__(self, name: str, function: Callable[..., Any] | None, overload: str = "") -> None:
        self._qualified_op_name, self._function, self._overloadname = name, function, overload
        self.namespace, _, self._opname = name.partition("::")
        self.__name__ = f"{self._opname}.{overload}".rstrip(".")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is None:
            raise NotImplementedError(sentence(f"ops.{self._qualified_op_name.replace('::', '.')}", OTHER_PARTS))
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> Any:
        if overload[:1] == "_" or self._overloadname:
            raise AttributeError(f"an operation has no attribute {overload!r}", name=overload, obj=self)
        return Builtin(self._qualified_op_name, self._function, overload)

    @property
    def _overloadpacket(self) -> Builtin:
        if not self._overloadname:
            raise AttributeError(f"{self!r} is not an overload", name="_overloadpacket", obj=self)
        return getattr(namespace(self.namespace), self._opname)

    @property
    def overloadpacket(self) -> Builtin:
        return self._overloadpacket

    @property
    def _schema(self) -> Any:
        return SimpleNamespace(
            name=self._qualified_op_name, overload_name=self._overloadname, is_mutable=self._opname.endswith("_")
        )

    def name(self) -> str:
        """The qualified name, such as "aten::add.Tensor"."""
        return f"{self._qualified_op_name}.{self._overloadname}".removesuffix(".default").rstrip(".")

    def overloads(self) -> list[str]:
        return ["default"]

    def __reduce__(self) -> Any:
        path = f"{self._opname}.{self._overloadname}".rstrip(".")
        return attrgetter(path), (namespace(self.namespace),)

    def __deepcopy__(self, memo: Any) -> Builtin:
        return self

    def _key(self) -> tuple[str, str]:
        return self._qualified_op_name, self._overloadname

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Builtin) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{self.namespace}.{self.__name__}"


_builtins: dict[str, Any] = {}


def _builtin(namespace: str, name: str) -> Any:
    full = f"{namespace}::{name}"
    if full not in _builtins:
        function = import_module("norch.compat.aten_kernels").KERNELS.get(name) if namespace == "aten" else None
        places = [norch, norch.nn.functional, norch.special, Tensor]
        for prefix in ("linalg", "fft", "special"):
            if name.startswith(f"{prefix}_"):
                places, name = [getattr(norch, prefix)], name[len(prefix) + 1 :]
        functions = (thing for place in places if callable(thing := getattr(place, name, None)))
        _builtins[full] = Builtin(full, function or next(functions, None))
    return _builtins[full]


_namespaces: dict[str, Namespace] = {}


def namespace(name: str) -> Any:
    """norch.ops.NAME: a namespace, or an attribute of norch.ops."""
    if name in _HERE:
        return _HERE[name]
    return _namespaces.setdefault(name, Namespace(name))


loaded_libraries: set[str] = set()


def load_library(path: Any) -> None:
    """OSError for operators compiled for PyTorch, which need its library. Those of torchvision and torchaudio are built
    in."""
    *folders, name = os.path.normpath(os.fspath(path)).split(os.sep)
    for package, names in LIBRARIES.items():
        if package in folders[-2:] and name.startswith(names) and os.path.exists(path):
            import_module(f"norch.compat.{OURS[package]}")
            loaded_libraries.add(os.fspath(path))
            return
    raise OSError(f"load_library: {path}: norch cannot load operators compiled for PyTorch")


_HERE = {"load_library": load_library, "loaded_libraries": loaded_libraries}
