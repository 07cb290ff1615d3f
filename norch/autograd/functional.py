"""``norch.autograd.functional``: derivatives of functions of one or several tensors, computed by transforms.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._package.exports import publish
from .._tensor.handle import Handle
from ..errors import DTypeError, ShapeError
from .transforms import Linearized, Tensors, check_shapes, pull

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _checked(values: Any, name: str) -> Any:
    """A tensor, or a tuple of them; TypeError for others."""
    tensors = tuple(values) if isinstance(values, (tuple, list)) else (values,)
    for x in tensors:
        if not isinstance(x, Handle):
            raise TypeError(f"{name} must be a tensor or a tuple of tensors, not {type(x).__name__}")
    return tensors if isinstance(values, (tuple, list)) else values


def _listed(values: Any) -> Sequence[Any]:
    return values if isinstance(values, tuple) else (values,)


class _Run(Linearized):
    """A function of one tensor or of several, whose results are detached unless create_graph."""

    def __init__(
        self, name: str, func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, scalar: bool = False
    ):
        def call(*args: Any) -> Any:
            outputs = _checked(func(*args), f"{name}: what the function gives")
            if scalar and (isinstance(outputs, tuple) or outputs.numel() != 1):
                raise ShapeError(f"{name}: the function must give a tensor of one number")
            return outputs

        inputs = _checked(inputs, f"{name}: inputs")
        args = _listed(inputs)
        super().__init__(name, call, args, {}, range(len(args)), create_graph, strict)
        self.name, self.input_tree = name, inputs

    def weights(self, v: Any, of: str, tensors: Tensors) -> Tensors:
        """v, checked against tensors; 1 if it is omitted for a single number."""
        if v is None:
            if len(tensors) != 1 or tensors[0].numel() != 1:
                raise ShapeError(f"{self.name}: v may be omitted only for {of} of a single number")
            return (tensors[0].new_ones(tensors[0].shape),)
        v = _listed(_checked(v, f"{self.name}: v"))
        check_shapes(f"{self.name}: v", v, of, tensors)
        return v

    def with_output(self, result: Any) -> tuple[Any, Any]:
        """(output, found) for the caller."""
        return self.released(self.output_tree), self.released(result)


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(func(*inputs), the vector-Jacobian product of v, shaped as the output, with the Jacobian of func).

    inputs and the output of func are a tensor or a tuple of tensors; the product is shaped as inputs. v may be omitted
    for an output of one number. create_graph keeps the results differentiable. An input that does not affect the output
    gives zeros, or with strict an Error. ShapeError if v is not shaped as the output.

    >>> norch.autograd.functional.vjp(norch.exp, norch.zeros(2), norch.ones(2))
    (tensor([1., 1.]), tensor([1., 1.]))
    """
    run = _Run("vjp", func, inputs, create_graph, strict)
    product = run.vjp(run.weights(v, "an output", run.outputs))
    return run.with_output(run.by_input(product))


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(func(*inputs), the Jacobian-vector product with v, which is shaped as inputs). The product is shaped as the
    output. Options as in vjp().

    >>> norch.autograd.functional.jvp(norch.square, norch.tensor([1.0, 2.0]), norch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    run = _Run("jvp", func, inputs, create_graph, strict)
    product = run.jvp(run.weights(v, "an input", run.inputs))
    return run.with_output(run.by_output(product))


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of all elements of func(*inputs) by all elements of inputs: (*output.shape, *input.shape).

    For a tuple of inputs the result is a tuple over them; for a tuple of outputs, a tuple over the outputs of such
    tuples. strategy: "reverse-mode" (a walk for each element of the outputs) or "forward-mode" (for each element of the
    inputs). vectorize batches all walks by vmap: faster, but with more memory.

    >>> norch.autograd.functional.jacobian(lambda x: x * x, norch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"jacobian: strategy must be 'reverse-mode' or 'forward-mode', not {strategy!r}")
    run = _Run("jacobian", func, inputs, create_graph, strict)
    rows = run.jacobian(strategy == "forward-mode", None if vectorize else 1)
    return run.by_output([run.released(run.by_input(row)) for row in rows])


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of func, whose output must be one number, by all pairs of elements of inputs.

    Shape: (*input.shape, *input.shape); for a tuple of inputs a tuple of tuples of such blocks. The options are those
    of jacobian(). ShapeError if the output is not one number.

    >>> norch.autograd.functional.hessian(lambda x: (x**3).sum(), norch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    inputs = _checked(inputs, "hessian: inputs")

    def gradient(*now: Any) -> Any:
        run = _Run("hessian", func, now if isinstance(inputs, tuple) else now[0], True, strict, scalar=True)
        return run.by_input(run.vjp(run.weights(None, "an output", run.outputs)))

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(func(*inputs), which must be one number; the product of v, shaped as inputs, with the Hessian of func).

    >>> norch.autograd.functional.vhp(lambda x: (x**3).sum(), norch.tensor([1.0, 2.0]), norch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(func(*inputs), which must be one number; the product of its Hessian with v, shaped as inputs). The same as
    vhp(), as the Hessian is symmetric.

    >>> norch.autograd.functional.hvp(lambda x: (x**3).sum(), norch.tensor([1.0, 2.0]), norch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    name: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    run = _Run(name, func, inputs, create_graph, strict, scalar=True)
    for x in run.inputs:
        if x.dtype.is_complex:
            raise DTypeError(f"{name}: {x.dtype.name} is not supported")
    first = run.vjp(run.weights(None, "an output", run.outputs), create_graph=True)
    product = pull(first, run.inputs, run.weights(v, "an input", run.inputs), create_graph, run.strict)
    return run.with_output(run.by_input(product))


publish(globals())
