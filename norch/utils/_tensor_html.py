"""The HTML of a tensor in notebooks: type, range, histogram, and its elements as a table or an image."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from html import escape
from typing import Any

from .._binding.buffers import buffer
from .._binding.library import lib
from .._tensor import representation as _repr
from ..autograd import no_grad
from ..dtype import uint8
from ..errors import Error

_EDGE = 5  # rows and columns shown at each end of a long axis
_BINS = 30
_SAMPLE = 65536  # elements used for the histogram
_PIXELS = 8, 1024  # the smallest and largest side of an image

_CELL = 'style="text-align:right;padding:1px 6px;border:1px solid rgba(128,128,128,.35)"'


def _repr_html_(self: Any) -> str | None:
    """HTML for notebooks: shape, dtype, device; minimum, mean, maximum and a histogram; elements as a table if there
    are at most two axes, the middle of long ones left out; images as pictures."""
    try:
        with no_grad():
            return _html(self, self.detach())
    except Error:  # the elements cannot be read, and the message says why
        return None


def _repr_png_(self: Any) -> bytes | None:
    """A PNG file of a tensor that looks like an image: uint8 (height, width) or (height, width, channels), or
    (channels, height, width) of uint8 or floats in [0, 1], with 1, 3 or 4 channels and sides of 8 to 1024 pixels; else
    None."""
    try:
        with no_grad():
            return _png(self.detach())
    except Error:
        return None


def _html(x: Any, plain: Any) -> str:
    notes = [str(tuple(x.shape)), x.dtype.name, str(x.device)]
    notes += ["requires grad"] if x.requires_grad else []
    notes += [f"from {x.grad_fn.name()}"] if x.grad_fn is not None else []
    parts = [f"<div><b>{escape(type(x).__name__)}</b> {escape(', '.join(notes))}</div>"]
    if plain.numel() and not plain.is_complex():
        parts += _statistics(plain)
    png = _png(plain)
    if png is not None:
        text = base64.b64encode(png).decode()
        size = "image-rendering:pixelated;min-width:96px;max-width:100%"
        parts.append(f'<img alt="the tensor as an image" style="{size}" src="data:image/png;base64,{text}">')
    elif plain.numel() and plain.ndim <= 2 and not plain.is_complex():
        parts.append(_table(plain))
    else:
        parts.append(f"<pre>{escape(_repr.text(plain))}</pre>")
    return f'<div style="font-family:monospace">{"".join(parts)}</div>'


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _statistics(x: Any) -> Iterator[str]:
    if x.dtype.kind == "b":
        yield f"<div>{int(x.sum()):,} of {x.numel():,} are True</div>"
        return
    values = x.double() if x.is_floating_point() else x
    finite = values.isfinite() if x.is_floating_point() else None
    lost = 0 if finite is None else x.numel() - int(finite.sum())
    if lost:
        nan = int(values.isnan().sum())
        yield f"<div>{nan:,} NaN, {lost - nan:,} infinite</div>"
        values = values[finite]
    if values.numel() == 0:
        return
    least, largest = values.min().item(), values.max().item()
    yield f"<div>min {least:.6g}, mean {values.double().mean().item():.6g}, max {largest:.6g}</div>"
    if x.numel() >= _BINS and least < largest:
        yield _histogram(values, least, largest)


def _histogram(values: Any, least: float, largest: float) -> str:
    flat = values.flatten()
    counts = flat[:: max(1, flat.numel() // _SAMPLE)].double().histc(_BINS, least, largest).tolist()
    bars = "".join(
        f'<rect x="{6 * i}" y="{40 - 40 * count / max(counts):.1f}" width="5" height="{40 * count / max(counts):.1f}"/>'
        for i, count in enumerate(counts)
    )
    return f'<svg width="{6 * _BINS}" height="40" fill="currentColor" opacity=".6" role="img">{bars}</svg>'


def _table(x: Any) -> str:
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    lists = [_cut(line) if line is not None else None for line in _cut(rows)]
    shown = [v for line in lists if line is not None for v in line if v is not None]
    show, _ = _repr._formatter([v.item() for v in shown], x.dtype.kind)
    width = max(len(line) for line in lists if line is not None)
    text = "".join(
        "<tr>"
        + "".join(
            f"<td {_CELL}>{'…' if v is None else escape(show(v.item()).strip())}</td>"
            for v in (line if line is not None else [None] * width)
        )
        + "</tr>"
        for line in lists
    )
    return f'<table style="border-collapse:collapse">{text}</table>'


def _cut(x: Any) -> list[Any]:
    """The parts of x along its first axis; None replaces the middle of a long axis."""
    size = x.shape[0]
    if size <= 2 * _EDGE:
        return [x[i] for i in range(size)]
    return [*(x[i] for i in range(_EDGE)), None, *(x[i] for i in range(size - _EDGE, size))]


# ---- images ----------------------------------------------------------------------------------------------------------


def _png(x: Any) -> bytes | None:
    """The PNG file, by the specification (W3C, 2003): 8 bits a sample, no filter."""
    least, most = _PIXELS
    is_bytes = x.dtype.name == "uint8"
    if is_bytes and x.ndim == 2:
        x = x.reshape(*x.shape, 1)
    elif x.ndim == 3 and x.shape[0] in (1, 3, 4) and (is_bytes or x.is_floating_point()):
        x = x.permute(1, 2, 0)
    elif not (is_bytes and x.ndim == 3 and x.shape[2] in (1, 3, 4)):
        return None
    height, width, channels = x.shape
    if not (least <= height <= most and least <= width <= most):
        return None
    if not is_bytes:
        if not (x.min() >= 0 and x.max() <= 1):
            return None
        x = (x.float() * 255).round().to(uint8)
    row = width * channels
    memory = buffer(height * row)
    lib.norch_to_bytes(x, memory, height * row)
    data = bytes(memoryview(memory).cast("B")[: height * row])
    lines = b"".join(b"\0" + data[i * row : (i + 1) * row] for i in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    chunks = (b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
