"""summary(): a model as a table of modules with shapes, parameters, multiply-adds and memory, like torchinfo's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .._binding.library import lib
from ..autograd import no_grad
from ..errors import ArgumentError, Error
from ..nn._watch import watching
from ..nn.module import Module
from ..ops.create import zeros
from ..ops.random import rand
from ..profiler.averages import byte_text
from ..profiler.events import events_of
from ..profiler.session import MEMORY, Session
from ..random import fork_rng
from ..tensor import Tensor
from ._restore import as_before


class Row:
    """A call of a module, or a module that was never called.

    name, kind       its name in its parent; its class
    depth            0: the model
    shape            of the output: a tuple, or nested as the output is; None: not called
    params           elements of its own parameters, without those of earlier rows and of submodules
    multiply_adds    of its own calls, without those of submodules
    note             "(recursive)": called before; "(shared)": all its parameters are in an earlier row
    """

    def __init__(self, name: str, module: Module, depth: int):
        self.name, self.kind, self.depth, self.module = name, type(module).__name__, depth, module
        self.shape: Any = None
        self.called = False
        self.params = self.multiply_adds = self.output_bytes = 0
        self.note = ""
        self.rows: list[Row] = []

    def walk(self) -> Iterator[Row]:
        """This row and all rows below."""
        yield self
        for row in self.rows:
            yield from row.walk()


class ModelSummary:
    """The result of summary(). Its str() is the table.

    rows, and in elements or bytes: total_params, trainable_params, total_mult_adds, input_bytes, param_bytes,
    buffer_bytes, output_bytes (of modules without submodules), peak_bytes (the largest amount allocated at once during
    the forward pass, without parameters and input)
    """

    def __init__(self, root: Row, depth: int):
        self.root, self.depth = root, depth
        params = {id(p): p for p in root.module.parameters()}.values()
        self.total_params = sum(p.numel() for p in params)
        self.trainable_params = sum(p.numel() for p in params if p.requires_grad)
        self.param_bytes = sum(p.nbytes for p in params)
        self.buffer_bytes = sum(b.nbytes for b in root.module.buffers())
        self.rows = list(root.walk())
        self.total_mult_adds = sum(row.multiply_adds for row in self.rows)
        self.output_bytes = sum(row.output_bytes for row in self.rows if not row.rows)
        self.input_bytes = self.peak_bytes = 0

    def __str__(self) -> str:
        cells = [("Module", "Output shape", "Parameters", "Multiply-adds"), *self._lines(self.root, "", "")]
        widths = [max(len(row[i]) for row in cells) for i in range(4)]
        lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}" for a, b, c, d in cells]
        rule = "-" * max(map(len, lines))
        fixed = self.total_params - self.trainable_params
        return "\n".join(
            [
                *(lines[0], rule, *(line.rstrip() for line in lines[1:]), rule),
                f"Parameters: {self.total_params:,}, of them trainable {self.trainable_params:,}, fixed {fixed:,}",
                f"Multiply-adds: {self.total_mult_adds:,}",
                f"Memory: input {byte_text(self.input_bytes)}, parameters {byte_text(self.param_bytes)}, "
                f"buffers {byte_text(self.buffer_bytes)}, outputs {byte_text(self.output_bytes)}, "
                f"peak of the forward pass {byte_text(self.peak_bytes)}",
            ]
        )

    __repr__ = __str__

    def _lines(self, row: Row, lead: str, below: str) -> Iterator[tuple[str, str, str, str]]:
        hides = row.depth >= self.depth and bool(row.rows)
        shown = list(row.walk()) if hides else [row]
        params, products = (sum(getattr(item, name) for item in shown) for name in ("params", "multiply_adds"))
        title = row.kind if row.depth == 0 else f"{row.name} ({row.kind})"
        shape = "not called" if self.root.called and not row.called else str("--" if row.shape is None else row.shape)
        count = row.note or (f"{params:,}" if params else "--")
        yield lead + title, shape, count, f"{products:,}" if products else "--"
        for i, item in enumerate([] if hides else row.rows):
            last = i == len(row.rows) - 1
            yield from self._lines(item, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "))


def summary(
    model: Module,
    input: Any = None,
    *,
    depth: int = 3,
    dtype: Any = None,
    device: Any = None,
    mode: str = "eval",
    **kwargs: Any,
) -> ModelSummary:
    """A table of a model's modules: the output shape of each call, parameters, multiply-adds and memory.

    input: a tensor; a shape, which is filled with random numbers (zeros for integer dtypes); a list or tuple of these
    as positional arguments; or a dict of named ones. None: only counts parameters, without a call. kwargs: further
    named arguments, unchanged. depth: deeper rows are added to their parents. dtype, device: of generated inputs; by
    default float, on the parameters' device. mode: "eval", "train" or "same", for the call.

    Multiply-adds are counted for products, convolutions and attention, inside modules or between them. The call runs
    without gradients, on copies of the buffers; modes, running statistics and the random generator are restored. A
    shared parameter is counted once. If the model raises, Error names the module; ArgumentError for an invalid input,
    mode or depth.

    >>> model = norch.nn.Sequential(norch.nn.Linear(4, 8), norch.nn.ReLU(), norch.nn.Linear(8, 2))
    >>> print(norch.utils.summary(model, (5, 4)))
    Module         Output shape  Parameters  Multiply-adds
    ------------------------------------------------------
    Sequential     (5, 2)                --             --
    ├─ 0 (Linear)  (5, 8)                40            160
    ├─ 1 (ReLU)    (5, 8)                --             --
    └─ 2 (Linear)  (5, 2)                18             80
    ------------------------------------------------------
    Parameters: 58, of them trainable 58, fixed 0
    Multiply-adds: 240
    Memory: input 80 B, parameters 232 B, buffers 0 B, outputs 360 B, peak of the forward pass 320 B
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary: expected a module, not {type(model).__name__}")
    if mode not in ("eval", "train", "same"):
        raise ArgumentError(f"summary: mode must be 'eval', 'train' or 'same', not {mode!r}")
    if type(depth) is not int or depth < 0:
        raise ArgumentError(f"summary: depth must be 0 or more, not {depth!r}")
    root = Row("", model, 0)
    args, named = _arguments(model, input, dtype, device)
    peak = 0
    if input is not None or kwargs:
        root, peak = _called(model, args, {**named, **kwargs}, mode)
    _count(root)
    result = ModelSummary(root, depth)
    result.input_bytes = sum(x.nbytes for x in _tensors([args, named, kwargs]))
    result.peak_bytes = peak
    return result


# ---- the arguments ---------------------------------------------------------------------------------------------------


def _is_shape(x: Any) -> bool:
    return isinstance(x, (tuple, list)) and len(x) > 0 and all(type(size) is int for size in x)


def _arguments(model: Module, input: Any, dtype: Any, device: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    def to_tensor(x: Any) -> Any:
        if isinstance(x, Tensor) or not isinstance(x, (tuple, list)):
            return x
        if not _is_shape(x) or min(x) < 0:
            raise ArgumentError(f"summary: an input must be a tensor or a shape of sizes >= 0, not {x!r}")
        make: Callable[..., Any] = rand if dtype is None or dtype.is_floating_point else zeros
        return make(*x, dtype=dtype, device=where)

    first = next(model.parameters(), None)
    where = device if device is not None or first is None else first.device
    if input is None:
        return (), {}
    with fork_rng():
        if isinstance(input, Mapping):
            return (), {name: to_tensor(x) for name, x in input.items()}
        if isinstance(input, Tensor) or _is_shape(input):
            return (to_tensor(input),), {}
        if isinstance(input, (tuple, list)):
            return tuple(to_tensor(x) for x in input), {}
    kind = type(input).__name__
    raise TypeError(f"summary: input must be a tensor, a shape, a list of them or a dict of arguments, not {kind}")


def _tensors(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, (tuple, list)):
        for part in tree:
            yield from _tensors(part)
    elif isinstance(tree, Mapping):
        yield from _tensors(list(tree.values()))


def _shape(tree: Any) -> Any:
    """The shapes in a nested output; None for anything but a tensor."""
    if isinstance(tree, Tensor):
        return tuple(tree.shape)
    if isinstance(tree, (tuple, list)):
        return [_shape(part) for part in tree]
    return {name: _shape(part) for name, part in tree.items()} if isinstance(tree, Mapping) else None


# ---- the call --------------------------------------------------------------------------------------------------------


def _called(model: Module, args: tuple[Any, ...], kwargs: dict[str, Any], mode: str) -> tuple[Row, int]:
    """The rows of the calls in model(*args, **kwargs), and the largest number of bytes allocated at once."""
    thread = threading.get_ident()
    rows: list[Row] = []
    stack: list[Row] = []
    raised_in: list[Row] = []

    def enter(module: Module) -> Callable[[Any, bool], None] | None:
        if threading.get_ident() != thread:
            return None
        row = Row(_name(stack[-1].module, module) if stack else "", module, len(stack))
        if stack:
            stack[-1].rows.append(row)
        rows.append(row)
        stack.append(row)
        raised_in.clear()
        number, start = len(rows) - 1, lib.norch_profile_time()

        def leave(result: Any, raised: bool) -> None:
            stack.pop()
            if raised:
                raised_in.insert(0, row)
            else:
                raised_in.clear()
                row.called, row.shape = True, _shape(result)
                row.output_bytes = sum(x.nbytes for x in _tensors(result))
            session.add(str(number), "module", start)

        return leave

    session = Session(MEMORY, False, False)
    recorded = None
    try:
        with as_before(model, None if mode == "same" else mode == "train"), no_grad(), watching(enter):
            model(*args, **kwargs)
    except Exception as error:
        inside = "; ".join(f"{row.name or 'the model'} ({row.kind})" for row in raised_in)
        done = ", ".join(f"{row.name} ({row.kind})" for row in rows if row.called) or "none"
        described = f"{type(error).__name__} in {inside}" if inside else type(error).__name__
        raise Error(f"summary: {described}: {error}; calls that were done before: {done}") from error
    finally:
        recorded = session.stop()
    for event in events_of(recorded, True, ("cpu", "cuda")):
        if event.kind == "module" and event.thread == thread:
            nested = sum(child.flops for child in event.children if child.kind == "module")
            rows[int(event.name)].multiply_adds = (event.flops - nested) // 2
    live = peak = 0
    for _, size, *_ in recorded.memory:
        live += size
        peak = max(peak, live)
    return rows[0], peak


def _name(parent: Module, module: Module) -> str:
    return next((name for name, below in parent.named_modules() if below is module and name), type(module).__name__)


def _count(root: Row) -> None:
    """Adds modules with parameters that were not called, and counts each parameter in the first row that has it."""
    called = {id(row.module) for row in root.walk()}
    for name, module in root.module.named_modules():
        if id(module) not in called and module._parameters:
            root.rows.append(Row(name, module, 1))
    modules: set[int] = set()
    params: set[int] = set()
    for row in root.walk():
        parameters = [p for p in row.module._parameters.values() if p is not None]
        new = [p for p in parameters if id(p) not in params]
        row.note = "(recursive)" if id(row.module) in modules else "(shared)" if parameters and not new else ""
        row.params = sum(p.numel() for p in {id(p): p for p in new}.values())
        modules.add(id(row.module))
        params.update(map(id, parameters))
