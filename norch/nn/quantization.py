"""quantize(), which stores the weights of a model as 8-bit or 4-bit integers, and the layers that replace those of the
model.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..autograd import no_grad
from ..errors import ArgumentError
from ..ops.copy import cat
from ..ops.quantized import BLOCK, packed_weight, quantized_linear, quantized_weight
from ..tensor import Tensor
from ._layer import format_options
from ._registry import CALL_HOOKS
from .conv import Conv1d, Conv2d
from .embedding import Embedding
from .functional._embedding import embedding
from .linear import Linear
from .module import Module
from .parameter import Parameter

__all__ = ["QuantizedConv1d", "QuantizedConv2d", "QuantizedEmbedding", "QuantizedLinear", "quantize"]

_MOST = 1 << 22  # elements of a weight that are converted at a time


class Quantized(Module):
    """Base of the layers that replace others in quantize(). The weight is stored as integers, and is not trained.

    packed: the integers, (rows, bytes) int8, or uint8 with two in each byte, of the weight with its rows flattened
    scale:  (rows, groups), floats: an integer of a group means its scale times the integer
    """

    packed: Tensor
    scale: Tensor
    _options: ClassVar[str] = ""  # further attributes of a layer

    def __init__(self, layer: Any, packed: Tensor, scale: Tensor, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.register_buffer("packed", packed)
        self.register_buffer("scale", scale)
        self._shape = shape
        for name in self._options.split():
            setattr(self, name, getattr(layer, name))
        hooks = [name for kind, options in CALL_HOOKS.items() for name in (kind, *options)]
        self.__dict__.update({name: layer.__dict__[name] for name in hooks}, training=layer.training)

    @property
    def weight(self) -> Tensor:
        """The weight in the dtype of the scales, computed from the integers at each access."""
        columns = 1
        for size in self._shape[1:]:
            columns *= size
        return quantized_weight(self.packed, self.scale, columns).reshape(self._shape)

    @property
    def bits(self) -> int:
        """8 or 4: the size of an integer."""
        return 8 if self.packed.dtype.name == "int8" else 4


class QuantizedLinear(Quantized):
    """Linear with a weight of integers: (..., in_features) to (..., out_features), in the dtype of the input.

    bias: that of the layer, or None. Input and bias have gradients. ShapeError if the last size of the input is not
    in_features.

    >>> norch.quantize(norch.nn.Linear(64, 2), "int4")
    QuantizedLinear(in_features=64, out_features=2, bias=True, bits=4)
    """

    bias: Parameter | None
    _dynamic = False

    def __init__(self, layer: Any, packed: Tensor, scale: Tensor, shape: tuple[int, ...]) -> None:
        super().__init__(layer, packed, scale, shape)
        self.out_features, self.in_features = shape
        self.register_parameter("bias", layer.bias)

    @property
    def activations(self) -> str | None:
        """ "int8": rows of the input become integers, too; None: they stay floats. It may be changed."""
        return "int8" if self._dynamic else None

    @activations.setter
    def activations(self, activations: str | None) -> None:
        self._dynamic = _is_int8(activations)

    def forward(self, input: Tensor) -> Tensor:
        return quantized_linear(input, self.packed, self.scale, self.bias, self._dynamic)

    def extra_repr(self) -> str:
        options = {"in_features": self.in_features, "out_features": self.out_features, "bias": self.bias is not None}
        chosen = {"activations": self.activations} if self._dynamic else {}
        return format_options({**options, "bits": self.bits, **chosen})


class QuantizedEmbedding(Quantized):
    """Embedding with a table of integers; the rows that are read become floats of the dtype of the scales.

    >>> norch.quantize(norch.nn.Embedding(10, 64), "int8")(norch.tensor([1, 2])).shape
    norch.Size([2, 64])
    """

    num_embeddings: int
    embedding_dim: int
    _options = "num_embeddings embedding_dim padding_idx"

    def forward(self, input: Tensor) -> Tensor:
        packed, scale = embedding(input, self.packed), embedding(input, self.scale)
        count = input.numel()
        rows = packed.reshape(count, packed.shape[-1]), scale.reshape(count, scale.shape[-1])
        return quantized_weight(*rows, self.embedding_dim).reshape(*input.shape, self.embedding_dim)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, bits={self.bits}"


class QuantizedConv1d(Quantized):
    """Conv1d with a weight of 8-bit integers, which become floats in each call: it saves memory, not time. Captured
    inference converts them once, keeps the floats, and takes the time of Conv1d.
    """

    bias: Parameter | None
    _axes, _conv, forward = Conv1d._axes, Conv1d._conv, Conv1d.forward
    _conv_forward, _pairs_of_padding = Conv1d._conv_forward, Conv1d._pairs_of_padding
    _options = "in_channels out_channels groups kernel_size stride padding dilation output_padding padding_mode"

    def __init__(self, layer: Any, packed: Tensor, scale: Tensor, shape: tuple[int, ...]) -> None:
        super().__init__(layer, packed, scale, shape)
        self.register_parameter("bias", layer.bias)

    def extra_repr(self) -> str:
        return f"{Conv1d.extra_repr(self)}, bits={self.bits}"  # type: ignore[arg-type]


class QuantizedConv2d(QuantizedConv1d):
    """Conv2d with a weight of integers, as QuantizedConv1d."""

    _axes, _conv, forward = Conv2d._axes, Conv2d._conv, Conv2d.forward


_LAYERS: dict[type, Any] = {
    Linear: QuantizedLinear,
    Embedding: QuantizedEmbedding,
    Conv1d: QuantizedConv1d,
    Conv2d: QuantizedConv2d,
}
_BITS = {"int8": 8, "int4": 4}


def quantize(model: Module, dtype: str = "int8", group: int | None = None, activations: str | None = None) -> Module:
    """Stores the weights of a model as integers, in the model itself, and returns it.

    Its layers Linear, Embedding, Conv1d and Conv2d are replaced. For a model that is such a layer, its replacement is
    returned.

    dtype        "int8": one scale a row of the weight, or one a group; "int4": for Linear and Embedding, one a group,
                 and int8 for convolutions
    group        so many columns have one scale: a power of two from 32. None: 64 with "int4"
    activations  "int8": in each call, Linear takes each row of its input as integers of 8 bits with a row scale,
                 and multiplies integers, as PyTorch's quantize_dynamic does. None: inputs stay as they are

    Left as they are: subclasses of these layers, those with a hook that computes their weight, and embeddings with
    max_norm. Layers that share a weight share its integers; Conv1D of transformers is a Linear. ArgumentError for
    other values, and where a weight has elements that are not finite; the model is then unchanged.

    >>> model = norch.quantize(norch.nn.Sequential(norch.nn.Linear(128, 64), norch.nn.ReLU()), "int4")
    >>> model(norch.ones(2, 128)).shape, model[0].packed.dtype
    (norch.Size([2, 64]), norch.uint8)
    """
    if not isinstance(model, Module):
        raise TypeError(f"quantize: a Module is quantized, not {type(model).__name__}")
    if dtype not in _BITS:
        raise ArgumentError(f"quantize: dtype is 'int8' or 'int4', not {dtype!r}")
    if group is not None and (not isinstance(group, int) or group < BLOCK or group & (group - 1)):
        raise ArgumentError(f"quantize: group is a power of two from {BLOCK}, not {group!r}")
    _is_int8(activations)
    replacements: dict[int, Quantized] = {}
    weights: dict[tuple[int, int, int], tuple[Tensor, Tensor]] = {}
    for name, layer in model.named_modules():
        if (kind := _kind_of(layer)) is not None:
            bits = 8 if kind in (QuantizedConv1d, QuantizedConv2d) else _BITS[dtype]
            with no_grad():
                replacement = replacements[id(layer)] = _replacement(kind, name, layer, bits, group, weights)
            if isinstance(replacement, QuantizedLinear):
                replacement.activations = activations
    for module in list(model.modules()):
        for name, child in list(module._modules.items()):
            if id(child) in replacements:
                module._modules[name] = replacements[id(child)]
    return replacements.get(id(model), model)


def _is_int8(activations: str | None) -> bool:
    if activations not in (None, "int8"):
        raise ArgumentError(f"quantize: activations is 'int8' or None, not {activations!r}")
    return activations is not None


def _is_transposed(layer: Module) -> bool:
    """Whether it is transformers' Conv1D, a Linear with the weight (in, out)."""
    return type(layer).__name__ == "Conv1D" and type(layer).__module__ == "transformers.pytorch_utils"


def _kind_of(layer: Module) -> Any:
    """The class that replaces a layer; None: it stays."""
    kind = QuantizedLinear if _is_transposed(layer) else _LAYERS.get(type(layer))
    weight = layer._parameters.get("weight")
    if weight is None or getattr(layer, "max_norm", None) is not None:
        return None
    return kind if weight.dtype.is_floating_point else None


def _replacement(kind: Any, name: str, layer: Any, bits: int, group: int | None, weights: Any) -> Quantized:
    weight = layer.weight.t() if _is_transposed(layer) else layer.weight
    is_conv = kind in (QuantizedConv1d, QuantizedConv2d)
    size = (1 << 62) if is_conv or (group is None and bits == 8) else (group or 64)
    key = id(layer.weight), bits, size, _is_transposed(layer)
    if key not in weights:
        rows = weight.flatten(1)
        if rows.device.type != "meta" and not bool(rows.isfinite().all()):
            raise ArgumentError(
                f"quantize: the weight of {name or type(layer).__name__!r} has elements that are not finite"
            )
        weights[key] = _packed(rows, bits, size)
    return kind(layer, *weights[key], tuple(weight.shape))


def _packed(rows: Tensor, bits: int, group: int) -> tuple[Tensor, Tensor]:
    """packed_weight(), called for a few rows at a time, so that little memory is needed for floats."""
    step = max(1, _MOST // max(1, rows.shape[1]))
    parts = [packed_weight(part, bits, group) for part in rows.split(step)]
    packed, scale = zip(*parts)
    return cat(packed), cat(scale)
