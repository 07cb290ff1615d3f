"""The declaration of operations: op() for rows of csrc/ops.def, @method for functions composed of other operations.

    tanh = op("tanh", "Hyperbolic tangent.", grad=lambda g, out: tanh_backward(g, out))
    mul = op("mul", "a * b.", grad_a=lambda g, b: g * b, grad_b=lambda g, a: g * a)

One declaration makes the function, the method of Tensor, the in-place method (``tanh_``) and the node class. A node
saves the values that the gradient functions name as parameters: x (or a, b, c), out ... (autograd/derivative.py). Other
families (convolution, indexing) call C, check arguments and record in files of their own, with @differentiable or
record().
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial

from .._binding.library import lib
from .._package.typing import Any, Operation, TypeVar, overload
from ..autograd.derivative import derivative
from . import _rows
from ._arguments import named_function
from ._autocast import policy
from ._entry import entry
from ._examples import EXAMPLES, with_example
from ._inplace_methods import InplaceMethod
from ._out import takes_out
from ._rows import OPCODES

Function = Callable[..., Any]
F = TypeVar("F", bound=Any)  # a function or a property

# {name: method or operator of Tensor}, declared in ops/; tensor.py adds them to the class.
METHODS: dict[str, Any] = {}

# For each form of row: the maker of its functions, its inputs, values that nodes may save. CHOICE rows are ternary.
_FORMS: dict[str, tuple[Any, tuple[str, ...], tuple[str, ...]]] = {
    "unary": (_rows.unary, ("x",), ("x", "out")),  # as the in-place forms in _rows.py save it
    "binary": (_rows.binary, ("a", "b"), ("a", "b", "out")),
    "ternary": (_rows.ternary, ("a", "b", "c"), ("a", "b", "c", "out")),
    "choice": (_rows.ternary, ("a", "b", "c"), ("a", "b", "c", "out")),
    "reduce": (_rows.reduction, ("x",), ()),
}


def op(
    name: str,
    doc: str = "",
    *,
    row: str | None = None,
    aliases: tuple[str, ...] = (),
    is_method: bool = True,
    inplace: bool = True,
    autocast: str = "",
    out: bool = True,
    **declared: Any,
) -> Operation:
    """The function of a row of csrc/ops.def, differentiable if gradients are given.

    row         the name of the row, if it is not name
    aliases     other names of the method
    is_method   whether Tensor has it as a method
    inplace     whether Tensor has the in-place method name_ too
    autocast    its policy (_autocast.py), for rows of one or two inputs
    out         whether its public form takes out= (_public.py)
    declared    grad=, grad_a= ... and the other options of autograd.derivative.derivative()
    """
    row = row or name
    form = lib.norch_op_form(OPCODES[row]).decode()
    make, inputs, saves = _FORMS[form]
    others = _rows.REDUCTION_OTHERS if form == "reduce" else ()
    node_class = cache(lambda: derivative(name, inputs, saves=saves, others=others, **declared)) if declared else None
    call = make(row, node_class, autocast) if autocast else make(row, node_class)
    function = named_function(policy(autocast)(call), name, doc)
    function.__module__ = sys._getframe(1).f_globals["__name__"]  # where it is declared
    function.row, function.out = (form, row, node_class), out
    function.__annotations__["return"] = "Tensor"
    if is_method and form != "reduce":
        method(function, aliases=aliases, inplace=inplace)
    return function


function_op = partial(op, is_method=False)  # the function alone


def backward_op(name: str, **declared: Any) -> Operation:
    """The function of a row that is a derivative, in one pass over memory. It is linear in a, the gradient.

    declared    grad_b=, grad_c=: the gradients of the second order
    """

    def linear(g: Any, b: Any) -> Any:
        return function(g, b)

    def linear_with_parameter(g: Any, b: Any, c: Any) -> Any:
        return function(g, b, c)

    form = lib.norch_op_form(OPCODES[name]).decode()
    function = op(name, is_method=False, grad_a=linear if form == "binary" else linear_with_parameter, **declared)
    function.__module__ = sys._getframe(1).f_globals["__name__"]
    return function


@overload
def method(function: F, **declared: Any) -> F: ...
@overload
def method(
    *,
    composed: bool = ...,
    moves: bool = ...,
    numpy: bool = ...,
    autocast: str = ...,
    out: bool | None = ...,
    **declared: Any,
) -> Callable[[F], F]: ...
def method(
    function: Any = None,
    *,
    composed: bool = False,
    moves: bool = False,
    numpy: bool = False,
    autocast: str = "",
    out: bool | None = None,
    **declared: Any,
) -> Any:
    """Declares that a function or a property is a method of Tensor too.

    name      the name of the method, if it differs
    inplace   whether Tensor has the in-place method name_ too
    composed  whether it is composed of operations that compute (_halves.py)
    moves     whether it is composed of operations that move elements
    numpy     whether it takes NumPy's names of arguments (_entry.py)
    autocast  its policy (_autocast.py)
    out       whether the public function takes out= (_public.py); by default if it takes NumPy's names"""
    if function is None:
        if not (composed or moves or numpy):
            return lambda function: _declared(takes_out(function) if out else function, **declared)
        options: dict[str, Any] = {"composed": composed, "numpy": numpy, "autocast": autocast, "out": out}
        return lambda function: _declared(entry(function, **options), **declared)
    return _declared(function, **declared)


def _declared(function: Any, name: str = "", aliases: tuple[str, ...] = (), inplace: bool = False) -> Any:
    names = (name or function.__name__, *aliases)
    if names[0] in EXAMPLES:
        function.__doc__ = with_example(names[0], function.__doc__)
    METHODS.update(dict.fromkeys(names, function))
    if inplace:
        METHODS.update({name + "_": InplaceMethod(function, name + "_") for name in names})
    return function
