"""Layer: a module that applies one function to its input and its options.

    @options
    class LeakyReLU(Layer):
        negative_slope: float = 1e-2
        inplace: bool = False
        _function = F.leaky_relu

has the methods

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None
    def forward(self, input: Tensor) -> Tensor  # F.leaky_relu(input, self.negative_slope, self.inplace)

and prints as LeakyReLU(negative_slope=0.01). A parameter `training` of the function is that of the module. As in a
dataclass, a class inherits the options of its base, those after `_: KW_ONLY` are keyword-only, and __init__ calls
__post_init__() at its end if there is one. An option of type `Tensor | None` is registered as a buffer. A subclass
without `@options` is an ordinary class: annotations in models of users are no options. dataclasses.dataclass is not
used because it takes 0.3 ms per class at import.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from .module import Module

if TYPE_CHECKING:
    from dataclasses import KW_ONLY as KW_ONLY

    from typing_extensions import dataclass_transform
else:
    KW_ONLY = "KW_ONLY"

    def dataclass_transform() -> Any:
        return lambda decorator: decorator


T = TypeVar("T", bound=type)
_REQUIRED: Any = object()


class _Option(NamedTuple):
    annotation: str
    default: Any
    keyword_only: bool


class Layer(Module):
    """Base of the layers that are declared as the head of this file shows."""

    _options: dict[str, _Option] = {}
    _inputs = "input: Tensor"  # the parameters of the generated forward
    _result = "Tensor"  # what it returns
    _function: ClassVar[Callable[..., Any]]
    _shown: tuple[str, ...] | None = None  # the attributes that extra_repr() prints; None: all options
    _unnamed = 0  # how many of these, from the first, it prints without their names
    _wrap_init: ClassVar[Any] = None  # a function that wraps the generated __init__

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if "_function" in vars(cls):
            cls.forward = _Compiled(cls, "forward", _compile_forward)  # type: ignore[assignment]

    def extra_repr(self) -> str:
        """name=value of each option; `inplace` only if it is set, and for `bias` whether there is one."""
        cls = type(self)  # users' instances may have attributes with these names
        values = {name: getattr(self, name) for name in (cls._options if cls._shown is None else cls._shown)}
        if "bias" in values:
            values["bias"] = values["bias"] is not None
        if "inplace" in values and values.pop("inplace"):
            values["inplace"] = True
        return format_options(values, cls._unnamed)


def format_options(values: dict[str, Any], unnamed: int = 0) -> str:
    """name=value, separated by commas; the first `unnamed` values without their names."""
    texts = [f"{name}={value}" for name, value in values.items()]
    return ", ".join([str(value) for value in values.values()][:unnamed] + texts[unnamed:])


def changed_options(module: Module, defaults: dict[str, Any]) -> dict[str, Any]:
    """The attributes of module that differ from these defaults."""
    values = {name: getattr(module, name) for name in defaults}
    return {name: value for name, value in values.items() if value != defaults[name]}


@dataclass_transform()
def options(cls: T) -> T:
    """Makes the annotations of a Layer the parameters of its constructor."""
    declared = dict(cls._options)  # type: ignore[attr-defined]
    keyword_only = False
    for name, annotation in cls.__annotations__.items():
        keyword_only |= annotation == "KW_ONLY"
        if annotation == "KW_ONLY" or annotation.startswith("ClassVar"):
            continue
        default = vars(cls).get(name, _REQUIRED)
        if default is not _REQUIRED:
            delattr(cls, name)  # instances have the attribute
        declared[name] = _Option(annotation, default, keyword_only)
    cls._options = declared  # type: ignore[attr-defined]
    cls.__init__ = _Compiled(cls, "__init__", _compile_init)  # type: ignore[misc]
    return cls


class _Compiled:
    """Stands for a method until it is first read: compiling takes 0.1 ms, and a program uses few of the layers."""

    def __init__(self, cls: Any, name: str, compile: Callable[[Any], Any]) -> None:
        self.cls, self.name, self.compile = cls, name, compile

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        method = self.compile(self.cls)
        setattr(self.cls, self.name, method)
        return method.__get__(instance, owner)


def _compile_init(cls: Any) -> Any:
    # super() of the first class with options: this __init__ replaces those of all others.
    first = [base for base in cls.__mro__ if "_options" in vars(base)][-2]
    parameters, body = ["self"], ["super(first, self).__init__()"]
    for name, option in sorted(cls._options.items(), key=lambda item: item[1].keyword_only):
        if option.keyword_only and "*" not in parameters:
            parameters.append("*")
        default = "" if option.default is _REQUIRED else f" = options[{name!r}].default"
        parameters.append(f"{name}: {option.annotation}{default}")
        is_buffer = option.annotation == "Tensor | None"
        body.append(f"self.register_buffer({name!r}, {name})" if is_buffer else f"self.{name} = {name}")
    post_init = getattr(cls, "__post_init__", None)  # not that of a subclass, which may be a dataclass
    if post_init is not None:
        body.append("post_init(self)")
    signature = f"__init__({', '.join(parameters)}) -> None"
    init = _define(cls, signature, body, first=first, options=cls._options, post_init=post_init)
    return init if cls._wrap_init is None else cls._wrap_init(init)


def _compile_forward(cls: Any) -> Any:
    arguments = [parameter.partition(":")[0] for parameter in cls._inputs.split(", ")]
    function = of = vars(cls)["_function"]
    while hasattr(of, "__wrapped__"):
        of = of.__wrapped__
    positional = of.__code__.co_varnames[len(arguments) : of.__code__.co_argcount]
    left = dict.fromkeys([*cls._options, *("training",) * ("training" in positional)])
    for name in positional:  # by position as far as there are options for it, then by name
        if name not in left:
            break
        arguments.append(f"self.{name}")
        del left[name]
    arguments += [f"{name}=self.{name}" for name in left]
    signature = f"forward(self, {cls._inputs}) -> {cls._result}"
    return _define(cls, signature, [f"return function({', '.join(arguments)})"], function=function)


def _define(cls: Any, signature: str, body: list[str], **closure: Any) -> Any:
    """A method of cls, with the names of closure, and for the rest those of the module of cls."""
    lines = [f"def define({', '.join(closure)}):", f"    def {signature}:", *(f"        {line}" for line in body)]
    namespace: dict[str, Any] = {}
    exec("\n".join([*lines, f"    return {signature.partition('(')[0]}"]), vars(sys.modules[cls.__module__]), namespace)
    method = namespace["define"](**closure)
    method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
    return method
