"""pytorch-optimizer: three steps of its optimizers, on the same weights and data."""

import pytorch_optimizer
import torch
from numbers_made import array, fill, show
from torch import nn

x, y = torch.tensor(array(8, 4)).float(), torch.tensor(array(8, 2, seed=1)).float()
for name in (
    "AdaBelief", "AdaBound", "Adan", "AdamP", "ADOPT", "DiffGrad", "Lamb", "Lion", "MADGRAD", "NovoGrad", "Prodigy",
    "QHAdam", "RAdam", "Ranger21", "SGDW", "Shampoo", "Tiger", "Yogi", "CAME",
):  # fmt: skip
    model = fill(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)), 0.4)
    kind = getattr(pytorch_optimizer, name)
    optimizer = kind(model.parameters(), lr=0.01, **({"num_iterations": 10} if name == "Ranger21" else {}))
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    show(name, loss, model[0].weight)
