"""Trace: Python's notes while a function is recorded. C records the library calls (norch.Recording).

before_run, after_run  functions to call around each replay: they update hyper-parameters and step counts; after a
                       failed replay after_run gets the addresses of the hyper-parameters of completed steps
watches                options of optimizers, as guards: before_run is called only if one changed. None: always
frames                 the Python code that ran
guards                 conditions of a replay: the rows of conditions.py
backward_guards        conditions of replaying the backward part, if function and gradient are two parts
places                 {id of a container of guards: file and line that read it}; places_of_names: of attributes
candidates             recordings of earlier calls with such arguments, whose guards held before this call
written                the places that the function writes to and does not read
stores                 the tensors that it stores there; each replay stores them again
effects, appends       {name of a change there that a replay does not make: file and line}; appends: only appended to
changes                {recording of an earlier call: why it cannot be replayed, as seen in this call}
modules                {id: module} of the modules that were called
keep_alive             objects whose memory the calls use: random generators, C structs of hyper-parameters
generators             (state, seed, counter) of each generator before its first random numbers
visited                nodes whose graph backward() has freed
walked                 {older node that backward() went through: its hooks}
unfinished             collectives that were started and not waited for
is_joint               whether the function and its gradient are recorded as two parts (joint.py)
keeps_result           whether it keeps memory of a result, which replays of two parts write elsewhere
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from sys import hash_info
from typing import Any

from .._binding.library import lib
from .._binding.nvrtc import name_nvrtc
from .._package import recording as _recording
from .._package.recording import here, unseen
from .._tensor.handle import Handle, alias, next_seq
from ..autograd.autocast import fresh_cast_cache
from ..autograd.targets import reachable
from ..device import current as devices
from ..nn._watch import note_traced, watching
from ..nn.module import Module
from ..tensor import Tensor
from .conditions import FIELD, ITEM, KEYS, SIZE, ClassUnchanged, Row, Unchanged, changes, found_by
from .containers import ComputedNames, Place, Refused
from .fields import is_a, offset_of
from .frames import Frames
from .guards import Guards
from .tree import flatten, is_tensor
from .written import Source, Stores, Where, Written, are_alike, argument_of, is_tree, tensors_in

# The tensor properties that are read by these names; the numbers match csrc/python/capture/recording.h.
_READS = {
    1: frozenset(("grad",)),
    2: frozenset(("is_leaf", "grad_fn", "retains_grad", "output_nr")),
    4: frozenset(("stride", "strides")),
    8: frozenset(("storage_offset", "untyped_storage", "typed_storage", "storage")),
}
_READS_ATTRIBUTES = 16
_NODE, _GRAD = (offset_of(getattr(Tensor, name)) for name in ("_node", "_grad"))
_LEAST_ID = 1 << 12  # no object is in the first page of memory
_ADDRESSES = (1 << hash_info.width) - 1  # 32 bits in WebAssembly


class Trace:
    """See the top of the file. here.trace is this thread's current trace (norch/_package/recording.py)."""

    def __init__(self, is_joint: bool = False) -> None:
        name_nvrtc()
        _recording.traced = True
        self.is_joint = is_joint
        self.before_run: list[Callable[[], bool]] = []
        self.after_run: list[Callable[..., None]] = []
        self.watches: list[Row] | None = []
        self.frames = Frames()
        self.guards: list[Row] = []
        self.backward_guards: list[Row] = []
        self.places: dict[int, Place | None] = {}
        self.places_of_names: dict[str, Place] = {}
        self.candidates: list[Any] = []
        self.changes: dict[Any, str] = {}
        self.written: list[Written] = []
        self.stores = Stores()
        self.effects: dict[Any, Place | None] = {}
        self.appends: dict[Any, Place | None] = {}
        self.keep_alive: list[Any] = []
        self.generators: list[tuple[Any, int, int]] = []
        self.visited: set[Any] = set()
        self.walked: dict[Any, list[Any] | None] = {}
        self._began = next_seq()
        self.unfinished: set[Any] = set()
        self.modules: dict[int, Module] = {}
        self.keeps_result = False

    @contextmanager
    def running(self) -> Iterator[None]:
        """A context for the function's call."""
        outer, here.trace = here.trace, self
        try:
            with watching(note_traced), fresh_cast_cache(), self.frames.noted():
                yield
        finally:
            here.trace = outer

    # ---- called by other modules while a function is traced ------------------------------------------------------

    def on_replay(
        self, before: Callable[[], bool], after: Callable[..., None] | None, options: dict[str, Any] | None
    ) -> None:
        """before() writes numbers to C memory that the calls read, and returns whether the recording still fits;
        after() advances step counts. options: before() is called only if one of these changed; None: always."""
        self.before_run.append(before)
        if after is not None:
            self.after_run.append(after)
        if options is None:
            self.watches = None
        elif self.watches is not None:
            self.watches += [(options, ITEM, name, value) for name, value in options.items()]

    def guard(self, container: Any, key: Any, value: Any) -> None:
        """Guards that container[key], of a dict or list, is value."""
        self.guards.append((container, ITEM, key, value))

    def guard_size(self, container: Any) -> None:
        """Guards that len(container) does not change."""
        self.guards.append((container, SIZE, len(container)))

    def note_generator(self, state: Any) -> None:
        """Notes that random numbers are drawn from the generator with this state."""
        if all(state is not noted for noted, *_ in self.generators):
            self.generators.append((state, state[0], state[1]))
            self.keep_alive.append(state)

    def note_backward(self, roots: list[Any], ends: Collection[Any], frees: bool) -> None:
        """Notes that backward() walks from these nodes to ends. frees: whether it frees their graph."""
        if frees:
            self.visited |= reachable(roots, self.visited)
        for node in reachable(roots, ends):
            if node.seq < self._began and node not in ends:
                self.walked[node] = node.hooks

    # ---- the end ---------------------------------------------------------------------------------------------------

    def end(
        self, recording: Any, arguments: tuple[Any, ...], results: list[Any], copy: bool, alone: bool, fuse: bool
    ) -> bool:
        """Ends the recording. False if it cannot be replayed; norch_refusal() gives the reason."""
        if self.unfinished:
            unseen("a collective that the function begins goes on after it; wait() for its Work in the function")
        guards, watches = _by_container(self.guards), self.watches and _by_container(self.watches)
        before_run, after_run = _each(self.before_run), _each(self.after_run)
        backward = _by_container(self.backward_guards)
        restore, recorded = self.stores or None, self.stores.recorded
        lib.norch_record_conditions(
            recording, guards, backward, watches, before_run, after_run, restore, recorded, self.keep_alive
        )
        return lib.norch_record_end(recording, arguments, tuple(results), copy, alone, fuse)

    # ---- guards ----------------------------------------------------------------------------------------------------

    def add_guards(self, recording: Any, function: Any, leaves: tuple[Any, ...]) -> str | None:
        """Guards everything that Python read. Returns a text if a value cannot be compared."""
        for name, value in vars(devices).items():
            self.guard(vars(devices), name, value)
        return self._add_guards(self.guards, recording, function, leaves)

    def add_backward_guards(self, recording: Any) -> str | None:
        """Guards everything that Python read in the backward part."""
        return self._add_guards(self.backward_guards, recording, None, ())

    def _add_guards(self, rows: list[Row], recording: Any, function: Any, leaves: tuple[Any, ...]) -> str | None:
        frames, self.frames = self.frames, Frames()
        try:
            if frames.refusal is not None:
                raise Refused(frames.refusal[0], frames.refusal[1:])
            try:
                guards = self._collect(Guards(frames), function, leaves)
            except ComputedNames:
                guards = self._collect(Guards(frames, computes_names=True), function, leaves)
        except Refused as error:
            text = f"the function cannot be replayed, as {error}"
            return text if error.place is None else f"{text}\n  at {error.place[0]}:{error.place[1]}"
        self.modules = guards.modules
        rows += guards.rows
        self.written += guards.written
        self.places.update(guards.places)
        self.places_of_names.update(guards.places_of_names)
        for module in guards.modules.values():
            rows += (row for row in _rows_of_module(module) if not guards.is_only_written(row[2]))
        reads = sum(number for number, names in _READS.items() if not names.isdisjoint(guards.names))
        reads += _READS_ATTRIBUTES * guards.reads_optional_attributes
        asks_for_ids = guards.asks_for_ids or "__hash__" in guards.names
        left = [x for w in guards.written for x in w.tensors() if not lib.norch_is_external(recording, x)]
        lib.norch_record_read(recording, guards.tensors + left, reads, _ids_in(guards.rows) if asks_for_ids else [])
        for x in guards.tensors:
            if not lib.norch_is_external(recording, x):  # made by the function, so C has no earlier version
                rows.append((x, FIELD, _NODE, x._node))
                if "grad" in guards.names:
                    rows.append((x, FIELD, _GRAD, x._grad))
        return None

    def _collect(self, guards: Guards, function: Any, leaves: tuple[Any, ...]) -> Guards:
        guards.modules.update(self.modules)
        guards.collect(function, leaves, self.walked, self.is_joint)
        collected: set[int] = set()
        while modules := [module for key, module in guards.modules.items() if key not in collected]:
            for module in modules:
                collected.add(id(module))
                guards.guard_layer(module)
        guards.guard_attributes_of_tensors()
        return guards

    def compare(self, recording: Any, candidates: list[Any], leaves: tuple[Any, ...], results: list[Any]) -> None:
        """Compares this run with earlier ones with such arguments. Records in self.changes the recordings that fitted
        before it and no longer do: the function changes what it reads. Replacing a tensor by a new one like it is no
        such change if both runs make the same calls, because then no call reads the old tensor."""
        self.candidates = candidates
        self._note_stores(recording, candidates, leaves, results)
        for program in candidates:
            earlier = program.trace
            anew = [(w.name, w.place, x) for w in earlier.written for x in w.replaced()]
            for w in earlier.written:
                if w.is_changed(self.stores):
                    (self.appends if w.use == "appended" else self.effects)[w.name] = w.place
            if not lib.norch_guards_hold(program.recording):
                for row in changes(earlier.guards):
                    now = found_by(row[0], row[2]) if row[1] == ITEM and len(row) == 4 else None
                    if (
                        not are_alike(row[-1], now)
                        or lib.norch_is_external(recording, now)
                        or any(lib.norch_share_storage(row[-1], x) for x in results)
                    ):
                        self.changes.setdefault(program, _changed(row, earlier.place_of(row)))
                    else:
                        anew.append((row[2], earlier.place_of(row), now))
            for name, place, x in anew:
                if self.stores.puts(x):
                    continue
                if lib.norch_is_external(recording, x):
                    self.effects[name] = place
                elif argument_of(x, tuple(results)) is not None:
                    self.keeps_result = True
                    if any(x is r for r in results):
                        self.keep_alive.append(alias(x))  # so that replays write to its memory

    def _note_stores(self, recording: Any, candidates: list[Any], leaves: tuple[Any, ...], results: list[Any]) -> None:
        """Notes the values that the function stored: new tensors, and other values that differ from the previous run. A
        value that both runs left may be older than the function; if so, it becomes a condition."""
        earlier = candidates[-1].trace.written if candidates else []
        before = {where: one for w in earlier for where, one in w.before.items()}
        left = {where: value for w in self.written for where, value in w.places()}
        for where, value in left.items():
            tensors = tensors_in(value)
            new = [x for x in tensors if not lib.norch_is_external(recording, x)]
            positions = [i for x in tensors if (i := argument_of(x, leaves)) is not None]
            is_new = where in before and before[where]() is not value
            has_tree = is_tree(value)
            if (positions and is_new and has_tree) or (
                new and not positions and (is_new or is_a(value, (Handle, tuple)))
            ):
                self._add_store(recording, where, value, has_tree, leaves, results)
            elif is_a(value, Handle) and where in before and not is_new:
                self.guards.append(where.row(value))
                in_each_call = [leaves[i] for i in positions]  # the same arguments in each call
                lib.norch_record_read(recording, in_each_call, 0, [])

    def _add_store(
        self, recording: Any, where: Where, value: Any, has_tree: bool, leaves: tuple[Any, ...], results: list[Any]
    ) -> None:
        tensors = tensors_in(value)
        is_condition = any(row[-1] is value for row in self.guards)  # the function also reads that place
        if has_tree and not is_condition:
            held: list[Any] = []
            flatten(value, held, is_tensor)
            sources = [Source(x, recording, results, leaves) for x in held]
            self.keeps_result |= any(source.shares_result for source in sources)
            self.stores.add(where, value, sources)
        else:
            self.keeps_result |= any(argument_of(x, tuple(results)) is not None for x in tensors)
            self.stores.add(where, value, None)
            self.keep_alive += [alias(x) for x in tensors if any(x is r for r in results)]  # replays write to these

    def place_of(self, row: Row) -> Place | None:
        """File and line of the read that a guard compares."""
        by_name = self.places_of_names.get(row[2]) if type(row[2]) is str else None
        return self.places.get(id(row[0])) or by_name


def _changed(row: Row, place: Place | None) -> str:
    key = f" ({row[2]!r})" if type(row[2]) is str else ""
    text = f"the function changes a value of Python's that it reads{key}, which a replay would not; "
    text += "keep it in a tensor that the function writes to, or pass it as an argument"
    return text if not place else f"{text}\n  at {place[0]}:{place[1]}"


def _rows_of_module(module: Module) -> Iterator[Row]:
    """Guards of a module. Parameters, buffers and children are attributes too (nn/_registry.py)."""
    attributes = module.__dict__
    for name, value in attributes.items():
        if name == "_modules" and value:  # containers such as ModuleList iterate over their children
            yield value, KEYS, None, tuple(value)
        if not name.startswith("_") or name in module._parameters or name in module._buffers:
            yield attributes, ITEM, name, value


def _by_container(guards: list[Row]) -> list[Row]:
    """The guards without duplicates, sorted so that those of a container are adjacent."""
    once = {(id(row[0]), row[1], row[2] if type(row[2]) in (str, int) else (id(row[2]),)): row for row in guards}
    return sorted(once.values(), key=lambda row: (id(row[0]), row[1] >= FIELD))


def _ids_in(guards: list[Row]) -> list[int]:
    """The ids of tensors that numbers in guards may be, from id() or hash()."""
    ids: set[int] = set()
    values = [one for row in guards for one in (row[0].before if type(row[0]) is Unchanged else row[2:])]
    values += [one for row in guards if type(row[0]) is ClassUnchanged for inner in row[0].rows for one in inner[2:]]
    while values:
        value = values.pop()
        if type(value) is tuple:
            values += value
        elif type(value) is int and _LEAST_ID < abs(value) < 1 << 63:
            address = value & _ADDRESSES
            address = (address << 4 | address >> _ADDRESSES.bit_length() - 4) & _ADDRESSES
            ids |= {value, address & (1 << 63) - 1}  # CPython: hash() is id() rotated by 4 bits
    return sorted(ids)


def _each(functions: list[Callable[..., Any]]) -> Callable[..., Any] | None:
    """One function that calls all functions, and returns False if one does; None if there are none."""
    if len(functions) < 2:
        return functions[0] if functions else None
    return lambda *done: all(function(*done) is not False for function in functions)
