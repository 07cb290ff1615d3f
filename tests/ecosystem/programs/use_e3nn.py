"""e3nn: equivariant products, layers and harmonics of rotations, with gradients."""

import torch
from e3nn import nn as layers
from e3nn import o3
from e3nn.math import soft_one_hot_linspace
from numbers_made import array, fill, show


def f(*shape, seed=0):
    return torch.tensor(array(*shape, seed=seed)).float()


irreps = o3.Irreps("8x0e + 4x1o + 2x2e")
show("harmonics", o3.spherical_harmonics([0, 1, 2, 3], f(5, 3, seed=1), normalize=True))
x = f(5, irreps.dim).requires_grad_()
y = fill(o3.Linear(irreps, "4x0e+3x1o+2x2e"))(x)
y.square().sum().backward()
show("linear", y, x.grad)
product = fill(o3.FullyConnectedTensorProduct("4x0e+4x1o", "0e+1o+2e", "3x0e+2x1o+2e"))
a, b = f(5, 16, seed=2).requires_grad_(), f(5, 9, seed=3)
z = product(a, b)
z.sin().sum().backward()
show("product", z, a.grad, *[p.grad for p in product.parameters()])
show("full", o3.FullTensorProduct("1o", "1o+2e")(f(4, 3), f(4, 8, seed=1)))
show("matrix", irreps.D_from_angles(*torch.tensor([0.3, 0.5, -0.2])), o3.wigner_3j(1, 2, 3))
gate = layers.Gate("4x0e", [None], "3x0e", [None], "3x1o")
show("gate", gate(f(6, gate.irreps_in.dim)))
norm = fill(layers.BatchNorm("4x0e+2x1o")).train()
show("norm", norm(f(7, 10)), norm.running_mean, o3.Norm("4x1o")(f(3, 12)))
show("network", fill(layers.FullyConnectedNet([3, 16, 8], None))(f(4, 3)))
show("bumps", soft_one_hot_linspace(torch.tensor([0.2, 0.5, 1.0]), 0, 1.5, 5, basis="smooth_finite", cutoff=True))
show("reduced", o3.ReducedTensorProducts("ij=-ji", i="1o")(f(3), f(3, seed=5)))
show("sphere", o3.ToS2Grid(3, (8, 7))(f(2, 16)), o3.FromS2Grid((8, 7), 3)(f(2, 8, 7)))
