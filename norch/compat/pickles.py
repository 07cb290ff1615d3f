"""Pickles tensors and modules (pickle.dump, joblib) in PyTorch's form while `torch` is norch.

A tensor is a call of torch._utils._rebuild_tensor_v2. Its storage is a torch.save() file of the format before PyTorch
1.6, in a call of torch.storage._load_from_bytes, and is pickled once if tensors share it. multiprocessing sends the
bytes through shared memory, as norch does without the door.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import norch

from .._files import pytorch, pytorch_legacy
from ..dtype import dtype as DType  # noqa: N812
from ..serialization import MAGIC
from ..storage import Storage
from ..tensor import Size, Tensor, adopt
from .typed_storage import TypedStorage

for (_module, _name), _function in pytorch.NAMES.items():  # pickles find functions by these names
    if isinstance(_function, FunctionType):
        globals()[_name] = _function
        _function.__module__, _function.__qualname__ = _module, _name


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    """Rebuilds a tensor of a subclass, or with attributes."""
    tensor = func(*args)
    if type(tensor) is not new_type:
        tensor = adopt(new_type, tensor.detach()).requires_grad_(tensor.requires_grad)
    if hasattr(new_type, "__setstate__"):
        tensor.__setstate__(state)
        return tensor
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        setattr(tensor, name, value)
    return tensor


def _load_from_bytes(b: bytes) -> Any:
    """The storage from a torch.save() file inside a pickle."""
    storage = norch.load(io.BytesIO(b), weights_only=False)
    return TypedStorage(wrap_storage=storage, dtype=storage.dtype) if isinstance(storage, pytorch.Typed) else storage


def _generator(seed: int, counter: int) -> Any:
    """Rebuilds a generator of norch in its state."""
    generator = norch.Generator()
    generator.__setstate__((seed, counter))
    return generator


def generator__setstate__(generator: Any, set_state: Any, state: Any) -> None:
    """Restores PyTorch's pickled generator: its seed only, as norch draws other numbers."""
    set_state(generator, state if len(state) == 2 else (state[0] % (1 << 64), 0))


class _WrappedHook:
    """A hook of PyTorch's modules that may take the module as first argument."""

    def __init__(self, hook: Callable[..., Any], module: Any = None):
        self.hook, self.module, self.with_module = hook, module, module is not None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], norch.nn.Module):  # load_state_dict() passes it to all of norch's hooks
            return self.hook(*args[not self.with_module :], **kwargs)
        return self.hook(self.module, *args, **kwargs) if self.with_module else self.hook(*args, **kwargs)


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """PyTorch's GradScaler state for an optimizer that it has not seen."""
    return {"stage": 0, "found_inf_per_device": {}}


# ---- writing -------------------------------------------------------------------------------------------------------

_stored: WeakValueDictionary[Storage, TypedStorage] = WeakValueDictionary()  # storages that are being pickled


class _OtherDtype(TypedStorage):
    """The same storage seen as another dtype, for a tensor that shares it."""

    __slots__ = ("first",)
    first: TypedStorage

    def __reduce_ex__(self, protocol: Any) -> Any:
        held: Any = _Bytes(self.first)
        return partial(TypedStorage, wrap_storage=held, dtype=self.dtype, _internal=True), ()


class _Bytes:
    """The bytes of a storage being pickled."""

    def __init__(self, storage: TypedStorage):
        self.storage = storage

    def __reduce__(self) -> Any:
        return getattr, (self.storage, "_untyped_storage")


def _storage_of(x: Any) -> TypedStorage:
    """The storage of a tensor: one object for all tensors that share it, so that a pickle holds it once."""
    storage = x.untyped_storage()
    first = _stored.get(storage)
    if first is None:
        first = _stored[storage] = TypedStorage(wrap_storage=storage, dtype=x.dtype)
    if first.dtype is x.dtype:
        return first
    seen = _OtherDtype(wrap_storage=storage, dtype=x.dtype)
    seen.first = first
    return seen


def reduce_tensor(x: Any, protocol: Any) -> Any:
    """Tensor.__reduce_ex__."""
    if not x._in_coordinates and type(x).__reduce__ is not Tensor.__reduce__:  # a class with its own reduce
        return x.__reduce__()
    make, how = pytorch.rebuild_call(x, _storage_of)
    return (_rebuild_from_type_v2 if make is pytorch._of_class else make), how


def reduce_generator(generator: Any, protocol: Any) -> Any:
    """Generator.__reduce_ex__. PyTorch's generator has another state and cannot read norch's."""
    return _generator, generator.__getstate__()


def reduce_layout(layout: Any, protocol: Any) -> Any:
    """Layout.__reduce_ex__."""
    return pytorch._layout, (f"torch.{layout.name}",)


def reduce_storage(stored: TypedStorage, protocol: Any) -> Any:
    """TypedStorage.__reduce_ex__."""
    file = io.BytesIO()
    for part in (MAGIC, pytorch_legacy.VERSION, None):  # None: facts about the machine, which readers ignore
        pickle.dump(part, file, 2)
    held: Any = pytorch._Stored(stored.untyped(), stored.dtype, "0")
    held.reference += (None,)  # not a view of another storage
    pytorch._Pickler(file).dump(held)
    pickle.dump(["0"], file, 2)
    file.write(pytorch_legacy.COUNT.pack(held.size // stored.element_size()))
    held.write_to(file)
    return _load_from_bytes, (file.getvalue(),)


_NESTED = ("enable_nested_tensor", "use_nested_tensor", "mask_check")
# Attributes of PyTorch's layers that norch's lack, from a layer and its state.
ATTRIBUTES: dict[str, Callable[[Any, dict[str, Any]], dict[str, Any]]] = {
    "_Conv": lambda layer, state: {
        "transposed": "Transpose" in type(layer).__name__,
        "_reversed_padding_repeated_twice": _padding(**state),
    },
    "RNNBase": lambda layer, state: {"_all_weights": [[None]]},  # PyTorch then lists the weights
    "Upsample": lambda layer, state: {"name": state.get("name", type(layer).__name__)},
    "TransformerEncoderLayer": lambda layer, state: {"activation_relu_or_gelu": 0},  # disables the whole layer's kernel
    "TransformerEncoder": lambda layer, state: dict.fromkeys(_NESTED, False),
}


def _padding(padding: Any, kernel_size: Any, dilation: Any, **_: Any) -> list[int]:
    """F.pad()'s argument for a convolution: the last dimension first, each as (before, after)."""
    if padding == "same":
        whole = [step * (size - 1) for step, size in zip(dilation, kernel_size, strict=True)]
        return [side for size in reversed(whole) for side in (size // 2, size - size // 2)]
    sides = padding if isinstance(padding, (tuple, list)) else [0 if padding == "valid" else padding] * len(kernel_size)
    return [side for side in reversed(sides) for _ in range(2)]


def module__reduce_ex__(module: Any, reduce: Any, protocol: Any) -> Any:
    """Pickles the state that PyTorch expects."""
    reduced = reduce(module, protocol)
    if (
        type(reduced) is not tuple
        or type(held := (*reduced, None, None)[2]) is not dict
        or "_forward_hooks" not in held
    ):
        return reduced
    state = dict(held)
    state["_is_full_backward_hook"] = True if held.get("_backward_hooks") else None
    for cls in type(module).__mro__:
        if cls.__name__ in ATTRIBUTES and cls.__module__.startswith("torch."):
            state.update(ATTRIBUTES[cls.__name__](module, state))
    return *reduced[:2], state, *reduced[3:]


def module__copy__(module: Any, reduce: Any) -> Any:
    """Makes a shallow copy, which shares the hooks."""
    reduce_ex: Any = type(module).__reduce_ex__
    chosen = reduce if reduce_ex is norch.nn.Module.__reduce_ex__ else reduce_ex
    return getattr(copy, "_reconstruct")(module, None, *chosen(module, 4))  # noqa: B009


def reduce_for_norch(pickler: Any, obj: Any) -> Any:
    """Pickles a tensor for a file of norch's own format."""
    ours = isinstance(obj, Tensor) and type(obj).__reduce_ex__ is Tensor.__reduce_ex__
    return obj.__reduce__() if ours else NotImplemented


_save_global: Any = vars(pickle._Pickler)["save_global"]


class ObjectPickler(pytorch._Pickler):
    """Pickles what torch.load(weights_only=False) takes. On PicklingError save() writes another format."""

    dispatch: ClassVar[Any] = {
        **pickle._Pickler.dispatch,
        **{kind: pytorch._Pickler.dispatch[kind] for kind in (FunctionType, DType, pytorch._Kind)},
    }

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor) and (obj._in_coordinates or type(obj).__reduce__ is Tensor.__reduce__):
            return pytorch.rebuild_call(obj, self.storage_of)
        if type(obj) in (norch.Generator, norch.finfo, norch.iinfo):
            raise pickle.PicklingError  # PyTorch makes them in C, with another state
        return (Size, (tuple(obj),)) if type(obj) is Size else NotImplemented

    def save_global(self, obj: Any, name: Any = None) -> None:
        if obj in pytorch.NAME_OF:
            self.name(obj, pytorch.NAME_OF[obj])
        elif (getattr(obj, "__module__", None) or "").startswith("norch."):
            raise pickle.PicklingError  # PyTorch has no such class
        else:
            _save_global(self, obj, name)


def send_by_sharing() -> None:
    """Makes multiprocessing send storages through shared memory. A pickler that already exists has copied its table and
    is not affected."""
    from multiprocessing.reduction import ForkingPickler

    for cls in (TypedStorage, _OtherDtype):
        ForkingPickler.register(cls, _sent)


def _sent(stored: TypedStorage) -> Any:
    return _received, (stored.untyped(), stored.dtype)


def _received(storage: Storage, dtype: Any) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=dtype)


_rebuild_from_type_v2.__module__, _load_from_bytes.__module__ = "torch._tensor", "torch.storage"
