"""A Sphinx extension: what code in a page names is a link, and the reference says what the stubs say.

- `norch.exp`, and the first column of the table of operations, lead to the entry in the reference.
- `csrc/ops/view.c`, a file of the sources, leads to a page of the site with its text.
- An entry of the reference names the file that defines it.
- A function or method that returns Any at run time has the return type of its stub (norch/*.pyi).
"""

from __future__ import annotations

import ast
import html
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

ROOT = Path(__file__).resolve().parent.parent
# The stubs, and where their names are found.
STUBS = {
    "__init__": "norch",
    "_methods": "norch.Tensor",
    "nn/functional/__init__": "norch.nn.functional",
    "linalg": "norch.linalg",
    "special": "norch.special",
}
# The prefixes of names in the first column of docs/operations.md.
PREFIXES = {
    "norch": "norch",
    "x": "norch.Tensor",
    "functional": "norch.nn.functional",
    "linalg": "norch.linalg",
    "special": "norch.special",
}
LANGUAGES = {".py": "python", ".pyi": "python", ".c": "c", ".h": "c", ".def": "c", ".cu": "cuda", ".cuh": "cuda"}
_NAME = re.compile(r"(norch(?:\.\w+)+)(\(\))?")
_ANY = re.compile(r"\b(\w+): ~?(?:[\w.]+\.)?Any\b")
_PATH = re.compile(r"(?:csrc|norch|docs|examples|tests|benchmarks|release|mk)/[\w./-]*\.\w+")


# ---- links ------------------------------------------------------------------------------------------------------


def _is_linked(node: nodes.Node) -> bool:
    at: Any = node
    while at is not None:
        if isinstance(at, (nodes.reference, addnodes.pending_xref, addnodes.desc_signature, nodes.title)):
            return True
        at = at.parent
    return False


def _wrap(literal: nodes.literal, link: Any) -> None:
    literal.replace_self(link)
    link += literal


def _link(app: Any, doctree: nodes.document) -> None:
    page = app.env.docname
    named = app.env.norch_sources[page] = set()
    for literal in list(doctree.findall(nodes.literal)):
        text = literal.astext()
        if _is_linked(literal):
            continue
        if _PATH.fullmatch(text) and (ROOT / text).is_file():
            named.add(text)
            _wrap(literal, nodes.reference(refuri=app.builder.get_relative_uri(page, f"source/{text}")))
            continue
        target = found[1] if (found := _NAME.fullmatch(text)) else ""
        prefix, _, name = text.partition(".")
        if page == "operations" and isinstance(literal.parent.parent, nodes.entry) and prefix in PREFIXES:
            target = f"{PREFIXES[prefix]}.{name}"
        if target:
            link = addnodes.pending_xref(refdomain="py", reftype="obj", reftarget=target, refwarn=False, refdoc=page)
            _wrap(literal, link)


def _source_pages(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file that a page names."""
    for path in sorted(set().union(*app.env.norch_sources.values())):
        language = LANGUAGES.get(Path(path).suffix, "text")
        code = app.builder.highlighter.highlight_block((ROOT / path).read_text(encoding="utf-8"), language, force=True)
        body = f'<h1><code class="literal">{html.escape(path)}</code></h1>{code}'
        yield f"source/{path}", {"title": path, "body": body, "parents": []}, "page.html"


def _share_tree(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """One navigation tree for all source files at a depth, which takes longer than all else of a page."""
    if page.startswith("source/"):
        tree, trees, depth = context["toctree"], app.norch_trees, page.count("/")
        context["toctree"] = lambda **options: trees.get(depth) or trees.setdefault(depth, tree(**options))


def _outdated(app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Pages that named files which are gone."""
    return [page for page, named in env.norch_sources.items() if not all((ROOT / path).is_file() for path in named)]


def _begin(app: Any) -> None:
    app.norch_trees = {}
    if not hasattr(app.env, "norch_sources"):
        app.env.norch_sources = {}  # of each page, the files that it names


def _merge(app: Any, env: Any, pages: set[str], read: Any) -> None:
    """What another process has read of pages."""
    env.norch_sources |= {page: read.norch_sources[page] for page in pages}


def source(thing: Any) -> str | None:
    """The file of norch that defines a function or class, from the folder of the sources."""
    module = getattr(inspect.unwrap(thing), "__module__", None) or ""
    path = ROOT.joinpath(*module.split("."))
    if not module.startswith("norch."):
        return None
    found = [one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()]
    return str(found[0].relative_to(ROOT)) if found else None


def _say_source(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if what in ("class", "function") and (path := source(thing)):
        lines += ["", f"Source: `{path}`", ""]


# ---- types ------------------------------------------------------------------------------------------------------


@cache
def returns() -> dict[str, str]:
    """The return type in the stubs of each function and method, by its full name; of an overloaded one the types that
    its forms have, beside the Any of those that leave it open."""
    found: dict[str, list[str]] = {}
    for file, prefix in STUBS.items():
        for node in ast.walk(ast.parse((ROOT / "norch" / f"{file}.pyi").read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.returns is not None:
                text = re.sub(r"\bbuiltins\.|\b_(?=[a-z])", "", ast.unparse(node.returns))
                forms = found.setdefault(f"{prefix}.{node.name}", [])
                if text not in forms:
                    forms.append(text)
    return {name: " | ".join([x for x in forms if x != "Any"] or forms) for name, forms in found.items()}


def hints(name: str, thing: Any) -> dict[str, str]:
    """The annotations of a function as they are written, and of its stub where they say nothing. What type checkers
    alone import, such as Tensor, is Any to autodoc."""
    try:
        written = inspect.signature(thing)
    except (TypeError, ValueError):
        return {}
    found = {key: one.annotation for key, one in written.parameters.items()} | {"return": written.return_annotation}
    known = {key: text for key, text in found.items() if isinstance(text, str) and text != "Any"}
    return ({"return": returns()[name]} if name in returns() else {}) | known


def _names_of_types(signature: str) -> str:
    """A signature with the public names of types: some files have others, so that a parameter can have that name. A
    default that is a function has its name, since Sphinx cannot read <function relu>."""
    signature = re.sub(r"<function (?:\w+\.)*(\w+)[^<>]*>", r"\1", signature)
    signature = re.sub(r"\bDType\b", "dtype", signature)
    return re.sub(r"\bSizes\b", "int | Sequence[int]", signature)


def _is_left_out(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """The class that a lazy layer becomes, which its sentence names."""
    return True if name == "cls_to_become" else None


def _signature(
    app: Any, what: str, name: str, thing: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None] | None:
    if what == "class" and signature:
        return _names_of_types(signature), returned
    if what not in ("function", "method") or not signature:
        return None
    known = hints(name, thing)
    signature = _ANY.sub(lambda found: f"{found[1]}: {known.get(found[1], 'Any')}", signature)
    return _names_of_types(signature), known.get("return", returned) if _ANY.match(f"return: {returned}") else returned


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", _begin)
    app.connect("env-get-outdated", _outdated)
    app.connect("env-merge-info", _merge)
    app.connect("doctree-read", _link)
    app.connect("html-collect-pages", _source_pages)
    app.connect("html-page-context", _share_tree, priority=400)  # before the theme asks for the tree
    app.connect("autodoc-process-docstring", _say_source, priority=900)  # after what conf.py makes of the text
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _is_left_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
