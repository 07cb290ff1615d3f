"""``norch.onnx``: writes models as ONNX files with the package onnx (``pip install "norch-dl[onnx]"``).

_trace.py records the library calls of the model, _calls.py has the ONNX operators of each, _graph.py writes them.

>>> norch.onnx.export(model, (x,), "model.onnx", dynamic_axes={"x": {0: "batch"}})  # doctest: +SKIP
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from .._package.exports import publish
from .._tensor import handle as _handle
from ..autograd.grad_mode import no_grad
from ..compat.pytree import tree_flatten, tree_unflatten
from ..errors import ArgumentError
from ..overrides import TorchFunctionMode
from ._trace import OnnxExporterError, Symbols, Trace, same_calls

__all__ = ["ONNXProgram", "OnnxExporterError", "export", "is_in_onnx_export"]
publish(globals())

_OPSETS = range(18, 24)
_exporting = False


def is_in_onnx_export() -> bool:
    """Whether export() is running the model."""
    return _exporting


def _package(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f'norch.onnx needs the package {name}: pip install "norch-dl[onnx]"') from error


class ONNXProgram:
    """An exported model.

    model_proto   the onnx.ModelProto
    """

    def __init__(self, model_proto: Any):
        self.model_proto = model_proto

    def save(self, destination: str | PathLike[str] | Any) -> None:
        """Writes the file to a path or an open binary file."""
        data = self.model_proto.SerializeToString()
        if hasattr(destination, "write"):
            destination.write(data)
        else:
            Path(destination).write_bytes(data)

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Runs the model on these inputs by onnxruntime; the outputs in a flat list."""
        from .. import from_numpy

        runtime = _package("onnxruntime")
        session = runtime.InferenceSession(self.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
        inputs = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, _handle.Handle)]
        names = [input_info.name for input_info in session.get_inputs()]
        fed = {name: x.detach().cpu().numpy() for name, x in zip(names, inputs, strict=True)}  # type: ignore[attr-defined]
        return [from_numpy(x) for x in session.run(None, fed)]

    def __repr__(self) -> str:
        graph = self.model_proto.graph
        names = [[info.name for info in infos] for infos in (graph.input, graph.output)]
        return f"ONNXProgram(inputs={names[0]}, outputs={names[1]}, nodes={len(graph.node)})"


def _refuse_options(**options: tuple[Any, tuple[Any, ...], str]) -> None:
    for name, (value, allowed, why) in options.items():
        if not any(value is accepted or (type(value) is type(accepted) and value == accepted) for accepted in allowed):
            raise OnnxExporterError(f"onnx.export: {name}={value!r} is not supported: {why}")


def export(
    model: Any,
    args: Any = (),
    f: str | PathLike[str] | Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
    custom_translation_table: dict[Callable[..., Any], Any] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: Any = 0,
    operator_export_type: Any = 0,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[Any] = False,
    autograd_inlining: bool = True,
) -> ONNXProgram:
    """Writes the computation of model(*args, **kwargs) as an ONNX model to f, unless f is None, and returns the model.

    model: a Module, run in eval mode, several times if there are dynamic axes. args: its inputs, a tuple or one tensor;
    each tensor in tuples, lists and dicts is an input. Parameters and buffers keep the names of state_dict().
    opset_version: 18 (the default) to 23. dynamic_axes {name of an input: {axis: name of the size}}, or PyTorch's
    dynamic_shapes by argument of forward(): sizes that may differ when the file is run; numbers that the program
    computes from x.shape stay dynamic. verify: runs the file by onnxruntime, and raises an error if the results differ.

    OnnxExporterError, with the line of the program, for operations without an ONNX operator: random numbers, control
    flow that depends on values, shapes that depend on values, writes to parts of tensors; also for 2 GB of tensors and
    for unknown options. PyTorch's other options have no effect. ImportError without the package onnx.
    """
    global _exporting
    _refuse_options(
        custom_translation_table=(custom_translation_table, (None, {}), "operators are those of norch's table"),
        report=(report, (False,), "no report is written"),
        profile=(profile, (False,), "no report is written"),
        dump_exported_program=(dump_exported_program, (False,), "there is no exported program"),
        export_params=(export_params, (True,), "the file holds the parameters"),
        training=(int(getattr(training, "value", training) or 0), (0,), "models are exported in eval mode"),
        operator_export_type=(
            int(getattr(operator_export_type, "value", operator_export_type)), (0,), "only ONNX's operators are written"
        ),
        custom_opsets=(custom_opsets, (None, {}), "only ONNX's operators are written"),
        export_modules_as_functions=(export_modules_as_functions, (False,), "a file is one graph"),
    )  # fmt: skip
    opset = 18 if opset_version is None else opset_version
    if opset not in _OPSETS:
        raise OnnxExporterError(f"onnx.export: opset_version={opset} is not supported: it is 18 to {_OPSETS[-1]}")
    if not hasattr(model, "named_parameters"):
        raise TypeError(f"onnx.export: expected a Module, not {type(model).__name__}")
    onnx = _package("onnx")
    arguments = (args,) if isinstance(args, _handle.Handle) or not isinstance(args, (tuple, list)) else tuple(args)
    inputs = _Inputs(model, arguments, kwargs or {}, input_names, dynamic_axes or {}, dynamic_shapes)
    modes = [(module, module.training) for module in model.modules()]
    _exporting = True
    try:
        model.eval()
        proto = _model_proto(onnx, model, inputs, output_names, opset, do_constant_folding)
    finally:
        _exporting = False
        for module, mode in modes:
            module.training = mode
    if keep_initializers_as_inputs:
        proto.graph.input.extend(
            onnx.helper.make_tensor_value_info(initializer.name, initializer.data_type, initializer.dims)
            for initializer in proto.graph.initializer
        )
    onnx.checker.check_model(proto)
    program = ONNXProgram(proto)
    if verbose:
        print(onnx.printer.to_text(proto))
    if verify:
        _verify(program, model, arguments, kwargs or {}, modes)
    if f is not None:
        program.save(f)
    return program


def _verify(program: ONNXProgram, model: Any, args: Any, kwargs: Any, modes: Any) -> None:
    from ..testing import assert_close

    try:
        model.eval()
        with no_grad():
            wanted = [x for x in tree_flatten(model(*args, **kwargs))[0] if isinstance(x, _handle.Handle)]
    finally:
        for module, mode in modes:
            module.training = mode
    for x, y in zip(program(*args, **kwargs), wanted, strict=True):
        assert_close(x, y.cpu(), rtol=1e-3, atol=1e-4, check_dtype=False)  # type: ignore[attr-defined]


class _Inputs:
    """The inputs of a model: named tensors and their dynamic axes."""

    def __init__(self, model: Any, args: Any, kwargs: Any, names: Any, axes: Any, shapes: Any):
        self.model, self.args, self.axes = model, args, axes
        try:
            bound = inspect.signature(model.forward).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"onnx.export: forward() of {type(model).__name__} does not take these args: {error}"
            ) from None
        self.bound = bound
        leaves, self.spec = tree_flatten(dict(bound.arguments))
        self.leaves = leaves
        paths = _paths("", dict(bound.arguments))
        self.places = [i for i, x in enumerate(leaves) if isinstance(x, _handle.Handle)]
        self.tensors = [leaves[i] for i in self.places]
        listed = list(names or ())
        if len(listed) > len(self.tensors):
            raise ArgumentError(f"onnx.export: {len(listed)} input_names for {len(self.tensors)} tensors")
        self.names = listed + [paths[i] for i in self.places[len(listed) :]]
        self.symbols: dict[str, int] = {}
        self.dynamic: dict[str, dict[int, str]] = {}
        for name, of in axes.items():
            if name in self.names:
                named = of if isinstance(of, Mapping) else {axis: f"{name}_axis_{axis}" for axis in of}
                self._declare(self.names.index(name), named)
        if shapes is not None:
            flat = self._flat_shapes(shapes)
            for i, place in enumerate(self.places):
                self._declare(i, flat[place])

    def _declare(self, i: int, axes: Any) -> None:
        """Declares axes of tensor i dynamic."""
        x, declared = self.tensors[i], self.dynamic.setdefault(self.names[i], {})
        pairs = axes.items() if isinstance(axes, Mapping) else enumerate(axes or ())
        for axis, dim in pairs:
            if dim is None or type(dim) is int or getattr(dim, "kind", "") == "STATIC":
                continue
            if not -x.ndim <= axis < x.ndim:
                raise ArgumentError(f"onnx.export: input {self.names[i]} of shape {tuple(x.shape)} has no axis {axis}")
            axis %= x.ndim
            name = dim if isinstance(dim, str) else getattr(dim, "__name__", None) or f"{self.names[i]}_axis_{axis}"
            if self.symbols.setdefault(name, x.shape[axis]) != x.shape[axis]:
                raise ArgumentError(
                    f"onnx.export: size {name!r} is {self.symbols[name]} in one input and {x.shape[axis]} in another"
                )
            declared[axis] = name

    def _flat_shapes(self, shapes: Any) -> list[Any]:
        """The dynamic_shapes entry of each leaf."""
        flat: list[Any] = []

        def walk(value: Any, shape: Any) -> None:
            if isinstance(value, _handle.Handle) or shape is None:
                flat.extend([shape] * len(tree_flatten(value)[0]))
            elif isinstance(value, Mapping):
                for key, item in value.items():
                    walk(item, shape.get(key) if isinstance(shape, Mapping) else None)
            elif isinstance(value, (tuple, list)):
                for i, item in enumerate(value):
                    walk(item, shape[i] if i < len(shape) else None)
            else:
                flat.append(None)

        whole = dict(self.bound.arguments)
        walk(whole, shapes if isinstance(shapes, Mapping) else dict(zip(whole, shapes)))
        return flat

    def resized(self, sizes: dict[str, int]) -> list[Any]:
        """The inputs with other dynamic sizes, made by repeating their elements."""
        from .. import arange

        result = []
        for name, x in zip(self.names, self.tensors):
            x = x.detach()
            for axis, symbol in self.dynamic.get(name, {}).items():
                if sizes[symbol] != x.shape[axis]:
                    x = x.index_select(axis, arange(sizes[symbol], device=x.device) % x.shape[axis])
            result.append(x)
        return result

    def call(self, run: Callable[..., Any], tensors: list[Any]) -> Any:
        """run(*args, **kwargs) with other tensors."""
        leaves = list(self.leaves)
        for place, x in zip(self.places, tensors):
            leaves[place] = x
        arguments = tree_unflatten(leaves, self.spec)
        bound = inspect.BoundArguments(self.bound.signature, arguments)
        return run(bound.args, bound.kwargs)


def _paths(before: str, value: Any) -> list[str]:
    """A name for each leaf of nested containers, in the order of tree_flatten()."""
    if isinstance(value, Mapping):
        return [name for key, item in value.items() for name in _paths(f"{before}_{key}" if before else str(key), item)]
    if isinstance(value, (tuple, list)):
        return [name for i, item in enumerate(value) for name in _paths(f"{before}_{i}" if before else str(i), item)]
    return [before] * len(tree_flatten(value)[0])


class _Makers(TorchFunctionMode):
    """Adds tensors that the program creates, by arange() or zeros(), to the trace, which otherwise sees only calls with
    an input."""

    def __init__(self, trace: Trace):
        self.trace = trace

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        makes = getattr(func, "__name__", "") in ("arange", "zeros", "ones", "full", "empty", "eye")
        return self.trace.constant(out) if makes and type(out) is _handle.result_class else out


def _traced(model: Any, inputs: _Inputs, sizes: dict[str, int]) -> tuple[Trace, list[Any], Any]:
    """A trace with these sizes, its output values, and the outputs."""
    from ..func import functional_call

    resized = inputs.resized(sizes)
    with no_grad(), Trace() as trace, _Makers(trace):
        tensors = [trace.wrap(trace.value(x)) for x in resized]
        held = [*model.named_parameters(), *model.named_buffers()]
        state = {name: trace.wrap(trace.value(x.detach(), name=name)) for name, x in held}
        out = inputs.call(lambda args, kwargs: functional_call(model, state, args, kwargs), tensors)
        results = [x for x in tree_flatten(out)[0] if x is not None]
        _check_outputs(results)
        return trace, [trace.value_of(x) for x in results], out


def _check_outputs(results: list[Any]) -> None:
    for x in results:
        if not isinstance(x, _handle.Handle):
            raise OnnxExporterError(f"onnx.export: the model returns {type(x).__name__}, but outputs must be tensors")


def _traces(model: Any, inputs: _Inputs) -> tuple[list[Any], Symbols]:
    """Traces with the given sizes, with each dynamic size changed alone, twice, and with all changed. No size is 1,
    which would broadcast. If sizes plus 1 do not fit the model, multiples are tried."""
    base = {name: max(size, 2) for name, size in inputs.symbols.items()}
    failed: Exception | None = None
    for grown in (lambda size, i: size + i, lambda size, i: size * (i + 1)) if base else (lambda size, i: size,):
        every = [base]
        every += [{**base, name: grown(size, i)} for i in (1, 3) for name, size in base.items()]
        every += [{name: grown(size, 2 + i) for i, (name, size) in enumerate(base.items())}] if base else []
        try:
            traced = [_traced(model, inputs, sizes) for sizes in every]
            same_calls([pair[0] for pair in traced])
            return traced, Symbols({name: tuple(sizes[name] for sizes in every) for name in base})
        except Exception as error:
            failed = failed or error
    raise failed  # type: ignore[misc]


def _model_proto(onnx: Any, model: Any, inputs: _Inputs, output_names: Any, opset: int, folds: bool) -> Any:
    """The ModelProto."""
    from .. import __version__
    from ._graph import Graph, Ref

    traced, symbols = _traces(model, inputs)
    traces = [each[0] for each in traced]
    values = list(zip(*(each[1] for each in traced)))
    names = list(output_names or ())
    unknown = sorted({*inputs.axes} - {*inputs.names, *names, *_output_names(traced[0][2])})
    if unknown:
        raise ArgumentError(
            f"onnx.export: dynamic_axes names {', '.join(unknown)}, which is not an input or output; inputs are "
            f"{', '.join(inputs.names)}"
        )
    names = names[: len(values)] + _output_names(traced[0][2])[len(names) :]
    numbers = {name: i for i, name in enumerate(inputs.names)}
    graph = Graph(onnx, traces, symbols, numbers, opset, folds)
    for name, axes in inputs.dynamic.items():
        for axis, symbol in axes.items():
            graph.axes.setdefault(symbol, (name, axis))
    graph.taken.update(names)
    graph.add_calls()
    results = [graph.ref(list(alike)) for alike in values]
    graph.name_outputs([each.name for each in results], names)
    graph.prune(names)

    def declared(name: str, ref: Ref) -> Any:
        shape = [graph.text_of(size) for size in ref.shape]
        return onnx.helper.make_tensor_value_info(name, graph.type_of(ref.dtype), shape)

    declared_inputs = [
        declared(name, Ref(name, [trace.values[i] for trace in traces])) for i, name in enumerate(inputs.names)
    ]
    graph_proto = onnx.helper.make_graph(
        graph.nodes, type(model).__name__, declared_inputs, [declared(*pair) for pair in zip(names, results)],
        list(graph.initializers.values()),
    )  # fmt: skip
    operators = [onnx.helper.make_opsetid("", opset)]
    return onnx.helper.make_model(
        graph_proto, opset_imports=operators, ir_version=onnx.helper.find_min_ir_version_for(operators),
        producer_name="norch", producer_version=str(__version__),
    )  # fmt: skip


def _output_names(out: Any) -> list[str]:
    """Names of the outputs: the keys if the model returns a dict, else output, or output_0, output_1 ..."""
    if isinstance(out, Mapping):
        out = {key: value for key, value in out.items() if value is not None}
        return _paths("", out)
    count = len([x for x in tree_flatten(out)[0] if x is not None])
    return ["output"] if count == 1 else [f"output_{i}" for i in range(count)]
