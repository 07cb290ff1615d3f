"""opacus: gradients of each sample for several layers, private training and what privacy it costs."""

import torch
from numbers_made import array, fill, show
from opacus import PrivacyEngine
from opacus.grad_sample import GradSampleModule
from torch import nn

images, labels = torch.tensor(array(5, 1, 6, 6)).float(), torch.tensor([0, 1, 2, 1, 0])
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.LayerNorm(64), nn.Linear(64, 3))
model = GradSampleModule(fill(net))
nn.functional.cross_entropy(model(images), labels).backward()
show("of each sample", *[p.grad_sample for p in model.parameters()])

embedded = GradSampleModule(fill(nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 2))))
embedded(torch.tensor(array(3, 5, low=0, high=7))).square().sum().backward()
show("embedding", *[p.grad_sample for p in embedded.parameters()])

net = fill(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)))
x, y = torch.tensor(array(32, 4)).float(), torch.tensor(array(32, low=0, high=2))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
engine, optimizer = PrivacyEngine(), torch.optim.SGD(net.parameters(), lr=0.1)
net, optimizer, loader = engine.make_private(
    module=net, optimizer=optimizer, data_loader=loader, noise_multiplier=0.0, max_grad_norm=1.0, poisson_sampling=False
)
for a, b in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(a), b).backward()
    optimizer.step()
show("clipped", *net.parameters())

net = fill(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)))
engine, optimizer = PrivacyEngine(), torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
net, optimizer, loader = engine.make_private(
    module=net, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0
)
for a, b in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(a), b).backward()
    optimizer.step()
show("privacy", engine.get_epsilon(1e-5))
