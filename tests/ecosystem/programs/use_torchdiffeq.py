"""torchdiffeq: differential equations by several methods, with gradients, the adjoint's and events."""

import torch
import torchdiffeq
from numbers_made import fill, show

spiral = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]], dtype=torch.float64)
times = torch.linspace(0, 1, 6, dtype=torch.float64)
for method in ("dopri5", "dopri8", "bosh3", "adaptive_heun", "rk4", "explicit_adams"):
    start = torch.tensor([[1.0, 0.5]], dtype=torch.float64, requires_grad=True)
    y = torchdiffeq.odeint(lambda t, y: (y**3) @ spiral, start, times, method=method)
    y.sum().backward()
    show(method, y, start.grad)


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = fill(torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))).double()

    def forward(self, t, y):
        return self.net(y)


field, start = Field(), torch.tensor([[2.0, 0.0]], dtype=torch.float64, requires_grad=True)
y = torchdiffeq.odeint_adjoint(field, start, times)
y.sum().backward()
show("adjoint", y, start.grad, *[p.grad for p in field.parameters()])
when, y = torchdiffeq.odeint_event(field, start, times[0], event_fn=lambda t, y: y[0, 0] - 1.9, atol=1e-8, rtol=1e-8)
show("event", when, y)
