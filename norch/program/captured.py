"""``capture()``: decides which calls of a function are traced and which are replayed, and explains refusals.

Calls whose arguments have the same shapes, dtypes and values (flatten() of tree.py) go through these stages:

    1   eager        the first call: creates .grad and the states of optimizers
    2   traced       gives a *candidate*: a recording of the library calls that the function makes
    3   traced       the recording is accepted if it equals a candidate; else it is another candidate, up to
                     _CANDIDATES
    4   replayed     from here on, while the guards of the recording hold (trace.py)
"""

from __future__ import annotations

import functools
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable
from traceback import walk_tb
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from .._binding.library import lib
from .._tensor.handle import alias, counter
from ..autograd import saved_hooks
from ..autograd.anomaly import is_anomaly_enabled
from ..autograd.autocast import current
from ..autograd.levels import within
from ..autograd.node import Leaf
from ..errors import PACKAGE, CaptureError, Error, frame_of_user, stacklevel_of_user
from ..tensor import Tensor
from .conditions import same
from .listing import Program
from .trace import Trace
from .tree import LEAF, flatten, is_tensor, rebuild

_CANDIDATES = 4  # differing recordings after which a function is refused
_LEAF = (
    "an argument that requires a gradient must be the same tensor in each call; pass one without, and call "
    "x.detach().requires_grad_() in the function"
)
_MOST_UNUSED = 20  # unused recordings in a row after which a warning is given

_ALL: weakref.WeakSet[CapturedFunction] = weakref.WeakSet()

# {start of a refusal: advice to the user}
_ADVICE = {
    "Python reads the": "return the tensor, and read it after the call",
    "the shape of a result": "use where() or multiply by a mask, or leave this part out of the function",
    "the memory of a tensor": "write into it with copy_()",
    "a tensor gets another shape": "take a view of it, such as x.t(), and use that",
    "a tensor is made over": "pass it as an argument",
    "a call failed": "do not catch its exception in the function",
    "LAPACK reads": "call it outside the function",
    "load() reads": "load outside the function",
    "a schedule": "call it outside the function",
    "a gradient from before": "compute it in the function",
    "is gone after it": "write into it with copy_()",
    "an option of an optimizer": "set it to a number, such as group['lr'] = float(lr)",
    "the stream of random numbers": "do it outside the function",
}

_LIVE = (
    "a result requires grad, and backward() was not called on it: call it in the function, or compute under no_grad()"
)
_DIFFERS = (
    "calls with the same arguments did different things: a number of Python's changes from call to call, or a tensor "
    "is replaced; pass what changes as a tensor, and write into tensors with copy_()"
)

_NO_RECORDING = "there is no recording for these arguments; call the function four times with such first"

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")


@overload
def capture(
    function: Callable[P, R], *, strict: bool = ..., copy: bool = ..., limit: int = ..., fuse: bool = ...
) -> CapturedFunction[P, R]: ...
@overload
def capture(
    function: None = ..., *, strict: bool = ..., copy: bool = ..., limit: int = ..., fuse: bool = ...
) -> Callable[[Callable[P, R]], CapturedFunction[P, R]]: ...
def capture(
    function: Callable[..., Any] | None = None,
    *,
    strict: bool = True,
    copy: bool = True,
    limit: int = 8,
    fuse: bool = True,
) -> Any:
    """Returns a function that records the library calls of function, and later replays them without Python. Results do
    not require grad. docs/capture.md explains its use and limits, docs/capture_inside.md how it works.

    The first call runs normally, the next two are recorded. If both recordings have the same library calls, later calls
    replay them. A recording fits arguments of the same structure with tensors of the same shapes, strides and dtypes
    and equal other values, under the same module modes, grad mode, default dtype and autocast. Other calls get a new
    recording. Effects in Python, such as count += 1, happen only in the first three calls.

    strict   what cannot be recorded raises CaptureError with file and line: reading elements (item(), print(x),
             if x > 0) and shapes that depend on elements (nonzero(), x[mask]). False: warns, and calls function
             normally from then on
    copy     False: results are tensors of the recording, which the next replay overwrites
    limit    the number of recordings to keep, the last used ones; ValueError if it is less than 1
    fuse     whether chains of pointwise operations run tile by tile (on CUDA: in one kernel)

    >>> w = norch.zeros(2, requires_grad=True)
    >>> optimizer = norch.optim.SGD([w], lr=0.5)
    >>> @norch.capture
    ... def step(x):
    ...     loss = ((w - x) ** 2).sum()
    ...     optimizer.zero_grad()
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> [step(norch.tensor([3.0, 4.0])).item() for _ in range(5)]
    [25.0, 0.0, 0.0, 0.0, 0.0]
    """
    if function is None:
        return functools.partial(capture, strict=strict, copy=copy, limit=limit, fuse=fuse)
    if not callable(function):
        raise TypeError(f"capture: expected a function, not {type(function).__name__}")
    if not isinstance(limit, int) or limit < 1:
        raise ValueError(f"capture: limit, the number of recordings to keep, must be at least 1, not {limit!r}")
    return CapturedFunction(function, strict, copy, limit, fuse)


if TYPE_CHECKING:

    class CapturedBase:
        """Base of captured functions. A call replays _latest, the recording of _program. If there is none, or its
        conditions do not hold, C calls _call_slow_path() (csrc/python/capture/captured.c)."""

        _latest: Any
        _program: Any
else:
    CapturedBase = lib.norch_captured_class(sys.implementation.name == "cpython" and sys.version_info < (3, 13), Leaf)


class CapturedFunction(CapturedBase, Generic[P, R]):
    """The result of norch.capture(function), called like function.

    recordings()   the number of recordings that can be replayed
    reset()        discards them; the next call counts as the first
    program        the recording that was made or replayed last, to print, or None
    replay(n, ...) runs the recorded library calls n times
    profile(...)   replays a call, and returns a table of the times of its library calls
    """

    _verb = "capture"
    _warns_of_appends = True

    def __init__(self, function: Callable[P, R], strict: bool, copy: bool, limit: int, fuse: bool = True):
        functools.update_wrapper(self, function, updated=())
        self.function, self.strict, self.copy, self.limit, self.fuse = function, strict, copy, limit, fuse
        self.reset()
        _ALL.add(self)

    def reset(self) -> None:
        """Discards all recordings, and frees their memory."""
        self._programs: list[Program] = []
        self._candidates: list[Program] = []
        self._latest = self._program = None  # the first program, and its recording if arguments are not nested
        self._called_before = self._gave_up = self._told = False
        self._unused = 0

    def recordings(self) -> int:
        """The number of recordings that can be replayed."""
        return len(self._programs)

    @property
    def program(self) -> Program | None:
        """The recording that was made or replayed last."""
        return self._programs[0] if self._programs else None

    def profile(self, *args: Any, **kwargs: Any) -> str:
        """Replays a call with these arguments, and returns a table of the times of its library calls. Error if there is
        no recording for these arguments."""
        program, out = self._replay_matching(lib.norch_replay_timed, *_flatten_arguments(args, kwargs))
        if program is None:
            raise Error(f"profile: {_NO_RECORDING}")
        return program.timed(out[1])

    def replay(self, times: int, *args: Any, **kwargs: Any) -> None:
        """Runs the recorded library calls for these arguments several times, to time them without Python. Guards are
        checked once; step counts of optimizers do not advance. Error if there is no recording for these arguments."""
        program, _ = self._replay_matching(
            lambda recording, leaves: lib.norch_replay_repeated(recording, leaves, times),
            *_flatten_arguments(args, kwargs),
        )
        if program is None:
            raise Error(f"replay: {_NO_RECORDING}")

    def __getstate__(self) -> dict[str, Any]:
        """The state for copies and pickles: without recordings, which hold addresses of this process."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_") or name[1] == "_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.reset()
        _ALL.add(self)

    @overload
    def __get__(self, instance: None, owner: Any = ...) -> CapturedFunction[P, R]: ...
    @overload
    def __get__(self: CapturedFunction[Concatenate[T, Q], R], instance: T, owner: Any = ...) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    # ---- calls that the latest recording does not fit ------------------------------------------------------------

    def _call_slow_path(self, /, *args: Any, **kwargs: Any) -> Any:
        # norch_recording: an enclosing captured function is traced. Inside vmap, batching rules make other calls.
        if self._gave_up or lib.norch_recording() or is_anomaly_enabled() or within.levels:
            return self.function(*args, **kwargs)
        if saved_hooks.are_active() or _is_overridden():
            return self.function(*args, **kwargs)
        in_tree, leaves = _flatten_arguments(args, kwargs)
        program, out = self._replay_matching(lib.norch_replay, in_tree, leaves)
        if program is not None:
            self._put_first(program)
            return self._replayed(program, out, leaves)
        if any(lib.norch_is_running(program.recording) for program in self._programs):  # in another thread
            return self.function(*args, **kwargs)
        return self._trace_call(args, kwargs, leaves, in_tree)

    def _replay_matching(
        self, run: Callable[..., Any], in_tree: Any, leaves: tuple[Any, ...]
    ) -> tuple[Program | None, Any]:
        """The first program that fits the arguments, and run(its recording, leaves); (None, None) if none does."""
        for program in self._programs:
            if program.in_tree == in_tree and (out := run(program.recording, leaves)) is not NotImplemented:
                return program, out
        return None, None

    def _replayed(self, program: Program, out: Any, leaves: tuple[Any, ...]) -> Any:
        return out if program.out_tree is LEAF else rebuild(program.out_tree, iter(out))

    def _put_first(self, program: Program) -> None:
        self._programs = [program, *(other for other in self._programs if other is not program)][: self.limit]
        self._program, self._latest = program, program.recording if program.is_flat else None

    # ---- tracing -------------------------------------------------------------------------------------------------

    def _trace_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: tuple[Any, ...], in_tree: Any) -> Any:
        trace, candidates, recording = Trace(), [], None
        if self._called_before:
            candidates = self._matching(self._candidates, in_tree, leaves)
            earlier = candidates[-1].recording if candidates else None
            recording = lib.norch_record_begin(self.strict, line, counter, earlier, False)
        try:
            with trace.running():
                out = self.function(*args, **kwargs)
            results: list[Any] = []
            out_tree = flatten(out, results, is_tensor)
            if any(_is_in_graph(x) and x._node not in trace.visited for x in results):
                return self._refused(_LIVE, out)
            self._called_before = True
            if recording is not None:
                refusal = trace.add_guards(recording, self.function, leaves) or unfit_result(recording, results)
                if refusal := refusal or changed_argument(args, kwargs, in_tree, leaves):
                    return self._refused(refusal, out)
                trace.compare(recording, candidates, leaves, results)
                if trace.end(recording, leaves, results, self.copy, out_tree is LEAF, self.fuse):
                    results = lib.norch_recorded_results(recording, tuple(results))
                    program = Program(recording, in_tree, out_tree, self.function)
                    program.trace = trace
                    refusal = self._confirm(program, candidates, leaves)
                    self._leave_stored(trace, program, results, leaves)
                elif self._is_for_once(refusal := refusal_of(recording)):
                    refusal = None
                if refusal:
                    return self._refused(refusal, out)
            return rebuild(out_tree, iter(each_once(lambda x: alias(x) if _is_in_graph(x) else x, results)))
        except CaptureError as error:
            error.args = (explained(error, self.function, self._verb, recording),)
            raise
        finally:
            if recording is not None:
                lib.norch_record_cancel(recording)

    def _leave_stored(self, trace: Trace, program: Program, results: Any, leaves: tuple[Any, ...]) -> None:
        """Replaces tensors of the recording that the function stored by copies if replays will overwrite them."""
        if trace.stores and self._programs and self._programs[0] is program:
            trace.stores(tuple(results), leaves)

    def _is_for_once(self, why: str) -> bool:
        """Whether only this call is not recorded, because it set a gradient that was removed since."""
        return bool(self._programs) and why.startswith("a gradient from before")

    def _refused(self, why: str, out: Any) -> Any:
        if self.strict:
            raise CaptureError(f"{self._verb}: {why}")
        self._gave_up = True
        self._programs, self._candidates, self._latest, self._program = [], [], None, None
        self._warn_of(why)
        return out

    def _warn_of_effects(self, trace: Trace) -> None:
        effects = {**trace.effects, **(trace.appends if self._warns_of_appends else {})}
        if effects and not self._told:
            self._told = True
            named = [f"{name!r}" + (f" at {place[0]}:{place[1]}" if place else "") for name, place in effects.items()]
            warnings.warn(
                f"{self._verb}: {_name_of(self.function)} changes Python's objects, which replays do not: "
                f"{', '.join(named)}; do so after the call, with what it returns",
                stacklevel=stacklevel_of_user(),
            )

    def _warn_of(self, why: str) -> None:
        text = f"{self._verb}: {_name_of(self.function)} is not recorded, but called as it is: {advised(why)}"
        warnings.warn(text, stacklevel=stacklevel_of_user())

    def _matching(self, programs: list[Program], in_tree: Any, leaves: tuple[Any, ...]) -> list[Program]:
        return [p for p in programs if p.in_tree == in_tree and lib.norch_matches(p.recording, leaves)]

    def _confirm(self, program: Program, candidates: list[Program], leaves: tuple[Any, ...]) -> str | None:
        """Accepts the program if it equals a candidate, else makes it one. Returns a reason for refusal if there are
        _CANDIDATES already, else None."""
        differ = [lib.norch_differs(candidate.recording, program.recording, False) for candidate in candidates]
        if -1 in differ:
            equal = candidates[differ.index(-1)]
            if (change := program.trace.changes.get(equal)) is not None:
                return change
            self._warn_of_effects(program.trace)
            program.trace = None
            self._candidates = [candidate for candidate in self._candidates if candidate is not equal]
            outdated = [  # the same calls on other memory: tensors were replaced
                other
                for other in self._matching(self._programs, program.in_tree, leaves)
                if lib.norch_differs(other.recording, program.recording, True) < 0
            ]
            self._programs = [other for other in self._programs if other not in outdated]
            self._put_first(program)
            self._unused = 0
            return None
        self._unused += 1
        if self._unused == _MOST_UNUSED:
            fresh = self._verb == "capture" and any(isinstance(x, Tensor) and x.requires_grad for x in leaves)
            warnings.warn(
                f"{self._verb}: {_MOST_UNUSED} calls in a row were recorded, and none was replayed: "
                f"{_name_of(self.function)} takes or reads what changes from call to call; "
                f"{_LEAF if fresh else 'pass that as a tensor, or raise limit'}",
                stacklevel=stacklevel_of_user(),
            )
        if len(candidates) == _CANDIDATES:
            line = lib.norch_line_of(program.recording, differ[-1])
            return _DIFFERS if line is None else f"{_DIFFERS}\n  first at {line[0]}:{line[1]}"
        self._candidates = [*self._candidates, program][-2 * self.limit :]
        return None


def _is_overridden() -> bool:
    """Whether a TorchFunctionMode gets this thread's calls, or overriding subclasses are disabled in it."""
    override = sys.modules.get("norch._package.override")
    return override is not None and (bool(override.state.modes) or override.state.disabled)


def _is_in_graph(x: Any) -> bool:
    """Whether x requires grad and is not a leaf."""
    return x._node is not None and type(x._node) is not Leaf


def unfit_result(recording: Any, results: list[Any]) -> str | None:
    """Why a replay, which makes plain tensors, cannot return such results; None if it can."""
    for x in results:
        if lib.norch_is_external(recording, x):
            continue
        if type(x) is not Tensor:
            return f"a result is of class {type(x).__name__}; return a plain Tensor, and make one of that class of it"
        if type(x._node) is Leaf:
            return "a result that it makes requires grad; call requires_grad_() after the call"
        if x._grad is not None:
            return "a result that it makes has a .grad; return that too"
        if x.__dict__:
            return f"a result has an attribute ({next(iter(x.__dict__))}) of the program's; set it after the call"
    return None


def changed_argument(args: Any, kwargs: Any, in_tree: Any, leaves: tuple[Any, ...]) -> str | None:
    """Why a call that has changed a list or dict among its arguments is not replayed; None if it has not."""
    tree, now = _flatten_arguments(args, kwargs)
    if tree == in_tree and all(a is b or same(a, b) for a, b in zip(leaves, now, strict=True)):
        return None
    return "it changes a list or dict that is an argument; return what it puts there"


def _name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _flatten_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """The structure of the arguments (with the autocast setting if there is one), which is the key of a recording, and
    their leaves."""
    leaves: list[Any] = []
    in_tree = flatten((args, kwargs), leaves)
    setting = current().read
    return in_tree if setting is None else (*in_tree, setting), tuple(leaves)


def reset_all() -> None:
    """Discards the recordings of all functions."""
    for function in list(_ALL):
        function.reset()


def line() -> tuple[str, int] | None:
    """File and line of the innermost Python code outside norch."""
    frame = frame_of_user(sys._getframe())
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def refusal_of(recording: Any) -> str:
    """Why a recording cannot be replayed, with advice and the line of the user's program; empty if it can."""
    why, place = lib.norch_refusal(recording), lib.norch_refused_line(recording)
    return why or "" if not why or place is None else f"{advised(why)}\n  at {place[0]}:{place[1]}"


def advised(text: str) -> str:
    for start, advice in _ADVICE.items():
        if start in text and "\n  " not in text:  # the name of an operation may precede it
            return f"{text if start.startswith('is') else text[text.index(start) :]}; {advice}"
    return text


def explained(error: CaptureError, function: Any, verb: str, recording: Any) -> str:
    """The message of error, with advice and the line of the user's program."""
    text = str(error)
    if "\n  " in text:  # added by a captured function inside this one
        return text
    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    outside = [(one.co_filename, line) for one, line in frames if not one.co_filename.startswith(PACKAGE)]
    place = outside[-1] if outside else None
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if place is not None and code is not None and place[1] and all(one is not code for one, _ in frames):
        place = (code.co_filename, code.co_firstlineno)  # raised after the function
    if place is None and recording is not None:  # at the end of the recording
        place = lib.norch_refused_line(recording)
    if place is None and code is not None:
        place = (code.co_filename, code.co_firstlineno)
    text = f"{verb}: " + advised(text.removeprefix("capture: ").removeprefix(f"{verb}: "))
    return text if place is None else f"{text}\n  at {place[0]}:{place[1]}"


def each_once(function: Callable[[Any], Any], results: Iterable[Any]) -> list[Any]:
    """function(result) for each result; results that are the same object share one call."""
    by_id: dict[int, Any] = {}
    for x in results:
        if id(x) not in by_id:
            by_id[id(x)] = function(x)
    return [by_id[id(x)] for x in results]
