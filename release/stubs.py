"""Writes stubs: what editors and type checkers read of names that are made when the code runs.

They are written into the package that is imported: `make stubs` has that of the checkout, setup.py that of a wheel.

    norch/_methods.pyi                 the methods of Tensor, which norch/ops declares and tensor.py makes
    norch/__init__.pyi                 the names of norch, many of which are imported when they are first read
    norch/nn/functional/__init__.pyi   those of nn.functional
    norch/linalg.pyi, special.pyi      those of norch.linalg and norch.special

A function or class that stands in the text of a module is imported from there. Of the others, those of rows of
csrc/ops.def and the methods, a stub has the signatures, with the annotations and overloads of the code.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import norch
from norch.ops._deferred import DeferredMethod
from norch.ops._public import signature_with_out
from norch.ops.op import METHODS

HEAD = '"""Written by release/stubs.py from the code."""\n\nimport builtins\n'
TYPES = "norch._package.typing"


# ---- the text of a module -------------------------------------------------------------------------------------------


@cache
def tree_of(module: str) -> ast.Module:
    """The syntax tree of a module of norch; of _typing that of its stub, which is written by hand."""
    path = Path(importlib.import_module(module).__file__ or "")
    return ast.parse(path.with_suffix(".pyi" if module == TYPES else ".py").read_text())


@cache
def definitions(module: str) -> dict[str, Any]:
    """What a module defines or imports, by name: (module, name) that it is imported from, else the nodes that define
    it; of overloaded functions these are the overloads."""
    found: dict[str, Any] = {}
    if module.partition(".")[0] != "norch":
        return found
    package = module if hasattr(importlib.import_module(module), "__path__") else module.rpartition(".")[0]
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(filter(None, (above, node.module)))
            found |= {alias.asname or alias.name: (base, alias.name) for alias in node.names}
    for node in tree_of(module).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            before = found.get(node.name)
            overloads = [one for one in before if is_overload(one)] if isinstance(before, list) else []
            found[node.name] = overloads + ([node] if is_overload(node) or not overloads else [])
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id: [node] for target in targets if isinstance(target, ast.Name)}
    return found


def is_overload(node: Any) -> bool:
    return any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)


def origin(module: str, name: str) -> tuple[str, str]:
    """Where what a module calls name is defined."""
    place = definitions(module).get(name)
    return origin(*place) if isinstance(place, tuple) else (module, name)


def stands_in_text(thing: Any) -> bool:
    """Whether a class or function is defined or annotated by a statement of its module that type checkers can read."""
    nodes = definitions(thing.__module__).get(thing.__name__)
    if hasattr(thing, "takes_out") or hasattr(thing, "makes") or hasattr(thing, "optional_results"):
        return False
    if not isinstance(nodes, list) or not isinstance(nodes[0], (ast.ClassDef, ast.FunctionDef, ast.AnnAssign)):
        return False
    return getattr(sys.modules[thing.__module__], thing.__name__) is thing


def signatures(function: Any) -> tuple[list[inspect.Signature], str]:
    """Those of a function, several where it is overloaded, and the module whose names they use."""
    inner: Any = inspect.unwrap(function)
    module = inner.__globals__["__name__"]
    if hasattr(inner, "optional_results"):
        return _by_results(inspect.signature(function), inner.optional_results), module
    nodes = definitions(module).get(inner.__code__.co_name)
    if not isinstance(nodes, list) or len(nodes) < 2:
        return [inspect.signature(function)], module
    forms = [_signature_of(node) for node in nodes]
    return [signature_with_out(form) for form in forms] if hasattr(function, "takes_out") else forms, module


def _by_results(known: inspect.Signature, flags: tuple[str, ...]) -> list[inspect.Signature]:
    """The overloads of a function with optional_results(): one for each choice of its flags, and one for bools."""
    forms = []
    parameters = list(known.parameters.values())
    first = [p.name for p in parameters].index(flags[0])
    after_defaults = len(flags) > 1 or any(p.default is not p.empty for p in parameters[:first])
    for chosen in product((False, True), repeat=len(flags)):
        value_of = dict(zip(flags, chosen[::-1], strict=True))
        kind = (
            inspect.Parameter.KEYWORD_ONLY
            if after_defaults and any(chosen)
            else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        form = parameters[:first]
        for p in parameters[first:]:
            if p.name in flags:
                is_on = value_of[p.name]
                p = p.replace(annotation=f"Literal[{is_on}]", default=p.empty if is_on else p.default)
            form.append(p.replace(kind=kind))
        count = 1 + sum(chosen)
        result = "Tensor" if count == 1 else f"tuple[{', '.join(['Tensor'] * count)}]"
        forms.append(known.replace(parameters=form, return_annotation=result))
    return [*forms, known]


def _signature_of(node: ast.FunctionDef) -> inspect.Signature:
    bare = ast.FunctionDef(node.name, node.args, [ast.Pass()], [], node.returns)
    text = ast.unparse(ast.fix_missing_locations(ast.Module([bare], [])))
    space: dict[str, Any] = {}
    exec(compile(text, "<signature>", "exec", __future__.annotations.compiler_flag), space)
    return inspect.signature(space[node.name])


# ---- a stub ----------------------------------------------------------------------------------------------------------


class Stub:
    """What a stub imports, and its lines. taken: names that mean something of its own in it."""

    def __init__(self, taken: set[str]):
        self.taken = taken
        self.imports: dict[tuple[str, str], str] = {}
        self.lines: list[str] = []

    def text(self) -> str:
        """The whole stub."""
        of: dict[str, list[str]] = {}
        for (module, name), shown in sorted(self.imports.items()):
            is_given_on = shown in self.taken  # which takes the form "x as x"
            of.setdefault(module, []).append(f"{name} as {shown}" if is_given_on or shown != name else name)
        imports = [f"from {module} import {', '.join(names)}" for module, names in of.items()]
        return "\n".join([HEAD + "\n".join(imports), "", *self.lines, ""])

    def name(self, module: str, name: str) -> str:
        """What the stub calls a name of a module."""
        if name not in definitions(module) and hasattr(builtins, name):
            return f"builtins.{name}" if name in self.taken else name
        place = origin(TYPES if name in ("Literal", "Tensor") else module, name)
        return self.imports.setdefault(place, "_" + place[1] if place[1] in self.taken else place[1])

    def annotation(self, text: Any, module: str) -> str:
        """An annotation of a module in the names of the stub."""
        tree = ast.parse(text if isinstance(text, str) else "Any", mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                known = node.id in definitions(module) or hasattr(builtins, node.id)
                node.id = self.name(module if known else TYPES, node.id)
        return ast.unparse(tree)

    def function(self, name: str, function: Any, is_method: bool, known: Callable[[str], Any]) -> None:
        """A definition, or of an overloaded function one for each of its signatures. known(name): the function of a
        name; in-place ones take what the others do."""
        base = known(f"__{name[3:]}" if name[:3] == "__i" else name[:-1]) if name[-1] == "_" else None
        is_inplace = base is not None
        forms, module = signatures(function)
        takes_operands = hasattr(function, "row") or (name[:2] == "__" and name not in ("__eq__", "__ne__"))
        for form in forms:
            parameters = self.parameters(form, module, is_method, takes_operands)
            returns = "Self" if is_inplace and is_method else "Tensor" if is_inplace else form.return_annotation
            shown = self.annotation("Tensor" if returns is form.empty else returns, module)
            ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            self.lines += [f"@{self.name(TYPES, 'overload')}"] * (len(forms) > 1)
            about = inspect.cleandoc(function.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
            body = f'"""{about}"""' if about and len(forms) == 1 and "\\" not in about and about[-1] != '"' else "..."
            self.lines.append(f"def {name}({', '.join(parameters)}) -> {shown}: {body}{ignored}")

    def parameters(self, form: inspect.Signature, module: str, is_method: bool, takes_operands: bool) -> Iterator[str]:
        """The parameters as they are written. takes_operands: those without annotation are what operators take."""
        before = None
        for i, p in enumerate(form.parameters.values()):
            if before is p.POSITIONAL_ONLY and p.kind is not before and (i > 1 or not is_method):
                yield "/"
            if p.kind is p.KEYWORD_ONLY and before not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
                yield "*"
            before = p.kind
            if is_method and i == 0:
                yield p.name
                continue
            given = "Operand" if takes_operands and p.annotation in (p.empty, "Any") else p.annotation
            stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            default = "" if p.default is p.empty else " = ..."
            yield f"{stars}{p.name}: {self.annotation(given, module)}{default}"
        if before is inspect.Parameter.POSITIONAL_ONLY:
            yield "/"


def method(name: str) -> Any:
    """A method of Tensor, whose module may not have been imported yet; None where there is none."""
    thing = METHODS.get(name)
    return thing.function() if isinstance(thing, DeferredMethod) else thing


def methods() -> str:
    """norch/_methods.pyi."""
    stub = Stub(set(dir(norch.Tensor)))
    for name in sorted(METHODS):
        thing = method(name)
        if isinstance(thing, property):
            returns = inspect.signature(thing.fget).return_annotation  # type: ignore[arg-type]
            module = inspect.unwrap(thing.fget).__globals__["__name__"]  # type: ignore[arg-type]
            stub.lines += ["@property", f"def {name}(self) -> {stub.annotation(returns, module)}: ..."]
        else:
            stub.function(name, thing, True, method)
    head = f"class DeclaredMethods({stub.name('norch._tensor.handle', 'Handle')}):"
    about = '"""The methods of Tensor that norch/ops declares."""'
    stub.lines = [head, *(f"    {line}" for line in (about, "", "__slots__ = ()", "", *stub.lines))]
    return stub.text()


def public(module: ModuleType) -> str:
    """The stub of a package that collects names: its public ones, and the in-place functions of norch."""
    names = {*dir(module), "__version__"} if module is norch else {*dir(module)}
    stub = Stub(names)
    things = {name: getattr(module, name) for name in sorted(names)}
    written = {name: thing for name, thing in things.items() if isinstance(thing, (type, FunctionType))}
    written = {name: thing for name, thing in written.items() if thing.__module__ != module.__name__}
    written = {name: thing for name, thing in written.items() if stands_in_text(thing)}
    for name, thing in written.items():
        if thing.__name__ == name:
            stub.imports[thing.__module__, name] = name
    for name, thing in things.items():
        if name in written:
            place = thing.__module__, thing.__name__
            if stub.imports.setdefault(place, f"_{thing.__name__}") != name:
                stub.lines.append(f"{name} = {stub.imports[place]}")
        elif isinstance(thing, ModuleType):
            stub.imports[module.__name__, name] = name
        elif isinstance(thing, FunctionType):
            stub.function(name, thing, False, things.get)
        else:
            kind = "None" if thing is None else stub.name(type(thing).__module__, type(thing).__name__)
            stub.lines.append(f"{name}: {kind}")
    if module is norch:
        inplace = {name for name in METHODS if name[-1] == "_" != name[-2]} | module.__dict__["_METHODS"]
        for name in sorted(inplace - names):
            stub.lines.append(f"{name} = Tensor.{name}")
    return stub.text()


STUBS: dict[str, Callable[[], str]] = {
    "_methods.pyi": methods,
    "__init__.pyi": lambda: public(norch),
    "nn/functional/__init__.pyi": lambda: public(norch.nn.functional),
    "linalg.pyi": lambda: public(norch.linalg),
    "special.pyi": lambda: public(norch.special),
}


def main() -> None:
    package = Path(norch.__file__).parent
    for name, text in STUBS.items():
        unfinished = package / f"{name}.new"
        unfinished.write_text(text())
        unfinished.replace(package / name)


if __name__ == "__main__":
    main()
