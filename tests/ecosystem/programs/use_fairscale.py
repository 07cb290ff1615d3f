"""fairscale: checkpointed layers and a gate of experts, with gradients."""

import torch
from fairscale.nn import checkpoint_wrapper
from fairscale.nn.moe import Top2Gate
from numbers_made import array, fill, show
from torch import nn

x = torch.tensor(array(5, 3)).float().requires_grad_()
net = nn.Sequential(checkpoint_wrapper(nn.Sequential(nn.Linear(3, 4), nn.ReLU())), nn.Linear(4, 2))
fill(net)
out = net(x)
out.square().sum().backward()
show("checkpointed", out, x.grad, *(p.grad for p in net.parameters()))
gate = fill(Top2Gate(4, 2))
torch.manual_seed(0)
loss, weights, mask = gate(torch.tensor(array(8, 4)).float())
show("gate", loss)
print("places", *weights.shape, int(mask.any(-1).any(0).sum()))
