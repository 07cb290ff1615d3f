"""Layers that take the number of their channels or features from the input of their first forward."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from ...autograd import no_grad
from ...errors import ShapeError
from ...ops._operand import tensor_of
from ..conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..linear import Linear
from ..module import Module
from ..norm import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from ..parameter import is_lazy
from .uninitialized import UninitializedBuffer, UninitializedParameter


class LazyModuleMixin(Module):
    """Base of the lazy layers. Their constructors take the arguments of the layer without the first, a size, which is 0
    at first. The first call infers the size from its input, and turns the object into the layer. The parameters stay
    the same objects, so an optimizer may hold them. A state_dict() of the lazy layer loads into the layer and back, but
    not into another kind of lazy layer. initialize_parameters(input) does the same without a forward.

    A class of a program, such as class LazyOwn(LazyModuleMixin, Own), has uninitialized parameters, and defines
    initialize_parameters(), which takes the arguments of the call, and cls_to_become if the object is to become a
    layer. RuntimeError if a parameter has no shape after that.
    """

    cls_to_become: ClassVar[Any] = None
    __signature__: ClassVar[inspect.Signature]
    _size: ClassVar[str] = ""
    _arguments: dict[str, Any]  # the arguments

    def __init_subclass__(cls, becomes: type[Any] | None = None, size: str = "", **named: Any) -> None:
        """becomes is the layer, size the attribute that is inferred."""
        super().__init_subclass__(**named)
        if becomes is not None:
            cls.cls_to_become, cls._size = becomes, size
            if cls.__init__ is LazyModuleMixin.__init__:
                first, *rest = inspect.signature(becomes).parameters.values()
                cls.__signature__ = inspect.Signature(rest)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self._size:  # a class of a program
            super().__init__(*args, **kwargs)
            return
        super().__init__(0, *args, **kwargs)
        arguments = inspect.signature(type(self).cls_to_become).bind(0, *args, **kwargs).arguments
        place = {name: arguments.pop(name, None) for name in ("device", "dtype")}
        self._arguments = dict(list(arguments.items())[1:])
        for name, param in list(self._parameters.items()):
            if param is not None:
                setattr(self, name, UninitializedParameter(**place))
        for name, buffer in list(self._buffers.items()):
            if buffer is not None and buffer.ndim:  # except the number of batches
                setattr(self, name, UninitializedBuffer(**place))

    def reset_parameters(self) -> None:
        """Does nothing: values are set together with the sizes."""

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        return any(is_lazy(tensor) for tensor in (*self._parameters.values(), *self._buffers.values()))

    def initialize_parameters(self, input: Any, *args: Any, **kwargs: Any) -> None:
        """Sets the shapes and first values of uninitialized parameters and buffers, for inputs of this shape. The other
        arguments of the call, such as an output_size, are not read.
        """
        name = type(self).__name__
        if not self._size:
            raise NotImplementedError(f"{name}: a lazy module needs an initialize_parameters()")
        size = self._infer(tensor_of(input, name))
        waiting = {key: tensor for key, tensor in self._own_tensors() if is_lazy(tensor)}
        if waiting:
            like = next(iter(waiting.values()))
            layer = self.cls_to_become(size, **self._arguments, device=like.device, dtype=like.dtype)
            with no_grad():
                for key, tensor in waiting.items():
                    tensor.copy_(getattr(layer, key))
        setattr(self, self._size, size)

    def _infer(self, input: Any) -> int:
        raise NotImplementedError

    def _hook_of_pytorch(self, *args: Any) -> None:
        """Does nothing. A pickled layer of PyTorch has hooks that infer sizes; here __call__ does this."""

    _infer_parameters = _lazy_load_hook = _hook_of_pytorch

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if self._size and "_arguments" not in vars(self):  # of PyTorch: the layer has its arguments except bias
            _, *names = inspect.signature(type(self).cls_to_become).parameters
            registered = {name: getattr(self, name) for name in names if hasattr(self, name)}
            self._arguments = {name: x if name != "bias" else x is not None for name, x in registered.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Makes the layer, and calls it."""
        if self._size or self.has_uninitialized_params():
            self.initialize_parameters(*args, **kwargs)
            if self.has_uninitialized_params():
                name = type(self).__name__
                raise RuntimeError(f"{name}: initialize_parameters() has left parameters without a shape")
        if self.cls_to_become is None:
            return super().__call__(*args, **kwargs)
        vars(self).pop("_arguments", None)
        self.__class__ = self.cls_to_become
        return self(*args, **kwargs)


class LazyLinear(LazyModuleMixin, Linear, becomes=Linear, size="in_features"):
    """A Linear whose in_features is the last size of its first input.

    >>> layer = norch.nn.LazyLinear(2)
    >>> layer(norch.ones(5, 3)).shape, layer
    (norch.Size([5, 2]), Linear(in_features=3, out_features=2, bias=True))
    """

    def _infer(self, input: Any) -> int:
        if not input.ndim:
            raise ShapeError("LazyLinear: expected an input of at least 1 dimension, got shape ()")
        return input.shape[-1]


class _LazyConv(LazyModuleMixin):
    _axes: ClassVar[int]

    def _infer(self, input: Any) -> int:
        axes = self._axes
        if input.ndim not in (axes + 1, axes + 2):
            raise ShapeError(
                f"{type(self).__name__}: expected {axes + 1} (unbatched) or {axes + 2} dimensions, got shape "
                f"{tuple(input.shape)}"
            )
        return input.shape[-axes - 1]


class LazyConv1d(_LazyConv, Conv1d, becomes=Conv1d, size="in_channels"):
    """A Conv1d whose in_channels are those of its first input.

    >>> norch.nn.LazyConv1d(4, 3)(norch.ones(1, 2, 8)).shape
    norch.Size([1, 4, 6])
    """


class LazyConv2d(_LazyConv, Conv2d, becomes=Conv2d, size="in_channels"):
    """A Conv2d whose in_channels are those of its first input.

    >>> layer = norch.nn.LazyConv2d(8, kernel_size=3)
    >>> y = layer(norch.ones(1, 3, 5, 5))
    >>> layer.weight.shape
    norch.Size([8, 3, 3, 3])
    """


class LazyConv3d(_LazyConv, Conv3d, becomes=Conv3d, size="in_channels"):
    """A Conv3d whose in_channels are those of its first input.

    >>> layer = norch.nn.LazyConv3d(8, kernel_size=3)
    >>> y = layer(norch.ones(1, 2, 5, 5, 5))
    >>> layer.weight.shape
    norch.Size([8, 2, 3, 3, 3])
    """


class LazyConvTranspose1d(_LazyConv, ConvTranspose1d, becomes=ConvTranspose1d, size="in_channels"):
    """A ConvTranspose1d whose in_channels are those of its first input.

    >>> layer = norch.nn.LazyConvTranspose1d(8, kernel_size=3)
    >>> y = layer(norch.ones(1, 2, 5))
    >>> layer.weight.shape
    norch.Size([2, 8, 3])
    """


class LazyConvTranspose2d(_LazyConv, ConvTranspose2d, becomes=ConvTranspose2d, size="in_channels"):
    """A ConvTranspose2d whose in_channels are those of its first input.

    >>> layer = norch.nn.LazyConvTranspose2d(8, kernel_size=3)
    >>> y = layer(norch.ones(1, 2, 5, 5))
    >>> layer.weight.shape
    norch.Size([2, 8, 3, 3])
    """


class LazyConvTranspose3d(_LazyConv, ConvTranspose3d, becomes=ConvTranspose3d, size="in_channels"):
    """A ConvTranspose3d whose in_channels are those of its first input.

    >>> layer = norch.nn.LazyConvTranspose3d(8, kernel_size=3)
    >>> y = layer(norch.ones(1, 2, 5, 5, 5))
    >>> layer.weight.shape
    norch.Size([2, 8, 3, 3, 3])
    """


class _LazyBatchNorm(LazyModuleMixin):
    _check_input_dim: Any

    def _infer(self, input: Any) -> int:
        self._check_input_dim(input)
        return input.shape[1]


class LazyBatchNorm1d(_LazyBatchNorm, BatchNorm1d, becomes=BatchNorm1d, size="num_features"):
    """A BatchNorm1d whose num_features are the channels of its first input.

    >>> norch.nn.LazyBatchNorm1d()(norch.ones(2, 3)).shape
    norch.Size([2, 3])
    """


class LazyBatchNorm2d(_LazyBatchNorm, BatchNorm2d, becomes=BatchNorm2d, size="num_features"):
    """A BatchNorm2d whose num_features are the channels of its first input.

    >>> layer = norch.nn.LazyBatchNorm2d()
    >>> y = layer(norch.ones(2, 3, 4, 4))
    >>> layer.num_features
    3
    """


class LazyBatchNorm3d(_LazyBatchNorm, BatchNorm3d, becomes=BatchNorm3d, size="num_features"):
    """A BatchNorm3d whose num_features are the channels of its first input.

    >>> layer = norch.nn.LazyBatchNorm3d()
    >>> y = layer(norch.ones(2, 3, 4, 4, 4))
    >>> layer.num_features
    3
    """


class _LazyInstanceNorm(LazyModuleMixin):
    _check_input_dim: Any

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _infer(self, input: Any) -> int:
        self._check_input_dim(input)
        return input.shape[input.ndim - self.cls_to_become._ndims[0]]


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d, becomes=InstanceNorm1d, size="num_features"):
    """An InstanceNorm1d whose num_features are the channels of its first input; by default, unlike an InstanceNorm1d,
    with weight, bias and running statistics.

    >>> layer = norch.nn.LazyInstanceNorm1d()
    >>> y = layer(norch.ones(2, 3, 4))
    >>> layer.num_features
    3
    """


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d, becomes=InstanceNorm2d, size="num_features"):
    """An InstanceNorm2d whose num_features are the channels of its first input; otherwise as LazyInstanceNorm1d.

    >>> layer = norch.nn.LazyInstanceNorm2d()
    >>> y = layer(norch.ones(2, 3, 4, 4))
    >>> layer.num_features
    3
    """


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d, becomes=InstanceNorm3d, size="num_features"):
    """An InstanceNorm3d whose num_features are the channels of its first input; otherwise as LazyInstanceNorm1d.

    >>> layer = norch.nn.LazyInstanceNorm3d()
    >>> y = layer(norch.ones(2, 3, 4, 4, 4))
    >>> layer.num_features
    3
    """
