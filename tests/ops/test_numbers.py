"""Python numbers as operands: their tensors are kept for the next time, and nobody outside gets to see one."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from conftest import drop_numbers

import norch
from norch.nn import functional as F  # noqa: N812
from norch.ops import _operand

NUMBERS = (0.5, 2.0, 1, True)


def tensors_in(result: Any) -> Iterator[Any]:
    """The tensors of a result, of any depth."""
    if isinstance(result, norch.Tensor):
        yield result
    elif isinstance(result, dict):
        yield from tensors_in(list(result.values()))
    elif isinstance(result, (list, tuple)):
        for each in result:
            yield from tensors_in(each)


def overwrite(result: Any) -> None:
    """Writes to every byte that the tensors of a result see."""
    for x in tensors_in(result):
        x.untyped_storage().elements.fill_(0x55)


def changed_numbers() -> list[str]:
    """The kept numbers that no longer hold their value."""
    changed = []
    for kind, kept in _operand._numbers.items():
        for key, x in kept.items():
            wanted = kind(key)
            if x.item() != wanted and wanted == wanted:
                changed.append(f"{wanted!r} holds {x.item()!r}")
    return changed


def functions() -> list[tuple[str, Callable[..., Any]]]:
    """The functions of norch, of nn.functional and of linalg, and the methods of tensors, but those that set a mode."""
    found: dict[Any, tuple[str, Any]] = {}
    for place, prefix in ((norch, "norch"), (F, "F"), (norch.linalg, "linalg"), (norch.Tensor, "Tensor")):
        for name in dir(place):
            thing = getattr(place, name, None)  # None: what is left out
            if name[0] == "_" or isinstance(thing, type) or not callable(thing):
                continue
            if name.startswith(("set_", "save", "load", "seed", "manual_seed", "use_", "from_file", "rebuilt")):
                continue
            found.setdefault(thing, (f"{prefix}.{name}", thing))
    return list(found.values())


def arguments(number: Any) -> Iterator[tuple[Any, ...]]:
    """A number in each place of up to three, beside tensors, in a list, and alone."""
    for count in (1, 2, 3):
        for is_number in itertools.product((True, False), repeat=count):
            if any(is_number):
                yield tuple(number if here else norch.rand(2, 2) for here in is_number)
    condition = norch.ones(2, 2) > 0
    yield from [(condition, number, number), (norch.ones(2, 2), condition, number)]
    yield from [([number, number],), ([norch.ones(2, 2), number],), (norch.ones(1), 0, number)]


def attempt(function: Callable[..., Any], given: Iterable[Any], **options: Any) -> None:
    try:
        overwrite(function(*given, **options))
    except (norch.Error, TypeError, ValueError, ArithmeticError, AttributeError, LookupError, RuntimeError):
        pass  # not every function takes every number


@pytest.mark.parametrize("number", NUMBERS)
def test_no_function_hands_out_a_kept_number(number: Any) -> None:
    wrong = []
    drop_numbers()
    for each in NUMBERS:
        _operand.operand(each)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in functions():
            for options in ({}, {"inplace": True}):
                for given in arguments(number):
                    attempt(function, given, **options)
                if options and changed_numbers():
                    wrong.append(f"{name}: {', '.join(changed_numbers())}")
                    drop_numbers()
    assert not wrong, "\n".join(wrong)


def test_numbers_survive_what_is_written_into_results() -> None:
    F.hardsigmoid(0.5, inplace=True)
    norch.positive(2.0).add_(1)
    assert (norch.ones(1) * 0.5).item() == 0.5 and (norch.ones(1) * 2.0).item() == 2


@pytest.mark.parametrize("first, then", [(0.0, -0.0), (-0.0, 0.0), (1, True), (True, 1), (1, 1.0), (1.0, 1), (0, -0.0)])
def test_a_kept_number_stands_for_no_other_that_is_equal(first: Any, then: Any) -> None:
    """Python's dicts take -0.0 for 0.0, and True for 1."""
    drop_numbers()
    x = norch.tensor([1, 2], dtype=norch.uint8)
    for number in (first, then, first, then):
        out = x * number
        assert out.dtype is (norch.float32 if type(number) is float else norch.uint8)
        assert str(out[0].item()) == str(number * 1)
        condition = norch.tensor([True, False])
        assert str(norch.where(condition, number, x.bool())[0].item()) == str(number)


def test_numbers_are_kept() -> None:
    """Also while the tests run: the other tests here are about those that are kept."""
    drop_numbers()
    x = norch.ones(2)
    for number in NUMBERS:
        x * number
        assert number in _operand._numbers[type(number)]
    kept = dict(_operand._numbers[float])
    x * NUMBERS[0]
    assert all(_operand._numbers[float][key] is number for key, number in kept.items())


def test_a_number_is_not_pinned() -> None:
    with pytest.raises(TypeError, match="is_pinned: expected a tensor, not float"):
        norch.Tensor.is_pinned(3.0)


@pytest.mark.parametrize("number", NUMBERS)
def test_no_gradient_is_a_kept_number(number: Any) -> None:
    """Gradients that a user may write to: of each function of two tensors, one of which is a number."""
    drop_numbers()
    for _, function in functions():
        for at in (0, 1):
            x = norch.tensor(0.25, requires_grad=True)
            try:
                out = function(*((x, number) if at else (number, x)))
                for each in tensors_in(out):
                    each.backward(retain_graph=True)
            except (norch.Error, TypeError, ValueError, ArithmeticError, AttributeError, LookupError, RuntimeError):
                continue
            overwrite(x.grad)
    assert not changed_numbers()


# Options that are numbers. Made of a tensor they have no gradient, so that one which requires it is refused.
OPTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "elu": lambda x, p: F.elu(x, p),
    "celu": lambda x, p: F.celu(x, p),
    "threshold": lambda x, p: F.threshold(x, p, 1.0),
    "threshold: value": lambda x, p: F.threshold(x, 0.1, p),
    "softplus": lambda x, p: F.softplus(x, p),
    "softplus: threshold": lambda x, p: F.softplus(x, 1.0, p),
    "hardshrink": lambda x, p: F.hardshrink(x, p),
    "softshrink": lambda x, p: F.softshrink(x, p),
    "hardtanh": lambda x, p: F.hardtanh(x, -1.0, p),
    "huber_loss": lambda x, p: F.huber_loss(x, x + 1, delta=p),
    "cross_entropy": lambda x, p: F.cross_entropy(x, norch.tensor([0, 1]), label_smoothing=p),
    "layer_norm": lambda x, p: F.layer_norm(x, (2,), eps=p),
    "batch_norm": lambda x, p: F.batch_norm(x, None, None, training=True, eps=p),
    "attention": lambda x, p: F.scaled_dot_product_attention(x, x, x, scale=p),
    "dropout": lambda x, p: F.dropout(x, p / 2),
    "dropout1d": lambda x, p: F.dropout1d(x, p / 2),
    "alpha_dropout": lambda x, p: F.alpha_dropout(x, p / 2, training=True),
    "pad": lambda x, p: F.pad(x, (1, 1), value=p),
    "interpolate": lambda x, p: F.interpolate(x[None], scale_factor=p),
    "norm": lambda x, p: x.norm(p),
    "dist": lambda x, p: norch.dist(x, x + 1, p),
    "cdist": lambda x, p: norch.cdist(x, x, p),
    "pdist": lambda x, p: F.pdist(x, p),
    "nan_to_num": lambda x, p: x.nan_to_num(p),
    "full": lambda x, p: norch.full((2,), p),
    "full_like": lambda x, p: norch.full_like(x, p),
    "new_full": lambda x, p: x.new_full((2,), p),
    "arange": lambda x, p: norch.arange(0, p),
    "normal": lambda x, p: norch.normal(p, 1.0, (2,)),
    "normal_": lambda x, p: x.clone().normal_(p),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_would_lose_its_gradient_is_refused(name: str) -> None:
    call, x = OPTIONS[name], norch.tensor([[0.5, -1.0], [2.0, 0.1]])
    for p in (norch.tensor(1.0, requires_grad=True), norch.ones(1, requires_grad=True).sum()):
        with pytest.raises(TypeError, match="must be a number|expected a number"):
            call(x, p)
        norch.manual_seed(0)
        found = call(x, p.detach())  # as the number
        norch.manual_seed(0)
        assert norch.testing.assert_close(found, call(x, 1.0), equal_nan=True) is None


def test_options_whose_gradient_is_computed(torch: Any) -> None:
    for lib in (norch, torch):
        tau = lib.tensor(2.0, requires_grad=True)
        lib.nn.functional.gumbel_softmax(lib.zeros(2, 3), tau).square().sum().backward()
        assert tau.grad.item() != 0
        bound, weight = lib.tensor(1.0, requires_grad=True), lib.zeros(2, requires_grad=True)
        (weight * lib.tensor([3.0, 4.0])).sum().backward()
        lib.nn.utils.clip_grad_norm_([weight], bound)  # which no gradient passes through
        assert weight.grad.tolist() == pytest.approx([0.6, 0.8])
    mean = norch.zeros(2, requires_grad=True)
    assert norch.normal(mean, 1.0).shape == (2,)


@pytest.mark.parametrize("name", ["add", "sub", "add_", "sub_", "rsub"])
def test_a_factor_of_several_numbers_is_refused(name: str) -> None:
    x = norch.ones(2, 2)
    call = norch.rsub if name == "rsub" else getattr(norch.Tensor, name)
    for alpha in (norch.ones(2), norch.ones(1)):  # as in PyTorch
        with pytest.raises(TypeError, match=rf"^{name}: alpha must be a number, not a tensor of shape"):
            call(x, x, alpha=alpha)
    assert (
        call(norch.ones(2, 2), x, alpha=norch.tensor(3.0)).tolist()
        == call(norch.ones(2, 2), norch.ones(2, 2), alpha=3).tolist()
    )
