"""Settings and checks of PyTorch itself, its private modules of utils.data, names of its modules beside the public
ones, and Module._apply(), which libraries override."""

import copy
import importlib
import sys
from typing import Any

import pytest

import norch
from norch import nn
from norch.compat import placeholders
from norch.testing import assert_close

pytestmark = pytest.mark.host


# ---- settings and checks -------------------------------------------------------------------------------------------

SAME = {
    "sym_max": (3, 2.5), "sym_min": (3, 2), "sym_int": (2.7,), "sym_float": (2,), "sym_not": (True,), "sym_sqrt": (4,),
    "sym_sum": ((1, 2, 3),), "sym_ite": (False, 1, 2), "get_deterministic_debug_mode": (), "_check": (True,),
    "_check_index": (True, lambda: "text"), "is_deterministic_algorithms_warn_only_enabled": (),
    "is_inference_mode_enabled": (), "is_warn_always_enabled": (), "is_storage": (3,),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_questions_have_the_answers_of_pytorch(torch: Any, name: str) -> None:
    ours, theirs = getattr(norch, name)(*SAME[name]), getattr(torch, name)(*SAME[name])
    assert ours == theirs and type(ours) is type(theirs)


@pytest.mark.parametrize("name", "_check _check_index _check_value _check_type _check_not_implemented".split())
def test_checks_raise_the_errors_of_pytorch(torch: Any, name: str) -> None:
    for module in (torch, norch):
        with pytest.raises(Exception, match="text") as caught:
            getattr(module, name)(False, lambda: "text")
        kinds = {*locals().get("kinds", ()), caught.type}
        with pytest.raises(TypeError, match="bool"):
            getattr(module, name)(1)
    assert len(kinds) == 1


def test_checks_of_tensors() -> None:
    norch._check_tensor_all(norch.ones(2) > 0)
    norch._assert_async(norch.ones(1))
    norch._check_is_size(3, max=3)
    for call in (
        lambda: norch._check_tensor_all(norch.arange(2) > 0),
        lambda: norch._assert_async(norch.zeros(1), "text"),
        lambda: norch._check_is_size(-1),
    ):
        with pytest.raises(RuntimeError):
            call()
    assert norch._shape_as_tensor(norch.ones(2, 3)).tolist() == [2, 3]


def test_settings_are_kept() -> None:
    before = norch.get_default_dtype()
    try:
        for kind in (norch.DoubleTensor, "torch.DoubleTensor"):
            norch.set_default_tensor_type(norch.FloatTensor)
            norch.set_default_tensor_type(kind)
            assert norch.ones(1).dtype is norch.float64
        with pytest.raises(TypeError, match="not a tensor type"):
            norch.set_default_tensor_type("torch.Nonsense")
    finally:
        norch.set_default_dtype(before)
    for mode, number in (("warn", 1), (2, 2), ("default", 0)):
        norch.set_deterministic_debug_mode(mode)
        assert norch.get_deterministic_debug_mode() == number
        assert norch.are_deterministic_algorithms_enabled() is (number > 0)
    assert norch.get_autocast_cpu_dtype() is norch.get_autocast_dtype("cpu") and not norch.is_autocast_cpu_enabled()
    assert norch.get_device_module("cpu") is norch.cpu and norch.is_storage(norch.ones(1).untyped_storage())


@pytest.mark.parametrize("name", "complex32 chalf qint8 quint8 qint32 quint4x2 quint2x4".split())
def test_dtypes_that_no_tensor_has(torch: Any, name: str) -> None:
    ours, theirs = getattr(norch, name), getattr(torch, name)
    assert isinstance(ours, norch.dtype) and ours.itemsize == theirs.itemsize and ours.is_complex is theirs.is_complex
    with pytest.raises(norch.DTypeError, match=r"norch leaves \w+ out"):
        norch.ones(1, dtype=ours)
    assert norch.chalf is norch.complex32


# ---- names of modules ----------------------------------------------------------------------------------------------


def test_names_of_own_names_are_placeholders(torch: Any) -> None:
    for where, names in placeholders.private_names().items():
        module = importlib.import_module(f"norch.{where}")
        for name in names:
            assert name not in vars(module), f"{where}.{name} is there"
            assert placeholders.is_placeholder(placeholders.placeholder(where, name))


@pytest.mark.parametrize("path", ["jit.Error", "distributed.DistBackendError", "_dynamo.exc.Unsupported", "FatalError"])
def test_placeholders_of_exceptions_can_be_caught(path: str) -> None:
    module, _, name = f"norch.{path}".rpartition(".")
    error = getattr(importlib.import_module(module), name)
    with pytest.raises(ZeroDivisionError):
        try:
            1 / 0  # noqa: B018
        except error:
            pytest.fail("caught")
    assert error is getattr(importlib.import_module(module), name) and placeholders.is_placeholder(error)


@pytest.mark.parametrize("name", "cuda cudnn mkldnn mps opt_einsum".split())
def test_settings_of_backends_are_the_same_when_imported(name: str) -> None:
    there = getattr(norch.backends, name)
    assert placeholders.imported(f"backends.{name}") is there is getattr(norch.backends, name)
    assert norch.backends.cuda.matmul.allow_tf32 is False and not norch.backends.mps.is_macos_or_newer(14, 0)


# ---- batches -------------------------------------------------------------------------------------------------------


class Word(str):
    """Of a class that a library registers."""


def test_functions_that_collate_are_registered() -> None:
    module = importlib.import_module("norch.utils.data._utils.collate")
    functions = module.default_collate_fn_map

    def joined(batch: Any, *, collate_fn_map: Any) -> Any:
        assert collate_fn_map is functions
        return "-".join(batch)

    functions[Word] = joined
    try:
        samples = [(Word("a"), 1, "x"), (Word("b"), 2, "y")]
        for found in (norch.utils.data.default_collate(samples), next(iter(norch.utils.data.DataLoader(samples, 2)))):
            assert found[0] == "a-b" and found[1].tolist() == [1, 2] and found[2] == ["x", "y"]
    finally:
        del functions[Word]
    assert norch.utils.data.default_collate([Word("a"), Word("b")]) == ["a", "b"]


def test_collate_takes_a_map(torch: Any) -> None:
    class Box(list[Any]):
        name = "box"

    for module, data in ((torch, torch.utils.data), (norch, norch.utils.data)):
        inner = importlib.import_module(f"{data.__name__}._utils.collate")
        functions = {int: lambda batch, *, collate_fn_map: sum(batch), module.Tensor: inner.collate_tensor_fn}
        samples = [{"a": 1, "b": [1, 2], "c": Box([3, 4]), "d": module.ones(2)} for _ in range(3)]
        found = inner.collate(samples, collate_fn_map=functions)
        assert (found["a"], found["b"], found["c"]) == (3, [3, 6], [9, 12]) and type(found["c"]) is Box
        assert found["d"].shape == (3, 2)
        with pytest.raises(TypeError, match="default_collate"):
            inner.collate([object()], collate_fn_map=functions)
        with pytest.raises(RuntimeError, match="equal size"):
            inner.collate([[1], [1, 2]], collate_fn_map=functions)


def test_exceptions_are_raised_again() -> None:
    wrapper = importlib.import_module("norch.utils.data._utils").ExceptionWrapper
    for error in (ValueError("text"), KeyError("text"), UnicodeDecodeError("utf8", b"", 0, 1, "text")):
        try:
            raise error
        except Exception:
            held = wrapper(sys.exc_info(), where="in a thread")
        expected = RuntimeError if isinstance(error, UnicodeDecodeError) else type(error)
        with pytest.raises(expected, match=r"in a thread[\s\S]*Original Traceback[\s\S]*text"):
            held.reraise()


# ---- Module._apply -------------------------------------------------------------------------------------------------


class Holder(nn.Module):
    """Holds a tensor that is no parameter and no buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.held, self.inner = [norch.ones(2)], nn.Linear(2, 2)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.held = [fn(x) for x in self.held]
        return super()._apply(fn, recurse)


@pytest.mark.parametrize("nested", [False, True])
def test_what_a_subclass_applies_follows_its_module(nested: bool) -> None:
    holder = Holder()
    model: Any = nn.Sequential(nn.Linear(2, 2), holder) if nested else holder
    model.register_buffer("count", norch.ones(1))
    first = holder.inner.weight
    assert model.double() is model
    assert holder.held[0].dtype is holder.inner.weight.dtype is model.count.dtype is norch.float64
    assert holder.inner.weight is first
    assert model.to("meta").inner.weight.is_meta if not nested else model.to("meta")[1].held[0].is_meta


def test_apply_gives_every_tensor_to_a_function() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    before = copy.deepcopy(model.state_dict())
    model._apply(lambda x: x + 1)
    for name, x in model.state_dict().items():
        assert_close(x, before[name] + 1)
