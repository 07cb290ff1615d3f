"""The text of tensors, in PyTorch's format: aligned, with four digits. The text of a large tensor omits the middle."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter

from .._binding.numbers import int64 as integer
from .._package.typing import Any
from ..errors import Error

THRESHOLD: float = 1000  # tensors of more elements are summarised ...
EDGE = 3  # ... to so many at each end of an axis
WIDTH = 80
DIGITS = 4
SCIENTIFIC: bool | None = None  # None: where the numbers need it

_PROFILES: dict[str, tuple[float, int, int]] = {  # threshold, edge, digits
    "default": (1000, 3, 4),
    "short": (1000, 2, 2),
    "full": (math.inf, 3, 4),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors print: digits after the point, the number of elements above which the middle is omitted, the
    number of elements that then remain at each end, and the length of lines. profile, "default", "short" or "full", is
    applied first. TypeError for options of another type, ValueError for negative ones and unknown profiles; then
    nothing has changed.

    >>> norch.set_printoptions(precision=2)
    >>> norch.tensor([0.123456])
    tensor([0.12])
    >>> norch.set_printoptions(profile="default")
    """
    global THRESHOLD, EDGE, WIDTH, DIGITS, SCIENTIFIC
    for name, value in (("precision", precision), ("edgeitems", edgeitems), ("linewidth", linewidth)):
        if value is not None and integer(value, f"set_printoptions: {name}") < 0:
            raise ValueError(f"set_printoptions: negative {name} {value}")
    if threshold is not None and not hasattr(threshold, "__float__"):
        raise TypeError(f"set_printoptions: threshold must be a number, not {type(threshold).__name__}")
    if threshold is not None and not threshold >= 0:
        raise ValueError(f"set_printoptions: threshold starts at 0, got {threshold}")
    if sci_mode is not None and not isinstance(sci_mode, bool):
        raise TypeError(f"set_printoptions: sci_mode must be a bool or None, not {type(sci_mode).__name__}")
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile is one of {', '.join(_PROFILES)}, not {profile!r}")
        THRESHOLD, EDGE, DIGITS = _PROFILES[profile]
        WIDTH = 80
    THRESHOLD = THRESHOLD if threshold is None else threshold
    EDGE = EDGE if edgeitems is None else edgeitems
    WIDTH = WIDTH if linewidth is None else linewidth
    DIGITS = DIGITS if precision is None else precision
    SCIENTIFIC = sci_mode


def text(x: Any, contents: str | None = None) -> str:
    """The repr of a tensor. For a subclass it begins with the name of the class. contents, if any, replaces the
    elements.
    """
    kind = type(x).__name__
    prefix = "tensor(" if kind in ("Tensor", "Parameter") else f"{kind}("
    notes = _notes(x)
    if contents is not None:
        body = contents
    else:
        body = "..." if x.is_meta else "[]" if x.numel() == 0 else _body(x.detach(), len(prefix))
    shown = _joined(prefix + body, notes)
    return f"Parameter({shown})" if getattr(x, "_is_param", False) else shown


def nested(prefix: str, x: Any) -> str:
    """prefix, and behind it the elements of a part of a tensor."""
    prefix += "tensor("
    return prefix + (_body(x.detach(), len(prefix)) if x.numel() else f"[], size={tuple(x.shape)}") + ")"


def _notes(x: Any) -> list[str]:
    from ..dtype import bool_, get_default_dtype, int64

    notes = []
    if x.numel() == 0 and x.ndim != 1 and not x.is_meta:
        notes.append(f"size={tuple(x.shape)}")
    if x.device.type != "cpu":
        notes.append(f"device='{x.device}'")
    if x.is_meta:
        notes.append(f"size={tuple(x.shape)}")
    usual: tuple[Any, ...] = (get_default_dtype(),)
    if not x.is_meta:
        usual = (*usual, get_default_dtype().to_complex(), int64, bool_)
    if x.dtype not in usual or (x.numel() == 0 and x.dtype is not get_default_dtype()):
        notes.append(f"dtype={x.dtype!r}")
    try:
        if x.grad_fn is not None:
            notes.append(f"grad_fn=<{x.grad_fn.name()}>")
        elif x.requires_grad:
            notes.append("requires_grad=True")
    except Error:  # a view whose base has another shape since; PyTorch's word
        notes.append("grad_fn=<Invalid>")
    return notes


def _joined(shown: str, notes: list[str]) -> str:
    """Appends the notes, on new lines where they do not fit."""
    width = len(shown) - shown.rfind("\n") + 1
    for note in notes:
        if width + len(note) + 2 > WIDTH:
            shown += ",\n       " + note
            width = 7 + len(note)
        else:
            shown += ", " + note
            width += len(note) + 2
    return shown + ")"


# ---- numbers ----------------------------------------------------------------------------------------------------


Show = Callable[[Any], str]


def _formatter(values: list[Any], kind: str) -> tuple[Show, int]:
    """A function from a number to padded text, and its width, which fits all finite numbers other than 0."""
    if kind == "c":
        return _complex_formatter(values)
    if kind != "f":
        shown: Show = str
        counted = values
    else:
        counted = [v for v in values if math.isfinite(v) and v != 0]
        sizes = [abs(v) for v in counted]
        largest, smallest = max(sizes, default=1.0), min(sizes, default=1.0)
        wide = largest / smallest > 1000 or largest > 1e8 or smallest < 1e-4
        if wide if SCIENTIFIC is None else SCIENTIFIC:
            shown = f"{{:.{DIGITS}e}}".format
        elif all(v == math.floor(v) for v in counted):
            shown = lambda v: f"{v:.0f}." if math.isfinite(v) else str(v)  # noqa: E731
        else:
            shown = f"{{:.{DIGITS}f}}".format
    width = max((len(shown(v)) for v in counted), default=1)
    return lambda v: shown(v).rjust(width), width


def _complex_formatter(values: list[Any]) -> tuple[Show, int]:
    """_formatter() for complex numbers. Both parts are padded separately."""
    (real, real_width), (imaginary, imaginary_width) = (
        _formatter([part(v) for v in values], "f") for part in (attrgetter("real"), attrgetter("imag"))
    )

    def shown(v: Any) -> str:
        after = imaginary(v.imag).lstrip()
        return real(v.real) + ("" if after[0] == "-" else "+") + after + "j"

    return shown, real_width + imaginary_width + 1


# ---- layout -----------------------------------------------------------------------------------------------------


def _body(x: Any, indent: int) -> str:
    summarise = x.numel() > THRESHOLD
    lists = _shown_lists(x, summarise)
    values = [lists] if x.ndim == 0 else _leaves(lists)
    show, width = _formatter(values, x.dtype.kind)
    return show(lists) if x.ndim == 0 else _lines(lists, show, width, indent, x.ndim)


def _shown_lists(x: Any, summarise: bool) -> Any:
    """x as nested lists, with None for omitted elements."""
    if x.ndim == 0 or not summarise:
        return x.tolist()
    size = x.shape[0]
    rows = range(size) if size <= 2 * EDGE else [*range(EDGE), None, *range(size - EDGE, size)]
    return [None if i is None else _shown_lists(x[i], True) for i in rows]


def _leaves(lists: Any) -> list[Any]:
    if not isinstance(lists, list):
        return [] if lists is None else [lists]
    return [leaf for part in lists for leaf in _leaves(part)]


def _lines(lists: Any, show: Show, width: int, indent: int, ndim: int) -> str:
    if ndim == 1:
        shown = [" ..." if v is None else show(v) for v in lists]
        per_line = max(1, (WIDTH - indent) // (width + 2))
        rows = [", ".join(shown[i : i + per_line]) for i in range(0, len(shown), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"
    parts = ["..." if part is None else _lines(part, show, width, indent + 1, ndim - 1) for part in lists]
    return "[" + ("," + "\n" * (ndim - 1) + " " * (indent + 1)).join(parts) + "]"
