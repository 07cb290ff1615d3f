"""Functions of torch beside those of nn.functional and Tensor, older layers, torch.signal.windows and the rarer
torch.special, beside PyTorch's."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import norch
from norch import nn
from norch.testing import assert_close

pytestmark = pytest.mark.host
DRAW = np.random.default_rng(3)
X, Y, IMAGE, GRID = (DRAW.standard_normal(s) for s in ((4, 3), (4, 3), (1, 2, 4, 4), (1, 3, 3, 2)))
SIGNS = np.sign(DRAW.standard_normal(4))


def both(torch: Any, call: Callable[[Any, Callable[[Any], Any]], Any]) -> None:
    """call(module, tensor) with norch and with PyTorch."""
    ours, theirs = (call(lib, lambda x, lib=lib: lib.tensor(x)) for lib in (norch, torch))
    compare(ours, theirs)


def compare(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            compare(a, b)
    elif hasattr(theirs, "detach"):
        assert str(ours.dtype)[6:] == str(theirs.dtype)[6:]
        assert_close(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6, equal_nan=True)
    else:
        assert ours == theirs


LOSSES: dict[str, Callable[[Any, Any, dict[str, int]], Any]] = {
    "binary_cross_entropy_with_logits": lambda m, t, r: m(t(X), t(abs(Y) / 9), None, None, **r),
    "cosine_embedding_loss": lambda m, t, r: m(t(X), t(Y), t(SIGNS), 0.1, **r),
    "hinge_embedding_loss": lambda m, t, r: m(t(X), t(np.sign(Y)), 1.0, **r),
    "kl_div": lambda m, t, r: m(t(X), t(abs(Y)), **r, log_target=False),
    "margin_ranking_loss": lambda m, t, r: m(t(X[:, 0]), t(Y[:, 0]), t(SIGNS), 0.1, **r),
    "poisson_nll_loss": lambda m, t, r: m(t(X), t(abs(Y)), True, True, 1e-8, r.get("reduction", 1)),
    "triplet_margin_loss": lambda m, t, r: m(t(X), t(Y), t(X + Y), 1.0, 2.0, 1e-6, False, **r),
    "ctc_loss": lambda m, t, r: m(
        t(np.log(np.full((6, 1, 4), 0.25))), t([[1, 2]]), t([6]), t([2]), 0, **r, zero_infinity=True
    ),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", [{}, {"reduction": 0}, {"reduction": 1}, {"reduction": 2}])
def test_losses_with_a_number_for_the_reduction(torch: Any, name: str, reduction: dict[str, int]) -> None:
    both(torch, lambda lib, t: LOSSES[name](getattr(lib, name), t, reduction))


def test_bags_of_embeddings(torch: Any) -> None:
    """The sums and, where PyTorch computes them, the bags, their sizes and the places of the maxima."""
    for mode in (0, 1, 2):
        for offsets, more in (([0, 2, 2], ()), ([0, 3, 4], (True,)), ([0, 2, 4], (True, 0)), ([0, 1], (False, -4))):

            def call(lib: Any, mode: int = mode, offsets: Any = offsets, more: Any = more) -> Any:
                weight = lib.tensor(X, requires_grad=True)
                factors = (lib.tensor(Y[:, 0]) if mode == 0 else None,)
                given = weight, lib.tensor([0, 1, 3, 0]), lib.tensor(offsets), False, mode, False
                out, *about = lib.embedding_bag(*given, *factors, *more)
                out.cos().sum().backward()
                assert lib is torch or all(x.dtype is norch.int64 for x in about)
                return [out, weight.grad, *(about if mode else ())]

            compare(call(norch), call(torch))
    assert norch._VF.embedding_bag is norch.embedding_bag


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "grid_sampler": lambda m, t: [m(t(IMAGE), t(GRID), a, b, True) for a in (0, 1, 2) for b in (0, 1, 2)],
    "affine_grid_generator": lambda m, t: m(t(X[:2].reshape(1, 2, 3)), [1, 2, 3, 3], False),
    "adaptive_max_pool1d": lambda m, t: m(t(X)[None], 2),
    "max_pool1d_with_indices": lambda m, t: m(t(IMAGE[0]), 2),
    "native_channel_shuffle": lambda m, t: m(t(IMAGE.reshape(1, 4, 2, 4)), 2),
    "conv_tbc": lambda m, t: m(t(IMAGE[0]), t(DRAW_WEIGHT), t(X[:3, 0]), 1),
    "_convolution": lambda m, t: m(
        t(IMAGE), t(IMAGE[..., :3, :3]), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, False, True, True
    ),
    "norm_except_dim": lambda m, t: [m(t(IMAGE[0]), 2, dim) for dim in (0, 1, -1)],
    "_weight_norm": lambda m, t: m(t(X), t(X[:, :1]), 0),
    "frobenius_norm": lambda m, t: m(t(X), [0, 1]),
    "nuclear_norm": lambda m, t: [m(t(X)), m(t(X), True), m(t(IMAGE), (2, 3), True)],
    "_softmax": lambda m, t: m(t(X), 1, False),
    "_log_softmax": lambda m, t: m(t(X), 1, False),
    "_pack_padded_sequence": lambda m, t: m(t(IMAGE[0]), t([2, 1, 1, 1]), False),
    "nonzero_static": lambda m, t: [m(t([1, 0, 2]), size=4), m(t([[1, 0], [2, 3]]), size=2, fill_value=7)],
    "histogramdd": lambda m, t: [
        m(t(X), [2, 3, 2]),
        m(t(X), 2, density=True).hist,
        m(t(X), 2).bin_edges,
        m(t(X[:, :2]), [t([-1.0, 0.0, 1.0]).double(), t([-2.0, 2.0]).double()]),
        m(t(X[:, :2]), [2, 2], range=[-1.0, 1.0, -1.0, 1.0], weight=t(SIGNS)),
    ],
    "segment_reduce": lambda m, t: [
        f
        for kind in ("sum", "mean", "max", "min", "prod")
        for f in (
            m(t(X), kind, lengths=t([2, 0, 2])),
            m(t(X[:, 0]), kind, lengths=t([2, 0, 2]), initial=1.0),
            m(t(IMAGE[0]), kind, lengths=t([[2, 2], [1, 3]]), axis=1),
            m(t(X), kind, offsets=t([0, 1, 4])),
        )
    ],
    "as_strided_copy": lambda m, t: m(t(X), (2, 2), (1, 2)),
    "split_copy": lambda m, t: m(t(X), 2),
    "slice_copy": lambda m, t: m(t(X), 0, 1, 3),
    "unbind_copy": lambda m, t: m(t(X)),
    "view_copy": lambda m, t: m(t(X), [12]),
    "unfold_copy": lambda m, t: m(t(X), 0, 2, 1),
    "permute_copy": lambda m, t: m(t(X), (1, 0)),
    "diagonal_copy": lambda m, t: m(t(X)),
    "alias_copy": lambda m, t: m(t(X)),
    "unsafe_chunk": lambda m, t: m(t(X), 2),
    "unsafe_split": lambda m, t: m(t(X), 3),
    "unsafe_split_with_sizes": lambda m, t: m(t(X), [1, 3]),
    "_unique2": lambda m, t: [m(t([3, 1, 3])), m(t([3, 1, 3]), True, True, True)],
    "_aminmax": lambda m, t: m(t(X)),
    "_stack": lambda m, t: m([t(X), t(Y)], 1),
    "_int_mm": lambda m, t: m(t(np.ones((17, 8), np.int8)), t(np.full((8, 8), 3, np.int8))),
    "_convert_indices_from_coo_to_csr": lambda m, t: m(t([0, 0, 2, 3]), 5),
    "_convert_indices_from_csr_to_coo": lambda m, t: m(t([0, 2, 2, 3]), t([1, 0, 2])),
    "empty_permuted": lambda m, t: m((2, 3, 4), (0, 2, 1)).stride(),
    "binomial": lambda m, t: m(t([5.0, 0.0]), t([1.0, 0.5])),
}
DRAW_WEIGHT = DRAW.standard_normal((3, 4, 3))


@pytest.mark.parametrize("name", CALLS)
def test_functions(torch: Any, name: str) -> None:
    both(torch, lambda lib, t: CALLS[name](getattr(lib, name), t))


@pytest.mark.parametrize("initial", [None, 1.0, 5.0, float("nan")])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_gradients_of_segments_reach_nan_but_no_initial_value(torch: Any, kind: str, initial: Any) -> None:
    for values in ([1.0, math.nan, 2.0, 2.0], [1.0, 1.0, 1.0, 0.0], [math.nan, 5.0, 5.0, math.inf]):
        found = []
        for lib in (norch, torch):
            x = lib.tensor(values, requires_grad=True)
            lib.segment_reduce(x, kind, lengths=lib.tensor([1, 0, 3]), initial=initial).sum().backward()
            found.append(x.grad.tolist())
        assert found[0] == found[1], values


def test_copies_are_no_views() -> None:
    x = norch.zeros(2, 3)
    for name in ("detach", "t", "view_as_real"):
        source = x.to(norch.complex64) if name == "view_as_real" else x
        getattr(norch, f"{name}_copy")(source).add_(1)
        assert not source.any()
    out = norch.zeros(0)
    assert norch.narrow_copy(x, 1, 0, 2, out=out) is out and out.shape == (2, 2)


def test_simulated_quantization_has_the_gradients_of_pytorch(torch: Any) -> None:
    def of_tensor(lib: Any, t: Any) -> Any:
        x = t(X.astype(np.float32)).requires_grad_()
        out = lib.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7)
        (out * t(Y.astype(np.float32))).sum().backward()
        return out, x.grad

    def of_channels(lib: Any, t: Any) -> Any:
        x, scale = t(X.astype(np.float32)).requires_grad_(), t(np.float32([0.1, 0.2, 0.05]))
        out = lib.fake_quantize_per_channel_affine(x, scale, t(np.int32([0, 1, 2])), 1, -8, 7)
        (out * t(Y.astype(np.float32))).sum().backward()
        return out, x.grad

    both(torch, of_tensor)
    both(torch, of_channels)


def test_dropouts() -> None:
    norch.manual_seed(0)
    dropped = norch.feature_dropout(norch.ones(8, 8, 3), 0.5, True)  # type: ignore[attr-defined]
    assert set(dropped.flatten().tolist()) == {0.0, 2.0} and (dropped == dropped[..., :1]).all()
    result, kept = norch.native_dropout(norch.ones(100), 0.5, True)  # type: ignore[attr-defined]
    assert ((result != 0) == kept).all() and 0 < kept.sum() < 100
    x = norch.ones(100)
    assert norch.dropout_(x, 0.5, True) is x and set(x.tolist()) == {0.0, 2.0}  # type: ignore[attr-defined]


# ---- windows and special functions ---------------------------------------------------------------------------------

WINDOWS: dict[str, dict[str, Any]] = {
    "bartlett": {}, "blackman": {}, "cosine": {}, "exponential": {"tau": 2.0}, "gaussian": {"std": 1.5},
    "general_cosine": {"a": [0.5, 0.3, 0.2]}, "general_hamming": {"alpha": 0.6}, "hamming": {}, "hann": {},
    "kaiser": {"beta": 9.0}, "nuttall": {},
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(torch: Any, name: str) -> None:
    import norch.signal.windows as windows
    import torch.signal.windows as theirs

    for size in (0, 1, 2, 5, 8):
        for options in ({}, {"sym": False}, {"dtype": "float64"}):
            dtypes = [{"dtype": lib.float64} if "dtype" in options else {} for lib in (norch, torch)]
            rest = {key: value for key, value in options.items() if key != "dtype"}
            given = {**WINDOWS[name], **rest}
            compare(
                getattr(windows, name)(size, **given, **dtypes[0]), getattr(theirs, name)(size, **given, **dtypes[1])
            )
    with pytest.raises(ValueError, match="non-negative"):
        getattr(windows, name)(-1, **WINDOWS[name])
    with pytest.raises(ValueError, match="expects float32 or float64"):
        getattr(windows, name)(3, dtype=norch.int64, **WINDOWS[name])


SPECIAL = """
airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0
modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0
"""
POLYNOMIALS = """
chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h
hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t
shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w
"""


@pytest.mark.parametrize("name", SPECIAL.split())
def test_special_functions(torch: Any, name: str) -> None:
    points = np.linspace(0.1, 3, 7)
    for x in (points, points.astype(np.float32), np.arange(1, 4)):
        both(torch, lambda lib, t, x=x: getattr(lib.special, name)(t(x)))


@pytest.mark.parametrize("name", POLYNOMIALS.split())
def test_polynomials(torch: Any, name: str) -> None:
    x = np.linspace(0.1, 0.9, 5)
    for degree in (0, 1, 3, -1, np.arange(5)):
        both(
            torch,
            lambda lib, t, n=degree: getattr(lib.special, name)(t(x), t(n) if isinstance(n, np.ndarray) else n),
        )
    both(torch, lambda lib, t: getattr(lib.special, name)(0.5, t(np.arange(3))))
    with pytest.raises(TypeError, match="input or n must be a tensor, not float and int"):
        getattr(norch.special, name)(0.5, 3)


# ---- layers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_the_norm_over_channels_of_torch7(torch: Any, size: int) -> None:
    images = DRAW.standard_normal((2, 9, 2, 3))

    def call(lib: Any, t: Any) -> Any:
        layer, x = lib.nn.CrossMapLRN2d(size, 0.5, 0.7, 1.2), t(images).requires_grad_()
        out = layer(x)
        (out * t(images)).sum().backward()
        return repr(layer), out, x.grad

    both(torch, call)


def test_older_layers() -> None:
    assert_close(nn.NLLLoss2d()(norch.zeros(1, 2, 2, 2), norch.zeros(1, 2, 2, dtype=norch.int64)), norch.zeros(()))
    assert [name for name, _ in nn.Container(a=nn.ReLU()).named_children()] == ["a"]  # type: ignore[attr-defined]


def test_parameters_replaced_within_a_context(torch: Any) -> None:
    def call(lib: Any, t: Any) -> Any:
        stateless = __import__(f"{lib.__name__}.nn.utils.stateless", fromlist=["_"])
        model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm1d(2))
        given = {"0.weight": t(np.eye(2)), "1.running_mean": t(np.zeros(2))}
        with stateless._reparametrize_module(model, given):
            inside = model[0].weight
            model[1].running_mean = t(np.ones(2))
        before = model[1].running_mean.double()
        return inside, given["0.weight"], given["1.running_mean"], before, model[0].weight is inside

    both(torch, call)


def test_linear_maps_and_batch_norms_of_func(torch: Any) -> None:
    def call(lib: Any, t: Any) -> Any:
        value, push = lib.func.linearize(lambda x, y: (x.sin() * y, y), t(X), t(Y))
        return value, push(t(Y), t(X)), lib.func.functionalize(lambda x: x.clone().add_(1))(t(X))

    both(torch, call)
    model = norch.func.replace_all_batch_norm_modules_(nn.Sequential(nn.BatchNorm2d(2)))
    assert model[0].running_mean is None and not model[0].track_running_stats


def test_shapes_are_of_integers(torch: Any) -> None:
    def call(lib: Any, t: Any) -> Any:
        made = lib.Size([3, t(2)]) + (t(4),)
        with pytest.raises(TypeError, match=r"Size\(\) takes an iterable of 'int' \(item 0 is 'float'\)"):
            lib.Size([3.0])
        assert all(type(size) is lib.Size for size in (made, (1,) + made, made + (1,), made * 2))
        return tuple((1,) + made), [type(size) for size in made], tuple(lib.Size([True])), tuple(lib.Size())

    both(torch, call)


# ---- hooks and constructors of modules ------------------------------------------------------------------------------


def test_hooks_are_ordered_by_their_handles(torch: Any) -> None:
    def call(lib: Any, t: Any) -> Any:
        layer, called = lib.nn.Identity(), []
        handles = [layer.register_forward_hook(lambda *_, i=i: called.append(i)) for i in range(3)]
        layer._forward_hooks.move_to_end(handles[2].id, last=False)
        layer(t(X))
        return called

    both(torch, call)


def test_constructors_that_go_on_to_the_next_class(torch: Any) -> None:
    def call(lib: Any, t: Any) -> Any:
        class Next:
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                self.given = args, kwargs

        class Both(lib.nn.Module, Next):
            call_super_init = True

        class One(lib.nn.Module):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)

        said = []
        for given in (lambda: One(3), lambda: One(k=3)):
            with pytest.raises(TypeError) as caught:
                given()
            said.append(str(caught.value))
        return *Both(3, k=4).given, said

    both(torch, call)
