"""torchfm: models of clicks (factorization machines and deep ones), with gradients and steps of training."""

import torch
from numbers_made import fill, show
from torchfm.model.afi import AutomaticFeatureInteractionModel
from torchfm.model.dcn import DeepCrossNetworkModel
from torchfm.model.dfm import DeepFactorizationMachineModel
from torchfm.model.fm import FactorizationMachineModel
from torchfm.model.nfm import NeuralFactorizationMachineModel
from torchfm.model.xdfm import ExtremeDeepFactorizationMachineModel

fields, x = [3, 4, 5], torch.tensor([[0, 1, 2], [1, 0, 4], [2, 3, 1], [0, 2, 3]])
clicks = torch.tensor([0.0, 1.0, 1.0, 0.0])
for model in (
    FactorizationMachineModel(fields, 4),
    DeepFactorizationMachineModel(fields, 4, (8,), 0.0),
    DeepCrossNetworkModel(fields, 4, 2, (8,), 0.0),
    ExtremeDeepFactorizationMachineModel(fields, 4, (8,), 0.0, (4, 4)),
    NeuralFactorizationMachineModel(fields, 4, (8,), (0.0, 0.0)),
    AutomaticFeatureInteractionModel(fields, 4, 8, 2, 2, (8,), (0.0, 0.0, 0.0)),
):
    fill(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy(model(x), clicks)
        loss.backward()
        optimizer.step()
    grads = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    show(type(model).__name__, loss, model.eval()(x), grads)
