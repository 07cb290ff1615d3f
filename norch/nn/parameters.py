"""ParameterList and ParameterDict: modules that hold parameters, by position and by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..tensor import Tensor
from .module import Module
from .parameter import Parameter


class ParameterList(Module):
    """A list of parameters that are found; other tensors become parameters.

    >>> weights = norch.nn.ParameterList([norch.zeros(2), norch.nn.Parameter(norch.ones(3))])
    >>> len(weights), [name for name, _ in weights.named_parameters()]
    (2, ['0', '1'])
    """

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def append(self, value: Tensor) -> ParameterList:
        """Adds a parameter at the end."""
        self.register_parameter(str(len(self)), _parameter(value))
        return self

    def extend(self, values: Iterable[Tensor]) -> ParameterList:
        """Adds parameters at the end."""
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Tensor]) -> ParameterList:
        return self.extend(values)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._parameters.values()))

    def __getitem__(self, index: int | slice) -> Any:
        found = list(self._parameters.values())[index]
        return ParameterList(found) if isinstance(found, list) else found  # type: ignore[arg-type]

    def __setitem__(self, index: int, value: Tensor) -> None:
        name = list(self._parameters)[index]
        self._bind("_parameters", name, _parameter(value))

    def extra_repr(self) -> str:
        return _lines(self._parameters)


class ParameterDict(Module):
    """A dictionary of parameters that are found; other tensors become parameters.

    >>> weights = norch.nn.ParameterDict({"scale": norch.ones(2)})
    >>> weights["scale"].requires_grad
    True
    """

    def __init__(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None) -> None:
        super().__init__()
        self.update(parameters or ())

    def update(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]) -> None:
        """Adds or replaces the parameters of a mapping, or of (name, parameter) pairs."""
        for key, value in parameters.items() if hasattr(parameters, "items") else parameters:
            self[key] = value

    def __getitem__(self, key: str) -> Any:
        return self._parameters[key]

    def __setitem__(self, key: str, value: Tensor) -> None:
        self.register_parameter(key, _parameter(value))

    def __delitem__(self, key: str) -> None:
        if key not in self._parameters:
            raise KeyError(key)
        self._unbind(key)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._parameters))

    def __contains__(self, key: object) -> bool:
        return key in self._parameters

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._parameters.keys()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return self._parameters.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """(name, parameter) pairs."""
        return self._parameters.items()

    def extra_repr(self) -> str:
        return _lines(self._parameters)


def _parameter(value: Any) -> Parameter:
    return value if isinstance(value, Parameter) else Parameter(value)


def _lines(parameters: Mapping[str, Any]) -> str:
    return "\n".join(
        f"({name}): Parameter containing: [{str(p.dtype)} of size {'x'.join(map(str, p.shape))}]"
        for name, p in parameters.items()
    )
