"""zuko: densities of several normalizing flows, their gradients, and samples."""

import torch
import zuko
from numbers_made import array, fill, show

x, c = 0.5 * torch.tensor(array(5, 3)).float(), torch.tensor(array(5, 2, seed=1)).float()
for make in (zuko.flows.MAF, zuko.flows.NSF, zuko.flows.NICE, zuko.flows.NCSF, zuko.flows.GF):
    x_here = x.clamp(-3, 3)
    flow = make(features=3, context=2, transforms=2, hidden_features=(8, 8))
    fill(flow.transform, scale=0.2)
    loss = -flow(c).log_prob(x_here).mean()
    loss.backward()
    show(make.__name__, loss, *[p.grad for p in flow.parameters() if p.grad is not None][:3])
    print(tuple(flow(c).sample((4,)).shape))
