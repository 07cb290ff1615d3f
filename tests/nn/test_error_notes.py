"""The note of an exception that says in which module it was raised: the path, the arguments, hooks, wrappers of calls,
exceptions that are raised twice or pickled, and what the note must not keep alive."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import norch
from norch import nn
from norch.nn._watch import watching

pytestmark = pytest.mark.host

notes = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 prints no notes")


def raised(model: Any, *args: Any, **kwargs: Any) -> Any:
    with pytest.raises(Exception) as caught:
        model(*args, **kwargs)
    return caught.value


def note_of(model: Any, *args: Any, **kwargs: Any) -> str:
    (note,) = raised(model, *args, **kwargs).__notes__
    return str(note)


class Net(nn.Module):
    """A tree of modules, with lists, and one that fails itself."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, n)) for n in (4, 3))
        self.head = nn.Linear(4, 2)
        self.apart = [nn.Linear(5, 5)]  # not registered

    def forward(self, x: Any, way: str = "through", **more: Any) -> Any:
        if way == "own":
            raise ValueError("own")
        if way == "apart":
            return self.apart[0](x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@pytest.mark.parametrize(
    ("model", "args", "said"),
    [
        (lambda: nn.Linear(12, 4), [norch.ones(8, 10)], "in Linear(12, 4), called with (8, 10)"),
        (
            lambda: nn.Sequential(nn.Linear(12, 4)),
            [norch.ones(8, 10)],
            "in 0 (Linear(12, 4)) of Sequential, called with (8, 10)",
        ),
        (
            lambda: nn.Sequential(nn.Linear(12, 4), nn.ReLU()),  # one fused operation
            [norch.ones(8, 10)],
            "in 0 (Linear(12, 4)) of Sequential, called with (8, 10)",
        ),
        (
            lambda: nn.Sequential(nn.Sequential(nn.Flatten(), Net())),
            [norch.ones(2, 4)],
            "in 0.1.head (Linear(4, 2)) of Sequential, called with (2, 3)",
        ),
        (Net, [norch.ones(2, 5)], "in layers.0.0 (Linear(4, 4)) of Net, called with (2, 5)"),
        (Net, [norch.ones(2, 4), "own"], "in Net, called with (2, 4), 'own'"),
        (Net, [norch.ones(2, 4), "apart"], "in Linear(5, 5), called with (2, 4)"),
        (
            lambda: nn.Sequential(nn.Conv2d(1, 8, 3, padding=1)),
            [norch.ones(2, 2, 28, 28)],
            "in 0 (Conv2d(1, 8, (3, 3), stride=(1, 1), padding=(1, 1))) of Sequential, called with (2, 2, 28, 28)",
        ),
        (lambda: nn.Embedding(10, 3), [norch.ones(2)], "in Embedding(10, 3), called with (2,)"),
        (lambda: nn.LSTM(3, 4), [norch.ones(5, 2, 7)], "in LSTM(3, 4), called with (5, 2, 7)"),
        (lambda: nn.BatchNorm1d(4), [norch.ones(2, 3)], "in BatchNorm1d(4), called with (2, 3)"),
    ],
)
@notes
def test_the_note_names_the_module_and_its_arguments(model: Callable[[], Any], args: list[Any], said: str) -> None:
    assert note_of(model(), *args) == said


@notes
def test_arguments_are_shapes_dtypes_and_small_values() -> None:
    x = norch.ones(2, 3, dtype=norch.int64)
    assert note_of(Net(), x, way="own", pair=(x, None), many=[x] * 9, flag=True, thing=object()) == (
        "in Net, called with (2, 3) int64, way='own', pair=((2, 3) int64, None), many=list, flag=True, thing=object"
    )
    assert note_of(nn.Module()) == "in Module(), called with no arguments"
    assert len(note_of(Net(), x, "own", **{f"name_{n}": x for n in range(99)})) < 250


def plain(model: Any, x: Any) -> Any:
    return model(x)


@notes
@pytest.mark.parametrize(
    "wrap",
    [
        plain,
        lambda model, x: norch.capture(model)(x),
        lambda model, x: norch.compile(model)(x),
        lambda model, x: norch.func.functional_call(model, dict(model.named_parameters()), (x,)),
        lambda model, x: norch.utils.checkpoint.checkpoint(model, x, use_reentrant=False),
    ],
    ids=["plain", "capture", "compile", "functional_call", "checkpoint"],
)
@pytest.mark.parametrize("hook", [None, "forward", "pre", "backward"])
def test_wrappers_and_hooks_keep_the_note(wrap: Callable[..., Any], hook: str | None) -> None:
    model = nn.Sequential(nn.Linear(12, 4), nn.ReLU())
    if hook == "forward":
        model[0].register_forward_hook(lambda *_: None, always_call=True)
    elif hook == "pre":
        model[0].register_forward_pre_hook(lambda *_: None)
    elif hook == "backward":
        model[0].register_full_backward_hook(lambda *_: None)
    error = raised(wrap, model, norch.ones(8, 10))
    assert [str(one) for one in error.__notes__] == ["in 0 (Linear(12, 4)) of Sequential, called with (8, 10)"]


@notes
def test_a_compiled_part_has_its_own_name() -> None:
    model = nn.Sequential(nn.Flatten(), norch.compile(nn.Sequential(nn.Linear(12, 4))))
    assert note_of(model, norch.ones(8, 10)) == "in 1.0 (Linear(12, 4)) of Sequential, called with (8, 10)"


@notes
def test_calls_that_are_watched_have_notes() -> None:
    """Whichever call was the first to need them: Module.__call__ is another function meanwhile."""
    sys.modules.pop("norch.nn._error_notes", None)
    vars(nn).pop("_error_notes", None)
    model = nn.Sequential(nn.Linear(12, 4), nn.ReLU())
    with watching(lambda module: None):
        for _ in range(2):
            assert note_of(model, norch.ones(8, 10)) == "in 0 (Linear(12, 4)) of Sequential, called with (8, 10)"
    assert note_of(model, norch.ones(8, 10)) == "in 0 (Linear(12, 4)) of Sequential, called with (8, 10)"


@notes
def test_what_hooks_raise_is_noted() -> None:
    model = nn.Sequential(nn.Identity())

    def hook(*_: Any) -> None:
        raise KeyError("hook")

    model[0].register_forward_hook(hook)
    assert note_of(model, norch.ones(3)) == "in 0 (Identity()) of Sequential, called with (3,)"


@notes
def test_an_exception_that_is_raised_again_is_noted_anew() -> None:
    kept = ValueError("kept")

    class Fails(nn.Module):
        def forward(self, x: Any) -> Any:
            raise kept.with_traceback(None)

    first, second = nn.Sequential(Fails()), nn.Sequential(nn.Identity(), Fails())
    for _ in range(2):
        assert note_of(first, norch.ones(1)) == "in 0 (Fails()) of Sequential, called with (1,)"
        assert note_of(second, norch.ones(2)) == "in 1 (Fails()) of Sequential, called with (2,)"
    kept.add_note("the user's")
    raised(first, norch.ones(1))
    assert sorted(map(str, kept.__notes__)) == ["in 0 (Fails()) of Sequential, called with (1,)", "the user's"]


def test_a_copy_or_a_pickle_of_the_exception_is_text() -> None:
    error = raised(nn.Sequential(nn.Linear(12, 4)), norch.ones(8, 10))
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is norch.ShapeError and str(other) == str(error)
        assert other.__notes__ == ["in 0 (Linear(12, 4)) of Sequential, called with (8, 10)"]
    assert type(pickle.loads(pickle.dumps(error)).__notes__[0]) is str


def test_the_note_keeps_nothing_alive() -> None:
    model, x = nn.Sequential(nn.Linear(12, 4)), norch.ones(8, 10)
    error = raised(model, x).with_traceback(None)
    there: list[Any] = [weakref.ref(one) for one in (model, model[0], model[0].weight, x)]
    del model, x
    gc.collect()
    assert [one() for one in there] == [None] * 4
    assert error.__notes__ == ["in 0 (Linear(12, 4)) of Sequential, called with (8, 10)"]


def test_what_a_module_does_badly_leaves_the_error() -> None:
    class Bad(nn.Module):
        def extra_repr(self) -> str:
            raise RuntimeError("extra_repr")

        def forward(self, x: Any) -> Any:
            raise ValueError("forward")

    class Frozen(ValueError):
        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(name)

    class Raises(nn.Module):
        def forward(self, x: Any) -> Any:
            raise Frozen("frozen")

    assert str(raised(Bad(), 1)) == "forward"
    assert str(raised(Raises(), 1)) == "frozen"


def test_a_fused_call_that_fails_is_the_layers() -> None:
    """And changes nothing: the layers after it are called as before."""
    model = nn.Sequential(nn.Linear(12, 4), nn.ReLU(), nn.Linear(4, 1))
    error = raised(model, norch.ones(8, 10))
    assert isinstance(error, norch.ShapeError) and error.__context__ is None
    assert model(norch.ones(8, 12)).shape == (8, 1)


@pytest.mark.skipif(sys.version_info >= (3, 11), reason="only where exceptions have no notes")
def test_without_notes_the_message_ends_with_it() -> None:
    error = raised(nn.Sequential(nn.Sequential(nn.Linear(12, 4))), norch.ones(8, 10))
    first, last = str(error).split("\n")
    assert first.startswith("linear: ") and last == "in 0.0 (Linear(12, 4)) of Sequential, called with (8, 10)"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)

    class Own(Exception):
        def __init__(self, text: str) -> None:
            super().__init__(text)

    class Fails(nn.Module):
        def forward(self, error: Exception) -> Any:
            raise error

    for other in (Own("own"), KeyError("key"), OSError(2, "missing")):
        said = str(other)
        assert str(raised(Fails(), other)) == said
