"""norch.nn.init and the clipping of gradients, against PyTorch where it is installed and against closed forms."""

import math
from typing import Any

import numpy as np
import pytest

import norch
from norch import nn


def close(ours, theirs):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-5)


def test_init_values():
    norch.manual_seed(1)
    p = nn.Parameter(norch.empty(300, 200))
    assert nn.init.zeros_(p) is p and p.abs().sum().item() == 0
    assert nn.init.ones_(p).sum().item() == 60000
    assert nn.init.constant_(p, 2.5)[3, 4].item() == 2.5
    for fill, mean, std in [
        (lambda: nn.init.uniform_(p, -2.0, 1.0), -0.5, 3 / math.sqrt(12)),
        (lambda: nn.init.normal_(p, 1.0, 0.5), 1.0, 0.5),
        (lambda: nn.init.xavier_uniform_(p), 0.0, math.sqrt(2 / 500)),
        (lambda: nn.init.xavier_normal_(p, 2.0), 0.0, 2 * math.sqrt(2 / 500)),
        (lambda: nn.init.kaiming_uniform_(p, nonlinearity="relu"), 0.0, math.sqrt(2 / 200)),
        (lambda: nn.init.kaiming_normal_(p, mode="fan_out"), 0.0, math.sqrt(2 / 300)),
    ]:
        assert fill() is p
        values = p.detach().numpy()
        assert abs(values.mean() - mean) < 0.02 * max(1, std)
        assert abs(values.std() / std - 1) < 0.02
    assert p.requires_grad and p.is_leaf


def test_init_gains_fans_and_errors(torch):
    for name in ("linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert nn.init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))
    assert nn.init.calculate_gain("leaky_relu", 0.5) == torch.nn.init.calculate_gain("leaky_relu", 0.5)
    assert nn.init._calculate_fan_in_and_fan_out(norch.empty(4, 3, 2, 2)) == (12, 16)
    with pytest.raises(ValueError):
        nn.init.calculate_gain("wiggle")
    with pytest.raises(ValueError, match="fewer than 2"):
        nn.init.xavier_uniform_(norch.empty(3))
    with pytest.raises(ValueError, match="mode"):
        nn.init.kaiming_uniform_(norch.empty(3, 3), mode="sideways")
    with pytest.warns(UserWarning, match="zero-element") as warned:
        nn.init.kaiming_uniform_(norch.empty(0, 3))
    assert warned[0].filename == __file__


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, 0.0, math.inf, -math.inf, "inf"])
def test_clip_grad_norm_matches_torch(torch, norm_type):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((3, 2), (4,))]
    ours, theirs = [], []
    for array in arrays:
        p, q = nn.Parameter(norch.zeros(*array.shape)), torch.nn.Parameter(torch.zeros(array.shape))
        p.grad, q.grad = norch.tensor(array), torch.tensor(array)
        ours.append(p)
        theirs.append(q)
    ours.append(nn.Parameter(norch.zeros(1)))
    a = nn.utils.clip_grad_norm_(ours, 0.5, norm_type)
    b = torch.nn.utils.clip_grad_norm_(theirs, 0.5, norm_type)
    close(a, b)
    for p, q in zip(ours, theirs, strict=False):
        close(p.grad, q.grad)
    a = nn.utils.get_total_norm([p.grad for p in ours if p.grad is not None], norm_type)
    close(a, torch.nn.utils.get_total_norm([q.grad for q in theirs], norm_type))
    nn.utils.clip_grads_with_norm_(ours, 1.0, norch.tensor(2.0))
    torch.nn.utils.clip_grads_with_norm_(theirs, 1.0, torch.tensor(2.0))
    for p, q in zip(ours, theirs, strict=False):
        close(p.grad, q.grad)
    nn.utils.clip_grad_value_(ours, 0.1)
    assert max(p.grad.abs().amax().item() for p in ours[:2]) <= np.float32(0.1)
    ours[0].grad = norch.full((3, 2), math.nan)
    with pytest.raises(RuntimeError):
        nn.utils.clip_grad_norm_(ours, 0.5, error_if_nonfinite=True)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (3, 2, 2), (1, 1)])
def test_orthogonal(shape: Any) -> None:
    from norch.nn.init import _orthonormal

    w = nn.init.orthogonal_(norch.empty(*shape, dtype=norch.float64), gain=2.0).reshape(shape[0], -1) / 2
    product = w @ w.T if shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product.numpy(), np.eye(len(product)), atol=1e-12)
    a = norch.randn(6, 4, dtype=norch.float64)
    q, r = np.linalg.qr(a.numpy())
    np.testing.assert_allclose(_orthonormal(a).numpy(), q * np.sign(np.diag(r)), atol=1e-12)
    with pytest.raises(norch.ShapeError, match="orthogonal_: needs at least 2 dimensions"):
        nn.init.orthogonal_(norch.empty(3))


def test_sparse_and_dirac(torch: Any) -> None:
    w = nn.init.sparse_(norch.empty(7, 5), 0.3, std=2.0)
    assert (w == 0).sum(0).tolist() == [3] * 5 and 0.5 < w[w != 0].std().item() < 4
    for shape, groups in (((4, 2, 3), 1), ((4, 2, 3, 3), 2), ((2, 3, 2, 3, 4), 1), ((3, 3, 2), 3)):
        ours = nn.init.dirac_(norch.empty(*shape), groups)
        np.testing.assert_array_equal(ours.numpy(), torch.nn.init.dirac_(torch.empty(*shape), groups).numpy())
    for call in (
        lambda: nn.init.dirac_(norch.empty(2, 2)),
        lambda: nn.init.dirac_(norch.empty(3, 2, 2), 2),
        lambda: nn.init.sparse_(norch.empty(3), 0.5),
    ):
        with pytest.raises(norch.ShapeError):
            call()
