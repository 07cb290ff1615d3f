"""pina: tensors with labels, differential operators on them, and a few steps of a physics-informed network."""

import logging

import torch
from numbers_made import array, fill, show
from pina import Condition, LabelTensor, Trainer
from pina.domain import CartesianDomain
from pina.equation import Equation
from pina.equation.zoo import FixedValue
from pina.model import FeedForward
from pina.operator import grad, laplacian
from pina.problem import SpatialProblem
from pina.solver import PINN

x = LabelTensor(torch.tensor(array(10, 2), dtype=torch.float32), ["x", "y"])
x.requires_grad_()
u = x.extract(["x"]) ** 2 * x.extract(["y"])
u.labels = ["u"]
print(type(u), u.labels)
g = grad(u, x)
print(g.labels, type(g))
show("grad", g.tensor)
second = laplacian(u, x)
print(second.labels)
show("lap", second.tensor)
y = LabelTensor.cat([x, x])
print(y.shape, y.labels)
print(
    x[:3].labels,
    x.extract("x").shape,
    x.append(LabelTensor(torch.ones(10, 1), ["z"])).labels,
    LabelTensor.stack([x, x]).shape,
)


class P(SpatialProblem):
    output_variables = ["u"]
    spatial_domain = CartesianDomain({"x": [0, 1], "y": [0, 1]})
    domains = {"D": spatial_domain, "g": CartesianDomain({"x": [0, 1], "y": 1.0})}

    def lap(input_, output_):
        return laplacian(output_, input_, components=["u"], d=["x", "y"]) - 1.0

    conditions = {
        "D": Condition(domain="D", equation=Equation(lap)),
        "g": Condition(domain="g", equation=FixedValue(0.0)),
    }


p = P()
p.discretise_domain(5, "grid")

m = FeedForward(2, 1, inner_size=8, n_layers=2)
fill(m)
logging.disable(logging.WARNING)
s = PINN(p, m)
t = Trainer(
    s,
    max_epochs=5,
    accelerator="cpu",
    enable_progress_bar=False,
    logger=False,
    enable_checkpointing=False,
    batch_size=None,
    train_size=1.0,
    val_size=0.0,
    test_size=0.0,
)
t.train()
show("w", *m.parameters())
