"""Writes a laid-out graph as SVG for light and dark mode."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ._graph import Picture, Vertex

_LINE, _PAD, _TITLE, _MARGIN = 14.0, 8.0, 17.0, 8.0

# Names: page, card, line of a card, text, faint text, edge, parameter, folded, box.
_LIGHT = ("#ffffff", "#f4f6fa", "#9aa7bd", "#1b2430", "#5b6878", "#7c8aa0", "#fdf3e1", "#ece8f7", "#eef3ee")
_DARK = ("#12161c", "#222a35", "#55647a", "#e8edf4", "#a3b1c2", "#8092aa", "#3a3122", "#302a45", "#1a221d")


def _rules(colours: tuple[str, ...]) -> str:
    page, card, line, text, faint, edge, parameter, folded, box = colours
    return (
        f".page{{fill:{page}}}.card{{fill:{card};stroke:{line}}}.parameter{{fill:{parameter};stroke:{line}}}"
        f".folded{{fill:{folded};stroke:{line};stroke-dasharray:4 3}}.box{{fill:{box};stroke:{line}}}"
        f".title,.name{{fill:{text}}}.line{{fill:{faint}}}.edge{{stroke:{edge};fill:none}}.tip{{fill:{edge}}}"
    )


_STYLE = (
    "text{font-family:ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}"
    ".title{font-size:12px;font-weight:600}.line{font-size:10.5px}.name{font-size:11px;font-style:italic}"
    ".box{fill-opacity:.6}"
)


def size(vertex: Vertex) -> None:
    """Sets the size of a card from its text."""
    widths = [_width(vertex.title, 12) * 1.12, *(_width(line, 10.5) for line in vertex.lines)]
    widths += [_width(line, 10.5) + _PAD for line in vertex.params]
    vertex.width = max(widths) + 2 * _PAD
    vertex.height = _TITLE + _LINE * (len(vertex.lines) + len(vertex.params)) + (2 * _PAD if vertex.params else _PAD)


def _width(text: str, points: float) -> float:
    """The approximate width of a text, as fonts differ."""
    narrow = sum(letter in "il.,:;|!' ()[]fjrt" for letter in text)
    wide = sum(letter in "mwMW@×" for letter in text)
    return points * (0.58 * len(text) - 0.24 * narrow + 0.28 * wide)


def svg_of(picture: Picture, title: str) -> str:
    """The text of an SVG file."""
    width, height, left = picture.width + 2 * _MARGIN, picture.height + 2 * _MARGIN, f"{-_MARGIN:.0f} {-_MARGIN:.0f}"
    rules = f"{_STYLE}{_rules(_LIGHT)}@media (prefers-color-scheme:dark){{{_rules(_DARK)}}}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left} {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img">',
            f"<title>{escape(title)}</title><style>{rules}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path class="tip" d="M0,0L8,4L0,8z"/></marker></defs>',
            f'<rect class="page" x="{-_MARGIN:.0f}" y="{-_MARGIN:.0f}" width="{width:.0f}" height="{height:.0f}"/>',
            *_boxes(picture),
            *(f'<path class="edge" marker-end="url(#tip)" d="{path}"/>' for path in picture.paths),
            *_cards(picture),
            "</svg>",
            "",
        ]
    )


def _boxes(picture: Picture) -> Iterator[str]:
    for box in picture.root.boxes():
        yield (
            f'<rect class="box" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
            f'rx="8"/><text class="name" x="{box.x + 8:.1f}" y="{box.y + 15:.1f}">{escape(box.title)}</text>'
        )


def _cards(picture: Picture) -> Iterator[str]:
    for vertex in picture.root.vertices():
        kind = vertex.kind if vertex.kind in ("parameter", "folded") else "card"
        middle = vertex.x + vertex.width / 2
        y = vertex.y + _TITLE - 1
        texts = [f'<text class="title" x="{middle:.1f}" y="{y:.1f}">{escape(vertex.title)}</text>']
        for line in vertex.lines:
            y += _LINE
            texts.append(f'<text class="line" x="{middle:.1f}" y="{y:.1f}">{escape(line)}</text>')
        if vertex.params:
            texts.append(
                f'<rect class="parameter" x="{vertex.x + 4:.1f}" y="{y + 5:.1f}" width="{vertex.width - 8:.1f}" '
                f'height="{_LINE * len(vertex.params) + 5:.1f}" rx="3"/>'
            )
            y += _PAD - 2
        for line in vertex.params:
            y += _LINE
            texts.append(f'<text class="line" x="{middle:.1f}" y="{y:.1f}">{escape(line)}</text>')
        yield (
            f'<g text-anchor="middle"><title>{escape(vertex.hint)}</title>'
            f'<rect class="{kind}" x="{vertex.x:.1f}" y="{vertex.y:.1f}" width="{vertex.width:.1f}" '
            f'height="{vertex.height:.1f}" rx="5"/>{"".join(texts)}</g>'
        )
