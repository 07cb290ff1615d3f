"""Parameters to one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ..._package.exports import publish
from ...errors import DTypeError, ShapeError
from ...ops.copy import cat
from ...tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of the parameters in one vector, with history.

    >>> norch.nn.utils.parameters_to_vector(norch.nn.Linear(3, 2).parameters()).shape
    norch.Size([8])
    """
    return cat([param.reshape(-1) for param in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """The inverse: makes the parameters views of vec. ShapeError if its length is not their number of elements;
    DTypeError if it holds integers and a parameter requires grad.

    >>> layer = norch.nn.Linear(2, 1)
    >>> norch.nn.utils.vector_to_parameters(norch.tensor([1.0, 2.0, 3.0]), layer.parameters())
    >>> layer.bias.data
    tensor([3.])
    """
    listed = list(parameters)
    counts = [param.numel() for param in listed]
    if tuple(vec.shape) != (sum(counts),):
        raise ShapeError(f"vector_to_parameters: {sum(counts)} elements from shape {tuple(vec.shape)}")
    if not vec.dtype.is_floating_point and any(param.requires_grad for param in listed):
        raise DTypeError(f"vector_to_parameters: parameters that require grad cannot become {vec.dtype.name}")
    for param, part in zip(listed, vec.split(counts), strict=True):
        param.data = part.detach().reshape(param.shape)


publish(globals())
