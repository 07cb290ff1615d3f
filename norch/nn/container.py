"""Containers of modules (Sequential, ModuleList, ModuleDict) and of parameters (ParameterList, ParameterDict)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, ClassVar, overload

from .._package.typing import Self
from ..ops.matmul import linear_with_epilogue
from ..tensor import Tensor
from ._epilogue import epilogue_of
from .module import Module, indent
from .parameter import Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class _Container(Module):
    """A module whose items are in one of its registries: `_modules` or `_parameters`."""

    _registry: ClassVar[str]

    def __len__(self) -> int:
        return len(self.__dict__[self._registry])


# ---- by position ----------------------------------------------------------------------------------------------------


class _List(_Container):
    """Modules by position, with the positions as their names."""

    _registry = "_modules"

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._modules.values()))

    def _name_at(self, index: int) -> str:
        size = len(self._modules)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range for {type(self).__name__} of length {size}")
        return list(self._modules)[index]

    def __setitem__(self, index: int, module: Module | None) -> None:
        if not isinstance(module, Module | None):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._bind("_modules", self._name_at(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]
        for name in names:
            self._unbind(name)
        self._renumber(list(self._modules.items()))

    def pop(self, index: int) -> Any:
        """Removes the module at a position and returns it."""
        module = self._modules[self._name_at(index)]
        del self[index]
        return module

    def _renumber(self, items: list[tuple[str, Any]]) -> None:
        """Registers the items again, with numeric names replaced by 0, 1, ... Other names, which the user chose,
        stay.
        """
        for name, _ in items:
            self._unbind(name)
        for position, (name, module) in enumerate(items):
            self._bind("_modules", str(position) if name.isdigit() else name, module)

    def append(self, module: Module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Inserts a module before position `index`."""
        if not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        items = list(self._modules.items())
        if not -len(items) <= index <= len(items):
            raise IndexError(f"insert: position {index} in {len(items)} modules")
        items.insert(index, ("0", module))
        self._renumber(items)
        return self


class Sequential(_List):
    """Calls its modules in order, each with the result of the previous module. It takes modules, or one mapping of
    names to modules, and supports indices, slices, `append`, `extend`, `insert` and `del`.

    A Linear and the activation after it run as one fused operation with the same results and graph, unless one of them
    has hooks or a user's forward (_epilogue.py).

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
                self.add_module(name, args[0][name])
        else:
            for position, module in enumerate(args):
                self.add_module(str(position), module)  # type: ignore[arg-type]

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a module under `name`. None is allowed for programs that iterate over the modules themselves."""
        if not isinstance(module, Module | None):
            raise TypeError(f"Sequential: module {name} is of type {type(module).__name__}, which is not a Module")
        super().add_module(name, module)

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
        linear: Any = None  # a Linear that is called once the next module is known
        for module in self._modules.values() if type(self).__iter__ is _List.__iter__ else self:
            if module is None:
                raise TypeError("Sequential: a module is None, which cannot be called")
            if linear is not None:
                operation = epilogue_of(linear, module)
                if operation is not None:
                    try:
                        input, linear = linear_with_epilogue(operation, input, linear.weight, linear.bias), None
                        continue
                    except Exception:  # noqa: S110  (the layer, called alone below, raises it in its own name)
                        pass
                input, linear = linear(input), None
            if getattr(type(module).forward, "takes_epilogue", False):
                linear = module
            else:
                input = module(input)
        return input if linear is None else linear(input)


class ModuleList(_List):
    """A list of modules that registers them; it has no forward.

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

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        return self.extend(other)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def _child_lines(self) -> list[str]:
        # Consecutive modules with the same repr share a line: (0-2): 3 x Linear(...).
        lines, first = [], 0
        for text, run in groupby(map(repr, self)):
            count = len(list(run))
            title = f"({first}):" if count == 1 else f"({first}-{first + count - 1}): {count} x"
            lines.append(f"{title} {indent(text)}")
            first += count
        return lines


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{value.dtype!s} of size {'x'.join(map(str, value.shape))}]"


class _OfParameters(_Container):
    _registry = "_parameters"

    def extra_repr(self) -> str:
        return "\n".join(f"({name}): {_described(value)}" for name, value in self._named_items())

    def _named_items(self) -> Iterable[tuple[str, Any]]:
        raise NotImplementedError


class ParameterList(_OfParameters):
    """A list that registers its parameters, with the items of `values` at first. Other tensors become parameters.
    Modules, other ParameterLists and other objects are stored unchanged.

    >>> weights = norch.nn.ParameterList([norch.zeros(2), norch.nn.Parameter(norch.ones(3))])
    >>> len(weights), [name for name, _ in weights.named_parameters()]
    (2, ['0', '1'])
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(values or ())

    def __len__(self) -> int:
        return self._size

    def append(self, value: Any) -> ParameterList:
        """Adds an item at the end."""
        setattr(self, str(self._size), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds items at the end. TypeError for a tensor, because its rows would become parameters."""
        if isinstance(values, Tensor):
            raise TypeError(f"ParameterList: expected an iterable of items, not a {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(i)) for i in range(self._size)])

    def _named_items(self) -> Iterable[tuple[str, Any]]:
        return ((str(i), value) for i, value in enumerate(self))

    def __getitem__(self, index: int | slice) -> Any:
        chosen = list(self)[index]
        return ParameterList(chosen) if isinstance(index, slice) else chosen

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(range(self._size)[index]), _as_parameter(value))


# ---- by name --------------------------------------------------------------------------------------------------------


class _Dict(_Container):
    """A dictionary over a registry. A subclass defines __setitem__, which registers one item."""

    def __setitem__(self, key: str, value: Any) -> None:
        raise NotImplementedError

    def __getitem__(self, key: str) -> Any:
        return self.__dict__[self._registry][key]

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._unbind(key)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.__dict__[self._registry]))

    def __contains__(self, key: object) -> bool:
        return key in self.__dict__[self._registry]

    def _update(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        for key, value in items.items() if hasattr(items, "items") else items:
            self[key] = value

    def clear(self) -> None:
        """Removes all items."""
        for key in self:
            self._unbind(key)

    def pop(self, key: str) -> Any:
        """Removes the item of that name and returns it."""
        value = self[key]
        del self[key]
        return value

    def keys(self) -> Iterable[str]:
        """The names."""
        return self.__dict__[self._registry].keys()

    def values(self) -> Iterable[Any]:
        """The items."""
        return self.__dict__[self._registry].values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """(name, item) pairs."""
        return self.__dict__[self._registry].items()


class ModuleDict(_Dict):
    """A dictionary of modules that registers them, in the order of insertion.

    >>> heads = norch.nn.ModuleDict({"digit": norch.nn.Linear(8, 10)})
    >>> list(heads)
    ['digit']
    """

    _registry = "_modules"

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        self._update(() if modules is None else modules)

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds or replaces the modules of a mapping, or of (name, module) pairs."""
        self._update(modules)


class ParameterDict(_OfParameters, _Dict):
    """A dictionary that registers its parameters. Other tensors become parameters; modules and other objects are stored
    unchanged. As in PyTorch, a plain dict is read in the order of its sorted names, an OrderedDict and pairs in their
    order.

    >>> weights = norch.nn.ParameterDict({"scale": norch.ones(2)})
    >>> weights["scale"].requires_grad
    True
    """

    _keys: dict[str, None]  # the names, in the order of insertion

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self._keys = {}
        self._update(parameters or ())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("_keys", dict.fromkeys(self._parameters))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: a name is a string, not {type(key).__name__}")
        if isinstance(value, Tensor):
            if key in self._keys and key not in self._parameters:
                delattr(self, key)  # no parameter takes the name of another attribute
            self.register_parameter(key, _as_parameter(value))
        else:
            setattr(self, key, value)
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def keys(self) -> Iterable[str]:
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        return [getattr(self, key) for key in self._keys]

    def items(self) -> Iterable[tuple[str, Any]]:
        return [(key, getattr(self, key)) for key in self._keys]

    _named_items = items

    def clear(self) -> None:
        for key in self:
            del self[key]

    def _update(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        if isinstance(items, Mapping) and not isinstance(items, OrderedDict):
            items = sorted(items.items(), key=lambda item: item[0])
        super()._update(items)

    def update(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Adds or replaces the items of a mapping, or of (name, value) pairs."""
        self._update(parameters)

    def get(self, key: str, default: Any = None) -> Any:
        """The item of that name, or default if there is none."""
        return self[key] if key in self else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The item of that name. If there was none, default becomes the item."""
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Removes the last item, and returns its name and value. KeyError if the dictionary is empty."""
        for key in reversed(self):
            return key, self.pop(key)
        raise KeyError("popitem: the ParameterDict is empty")

    def copy(self) -> ParameterDict:
        """Another ParameterDict of the same items."""
        return ParameterDict(self.items())

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Another ParameterDict, with default, or a parameter of it, under each name."""
        return ParameterDict([(key, default) for key in keys])

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self))

    def __or__(self, other: Any) -> ParameterDict:
        both = self.copy()
        both.update(other)
        return both

    def __ror__(self, other: Any) -> Any:
        """A copy of other, a dict or an object with its methods, with these items added."""
        both = other.copy()
        both.update(self)
        return both

    def __ior__(self, other: Any) -> ParameterDict:
        self._update(other)
        return self
