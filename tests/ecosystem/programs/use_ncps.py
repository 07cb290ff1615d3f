"""ncps: recurrent networks of liquid neurons, wired and fully connected, with gradients and a few steps of training."""

import torch
from ncps.torch import LTC, CfC
from ncps.wirings import AutoNCP
from numbers_made import array, fill, show

x, target = torch.tensor(array(2, 5, 3)).float(), torch.tensor(array(2, 5, 2, seed=1)).float()
for name, make in (("cfc", lambda: CfC(3, AutoNCP(8, 2, seed=1))), ("ltc", lambda: LTC(3, AutoNCP(8, 2, seed=1)))):
    model = fill(make(), 0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(3):
        optimizer.zero_grad()
        y, state = model(x)
        loss = (y - target).square().mean()
        loss.backward()
        optimizer.step()
        show(f"{name} {step}", loss, y, state)
