"""Layer: a module that applies one function to its input and its options.

    @options
    class LeakyReLU(Layer, function=F.leaky_relu):
        negative_slope: float = 1e-2
        inplace: bool = False

has the methods

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None
    def forward(self, input: Tensor) -> Tensor  # F.leaky_relu(input, self.negative_slope, self.inplace)

and prints as LeakyReLU(negative_slope=0.01). A parameter `training` of the function is that of the module. An
option of type `Tensor | None` is registered as a buffer. _package/options.py has the details of @options.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .._package.options import KW_ONLY as KW_ONLY
from .._package.options import Compiled, Option, define
from .._package.options import options as options
from ..tensor import Tensor
from ._epilogue import FUNCTIONS, epilogue
from .module import Module

# FUNCTIONS is nn.functional, where layers look their functions up at each call, as in PyTorch: programs patch functions
# there, for example to count operations. An item of the dict is read in a third of the time of the module's attribute.


class Layer(Module):
    """Base of the layers that are declared as in the example above."""

    _options: dict[str, Option] = {}
    _inputs = "input: Tensor"  # the parameters of the generated forward
    _result = "Tensor"  # what it returns
    _function: ClassVar[Callable[..., Any]]
    _public: ClassVar[str]  # its name in nn.functional, or ""
    _epilogue: ClassVar[Any]
    _shown: tuple[str, ...] | None = None  # the attributes that extra_repr() prints; None: all options
    _unnamed = 0  # how many of these, from the first, it prints without their names
    _wrap_init: ClassVar[Any] = None  # a function that wraps the generated __init__

    def __init_subclass__(
        cls, function: Callable[..., Any] | None = None, epilogue: Callable[[Any], Any] | None = None, **named: Any
    ) -> None:
        """epilogue: marks forward, as _epilogue.py says."""
        super().__init_subclass__(**named)
        if function is not None:
            cls._function, cls._epilogue, name = function, epilogue, function.__name__
            cls._public = name if FUNCTIONS.get(name) is function else ""
            cls.forward = Compiled(cls, "forward", _compile_forward)  # type: ignore[assignment]

    @classmethod
    def _init_body(cls) -> list[str]:
        keep = {"Tensor | None": "self.register_buffer({0!r}, {0})"}
        lines = [keep.get(x.annotation, "self.{0} = {0}").format(name) for name, x in cls._options.items()]
        return ["super(first, self).__init__()", *lines]

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
    """name=value, separated by commas; the first `unnamed` values have no names."""
    texts = [f"{name}={value}" for name, value in values.items()]
    return ", ".join([str(value) for value in values.values()][:unnamed] + texts[unnamed:])


def changed_options(module: Module, defaults: dict[str, Any]) -> dict[str, Any]:
    """The attributes of module that differ from these defaults."""
    values = {name: getattr(module, name) for name in defaults}
    return {name: value for name, value in values.items() if value != defaults[name]}


def _compile_forward(cls: Any, names: dict[str, Any]) -> Any:
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
    looked_up, namespace = (
        (f"functions[{cls._public!r}]", {"functions": FUNCTIONS}) if cls._public else ("function", {})
    )
    call = f"return {looked_up}({', '.join(arguments)})"
    forward = define(cls, names, signature, [call], **(namespace or {"function": function}))
    forward.__globals__.setdefault("Tensor", Tensor)  # typing.get_type_hints() looks up its annotations there
    return epilogue(cls._epilogue)(forward) if vars(cls)["_epilogue"] else forward
