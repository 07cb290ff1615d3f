"""Placeholders for names of PyTorch: they can be imported, written in annotations, compared and passed to isinstance(),
and raise with the reason when called.

placeholders.txt lists them, paths.txt the modules, left_out.txt the reasons; private_names.txt lists further
placeholders, imported_names.txt names that PyTorch has in more modules than norch.
"""

from __future__ import annotations

import os
import sys
from abc import ABCMeta
from contextlib import nullcontext
from functools import cache, wraps
from importlib import import_module
from types import FunctionType, ModuleType

from .._package import left_out as _left_out
from .._package.typing import Any
from ..dtype import dtype as DType
from ..errors import DTypeError

HERE = os.path.dirname(os.path.abspath(__file__))
OTHER_PARTS = "parts and settings of PyTorch itself"
ANY = "*"  # in placeholders.txt, after a module: all names
ERRORS = ("Error", "Exception", "Warning")  # names of exceptions end so; programs use them in `except`
TYPES = "+"  # names that begin with a capital letter

# ---- the tables ----------------------------------------------------------------------------------------------------


@cache
def packages() -> dict[str, set[str]]:
    """{package: the modules in it}, of paths.txt."""
    return {where: set(names) for where, names in _left_out.sections(os.path.join(HERE, "paths.txt"))[""].items()}


@cache
def homes() -> dict[str, list[str]]:
    """{module: classes of norch that PyTorch has there}, of homes.txt."""
    return _left_out.sections(os.path.join(HERE, "homes.txt"))[""]


@cache
def private_names() -> dict[str, set[str]]:
    """{module: names that PyTorch defines there}, of private_names.txt."""
    return {
        where: set(names) for where, names in _left_out.sections(os.path.join(HERE, "private_names.txt"))[""].items()
    }


@cache
def imported_names() -> dict[str, dict[str, str]]:
    """{module: {name that PyTorch imports there: the path of the object}}, of imported_names.txt."""
    listed = _left_out.sections(os.path.join(HERE, "imported_names.txt"))[""]
    return {where: dict(token.split("=") for token in names) for where, names in listed.items()}


@cache
def members() -> dict[str, dict[str, list[str]]]:
    """{module of norch: {class: its members in methods.txt}}."""
    found: dict[str, dict[str, list[str]]] = {}
    for where, names in _left_out.sections(os.path.join(HERE, "methods.txt"))[""].items():
        module, _, cls = where.rpartition(".")
        found.setdefault(module, {})[cls] = names
    return found


class Listed:
    """The entry of a module in placeholders.txt. names: {name: remark, or ""}; open: ANY, TYPES or ""."""

    def __init__(self, why: str) -> None:
        self.why, self.open = why, ""
        self.names: dict[str, str] = {}


@cache
def table() -> dict[str, Listed]:
    """{module: Listed}, of placeholders.txt."""
    found: dict[str, Listed] = {}
    for where, names in homes().items():
        found[where] = Listed(OTHER_PARTS)
        found[where].names = dict.fromkeys(names, "")
    for why, listed in _left_out.sections(os.path.join(HERE, "placeholders.txt")).items():
        for where, names in listed.items():
            which = where.rstrip(ANY + TYPES)
            entry = found.setdefault(which, Listed(why))
            entry.open = entry.open or where[len(which) :]
            for token in names:
                name, equals, value = token.partition("=")
                entry.names[name] = equals + value
    return found


@cache
def entry(path: str) -> Listed:
    """The entry of a module. If placeholders.txt does not name it: that of the nearest package that it names and whose
    names are all placeholders."""
    if path in table():
        return table()[path]
    parent = path
    while parent and parent not in table():
        parent = parent.rpartition(".")[0]
    listed = Listed(table()[parent].why if parent else OTHER_PARTS)
    listed.open = ANY
    return listed


def is_module(path: str) -> bool:
    """Whether PyTorch has a module at this path."""
    package, _, name = path.rpartition(".")
    return path in table() or name in packages().get(package or "torch", ())


# ---- names ---------------------------------------------------------------------------------------------------------


def placeholder(where: str, name: str) -> Any:
    """The placeholder for a name that norch's module does not define. LookupError if the module must raise
    AttributeError, so that hasattr() is False."""
    if name[:2] == "__":
        raise LookupError(name)
    if where == "ops":
        return _of_ops(name)
    if name == "torch":  # PyTorch's modules import it
        return sys.modules["norch"]
    path = name if where == "torch" else f"{where}.{name}"
    if where in BUILTINS and (value := _builtin(where, name)) is not None:
        return value
    listed = table().get(where) or (entry(where) if is_stand_in(where) else Listed(OTHER_PARTS))
    if name in listed.names:
        reason = listed.names[name]
        if reason.startswith("=@"):
            return _resolved(reason[2:])
        if not reason and (value := _of_ancestors(where, name)) is not None:
            return value
        return placeholder_at(path, _left_out.reason(where, name) or listed.why, reason)
    if is_module(path):
        return imported(path)
    why = _left_out.reason(where, name)
    if name in LAYOUTS and where == "torch":
        return layout(name)
    if why in KINDS:
        return KINDS[why](path, why)
    is_type = name.lstrip("_")[:1].isupper() and (why is not None or name[0] == "_" or where[0] == "_")
    if listed.open == ANY or is_stand_in(where) or (listed.open == TYPES and is_type):
        if (value := _of_ancestors(where, name)) is not None:
            return value
        return placeholder_at(path, why or listed.why, "")
    if name in imported_names().get(where, ()):
        return _resolved(imported_names()[where][name])
    if name in private_names().get(where, ()):
        return placeholder_at(path, why or entry(where).why, "")
    raise LookupError(name)


# PyTorch's modules of C functions, which share a prefix, and norch's modules for them.
BUILTINS = {
    "_C._nn": ("nn.functional", ""), "_C._fft": ("fft", "fft_"), "_C._linalg": ("linalg", "linalg_"),
    "_C._special": ("special", "special_"), "_VF": ("", ""),
}  # fmt: skip


def _builtin(where: str, name: str) -> Any:
    path, prefix = BUILTINS[where]
    if not name.startswith(prefix) or name[:1] == "_":
        return None
    return _quietly(import_module(f"norch.{path}".rstrip(".")), name[len(prefix) :])


def _of_ops(name: str) -> Any:
    """A namespace of operations, or a lazily imported module of norch.ops."""
    from importlib.util import find_spec

    if find_spec(f"norch.ops.{name}") is not None:
        return import_module(f"norch.ops.{name}")
    return import_module("norch.compat.operators").namespace(name)


def is_stand_in(where: str) -> bool:
    """Whether the module is a placeholder."""
    module = sys.modules.get(f"norch.{where}")
    return module is not None and vars(module).get("_is_placeholder", False)


def _of_ancestors(where: str, name: str) -> Any:
    """The object of this name in an enclosing package, as norch.optim.Adam for optim.adam; from norch itself only names
    that placeholders.txt lists."""
    package = where.rpartition(".")[0]
    while package:
        module = sys.modules.get(f"norch.{package}")
        if module is not None and not is_stand_in(package) and (value := _quietly(module, name)) is not None:
            return value
        package = package.rpartition(".")[0]
    if where != "torch" and where in table() and name in table()[where].names:
        return _quietly(sys.modules["norch"], name)
    return None


def _quietly(module: ModuleType, name: str) -> Any:
    value = getattr(module, name, None)
    return None if is_placeholder(value) else value


def _resolved(path: str) -> Any:
    """The object at a path below norch, in a module or a class."""
    if not path:
        return sys.modules["norch"]
    parent, _, name = path.rpartition(".")
    try:
        holder = imported(parent) if parent else sys.modules["norch"]
    except ImportError:
        holder = _resolved(parent)
    return getattr(holder, name)


@cache
def placeholder_at(path: str, why: str, said: str) -> Any:
    """A placeholder. said: the remark in placeholders.txt."""
    name = path.rpartition(".")[2]
    bare = name.strip("_")
    if said == "=pass":
        return passes
    if said == "=base":
        return type(name, (), {"__module__": _module_of(path)})
    if said == "=record":
        return type(name, (Record,), {"__module__": _module_of(path)})
    if said == "=class":
        return kind(path, why)
    if said.startswith("=()"):
        return _constant(path, read_value(said[3:]))
    if said:
        return read_value(said[1:])
    if bare.endswith(ERRORS) or _module_of(path).endswith(".exc"):
        text = f"A placeholder, never raised. {sentence(path, why)}"
        return type(name, (Exception,), {"__module__": _module_of(path), "__doc__": text, "_is_placeholder": True})
    if bare[:1].isupper():
        return Constant(path, why) if bare.isupper() and len(bare) > 1 and "_" in bare else kind(path, why)
    if bare.startswith(("is_", "has_", "are_")):
        return _constant(path, False)
    if bare.startswith("register_"):
        return passes
    return refusing(path, why)


def read_value(text: str) -> Any:
    return (
        {"None": None, "False": False, "True": True, "0": 0}.get(text, text) if text not in ("[]", "{}") else eval(text)
    )


def _module_of(path: str) -> str:
    """Its module, in norch or, through the door, in torch."""
    return f"{import_module('norch').__name__}.{path.rpartition('.')[0]}".rstrip(".")


def sentence(path: str, why: str) -> str:
    return f"norch.{path}: norch leaves it out: {why}"


def is_placeholder(thing: Any) -> bool:
    """Whether this file created the object."""
    if isinstance(thing, (ModuleType, FunctionType, type)) and not isinstance(thing, Kind):
        return vars(thing).get("_is_placeholder", False)
    return isinstance(thing, (Kind, Constant, Layout, LeftOutDType))


class Kind(ABCMeta):  # an ABCMeta, so that a class may derive from a placeholder and an ABC
    """The metaclass of placeholder classes, which have no instances."""

    _why: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(cls._why)

    def __getattr__(cls, name: str) -> Any:
        if name[:1] == "_":
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}", name=name, obj=cls)
        constant = Constant(f"{cls.__module__}.{cls.__qualname__}.{name}".partition(".")[2], cls._why)
        setattr(cls, name, constant)
        return constant

    def __getitem__(cls, parameters: Any) -> Any:
        return cls


@cache
def kind(path: str, why: str) -> Any:
    """A placeholder class."""
    name = path.rpartition(".")[2]
    why = sentence(path, why)
    return Kind(name, (), {"__module__": _module_of(path), "__doc__": f"A placeholder. {why}", "_why": why})


class Constant:
    """A placeholder value, equal to itself only."""

    def __init__(self, path: str, why: str) -> None:
        self.path, self._why = path, why if why.startswith("norch.") else sentence(path, why)

    def __repr__(self) -> str:
        return f"norch.{self.path}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(self._why)

    def __reduce__(self) -> Any:
        where, _, name = self.path.rpartition(".")
        return placeholder, (where or "torch", name)


class Record:
    """A placeholder for a description: it can be constructed with any arguments and compared, and does nothing."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._args = args
        self.__dict__.update(options)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        shown = [*map(repr, self._args), *(f"{k}={v!r}" for k, v in vars(self).items() if k != "_args")]
        return f"{type(self).__name__}({', '.join(shown)})"


def passes(fn: Any = None, *args: Any, **options: Any) -> Any:
    """A decorator, with or without arguments, that changes nothing."""
    return fn if callable(fn) else (lambda function: function)


passes._is_placeholder = True  # type: ignore[attr-defined]


def _constant(path: str, value: Any) -> Any:
    def answer(*args: Any, **kwargs: Any) -> Any:
        return value

    return _named(answer, path, f"{value!r}, whatever is asked.")


def refusing(path: str, why: str) -> Any:
    """A function that raises NotImplementedError. As a decorator it returns such a function."""
    why = sentence(path, why)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], (FunctionType, type)):
            return wraps(args[0])(lambda *args, **kwargs: refuse())
        raise NotImplementedError(why)

    return _named(refuse, path, f"Raises NotImplementedError: {why}.")


def _named(function: Any, path: str, text: str) -> Any:
    function.__name__ = function.__qualname__ = path.rpartition(".")[2]
    function.__module__, function.__doc__, function._is_placeholder = _module_of(path), text, True
    return function


# ---- dtypes and layouts --------------------------------------------------------------------------------------------

# Dtypes that norch lacks: bytes of an element, and whether they are floats or complex.
SIZES = {"float8": (1, True), "float4": (1, True), "complex32": (4, True), "bits16": (2, False), "quint4x2": (1, False),
         "quint2x4": (1, False), "qint32": (4, False), "uint16": (2, False), "uint32": (4, False),
         "uint64": (8, False)}  # fmt: skip

# dtype.limits() of 8-bit floats: Micikevicius et al., "FP8 Formats for Deep Learning" (2022), table 1.
LIMITS = {
    "float8_e4m3fn": (0.125, 448.0, -448.0, 2.0**-6), "float8_e4m3fnuz": (0.125, 240.0, -240.0, 2.0**-7),
    "float8_e5m2": (0.25, 57344.0, -57344.0, 2.0**-14), "float8_e5m2fnuz": (0.125, 57344.0, -57344.0, 2.0**-15),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127, 2.0**-127), "float4_e2m1fn_x2": (0.5, 6.0, -6.0, 1.0),
}  # fmt: skip


class LeftOutDType(DType):
    """A dtype that no tensor has, with a name and a size; operations refuse it."""

    __slots__ = ("path", "why")

    def __new__(cls, path: str, why: str) -> LeftOutDType:
        return object.__new__(cls)

    def __init__(self, path: str, why: str) -> None:
        size, floating = next((of for start, of in SIZES.items() if path.startswith(start)), (1, False))
        self.path, self.why = path, f"dtype: norch leaves {path} out: {why}"  # a call puts its name before the colon
        self.name, self.itemsize = path, size
        self.is_complex = path.startswith("complex")
        self.is_floating_point = floating and not self.is_complex
        self.is_signed, self.format = path[0] not in "ub" and path[:2] != "qu", ""
        self.kind, self.digits = ("u", 8 * size) if path in SIZES and path[:4] == "uint" else ("", 1)

    def __getattribute__(self, name: str) -> Any:
        if name == "code":
            raise DTypeError(self.why)
        return object.__getattribute__(self, name)

    def to_real(self) -> LeftOutDType:
        return self

    def limits(self) -> tuple[float, float, float, float]:
        return LIMITS[self.name]

    def __reduce__(self) -> Any:
        return placeholder, ("torch", self.name)


class Layout:
    """PyTorch's layouts. Tensors of norch are strided or sparse_coo."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"norch.{self.name}"

    def __reduce__(self) -> Any:
        return placeholder, ("torch", self.name)


@cache
def dtype_left_out(path: str, why: str) -> LeftOutDType:
    """The placeholder dtype of a name, always the same object."""
    return LeftOutDType(path, why)


@cache
def layout(name: str) -> Layout:
    return Layout(name)


LAYOUTS = frozenset("jagged sparse_bsc sparse_bsr sparse_coo sparse_csc sparse_csr strided".split())
strided = layout("strided")
KINDS: dict[str | None, Any] = {"dtypes that norch has not": dtype_left_out}

SETTINGS = ("config", "_config")  # modules of settings: attributes are None until set, and have no effect


class _NoPatch(nullcontext):
    """A change of settings, as a context or a decorator, without effect."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__()

    def __call__(self, decorated: Any) -> Any:
        return decorated


# ---- modules -------------------------------------------------------------------------------------------------------


def _called(function: FunctionType) -> type[ModuleType]:
    """The class of a module that is named like a function of its package, such as nn.utils.weight_norm. Importing it
    replaces the function, so the module must be callable."""
    call = staticmethod(function)
    return type("module", (ModuleType,), {"__call__": call, "__wrapped__": call})


def module(path: str) -> ModuleType:
    """A module whose names are placeholders."""
    listed = entry(path)
    parent, _, last = path.rpartition(".")
    around = sys.modules.get(f"norch.{parent}".rstrip("."))
    function = None if around is None or is_placeholder(around) else getattr(around, last, None)
    cls = _called(function) if isinstance(function, FunctionType) else ModuleType
    placeholder_module = cls(f"norch.{path}", f"A placeholder for torch.{path}. {sentence(path, listed.why)}.")
    kept = vars(placeholder_module)

    def __getattr__(name: str) -> Any:
        if path.rpartition(".")[2] in SETTINGS and name[:2] != "__":
            return _NoPatch if name == "patch" else None
        try:
            kept[name] = value = placeholder(path, name)
        except LookupError:
            raise AttributeError(
                f"module {placeholder_module.__name__!r} has no attribute {name!r}", name=name, obj=placeholder_module
            ) from None
        return value

    kept.update(__path__=[], __getattr__=__getattr__, _is_placeholder=True, __all__=[*listed.names])
    if isinstance(function, FunctionType):
        kept[last] = function  # PyTorch defines it there: from torch.nn.utils.weight_norm import weight_norm
    return placeholder_module


def imported(path: str) -> ModuleType:
    """Imports norch.path, whose parent may be a plain module."""
    parent = path.rpartition(".")[0]
    if parent:
        open_to_others(imported(parent))
    return import_module(f"norch.{path}")


def open_to_others(module: ModuleType) -> None:
    """Lets a module that is not a package have submodules."""
    if not hasattr(module, "__path__"):
        module.__path__ = []
