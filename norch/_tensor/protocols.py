"""The protocols of Python and NumPy for Tensor: its elements as numbers, lists and arrays; len(), bool(), repr()."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .._binding.library import lib
from .._package.typing import TYPE_CHECKING, Any, Array, Tensor
from ..autograd.grad_mode import is_grad_enabled
from ..errors import ArgumentError, BoundsError, DTypeError, Error
from ..ops._deferred import DeferredMethod
from ..ops._operand import tensor_of
from ..ops.copy import copy_
from ..ops.values import as_tensor
from ..ops.values import tensor as _tensor
from ..storage import Memory, bind_arrays
from .handle import Handle


class ProtocolMethods(Handle):
    """These methods of Tensor."""

    __slots__ = ()

    # ---- its elements as other objects -------------------------------------------------------------------------

    def item(self) -> int | float | bool:
        """The only element as a Python number; ArgumentError (a ValueError) unless there is exactly one.

        >>> norch.tensor([2.5]).item()
        2.5
        """
        return lib.norch_item(self)

    def tolist(self: Any) -> Any:
        """The elements as nested lists of Python numbers; a number for 0-d.

        >>> norch.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return lib.norch_to_list(self)

    def numpy(self: Any, *, force: bool = False) -> Array:
        """A NumPy array that shares memory with the tensor, or with force with its detached copy on the CPU. Error for
        a tensor that requires grad, outside of no_grad().

        >>> norch.ones(2).numpy()
        array([1., 1.], dtype=float32)
        """
        x = self.detach().cpu() if force else self
        if not force and x.requires_grad and is_grad_enabled():
            raise Error("numpy: this tensor requires grad; use .detach().numpy()")
        array = lib.norch_to_array(x)
        if array is not None:
            return array
        if not x.is_cpu:
            raise TypeError(
                f"numpy: can't convert a tensor on {x.device} to numpy; use .cpu() to copy it to the memory of the host"
            )
        if x.dtype.name == "bfloat16":
            raise DTypeError(f"numpy: NumPy has no {x.dtype.name}; cast first, as with .float()")
        try:
            import numpy
        except ImportError as error:
            raise ImportError(
                "numpy: needs NumPy: `pip install numpy` brings it, as does `pip install 'norch-dl[linalg]'`; "
                "tolist() works without"
            ) from error

        return lib.norch_to_array(x) if bind_arrays() else numpy.asarray(Memory(x))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ArgumentError(f"__array__: from {array.dtype} to {dtype} takes a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    _repr_html_ = DeferredMethod("norch.utils._tensor_html", "_repr_html_")
    _repr_png_ = DeferredMethod("norch.utils._tensor_html", "_repr_png_")
    __dlpack__ = DeferredMethod("norch.utils.dlpack", "__dlpack__")
    __dlpack_device__ = DeferredMethod("norch.utils.dlpack", "__dlpack_device__")
    __array_namespace__ = DeferredMethod("norch.array_api._methods", "__array_namespace__")
    to_device = DeferredMethod("norch.array_api._methods", "to_device")

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """The result of an elementwise function of NumPy: a tensor where norch has the dtype, else the array."""
        try:
            return as_tensor(array)
        except DTypeError:
            return array

    def apply_(self: Any, callable: Callable[[Any], Any]) -> Tensor:
        """Replaces each element by callable(element). It is slow, and not recorded."""
        return self.map_(self, lambda x, _: callable(x))

    def map_(self: Any, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Replaces each element by callable(element, element of other), which broadcasts. Slow, and not recorded."""
        if self.requires_grad or tensor_of(other, "map_").requires_grad:
            raise Error("map_: Python functions have no derivatives; detach() the tensors first")
        pairs = zip(self.flatten().tolist(), other.expand(self.shape).flatten().tolist())
        values = _tensor([callable(a, b) for a, b in pairs], dtype=self.dtype, device=self.device)
        return copy_(self, values.view(self.shape))

    # ---- the protocols of Python -----------------------------------------------------------------------------

    def is_nonzero(self) -> bool:
        """Whether the only element is not zero.

        >>> norch.tensor([0.0]).is_nonzero()
        False
        """
        return bool(self)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __reversed__(self: Any) -> Tensor:
        return self.flip(0) if self.ndim else self

    def __iter__(self: Any) -> Iterator[Tensor]:
        try:
            return iter(self.unbind(0))
        except BoundsError:
            raise TypeError("iteration over a 0-d tensor") from None

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise ArgumentError(
                f"the truth of a tensor of shape {tuple(self.shape)} is ambiguous; use .any() or .all()"
                if self.numel()
                else "the truth of an empty tensor is ambiguous"
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.numel() != 1:
            raise TypeError("only a single integer can be used as an index")
        return int(self.item())

    def __contains__(self: Any, value: Any) -> bool:
        if not isinstance(value, (Handle, int, float, complex)):
            raise TypeError(f"in: a tensor holds numbers, not {type(value).__name__}")
        return bool((self == value).any())

    def __format__(self, spec: str) -> str:
        if self.ndim == 0 and not self.is_meta:
            return format(self.item(), spec)
        return object.__format__(self, spec) if spec else repr(self)

    if not TYPE_CHECKING:  # mypy drops the names of arguments of such methods, so overrides would not fit

        def __repr__(self, *, tensor_contents: str | None = None) -> str:
            """tensor_contents: what stands in place of the elements, for subclasses."""
            from .representation import text  # lazy: programs that print no tensor need not import it

            return text(self, tensor_contents)


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero; ValueError where there is not exactly one.

    >>> norch.is_nonzero(norch.tensor([0.0]))
    False
    """
    return bool(tensor_of(input, "is_nonzero"))
