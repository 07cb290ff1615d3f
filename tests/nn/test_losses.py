"""The losses of norch.nn: values and gradients against PyTorch where it is installed, and the hard cases
(large logits, ignored samples, bad targets) against closed forms."""

import importlib
import itertools
import math
import warnings

import numpy as np
import pytest
from checks import wait

import norch
import norch.nn.functional as F
from norch import nn


def close(ours, theirs, tolerance=1e-5):
    if hasattr(theirs, "detach"):
        theirs = theirs.detach().numpy()
    np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=tolerance, atol=tolerance)


def samples(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def compare(torch, ours, theirs, array, *arguments, tolerance=1e-5, **options):
    """Value and gradient of a loss of `array` in both libraries; further arrays become tensors of each."""
    x, y = norch.tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)
    mine = {k: norch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    yours = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    a = ours(x, *map(norch.tensor, arguments), **mine)
    b = theirs(y, *map(torch.tensor, arguments), **yours)
    close(a, b, tolerance)
    a.sum().backward()
    b.sum().backward()
    close(x.grad, y.grad, tolerance)


REDUCTIONS = ["mean", "sum", "none"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_regression_losses_match_torch(torch, reduction):
    x, t = samples(4, 3), samples(4, 3, seed=1)
    compare(torch, F.mse_loss, torch.nn.functional.mse_loss, x, t, reduction=reduction)
    compare(torch, F.l1_loss, torch.nn.functional.l1_loss, x, t, reduction=reduction)
    compare(torch, nn.MSELoss(reduction), torch.nn.MSELoss(reduction=reduction), x, t)
    compare(torch, nn.L1Loss(reduction), torch.nn.L1Loss(reduction=reduction), x, t)


@pytest.mark.parametrize("name", ["smooth_l1_loss", "huber_loss"])
def test_the_curvature_of_robust_losses_at_the_corner(torch, name):
    curvatures = []
    for library in (norch, torch):
        x = library.tensor([1.0, -1.0, 0.5, 2.0, 0.0, np.nan], requires_grad=True)
        loss = getattr(library.nn.functional, name)(x, library.zeros(6), reduction="sum")
        (slope,) = library.autograd.grad(loss, x, create_graph=True)
        curvatures.append(library.autograd.grad(slope.sum(), x)[0].tolist())
    assert curvatures[0] == curvatures[1] == [0, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_robust_losses_match_torch(torch, reduction):
    G = torch.nn.functional
    x, t = samples(4, 3) * 2, samples(4, 3, seed=1)
    for beta in (0.0, 0.5, 1.0):
        compare(torch, F.smooth_l1_loss, G.smooth_l1_loss, x, t, reduction=reduction, beta=beta)
    for delta in (0.5, 1.0):
        compare(torch, F.huber_loss, G.huber_loss, x, t, reduction=reduction, delta=delta)
    compare(torch, F.huber_loss, G.huber_loss, x, t, reduction=reduction, weight=np.abs(t))
    options = {"reduction": reduction, "beta": 0.3}
    compare(torch, nn.SmoothL1Loss(**options), torch.nn.SmoothL1Loss(**options), x, t)
    compare(torch, nn.HuberLoss(reduction, 0.3), torch.nn.HuberLoss(reduction, 0.3), x, t)
    for bad in (lambda: F.smooth_l1_loss(norch.ones(1), norch.ones(1), beta=-1.0), lambda: nn.HuberLoss(delta=0.0)):
        with pytest.raises(ValueError, match="beta|delta"):
            loss = bad()
            loss(norch.ones(1), norch.ones(1))


@pytest.mark.filterwarnings("ignore:reduction")  # PyTorch has something to say on "mean"
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
def test_losses_of_distributions_match_torch(torch, reduction):
    G = torch.nn.functional
    x = np.log(np.abs(samples(4, 3)) + 0.1)
    t = np.abs(samples(4, 3, seed=1))
    t[0, 0] = 0
    compare(torch, F.kl_div, G.kl_div, x, t, reduction=reduction)
    compare(torch, F.kl_div, G.kl_div, x, np.log(t + 0.1), reduction=reduction, log_target=True)
    compare(torch, nn.KLDivLoss(reduction=reduction), torch.nn.KLDivLoss(reduction=reduction), x, t)
    if reduction == "batchmean":
        with pytest.raises(ValueError, match="median"):
            nn.KLDivLoss(reduction="median")
        return
    p, t, weight = (np.random.default_rng(i).uniform(0.01, 0.99, (4, 3)).astype(np.float32) for i in range(3))
    compare(torch, F.binary_cross_entropy, G.binary_cross_entropy, p, t, reduction=reduction)
    compare(torch, F.binary_cross_entropy, G.binary_cross_entropy, p, t, weight=weight[0], reduction=reduction)
    compare(torch, nn.BCELoss(reduction=reduction), torch.nn.BCELoss(reduction=reduction), p, t)


def test_binary_cross_entropy_at_its_ends():
    p = norch.tensor([0.0, 1.0, 0.0, 1.0, 1e-45], requires_grad=True)
    loss = F.binary_cross_entropy(p, norch.tensor([1.0, 0.0, 0.0, 1.0, 1.0]), reduction="none")
    assert loss.tolist() == [100, 100, 0, 0, 100]
    loss.sum().backward()
    assert p.grad.isfinite().all()
    for bad in (1.5, -0.1, math.nan):
        with pytest.raises(norch.ArgumentError, match="between 0 and 1"):
            F.binary_cross_entropy(norch.tensor([bad]), norch.ones(1))
        with pytest.raises(norch.ArgumentError, match="input and target must lie between 0 and 1"):
            F.binary_cross_entropy(norch.full((1,), 0.5), norch.tensor([bad]))
    with pytest.raises(norch.ShapeError, match="binary_cross_entropy"):
        nn.BCELoss()(norch.ones(2), norch.ones(2, 1))


def test_normalize_matches_torch(torch):
    x = samples(3, 4, 2)
    x[0] = 0
    for options in ({}, {"p": 1.0, "dim": -1}, {"p": 3.0, "dim": 0, "eps": 2.0}):
        compare(torch, F.normalize, torch.nn.functional.normalize, x, **options)


def test_losses_warn_of_arguments_that_mislead():
    x = norch.ones(2, 2)
    with pytest.warns(UserWarning, match="kl_div: reduction"):
        F.kl_div(x, x)
    with pytest.warns(UserWarning, match="size_average is deprecated"):
        nn.MSELoss(size_average=True)


def test_losses_warn_on_broadcast_and_reject_bad_reductions():
    with pytest.warns(UserWarning, match=r"target size \(3,\).*input size \(3, 1\)"):
        loss = F.mse_loss(norch.zeros(3, 1), norch.ones(3))
    assert loss.item() == 1.0
    assert F.mse_loss(1.5, norch.zeros(3, dtype=norch.int64)).item() == 2.25  # of a number none is expected
    with pytest.raises(norch.ShapeError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        F.mse_loss(norch.zeros(2), norch.zeros(3))
    with pytest.raises(ValueError, match="median"):
        F.mse_loss(norch.zeros(2), norch.zeros(2), reduction="median")
    with pytest.raises(ValueError, match="median"):
        nn.MSELoss("median")


ELEMENTWISE = ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss", "soft_margin_loss"]
ELEMENTWISE += ["hinge_embedding_loss", "multilabel_soft_margin_loss", "gaussian_nll_loss", "margin_ranking_loss"]
ELEMENTWISE += ["triplet_margin_loss"]
SHAPES = [(1,), (4,), (1, 1), (1, 4), (3, 1), (3, 4), (2, 1, 4), (0,), (0, 4), (3, 0)]


@pytest.mark.filterwarnings("ignore")  # of PyTorch and norch, of targets that broadcast
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_losses_of_shapes_that_broadcast_and_of_nothing_like_torch(torch, name):
    three = name in ("gaussian_nll_loss", "margin_ranking_loss", "triplet_margin_loss")
    compared = 0
    for shapes in itertools.product(SHAPES, repeat=2):
        shapes = (*shapes, shapes[0]) if three else shapes
        for reduction in ("mean", "sum", "none"):
            found = []
            for m in (torch, norch):
                arrays = [np.linspace(0.1, 0.9 - i / 9, math.prod(s)).reshape(s) for i, s in enumerate(shapes)]
                inputs = [m.tensor(a, requires_grad=i == 0) for i, a in enumerate(arrays)]
                try:
                    loss = getattr(m.nn.functional, name)(*inputs, reduction=reduction)
                    loss.sum().backward()
                except (RuntimeError, ValueError):
                    if m is torch:
                        break
                    raise
                found.append([loss.detach().numpy(), inputs[0].grad.numpy()])
            else:
                compared += 1
                for theirs, ours in zip(*found, strict=True):
                    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12, err_msg=f"{shapes} {reduction}")
    assert compared >= 30


@pytest.mark.parametrize("name", ["huber_loss", "smooth_l1_loss", "mse_loss", "l1_loss", "poisson_nll_loss", "kl_div"])
@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16, norch.float64])
def test_gradients_of_single_numbers_have_their_dtype(name, dtype):
    x, y = (norch.tensor(value, dtype=dtype, requires_grad=True) for value in (2.0, 0.5))
    loss = getattr(F, name)(x, y)
    loss.backward()
    assert loss.dtype == x.grad.dtype == y.grad.dtype == dtype


def test_numbers_beside_integers_are_not_cut():
    x = norch.tensor([3, 1])
    spread = F.gaussian_nll_loss(x, norch.zeros(2), 1.5, reduction="sum")
    assert spread.item() == pytest.approx(math.log(1.5) + 10 / 3)
    assert spread.item() == F.gaussian_nll_loss(x.float(), norch.zeros(2), 1.5, reduction="sum").item()
    half = F.poisson_nll_loss(norch.ones(2, dtype=norch.float16), norch.tensor([3, 5]), full=True)
    assert half.dtype is norch.float16  # of input, though the logarithms are of integers


def _of_nothing(m, shape, dtype="float32"):
    return m.zeros(shape, dtype=getattr(m, dtype), requires_grad=dtype == "float32")


OF_NOTHING = {
    "binary_cross_entropy": [(0, 3), (0, 3)],
    "binary_cross_entropy_with_logits": [(0, 3), (0, 3)],
    "cosine_embedding_loss": [(0, 3), (0, 3), (0,)],
    "cross_entropy": [(0, 3), [0]],
    "cross_entropy of probabilities": [(0, 3), (0, 3)],
    "multi_margin_loss": [(0, 3), [0]],
    "nll_loss": [(0, 3), [0]],
    "kl_div": [(0, 3), (0, 3)],
}


@pytest.mark.filterwarnings("ignore")  # of PyTorch, of kl_div
@pytest.mark.parametrize("name", OF_NOTHING)
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean", "smoothed"])
def test_losses_of_nothing_like_torch(torch, name, reduction):
    function, found = name.split(" ")[0], []
    how = {"reduction": reduction} if reduction != "smoothed" else {"label_smoothing": 0.1}
    if (reduction == "batchmean") > (function == "kl_div") or (reduction == "smoothed") > (function == "cross_entropy"):
        pytest.skip("another loss has this")
    for m in (torch, norch):
        inputs = [_of_nothing(m, s, "float32" if isinstance(s, tuple) else "int64") for s in OF_NOTHING[name]]
        loss = getattr(m.nn.functional, function)(*inputs, **how)
        loss.sum().backward()
        found.append([loss.detach().numpy(), inputs[0].grad.numpy()])
    if function == "multi_margin_loss" and reduction != "none":  # PyTorch leaves it undefined
        found[0][0] = math.nan if reduction == "mean" else 0.0
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_losses_of_no_classes():
    nothing = norch.zeros(2, 0)
    assert F.cross_entropy(nothing, nothing, label_smoothing=0.1, reduction="none").tolist() == [0, 0]
    ignored = norch.tensor([], dtype=norch.int64)
    assert F.cross_entropy(nothing[:0], ignored, label_smoothing=0.1, reduction="sum").item() == 0


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(6, 4), (4,), (2, 4, 3)])
def test_cross_entropy_matches_torch(torch, reduction, smoothing, weighted, shape):
    x = samples(*shape) * 3
    rng = np.random.default_rng(1)
    where = shape[:0] if len(shape) == 1 else shape[:1] + shape[2:]
    target = rng.integers(0, 4, where)
    if len(shape) > 1:
        target.flat[1] = -100
    options = {"reduction": reduction, "label_smoothing": smoothing}
    if weighted:
        options["weight"] = np.array([0.5, 1.0, 2.0, 3.0], np.float32)
    ours, theirs = F.cross_entropy, torch.nn.functional.cross_entropy
    compare(torch, ours, theirs, x, target, **options)
    soft = rng.random(shape).astype(np.float32)
    compare(torch, ours, theirs, x, soft / soft.sum(1 if len(shape) > 1 else 0, keepdims=True), **options)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll_matches_torch(torch, reduction):
    x, target = samples(5, 4), np.array([0, 3, 1, 3, 2])
    weight = np.array([0.5, 1.0, 2.0, 3.0], np.float32)
    ours, theirs = F.nll_loss, torch.nn.functional.nll_loss
    compare(torch, ours, theirs, x, target, reduction=reduction)
    compare(torch, ours, theirs, x, target, reduction=reduction, weight=weight, ignore_index=3)
    compare(torch, ours, theirs, samples(2, 4, 3), np.array([[0, 1, 2], [3, 3, 0]]), reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (0, 0), (0,), (3,), (2, 0, 2, 2), (2, 3, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_of_no_classes_and_of_ignored_targets_alone(torch, shape, reduction, weighted):
    x, target = np.ones(shape, np.float32), np.full(shape[:1] * (len(shape) > 1) + shape[2:], -100)
    dim = min(len(shape) - 1, 1)
    options = {"weight": np.ones(shape[dim], np.float32)} if weighted else {}
    compare(torch, F.nll_loss, torch.nn.functional.nll_loss, x, target, reduction=reduction, **options)
    if not shape[dim] and target.size:
        with pytest.raises(IndexError, match="index 0 is out of range for size 0"):
            F.nll_loss(norch.tensor(x), norch.tensor(target * 0), reduction=reduction)
            wait()


@pytest.mark.parametrize(("p", "keepdim"), [(2.0, False), (1.0, True), (3.0, False)])
def test_the_distance_of_two_numbers(torch, p, keepdim):
    a, b = np.float32(3), np.float32(1.5)
    ours, theirs = F.pairwise_distance, torch.nn.functional.pairwise_distance
    compare(torch, lambda x, y: ours(x, y, p, keepdim=keepdim), lambda x, y: theirs(x, y, p, keepdim=keepdim), a, b)


def test_classification_modules_keep_their_options(torch):
    x, target = samples(5, 4), np.array([0, 3, 1, 3, 2])
    weight = np.array([0.5, 1.0, 2.0, 3.0], np.float32)
    for name in ("CrossEntropyLoss", "NLLLoss"):
        options = {"ignore_index": 3, "reduction": "sum"}
        if name == "CrossEntropyLoss":
            options["label_smoothing"] = 0.2
        ours = getattr(nn, name)(norch.tensor(weight), **options)
        theirs = getattr(torch.nn, name)(torch.tensor(weight), **options)
        compare(torch, ours, theirs, x, target)
        assert list(ours.state_dict()) == ["weight"]


def test_cross_entropy_is_stable_at_large_logits():
    for scale in (1e4, 1e30):
        x = norch.tensor([[scale, 0.0, -scale], [-scale, -scale, -scale]], requires_grad=True)
        loss = F.cross_entropy(x, norch.tensor([1, 2]), reduction="none")
        close(loss / scale, [1.0, math.log(3) / scale])
        loss.sum().backward()
        close(x.grad, [[1, -1, 0], [1 / 3, 1 / 3, -2 / 3]])
    x = norch.tensor([[1e4, -1e4]], requires_grad=True)
    loss = F.cross_entropy(x, norch.tensor([[0.5, 0.5]]))
    assert loss.item() == 1e4
    loss.backward()
    close(x.grad, [[0.5, -0.5]])
    x = norch.tensor([[0.0, -math.inf]], requires_grad=True)
    F.cross_entropy(x, norch.tensor([0])).backward()
    assert x.grad.tolist() == [[0.0, 0.0]]


def test_cross_entropy_edges():
    x = norch.zeros(2, 3)
    assert math.isnan(F.cross_entropy(x, norch.tensor([-100, -100])).item())
    assert F.cross_entropy(x, norch.tensor([-100, -100]), reduction="sum").item() == 0
    assert math.isnan(F.cross_entropy(norch.zeros(0, 3), norch.zeros(0, dtype=norch.int64)).item())
    small = norch.tensor([0, 2], dtype=norch.int32)
    close(F.cross_entropy(x, small), math.log(3))
    for bad in (3, -1):
        with pytest.raises(IndexError):
            F.cross_entropy(x, norch.tensor([0, bad]))
            wait()
    with pytest.raises(ValueError, match="does not fit"):
        F.cross_entropy(x, norch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="do not fit"):
        F.cross_entropy(x, norch.zeros(2))
    with pytest.raises(ValueError, match="0-d"):
        F.cross_entropy(norch.tensor(1.0), norch.tensor(0))
    with pytest.raises(TypeError):
        F.nll_loss(x, norch.zeros(2))
    with pytest.raises(ValueError, match="label_smoothing"):
        F.cross_entropy(x, small, label_smoothing=2.0)


def test_cross_entropy_gradient_of_gradient():
    x = norch.tensor([[0.3, -0.2, 0.5]], dtype=norch.float64, requires_grad=True)
    (grad,) = norch.autograd.grad(F.cross_entropy(x, norch.tensor([1])), x, create_graph=True)
    (second,) = norch.autograd.grad((grad * norch.tensor([[1.0, 2.0, 3.0]])).sum(), x)
    p = np.exp(x.detach().numpy()[0])
    p /= p.sum()
    close(second[0], (np.diag(p) - np.outer(p, p)) @ [1.0, 2.0, 3.0], 1e-10)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_bce_with_logits_matches_torch(torch, reduction):
    x = np.concatenate([samples(9) * 4, [0.0, 0.0, 0.0]]).astype(np.float32).reshape(4, 3)
    target = np.random.default_rng(1).random((4, 3)).astype(np.float32)
    target[0] = [0.0, 1.0, 1.0]
    ours, theirs = F.binary_cross_entropy_with_logits, torch.nn.functional.binary_cross_entropy_with_logits
    extra = {
        "weight": np.array([1.0, 2.0, 0.5], np.float32),
        "pos_weight": np.array([3.0, 1.0, 2.0], np.float32),
    }
    compare(torch, ours, theirs, x, target, reduction=reduction)
    compare(torch, ours, theirs, x, target, reduction=reduction, **extra)
    options = {"reduction": reduction}
    compare(torch, nn.BCEWithLogitsLoss(**options), torch.nn.BCEWithLogitsLoss(**options), x, target)


def test_bce_with_logits_is_stable():
    x = norch.tensor([1e4, -1e4, 0.0, 20.0], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, norch.tensor([0.0, 1.0, 1.0, 1.0]), reduction="none")
    np.testing.assert_allclose(loss.detach().numpy(), [1e4, 1e4, math.log(2), math.exp(-20)], rtol=1e-5)
    loss.sum().backward()
    close(x.grad, [1.0, -1.0, -0.5, 0.0])
    with pytest.raises(ValueError, match="target size"):
        F.binary_cross_entropy_with_logits(x, norch.zeros(3))


PLUS_MINUS = np.where(samples(4, 3, seed=5) > 0, 1, -1).astype(np.float32)
UNIT = 1 / (1 + np.exp(-samples(4, 3, seed=6)))
# name: (options, input, the other arguments)
FURTHER = {
    "smooth_l1_loss": ({"beta": 0.7}, samples(4, 3), samples(4, 3, seed=1)),
    "smooth_l1_loss 0": ({"beta": 0.0}, samples(4, 3), samples(4, 3, seed=1)),
    "huber_loss": ({"delta": 0.7}, samples(4, 3), samples(4, 3, seed=1)),
    "huber_loss weight": ({"weight": UNIT}, samples(4, 3), samples(4, 3, seed=1)),
    "binary_cross_entropy": ({"weight": UNIT[0]}, UNIT, (UNIT > 0.4).astype(np.float32)),
    "binary_cross_entropy at the ends": ({}, np.float32([0, 1, 1e-30, 1e-9]), np.float32([0, 1, 0.5, 0.5])),
    "kl_div": ({}, np.log(UNIT), UNIT[::-1].copy()),
    "kl_div log_target": ({"log_target": True}, np.log(UNIT), np.log(UNIT[::-1].copy())),
    "poisson_nll_loss": ({"full": True}, samples(4, 3), 3 * UNIT),
    "poisson_nll_loss rate": ({"log_input": False}, UNIT, 3 * UNIT),
    "gaussian_nll_loss": ({"full": True, "var": UNIT}, samples(4, 3), samples(4, 3, seed=1)),
    "gaussian_nll_loss one var": ({"var": UNIT[:, 0]}, samples(4, 3), samples(4, 3, seed=1)),
    "hinge_embedding_loss": ({"margin": 0.5}, samples(4, 3), PLUS_MINUS),
    "soft_margin_loss": ({}, samples(4, 3), PLUS_MINUS),
    "margin_ranking_loss": ({"margin": 0.1}, samples(4, 3), samples(4, 3, seed=1), PLUS_MINUS),
    "cosine_embedding_loss": ({"margin": 0.1}, samples(4, 3), samples(4, 3, seed=1), PLUS_MINUS[:, 0]),
    "triplet_margin_loss": ({"swap": True}, samples(4, 3), samples(4, 3, seed=1), samples(4, 3, seed=2)),
    "multilabel_soft_margin_loss": ({"weight": UNIT[0]}, samples(4, 3), (UNIT > 0.4).astype(np.float32)),
    "multi_margin_loss": ({"p": 2, "weight": UNIT[0]}, samples(4, 3), np.array([0, 2, 1, 2])),
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", FURTHER)
def test_further_losses_match_torch(torch, name, reduction):
    options, array, *others = FURTHER[name]
    function = name.split()[0]
    ours, theirs = getattr(F, function), getattr(torch.nn.functional, function)
    compare(torch, ours, theirs, array, *others, reduction=reduction, tolerance=1e-4, **options)


MODULES = {
    "BCELoss": (UNIT, (UNIT > 0.4).astype(np.float32)),
    "SmoothL1Loss": (samples(4, 3), samples(4, 3, seed=1)),
    "HuberLoss": (samples(4, 3), samples(4, 3, seed=1)),
    "KLDivLoss": (np.log(UNIT), UNIT),
    "PoissonNLLLoss": (samples(4, 3), UNIT),
    "GaussianNLLLoss": (samples(4, 3), UNIT, UNIT),
    "HingeEmbeddingLoss": (samples(4, 3), PLUS_MINUS),
    "SoftMarginLoss": (samples(4, 3), PLUS_MINUS),
    "MarginRankingLoss": (samples(4), samples(4, seed=1), PLUS_MINUS[:, 0]),
    "CosineEmbeddingLoss": (samples(4, 3), samples(4, 3, seed=1), PLUS_MINUS[:, 0]),
    "TripletMarginLoss": (samples(4, 3), samples(4, 3, seed=1), samples(4, 3, seed=2)),
    "MultiLabelSoftMarginLoss": (samples(4, 3), (UNIT > 0.4).astype(np.float32)),
    "MultiMarginLoss": (samples(4, 3), np.array([0, 2, 1, 2])),
}


@pytest.mark.parametrize("name", MODULES)
def test_further_modules_match_torch(torch, name):
    compare(torch, getattr(nn, name)(), getattr(torch.nn, name)(), *MODULES[name])
    with pytest.raises(ValueError, match="median"):
        getattr(nn, name)(reduction="median")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("smooth_l1_loss", lambda x: F.smooth_l1_loss(x, x, beta=-1)),
        ("huber_loss", lambda x: F.huber_loss(x, x, delta=0)),
        ("binary_cross_entropy", lambda x: F.binary_cross_entropy(x * 2, x)),
        ("binary_cross_entropy", lambda x: F.binary_cross_entropy(x, x[0])),
        ("gaussian_nll_loss", lambda x: F.gaussian_nll_loss(x, x, -x)),
        ("gaussian_nll_loss", lambda x: F.gaussian_nll_loss(x, x, norch.ones(5))),
        ("margin_ranking_loss", lambda x: F.margin_ranking_loss(x, x, x[0])),
        ("cosine_embedding_loss", lambda x: F.cosine_embedding_loss(x, x, x)),
        ("triplet_margin_loss", lambda x: F.triplet_margin_loss(x, x, x, margin=0)),
        ("multi_margin_loss", lambda x: F.multi_margin_loss(x, norch.tensor([0]))),
        ("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2)),
        ("channel_shuffle", lambda x: F.channel_shuffle(x, 2)),
        ("dropout2d", lambda x: F.dropout2d(x, 2)),
    ],
)
def test_further_losses_refuse(name, call):
    with pytest.raises(norch.Error, match=f"^{name}: "):
        call(norch.ones(2, 3))


def test_batchmean():
    p, q = norch.tensor(UNIT), norch.tensor(UNIT[::-1].copy())
    wanted = (F.kl_div(q.log(), p, reduction="sum") / 4).item()
    assert F.kl_div(q.log(), p, reduction="batchmean").item() == wanted
    assert nn.KLDivLoss(reduction="batchmean")(q.log(), p).item() == wanted


def test_losses_of_programs_derive_from_pytorchs_bases(torch):
    for m in (norch, torch):
        bases = importlib.import_module(f"{m.__name__}.nn.modules.loss")

        class Twice(bases._Loss):
            def __init__(self, factor):
                super().__init__(None, None, "sum")
                self.factor = factor

        class Weighted(bases._WeightedLoss):
            def __init__(self, weight):
                super().__init__(weight, reduction="mean")

        assert (Twice(2).reduction, Twice(2).factor) == ("sum", 2)
        assert list(Weighted(m.ones(2)).state_dict()) == ["weight"]
        assert m.nn.MSELoss(None, None, "sum").reduction == m.nn.L1Loss(False).reduction == "sum"
        assert m.nn.KLDivLoss(True, False).reduction == "none"


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_a_class_at_the_margin_has_no_gradient(offset):
    """As in PyTorch, where the hinge loss of classes is 0."""
    for loss, target in (("multi_margin_loss", [1]), ("multilabel_margin_loss", [[1, -1, 0]])):
        x = (norch.tensor([[1.0, 2.0, 0.0]]) + offset).requires_grad_()
        out = getattr(norch.nn.functional, loss)(x, norch.tensor(target))
        assert out.item() == 0 and norch.autograd.grad(out, x)[0].tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("size", [(), (1,)])
def test_margin_losses_of_one_sample_have_the_shape_of_the_target(torch, size):
    for lib in (torch, norch):
        x, y = lib.tensor([0.0, 3.0, 1.0]), lib.zeros(size, dtype=lib.int64)
        assert tuple(lib.nn.functional.multi_margin_loss(x, y, reduction="none").shape) == size
        one = lib.tensor(2.0, requires_grad=True)
        loss = lib.nn.functional.multilabel_margin_loss(one, lib.tensor(0))
        assert loss.item() == 0 and tuple(loss.shape) == ()
