"""A Sphinx extension: the code of chapters as cells, exercises in their pages, results that are to be predicted folded.

- Every block of Python in learn/ is a cell, and so is one after the comment `<!-- live -->` on other pages.
- `.venv/bin/python docs/learn/exercises/NAME.py` in a chapter is followed by that exercise, its check and its solution.
- Of a block with prompts after the comment `<!-- predict: QUESTION -->` the results are folded below the question.

What it makes can be read without JavaScript; static/live/page.js makes it run, once build.py has built what that needs.
"""

from __future__ import annotations

import ast
import html
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes

HERE = Path(__file__).resolve().parent
EXERCISES, SOLUTIONS = HERE.parent / "learn" / "exercises", HERE.parent / "learn" / "solutions"
BUILT = HERE.parent.parent / "build" / "live" / "static"
_EXERCISE = re.compile(r"^\.venv/bin/python docs/learn/exercises/(\w+)\.py$", re.M)
_COMMENT = re.compile(r"(?:<!--)?\s*(live|predict)(?:: *(.*?))?\s*(?:-->)?", re.S)
_PROMPT = re.compile(r"(>>>|\.\.\.)( |$)")


def parts(name: str) -> tuple[str, str, str]:
    """Of an exercise what a reader edits, its check, and the first with the functions of the solution in place."""
    text, solution = (EXERCISES / f"{name}.py").read_text(), (SOLUTIONS / f"{name}.py").read_text()
    body = ast.parse(text).body
    check = next(node for node in body if isinstance(node, ast.FunctionDef) and node.name == "check")
    lines = text.splitlines(keepends=True)
    head, tail = "".join(lines[: check.lineno - 1]).rstrip() + "\n", "".join(lines[check.lineno - 1 :])
    asked = [argument.arg for argument in check.args.args]
    new: dict[str, str] = {}
    others = []
    for node in ast.parse(solution).body[1:]:  # after its docstring
        code = ast.get_source_segment(solution, node) or ""
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in asked:
            new[node.name] = code
        elif code not in head and not (
            isinstance(node, ast.If)  # where it is run as a program
            or (isinstance(node, ast.ImportFrom) and node.module == name)
            or (isinstance(node, ast.Import) and node.names[0].name == "_check")
        ):
            others.append(code)
    solved = head.splitlines(keepends=True)
    first = True
    places = {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for function in asked:
        place = places[function]
        code = ("\n\n".join(others) + "\n\n\n" if first and others else "") + new[function] + "\n"
        solved[place.lineno - 1] = code
        for at in range(place.lineno, place.end_lineno or place.lineno):
            solved[at] = ""
        first = False
    return head, tail, "".join(solved)


def _code(text: str, *classes: str) -> nodes.literal_block:
    text = text.rstrip("\n")
    return nodes.literal_block(text, text, language="python", classes=list(classes))


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def _folded(summary: str, code: nodes.Node, kind: str) -> list[nodes.Node]:
    return [_raw(f'<details class="{kind}"><summary>{html.escape(summary)}</summary>'), code, _raw("</details>")]


def _exercise(name: str) -> nodes.container:
    head, tail, solved = parts(name)
    data = json.dumps({"name": name, "check": tail, "solved": solved}).replace("<", "\\u003c")
    solution = (SOLUTIONS / f"{name}.py").read_text()
    return nodes.container(
        "",
        _code(head, "exercise-code"),
        *_folded("How it is checked", _code(tail), "check"),
        *_folded("A solution", _code(solution), "solution"),
        _raw(f'<script type="application/json">{data}</script>'),
        classes=["exercise"],
    )


def _results(text: str) -> tuple[str, str]:
    """The statements of a block with prompts, and what comes out of them."""
    given: list[str] = []
    shown: list[str] = []
    for line in text.splitlines():
        (given if _PROMPT.match(line) else shown).append(line)
    return "\n".join(given), "\n".join(shown).strip("\n")


def _notebook(page: str) -> nodes.raw:
    """Links to a chapter as a notebook."""
    name = f"{page.removeprefix('learn/')}.ipynb"
    lab = f'<a href="../lab/notebooks/index.html?path={name}">Open in JupyterLite</a> · ' if BUILT.exists() else ""
    return _raw(f'<p class="live-links">{lab}<a href="../notebooks/{name}" download>Download the notebook</a></p>')


def _mark(app: Any, doctree: nodes.document) -> None:
    page = app.env.docname
    if re.match(r"learn/\d", page):
        title = next(doctree.findall(nodes.title))
        title.parent.insert(title.parent.index(title) + 1, _notebook(page))
    for block in list(doctree.findall(nodes.literal_block)):
        text = block.astext().rstrip()
        block.rawsource = text
        block.children = []
        block += nodes.Text(text)  # without the empty line that ends examples
        if page.startswith("learn/") and block.get("language") == "python":
            block["classes"].append("live")
        found = _EXERCISE.search(text)
        if found and page.startswith("learn/"):
            for folder in (EXERCISES, SOLUTIONS):
                app.env.note_dependency(str(folder / f"{found[1]}.py"))
            block.parent.insert(block.parent.index(block) + 1, _exercise(found[1]))
    for comment in list(doctree.findall(lambda node: isinstance(node, nodes.comment | nodes.raw))):
        if found := _COMMENT.fullmatch(comment.astext().strip()):
            block = comment.next_node(descend=False, siblings=True)
            if not isinstance(block, nodes.literal_block):
                raise ValueError(f"{page}: no block follows the comment {comment.astext()!r}")
            _fold(block, found[2]) if found[1] == "predict" else block["classes"].append("live")


def _fold(block: nodes.literal_block, question: str | None) -> None:
    """Leaves a block its statements, and puts what comes out of them below the question, folded."""
    given, shown = _results(block.astext())
    if not given:
        raise ValueError(f"nothing to predict, as the block has no prompts: {block.astext()!r}")
    block.rawsource = given
    block.children = [nodes.Text(given)]
    at = block.parent.index(block) + 1
    results = nodes.literal_block(shown, shown, language="text")
    block.parent[at:at] = _folded(question or "What comes out?", results, "predict")


def _scripts(app: Any, page: str, template: str, context: Any, doctree: nodes.document | None) -> None:
    if doctree is None:
        return
    if (BUILT / "live" / "norch.zip").exists() and any(
        "live" in node["classes"] for node in doctree.findall(nodes.literal_block)
    ):
        app.add_css_file("live/live.css")
        app.add_js_file("live/page.js", type="module")
    text = " ".join(node.astext() for node in doctree.findall(nodes.raw))
    for name in sorted(set(re.findall(r"<norch-(\w+)", text))):
        app.add_css_file("play/play.css")
        app.add_js_file("play/play.js")
        app.add_js_file(f"play/{name}.js", defer="defer")


def setup(app: Any) -> dict[str, bool]:
    app.connect(
        "builder-inited",
        lambda app: app.config.html_static_path.extend(str(path) for path in (HERE / "static", BUILT) if path.exists()),
    )
    app.connect("doctree-read", _mark)
    app.connect("html-page-context", _scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
