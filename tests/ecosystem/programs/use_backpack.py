"""backpack: gradients of each sample, variances and curvatures beside those of backward()."""

import torch
from backpack import backpack, extend, extensions
from numbers_made import array, fill, show


def f(*shape, seed=0):
    return torch.tensor(array(*shape, seed=seed)).float()


layers = torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32, 3)
model, loss = extend(fill(torch.nn.Sequential(*layers))), extend(torch.nn.CrossEntropyLoss())
value = loss(model(f(4, 1, 6, 6)), torch.tensor([0, 1, 2, 0]))
asked = "BatchGrad Variance DiagGGNExact KFLR BatchL2Grad SumGradSquared DiagHessian BatchDiagGGNExact".split()
with backpack(*[getattr(extensions, name)() for name in asked]):
    value.backward()
for p in model.parameters():
    show("parameter", p.grad, p.grad_batch, p.variance, p.diag_ggn_exact, p.batch_l2, p.sum_grad_squared, *p.kflr)
    show("curvature", p.diag_h, p.diag_ggn_exact_batch)
