"""PyTorch's operation database (op_db of torch.testing), run on norch beside PyTorch: each operation with the sample
inputs that PyTorch tests it with. test_operation_database.py runs it; both need PyTorch and expecttest."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import norch

SAMPLES = 12  # of each operation, the first ones
# The bits of a random result are each library's own.
RANDOM = frozenset(
    "bernoulli cauchy empty empty_like empty_permuted empty_strided exponential geometric log_normal multinomial "
    "native_dropout_backward new_empty new_empty_strided normal pca_lowrank rand_like randint randint_like randn "
    "randn_like svd_lowrank uniform nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout2d "
    "nn.functional.dropout3d nn.functional.feature_alpha_dropout nn.functional.fractional_max_pool2d "
    "nn.functional.fractional_max_pool3d nn.functional.rrelu".split()
)
TOLERANCE = {"float32": (2e-4, 1e-5), "complex64": (2e-4, 1e-5), "float16": (4e-3, 2e-3)}  # of others 1e-7, 1e-9


class NotComparedError(Exception):
    """PyTorch refuses the call, or norch says that it leaves it out."""


class Sample(NamedTuple):
    """A call in both libraries: call(*tensors) of its tensors, those of norch as copies of PyTorch's."""

    theirs: Callable[..., Any]
    ours: Callable[..., Any]
    tensors: list[Any]
    copies: list[Any]


def listed(left: Path, check: str) -> set[str]:
    """What a file lists as known to differ in a check."""
    lines = [line for line in left.read_text().splitlines() if line and line[0] not in "#["]
    return {name for line in lines if line.startswith(("all: ", f"{check}: ")) for name in line.split(": ")[1].split()}


def operations(dtype: str) -> Iterator[Any]:
    """The operations that take a dtype, but the random ones."""
    for op in op_db:
        if op.name not in RANDOM and op.supports_dtype(getattr(torch, dtype), "cpu"):
            yield op


def full_name(op: Any) -> str:
    return ".".join(filter(None, (op.name, op.variant_test_name)))


def function_of(op: Any) -> Any:
    """What norch calls an operation of PyTorch: the function or method of that name, or the database's own function
    around it with norch for torch. None: there is none."""
    if isinstance(op.op, types.MethodDescriptorType):
        return getattr(norch.Tensor, op.name)
    if isinstance(op.op, types.FunctionType) and op.op.__module__.startswith("torch.testing."):
        return translated(op.op)
    for root in (norch, norch.Tensor):
        found: Any = root
        for part in op.name.split("."):
            found = getattr(found, part, None)
        if found is not None:
            return found
    return None


def converted(x: Any) -> Any:
    """PyTorch's values as norch's: tensors of the same strides, dtypes, devices. LookupError for what norch lacks."""
    if isinstance(x, torch.Tensor):
        if x.layout is not torch.strided:
            raise LookupError(f"layout {x.layout}")
        dense = x.detach().resolve_conj().resolve_neg()
        copy = norch.empty_strided(tuple(x.shape), x.stride(), dtype=converted(x.dtype))
        return copy.copy_(norch.from_numpy(dense.contiguous().numpy()))
    if isinstance(x, (torch.dtype, torch.memory_format, torch.layout)):
        return getattr(norch, str(x).partition(".")[2])
    if isinstance(x, torch.device):
        return norch.device(str(x))
    if isinstance(x, torch.Size):
        return norch.Size(x)
    return x


def translated(function: Any) -> Any:
    """A function of PyTorch or of its tests with norch for torch, also in what it refers to; or another value."""
    name = getattr(function, "__name__", "")
    if callable(function) and getattr(torch.nn.functional, name, None) is function:
        return getattr(norch.nn.functional, name)
    if not isinstance(function, types.FunctionType):
        tensors: list[Any] = []
        return flattened(function, tensors)(converted, [converted(x) for x in tensors])
    names = {**function.__globals__, "torch": norch, "nn": norch.nn, "F": norch.nn.functional}
    cells = tuple(types.CellType(translated(cell.cell_contents)) for cell in function.__closure__ or ())
    made = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def flattened(x: Any, tensors: list[Any]) -> Callable[[Callable[[Any], Any], Any], Any]:
    """Appends the tensors in x, and gives a function (leaf, others) that builds x again with others in their place."""
    if isinstance(x, (torch.Tensor, norch.Tensor)):
        tensors.append(x)
        index = len(tensors) - 1
        return lambda leaf, others: others[index]
    if isinstance(x, (list, tuple)) and not isinstance(x, (torch.Size, norch.Size)):
        kind, parts = type(x), [flattened(item, tensors) for item in x]
        return lambda leaf, others: kind(part(leaf, others) for part in parts)
    if isinstance(x, dict):
        items = {key: flattened(item, tensors) for key, item in x.items()}
        return lambda leaf, others: {key: item(leaf, others) for key, item in items.items()}
    return lambda leaf, others: leaf(x)


def samples(op: Any, dtype: str, requires_grad: bool) -> Iterator[Sample]:
    """The first SAMPLES calls of an operation that both libraries can be given."""
    ours = function_of(op)
    for given in list(op.sample_inputs("cpu", getattr(torch, dtype), requires_grad=requires_grad))[:SAMPLES]:
        tensors: list[Any] = []
        build = flattened([given.input, given.args, given.kwargs], tensors)

        def theirs_of(*x: Any, build: Any = build) -> Any:
            first, args, kwargs = build(lambda value: value, x)
            return op.op(first, *args, **kwargs)

        def ours_of(*x: Any, build: Any = build) -> Any:
            first, args, kwargs = build(converted, x)
            return ours(first, *args, **kwargs)

        try:
            copies = [converted(x).requires_grad_(x.requires_grad) for x in tensors]
        except LookupError:
            continue
        yield Sample(theirs_of, ours_of, tensors, copies)


def array(x: Any) -> Any:
    if not isinstance(x, (torch.Tensor, norch.Tensor)):
        return np.asarray(x)
    x = x.detach()
    x = x.to_dense() if x.is_sparse else x
    if isinstance(x, torch.Tensor):
        x = (x.clone() if x._is_zerotensor() else x).resolve_conj().resolve_neg()
    return (x.float() if str(x.dtype).endswith("bfloat16") else x).numpy()


def difference(theirs: Any, ours: Any) -> str | None:
    """What differs between two results: their shapes, dtypes or values; None for nothing."""
    a, b = array(theirs), array(ours)
    if a.shape != b.shape or a.dtype != b.dtype:
        return "shape" if a.shape != b.shape else "dtype"
    if a.dtype.kind not in "fc":
        return None if np.array_equal(a, b) else "values"
    rtol, atol = TOLERANCE.get(a.dtype.name, (1e-7, 1e-9))
    largest = float(np.abs(a[np.isfinite(a)]).max(initial=1.0))
    return None if np.allclose(a, b, rtol, atol * largest, equal_nan=True) else "values"


def results(x: Any) -> list[Any]:
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (list, tuple)) and not isinstance(x, (torch.Size, norch.Size)):
        return [item for part in x for item in results(part)]
    return [] if x is None else [x]


def compared_results(sample: Sample) -> str | None:
    """How the results of a call differ."""
    try:
        theirs = results(sample.theirs(*sample.tensors))
    except Exception as error:
        raise NotComparedError from error
    try:
        ours = results(sample.ours(*sample.copies))
    except NotImplementedError as error:
        raise NotComparedError from error
    except Exception as error:
        return f"raises {type(error).__name__}"
    if len(theirs) != len(ours):
        return "number of results"
    return next(filter(None, map(difference, theirs, ours)), None)


def compared_gradients(sample: Sample, order: int) -> str | None:
    """How the gradients of a call differ, or those of its gradients (order 2), both of products with fixed numbers."""
    found = []
    for lib, call, inputs in ((torch, sample.theirs, sample.tensors), (norch, sample.ours, sample.copies)):
        rng = np.random.default_rng(7)
        wanted = [x for x in inputs if x.requires_grad]
        try:
            outs = results(call(*inputs))
            for step in range(order):
                loss = sum(_number(lib, x, rng) for x in outs if isinstance(x, lib.Tensor) and x.requires_grad)
                if not isinstance(loss, lib.Tensor):
                    break
                outs = lib.autograd.grad(loss, wanted, create_graph=step + 1 < order, allow_unused=True)
                outs = [x for x in outs if x is not None] if step + 1 < order else outs
            else:
                found.append([np.zeros(x.shape) if g is None else array(g) for g, x in zip(outs, wanted, strict=True)])
        except Exception as error:
            if lib is torch or isinstance(error, NotImplementedError):
                raise NotComparedError from error
            found.append(f"raises {type(error).__name__}")
        if not found:
            raise NotComparedError
    if len(found) < 2 or isinstance(found[1], str):
        return found[1] if len(found) == 2 else "no gradient" if any(x.any() for x in found[0]) else None
    pairs = zip(*found, strict=True)
    return next(filter(None, (difference(a, b.astype(a.dtype, copy=False)) for a, b in pairs)), None)


def _number(lib: Any, x: Any, rng: Any) -> Any:
    x = lib.view_as_real(x) if x.is_complex() else x
    factors = lib.from_numpy(rng.standard_normal(tuple(x.shape))).to(x.dtype)
    return (x * factors).sum() + 0.1 * (x * x).sum()


def compared_replays(sample: Sample) -> str | None:
    """How replays of norch.capture(call) differ from calls as they are, to the bit, as the values of floats change."""
    norch.manual_seed(0)
    inputs = [x.detach() for x in sample.copies]
    try:
        sample.ours(*inputs)
    except Exception as error:
        raise NotComparedError from error
    captured = norch.capture(sample.ours)
    for step in range(5):
        changed = [x * (1 - 0.02 * step) if x.is_floating_point() or x.is_complex() else x.clone() for x in inputs]
        try:
            plain = results(sample.ours(*[x.clone() for x in changed]))
        except Exception as error:
            raise NotComparedError from error
        try:
            replayed = results(captured(*changed))
        except norch.CaptureError as error:
            raise NotComparedError from error
        if [array(x).tobytes() for x in plain] != [array(x).tobytes() for x in replayed]:
            return "replays"
    return None


def compared_samples_of_vmap(sample: Sample) -> str | None:
    """How vmap over the first tensor differs from a loop. A call that cannot be batched raises an Error."""
    first, *rest = [x.detach() for x in sample.copies] or [None]
    if first is None or not (first.is_floating_point() or first.is_complex()):
        raise NotComparedError
    rows = norch.stack([first, first * 0.9, first * 0.8])

    def call(x: Any) -> Any:
        return tuple(x for x in results(sample.ours(x, *rest)) if isinstance(x, norch.Tensor))

    try:
        loop = [call(row.clone()) for row in rows]
        wanted = [norch.stack(column) for column in zip(*loop, strict=True)]
        found = norch.vmap(call)(rows) if wanted else ()
    except Exception as error:
        raise NotComparedError from error
    return next(filter(None, map(difference, wanted, found)), None)
