"""Optimizers whose step is a row of csrc/optim.def: one call of the library updates all tensors of a group.

A subclass names its row, and says which optional state tensors of the row a group has. Each group has a C struct of the
row's hyper-parameters, to which a step writes the group's options. The struct keeps its address, so a replayed step
reads the current values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._binding.buffers import address, struct_of_doubles
from .._binding.header import listed
from .._binding.library import lib
from .._package.recording import here, unseen
from ..errors import DeviceError, Error
from ..ops.create import full_like
from ..tensor import Tensor
from .optimizer import Elementwise, have_no_gradient

STATES = 3  # the number of state tensors of a call

Columns = tuple[list[Tensor], list[Tensor], list[Tensor] | None, list[Tensor] | None, list[Tensor] | None]


class Row(NamedTuple):
    """A row of csrc/optim.def."""

    kind: int  # its number
    hyper: type  # the C struct of its hyper-parameters
    fill: Any  # fill(optimizer, hyper, group) writes a group's options to the struct
    counts: bool  # whether the step count is a hyper-parameter
    states: tuple[str | None, ...]  # STATES names; None where the row has fewer


# Hyper-parameters that are not options under that name, or that _fill_step() writes.
_VALUES = {
    "beta1": "group['betas'][0]", "beta2": "group['betas'][1]", "first": "0", "shrink": "group['etas'][0]",
    "grow": "group['etas'][1]", "smallest": "group['step_sizes'][0]", "largest": "group['step_sizes'][1]",
}  # fmt: skip
_OF_STEPS = ("step", "gain", "ahead", "rate", "trusted")


def _read_row(kind: int, name: str) -> Row:
    fields = lib.norch_optim_hyper(kind).decode().split(", ")
    lines = [f"hyper.{name} = {_VALUES.get(name) or f'group[{name!r}]'}" for name in fields if name not in _OF_STEPS]
    options: dict[str, Any] = {}
    source = "def fill(self, hyper, group):\n    " + "\n    ".join(lines)  # a loop would take 1.5 times as long
    exec(compile(source, __file__, "exec"), options)
    states: list[str | None] = lib.norch_optim_state(kind).decode().split(", ")
    states += [None] * (STATES - len(states))
    return Row(kind, struct_of_doubles(name, fields), options["fill"], "step" in fields, tuple(states))


ROWS = {name: _read_row(kind, name) for kind, name in enumerate(listed(lib.norch_optim_name))}


class Fused(Elementwise):
    """Base of the optimizers with a kernel. A subclass names its row."""

    row: Row
    takes_complex = True
    _fill: Any

    def __init_subclass__(cls, row: str = "", **named: Any) -> None:
        super().__init_subclass__(**named)
        if row:
            cls.row, cls._fill = ROWS[row], ROWS[row].fill

    def _kept(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        """The names of the state tensors of a call, in the row's order; None where the group has no such tensor."""
        return self.row.states

    def _first(self, group: dict[str, Any], name: str) -> float:
        """The initial value of a state tensor."""
        return 0.0

    def _fill_step(self, hyper: Any, entry: dict[str, Any], group: dict[str, Any]) -> None:
        """Writes the hyper-parameters that depend on earlier steps: at least the next step's number."""
        hyper.step = entry["step"] + 1

    def _count(self, entry: dict[str, Any], group: dict[str, Any]) -> None:
        """Counts a completed step."""
        entry["step"] += 1

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates all parameters that have a gradient. Returns the closure's result, or None without a closure."""
        loss = None if closure is None else self._loss(closure)
        self._opt_called = True
        groups, hypers, trace = self._groups(), self._hyper, here.trace
        if trace is not None:
            self._guard_groups(trace)
        while len(hypers) < len(groups):
            hyper = self.row.hyper()
            hypers.append((hyper, address(hyper)))
        for group, (hyper, at) in zip(groups, hypers):
            params, grads = with_gradients(group["params"])
            if trace is not None and not any(grad.is_sparse for grad in grads):
                self._record_step(trace, params, grads, group)
            elif params:
                if trace is not None:
                    unseen("a gradient is sparse")
                self._fill(hyper, group)
                try:
                    self._advance(params, grads, group, hyper, at)
                except DeviceError:
                    if not any(grad.is_sparse for grad in grads):
                        raise
                    self._advance_sparse(params, grads, group, hyper, at)
        return loss

    def _record_step(self, trace: Any, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]) -> None:
        """Records the step of a group: parameters with equal step counts share a struct of options."""
        if any(isinstance(option, Tensor) for option in group.values()):
            unseen("an option of an optimizer is a tensor")
        if len(params) < len(group["params"]):
            trace.on_replay(have_no_gradient(group["params"]), None, None)
        if not params:
            return
        entries = [self.state.get(param) or (self._entry(param, group) if self.row.counts else {}) for param in params]
        if any(isinstance(entry.get("step"), Tensor) for entry in entries):
            unseen("a step count of an optimizer is a tensor")
        for chosen, theirs, _ in by_step(params, grads, entries) if self.row.counts else ((params, grads, entries),):
            hyper = self.row.hyper()
            self._fill(hyper, group)
            self._advance(chosen, theirs, group, hyper, address(hyper))
            self._record(trace, chosen, group, hyper)

    def _record(self, trace: Any, params: list[Tensor], group: dict[str, Any], hyper: Any) -> None:
        """Adds the callbacks and guards of this step to a recording (norch/program/trace.py)."""
        state, kept, counts, at = self.state, self._structure(group), self.row.counts, address(hyper)
        only_counts = counts and type(self)._count is Fused._count
        entries = [state[param] for param in params if param in state]

        def refresh() -> bool:
            if self._structure(group) != kept or not isinstance(group["lr"], (float, int)):
                return False
            self._fill(hyper, group)
            if counts:
                first = entries[0]["step"]
                for entry in entries:
                    if entry["step"] != first:  # another step came in between
                        return False
                self._fill_step(hyper, entries[0], group)
            return True

        def advance(done: tuple[Any, ...] = (at,)) -> None:
            if at not in done:  # the replay failed before this step
                return
            if only_counts:
                step = entries[0]["step"] + 1  # refresh() has checked that all have this count
                for entry in entries:
                    entry["step"] = step
            else:
                for entry in entries:
                    self._count(entry, group)

        trace.on_replay(refresh, advance if entries and "step" in entries[0] else None, None if counts else group)
        trace.keep_alive.append(hyper)
        trace.guard(self.__dict__, "state", state)
        for param in params:
            if param in state:
                trace.guard(state, param, state[param])
                for name, value in state[param].items():
                    if isinstance(value, Tensor):
                        trace.guard(state[param], name, value)

    def _structure(self, group: dict[str, Any]) -> Any:
        """The options that select another kernel or more state, and not only a number that the kernel reads."""
        return self._kept(group)

    step.recordable = True  # type: ignore[attr-defined]

    def _advance(self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any], hyper: Any, at: int) -> None:
        """Updates these parameters of a group. `at` is the address of hyper."""
        state, kept, row = self.state, self._kept(group), self.row
        entries = [state.get(param) or self._entry(param, group) for param in params]
        for chosen, theirs, states in by_step(params, grads, entries) if row.counts else ((params, grads, entries),):
            if row.counts:
                self._fill_step(hyper, states[0], group)
            try:
                columns = _columns(chosen, theirs, states, kept)
            except KeyError:  # an option that needs more state was set after the first step
                for param, entry in zip(chosen, states, strict=True):
                    self._complete(entry, param, group)
                columns = _columns(chosen, theirs, states, kept)
            lib.norch_optim_step(row.kind, columns, at)
            lib.norch_bump(chosen, *columns[2:])
            for entry in states:
                self._count(entry, group)

    def _advance_sparse(self, params: list[Tensor], grads: Any, group: dict[str, Any], hyper: Any, at: int) -> None:
        """_advance() for sparse gradients, which the kernels cannot read."""
        raise Error(f"{type(self).__name__} does not support sparse gradients, please consider SparseAdam instead")

    def _entry(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        entry = self.state[param] = {"step": 0}
        self._complete(entry, param, group)
        return entry

    def _complete(self, entry: dict[str, Any], param: Tensor, group: dict[str, Any]) -> None:
        for name in self._kept(group):
            if name and name not in entry:
                first = self._first(group, name)  # twice for a complex parameter, whose elements are pairs
                value: Any = complex(first, first) if param.is_complex() else first
                entry[name] = full_like(param.detach(), value)


def _columns(
    params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]], kept: tuple[str | None, ...]
) -> Columns:
    first, second, third = kept
    return (
        params,
        grads,
        [entry[first] for entry in states] if first else None,
        [entry[second] for entry in states] if second else None,
        [entry[third] for entry in states] if third else None,
    )


def with_gradients(params: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The parameters that have a gradient, and the gradients."""
    chosen = []
    grads = []
    for param in params:
        grad = param._grad
        if grad is not None:
            chosen.append(param)
            grads.append(grad)
    return chosen, grads


Bucket = tuple[list[Tensor], list[Tensor], list[dict[str, Any]]]


def by_step(params: list[Tensor], grads: list[Tensor], entries: list[dict[str, Any]]) -> list[Bucket]:
    """Groups parameters by step count, which differs if a parameter had no gradient in an earlier step."""
    steps = [entry["step"] for entry in entries]
    if steps.count(steps[0]) == len(steps):
        return [(params, grads, entries)]
    buckets: dict[int, Bucket] = {}
    for param, grad, entry in zip(params, grads, entries, strict=True):
        bucket = buckets.setdefault(entry["step"], ([], [], []))
        bucket[0].append(param)
        bucket[1].append(grad)
        bucket[2].append(entry)
    return list(buckets.values())
