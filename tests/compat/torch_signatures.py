"""The signatures of PyTorch: of its Python functions by inspect, of its builtins by the stubs of its package."""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import cache
from pathlib import Path
from typing import Any

import torch

P = inspect.Parameter

# Where public names are, and the class of the stub that types them: those of builtins have overloads.
MODULES = {
    "": "_C/_VariableFunctions.pyi _VariableFunctions", "Tensor": "_C/__init__.pyi TensorBase", "nn": "",
    "nn.functional": "_C/_nn.pyi", "nn.init": "", "nn.utils": "", "nn.utils.rnn": "", "nn.Module": "",
    "optim": "", "optim.lr_scheduler": "", "optim.swa_utils": "", "utils.data": "", "distributions": "",
    "linalg": "", "fft": "", "special": "", "autograd": "", "autograd.functional": "", "amp": "", "func": "",
    "serialization": "", "random": "", "testing": "",
}  # fmt: skip


@cache
def stubs(path: str, cls: str) -> dict[str, list[inspect.Signature]]:
    """The overloads of each function of a stub."""
    tree = ast.parse((Path(torch.__file__).parent / path).read_text())
    body = next((node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == cls), tree.body)
    found: dict[str, list[inspect.Signature]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(_signature(node.args))
    return found


def _value(node: ast.expr | None) -> Any:
    if node is None:
        return P.empty
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def _signature(args: ast.arguments) -> inspect.Signature:
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    kinds = [P.POSITIONAL_ONLY] * len(args.posonlyargs) + [P.POSITIONAL_OR_KEYWORD] * len(args.args)
    found = [P(a.arg, k, default=_value(d)) for a, k, d in zip(positional, kinds, defaults, strict=True)]
    if args.vararg:
        found.append(P(args.vararg.arg, P.VAR_POSITIONAL))
    found += [
        P(a.arg, P.KEYWORD_ONLY, default=_value(d)) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)
    ]
    return inspect.Signature(found)


def schemas(name: str) -> list[inspect.Signature]:
    """The overloads of an operator, without those that write to out or name axes by strings."""
    found = []
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        if "out" in schema.overload_name or "name" in schema.overload_name:
            continue
        made = []
        for a in schema.arguments:
            kind = P.KEYWORD_ONLY if a.kwarg_only else P.POSITIONAL_OR_KEYWORD
            made.append(P("input" if a.name == "self" else a.name, kind, default=_of_schema(a)))
        found.append(inspect.Signature(made))
    return found


def _of_schema(argument: Any) -> Any:
    if not argument.has_default_value():
        return P.empty
    return tuple(x) if isinstance(x := argument.default_value, list) else x


def signatures(where: str, name: str) -> list[inspect.Signature]:
    """The overloads of a function or class of PyTorch; [] where none are known."""
    thing = getattr(_module("torch", where), name)
    if isinstance(thing, type) or inspect.isfunction(thing) or inspect.ismethod(thing):
        try:
            return [inspect.signature(thing)]
        except (TypeError, ValueError):
            return []
    if where in ("linalg", "fft", "special"):
        return schemas(f"{where}_{name}")
    for key in (where, "nn.functional", ""):
        if MODULES[key]:
            path, _, cls = MODULES[key].partition(" ")
            if found := stubs(path, cls).get(name):
                return found
    text = (thing.__doc__ or "").lstrip().partition("\n")[0].partition("->")[0].strip()
    try:
        call: Any = ast.parse(
            f"def {text}: pass" if text.startswith(name) else f"def {name}{text[text.index('(') :]}: pass"
        )
        return [_signature(call.body[0].args)]
    except (SyntaxError, ValueError):
        return []


def _module(root: str, where: str) -> Any:
    try:
        return importlib.import_module(f"{root}.{where}".rstrip("."))
    except ImportError:
        path, _, name = where.rpartition(".")
        return getattr(_module(root, path), name)


def differences(where: str, name: str) -> list[str]:
    """What a call of PyTorch's could say that norch's function does not take, or takes otherwise."""
    ours = getattr(_module("norch", where), name)
    try:
        mine = inspect.signature(ours)
    except (TypeError, ValueError):
        return ["no signature"]
    overloads = signatures(where, name)
    said: list[str] = []
    for theirs in overloads:
        said += [each for each in _differences(mine, theirs, overloads) if each not in said]
    return said


def _named(signature: inspect.Signature) -> list[inspect.Parameter]:
    return [p for p in signature.parameters.values() if p.kind not in (P.VAR_POSITIONAL, P.VAR_KEYWORD)]


def _differences(mine: inspect.Signature, theirs: inspect.Signature, overloads: list[inspect.Signature]) -> list[str]:
    """Of one overload. A default counts where no overload has another."""
    kinds = {p.kind for p in mine.parameters.values()}
    own = {p.name: p for p in _named(mine)}
    order = [p.name for p in _named(mine) if p.kind is not P.KEYWORD_ONLY]
    said = []
    for place, p in enumerate(q for q in _named(theirs) if q.kind is not P.KEYWORD_ONLY):
        if place >= len(order):
            if P.VAR_POSITIONAL not in kinds:
                said.append(f"{p.name} is not positional")
        elif order[place] != p.name and p.kind is not P.POSITIONAL_ONLY and p.name not in ("self", "input"):
            said.append(f"position {place} is {order[place]}, not {p.name}")
    for p in _named(theirs):
        if p.kind is P.POSITIONAL_ONLY or p.name == "self":
            continue
        if p.name not in own:
            if P.VAR_KEYWORD not in kinds:
                said.append(f"no {p.name}")
        elif p.default is not P.empty and not any(
            p.name in each.parameters and _same(own[p.name].default, each.parameters[p.name].default)
            for each in overloads
        ):
            said.append(f"{p.name}={own[p.name].default!r}, not {p.default!r}")
    return said


def _same(mine: Any, theirs: Any) -> bool:
    def plain(x: Any) -> Any:
        text = getattr(x, "name", None) if not isinstance(x, type) else None
        text = str(x if text is None else text).replace("torch.", "").replace("norch.", "")
        return x if isinstance(x, bool | int | float | complex | tuple | list | None) else text

    mine, theirs = plain(mine), plain(theirs)
    if theirs is Ellipsis or str(theirs) == "Ellipsis" or str(theirs).startswith(("<function", "<module", "relu")):
        return True  # a default that the stub does not tell; a function or module of each library
    if mine in (None, False) and (
        theirs in (None, (), "preserve_format", "contiguous_format") or "Generator" in str(theirs)
    ):
        return True
    if mine is P.empty or mine == "<class 'inspect._empty'>":
        return False
    return mine == theirs or (isinstance(theirs, tuple) and set(theirs) == {mine}) or str(mine) == str(theirs)


def all_differences() -> dict[str, list[str]]:
    found = {}
    for where in MODULES:
        there, here = _module("torch", where), _module("norch", where)
        for name in sorted(dir(here)):
            if name[0] == "_" or not hasattr(there, name) or not hasattr(here, name):
                continue
            theirs, ours = getattr(there, name), getattr(here, name)
            if not callable(theirs) or not callable(ours) or inspect.ismodule(theirs):
                continue
            if said := differences(where, name):
                found[f"{where}.{name}".lstrip(".")] = said
    return found
