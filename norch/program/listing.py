"""Program: a recording that prints its calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from .._binding.header import listed
from .._binding.library import lib
from ..dtype import DTYPES
from .picture import arrows, draw, sizes_text
from .tree import LEAF

_ROWS = listed(lib.norch_op_name)
_OPTIMIZERS = listed(lib.norch_optim_name)
# The families of csrc/core/backend.h, with the names of their kinds.
_FAMILIES: list[tuple[str, Any]] = [
    ("pointwise", _ROWS),
    ("reduction", _ROWS),
    ("matmul", None),
    ("copy", None),
    ("index", "gather scatter scatter_add scatter_prod scatter_amax scatter_amin offsets".split()),
    ("random", "uniform normal integers bernoulli permutation dropout".split()),
    ("optimizer", _OPTIMIZERS),
    ("scan", "cumsum cumprod logcumsumexp cummax cummin".split()),
    ("sort", "argsort search order_index".split()),
    ("softmax", "softmax log_softmax softmax_backward log_softmax_backward".split()),
    ("conv", "forward input_gradient weight_gradient".split()),
    ("pool", "max max_backward avg avg_backward".split()),
    ("normalize", "forward backward".split()),
    ("attention", "forward backward fused fused_backward".split()),
    ("batch_norm", "training evaluation training_backward evaluation_backward".split()),
    ("cross_entropy", "forward backward nll nll_backward".split()),
    ("recurrent", "lstm gru lstm_backward gru_backward".split()),
    ("quantized", "linear weight dynamic".split()),
    ("check", "probabilities quantile nanquantile variances classes counts weights divisors".split()),
    ("join", None),
    ("grid_sample", "forward input_gradient grid_gradient".split()),
    ("resample", "forward backward".split()),
    ("distance", "forward pairs backward".split()),
    ("host call", None),
]


class _Row(NamedTuple):
    """A call of a program.

    where     "file:line" of the program that made it
    is_dead   nothing reads its result, so replays skip it
    number    its position in recording order
    follows   whether it belongs to the previous call's chain
    graph     the number of its CUDA graph, or 0
    layer     the number of the first call of its layer, or -1
    stored    whether the layer's result is stored for calls outside it
    """

    operation: str
    dtype: str
    sizes: tuple[int, ...]
    where: str
    is_dead: bool
    number: int
    follows: bool
    graph: int
    layer: int
    stored: bool


class Program:
    """A recording: its calls in order, and its memory. Prints a line for each call; a bar joins the calls of a chain,
    and the calls of a layer name its first call.

    >>> x = norch.ones(3)
    >>> double = norch.capture(lambda x: x + x)
    >>> for _ in range(4):
    ...     y = double(x)
    >>> print(double.program)  # doctest: +ELLIPSIS
    1 call, 0 bytes of its own
      1  add           float32  (3)  ...
    """

    def __init__(self, recording: Any, in_tree: Any, out_tree: Any, function: Callable[..., Any]):
        self.recording, self.in_tree, self.out_tree = recording, in_tree, out_tree
        self._name = getattr(function, "__name__", "function")
        self.joint: Any = None  # for a recording in two parts: joint.JointReplay
        self.trace: Any = None  # Python's notes, until it is replayed
        _, (positional, named), *setting = in_tree
        self.is_flat = not named[1] and not setting and all(part is LEAF for part in positional[1])

    def calls(self) -> list[tuple[str, str, tuple[int, ...], str]]:
        """(operation, dtype, sizes, "file:line") of each call of a replay."""
        return [row[:4] for row in self._live()]

    def chains(self) -> list[list[int]]:
        """The calls, as indices into calls(), that run together tile by tile: see "Fusion" in
        docs/capture_inside.md."""
        found: list[list[int]] = []
        for i, row in enumerate(self._live()):
            if row.follows:
                found[-1].append(i)
            else:
                found.append([i])
        return [chain for chain in found if len(chain) > 1]

    def layers(self) -> list[list[int]]:
        """The calls, as indices into calls(), that form a layer with channels in blocks: see "Layers" in
        docs/capture_inside.md. All are folded into the first."""
        found: dict[int, list[int]] = {}
        for i, row in enumerate(self._live()):
            if row.layer >= 0:
                found.setdefault(row.layer, []).append(i)
        return list(found.values())

    def graphs(self) -> list[list[int]]:
        """The calls, as indices into calls(), that a CUDA device launches as one, from the third replay on."""
        found: dict[int, list[int]] = {}
        for i, row in enumerate(self._live()):
            if row.graph:
                found.setdefault(row.graph, []).append(i)
        return list(found.values())

    def recorded(self) -> str:
        """The calls as recorded, before fusion, as text."""
        rows = sorted(self._live(), key=lambda row: row.number)
        return self._text([row[:4] for row in rows], [""] * len(rows))

    def _live(self) -> list[_Row]:
        return [row for row in self._rows() if not row.is_dead]

    def _rows(self) -> list[_Row]:
        rows: list[_Row] = []
        while (fields := lib.norch_program_calls(self.recording, len(rows))) is not None:
            family, op, dtype, dead, number, follows, graph, layer, stored, *sizes = fields
            line = lib.norch_line_of(self.recording, len(rows))
            where = "" if line is None else f"{os.path.basename(line[0])}:{line[1]}"
            call = _named(family, op), DTYPES[dtype].name, tuple(sizes), where
            rows.append(_Row(*call, bool(dead), number, bool(follows), graph, layer, bool(stored)))
        return rows

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draws the calls, with an arrow from each to the calls that read its result. Graphviz (``dot``) writes any
        format that the file's name ends with; without it, .svg only.

        >>> import os, tempfile
        >>> double = norch.compile(lambda x: x * 2 + 1)
        >>> for _ in range(4):
        ...     y = double(norch.ones(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     double.program.draw(os.path.join(folder, "double.svg"))
        ...     os.listdir(folder)
        ['double.svg']
        """
        live = [i for i, row in enumerate(self._rows()) if not row.is_dead]
        links = arrows([lib.norch_program_uses(self.recording, i) for i in live])
        draw(path, f"{self._name}: {len(live)} calls", self.calls(), links)

    def memory(self) -> dict[str, int]:
        """Bytes used by a replay: "temporary", intermediate results, which share memory; "kept", tensors that outlive
        it, such as gradients; "constant", numbers. "eager": the most that temporary results take at once if the
        function is not captured."""
        temporary, kept, constant, eager = lib.norch_program_memory(self.recording)
        return {"temporary": temporary, "kept": kept, "constant": constant, "eager": eager}

    def timed(self, seconds: tuple[float, ...]) -> str:
        """The calls with the time of each in a replay and its share of the total; the time of a chain is at its first
        call."""
        total, rows = sum(seconds), []
        for took, row in zip(seconds, self._rows(), strict=True):
            if not row.is_dead and (took or row.follows or row.layer >= 0):  # skips the gradient, which backward() runs
                share = 100 * took / total if total else 0.0
                within = row.follows or row.layer not in (-1, row.number)
                time = f"{'|':>10} {'':>10}" if within else f"{1e6 * took:>10.2f} us {share:>5.1f} %"
                rows.append(f"{time}  {row.operation}, {row.dtype} {sizes_text(row.sizes)}  {row.where}")
        return "\n".join([f"{1e6 * total:>10.2f} us in {len(rows)} calls", *rows])

    def __len__(self) -> int:
        return len(self.calls())

    def __str__(self) -> str:
        calls = self.calls()
        marks = [""] * len(calls)
        for chain in self.chains():
            for i in chain:
                marks[i] = "/" if i == chain[0] else "\\" if i == chain[-1] else "|"
        notes = [""] * len(calls)
        for layer in self.layers():
            for i in layer:
                notes[i] = ", a layer" if i == layer[0] else f", in {layer[0] + 1}"
        for i, row in enumerate(self._live()):
            notes[i] += ", stored" if row.stored else ""
        return self._text([(call[0] + note, *call[1:]) for call, note in zip(calls, notes, strict=True)], marks)

    def _text(self, calls: list[tuple[str, str, tuple[int, ...], str]], marks: list[str]) -> str:
        """A line for each call; marks: in front of each, to show the chains."""
        names, dtypes, shapes = ([column] for column in ("", "", ""))
        names += [name for name, *_ in calls]
        dtypes += [dtype for _, dtype, *_ in calls]
        shapes += [sizes_text(sizes) for _, _, sizes, _ in calls]
        widths = [max(map(len, column)) for column in (names, dtypes, shapes)]
        size, chains = self.memory()["temporary"], marks.count("/")
        fused = f"{chains} chain{'s' * (chains != 1)}, " if chains else ""
        if layers := len(self.layers()):
            fused += f"{layers} layer{'s' * (layers != 1)}, "
        if graphs := len(self.graphs()):
            fused += f"{graphs} graph{'s' * (graphs != 1)}, "
        lines = [f"{len(calls)} call{'s' * (len(calls) != 1)}, {fused}{size:,} bytes of its own"]
        for i, (name, dtype, shape, (*_, where), mark) in enumerate(
            zip(names[1:], dtypes[1:], shapes[1:], calls, marks, strict=True), 1
        ):
            row = f"{i:>3} {mark:1}{name:<{max(widths[0], 12)}}  {dtype:<{widths[1]}}  {shape:<{widths[2]}}  {where}"
            lines.append(row.rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Program of {self._name}: {len(self)} calls>"


def _named(family: int, op: int) -> str:
    name, kinds = _FAMILIES[family]
    if name == "matmul":
        return name if op < 0 else f"{name}, {_ROWS[op]}"
    if kinds is None:
        return name
    return kinds[op] if kinds is _ROWS else f"{name} {kinds[op]}"
