"""pot: costs of optimal transport, exact, entropic, sliced and between graphs, with their gradients."""

import numpy as np
import ot
import torch
from numbers_made import array, show


def numbers(*shape, seed=0):
    return torch.tensor(array(*shape, seed=seed))


a, b = torch.softmax(numbers(6), 0).requires_grad_(), torch.softmax(numbers(5, seed=1), 0)
cost = (numbers(6, 5, seed=2) ** 2).requires_grad_()
exact = ot.emd2(a, b, cost)
show("exact", exact, ot.emd(a, b, cost), *torch.autograd.grad(exact, (a, cost)))
entropic = ot.sinkhorn2(a, b, cost, 0.5)
show("entropic", entropic, *torch.autograd.grad(entropic, (a, cost)))
unbalanced = ot.unbalanced.sinkhorn_unbalanced(a.detach(), b, cost.detach(), 1.0, 1.0)
others = torch.stack([a.detach(), torch.softmax(numbers(6, seed=7), 0)], 1)
show("unbalanced", unbalanced, ot.bregman.barycenter(others, numbers(6, 6) ** 2, 1.0))

x, y = numbers(20, 3, seed=3).requires_grad_(), numbers(20, 3, seed=4)
lines = torch.nn.functional.normalize(numbers(3, 10, seed=9), dim=0)
sliced = ot.sliced_wasserstein_distance(x, y, projections=lines)
show("sliced", sliced, *torch.autograd.grad(sliced, x), ot.max_sliced_wasserstein_distance(x, y, projections=lines))
show("one axis", ot.lp.wasserstein_1d(x, y), ot.gaussian.empirical_bures_wasserstein_distance(x, y))
solved = ot.solve_sample(x, y, reg=1.0)
show("solved", solved.value, solved.value_linear, solved.plan, *torch.autograd.grad(solved.value, x))
np.random.seed(0)
weights = ot.unif(20, type_as=x)
between = ot.gromov.gromov_wasserstein2(ot.dist(x, x), ot.dist(y, y), weights, weights)
show("graphs", between, *torch.autograd.grad(between, x))
