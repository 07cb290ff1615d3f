"""Normalisation and attention: against the composed forms in float64, against PyTorch where it is installed, and
their derivatives against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import is_older, torch_or_skip

import norch
import norch.nn.functional as F
from norch import nn
from norch._binding.library import lib
from norch.testing import assert_close, gradcheck, gradgradcheck

pytestmark = pytest.mark.kernel


def drawn(seed: int, *shape: int, dtype: str = "float64") -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * 3 + 2).astype(dtype)


def leaf(array: Any) -> Any:
    return norch.tensor(array, requires_grad=True)


def composed(x: Any, weight: Any, bias: Any, dims: tuple[int, ...], eps: float, centered: bool) -> Any:
    h = x - x.mean(dims, True) if centered else x
    h = h * (h.square().mean(dims, True) + eps).rsqrt()
    h = h if weight is None else h * weight
    return h if bias is None else h + bias


ROWS = [((4, 7), 1), ((3, 5, 64), 1), ((2, 3, 4, 5), 2), ((300, 33), 1), ((2, 3000), 1), ((5, 1), 1), ((0, 4), 1)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("affine", [0, 1, 2])
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize(("shape", "axes"), ROWS, ids=str)
def test_rows_are_what_reductions_make_of_them(shape: Any, axes: int, centered: bool, affine: int, dtype: str) -> None:
    if affine == 2 and not centered:
        return  # there is no bias
    sizes, dims = shape[-axes:], tuple(range(-axes, 0))
    arrays = [drawn(0, *shape, dtype=dtype), *(drawn(i, *sizes, dtype=dtype) for i in range(1, affine + 1))]
    ours, wide = [leaf(one) for one in arrays], [leaf(one.astype(np.float64)) for one in arrays]
    if centered:
        y = F.layer_norm(ours[0], sizes, *ours[1:])
    else:
        y = F.rms_norm(ours[0], sizes, *ours[1:], eps=1e-5)
    wanted = composed(*(wide + [None, None])[:3], dims, 1e-5, centered)
    agree(y, wanted, ours, wide)


def agree(y: Any, wanted: Any, ours: list[Any], wide: list[Any]) -> None:
    """y and the gradients of ours are what float64 gives for wide."""
    slack = 3e-5 if y.dtype is norch.float32 else 1e-11
    assert y.dtype is ours[0].dtype
    assert_close(y.double(), wanted, rtol=slack, atol=slack)
    g = drawn(9, *y.shape, dtype=str(y.dtype).removeprefix("norch."))
    y.backward(norch.tensor(g))
    wanted.backward(norch.tensor(g.astype(np.float64)))
    for mine, exact in zip(ours, wide):
        scale = 1 + float(exact.grad.abs().amax()) if exact.grad.numel() else 1.0
        assert_close(mine.grad.double(), exact.grad, rtol=10 * slack, atol=10 * slack * scale)


# (N, C, ...) and the groups: a weight for one element of a row, a few and many; the rows in one chunk and in many.
GROUPS = [
    ((3, 6), 2),
    ((3, 6), 6),
    ((300, 8), 1),
    ((2, 6, 5), 3),
    ((2, 4, 33), 4),
    ((1, 2, 3000), 1),
    ((70, 4, 9, 31), 2),
    ((3, 10, 50, 7), 2),
    ((2, 6, 4001), 2),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("given", ["", "weight", "bias", "weight bias"])
@pytest.mark.parametrize(("shape", "groups"), GROUPS, ids=str)
def test_groups_are_what_reductions_make_of_them(shape: Any, groups: int, given: str, dtype: str) -> None:
    arrays = [drawn(i, *(shape[1:2] if i else shape), dtype=dtype) for i in range(3)]
    ours = [leaf(one) for one in arrays]
    ours[0] = leaf(arrays[0].T.copy()).T if dtype == "float64" else ours[0]  # any strides
    wide = [leaf(one.astype(np.float64)) for one in arrays]
    if not ours[0].is_leaf:
        ours[0].retain_grad()
    named = [name if name in given.split() else None for name in ("weight", "bias")]
    rows = composed(wide[0].reshape(shape[0], groups, -1), None, None, (2,), 1e-5, True).reshape(shape)
    weight, bias = (one.reshape(-1, *(1,) * (len(shape) - 2)) if name else None for one, name in zip(wide[1:], named))
    wanted = rows if weight is None else rows * weight
    wanted = wanted if bias is None else wanted + bias
    y = F.group_norm(ours[0], groups, *(one if name else None for one, name in zip(ours[1:], named)))
    used = [0, *(i for i, name in enumerate(named, 1) if name)]
    agree(y, wanted, [ours[i] for i in used], [wide[i] for i in used])


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, w, b: F.layer_norm(x, (3,), w, b), [(2, 3), (3,), (3,)]),
        (lambda x: F.layer_norm(x, (2, 3)), [(2, 2, 3)]),
        (lambda x, w: F.rms_norm(x, (3,), w), [(2, 3), (3,)]),
        (lambda x, w, b: F.group_norm(x, 2, w, b), [(2, 4, 2), (4,), (4,)]),
        (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [(3, 2, 2), (2,), (2,)]),
        (lambda x, b: F.group_norm(x, 2, None, b), [(2, 4), (4,)]),
        (lambda x: F.instance_norm(x), [(2, 2, 3)]),
        (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [(3, 2), (3, 2), (3, 2)]),
    ],
    ids=["layer", "layer-two-axes", "rms", "group", "group-shifted", "batch", "instance", "attention"],
)
def test_derivatives(function: Any, shapes: Any) -> None:
    inputs = [leaf(drawn(i, *shape)) for i, shape in enumerate(shapes)]
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


@pytest.mark.parametrize(
    "wanted", [(True, False, False), (False, True, False), (False, False, True), (False, True, True)]
)
def test_only_what_is_wanted(wanted: Any) -> None:
    arrays = [drawn(0, 4, 5), drawn(1, 5), drawn(2, 5)]
    some = [norch.tensor(one, requires_grad=want) for one, want in zip(arrays, wanted)]
    every = [leaf(one) for one in arrays]
    g = norch.tensor(drawn(3, 4, 5))
    F.layer_norm(some[0], (5,), some[1], some[2]).backward(g)
    F.layer_norm(every[0], (5,), every[1], every[2]).backward(g)
    for a, b, want in zip(some, every, wanted):
        assert (a.grad is not None) is want
        if want:
            assert_close(a.grad, b.grad)


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16], ids=str)
@pytest.mark.parametrize("beside", [None, "float32", "float64", "bias"])
@pytest.mark.parametrize(
    ("shape", "groups"),
    [((3, 24), 0), ((100, 33), 0), ((2, 3000), 0), ((2, 9001), 0), ((5, 6), 3), ((70, 4, 4, 6), 2), ((2, 6, 35), 3)],
    ids=str,
)
def test_halves_are_rounded_once(shape: Any, groups: int, beside: str | None, dtype: Any) -> None:
    """Beside weights of halves, of other floats, and of both."""
    sizes = shape[1:2]
    kinds = [dtype, dtype if beside in (None, "bias") else getattr(norch, str(beside))]
    kinds.append(norch.float32 if beside == "bias" else kinds[1])
    arrays = [drawn(0, *shape) / 3, drawn(1, *sizes) / 3, drawn(2, *sizes) / 3]
    ours = [norch.tensor(one).to(kind).requires_grad_() for one, kind in zip(arrays, kinds)]
    wide = [one.detach().float().requires_grad_() for one in ours]
    g = norch.tensor(drawn(9, *shape) / 3).to(dtype)

    def call(x: Any, w: Any, b: Any) -> Any:
        return F.group_norm(x, groups, w, b) if groups else F.layer_norm(x, sizes, w, b)

    y, wanted = call(*ours), call(*wide)
    y.backward(g)
    wanted.backward(g.float())
    assert [one.dtype for one in (y, *(one.grad for one in ours))] == [dtype, *kinds]
    for found, exact in zip((y, *(one.grad for one in ours)), (wanted, *(one.grad for one in wide))):
        slack = 0.51 * norch.finfo(found.dtype).eps if found.dtype is dtype else 1e-6
        scale = max(1.0, float(exact.abs().amax()))
        assert_close(found.double(), exact.double(), rtol=slack, atol=2e-6 * scale)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("other", ["float16", "bfloat16", "float32", "float64", "int64"])
def test_rms_norm_takes_weights_of_other_dtypes(dtype: str, other: str) -> None:
    """The result has the dtype of the input, each gradient that of its tensor."""
    found = []
    for library in (norch, torch_or_skip()):
        x = library.tensor(drawn(0, 3, 4).tolist(), dtype=getattr(library, dtype), requires_grad=True)
        weight = library.tensor((4 * drawn(1, 4)).tolist()).to(getattr(library, other))
        leaves = [x, *([weight.requires_grad_()] if other != "int64" else [])]
        out = library.nn.functional.rms_norm(x, (4,), weight)
        grads = library.autograd.grad(out, leaves, library.ones_like(out))
        assert [one.dtype for one in (out, *grads)] == [one.dtype for one in (x, *leaves)]
        found.append([one.tolist() for one in (out, *grads)])
    slack = 4 * max(norch.finfo(getattr(norch, one)).eps for one in (dtype, other) if one != "int64")
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=slack, atol=4 * slack)
    with pytest.raises(TypeError, match="rms_norm"):
        F.rms_norm(norch.ones(2, 4), (4,), norch.ones(4, dtype=norch.complex64))


def test_halves_of_several_calls_are_rounded_once() -> None:
    """Of second derivatives, and where vmap multiplies by the weights of each sample."""
    x, w = (norch.tensor(drawn(i, 3, 4)).half().requires_grad_() for i in range(2))
    g = norch.tensor(drawn(2, 3, 4)).half()

    def double(x: Any, w: Any, g: Any) -> Any:
        grads = norch.autograd.grad(F.rms_norm(x, (4,), w[0]), (x, w), g, create_graph=True)
        return grads, norch.autograd.grad(sum(one.float().square().sum() for one in grads), (x, w))

    for found, exact in zip(double(x, w, g), double(x.float(), w.float(), g.float())):
        for a, b in zip(found, exact):
            assert a.dtype is norch.float16
            assert_close(a.float(), b, rtol=2e-3, atol=2e-3)
    each = norch.vmap(lambda x, w: F.layer_norm(x, (4,), w, w))
    assert norch.equal(each(x, w), each(x.float(), w.float()).half())
    mixed = each(x, w.float())
    assert mixed.dtype is norch.float16 and norch.equal(mixed, each(x.float(), w.float()).half())


@pytest.mark.parametrize("dtype", [norch.float32, norch.float16, norch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("shape", "call", "backward"),
    [
        ((8, 16), lambda x, w, b: F.layer_norm(x, (16,), w, b), 2),
        ((200, 16), lambda x, w, b: F.layer_norm(x, (16,), w, b), 3),
        ((200, 16), lambda x, w, b: F.rms_norm(x, (16,), w), 3),
        ((200, 16, 5, 4), lambda x, w, b: F.group_norm(x, 4, w, b), 2),
        ((200, 16, 5, 4), lambda x, w, b: F.group_norm(x, 4), 1),
    ],
    ids=["layer", "parts", "rms", "group", "plain"],
)
def test_launches_on_a_device(shape: Any, call: Any, backward: int, dtype: Any) -> None:
    """Going backward a kernel for the input, and one for weight and bias: it adds up rows, or what the first has found
    of each channel. Of many rows their parts take another. Halves take no more."""
    from simulated import SIMULATION, launches

    if not SIMULATION:
        pytest.skip("the simulation counts launches")
    leaves = [norch.tensor(drawn(i, *(shape, (16,), (16,))[i])).to("cuda", dtype).requires_grad_() for i in range(3)]
    g, made = norch.tensor(drawn(9, *shape)).to("cuda", dtype), []
    assert launches(lambda: made.append(call(*leaves))) == (1, 0)
    assert launches(lambda: norch.autograd.grad(made[0], leaves, g, allow_unused=True)) == (backward, 0)


@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 4, 0)], ids=str)
@pytest.mark.parametrize("training", [True, False])
def test_an_empty_batch_gives_gradients_of_0(torch: Any, shape: Any, training: bool) -> None:
    for package in (norch, torch):
        module, x = package.nn.BatchNorm1d(4).train(training), package.ones(shape, requires_grad=True)
        module(x).sum().backward()
        assert tuple(x.grad.shape) == shape
        assert module.weight.grad.tolist() == module.bias.grad.tolist() == [0.0] * 4
        assert module.running_mean.tolist() == [0.0] * 4 and module.running_var.tolist() == [1.0] * 4


def test_layouts_and_changes_in_place() -> None:
    x = drawn(0, 6, 4)
    turned = norch.tensor(np.ascontiguousarray(x.T)).T
    assert_close(F.layer_norm(turned, (4,)), F.layer_norm(norch.tensor(x), (4,)))
    leaf_ = leaf(x)
    middle = leaf_ * 1
    y = F.layer_norm(middle, (4,))
    middle.add_(1)
    with pytest.raises(norch.Error, match="in place"):
        y.sum().backward()


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(threads: int) -> None:
    x, w, g = (norch.tensor(drawn(i, *s, dtype="float32")) for i, s in enumerate([(900, 70), (70,), (900, 70)]))

    def results() -> list[Any]:
        a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
        y = F.layer_norm(a, (70,), b)
        y.backward(g)
        return [one.detach().numpy() for one in (y, a.grad, b.grad)]

    norch.set_num_threads(1)
    alone = results()
    norch.set_num_threads(threads)
    for a, b in zip(alone, results()):
        np.testing.assert_array_equal(a, b)


MODULES = [
    ("BatchNorm1d", (3,), {}, (5, 3)),
    ("BatchNorm1d", (3,), {"affine": False}, (5, 3, 4)),
    ("BatchNorm2d", (3, 1e-3, None), {}, (2, 3, 4, 5)),
    ("BatchNorm2d", (3,), {"track_running_stats": False, "bias": False}, (2, 3, 4, 5)),
    ("InstanceNorm1d", (3,), {}, (3, 6)),
    ("BatchNorm3d", (3,), {}, (2, 3, 4, 5, 2)),
    ("InstanceNorm3d", (3,), {"affine": True}, (3, 4, 5, 2)),
    ("InstanceNorm2d", (3,), {"affine": True, "track_running_stats": True}, (2, 3, 4, 5)),
    ("GroupNorm", (2, 4), {}, (2, 4, 5)),
    ("LayerNorm", ((4, 5),), {"bias": False}, (2, 4, 5)),
    ("LayerNorm", (5,), {"elementwise_affine": False}, (2, 4, 5)),
    ("RMSNorm", (5,), {}, (2, 5)),
]


@pytest.mark.parametrize(("name", "arguments", "options", "shape"), MODULES, ids=str)
def test_modules_are_torchs(torch: Any, name: str, arguments: Any, options: Any, shape: Any) -> None:
    if is_older(torch) and name == "BatchNorm2d" and "bias" in options:
        pytest.skip("no such option in this PyTorch")
    ours, theirs = getattr(nn, name)(*arguments, **options), getattr(torch.nn, name)(*arguments, **options)
    assert repr(ours) == repr(theirs) or is_older(torch)  # which does not tell of the bias
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for step, phase in enumerate(("train", "train", "eval")):
        getattr(ours, phase)()
        getattr(theirs, phase)()
        x = drawn(step, *shape, dtype="float32")
        found, wanted = ours(norch.tensor(x)).detach().numpy(), theirs(torch.tensor(x)).detach().numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[key].numpy(), value.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mask", [None, "causal", "bool", "float"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_attention_is_torchs(torch: Any, shape: Any, mask: str | None) -> None:
    arrays = [drawn(i, 2, 3, n, 8, dtype="float32") / 3 for i, n in enumerate((shape[0], shape[1], shape[1]))]
    given: Any = None
    if mask == "bool":
        given = drawn(5, *shape) > 1
        given[:, 0] = True
    elif mask == "float":
        given = drawn(5, *shape, dtype="float32")
    ours, theirs = [leaf(one) for one in arrays], [torch.tensor(one, requires_grad=True) for one in arrays]
    options = {"is_causal": mask == "causal", "scale": 0.3 if mask == "float" else None}
    a = F.scaled_dot_product_attention(*ours, None if given is None else norch.tensor(given), **options)
    b = torch.nn.functional.scaled_dot_product_attention(
        *theirs, None if given is None else torch.tensor(given), **options
    )
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-5)
    a.square().sum().backward()
    b.square().sum().backward()
    for mine, yours in zip(ours, theirs):
        np.testing.assert_allclose(mine.grad.numpy(), yours.grad.numpy(), rtol=1e-4, atol=1e-4)


def test_heads_may_share_keys(torch: Any) -> None:
    arrays = [drawn(i, 2, heads, 4, 3, dtype="float32") for i, heads in enumerate((6, 2, 2))]
    a = F.scaled_dot_product_attention(*map(norch.tensor, arrays), enable_gqa=True)
    b = torch.nn.functional.scaled_dot_product_attention(*map(torch.tensor, arrays), enable_gqa=True)
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-5)


BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda x: F.layer_norm(x, (4,)), norch.ShapeError, "\\(4,\\) is not how"),
    (lambda x: F.layer_norm(x, ()), norch.ShapeError, "normalized_shape \\(\\)"),
    (lambda x: F.layer_norm(x, (6,), norch.ones(5)), norch.ShapeError, "weight of shape \\(5,\\)"),
    (lambda x: F.layer_norm(x, (6,), norch.ones(6).double()), norch.DTypeError, "weight is float64"),
    (lambda x: F.layer_norm(x.long(), (6,)), norch.DTypeError, "int64"),
    (lambda x: F.layer_norm(None, (6,)), TypeError, "NoneType"),
    (lambda x: F.group_norm(x, 3), ValueError, "2 channels do not fall into 3"),
    (lambda x: F.group_norm(x, 1, norch.ones(3)), norch.ShapeError, "weight of shape \\(3,\\) for 2"),
    (lambda x: F.batch_norm(x[:1, :, 0, 0], None, None, training=True), ValueError, "more than 1 value"),
    (lambda x: F.batch_norm(x, None, None), ValueError, "running_mean"),
    (lambda x: nn.BatchNorm1d(2)(x), norch.ShapeError, "2D or 3D"),
    (lambda x: nn.GroupNorm(2, 3), ValueError, "divisible"),
    (lambda x: lib.norch_normalize(x, None, None, -4, 0.0, True), ValueError, "2 channels do not fall into 4"),
    (
        lambda x: lib.norch_normalize(x[0, 0, 0], None, None, -1, 0.0, True),
        norch.ShapeError,
        "-1 axes of a tensor of 1",
    ),
    (lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=1.5), ValueError, "dropout_p"),
    (lambda x: F.scaled_dot_product_attention(x, x, x, x, is_causal=True), ValueError, "not both"),
    (lambda x: F.scaled_dot_product_attention(x, x, 1), TypeError, "value, not int"),
    (lambda x: F.scaled_dot_product_attention(x[0, 0, 0], x, x), norch.ShapeError, "query of 2 or more"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(norch.ones(1, 2, 6, 6))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([], "0 gradients to write"),
        ([(2, 4)], r"a gradient of shape \(2, 3\) does not fit into shape \(2, 4\)"),
        ([(2, 3), (2, 4)], r"a gradient of shape \(2, 3\) does not fit into shape \(2, 4\)"),
    ],
)
def test_gradients_that_do_not_fit_are_not_written(shapes: list[tuple[int, ...]], message: str) -> None:
    x, grads = norch.randn(2, 3), [norch.full(shape, 7.0) for shape in shapes]
    with pytest.raises(norch.Error, match=message):
        lib.norch_normalize_backward(x, x, None, 1, 1e-5, True, grads)
    assert all((grad == 7).all() for grad in grads)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_gradients_without_rows_or_columns(shape: tuple[int, int]) -> None:
    x, weight = norch.randn(shape, requires_grad=True), norch.ones(shape[1], requires_grad=True)
    F.layer_norm(x, shape[1:], weight).sum().backward()
    assert x.grad.shape == shape and weight.grad.tolist() == [0.0] * shape[1]


def test_statistics_that_are_no_longer_tracked() -> None:
    norm = nn.BatchNorm1d(3)
    norm.track_running_stats = False
    norm(norch.rand(4, 3))
    assert norm.running_mean.tolist() == [0, 0, 0] and norm.num_batches_tracked.item() == 0


def test_groups_of_one_value() -> None:
    with pytest.raises(ValueError, match="more than 1 value per group"):
        nn.GroupNorm(3, 3)(norch.rand(1, 3, 1))
    assert nn.GroupNorm(3, 3)(norch.rand(2, 3)).tolist() == [[0, 0, 0]] * 2


def test_the_gradient_of_a_bias_is_no_alias_of_what_came_in() -> None:
    x, bias, g = norch.ones(2), norch.zeros(2, requires_grad=True), norch.ones(2)
    F.layer_norm(x, (2,), None, bias).backward(g, create_graph=True)
    g.zero_()
    assert bias.grad.tolist() == [1, 1]


def test_running_means_over_all_batches_stay_on_the_device(monkeypatch: Any) -> None:
    layer, mean, var = nn.BatchNorm1d(3, momentum=None), np.zeros(3, "float32"), np.ones(3, "float32")
    monkeypatch.setattr(norch.Tensor, "item", lambda x: pytest.fail("a host read"))
    for count in range(1, 8):
        batch = drawn(count, 5, 3, dtype="float32")
        x = norch.tensor(batch)
        layer(x)
        keep, take = np.float32(1 - 1.0 / count), np.float32(1.0 / count)  # as for momentum=1 / count
        own = (x - x.mean(0)).square().mean(0).numpy() * np.float32(5 / 4)
        mean, var = mean * keep + x.mean(0).numpy() * take, var * keep + own * take
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=2e-7)
    np.testing.assert_allclose(layer.running_var.numpy(), var, rtol=2e-7)
