"""Parametrized weights, and weight and spectral normalisation: against PyTorch, and against what they mean."""

import copy
import gc
import importlib
import io
import pickle
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import nn
from norch.nn.extras import hooked_norms
from norch.nn.utils import parametrizations, parametrize
from norch.testing import assert_close


def of(array: Any) -> Any:
    return norch.tensor(np.asarray(array), device=DEVICE)


class Symmetric(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.triu() + x.triu(1).mT


class Positive(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.exp()

    def right_inverse(self, y: Any) -> Any:
        return y.log()


class Product(nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        return a * b

    def right_inverse(self, y: Any) -> Any:
        return y.clone(), norch.ones_like(y)


class Shorter(nn.Module):
    def forward(self, x: Any) -> Any:
        return x[:1]


def test_a_parametrized_weight_is_what_it_is_made_of() -> None:
    layer = nn.Linear(3, 3, device=DEVICE)
    weight, before = layer.weight, layer.weight.detach().clone()
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert layer.parametrizations.weight.original is weight and isinstance(layer, nn.Linear)
    assert norch.equal(layer.weight, before.triu() + before.triu(1).mT)
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert [name for name, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    layer(norch.ones(2, 3, device=DEVICE)).sum().backward()
    assert_close(weight.grad, norch.tensor([[2.0, 4, 4], [0, 2, 4], [0, 0, 2]], device=DEVICE))
    assert type(layer).__name__ == "ParametrizedLinear" and "(0): Symmetric()" in repr(layer)
    assert parametrize.is_parametrized(layer) and parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias") and not parametrize.is_parametrized(nn.Linear(1, 1))
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    with pytest.raises(NotImplementedError, match=r"Symmetric has no right_inverse\(\)"):
        layer.weight = before
    with pytest.raises(AttributeError, match="'ParametrizedLinear' object has no attribute 'nonsense'"):
        _ = layer.nonsense


def test_chains_assignment_and_removal() -> None:
    layer = nn.Linear(2, 2, device=DEVICE)
    bias = layer.bias
    layer.weight.data = norch.full((2, 2), 0.5, device=DEVICE)
    for _ in range(2):  # exp(exp(x)): the original stays when the second comes
        parametrize.register_parametrization(layer, "weight", Positive())
    assert_close(layer.weight.detach(), norch.full((2, 2), 0.5, device=DEVICE).exp())
    layer.weight = norch.full((2, 2), 3.0, device=DEVICE)
    assert_close(layer.weight.detach(), norch.full((2, 2), 3.0, device=DEVICE))
    original = layer.parametrizations.weight.original
    parametrize.register_parametrization(layer, "bias", nn.Tanh())
    parametrize.remove_parametrizations(layer, "bias", leave_parametrized=False)
    assert layer.bias is bias and parametrize.is_parametrized(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight is original and type(layer) is nn.Linear and not hasattr(layer, "parametrizations")
    assert_close(layer.weight.detach(), norch.full((2, 2), 3.0, device=DEVICE))
    assert set(layer.state_dict()) == {"weight", "bias"}


def test_several_originals_buffers_copies() -> None:
    layer = nn.BatchNorm1d(2, device=DEVICE)
    parametrize.register_parametrization(layer, "running_mean", Product())
    assert (
        list(dict(layer.named_buffers()))[-2:] == [f"parametrizations.running_mean.original{i}" for i in (0, 1)]
        and not layer.running_mean.requires_grad
    )
    model = nn.Sequential(parametrize.register_parametrization(nn.Linear(2, 2), "weight", Product()), nn.ReLU())
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert norch.equal(other.to(DEVICE)(norch.ones(2)), model(norch.ones(2)))  # a pickle is read into the CPU
        parametrize.remove_parametrizations(other[0], "weight")
        assert parametrize.is_parametrized(model[0])
    with parametrize.cached():
        assert model[0].weight is model[0].weight
    assert model[0].weight is not model[0].weight


@pytest.mark.parametrize("dim", [0, None])
def test_hooks_are_of_a_class_of_theirs(torch: Any, dim: int | None) -> None:
    """As in PyTorch, with its attributes; and those that norch 0.2 pickled become such hooks."""
    layers: Any = [
        (
            library.nn.utils.weight_norm(library.nn.Linear(4, 3), dim=dim),
            library.nn.utils.spectral_norm(library.nn.Linear(4, 3), eps=1e-3),
        )
        for library in (norch, torch)
    ]
    for ours, theirs in zip(*layers, strict=True):
        (hook,), (wanted,) = ours._forward_pre_hooks.values(), theirs._forward_pre_hooks.values()
        assert type(hook).__name__ == type(wanted).__name__ and vars(hook) == vars(wanted)
        kept = ours.weight.detach().clone()
        hook.remove(ours)
        assert isinstance(ours.weight, nn.Parameter) and list(ours._parameters) == ["bias", "weight"]
        assert dim is not None or kept.shape == ours.weight.shape
    for parts, compute, like in (
        ("g v", partial(hooked_norms._rescaled_weight, dim=dim), hooked_norms.WeightNorm("weight", dim)),
        (
            "orig u v",
            partial(hooked_norms._normalized_weight, axis=1, iterations=2, eps=1e-3),
            hooked_norms.SpectralNorm("weight", 2, 1, 1e-3),
        ),
    ):
        old = hooked_norms._Hook()
        old.__setstate__({"kind": "", "name": "weight", "parts": parts.split(), "compute": compute})
        assert type(old) is type(like) and vars(old) == vars(like)
        assert vars(pickle.loads(pickle.dumps(old))) == vars(like)


@pytest.mark.parametrize("made", ["weight_norm", "spectral_norm"])
@pytest.mark.parametrize("utils", [nn.utils, parametrizations], ids=["older", "parametrized"])
def test_a_normalised_module_can_be_pickled_and_saved(utils: Any, made: str) -> None:
    layer = getattr(utils, made)(nn.Linear(3, 2, device=DEVICE)).eval()
    x = norch.ones(1, 3, device=DEVICE)
    file = io.BytesIO()
    norch.save(layer, file)
    file.seek(0)
    others = [pickle.loads(pickle.dumps(layer)), norch.load(file, weights_only=False)]
    if (utils, made) != (nn.utils, "weight_norm"):  # it holds a weight that is no leaf, not copied in PyTorch either
        others.append(copy.deepcopy(layer))
    else:
        with pytest.raises(norch.Error, match="only leaves can be copied"):
            copy.deepcopy(layer)
        with norch.no_grad():
            layer(x)
        others.append(copy.deepcopy(layer))
    state = getattr(nn.utils, made)(nn.Linear(3, 2, device=DEVICE)).state_dict()
    for other in others:
        other = other.to(DEVICE)
        assert norch.equal(other(x), layer(x))
        if made == "weight_norm":  # the hook that reads the older names, where there is one, has come along
            other.load_state_dict(state)
            assert_close(other(x), nn.functional.linear(x, state["weight_v"], state["bias"]))


def copied(ours: Any, theirs: Any) -> None:
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({key: of(value.numpy()) for key, value in theirs.state_dict().items()})


NORMS: Any = {
    "weight": ("weight_norm", {}),
    "weight, last": ("weight_norm", {"dim": 1}),
    "weight, all": ("weight_norm", {"dim": None}),
    "spectral": ("spectral_norm", {}),
    "spectral, more": ("spectral_norm", {"dim": 1, "n_power_iterations": 3}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("older", [False, True], ids=["parametrized", "older"])
@pytest.mark.parametrize("name", NORMS)
def test_normalisation_like_torch(torch: Any, name: str, older: bool) -> None:
    kind, options = NORMS[name]
    torch.manual_seed(0)
    for make, shape in (
        (lambda m, **o: m.nn.Linear(4, 3, **o), (5, 4)),
        (lambda m, **o: m.nn.ConvTranspose1d(4, 3, 2, **o), (2, 4, 5)),
    ):
        x = np.random.default_rng(0).normal(size=shape)
        ours, theirs = make(norch, dtype=norch.float64, device=DEVICE), make(torch, dtype=torch.float64)
        for one, utils in ((ours, nn.utils), (theirs, torch.nn.utils)):
            getattr(utils if older else utils.parametrizations, kind)(one, **options)
        copied(ours, theirs)
        for _ in range(2):  # the vectors of the power method move
            a, b = ours(of(x)), theirs(torch.tensor(x))
            assert_close(a.detach(), of(b.detach().numpy()), rtol=1e-9, atol=1e-10)
        a.square().sum().backward()
        b.square().sum().backward()
        mine, yours = dict(ours.named_parameters()), dict(theirs.named_parameters())
        assert list(mine) == list(yours)
        for key, param in mine.items():
            assert_close(param.grad, of(yours[key].grad.numpy()), rtol=1e-8, atol=1e-9)
        ours.eval(), theirs.eval()
        if older:
            getattr(nn.utils, f"remove_{kind}")(ours)
            getattr(torch.nn.utils, f"remove_{kind}")(theirs)
        else:
            parametrize.remove_parametrizations(ours, "weight")
            torch.nn.utils.parametrize.remove_parametrizations(theirs, "weight")
        assert_close(ours(of(x)).detach(), of(theirs(torch.tensor(x)).detach().numpy()), rtol=1e-9, atol=1e-10)
        assert sorted(ours.state_dict()) == ["bias", "weight"] and ours.weight.requires_grad


def test_what_they_mean() -> None:
    layer = parametrizations.weight_norm(nn.Linear(4, 3, dtype=norch.float64))
    g, v = (getattr(layer.parametrizations.weight, f"original{i}") for i in (0, 1))
    assert_close(layer.weight, g * v / v.norm(dim=1, keepdim=True))
    other = nn.utils.weight_norm(nn.Linear(4, 3, dtype=norch.float64))
    layer.load_state_dict(other.state_dict())  # of the older name
    assert_close(layer.weight, other.weight)
    layer = parametrizations.spectral_norm(nn.Linear(4, 3), n_power_iterations=20)
    for _ in range(5):
        layer(norch.ones(4))
    assert np.linalg.norm(layer.weight.detach().cpu().numpy(), 2) == pytest.approx(1, rel=1e-4)
    loss = layer(norch.ones(4)).sum() - layer(norch.zeros(4)).sum()  # two uses before backward
    loss.backward()


@pytest.mark.parametrize("normed", [parametrizations.spectral_norm, nn.utils.spectral_norm])
def test_spectral_norm_of_a_complex_weight(normed: Any) -> None:
    layer = nn.Linear(2, 2, bias=False, dtype=norch.complex64)
    layer.weight.data.copy_(norch.diag(norch.tensor([0.3 + 0.2j, -0.5j])))
    layer = normed(layer, n_power_iterations=30)
    layer(norch.ones(2, dtype=norch.complex64))
    assert_close(layer.weight.detach(), norch.diag(norch.tensor([0.6 + 0.4j, -1j])))


def test_a_class_that_was_parametrized_is_let_go() -> None:
    class Own(nn.Linear):
        pass

    layers = [parametrize.register_parametrization(Own(2, 2), "weight", Symmetric()) for _ in range(2)]
    assert type(layers[0]) is type(layers[1])
    kept = weakref.ref(Own)
    del Own, layers
    gc.collect()  # the class made of it
    gc.collect()
    assert kept() is None


LINEAR = nn.Linear(2, 2)
BAD: Any = [
    (lambda: parametrize.register_parametrization(LINEAR, "other", Positive()), ValueError, "Linear has no .* 'other'"),
    (
        lambda: parametrize.register_parametrization(LINEAR, "weight", Shorter()),
        ValueError,
        r"'weight' is \(2, 2\) of norch.float32, the parametrization gives \(\(1, 2\), norch.float32\)",
    ),
    (lambda: parametrize.remove_parametrizations(LINEAR, "weight"), ValueError, "no parametrization of 'weight'"),
    (lambda: parametrizations.spectral_norm(LINEAR, "other"), ValueError, "no parameter or buffer 'other'"),
    (lambda: parametrizations.spectral_norm(LINEAR, dim=2), IndexError, r"no axis 2 in shape \(2, 2\)"),
    (lambda: parametrizations.spectral_norm(LINEAR, n_power_iterations=0), ValueError, "is positive, not 0"),
    (lambda: nn.utils.weight_norm(LINEAR, "other"), ValueError, "weight_norm: Linear has no parameter 'other'"),
    (lambda: nn.utils.remove_weight_norm(LINEAR), ValueError, "remove_weight_norm: Linear has none of 'weight'"),
    (
        lambda: parametrize.remove_parametrizations(parametrizations.weight_norm(nn.Linear(1, 1)), "weight", False),
        ValueError,
        "has several originals",
    ),
]


@pytest.mark.parametrize("call, error, message", BAD, ids=range(len(BAD)))
def test_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
    assert not parametrize.is_parametrized(LINEAR) and len(LINEAR.state_dict()) == 2


@pytest.mark.parametrize(
    "inverse", [lambda x: None, lambda x: (None, x), lambda x: (x, x), lambda x: x.bool(), lambda x: x[:1]]
)
@pytest.mark.parametrize("further", [False, True])
def test_an_inverse_that_does_not_fit(inverse: Any, further: bool) -> None:
    class Wrong(nn.Identity):
        right_inverse = staticmethod(inverse)

    layer = nn.Linear(2, 2)
    if further:
        parametrize.register_parametrization(layer, "weight", nn.Identity())
    with pytest.raises((ValueError, TypeError)):
        parametrize.register_parametrization(layer, "weight", Wrong())
    assert parametrize.is_parametrized(layer) is further
    assert not further or len(layer.parametrizations.weight) == 1


def test_an_inverse_that_is_not_implemented() -> None:
    class OneWay(nn.Identity):
        def right_inverse(self, x: Any) -> Any:
            raise NotImplementedError

    layer = nn.Linear(2, 2)
    weight = layer.weight.detach()
    for _ in range(2):
        parametrize.register_parametrization(layer, "weight", OneWay())
    assert_close(layer.parametrizations.weight.original.detach(), weight)
    with pytest.raises(NotImplementedError):
        layer.weight = weight


@pytest.mark.parametrize("trivialized", [True, False])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder", None])
def test_orthogonal_weights_like_torch(torch: Any, kind: Any, shape: Any, trivialized: bool) -> None:
    array = np.random.default_rng(0).normal(size=shape)
    made = []
    for lib in (norch, torch):
        layer = lib.nn.Module()
        layer.weight = lib.nn.Parameter(of(array) if lib is norch else torch.tensor(array))
        lib.nn.utils.parametrizations.orthogonal(layer, "weight", kind, use_trivialization=trivialized)
        made.append(layer)
    ours, theirs = made
    assert list(ours.state_dict()) == list(theirs.state_dict())
    tall = shape[-2] > shape[-1]
    q = ours.weight.detach()
    unit = norch.eye(min(shape[-2:]), dtype=norch.float64, device=DEVICE)
    assert_close(q.mT @ q if tall else q @ q.mT, unit.expand(*shape[:-2], *unit.shape), rtol=1e-12, atol=1e-12)
    if shape == (4, 4):  # then the rows that complete a base are not random
        for name, value in theirs.state_dict().items():
            assert_close(ours.state_dict()[name], of(value.numpy()), rtol=1e-12, atol=1e-12)
    values = {name: np.random.default_rng(1).normal(size=tuple(x.shape)) for name, x in theirs.state_dict().items()}
    of_householder = kind == "householder" or (kind is None and shape != (4, 4))
    if of_householder:  # with the signs that the diagonal has
        key = "parametrizations.weight.original"
        values[key] = np.tril(values[key], -1) if tall else np.triu(values[key], 1)
        signs = np.sign(theirs.state_dict()[key].numpy())
        values[key] += signs * (np.arange(shape[-2])[:, None] == np.arange(shape[-1]))
    ours.load_state_dict({name: of(value) for name, value in values.items()})
    theirs.load_state_dict({name: torch.tensor(value) for name, value in values.items()})
    assert_close(ours.weight.detach(), of(theirs.weight.detach().numpy()), rtol=1e-10, atol=1e-12)
    for layer in made:
        layer.weight[..., 0].sin().sum().backward()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(a.grad, of(b.grad.numpy()), rtol=1e-9, atol=1e-11)


def test_orthogonal_weights_that_are_set(torch: Any) -> None:
    array = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    for lib in (norch, torch):
        orthogonal = lib.nn.utils.parametrizations.orthogonal
        for kind, trivialized in (("cayley", True), ("householder", True), ("householder", False)):
            layer = orthogonal(lib.nn.Linear(4, 4).double(), orthogonal_map=kind, use_trivialization=trivialized)
            layer.weight = lib.tensor(array)
            assert np.abs(layer.weight.detach().numpy() - array).max() < 1e-12
            with pytest.raises(ValueError):
                layer.weight = lib.ones(3, 4)
        layer = orthogonal(lib.nn.Linear(4, 4), orthogonal_map="cayley", use_trivialization=False)
        with pytest.raises(NotImplementedError):
            layer.weight = lib.tensor(array)
        unitary = lib.nn.Module()
        unitary.weight = lib.nn.Parameter(lib.randn(3, 3, dtype=lib.complex128))
        assert lib.allclose((w := orthogonal(unitary).weight).mH @ w, lib.eye(3, dtype=lib.complex128))
        with pytest.raises(ValueError):
            orthogonal(lib.nn.Linear(3, 3), "bias")
        with pytest.raises(ValueError):
            orthogonal(lib.nn.Linear(3, 3), "none")
        with pytest.raises(ValueError):
            orthogonal(lib.nn.Linear(3, 3), orthogonal_map="givens")


def test_hooks_apply_themselves(torch: Any) -> None:
    theirs = [importlib.import_module(f"torch.nn.utils.{name}") for name in ("weight_norm", "spectral_norm")]
    for lib, (weighted, spectral) in ((norch, (hooked_norms, hooked_norms)), (torch, theirs)):
        layer = lib.nn.Linear(3, 2)
        weight = layer.weight.detach().clone()
        hook = weighted.WeightNorm.apply(layer, "weight", 0)
        assert isinstance(hook, weighted.WeightNorm) and hook in layer._forward_pre_hooks.values()
        assert layer.weight_g.shape == (2, 1) and lib.allclose(layer.weight, weight)
        other = lib.nn.Linear(3, 2)
        hook = spectral.SpectralNorm.apply(other, "weight", 1, 0, 1e-12)
        assert hook in other._forward_pre_hooks.values() and other.weight_u.shape == (2,)
