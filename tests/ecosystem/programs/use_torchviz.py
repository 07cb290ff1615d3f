"""torchviz: the graphs of a perceptron, a convolutional network and a step of attention, node by node."""

import re

import torch
from torch import nn
from torchviz import make_dot


def described(name, y, parameters=()):
    """Prints the nodes and edges of a graph, numbered in the order in which they are met."""
    numbers = {}
    for line in make_dot(y, params=dict(parameters)).body:
        line = re.sub(r"\d{8,}", lambda found: str(numbers.setdefault(found[0], len(numbers))), line)
        print(name, *line.split())


mlp = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, 2, bias=False))
described("mlp", nn.functional.cross_entropy(mlp(torch.ones(2, 4)), torch.tensor([0, 1])), mlp.named_parameters())

layers = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)
cnn = nn.Sequential(*layers)
described("cnn", cnn(torch.ones(2, 1, 8, 8)).pow(2).mean(), cnn.named_parameters())

x = torch.ones(1, 3, 8, requires_grad=True)
into = [nn.Linear(8, 8) for _ in range(4)]
q, k, v = (into[i](x).view(1, 3, 2, 4).transpose(1, 2) for i in range(3))
y = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
described("attention", nn.functional.mse_loss(x + into[3](y), torch.zeros(1, 3, 8)))
