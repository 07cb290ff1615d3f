"""Builds an ONNX graph from the library calls of several traces (_trace.py): nodes, initializers and sizes.

A size that is the same in all traces is written as a number. Any other size is computed in the graph from the shapes of
the inputs, by a formula that holds in all traces. A constant that differs between traces is rebuilt from such sizes: it
is full of one number, a range, or a mask that depends on column - row, as zeros(), arange() and triu() create.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

from .._binding.library import constants, lib
from ..dtype import DTYPES
from . import _calls, _indices, _layers  # noqa: F401 (their entries)
from ._entry import ENTRIES, merged
from ._trace import VIEWS, Call, OnnxExporterError, Symbols, Trace, Value, numbers_in

# ONNX's element types (TensorProto.DataType) by norch's names.
TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
}  # fmt: skip
LIMIT = 1 << 31  # bytes of a protobuf message
Size = int | tuple[int, ...]  # a size, or one for each trace if they differ


class Ref:
    """A value as the functions for calls see it: its name in the graph, dtype (a code) and shape, of Sizes."""

    __slots__ = ("dtype", "example", "name", "ndim", "number", "shape")

    def __init__(self, name: str, values: list[Value]):
        first = values[0].tensor
        self.name, self.number, self.example = name, values[0].number, first
        self.dtype: int = first._dtype
        self.shape = [merged(sizes) for sizes in zip(*(lib.norch_shape(value.tensor) for value in values))]
        self.ndim = first.ndim

    @property
    def kind(self) -> str:
        """ "f", "i", "u", "b" or "c"."""
        return DTYPES[self.dtype].kind

    @property
    def is_static(self) -> bool:
        """Whether all sizes are numbers."""
        return all(type(size) is int for size in self.shape)


class Graph:
    """An ONNX graph under construction."""

    def __init__(
        self, onnx: Any, traces: list[Trace], symbols: Symbols, inputs: dict[str, int], opset: int, folds: bool
    ):
        self.onnx, self.traces, self.symbols, self.opset, self.folds = onnx, traces, symbols, opset, folds
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.names: dict[int, str] = {number: name for name, number in inputs.items()}
        self.taken = set(inputs)
        self.calls: tuple[Call, ...] = ()  # the call being written, in each trace
        self.factors: dict[str, Any] = {}  # x, weight and bias of each result of linear()
        self._constants = {
            value.number for value in traces[0].values if value.call is None and value.number not in inputs.values()
        }
        self.axes: dict[str, tuple[str, int]] = {}  # the input and axis that define each symbol
        self._ints: dict[Any, str] = {}
        self._bytes = 0

    # ---- names and nodes ---------------------------------------------------------------------------------------------

    def fresh(self, base: str) -> str:
        """A name that is not used yet."""
        name, i = base, 0
        while name in self.taken:
            i += 1
            name = f"{base}_{i}"
        self.taken.add(name)
        return name

    def node(self, op: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node. Returns the name of its result, or a list of names. Inputs are names, Refs or "" (omitted)."""
        names = [self.fresh(op.lower()) for _ in range(outputs)]
        input_names = [x.name if isinstance(x, Ref) else x for x in inputs]
        self.nodes.append(self.onnx.helper.make_node(op, input_names, names, name=names[0], **attributes))
        return names[0] if outputs == 1 else names

    def step_of(self, op: str, dtype: int, ndim: int) -> Any:
        """The body of a Scan: op(state, slice), both with ndim axes, is the next state and the output."""
        helper, shape = self.onnx.helper, [None] * ndim
        state, part, new, kept = (helper.make_tensor_value_info(n, self.type_of(dtype), shape) for n in "abcd")
        nodes = [helper.make_node(op, ["a", "b"], ["c"]), helper.make_node("Identity", ["c"], ["d"])]
        return helper.make_graph(nodes, op.lower(), [state, part], [new, kept])

    def initializer(self, tensor: Any, base: str) -> str:
        """Adds a tensor to the file."""
        name = self.fresh(base)
        size = tensor._numel * lib.norch_dtype_size(tensor._dtype)
        self._bytes += size
        if self._bytes >= LIMIT:
            raise OnnxExporterError(
                f"onnx.export: the tensors of the model need at least {self._bytes} bytes; an ONNX file holds less "
                "than 2 GB, and norch writes no external data"
            )
        self.initializers[name] = self.onnx.TensorProto(
            name=name, dims=lib.norch_shape(tensor), data_type=self.type_of(tensor._dtype), raw_data=bytes_of(tensor)
        )
        return name

    def type_of(self, dtype: int) -> int:
        """The ONNX element type of a dtype."""
        return TYPES[DTYPES[dtype].name]

    def scalar(self, value: float, dtype: int) -> str:
        """A 0-d constant."""
        return self._constant((), [value], dtype)

    def indices(self) -> list[tuple[Any, ...]]:
        """The index of region() in each trace, as a tuple."""
        listed = [call.arguments[1] for call in self.calls]
        return [item if type(item) is tuple else (item,) for item in listed]

    def number_list(self, values: list[int]) -> str:
        """A 1-d constant of int64."""
        return self._constant((len(values),), values, constants["INT64"])

    def _constant(self, shape: tuple[int, ...], values: Any, dtype: int) -> str:
        key = (shape, tuple(values), dtype)
        if key not in self._ints:
            from .. import tensor

            value = tensor(list(values), dtype=DTYPES[dtype]).reshape(shape)
            self._ints[key] = self.initializer(value, "constant")
        return self._ints[key]

    # ---- sizes -------------------------------------------------------------------------------------------------------

    def symbol(self, name: str) -> str:
        """A dynamic size as a 1-d tensor."""
        if name not in self._ints:
            source, axis = self.axes[name]
            self._ints[name] = self.node("Shape", source, start=axis, end=axis + 1)
        return self._ints[name]

    def size(self, size: Size) -> str:
        """A size as a 1-d tensor of int64."""
        if type(size) is int:
            return self.number_list([size])
        if size not in self._ints:
            formula = self.symbols.formula(size)  # type: ignore[arg-type]
            if formula is None:
                raise OnnxExporterError(
                    f"onnx.export: {self.call.name} at {self.call.line} computes {size} of dynamic sizes "
                    f"{self.symbols.of} by a formula that export() does not find; give an axis a fixed size"
                )
            terms, constant, divisor = formula
            total = ""
            for product, factor in terms.items():
                names = [self.symbol(name) for name in product]
                term = names[0] if len(names) == 1 else self.node("Mul", *names)
                term = term if factor == 1 else self.node("Mul", term, self.number_list([factor]))
                total = self.node("Add", total, term) if total else term
            if constant:
                total = self.node("Add", total, self.number_list([constant]))
            self._ints[size] = total if divisor == 1 else self.node("Div", total, self.number_list([divisor]))
        return self._ints[size]

    def ints(self, sizes: Any) -> str:
        """Sizes as a 1-d tensor of int64."""
        sizes = list(sizes)
        if all(type(size) is int for size in sizes):
            return self.number_list(sizes)
        if len(sizes) == 1:
            return self.size(sizes[0])
        return self.node("Concat", *map(self.size, sizes), axis=0)

    def scalar_of(self, size: Size) -> str:
        """A size as a 0-d tensor."""
        whole = constants["INT64"]
        return (
            self.scalar(size, whole)
            if type(size) is int
            else self.node("Squeeze", self.size(size), self.number_list([0]))
        )

    def each(self, size: Size) -> list[int]:
        """The size in each trace."""
        return list(size) if isinstance(size, tuple) else [size] * len(self.traces)

    def text_of(self, size: Size) -> Any:
        """A size in the declaration of an input or output: a number or a name."""
        if type(size) is int:
            return size
        formula = self.symbols.formula(size)  # type: ignore[arg-type]
        if formula is None:
            return None
        terms, constant, divisor = formula
        parts = ["*".join((*([str(factor)] if factor != 1 else []), *names)) for names, factor in terms.items()]
        text = " + ".join([*parts, *([str(constant)] if constant else [])])
        return text if divisor == 1 else f"({text}) // {divisor}"

    # ---- what rules use ----------------------------------------------------------------------------------------------

    def cast(self, x: Any, dtype: int) -> str:
        """Casts a Ref to another dtype."""
        if x.dtype != dtype and not x.ndim and x.name in self.initializers and x.kind in "fiub":
            return self._constant((), [x.example.item()], dtype)
        return x.name if x.dtype == dtype else self.node("Cast", x, to=self.type_of(dtype))

    def reshape(self, x: Any, shape: Any) -> str:
        """Reshapes to Sizes; if one is dynamic, ONNX infers it."""
        sizes = list(shape)
        dynamic = [i for i, size in enumerate(sizes) if type(size) is not int]
        if len(dynamic) == 1 and 0 not in sizes:
            sizes[dynamic[0]] = -1
        return self.node("Reshape", x, self.ints(sizes), **({"allowzero": 1} if 0 in sizes else {}))

    def part(self, x: Any, axis: int, start: Any, stop: Any, step: int = 1) -> str:
        """x[start:stop:step] along an axis; ONNX clips bounds as Python does."""
        least = -(1 << 63) if step < 0 else 0
        first = start if start is not None else (1 << 62 if step < 0 else 0)
        last = stop if stop is not None else (least if step < 0 else 1 << 62)
        if (first, last, step) == (0, 1 << 62, 1):
            return x if isinstance(x, str) else x.name
        bounds = self.ints([first]), self.ints([last])
        return self.node("Slice", x, *bounds, self.number_list([axis]), self.number_list([step]))

    @property
    def call(self) -> Call:
        """The call being written, in the first trace."""
        return self.calls[0]

    def where(self, condition: str, a: str, b: str, dtype: int) -> str:
        """Where; for bools an equivalent, since onnxruntime has no kernel for them."""
        if dtype != constants["BOOL"]:
            return self.node("Where", condition, a, b)
        return self.node("Or", self.node("And", condition, a), self.node("And", self.node("Not", condition), b))

    def refuse(self, why: str) -> Any:
        """Raises for the call being written."""
        raise OnnxExporterError(f"onnx.export: {self.call.name} at {self.call.line} {why}")

    # ---- constants ---------------------------------------------------------------------------------------------------

    def ref(self, values: list[Value]) -> Ref:
        """The Ref of a value, from the value in each trace; a constant becomes an initializer when it is first used."""
        number = values[0].number
        if number not in self.names:
            name, tensor = values[0].name, values[0].tensor
            self.names[number] = self.initializer(tensor, name) if name else self._rebuilt(values)
        if not self.names[number]:
            call = values[0].call
            self.refuse(f"takes a result of {call.name} at {call.line} that its ONNX operator does not give")
        return Ref(self.names[number], values)

    def _rebuilt(self, values: list[Value]) -> str:
        tensors = [value.tensor for value in values]
        shapes = [lib.norch_shape(t) for t in tensors]
        if all(shape == shapes[0] and bytes_of(t) == bytes_of(tensors[0]) for shape, t in zip(shapes, tensors)):
            return self.initializer(tensors[0], "constant")
        shape: list[Any] = [merged(sizes) for sizes in zip(*shapes)]
        dtype = tensors[0]._dtype
        arrays = [t.double().numpy() if t._dtype != constants["INT64"] else t.numpy() for t in tensors]
        ref = self._uniform(arrays, dtype, shape) or self._range(arrays, dtype, shape)
        ref = ref or self._band(arrays, dtype, shape)
        if not ref:
            raise OnnxExporterError(
                f"onnx.export: a tensor used at {values[0].line} depends on dynamic sizes in an unknown way "
                f"(its shapes: {', '.join(map(str, shapes))}), or holds random numbers; register it as a buffer"
            )
        return ref

    def _expanded(self, name: str, shape: list[Any]) -> str:
        return self.node("Expand", name, self.ints(shape)) if shape else name

    def _uniform(self, arrays: list[Any], dtype: int, shape: list[Any]) -> str:
        if not all(array.size and (array == array.flat[0]).all() for array in arrays):
            return ""
        value = merged(tuple(array.flat[0].item() for array in arrays))
        if type(value) is not tuple:
            return self._expanded(self.scalar(value, dtype), shape)
        number = self._number(value, dtype)
        return number and self._expanded(self.node("Reshape", number, self.number_list([])), shape)

    def _number(self, values: tuple[float, ...], dtype: int) -> str:
        """A number that differs between traces: c * f(size), where f is x, 1 / x, or the square root of either."""
        if all(value == int(value) for value in values if math.isfinite(value)) and math.isfinite(sum(values)):
            ints = tuple(int(value) for value in values)
            if self.symbols.formula(ints) is not None:
                return self.node("Cast", self.size(ints), to=self.type_of(dtype))
        for power in (-1, 0.5, -0.5, 2, -2):
            if any(value <= 0 for value in values):
                break
            back = [value ** (1 / power) for value in values]
            for factor in (back[0] / n for n in {first for size in self._products() for first in size[:1]}):
                ints = tuple(round(first / factor) for first in back)
                close = all(math.isclose(a / factor, b, rel_tol=1e-5) for a, b in zip(back, ints))
                if close and self.symbols.formula(ints) is not None:
                    double = constants["FLOAT64"]
                    x = self.node("Cast", self.size(ints), to=self.type_of(double))
                    x = self.node("Pow", self.node("Mul", x, self.scalar(factor, double)), self.scalar(power, double))
                    return self.node("Cast", x, to=self.type_of(dtype))
        return ""

    def _products(self) -> list[tuple[int, ...]]:
        sizes = list(self.symbols.of.values())
        return sizes + [tuple(x * y for x, y in zip(a, b)) for i, a in enumerate(sizes) for b in sizes[i:]]

    def arange(self, size: Size) -> str:
        """0, 1 ... size - 1, int64."""
        whole = constants["INT64"]
        return self.node("Range", self.scalar(0, whole), self.scalar_of(size), self.scalar(1, whole))

    def _range(self, arrays: list[Any], dtype: int, shape: list[Any]) -> str:
        """start + step * position along one axis."""
        for axis in range(len(shape)):
            rows = [array.swapaxes(0, axis) for array in arrays]
            rows = [array.reshape(len(array), -1) if array.size else array for array in rows]
            if not all(array.size and (array == array[:, :1]).all() for array in rows):
                continue
            lines = [array[:, 0] for array in rows]
            at, positions = self._positions(lines, shape[axis])
            longest, place = max(zip(lines, positions), key=lambda pair: len(pair[0]))
            far = place.argmax()
            start = longest[place.argmin()].item()
            step = (longest[far].item() - start) / (place[far].item() or 1)
            step = int(step) if step == int(step) else step
            if not all((abs(x - start - step * i) <= 1e-6).all() for x, i in zip(lines, positions)):
                continue
            wide = dtype if DTYPES[dtype].kind in "fi" else constants["INT64"]
            cast = self.node("Cast", at(), to=self.type_of(wide))
            cast = self.node("Mul", cast, self.scalar(step, wide)) if step != 1 else cast
            cast = self.node("Add", cast, self.scalar(start, wide)) if start else cast
            cast = self.node("Cast", cast, to=self.type_of(dtype))
            after = len(shape) - 1 - axis
            if after:
                cast = self.node("Unsqueeze", cast, self.number_list(list(range(1, after + 1))))
            return self._expanded(cast, shape) if len(shape) > 1 else cast
        return ""

    def _positions(self, lines: list[Any], size: Size) -> tuple[Any, list[Any]]:
        """(the function that computes positions along an axis, the positions): i, or i // d where each value is
        repeated d times, or i % m where the values repeat with period m."""
        ranges = [(line == line).cumsum() - 1 for line in lines]
        changes = [int((line != line[0]).argmax()) for line in lines]
        if all(d > 1 for d in changes):
            d = merged(tuple(changes))
            quotients = [i // n for i, n in zip(ranges, changes)]
            return lambda: self.node("Div", self.arange(size), self.size(d)), quotients
        returns = [int((line[1:] == line[0]).argmax()) + 1 if (line[1:] == line[0]).any() else 0 for line in lines]
        if all(m > 1 for m in returns):
            m = merged(tuple(returns))
            return lambda: self.node("Mod", self.arange(size), self.size(m)), [i % n for i, n in zip(ranges, returns)]
        return lambda: self.arange(size), ranges

    def _band(self, arrays: list[Any], dtype: int, shape: list[Any]) -> str:
        """A mask: one number where column - row >= k, another elsewhere."""
        if len(shape) < 2:
            return ""
        largest = max(arrays, key=lambda array: array.size)
        if not largest.size:
            return ""
        last = largest.reshape(-1, *largest.shape[-2:])[0]
        below, above = last[-1, 0], last[0, -1]
        bounds = [k for k in range(1 - last.shape[0], last.shape[1] + 1) if self._is_band(last, below, above, k)]
        if not bounds or not all(
            self._is_band(array.reshape(-1, *array.shape[-2:])[i], below, above, bounds[0])
            for array in arrays
            for i in range(math.prod(array.shape[:-2]))
        ):
            return ""
        row = self.node("Unsqueeze", self.arange(shape[-2]), self.number_list([1]))
        distance = self.node("Sub", self.arange(shape[-1]), row)
        inside = self.node("GreaterOrEqual", distance, self.scalar(bounds[0], constants["INT64"]))
        values = self.scalar(above.item(), dtype), self.scalar(below.item(), dtype)
        return self._expanded(self.where(inside, *values, dtype), shape)

    @staticmethod
    def _is_band(plane: Any, below: Any, above: Any, k: int) -> bool:
        rows, columns = plane.shape
        return all(
            (plane[i, : max(0, i + k)] == below).all() and (plane[i, max(0, i + k) :] == above).all()
            for i in range(rows)
        )

    # ---- calls -------------------------------------------------------------------------------------------------------

    def add_calls(self) -> None:
        """Adds the nodes of all calls."""
        for calls in zip(*(trace.calls for trace in self.traces)):
            self.calls = calls
            if self._is_folded():
                continue
            rule = ENTRIES.get(self.call.name)
            if rule is None:
                self.refuse("has no ONNX operator")
                continue
            arguments = [self._argument(alike) for alike in zip(*(call.arguments for call in self.calls))]
            results = [Ref("", list(alike)) for alike in zip(*(call.results for call in self.calls))]
            names = rule(self, results, *arguments)
            for result, name in zip(results, [names] if isinstance(names, str) else names):
                self.names[result.number] = name

    def _is_folded(self) -> bool:
        """Whether the results are constants: they depend on constants only, and are the same in all traces."""
        if not self.folds or not all(number in self._constants for number in numbers_in(self.call.arguments)):
            return False
        if self.call.name in VIEWS:  # keeps the parameters' names
            self._constants.update(r.number for r in self.call.results)
            return False
        for alike in zip(*(call.results for call in self.calls)):
            tensors = [r.tensor for r in alike]
            if any(lib.norch_shape(r) != lib.norch_shape(tensors[0]) for r in tensors):
                return False
        self._constants.update(r.number for r in self.call.results)
        return True

    def _argument(self, same: tuple[Any, ...]) -> Any:
        if type(same[0]) is Value:
            return self.ref(list(same))
        if type(same[0]) is tuple:
            return [self._argument(each) for each in zip(*same)]
        return merged(same)

    def name_outputs(self, results: list[str], names: list[str]) -> None:
        """Gives outputs their names: a node's result is renamed, anything else goes through an Identity node."""
        written = {name for node in self.nodes for name in node.output}
        renamed: dict[str, str] = {}
        for result, name in zip(results, names):
            if result in written and result not in renamed:
                renamed[result] = name
            else:
                node = self.onnx.helper.make_node("Identity", [result], [name], name=name)
                self.nodes.append(node)
        for node in self.nodes:
            for of in (node.input, node.output):
                of[:] = [renamed.get(name, name) for name in of]

    def prune(self, wanted: list[str]) -> None:
        """Removes nodes and initializers that no output depends on."""
        needed, kept = set(wanted), []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                kept.append(node)
                needed.update(node.input)
        self.nodes = kept[::-1]
        self.initializers = {name: value for name, value in self.initializers.items() if name in needed}


def bytes_of(tensor: Any) -> bytes:
    """The elements of a tensor, in C order."""
    flat = lib.norch_contiguous(tensor.detach().cpu())
    held = bytearray(flat._numel * lib.norch_dtype_size(flat._dtype))
    if held:
        lib.norch_to_bytes(flat, ctypes.addressof(ctypes.c_char.from_buffer(held)), len(held))
    return bytes(held)
