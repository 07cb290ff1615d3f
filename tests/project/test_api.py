"""Nothing public is lost, or takes other arguments, unless api.txt says so: `make api` writes it again."""

import importlib
import re
import typing
from types import ModuleType

import api
import pytest

import norch
from norch._package.exports import publish

pytestmark = pytest.mark.host

LINE = re.compile(r"([\w.]+)(.*)")


def test_what_was_public_is_so_still():
    """Names may be added."""
    stored = [LINE.fullmatch(line).groups() for line in api.STORED.read_text().splitlines()]
    assert len(stored) > 2000
    missing, changed = [], []
    for path, before in stored:
        try:
            now = api.described(api.find(path))
        except AttributeError:
            missing.append(path)
            continue
        if now != before:
            changed.append(f"{path}: was {before}, is {now}")
    assert not missing, f"gone: {' '.join(missing)}"
    assert not changed, "\n".join(["changed:", *changed])


def test_the_list_is_what_make_api_writes():
    """But for additions: so a public module that hands on fewer names is found too."""
    assert set(api.STORED.read_text().splitlines()) <= set(api.lines())


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (lambda a, /, b: None, "(a, /, b)"),
        (lambda *a, b=len, **c: None, "(*a, b=..., **c)"),
        (property(), ": attribute"),
        (2.5, " = 2.5"),
        (api, ": module"),
        (object(), ": object"),
    ],
)
def test_how_a_name_is_described(thing, text):
    assert api.described(thing) == text


@pytest.mark.parametrize("path", api.MODULES)
def test_completion_shows_public_names_only(path):
    """No underscore, nothing that is imported from elsewhere, no module of the package alone."""
    module = importlib.import_module(path)
    assert dir(module) == sorted(set(dir(module))) and set(dir(module)) >= set(getattr(module, "__all__", ()))
    for name in api.public_names(path, module):
        assert (name[0] != "_" or name.startswith("__array_")) and name in dir(module)  # the standard has those
        thing = getattr(module, name)
        if isinstance(thing, ModuleType):
            assert importlib.import_module(f"{path}.{name}") is thing and "extras" not in thing.__name__
        else:  # SimpleNamespace is of types, constants have no module
            assert (getattr(thing, "__module__", None) or "norch").split(".")[0] in ("norch", "types"), name


def test_a_module_publishes_what_it_defines():
    namespace = {"__name__": "norch.made", "helper": re.compile, "search": re.search, "typing": typing}
    exec("def given(): pass\nclass Given: pass\ndef _own(): pass\nT = typing.TypeVar('T')", namespace)
    publish(namespace, {"norch.memory": "memory_stats _counts"}, more="helper")
    assert namespace["__getattr__"]("__all__") == ["Given", "given", "helper"]
    assert namespace["__dir__"]() == ["Given", "given", "helper", "memory_stats"]
    assert namespace["__getattr__"]("memory_stats") is norch.memory.memory_stats
    with pytest.raises(AttributeError, match="norch.made"):
        namespace["__getattr__"]("sofmax")


def test_no_helper_is_public() -> None:
    """PyTorch has all functions of norch; a helper that a module of operations hands on would be one more."""
    torch = pytest.importorskip("torch")
    added = {name for name in norch.__all__ if not hasattr(torch, name)}
    assert added <= {"CaptureError", "MetaError", *norch.errors.__all__}
    assert not [name for name in norch.nn.functional.__all__ if not hasattr(torch.nn.functional, name)]
