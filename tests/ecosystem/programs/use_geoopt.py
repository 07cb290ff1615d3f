"""geoopt: steps of Riemannian optimizers on several manifolds, distances and exponential maps."""

import geoopt
import torch
from numbers_made import array, show


def numbers(seed):
    return torch.tensor(array(5, 5, seed=seed)) * 0.1


for manifold in (
    geoopt.Sphere(), geoopt.PoincareBall(), geoopt.Lorentz(), geoopt.Stiefel(), geoopt.SymmetricPositiveDefinite(),
    geoopt.EuclideanStiefel(), geoopt.Scaled(geoopt.Sphere(), 2.0),
):  # fmt: skip
    name, start = type(manifold).__name__, numbers(2)
    target = numbers(3)
    if name == "SymmetricPositiveDefinite":
        start, target = start @ start.T + torch.eye(5, dtype=start.dtype), 2 * torch.eye(5, dtype=start.dtype)
    target = manifold.projx(target)
    for kind in (geoopt.optim.RiemannianAdam, geoopt.optim.RiemannianSGD):
        x = geoopt.ManifoldParameter(manifold.projx(start), manifold=manifold)
        optimizer = kind([x], lr=1e-2)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (x - target).square().sum()
            loss.backward()
            optimizer.step()
        show(f"{name} {kind.__name__}", loss, x)
    if "Stiefel" not in name:
        show(f"{name} distance", manifold.dist(x, target), manifold.expmap(x, manifold.proju(x, numbers(4))))
