"""entmax: sparse softmaxes by sorting and by bisection, and their losses, with gradients."""

import torch
from entmax import Entmax15Loss, SparsemaxLoss, entmax15, entmax_bisect, sparsemax
from numbers_made import array, show

for name, function in (
    ("sparsemax", sparsemax),
    ("entmax15", entmax15),
    ("bisect", lambda x, dim: entmax_bisect(x, 1.3, dim)),
):
    x = torch.tensor(array(3, 6), dtype=torch.float32, requires_grad=True)
    y = function(x, dim=-1)
    (y * torch.arange(6.0)).sum().backward()
    show(name, y, x.grad)
alpha = torch.tensor(1.7, requires_grad=True)
y = entmax_bisect(torch.tensor(array(2, 5)).float(), alpha)
y.square().sum().backward()
show("alpha", y, alpha.grad)
for loss in (SparsemaxLoss(), Entmax15Loss()):
    x = torch.tensor(array(3, 6), dtype=torch.float32, requires_grad=True)
    value = loss(x, torch.tensor([0, 3, 5]))
    value.backward()
    show(type(loss).__name__, value, x.grad)
