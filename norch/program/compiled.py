"""``norch.compile``: records the forward and backward passes of functions and modules, and replays them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._binding.library import lib
from .._tensor.handle import counter, next_seq
from ..autograd.grad_mode import mode
from ..autograd.record import gradient_edge
from ..errors import ArgumentError, CaptureError
from ..nn.module import Module
from .captured import CapturedFunction, changed_argument, explained, line, refusal_of, unfit_result
from .joint import JointReplay, State, TracedFunction, TracedNode
from .listing import Program
from .trace import Trace
from .tree import LEAF, flatten, has_objects, is_tensor, rebuild

_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_BACKENDS = ("inductor", "norch", "eager", "aot_eager", "cudagraphs")
_MOST_FRUITLESS = 12  # calls of one kind recorded in vain before it runs normally


def compile(  # PyTorch's name
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
) -> Any:
    """Returns model, a module or function, whose forward and backward passes are recorded once and then replayed, as by
    norch.capture. The signature is torch.compile's. Results and gradients are bit for bit those of model.

    The first three calls with arguments of the same shapes, dtypes and values run normally. Code that cannot be
    recorded (docs/capture.md) runs normally from then on, with a warning that gives the reason, or with fullgraph
    raises CaptureError. A module becomes an OptimizedModule. Without model, returns a decorator.

    dynamic, mode, options and name have no effect: each shape has its own recording, up to recompile_limit, by default
    8. backend="eager" and disable switch recording off. ArgumentError for another backend or mode, RuntimeError for
    mode and options together.

    >>> model = norch.compile(norch.nn.Linear(2, 1))
    >>> for _ in range(5):
    ...     model(norch.ones(4, 2)).sum().backward()
    >>> model.weight.grad
    tensor([[20., 20.]])
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode not in _MODES:
        raise ArgumentError(f"compile: mode must be one of {', '.join(map(str, _MODES[1:]))}, not {mode!r}")
    if backend is not None and backend not in _BACKENDS:
        raise ArgumentError(f"compile: backend must be one of {', '.join(_BACKENDS)}, not {backend!r}")
    limit = 8 if recompile_limit is None else recompile_limit
    if not isinstance(limit, int) or limit < 1:
        raise ArgumentError(f"compile: recompile_limit must be at least 1, not {limit!r}")
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, name=name,
            disable=disable, recompile_limit=recompile_limit,
        )  # fmt: skip
    if not callable(model):
        raise TypeError(f"compile: expected a module or a function, not {type(model).__name__}")
    chosen: dict[str, Any] = {"fullgraph": bool(fullgraph), "backend": backend or "norch"}
    chosen.update(limit=limit, disable=bool(disable))
    return OptimizedModule(model, chosen) if isinstance(model, Module) else _function(model, **chosen)


def _function(function: Any, fullgraph: bool, backend: str, limit: int, disable: bool) -> Any:
    return function if disable or backend == "eager" else CompiledFunction(function, fullgraph, limit)


class CompiledFunction(CapturedFunction):
    """The result of norch.compile for a function; recordings(), reset(), program and profile() are those of
    norch.capture."""

    _verb = "compile"
    _warns_of_appends = False  # a list that grows during compilation shows how often the function runs, as in PyTorch

    def __init__(self, function: Callable[..., Any], fullgraph: bool, limit: int):
        super().__init__(function, fullgraph, True, limit)

    def reset(self) -> None:
        super().reset()
        self._eager: set[Any] = set()  # kinds of calls that are not recorded
        self._fruitless: dict[Any, int] = {}  # for each kind, the number of calls in a row recorded in vain
        self._wanted: dict[Any, set[int]] = {}  # for each kind, the results whose gradients were requested
        self._warned = False

    def _replayed(self, program: Program, out: Any, leaves: tuple[Any, ...]) -> Any:
        if program.joint is None:
            return super()._replayed(program, out, leaves)
        program.joint.attach(out, leaves)
        return rebuild(program.out_tree, iter(out))

    # ---- tracing -------------------------------------------------------------------------------------------------

    def _trace_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: tuple[Any, ...], in_tree: Any) -> Any:
        kind = (in_tree, mode.enabled)
        if not self._called_before or kind in self._eager:
            out = self.function(*args, **kwargs)
            self._called_before = True
            return out
        trace, candidates = Trace(is_joint=True), self._matching(self._candidates, in_tree, leaves)
        edges = [gradient_edge(x) if is_tensor(x) else None for x in leaves]
        start = next_seq()
        recording = lib.norch_record_begin(self.strict, line, counter, None, True)
        try:
            with trace.running():
                out = self.function(*args, **kwargs)
            results: list[Any] = []
            out_tree = flatten(out, results, is_tensor)
            if has_objects(out_tree):
                return self._refused(
                    "it returns an object that is no tensor, number, text, list, tuple or dict", out, kind
                )
            why = refusal_of(recording) or trace.add_guards(recording, self.function, leaves)
            why = why or unfit_result(recording, results) or changed_argument(args, kwargs, in_tree, leaves)
            if why is not None:
                return self._refused(why, out, kind)
            trace.compare(recording, candidates, leaves, results)
            leave = functools.partial(self._leave, kind)
            traced = TracedFunction(self.function, in_tree, trace, self._widen, leave)
            finish = functools.partial(self._finish, kind, out_tree)
            outs = traced.as_one_node(recording, leaves, results, edges, start, finish)
            if isinstance(outs, str):
                return self._refused(outs, out, kind)
            if outs is not None:
                if trace.visited:
                    return self._refused("it calls backward(), and its result has a graph", out, kind)
                if trace.keeps_result:
                    return self._refused("a tensor that it makes is kept elsewhere; return it", out, kind)
                lib.norch_record_pause(recording, leaves, len(results))
                if why := refusal_of(recording):
                    return self._refused(why, out, kind)
                recording = None  # the node owns it now
                return rebuild(out_tree, iter(outs))
            if not trace.end(recording, leaves, results, self.copy, out_tree is LEAF, self.fuse):
                why = refusal_of(recording)
                return out if self._is_for_once(why) else self._refused(why, out, kind)
            results = lib.norch_recorded_results(recording, tuple(results))
            program = Program(recording, in_tree, out_tree, self.function)
            program.trace = trace
            self._keep(program, candidates, leaves, kind)
            self._leave_stored(trace, program, results, leaves)
            return rebuild(out_tree, iter(results))
        except CaptureError as error:
            error.args = (explained(error, self.function, self._verb, recording),)
            raise
        finally:
            if recording is not None:
                lib.norch_record_cancel(recording)

    def _finish(self, kind: Any, out_tree: Any, node: TracedNode, outs: list[Any]) -> None:
        """Ends the recording of a call's two parts, or of the function only if backward() was not called."""
        recording, traced, leaves = node.recording, node.traced, node.leaves
        gradients = [g for g in node.gradients or () if g is not None]
        if kind in self._eager:
            return
        state = State()
        if lib.norch_carries(recording):
            traced.trace.on_replay(state.keep, None, None)
        try:
            if not traced.trace.end(
                recording, (*leaves, *node.grad_outputs), outs + gradients, self.copy, out_tree is LEAF, self.fuse
            ):
                self._refused(refusal_of(recording), None, kind)
                return
        except CaptureError as error:
            error.args = (explained(error, self.function, self._verb, recording),)
            raise
        program = Program(recording, traced.in_tree, out_tree, self.function)
        program.trace = traced.trace
        if traced.trace.before_run:
            state.tensors = lib.norch_written_tensors(recording)
        program.joint = JointReplay(traced, recording, node, outs, state)
        candidates = [candidate for candidate in traced.trace.candidates if candidate in self._candidates]
        self._keep(program, candidates, leaves, kind)

    def _keep(self, program: Program, candidates: list[Program], leaves: tuple[Any, ...], kind: Any) -> None:
        count = self._fruitless[kind] = self._fruitless.get(kind, 0) + 1
        refusal = self._confirm(program, candidates, leaves)
        if self._programs and self._programs[0] is program:
            self._fruitless[kind] = 0
        elif refusal or count == _MOST_FRUITLESS:
            vain = f"{count} calls in a row were recorded, and none was replayed"
            self._refused(refusal or next(iter(program.trace.changes.values()), vain), None, kind)

    def _refused(self, why: str, out: Any, kind: Any = None) -> Any:
        """Stops recording calls of this kind."""
        if self.strict:
            raise CaptureError(f"{self._verb}: {why}")
        self._eager.add(kind)
        if not self._warned:
            self._warned = True
            self._warn_of(why)
        return out

    def _leave(self, kind: Any, why: str) -> None:
        """Makes calls of this kind run in Python from here on, unless fullgraph: if a call of the function would have
        to follow a replay, the function's own graph is used."""
        if not self.strict and kind not in self._eager:
            self._refused(why, None, kind)
            self._forget([p for p in self._programs + self._candidates if p.joint and p.in_tree == kind[0]])

    def _widen(self, in_tree: Any, outputs: set[int]) -> set[int]:
        """Records for which results gradients were requested; returns all such results so far. Recordings without them
        are dropped."""
        wanted = self._wanted.setdefault(in_tree, set())
        if not outputs <= wanted:
            wanted |= outputs
            narrow = [
                program
                for program in self._programs + self._candidates
                if program.joint is not None
                and program.in_tree == in_tree
                and not wanted & set(program.joint.traced.outputs) <= set(program.joint.differentiated)
            ]
            self._forget(narrow)
        return wanted

    def _forget(self, programs: list[Program]) -> None:
        self._programs = [program for program in self._programs if program not in programs]
        self._candidates = [program for program in self._candidates if program not in programs]
        self._latest = self._program = None


class OptimizedModule(Module):
    """The result of norch.compile for a module, ``_orig_mod``. It has the module's attributes; as in PyTorch its
    state_dict() prefixes names with ``_orig_mod.``. recordings() lists its recordings, as for a compiled function.

    >>> model = norch.nn.Linear(2, 1)
    >>> compiled = norch.compile(model)
    >>> list(compiled.state_dict()), compiled.in_features, compiled.weight is model.weight
    (['_orig_mod.weight', '_orig_mod.bias'], 2, True)
    """

    _FIELDS = frozenset(("_orig_mod", "forward", "_options"))

    def __init__(self, module: Module, options: dict[str, Any]):
        super().__init__()
        self.__dict__["_options"] = options
        self._bind("_modules", "_orig_mod", module)
        self.__dict__["forward"] = _function(module, **options)

    @property
    def training(self) -> bool:  # type: ignore[override]
        """The module's mode."""
        return self._orig_mod.training

    def __getattr__(self, name: str) -> Any:
        module = self.__dict__.get("_modules", {}).get("_orig_mod")
        if module is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        forward = self.__dict__.get("forward")
        if name == "recordings" and isinstance(forward, CompiledFunction) and not hasattr(module, name):
            return forward.recordings
        return getattr(module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._FIELDS:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        (super().__delattr__ if name in self._FIELDS else self._orig_mod.__delattr__)(name)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __getitem__(self, index: Any) -> Any:
        return self._orig_mod[index]

    def __iter__(self) -> Any:
        return iter(self._orig_mod)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce__(self) -> Any:
        return type(self), (self._orig_mod, self._options)
