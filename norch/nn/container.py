"""Sequential, ModuleList and ModuleDict: modules that hold modules in order."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, overload

from ..ops.matmul import linear_with_epilogue
from ._endings import ending_of
from .module import Module, _indent

L = TypeVar("L", bound="_Numbered")


class _Numbered(Module):
    """What Sequential and ModuleList share: children reached by position and named by it."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._modules.values()))

    def _name_at(self, index: int) -> str:
        size = len(self._modules)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range for {type(self).__name__} of length {size}")
        return list(self._modules)[index]

    def __setitem__(self, index: int, module: Module) -> None:
        if not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._bind("_modules", self._name_at(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]
        for name in names:
            self._unbind(name)
        self._renumber(list(self._modules.items()))

    def pop(self, index: int) -> Any:
        """Takes the module at a position out, and gives it back."""
        module = self._modules[self._name_at(index)]
        del self[index]
        return module

    def _renumber(self, items: list[tuple[str, Any]]) -> None:
        """Numbered names become 0, 1, ... again; names of the user's own stay."""
        for name, _ in items:
            self._unbind(name)
        for position, (name, module) in enumerate(items):
            self._bind("_modules", str(position) if name.isdigit() else name, module)

    def append(self: L, module: Module) -> L:
        """Adds a module at the end."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self: L, modules: Iterable[Module]) -> L:
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self: L, index: int, module: Module) -> L:
        """Puts a module before position `index`."""
        if not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        items = list(self._modules.items())
        if not -len(items) <= index <= len(items):
            raise IndexError(f"insert: position {index} in {len(items)} modules")
        items.insert(index, ("0", module))
        self._renumber(items)
        return self


class Sequential(_Numbered):
    """Calls its modules one after another, each on the result of the one before. Takes modules, or one
    mapping of names to modules. Supports indices, slices, `append`, `extend`, `insert` and `del`.

    An activation right behind a Linear is done in the same pass, with the same results and graph, unless somebody would
    notice that the two are not called: one has hooks, or a forward of its own (_endings.py).

    >>> net = norch.nn.Sequential(norch.nn.Linear(4, 8), norch.nn.ReLU(), norch.nn.Linear(8, 2))
    >>> net(norch.ones(5, 4)).shape
    norch.Size([5, 2])
    >>> net[-1]
    Linear(in_features=8, out_features=2, bias=True)
    """

    def __init__(self, *args: Module | Mapping[str, Module]) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name in args[0]:
                self.register_module(name, args[0][name])
        else:
            for position, module in enumerate(args):
                self.register_module(str(position), module)  # type: ignore[arg-type]

    def register_module(self, name: str, module: Module | None) -> None:
        """Adds a module under `name`; None, which cannot be called, raises a TypeError."""
        if not isinstance(module, Module):
            raise TypeError(f"Sequential: module {name} is of type {type(module).__name__}, which is no Module")
        super().register_module(name, module)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other) if isinstance(other, Sequential) else NotImplemented

    def __mul__(self, times: int) -> Sequential:
        if not hasattr(times, "__index__"):
            raise TypeError(f"Sequential: repeated an integer number of times, not by {type(times).__name__}")
        if times < 1:
            raise ValueError(f"Sequential: repeated once or more, not {times} times")
        return Sequential(*[module for _ in range(times) for module in self])

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        return self.extend(list(self * times)[len(self) :])

    def forward(self, input: Any) -> Any:
        linear: Any = None  # to be called when it is known what follows
        for module in self._modules.values():
            if linear is not None:
                function = ending_of(linear, module)
                if function is not None:
                    input, linear = linear_with_epilogue(function, input, linear.weight, linear.bias), None
                    continue
                input, linear = linear(input), None
            if getattr(type(module).forward, "can_end", False):
                linear = module
            else:
                input = module(input)
        return input if linear is None else linear(input)


class ModuleList(_Numbered):
    """A list of modules whose parameters are found; it has no forward of its own.

    >>> layers = norch.nn.ModuleList(norch.nn.Linear(4, 4) for _ in range(3))
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._name_at(index)]

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def _child_lines(self) -> list[str]:
        # Neighbours that print alike share a line: (0-2): 3 x Linear(...).
        runs: list[tuple[int, int, str]] = []
        for position, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], position, text)
            else:
                runs.append((position, position, text))
        return [
            f"({first}): {_indent(text)}"
            if first == last
            else f"({first}-{last}): {last - first + 1} x {_indent(text)}"
            for first, last, text in runs
        ]


class ModuleDict(Module):
    """A dictionary of modules whose parameters are found, in the order of insertion.

    >>> heads = norch.nn.ModuleDict({"digit": norch.nn.Linear(8, 10)})
    >>> list(heads)
    ['digit']
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.register_module(key, module)

    def __delitem__(self, key: str) -> None:
        if key not in self._modules:
            raise KeyError(key)
        self._unbind(key)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._modules))

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds or replaces the modules of a mapping, or of (name, module) pairs."""
        for key, module in modules.items() if hasattr(modules, "items") else modules:
            self[key] = module

    def clear(self) -> None:
        """Takes every module out."""
        for key in list(self._modules):
            self._unbind(key)

    def pop(self, key: str) -> Any:
        """Takes the module of that name out, and gives it back."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """(name, module) pairs."""
        return self._modules.items()
