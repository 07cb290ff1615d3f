"""The bugs of one token that mutate.py plants: where in a file, and what stands there instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = ("graph.c", "make_calls.py")  # of folders: what only devices run, and what runs in the build


class Mutant(NamedTuple):
    """Text of a file from `start` to `end` that becomes `put`; `old` and `new` are the lines without and with it."""

    path: str
    line: int
    function: str
    lines: tuple[int, int]  # of the outermost function
    start: int
    end: int
    put: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.function}: {self.old} -> {self.new}"

    def text(self) -> str:
        """The file with the bug."""
        text = (ROOT / self.path).read_text()
        return text[: self.start] + self.put + text[self.end :]


def planted(
    path: str, text: str, function: str, lines: tuple[int, int] | None, start: int, end: int, put: str
) -> Mutant:
    """The mutant that puts this text between two offsets."""
    begin, finish = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    old, new = (" ".join(x.split()) for x in (text[begin:finish], text[begin:start] + put + text[end:finish]))
    line = text.count("\n", 0, start) + 1
    return Mutant(path, line, function, lines or (line, line), start, end, put, old, new)


# ---- mutants of Python ----------------------------------------------------------------------------------------------

COMPARED = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}  # fmt: skip


class Finder(ast.NodeVisitor):
    """Collects the mutants of a file."""

    def __init__(self, path: str) -> None:
        self.path, self.text = path, (ROOT / path).read_text()
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.within: list[Any] = []
        self.mutants: list[Mutant] = []
        self.visit(ast.parse(self.text))

    def at(self, line: int, column: int) -> int:
        """The offset of a position, whose column counts bytes."""
        begin = self.starts[line - 1]
        return begin + len(self.text[begin : self.starts[line]].encode()[:column].decode())

    def span(self, node: Any) -> tuple[int, int]:
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def add(self, node: Any, new: str, span: tuple[int, int] | None = None) -> None:
        if not self.within:
            return  # a module's own statements run before any test
        start, end = span or self.span(node)
        outer = self.within[0]
        first = min([outer.lineno, *(d.lineno for d in getattr(outer, "decorator_list", ()))])
        name = ".".join(getattr(node, "name", "lambda") for node in self.within)
        self.mutants.append(planted(self.path, self.text, name, (first, outer.end_lineno), start, end, new))

    def function(self, node: Any) -> None:
        self.within.append(node)
        body = node.body if isinstance(node.body, list) else [node.body]
        for child in body:  # not its default values or annotations
            self.visit(child)
        self.within.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = function

    def condition(self, node: Any) -> None:
        test = node.test
        if not isinstance(test, (ast.Compare, ast.Constant)) or len(getattr(test, "ops", "")) > 1:
            start, end = self.span(test)
            self.add(test, f"(not ({self.text[start:end]}))")
        last = node.body[-1] if isinstance(node.body, list) and isinstance(node, ast.If) else None
        if isinstance(last, (ast.Return, ast.Continue)):
            self.add(last, "pass")
        self.generic_visit(node)

    visit_If = visit_While = visit_IfExp = condition

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        texts = [ast.unparse(value) for value in node.values]
        for left, right in zip(node.values, node.values[1:]):
            self.add(node, f" {other} ", self.gap(left, right, word))
        for k in range(len(texts)):
            self.add(node, "(" + f" {word} ".join(f"({text})" for text in texts[:k] + texts[k + 1 :]) + ")")
        self.generic_visit(node)

    def gap(self, left: Any, right: Any, word: str) -> tuple[int, int]:
        """Where an operator between two nodes stands, with its spaces."""
        start, end = self.span(left)[1], self.span(right)[0]
        found = re.search(rf"\s{word}\s", self.text[start:end])
        assert found
        return start + found.start(), start + found.end()

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for op, right in zip(node.ops, node.comparators):
            old, new = COMPARED[type(op)]
            self.add(node, f" {new} ", self.gap(left, right, old.replace(" ", r"\s")))
            left = right
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        other = {"0": "1", "1": "0", "True": "False", "False": "True"}.get(repr(node.value))
        if other:
            self.add(node, other)


# ---- mutants of C ---------------------------------------------------------------------------------------------------

C_TOKENS = re.compile(
    r"&&|\|\||==|!=|(?<![-<])<(?![<=])|<=(?!=)|(?<![->])>(?![>=])|>=|\b(?:true|false)\b|(?<![\w.])[01](?![\w.])"
)
C_OTHERS = {
    "&&": "||", "||": "&&", "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "true": "false",
    "false": "true", "0": "1", "1": "0",
}  # fmt: skip
C_HIDDEN = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\])+'|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M
)


def c_mutants(path: str) -> Iterator[Mutant]:
    """The mutants of a C file: in the bodies of functions, outside comments, strings and the preprocessor's lines."""
    text = (ROOT / path).read_text()
    plain = C_HIDDEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for function in re.finditer(
        r"^(?!typedef|struct|enum|static const)\w[^\n;{}]*?(\w+)\([^;{}]*\)\s*\{\n.*?^\}", plain, re.S | re.M
    ):
        begin, name = plain.index("{", function.start()), function[1]

        def mutant(start: int, end: int, new: str, name: str = name) -> Mutant:
            return planted(path, text, name, None, start, end, new)

        body = plain[begin : function.end()]
        for token in C_TOKENS.finditer(body):
            yield mutant(begin + token.start(), begin + token.end(), C_OTHERS[token[0]])
        for condition in re.finditer(r"\b(?:if|while) (?=\()", body):
            start = begin + condition.end()
            end = closing(plain, start)
            yield mutant(start, end, f"(!{text[start:end]})")
            word, parts = operands(text, start + 1, end - 1)
            for k in range(len(parts) if word else 0):
                yield mutant(start, end, "(" + f" {word} ".join(parts[:k] + parts[k + 1 :]) + ")")
            early = re.match(r"\s*(return\b[^;{}]*);", plain[end:])
            if early:
                yield mutant(end + early.start(1), end + early.end(1), "(void)0")


def closing(text: str, start: int) -> int:
    """Behind the parenthesis that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth:
            return at + 1
    raise ValueError("not closed")


def operands(text: str, start: int, end: int) -> tuple[str, list[str]]:
    """The operator of a conjunction or a disjunction, and its parts; one part if it is neither, or both."""
    parts, depth, begin, words = [], 0, start, set()
    for at in range(start, end):
        depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(text[at], 0)
        if not depth and text[at : at + 2] in ("&&", "||"):
            words.add(text[at : at + 2])
            parts.append(text[begin:at].strip())
            begin = at + 2
    return (words.pop(), [*parts, text[begin:end].strip()]) if len(words) == 1 else ("", [text[start:end]])


# ---- of files ----------------------------------------------------------------------------------------------------


def found(group: str) -> list[Mutant]:
    """All mutants of files, folders and lines, with commas between them."""
    mutants = []
    for path in group.split(","):
        name, _, line = path.partition(":")
        at = ROOT / name
        files = [at]
        if at.is_dir():
            files = sorted(one for one in (*at.glob("*.py"), *at.glob("*.c")) if one.name not in LEFT_OUT)
        for name in (str(one.relative_to(ROOT)) for one in files):
            all_of_it = Finder(name).mutants if name.endswith(".py") else c_mutants(name)
            mutants += [m for m in all_of_it if line in ("", str(m.line))]
    return mutants
