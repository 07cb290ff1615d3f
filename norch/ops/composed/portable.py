"""What programs written for PyTorch ask of a tensor before they do something else, and its names of types."""

from __future__ import annotations

from typing import Any

from ..._handle import Handle
from ...dtype import dtype_named, get_default_dtype
from .._operand import as_operand

__all__ = ["is_same_size", "is_signed", "real", "typename"]

# PyTorch's old names of the types, by dtype.
TYPES = dict(
    zip(
        "float32 float64 float16 bfloat16 bool uint8 int8 int16 int32 int64".split(),
        "Float Double Half BFloat16 Bool Byte Char Short Int Long".split(),
        strict=True,
    )
)


def is_same_size(input: Any, other: Any) -> bool:  # noqa: A002
    """Whether two tensors have one shape."""
    return tuple(as_operand(input, "is_same_size").shape) == tuple(as_operand(other, "is_same_size").shape)


def is_signed(input: Any) -> bool:  # noqa: A002
    """Whether the dtype has negative numbers."""
    return as_operand(input, "is_signed").dtype.is_signed


def typename(obj: Any) -> str:
    """The name of the type of anything, with its module's."""
    kind = type(obj)
    return f"norch.{kind.__name__}" if isinstance(obj, Handle) else f"{kind.__module__}.{kind.__qualname__}"


def real(input: Any) -> Any:  # noqa: A002
    """The tensor itself, as its numbers are real."""
    return as_operand(input, "real")


class PortableMethods(Handle):
    """Those of Tensor."""

    __slots__ = ()

    is_same_size, is_signed = is_same_size, is_signed

    # What code written for PyTorch asks before it does something else.
    is_sparse = is_sparse_csr = is_quantized = is_nested = is_meta = is_mkldnn = is_mps = is_xpu = is_xla = False
    is_vulkan = is_ipu = is_maia = is_mtia = False

    @property
    def retains_grad(self) -> bool:
        """Whether backward() leaves the gradient of this computed tensor in .grad."""
        node = self.grad_fn  # type: ignore[attr-defined]
        return any(getattr(hook, "tensor", int)() is self for hook in getattr(node, "hooks", None) or ())

    def is_complex(self) -> bool:
        """False, as for every tensor here."""
        return False

    is_conj = is_neg = is_inference = is_shared = is_complex

    def conj(self) -> Any:
        """The tensor itself, as its numbers are real."""
        return self

    resolve_conj = resolve_neg = conj

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The tensor in another dtype; without one the name of its type, as "norch.FloatTensor"."""
        if dtype is None:
            return f"norch.{TYPES[self.dtype.name]}Tensor"
        text = (dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")).rpartition(".")[2]
        if text == "Tensor":  # the class itself
            dtype = get_default_dtype()
        elif text.endswith("Tensor"):
            wanted = text.removesuffix("Tensor")
            dtype = next((name for name, kind in TYPES.items() if kind == wanted), dtype)
        return self.to(dtype_named(dtype))  # type: ignore[attr-defined]

    real = property(real, doc="The tensor itself, as its numbers are real.")
