"""torchjd: Jacobians of several losses, aggregated into gradients; Gramians of a batch."""

import torch
from numbers_made import array, fill, show
from torchjd.aggregation import MGDA, AlignedMTL, Mean, UPGrad, UPGradWeighting
from torchjd.autogram import Engine
from torchjd.autojac import backward, jac_to_grad, mtl_backward


def f(*shape, seed=0):
    return torch.tensor(array(*shape, seed=seed)).float()


for aggregator in (UPGrad(), MGDA(), Mean(), AlignedMTL()):
    model = fill(torch.nn.Linear(3, 2))
    y = model(f(4, 3))
    backward([(y[:, 0] ** 2).mean(), (y[:, 1] - y[:, 0]).mean()])
    jac_to_grad(model.parameters(), aggregator)
    show(type(aggregator).__name__, model.weight.grad, model.bias.grad)
shared, heads = fill(torch.nn.Linear(3, 4)), [fill(torch.nn.Linear(4, 1)) for _ in range(2)]
features = torch.tanh(shared(f(5, 3)))
losses = [(head(features) - i).square().mean() for i, head in enumerate(heads)]
mtl_backward(losses, features=features)
jac_to_grad(shared.parameters(), UPGrad())
show("tasks", shared.weight.grad, heads[0].weight.grad)
model = fill(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)))
engine = Engine(model, batch_dim=0)
y = model(f(5, 3)).squeeze(1) ** 2
gramian = engine.compute_gramian(y)
y.backward(UPGradWeighting()(gramian))
show("gramian", gramian, model[0].weight.grad)
