"""Records what a model computes, as one list of library calls for each of several input sizes. _graph.py reads them.

Within `with Trace()` the inputs, parameters and buffers of the model are batched tensors of a separate level
(batching/level.py). A library call that gets one goes to `Trace.notes`, which runs it on the elements and records it.
So ONNX operators (_calls.py) are needed only for the calls that norch.vmap has rules for, a closed set; operations
composed of them need no rule. Recordings of norch.capture do not suffice: their plans hold addresses, strides and sizes
of one run, and views are not calls in them.

Sizes are plain integers while the model runs. `sizes` compares runs with other dynamic sizes, and finds the formula of
an integer that holds in all runs, so numbers that the program computes from x.shape[0] stay dynamic. Runs with
different calls are refused.
"""

from __future__ import annotations

import sys
from typing import Any

from .._binding.library import constants, lib
from .._tensor.handle import Handle
from ..autograd.levels import Level
from ..batching.level import Batched, Draws, become, sample
from ..errors import frame_of_user

_INT64 = constants["INT64"]
# Calls about memory and shapes, and checks. Their results are not part of the model.
_QUESTIONS = frozenset(
    "meta is_same shares_storage overlaps overlaps_itself storage_references check is_pinned result_type".split()
)
VIEWS = frozenset(
    "view reshape flatten permute reverse_axes transpose expand squeeze unsqueeze select slice narrow diagonal unfold "
    "alias as_strided reshape_as expand_as expand_reduced region contiguous clone to_device".split()
)
# The arguments that a call writes to: new or existing tensors.
_RESULTS = {"pool_max": (2,), "recurrent": (6, 7, 8), "argsort": (4,), "attention_fused": (5,)}
_RESULTS |= {"cross_entropy": (2, 3), "nll": (3,)}
_WRITES = {"unary_into", "binary_into", "ternary_into", "copy"}
_ROWS = {"unary": 0, "binary": 0, "ternary": 0, "reduce": 0, "unary_into": 1, "binary_into": 1, "ternary_into": 1}
_MAY_WRITE = {"scatter": 5, "index_put": 7}  # the argument that says whether the call writes


class OnnxExporterError(NotImplementedError):
    """Raised if the model has an operation without an ONNX operator, or an option is unknown. A RuntimeError, as in
    PyTorch."""

    __module__ = "norch.onnx"


class Cell:
    """The state of a storage that tensors share: how often it was written to, and the value of the whole."""

    __slots__ = ("root", "version")

    def __init__(self, root: Value):
        self.root, self.version = root, 0


class Value:
    """A tensor of a trace: its number, its elements, the call that created it, and for a view its path: the view calls
    from the whole, with their further arguments."""

    __slots__ = ("call", "cell", "line", "name", "number", "path", "tensor", "version")

    def __init__(self, number: int, tensor: Any, call: Any, name: str = ""):
        self.number, self.tensor, self.call, self.name, self.line = number, tensor, call, name, ""
        self.cell, self.version = Cell(self), 0
        self.path: tuple[Any, ...] = ()

    def is_view_of(self, cell: Cell, path: tuple[Any, ...]) -> None:
        """Makes this a view of the current elements of a storage."""
        self.cell, self.version, self.path = cell, cell.version, path


class Call:
    """A library call: name, arguments (Values for tensors), results, and the line of the program."""

    __slots__ = ("arguments", "line", "name", "results")

    def __init__(self, name: str, arguments: tuple[Any, ...], line: str):
        self.name, self.arguments, self.line = name, arguments, line
        self.results: list[Value] = []


def _line() -> str:
    frame = frame_of_user(sys._getframe(1))
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Trace(Level):
    """A level of batched tensors, with one sample each, that records calls."""

    __slots__ = ("_of", "calls", "constants", "values")

    def __init__(self) -> None:
        super().__init__(1)
        self.calls: list[Call] = []
        self.values: list[Value] = []
        self.constants: dict[tuple[int, int], tuple[Any, Value]] = {}
        self._of: dict[int, tuple[Any, Value]] = {}  # by id() of the samples, which are kept so that ids stay valid

    def __enter__(self) -> Trace:
        super().__enter__()
        return self

    def value(self, tensor: Any, call: Any = None, name: str = "") -> Value:
        """A new Value for a plain tensor."""
        noted = Value(len(self.values), tensor, call, name)
        self.values.append(noted)
        return noted

    def wrap(self, value: Value, into: Any = None) -> Any:
        """The batched tensor for a value."""
        samples = lib.norch_unsqueeze(value.tensor, 0)
        self._of[id(samples)] = samples, value
        if into is None:
            return sample(samples, self)
        become(into, samples, self)
        return into

    def value_of(self, x: Any) -> Value:
        """The value of a tensor that a call or the program passes in."""
        if type(x) is not Batched:
            written = x._version_counter
            key = id(x), written[0] if written else 0
            if key not in self.constants:
                self.constants[key] = x, self.value(lib.norch_clone(x) if x.ndim else x)  # x is kept, and so its id
                self.constants[key][1].line = _line()
            return self.constants[key][1]
        noted = self._of.get(id(x._physical))
        if noted is None:
            raise OnnxExporterError(
                f"onnx.export: an operation at {_line()} has no ONNX operator: it computes outside norch"
            )
        value = noted[1]
        if value.version != value.cell.version:  # written to since, through this or another view
            cell, path = value.cell, value.path
            value = cell.root
            for name, *rest in path:
                value = self._view(value, name, rest)
            self._of[id(x._physical)] = noted[0], value
        return value

    def _view(self, x: Value, name: str, rest: Any) -> Value:
        """Records the call that takes a view, and returns its value."""
        call = Call(name, (x, *rest), _line())
        out = self.value(getattr(lib, f"norch_{name}")(*_plain(call.arguments)), call)
        out.is_view_of(x.cell, (*x.path, (name, *rest)))
        call.results.append(out)
        self.calls.append(call)
        return out

    def constant(self, x: Any) -> Any:
        """Wraps a plain tensor that the program has just created, so that later calls may write to it."""
        return self.wrap(self.value_of(x))

    def _noted(self, x: Any) -> Any:
        if isinstance(x, Handle):
            return self.value_of(x)
        if type(x) in (tuple, list):
            return tuple([self._noted(item) for item in x])
        return x

    def notes(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Runs a call on the elements and records it."""
        call = getattr(lib, f"norch_{name}")
        if name == "attention_fuses":
            return False
        if name in _QUESTIONS:
            return call(*_plain(self._noted(arguments)))
        if name == "item" or any(type(x) is Draws for x in arguments):
            problem = "asks for the number in a tensor" if name == "item" else "draws random numbers"
            raise OnnxExporterError(
                f"onnx.export: {name} at {_line()} {problem}, and an ONNX file would hold only one of them"
            )
        at = _RESULTS.get(name, ())
        writes = name in _WRITES or (name in _MAY_WRITE and arguments[_MAY_WRITE[name]])
        if writes:
            return self._write(name, call, arguments)
        noted = tuple(x if i in at else self._noted(x) for i, x in enumerate(arguments))
        noted_call = Call(name, tuple(None if i in at else x for i, x in enumerate(noted)), _line())
        out = call(*_plain(noted))
        if out is None and name == "region":
            return None
        self.calls.append(noted_call)
        if out is not None and not isinstance(out, Handle):
            raise OnnxExporterError(f"onnx.export: {name} at {noted_call.line} has no ONNX operator")
        if out is not None:
            noted_call.results.append(self.value(out, noted_call))
            first: Any = noted[0]
            if name in VIEWS and type(first) is Value and lib.norch_shares_storage(out, first.tensor):
                noted_call.results[0].is_view_of(first.cell, (*first.path, (name, *noted[1:])))
        # the tensors that it wrote to become values with their own elements
        for i in at:
            if arguments[i] is not None:
                noted_call.results.append(self.value(lib.norch_clone(arguments[i]), noted_call))
                self.wrap(noted_call.results[-1], arguments[i])
        return None if out is None else self.wrap(noted_call.results[0])

    def _write(self, name: str, call: Any, arguments: tuple[Any, ...]) -> Any:
        """Runs a call that writes to its first argument on a copy, which that tensor then holds."""
        x = arguments[0]
        if type(x) is not Batched and lib.norch_storage_references(x) > 1:
            raise OnnxExporterError(
                f"onnx.export: {name} at {_line()} writes to a part of a tensor, or to one with views; ONNX has no "
                "writes: compute the new tensor out of place, by cat(), where() or scatter()"
            )
        noted = self._noted(arguments)
        old = noted[0]
        copy = lib.norch_clone(old.tensor)
        call(copy, *_plain(noted[1:]))
        noted_call = Call(name, noted, _line())
        self.calls.append(noted_call)
        new = self.value(copy, noted_call)
        noted_call.results.append(new)
        cell = old.cell
        if old.path:
            new = self._whole(cell.root, old.path, new)
        cell.root, cell.version = new, cell.version + 1
        new.is_view_of(cell, ())
        if not old.path:
            self.wrap(new, x)
        return x

    def _whole(self, root: Value, path: tuple[Any, ...], part: Value) -> Value:
        """The whole after a part was written. The same views of an index tensor determine the positions of the
        elements."""
        call = Call("positions", (root,), _line())
        shape = lib.norch_shape(root.tensor)
        numbers: Any = lib.norch_arange(root.tensor._numel, _INT64, 0.0, 1.0, 0, 1)
        at = self.value(lib.norch_view(numbers, shape), call)
        call.results.append(at)
        self.calls.append(call)
        for name, *rest in path:
            at = self._view(at, name, rest)
        flat = lib.norch_view(lib.norch_clone(root.tensor), (-1,))
        elements, places = (lib.norch_reshape(x.tensor, (-1,)) for x in (part, at))
        lib.norch_scatter(flat, constants["INDEX_SCATTER"], 0, places, elements, True)
        put = Call("put", (root, at, part), _line())
        put.results.append(self.value(lib.norch_view(flat, shape), put))
        self.calls.append(put)
        return put.results[0]


def _plain(x: Any) -> Any:
    """Arguments with elements in place of values."""
    if type(x) is Value:
        return x.tensor
    return tuple([_plain(item) for item in x]) if type(x) is tuple else x


# ---- integers of several traces --------------------------------------------------------------------------------------


class Symbols:
    """The dynamic sizes by name, with their values in each trace."""

    def __init__(self, of: dict[str, tuple[int, ...]]):
        self.of = of

    def formula(self, values: tuple[int, ...]) -> Any:
        """(terms, constant, divisor) such that values = (sum of factor * product of symbols + constant) // divisor in
        each trace; None if no formula of this kind exists."""
        count = len(values)
        names = list(self.of)
        products: list[tuple[str, ...]] = [(name,) for name in names]
        products += [(a, b) for i, a in enumerate(names) for b in names[i:]]

        def each(product: tuple[str, ...]) -> list[int]:
            powers = [1] * count
            for name in product:
                powers = [a * b for a, b in zip(powers, self.of[name])]
            return powers

        linear: dict[tuple[str, ...], Any] = {}
        for i, name in enumerate(names):  # trace i + 1 differs from the first only in this symbol
            step, change = self.of[name][i + 1] - self.of[name][0], values[i + 1] - values[0]
            if change % step == 0 and change:
                linear[(name,)] = change // step
        candidates: list[dict[tuple[str, ...], Any]] = [linear, *({product: None} for product in products)]
        for terms in candidates:
            if None in terms.values():
                (product,) = terms
                p = each(product)
                at = next((i for i in range(count) if p[i] != p[0]), 0)
                if not at or (values[at] - values[0]) % (p[at] - p[0]):
                    continue
                terms = {product: (values[at] - values[0]) // (p[at] - p[0])}
            sums = [0] * count
            for product, factor in terms.items():
                sums = [total + factor * p for total, p in zip(sums, each(product))]
            constant = values[0] - sums[0]
            if all(total + constant == value for total, value in zip(sums, values)):
                return terms, constant, 1
        for product in products:
            p = each(product)
            for divisor in range(2, 65):
                for constant in range(-divisor * 2, divisor * 2 + 1):
                    if all((one + constant) // divisor == value for one, value in zip(p, values)):
                        return {product: 1}, constant, divisor
        return None


def same_calls(traces: list[Trace]) -> None:
    """Raises if the traces differ in more than numbers."""
    first = traces[0]
    for other in traces[1:]:
        for a, b in zip(first.calls, other.calls):
            rows = [call.arguments[_ROWS[call.name]] if call.name in _ROWS else 0 for call in (a, b)]
            if a.name != b.name or rows[0] != rows[1] or _numbers(a.arguments) != _numbers(b.arguments):
                raise OnnxExporterError(
                    f"onnx.export: what the model computes at {a.line} depends on the size of a dynamic axis ({a.name} "
                    f"for one size, {b.name} for another); give that axis a fixed size"
                )
        if len(first.calls) != len(other.calls):
            raise OnnxExporterError(
                f"onnx.export: the model runs {len(first.calls)} calls for one size of a dynamic axis and "
                f"{len(other.calls)} for another, as in a loop over that axis; give it a fixed size"
            )


def numbers_in(x: Any) -> list[int]:
    """The numbers of all values in the arguments."""
    if type(x) is Value:
        return [x.number]
    return [number for item in x for number in numbers_in(item)] if type(x) is tuple else []


def _numbers(x: Any) -> Any:
    """The values' numbers and places in the arguments."""
    if type(x) is Value:
        return x.number
    return tuple(map(_numbers, x)) if type(x) is tuple else None
