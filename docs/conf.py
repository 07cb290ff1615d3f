"""How Sphinx makes the site of these pages: `make site`, which writes build/site."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import norch

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent / "live"))
from differences import notes  # noqa: E402
from sections import classes, sections  # noqa: E402

project = "norch"
author = "the norch authors"
copyright = "the norch authors"
version = release = norch.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx.ext.githubpages",
    "sphinx_live",
    "sphinx_reference",
]
templates_path = ["_templates"]
exclude_patterns = ["_templates", "_static", "learn/exercises", "learn/solutions", "live"]
myst_heading_anchors = 3
nitpicky = False
html_theme = "furo"
pygments_dark_style = "github-dark"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_title = "norch"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

default_role = "code"  # docstrings mark code by single backticks
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "groupwise"
autosummary_generate = True  # a page for each module that reference/index.md names, of _templates/module.rst
autodoc_default_options = {"members": True, "imported-members": True}

# The headings of long pages of the reference, with the files whose classes stand under them.
FAMILIES = {
    "norch.nn": {
        "Base and containers": "module parameter buffer uninitialized container",
        "Linear layers and distances": "linear distance",
        "Convolution": "conv",
        "Pooling": "pool fractional_pool unpool",
        "Padding, resampling, shape": "pad resample flatten",
        "Activation": "activation",
        "Normalization": "norm sync_batch_norm",
        "Dropout": "dropout",
        "Embedding": "embedding embedding_bag",
        "Recurrent layers": "recurrent",
        "Attention and transformers": "attention transformer",
        "Losses": "loss ctc adaptive_softmax",
        "Lazy layers": "lazy",
        "Parallel": "parallel",
    },
    "norch.optim": {
        "Base": "optimizer",
        "Stochastic gradient descent": "sgd",
        "Adam and its relatives": "adam",
        "Other adaptive steps": "adaptive",
        "Others": "composed lbfgs sparse_adam",
    },
}


def families() -> dict[str, dict[str, list[str]]]:
    """The names of classes under each heading of FAMILIES."""
    found: dict[str, dict[str, list[str]]] = {}
    for page, headings in FAMILIES.items():
        module = importlib.import_module(page)
        heading_of = {file: heading for heading, files in headings.items() for file in files.split()}
        found[page] = {heading: [] for heading in headings}
        for name in module.__all__:
            if isinstance(thing := getattr(module, name), type):
                found[page][heading_of[thing.__module__.rpartition(".")[2]]].append(name)
    return found


# norch itself has its functions under the headings of docs/operations.md, and its classes after them.
autosummary_context = {
    "families": families(),
    "sections": {"norch": sections(norch)},
    "own_classes": {"norch": classes(norch)},  # autosummary itself has the name classes
}

_EXAMPLE = re.compile(r"\s*(>>>|\.\.\.)")
_ENTRY = re.compile(r"(\w+(?:, \w+)*) {2,}(\S.*)")  # of a list: a parameter, and what it is


_NOTES = notes()


def _plain(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with `code`, lists in two columns and examples: makes reStructuredText of them, and
    adds what differs from PyTorch."""
    if what in ("class", "function") and thing in _NOTES:
        lines += ["", f"Differs from PyTorch: {_NOTES[thing][0]}", ""]
    if what == "module" and lines:
        named = re.match(r"`*norch[\w.]*`*: (\S)", lines[0])  # its name, which the page has before it
        lines[0] = named[1].upper() + lines[0][named.end() :] if named else lines[0]
    example = entry = False
    for at, line in enumerate(lines):
        example = bool(_EXAMPLE.match(line)) or (example and bool(line.strip()))
        if example:
            continue
        found = _ENTRY.fullmatch(line)
        if found:
            line = f"- `{found[1]}`: {found[2]}"
        elif entry and line.startswith("  "):
            line = "  " + line.strip()
        else:
            entry = False
        entry = entry or bool(found)
        parts = re.split(r"(``[^`]*``|`[^`]*`|\bdocs/\w+\.md\b)", line)
        parts[::2] = [re.sub(r"([*|_\\])", r"\\\1", part) for part in parts[::2]]
        parts[1::2] = [
            re.sub(r"docs/(\w+)\.md", r":doc:`/\1`", part) if part[0] == "d" else part for part in parts[1::2]
        ]
        lines[at] = "".join(parts)


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _plain)
