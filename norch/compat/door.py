"""The door: an import hook that makes `torch` and its modules the same objects as norch and its modules.

It also gives them PyTorch's names: `__name__`, `__version__`, `__module__`, the str() of dtypes, and the version in
importlib.metadata. close() undoes all of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import FunctionType, ModuleType

from .._package.exports import publish
from .._package.typing import Any
from .finder import spec_of
from .placeholders import HERE, homes, imported, is_module, members, open_to_others, packages, read_value
from .torch_version import TorchVersion

norch = import_module("norch")  # by name: the package re-exports as_torch()
FOLLOWED = "2.13.0"  # the PyTorch whose names and results norch follows
VERSION = f"{FOLLOWED}+norch"
OWN_VERSION = norch.__version__
# A function that is public here is named after this module, wherever it is defined.
PUBLIC = ("norch", "norch.nn.functional", "norch.nn.init", "norch.fft", "norch.linalg", "norch.special")
PATH = os.path.join(HERE, "path")  # the package torch in it opens the door in child processes
REQUIRES = f"Requires-Dist: norch-dl>={OWN_VERSION}"
SUMMARY = "norch in the place of PyTorch: `import torch` gives norch, which is no build of PyTorch"


class Door:
    """The result of as_torch(). close(), or the end of a with statement, undoes it."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], Any]] = []
        self.modules: set[str] = set()

    # ---- opening and closing ---------------------------------------------------------------------------------------

    def open(self) -> Door:
        sys.meta_path.insert(0, self)
        self.undo.append(lambda: sys.meta_path.remove(self))
        for module in [*_loaded()]:
            self.rename(module)
        self.set(norch, "__version__", TorchVersion(VERSION))
        self.set(norch, "__all__", _starred())
        self.say_torch()
        sys.modules["torch"] = norch
        sys.path.insert(0 if getattr(sys.flags, "safe_path", False) else 1, PATH)  # after the program's folder
        self.undo.append(_leave_path)
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = PATH if not before else f"{PATH}{os.pathsep}{before}"
        self.undo.append(lambda: _set_environment("PYTHONPATH", before))
        return self

    def close(self) -> None:
        """Restores the meaning of `import torch`. Objects imported in the meantime stay as they are."""
        global _open
        while self.undo:
            self.undo.pop()()
        for name in [name for name in sys.modules if name.partition(".")[0] in ("torch", "functorch")]:
            del sys.modules[name]
        _open = None

    def __enter__(self) -> ModuleType:
        return norch

    def __exit__(self, *error: Any) -> None:
        self.close()

    def set(self, holder: Any, name: str, value: Any) -> None:
        """Sets an attribute; close() restores it."""
        missing = object()
        before = vars(holder).get(name, missing)
        setattr(holder, name, value)
        if before is missing:
            self.undo.append(lambda: delattr(holder, name))
        else:
            self.undo.append(lambda: setattr(holder, name, before))

    # ---- imports ---------------------------------------------------------------------------------------------------

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        root, _, rest = name.partition(".")
        if root == "torch":
            return self.alias(name, rest)
        if name == "functorch":  # PyTorch installs it too
            return spec_of(name, lambda: import_module("norch.compat.functorch"))
        if name == "optree":
            return _then(PathFinder.find_spec(name, path), know_registries)
        if root != "norch":
            return None
        return _then(PathFinder.find_spec(name, path), lambda module: self.rename(sys.modules.get(name, module)))

    def alias(self, name: str, rest: str) -> ModuleSpec | None:
        from importlib.util import find_spec

        if not rest:
            return spec_of(name, lambda: norch)
        if f"norch.{rest}" not in sys.modules and find_spec(f"norch.{rest}") is None:
            return None

        def module() -> ModuleType:
            found = imported(rest)
            if rest in packages():
                open_to_others(found)
            return found

        return spec_of(name, module)

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """Makes importlib.metadata find the distribution torch."""
        name = getattr(context, "name", None)
        if name is None or name.lower() == "torch":
            yield _distribution()

    # ---- names -----------------------------------------------------------------------------------------------------

    def rename(self, module: Any) -> None:
        """Gives a module, its classes and functions PyTorch's names."""
        module_path = getattr(module, "__name__", "")
        if not isinstance(module, ModuleType) or module_path.partition(".")[0] != "norch":
            return
        getattr(module, "__all__", None)  # some modules compute it from these names
        for name, thing in [*vars(module).items()]:
            if isinstance(thing, type):
                if getattr(thing, "__module__", None) == module_path:
                    home = _home(module_path, thing.__name__)
                    self.move(thing, home)
                    if home[6:] in homes() and home[6:] not in packages():
                        ours = sys.modules.get(f"norch.{home[6:]}")
                        if getattr(getattr(ours, "__spec__", None), "_initializing", False):
                            ours = None  # it may replace itself when it has run (utils/_pytree.py)
                        sys.modules.setdefault(home, ours or _Later(home, module.__file__))
                    if name[-7:] == "_result" and module_path[:10] == "norch.ops.":
                        self.name_result(thing, module_path)
                    if vars(thing).get("__annotations__"):
                        self.set(thing, "__annotations__", _Annotations(thing.__annotations__, vars(module)))
            elif (
                type(thing) is FunctionType
                and module_path in PUBLIC
                and name[0] != "_"
                and thing.__module__[:6] == "norch."
            ):
                self.move(thing, "torch" + module_path[5:])
        for cls, names in members().get(module_path[6:], {}).items():
            for token in names:
                name, value = _member(cls, token)
                self.set(getattr(module, cls), name, value)
        path = _in_torch(module_path)[6:]
        if "__getattr__" not in vars(module) and is_module(path):  # so that placeholders are found
            publish(vars(module), name=f"norch.{path}")
            self.undo.append(lambda: (vars(module).pop("__getattr__"), vars(module).pop("__dir__")))
        if module_path == "norch.serialization":
            self.set(module, "save", _saver(module.save))
            self.set(norch, "save", module.save)
            self.set(module._Pickler, "reducer_override", _pickled("reduce_for_norch"))
        elif module_path == "norch.nn.module":
            reduce = module.Module.__reduce_ex__
            for name in ("__copy__", "__reduce_ex__"):
                self.set(module.Module, name, _pickled(f"module{name}", reduce))
        elif module_path == "norch.autograd.graph":
            nodes = import_module("norch.compat.nodes")
            self.set(module, "Node", nodes.Node)
            self.set(module.GradientEdge, "__new__", nodes.new_edge)
            self.set(module.GradientEdge, "node", property(lambda edge: nodes.shown(edge[0])))
        elif module_path == "norch._files.shared_memory":
            import_module("norch.compat.pickles").send_by_sharing()
        elif module_path == "norch.compat.typed_storage":
            self.set(module.TypedStorage, "__reduce_ex__", _pickled("reduce_storage"))
        elif path == "version":
            self.set(module, "__version__", TorchVersion(VERSION))
        elif path == "__config__":
            show = module.show
            self.set(module, "__version__", OWN_VERSION)
            self.set(module, "show", lambda: f"torch {VERSION}: {SUMMARY}\n{show()}")
        self.set(module, "__name__", _in_torch(module_path))

    def move(self, thing: Any, home: str) -> None:
        before = thing.__module__
        try:
            thing.__module__ = home
        except (AttributeError, TypeError):  # a class that C defines
            return
        self.undo.append(lambda: setattr(thing, "__module__", before))

    def name_result(self, cls: Any, module_path: str) -> None:
        """Gives a named tuple of results the name and the text of PyTorch's, such as torch.return_types.linalg_svd."""
        before, in_norch = cls.__name__, module_path[6:]
        of_linalg = in_norch.startswith("ops.linalg.") and in_norch not in (
            "ops.linalg.torch_names",
            "ops.linalg.householder",
        )
        name = "linalg_" * of_linalg + before[:-7]
        for name_of in ("__name__", "__qualname__"):
            setattr(cls, name_of, name)
            self.undo.append(partial(setattr, cls, name_of, before))
        self.move(cls, "torch.return_types")
        self.set(cls, "__repr__", lambda x: f"torch.return_types.{name}(\n{_fields(x)})")

    def say_torch(self) -> None:
        """Makes str() and repr() of dtypes, shapes and the like PyTorch's."""
        from .._tensor.autograd_methods import AutogradMethods
        from ..dtype import dtype, memory_format
        from ..tensor import Size, Tensor
        from .placeholders import Constant, Layout

        for cls in (dtype, memory_format, Size, Layout, Constant):
            self.set(cls, "__repr__", _saying_torch(cls.__repr__))
        for cls in (dtype, memory_format):
            self.set(cls, "__reduce__", lambda self: repr(self)[6:])  # pickled by name, as in PyTorch
        self.set(Tensor, "__reduce_ex__", _pickled("reduce_tensor"))
        self.set(norch.Generator, "__reduce_ex__", _pickled("reduce_generator"))
        self.set(Layout, "__reduce_ex__", _pickled("reduce_layout"))
        self.set(norch.Generator, "__setstate__", _pickled("generator__setstate__", norch.Generator.__setstate__))
        self.set(Tensor, "type", _saying_torch(Tensor.type))
        self.set(Tensor, "grad_fn", _shown(vars(AutogradMethods)["grad_fn"].fget))


def _then(spec: ModuleSpec | None, call: Callable[[ModuleType], None]) -> ModuleSpec | None:
    """A copy of spec that calls call(module) after the module has run."""
    if spec is not None and spec.loader is not None:
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            call(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


def know_registries(optree: Any) -> None:
    """Registers the dicts of parameters, buffers and submodules with optree, which knows only plain dicts."""
    from ..nn._registry import Registry

    optree.register_pytree_node(
        Registry,
        lambda x: ([x[name] for name in sorted(x)], sorted(x), sorted(x)),
        lambda names, children: Registry(zip(names, children, strict=True)),
        namespace=getattr(optree.registry, "__GLOBAL_NAMESPACE"),  # noqa: B009
    )


class _Later(ModuleType):
    """Stands for a module of PyTorch that defines a class, until an attribute is read."""

    def __init__(self, name: str, file: str | None) -> None:
        super().__init__(name)
        self.__file__ = file  # where inspect finds the source of the class

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
            try:
                vars(import_module(self.__name__)).setdefault("__file__", self.__file__)
            except ImportError:
                sys.modules[self.__name__] = self
        if (module := sys.modules[self.__name__]) is self:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(module, name)


class _Annotations(dict[str, Any]):
    """Annotations of a class, as types where they are listed. typing.get_type_hints() would evaluate their text in the
    module that __module__ names, and the class was defined in another one."""

    def __init__(self, texts: dict[str, Any], names: dict[str, Any]) -> None:
        super().__init__(texts)
        self.names = names

    def items(self) -> Any:
        return {name: self.type_of(text) for name, text in super().items()}.items()

    def type_of(self, text: Any) -> Any:
        if not isinstance(text, str):
            return text
        try:
            return eval(text, dict(self.names))
        except Exception:  # some names exist for type checkers only
            return Any


def _fields(x: Any) -> str:
    return ",\n".join(f"{name}={value!r}" for name, value in x._asdict().items())


def _saying_torch(method: Callable[..., Any]) -> Callable[..., Any]:
    def said(self: Any, *args: Any, **options: Any) -> Any:
        text = method(self, *args, **options)
        return "torch." + text[6:] if isinstance(text, str) and text.startswith("norch.") else text

    said.__name__, said.__qualname__, said.__doc__ = method.__name__, method.__qualname__, method.__doc__
    return said


def _pickled(name: str, *of_norch: Any) -> Callable[..., Any]:
    """A method implemented in compat/pickles.py, which is imported at the first call."""

    def method(self: Any, *args: Any) -> Any:
        return getattr(import_module("norch.compat.pickles"), name)(self, *of_norch, *args)

    return method


class _Computed:
    """An attribute that a function computes until the program sets it."""

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self.get = get

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else self.get(instance)


def _member(cls: str, token: str) -> tuple[str, Any]:
    """The name and value of a member that methods.txt lists for a class. Its function is in compat/methods.py, which is
    imported at the first call."""
    name, equals, text = token.partition("=")
    if equals:
        value = read_value(text.removeprefix("()"))
        return name, (lambda *args, **options: value) if text[:2] == "()" else value
    bare = name.lstrip("@")

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(getattr(import_module("norch.compat.methods"), cls), bare)(self, *args, **options)

    method.__name__, method.__qualname__ = bare, f"{cls}.{bare}"
    return bare, _Computed(method) if name != bare else method


def _shown(get: Callable[[Any], Any]) -> property:
    """Tensor.grad_fn as compat/nodes.py shows it. The module is imported at the first read."""

    def grad_fn(tensor: Any) -> Any:
        node = get(tensor)
        return node if node is None else import_module("norch.compat.nodes").shown(node)

    return property(grad_fn, doc=get.__doc__)


def _saver(save: Callable[..., None]) -> Callable[..., None]:
    """torch.save: writes PyTorch's format if it can hold the object, else norch's own."""

    def save_as_pytorch(
        obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2,
        _use_new_zipfile_serialization: bool = True, *, format: str | None = None,  # noqa: A002
    ) -> None:  # fmt: skip
        from pickle import PicklingError

        if format is not None:
            return save(obj, f, format=format)
        try:
            return save(obj, f, format="torch")
        except PicklingError:  # the object has more than weights
            from .._files.pytorch import Parts
            from .._files.target import write
        try:
            parts = Parts(obj, import_module("norch.compat.pickles").ObjectPickler)
        except PicklingError:
            return save(obj, f)
        write(parts, f)

    save_as_pytorch.__name__ = save_as_pytorch.__qualname__ = "save"
    save_as_pytorch.__module__, save_as_pytorch.__doc__ = "torch.serialization", save.__doc__
    return save_as_pytorch


def _loaded() -> Iterator[Any]:
    return (module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "norch")


def _leave_path() -> None:
    if PATH in sys.path:
        sys.path.remove(PATH)


def _set_environment(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


# Files of compat/ that are submodules in PyTorch.
_BELOW = {"nn_modules": "nn.modules", "parallel": "nn.parallel", "pytree": "utils._pytree", "sdpa": "nn.attention",
          "tensorboard": "utils.tensorboard",
          "flex_attention": "nn.attention.flex_attention", "typed_storage": "storage", "legacy": "",
          "flop_counter": "utils.flop_counter", "settings": "",
          "dispatch": "utils._python_dispatch", "module_tracker": "utils.module_tracker",
          "data_utils": "utils.data._utils", "signal_windows": "signal.windows"}  # fmt: skip


def _in_torch(name: str) -> str:
    """The name in torch of a module of norch."""
    path = name[6:]
    if path.startswith("compat."):
        path = _BELOW.get(path[7:], path[7:])
    return f"torch.{path}".rstrip(".")


@cache
def _homes() -> dict[str, list[str]]:
    """{class: the modules that PyTorch has it in}."""
    found: dict[str, list[str]] = {}
    for where, names in homes().items():
        for name in names:
            found.setdefault(name, []).append("torch" if where == "torch" else f"torch.{where}")
    return found


def _home(module_path: str, name: str) -> str:
    """PyTorch's module of a norch class; if it has several, the one with the same path or package."""
    same = _in_torch(module_path)
    found = _homes().get(name, [])
    package = same.split(".")[:2]
    near = [home for home in found if home.split(".")[:2] == package]
    if same in found:
        return same
    return near[0] if near else "torch" if "torch" in found else found[0] if len(found) == 1 else same


@cache
def _distribution() -> Any:
    from importlib.metadata import Distribution

    class Torch(Distribution):
        """The distribution torch that norch provides."""

        def read_text(self, filename: str) -> str | None:
            return {"METADATA": metadata(), "top_level.txt": "torch\n"}.get(filename)

        def locate_file(self, path: Any) -> Any:
            from pathlib import Path

            return Path(PATH, path)

    return Torch()


def metadata(*more: str) -> str:
    """The metadata of the distribution torch; more: further lines."""
    lines = ("Metadata-Version: 2.1", "Name: torch", f"Version: {VERSION}", f"Summary: {SUMMARY}", REQUIRES, *more)
    return "\n".join(lines) + "\n"


_open: Door | None = None


def _starred() -> list[str]:
    """The names that `from torch import *` takes, with those that norch imports lazily and in-place functions."""
    waiting = norch._waiting.difference(norch._MODULES.split())
    methods = {*dir(norch.Tensor)}  # hasattr() would import the module of each
    in_place = [f"{name}_" for name in norch.__all__ if f"{name}_" in methods]
    return sorted({*norch.__all__, *waiting, *norch._METHODS, *in_place})


def open_door(opener: ModuleType | None = None) -> Door:
    """Opens the door, or returns the open one. opener: the module torch that calls this, and is replaced."""
    global _open
    there = sys.modules.get("torch")
    if _open is not None and there is norch:
        return _open
    if there is not None and there is not opener:
        where = getattr(there, "__file__", None) or "a module without a file"
        raise RuntimeError(
            f"as_torch: `import torch` has been run and gave {where}; call norch.as_torch() before it and before what "
            "imports torch, or run the program by `python -m norch`"
        )
    _open = Door()
    return _open.open()
