"""Functions of torch._utils, torch.optim, torch.nn and others that libraries import."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import norch

from ..autograd.levels import within
from ..batching import Batched, batch, unbatch
from ..nn.parameter import Parameter
from ..ops._out import makes
from ..ops._public import public_form
from ..optim.extras.line_search import Point, cubic, strong_wolfe
from ..tensor import Tensor
from .private_functions import _DecoratorContextManager

ParameterMeta: Any = type(Parameter)

# ---- torch._utils --------------------------------------------------------------------------------------------------


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenates the elements of all tensors in one axis."""
    return norch.cat([x.contiguous().view(-1) for x in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of a 1-d tensor in the shapes of tensors."""
    parts = flat.split([x.numel() for x in tensors])
    return tuple(part.view_as(x) for part, x in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Sequence[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Splits tensors into lists of one dtype and at most size_limit bytes; a larger tensor is alone in its list."""
    waiting: dict[str, tuple[list[Tensor], int]] = {}
    for x in tensors:
        size = x.numel() * x.element_size()
        listed, group = waiting.get(x.type(), ([], 0))
        if listed and group + size > size_limit:
            yield listed
            listed, group = [], 0
        waiting[x.type()] = ([*listed, x], group + size)
    yield from (listed for listed, _ in waiting.values())


def _reorder_tensors_as(tensors: Sequence[Tensor], ordered_tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors, ordered by type as ordered_tensors are."""
    by_type: dict[str, list[Tensor]] = {}
    for x in tensors:
        by_type.setdefault(x.type(), []).append(x)
    iterators = {name: iter(listed) for name, listed in by_type.items()}
    return tuple(next(iterators[x.type()]) for x in ordered_tensors)


def _element_size(dtype: Any) -> int:
    """The bytes of an element."""
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device; -1 for the CPU with allow_cpu. ValueError for a device without an index, unless
    optional."""
    if isinstance(device, int):
        return device
    named = norch.device(device) if device is not None else None
    if named is not None and named.type == "cpu":
        if allow_cpu:
            return -1
        raise ValueError(f"Expected a non cpu device, but got: {named}")
    if named is not None and named.index is not None:
        return named.index
    if not optional:
        raise ValueError(f"Expected a device with an index, but got: {device}")
    return norch.cuda.current_device() if norch.cuda.is_available() else -1


def _get_available_device_type() -> str | None:
    """cuda, or None."""
    return "cuda" if norch.cuda.is_available() else None


def _get_all_device_indices() -> list[int]:
    return list(range(norch.cuda.device_count()))


def _get_device_module(device_type: str) -> Any:
    """norch.cuda, norch.cpu. RuntimeError for another device."""
    module = getattr(norch, device_type, None)
    if module is None:
        raise RuntimeError(f"Device '{device_type}' does not have a corresponding module registered")
    return module


# ---- torch.optim ---------------------------------------------------------------------------------------------------


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates an optimizer's step: gradients are recorded only if it is differentiable."""
    from functools import wraps

    @wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with norch.set_grad_enabled(bool(self.defaults.get("differentiable", False))):
            return func(self, *args, **kwargs)

    return step


def _default_to_fused_or_foreach(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Which of PyTorch's faster steps to use: neither is faster in norch."""
    return False, False


def _get_value(x: Any) -> Any:
    """The number of a tensor of one element."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    return x


def _dispatch_sqrt(x: Any) -> Any:
    """The square root of a number or a tensor."""
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _view_as_real(params: list[Any], *state_and_grads: Any) -> None:
    """Replaces complex tensors in the lists by real views."""
    for place, p in enumerate(params):
        if norch.is_complex(p):
            params[place] = norch.view_as_real(p)
            for listed in state_and_grads:
                listed[place] = norch.view_as_real(listed[place])


def _to_scalar(x: Any) -> Any:
    """A one-element tensor without axes."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _get_scalar_dtype(is_fused: Any = None) -> Any:
    """The dtype of step counters."""
    return norch.float64 if norch.get_default_dtype() == norch.float64 and not is_fused else norch.float32


def _cubic_interpolate(
    x1: float, f1: Any, g1: Any, x2: float, f2: Any, g2: Any, bounds: tuple[float, float] | None = None
) -> float:
    """The minimum of the cubic through two points with values f and slopes g, within bounds or between the points."""
    low, high = bounds if bounds is not None else sorted((x1, x2))
    none: Any = None  # no gradient is needed
    one, two = (Point(x, float(f), float(g), none) for x, f, g in ((x1, f1, g1), (x2, f2, g2)))
    return cubic(one, two, low, high)


def _strong_wolfe(
    obj_func: Callable[[Tensor, float, Tensor], tuple[Any, Tensor]], x: Tensor, t: float, d: Tensor, f: Any, g: Tensor,
    gtd: Any, c1: float = 1e-4, c2: float = 0.9, tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[Any, Tensor, float, int]:  # fmt: skip
    """The line search of LBFGS along d: (value, gradient, step length, number of calls of obj_func(x, t, d))."""
    if (c1, c2) != (1e-4, 0.9):
        raise NotImplementedError(f"_strong_wolfe: c1 must be 1e-4 and c2 0.9, not {c1} and {c2}")
    direction = d.reshape(-1)

    def at(step: float) -> Point:
        loss, gradient = obj_func(x, step, d)
        return Point(step, float(loss), float(gradient.reshape(-1).dot(direction)), gradient.clone())

    reach = float(d.abs().amax())
    (found, loss, _, gradient), calls = strong_wolfe(
        at, Point(0.0, float(f), float(gtd), g), float(t), reach, max_ls, tolerance_change
    )
    return loss, gradient, found, calls


# ---- torch.nn ------------------------------------------------------------------------------------------------------


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """softmax's axis if dim is omitted: 0 for tensors of 0, 1 and 3 axes, else 1."""
    return 0 if ndim in (0, 1, 3) else 1


def _list_with_default(out_size: list[int], defaults: list[int]) -> list[int]:
    """out_size with None replaced by the sizes of the input's last axes."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [default if v is None else v for v, default in zip(out_size, defaults[-len(out_size) :], strict=True)]


def _apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Slices of a tensor in another order."""
    return tensor.index_select(dim, permutation)


def get_enum(reduction: str) -> int:
    """The number of a reduction of losses."""
    try:
        return {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}[reduction]
    except KeyError:
        raise ValueError(f"{reduction} is not a valid value for reduction") from None


# ---- torch._C._functorch ---------------------------------------------------------------------------------------------


def is_batchedtensor(x: Any) -> bool:
    """Whether a tensor is a batched one inside vmap()."""
    return within.levels != () and isinstance(x, Batched)


def _add_batch_dim(x: Tensor, in_dim: int, level: Any) -> Tensor:
    """A batched tensor for one level of vmap(), with the samples along in_dim."""
    return batch(x, in_dim % x.ndim, level)


def _remove_batch_dim(x: Tensor, level: Any, batch_size: int, out_dim: int) -> Tensor:
    """x with the samples of a level along a new axis."""
    return unbatch(x, out_dim % (x.ndim + 1), level)


def _maybe_remove_batch_dim(name: str, x: Any, level: Any, batch_size: int, out_dim: int | None) -> Any:
    """_remove_batch_dim(), or x if out_dim is None. ValueError if x is not a tensor."""
    if out_dim is None:
        return x
    if not isinstance(x, Tensor):
        raise ValueError(f"vmap({name}, ...): expected a tensor for an out_dim, got {type(x).__name__}")
    return _remove_batch_dim(x, level, batch_size, out_dim)


# ---- torch itself --------------------------------------------------------------------------------------------------


def _cast_Long(input: Tensor, non_blocking: bool = False) -> Tensor:  # noqa: N802
    """input.long()."""
    return input.long()


@makes(line=True)
def _range(
    start: float = 0, end: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """torch.range(), the older arange(): includes end, and is float unless dtype is given."""
    if end is None:
        start, end = 0, start
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError(f"range: steps of {step} do not lead from {start} to {end}")
    numbers = norch.arange(int((end - start) / step) + 1, dtype=norch.float64) * step + start
    return numbers.to(device or norch.get_default_device(), dtype or norch.get_default_dtype())


range_with_end = public_form(_range, "range", __name__)


def from_file(
    filename: str, shared: bool | None = None, size: int | None = 0, *, dtype: Any = None, **options: Any
) -> Tensor:
    """A 1-d tensor of the first elements of a file; RuntimeError if the file is too short. shared=True is refused."""
    if shared:
        raise NotImplementedError("from_file: shared=True would write to the file; save the tensor instead")
    dtype = dtype or norch.get_default_dtype()
    count = int(size or 0)
    with open(filename, "rb") as file:
        data = bytearray(file.read(count * dtype.itemsize))
    if len(data) < count * dtype.itemsize:
        raise RuntimeError(f"from_file: {filename} has {len(data)} bytes, not {count} elements of {dtype}")
    return norch.frombuffer(data, dtype=dtype, count=count)


def expand_copy(input: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    """input.expand(size), copied."""
    return input.expand(size).clone()


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of softmax's input, from that of its output y: y (g - sum(g y))."""
    product = grad_output * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype)


def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of log_softmax's input, from that of its output y: g - exp(y) sum(g)."""
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)


class set_multithreading_enabled(_DecoratorContextManager):  # PyTorch's name
    """Does nothing: the backward pass always runs in the thread that calls backward()."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def clone(self) -> set_multithreading_enabled:
        return type(self)(self.mode)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """assert_close() of PyTorch before 1.12: converts numbers to tensors, and allows dtypes to differ."""
    a, b = (x if isinstance(x, Tensor) else norch.as_tensor(x) for x in (actual, expected))
    norch.testing.assert_close(
        a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, msg=msg or None
    )


class _Classes:
    """torch.classes: norch has no C++ classes. A lookup raises RuntimeError, as in PyTorch."""

    __path__: list[str] = []
    __file__ = "_classes.py"

    def __init__(self, name: str = "") -> None:
        self._name = name

    def load_library(self, path: str) -> None:
        """Raises OSError."""
        raise OSError(f"classes.load_library: {path} holds code for PyTorch's library, and norch is another one")

    @property
    def loaded_libraries(self) -> set[str]:
        """Empty."""
        return set()

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        if not self._name:
            return _Classes(name)
        raise RuntimeError(
            f"Tried to instantiate class '{self._name}.{name}', but it does not exist! "
            "Ensure that it is registered via torch::class_"
        )


classes = _Classes()
