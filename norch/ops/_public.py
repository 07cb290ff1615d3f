"""The public form of operations: norch.exp, beside the method Tensor.exp. They are two objects, as in PyTorch.

The public form takes out= if the operation is declared so (_out.py), and calls __torch_function__ of arguments that the
operation refuses (_instead.py). The modules that users import make the public forms: norch when an operation is first
read, norch.linalg and others for the functions that they collect.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import cache
from types import FunctionType, MappingProxyType

from .._package.typing import TYPE_CHECKING, Any
from .._tensor.handle import Handle
from ._instead import code_of, instead, wraps
from ._operand import RENAMED_ERRORS, renamed_error
from ._out import check_layout, with_options, written
from ._rows import is_row

if TYPE_CHECKING:
    from inspect import Signature

Function = Callable[..., Any]

_OPERATIONS = ("norch.ops.", "norch._tensor.", "norch.fft.", "norch.nn.functional.")  # modules that declare them


def is_operation(function: Any, methods: dict[str, Any]) -> bool:
    """Whether a function of norch has a public form. Composed functions that are no method need none, because their
    wrapper (_entry.py) does the same. methods are the methods of Tensor.
    """
    if type(function) is not FunctionType or not function.__module__.startswith(_OPERATIONS):
        return False
    if getattr(function, "out", False) or hasattr(function, "makes") or function.__name__ in methods:
        return True
    return not hasattr(function, "__wrapped__") and takes_tensors(function)


def takes_tensors(function: Any) -> bool:
    """Whether a parameter of a function is annotated as a tensor."""
    return any(
        name != "return" and ("Tensor" in str(kind) or "Operand" in str(kind))
        for name, kind in function.__annotations__.items()
    )


def public_form(function: Any, name: str, module: str) -> Function:
    """The public form of a function, by its declaration, under this name in a module."""
    return _with_out(function, name, module) if getattr(function, "out", False) else _guarded(function, module)


def publish_operations(namespace: dict[str, Any], names: Iterable[str], without_out: Container[str] = ()) -> None:
    """Replaces functions in the globals() of a module by public forms: with out=, but for those in without_out."""
    forms: dict[Any, Any] = {}
    plain, module = {name: namespace[name] for name in names}, namespace["__name__"]
    for name, function in plain.items():
        if name in without_out:
            namespace[name] = _guarded(function, module)
            continue
        if function not in forms:
            forms[function] = _with_out(function, _name_of(function, name, plain), module)
        namespace[name] = forms[function]


def publish_late(namespace: dict[str, Any], methods: dict[str, Any]) -> tuple[frozenset[str], Callable[..., Any]]:
    """Removes the operations from the globals() of a module, so that the public form of each is made when it is first
    read. All at once would take a twentieth of the time of `import norch`. Returns their names, and a function f(name,
    function) that puts the public form there, also for operations that were not there before."""
    plain = {name: value for name, value in namespace.items() if name[0] != "_" and is_operation(value, methods)}
    for name in plain:
        del namespace[name]

    forms: dict[Any, Any] = {}

    def put(name: str, function: Any = None) -> Any:
        function = plain.get(name, function)
        if function not in forms:
            declared = _name_of(function, name, {**methods, **plain})
            forms[function] = public_form(function, declared, namespace["__name__"])
            namespace.update({other: forms[function] for other, value in plain.items() if value is function})
        return forms[function]

    return frozenset(plain), put


def _name_of(function: Any, name: str, plain: dict[str, Any]) -> str:
    """The name of the public form of a function that has several names: the name of its declaration, if it is among
    them.
    """
    declared = function.__name__
    return declared if plain.get(declared) is function else name


@cache
def function_of(method: Any) -> Any:
    """The function of norch with the name of a method of Tensor. It is a separate object, as in PyTorch."""
    code = method.__code__
    if code.co_argcount != 1 or code.co_flags & _TAKES_MORE:
        return _guarded(method, "norch", (TypeError, AttributeError))

    def wrapper(input: Any) -> Any:  # the method need not look at its tensor
        if isinstance(input, Handle):
            return method(input)
        error = TypeError(f"{method.__name__}: expected a tensor, not {type(input).__name__}")
        return instead(wrapper, (input,), {}, error)

    wraps(method)(wrapper).__module__ = "norch"
    return wrapper


# ---- wrappers ------------------------------------------------------------------------------------------------------

# A wrapper has the same parameters as its function (_renamed() sets their names), because a call with *arguments takes
# longer. A TypeError may be due to an object with __torch_function__: instead().

_TAKES_MORE = 4 | 8  # of code.co_flags: *arguments, **named


def _renamed(wrapper: Any, names: tuple[str, ...], defaults: tuple[Any, ...]) -> Any:
    code = wrapper.__code__
    wrapper.__code__ = code.replace(co_varnames=(*names, *code.co_varnames[len(names) :]))
    wrapper.__defaults__ = defaults
    return wrapper


# ---- without out=


def _guarded(function: Any, module: str, refusals: Any = TypeError) -> Any:
    if hasattr(function, "makes"):
        wrapper = _of_maker(function)
    elif is_row(function) and code_of(function).co_argcount == 1:
        wrapper = _taking_row(function)
    elif (remake := _remake_of(function)) is not None:
        wrapper = remake()
    else:
        wrapper = with_handler(function, refusals, instead)
    wraps(function)(wrapper).__module__ = module
    if hasattr(function, "makes"):
        wrapper.__wrapped__ = Signed(function)
    return wrapper


def _remake_of(function: Any) -> Any:
    """What makes another wrapper like function, which entry() of _entry.py has made and which notices such objects
    itself; None for other functions, also where a decorator has copied the attributes of one."""
    remake = getattr(function, "remake", None)
    return remake if remake is not None and remake.of is function else None


def with_handler(function: Any, refusals: Any, handle: Any) -> Any:
    """A wrapper of function; where that raises one of refusals, it returns handle(wrapper, arguments, named, error)."""
    code = code_of(function)
    make = _TAKING.get(code.co_argcount if not (code.co_kwonlyargcount or code.co_flags & _TAKES_MORE) else -1)
    if make is None:
        return _taking_any(function, refusals, handle)
    names = code.co_varnames[: code.co_argcount]
    return _renamed(make(function, refusals, handle), names, function.__defaults__)


def _taking_any(function: Any, refusals: Any, handle: Any) -> Any:
    def wrapper(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except refusals as error:
            return handle(wrapper, arguments, named, error)

    return wrapper


def _taking_row(function: Any) -> Any:
    call = function.call

    def wrapper(input: Any) -> Any:
        try:
            out = call(input)
            return out if out is not NotImplemented else function(input)
        except TypeError as error:
            return instead(wrapper, (input,), {}, error)

    return wrapper


def _taking_1(function: Any, refusals: Any, handle: Any) -> Any:
    def wrapper(a: Any) -> Any:
        try:
            return function(a)
        except refusals as error:
            return handle(wrapper, (a,), {}, error)

    return wrapper


def _taking_2(function: Any, refusals: Any, handle: Any) -> Any:
    def wrapper(a: Any, b: Any) -> Any:
        try:
            return function(a, b)
        except refusals as error:
            return handle(wrapper, (a, b), {}, error)

    return wrapper


def _taking_3(function: Any, refusals: Any, handle: Any) -> Any:
    def wrapper(a: Any, b: Any, c: Any) -> Any:
        try:
            return function(a, b, c)
        except refusals as error:
            return handle(wrapper, (a, b, c), {}, error)

    return wrapper


def _taking_4(function: Any, refusals: Any, handle: Any) -> Any:
    def wrapper(a: Any, b: Any, c: Any, d: Any) -> Any:
        try:
            return function(a, b, c, d)
        except refusals as error:
            return handle(wrapper, (a, b, c, d), {}, error)

    return wrapper


_TAKING = {1: _taking_1, 2: _taking_2, 3: _taking_3, 4: _taking_4}


# ---- with out=

# CPython calls a function faster if it has no keyword-only parameters. So out, and the one that function may have, are
# ordinary parameters here, after `more`, which catches arguments passed by position: _asked() refuses these.


def _with_out(function: Any, name: str, module: str) -> Function:
    code: Any = code_of(function)
    count, options, inner = code.co_argcount, code.co_kwonlyargcount, function
    if hasattr(function, "makes"):
        wrapper = _of_maker(function)
    elif code.co_flags & _TAKES_MORE or (count, options) not in _WRAPPERS:
        if (remake := _remake_of(function)) is not None:  # its own wrapper takes out=
            wrapper, inner = remake(takes_out=True), function.__wrapped__
        else:
            wrapper = _of_any(function)
    else:
        names = code.co_varnames[: count + options]
        wrapper = (_ROWS if is_row(function) else _WRAPPERS)[count, options](function, *names[count:])
        names = (*names[:count], "more", *names[count:], "out")
        _renamed(wrapper, names, (*(function.__defaults__ or ()), *wrapper.__defaults__))
    wrapper.__dict__.update(function.__dict__, __wrapped__=Signed(inner), takes_out=True)
    wrapper.__name__ = wrapper.__qualname__ = name
    wrapper.__doc__, wrapper.__module__ = function.__doc__, module
    return wrapper


def _of_one(function: Function) -> Any:
    def wrapper(x: Any, more: Any = ..., out: Any = None) -> Any:
        try:
            return function(x) if out is None and more is ... else _asked(function, (x,), more, out)
        except TypeError as error:
            return instead(wrapper, (x,), {} if out is None else {"out": out}, error)

    return wrapper


def _of_two(function: Function) -> Any:
    def wrapper(x: Any, y: Any, more: Any = ..., out: Any = None) -> Any:
        try:
            return function(x, y) if out is None and more is ... else _asked(function, (x, y), more, out)
        except TypeError as error:
            return instead(wrapper, (x, y), {} if out is None else {"out": out}, error)

    return wrapper


def _of_three(function: Function) -> Any:
    def wrapper(x: Any, y: Any, z: Any, more: Any = ..., out: Any = None) -> Any:
        try:
            return function(x, y, z) if out is None and more is ... else _asked(function, (x, y, z), more, out)
        except TypeError as error:
            return instead(wrapper, (x, y, z), {} if out is None else {"out": out}, error)

    return wrapper


def _of_two_and_option(function: Function, name: str) -> Any:
    def wrapper(x: Any, y: Any, more: Any = ..., option: Any = ..., out: Any = None) -> Any:
        try:
            if out is None and more is ...:
                return function(x, y) if option is ... else function(x, y, **{name: option})
            return _asked(function, (x, y), more, out, _options(name, option))
        except TypeError as error:
            return instead(wrapper, (x, y), _options(name, option, out), error)

    return wrapper


def _of_three_and_option(function: Function, name: str) -> Any:
    def wrapper(x: Any, y: Any, z: Any, more: Any = ..., option: Any = ..., out: Any = None) -> Any:
        try:
            if out is None and more is ...:
                return function(x, y, z) if option is ... else function(x, y, z, **{name: option})
            return _asked(function, (x, y, z), more, out, _options(name, option))
        except TypeError as error:
            return instead(wrapper, (x, y, z), _options(name, option, out), error)

    return wrapper


def _of_three_and_two_options(function: Function, name: str, other: str) -> Any:
    def wrapper(x: Any, y: Any, z: Any, more: Any = ..., option: Any = ..., second: Any = ..., out: Any = None) -> Any:
        try:
            if out is None and more is ... and option is second is ...:
                return function(x, y, z)
            named = _options(name, option)
            if second is not ...:
                named[other] = second
            if out is None and more is ...:
                return function(x, y, z, **named)
            return _asked(function, (x, y, z), more, out, named)
        except TypeError as error:
            return instead(wrapper, (x, y, z), {**_options(name, option), **_options(other, second, out)}, error)

    return wrapper


def _options(name: str, option: Any, out: Any = None) -> dict[str, Any]:
    named = {} if option is ... else {name: option}
    return named if out is None else {**named, "out": out}


def _of_any(function: Function) -> Any:
    def wrapper(*arguments: Any, out: Any = None, **named: Any) -> Any:
        try:
            return function(*arguments, **named) if out is None else written(function, arguments, named, out)
        except TypeError as error:
            return instead(wrapper, arguments, named if out is None else {**named, "out": out}, error)

    return wrapper


def _of_maker(function: Any) -> Any:
    """The public form of a function that makes tensors (makes() of _out.py)."""

    def wrapper(*arguments: Any, requires_grad: bool = False, **named: Any) -> Any:
        try:
            if named and not _RARE.isdisjoint(named):
                return _make_with_options(function, arguments, requires_grad, **named)
            tensor = function(*arguments, **named)
            return tensor.requires_grad_(requires_grad) if requires_grad else tensor
        except RENAMED_ERRORS as error:
            error = renamed_error(error, function.__name__, (*arguments, *named.values()))  # type: ignore[assignment]
            named |= {"requires_grad": requires_grad} if requires_grad else {}
            return instead(wrapper, arguments, named, error)

    return wrapper


_RARE = frozenset(("out", "layout", "pin_memory"))  # of the options of makes(); the others are parameters


def _make_with_options(
    function: Any, arguments: tuple[Any, ...], requires_grad: bool, out: Any = None, layout: Any = None,
    pin_memory: bool = False, **named: Any,
) -> Any:  # fmt: skip
    if out is None:
        return with_options(function(*arguments, **named), requires_grad, layout, pin_memory)
    if not function.out:
        return function(*arguments, out=out, **named)  # raises the TypeError for out
    check_layout(layout)
    return written(function, arguments, {**named, "requires_grad": requires_grad}, out)


def _row_of_one(function: Any) -> Any:
    call = function.call

    def wrapper(x: Any, more: Any = ..., out: Any = None) -> Any:
        try:
            if out is None and more is ... and (result := call(x)) is not NotImplemented:
                return result
            return _asked(function, (x,), more, out)
        except TypeError as error:
            return instead(wrapper, (x,), {} if out is None else {"out": out}, error)

    return wrapper


def _row_of_two(function: Any) -> Any:
    call = function.call

    def wrapper(x: Any, y: Any, more: Any = ..., out: Any = None) -> Any:
        try:
            if out is None and more is ... and (result := call(x, y)) is not NotImplemented:
                return result
            return _asked(function, (x, y), more, out)
        except TypeError as error:
            return instead(wrapper, (x, y), {} if out is None else {"out": out}, error)

    return wrapper


_ROWS: dict[tuple[int, int], Any] = {(1, 0): _row_of_one, (2, 0): _row_of_two}
# By the numbers of parameters, and of keyword-only ones. The others are called less.
_WRAPPERS: dict[tuple[int, int], Any] = {
    (1, 0): _of_one,
    (2, 0): _of_two,
    (3, 0): _of_three,
    (2, 1): _of_two_and_option,
    (3, 1): _of_three_and_option,
    (3, 2): _of_three_and_two_options,
}


def _asked(function: Any, arguments: tuple[Any, ...], more: Any, out: Any, named: Any = MappingProxyType({})) -> Any:
    if more is not ...:
        return function(*arguments, more, **named)  # raises the TypeError for too many
    return function(*arguments, **named) if out is None else written(function, arguments, named, out)


class Signed:
    """Replaces a wrapped function, so that inspect reads the signature with out=. That signature is made when it is
    read.
    """

    __slots__ = ("__wrapped__",)

    def __init__(self, function: Any):
        self.__wrapped__ = function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.__wrapped__(*arguments, **named)

    @property
    def __signature__(self) -> Signature:
        import inspect

        signature = inspect.signature(self.__wrapped__)
        if hasattr(self.__wrapped__, "makes"):
            signature = _signature_of_maker(signature)
            if not self.__wrapped__.out:
                return signature
        return signature_with_out(signature)


def _signature_of_maker(signature: Signature) -> Signature:
    """A signature with the options of makes() behind device."""
    import inspect

    parameters = list(signature.parameters.values())
    at = 1 + list(signature.parameters).index("device")
    options = (("requires_grad", False, "bool"), ("layout", None, "Any"), ("pin_memory", False, "bool"))
    parameters[at:at] = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, default, kind in options
    ]
    return signature.replace(parameters=parameters)


def signature_with_out(signature: Signature) -> Signature:
    """A signature with out= at its end."""
    import inspect

    kind = {"Tensor": "Tensor | None", "Any": "Any"}.get(signature.return_annotation, "tuple[Tensor, ...] | None")
    out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
    parameters = list(signature.parameters.values())
    rest = [parameters.pop()] if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    return signature.replace(parameters=[*parameters, out, *rest])
