"""Classes whose annotations are the parameters of their constructor, as those of a dataclass: layers and optimizers.

`@options` turns the annotations of a class, after those of its base, into the parameters of its __init__; those after
`_: KW_ONLY` are keyword-only. `_init_body()` of a base class returns the lines of __init__, which then calls
__post_init__() if there is one. A subclass without `@options` is an ordinary class, so that annotations in users'
classes are no options. dataclasses.dataclass is not used because it takes 0.3 ms per class at import.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from dataclasses import KW_ONLY as KW_ONLY

    from typing_extensions import dataclass_transform
else:
    KW_ONLY = "KW_ONLY"

    def dataclass_transform() -> Any:
        return lambda decorator: decorator


T = TypeVar("T", bound=type)
_REQUIRED: Any = object()


class Option(NamedTuple):
    annotation: str
    default: Any
    keyword_only: bool


@dataclass_transform()
def options(cls: T) -> T:
    """Makes the annotations of a class the parameters of its constructor. One of its bases has `_options = {}` and
    `_init_body()`, the lines of __init__, in which `super(first, self)` skips all classes with options.
    """
    declared = dict(cls._options)  # type: ignore[attr-defined]
    keyword_only = False
    for name, annotation in cls.__annotations__.items():
        keyword_only |= annotation == "KW_ONLY"
        if annotation == "KW_ONLY" or annotation.startswith("ClassVar"):
            continue
        default = vars(cls).get(name, _REQUIRED)
        if default is not _REQUIRED:
            delattr(cls, name)  # instances have the attribute
        declared[name] = Option(annotation, default, keyword_only)
    cls.__annotations__.pop("_", None)  # KW_ONLY is no option
    cls._options = declared  # type: ignore[attr-defined]
    cls.__init__ = Compiled(cls, "__init__", _compile_init)  # type: ignore[misc]
    return cls


class Compiled:
    """Takes the place of a method until it is first read, because compiling takes 0.1 ms and
    a program uses few classes."""

    def __init__(self, cls: Any, name: str, compile: Callable[[Any, dict[str, Any]], Any]) -> None:
        self.cls, self.name, self.compile = cls, name, compile
        self.names = (
            vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
        )  # now: __module__ may become that of PyTorch

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        method = self.compile(self.cls, self.names)
        setattr(self.cls, self.name, method)
        if isinstance(instance, type):  # inspect.signature() of Python 3.13 binds it to the class, then unwraps it
            method = getattr(method, "__wrapped__", method)
        return method.__get__(instance, owner)


def _compile_init(cls: Any, names: dict[str, Any]) -> Any:
    # super() of the first class with options: this __init__ replaces those of all others.
    first = [base for base in cls.__mro__ if "_options" in vars(base)][-2]
    parameters = ["self"]
    for name, option in sorted(cls._options.items(), key=lambda item: item[1].keyword_only):
        if option.keyword_only and "*" not in parameters:
            parameters.append("*")
        default = "" if option.default is _REQUIRED else f" = options[{name!r}].default"
        parameters.append(f"{name}: {option.annotation}{default}")
    body = cls._init_body()
    post_init = getattr(cls, "__post_init__", None)  # not that of a subclass, which may be a dataclass
    if post_init is not None:
        body.append("post_init(self)")
    signature = f"__init__({', '.join(parameters)}) -> None"
    init = define(cls, names, signature, body, first=first, options=cls._options, post_init=post_init)
    wrap = getattr(cls, "_wrap_init", None)
    return init if wrap is None else wrap(init)


def define(cls: Any, names: dict[str, Any], signature: str, body: list[str], **closure: Any) -> Any:
    """Defines a method of cls from its text, with the names in closure, and otherwise those of its module, names."""
    lines = [f"def define({', '.join(closure)}):", f"    def {signature}:", *(f"        {line}" for line in body)]
    namespace: dict[str, Any] = {}
    source = "\n".join([*lines, f"    return {signature.partition('(')[0]}"])
    exec(compile(source, __file__, "exec"), names, namespace)
    method = namespace["define"](**closure)
    method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
    return method
