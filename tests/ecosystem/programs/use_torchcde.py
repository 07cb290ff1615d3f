"""torchcde: controlled differential equations on interpolated data, and stochastic ones by torchsde, with gradients."""

import torch
import torchcde
import torchsde
from numbers_made import array, fill, show


class SDE(torch.nn.Module):
    noise_type = "diagonal"
    sde_type = "ito"

    def __init__(s):
        super().__init__()
        s.f_ = torch.nn.Linear(3, 3)
        s.g_ = torch.nn.Linear(3, 3)

    def f(s, t, y):
        return s.f_(y).tanh()

    def g(s, t, y):
        return s.g_(y).sigmoid() * 0.1


m = SDE()
fill(m)


class BM:
    def __init__(s):
        s.w = torch.tensor(array(200, 4, 3), dtype=torch.float32) * 0.1

    def __call__(s, a, b=None, **k):
        i = int(round(float(a) * 100))
        return s.w[i]

    shape = (4, 3)
    dtype = torch.float32
    device = torch.device("cpu")
    levy_area_approximation = "none"


y0 = torch.tensor(array(4, 3), dtype=torch.float32)
ys = torchsde.sdeint(m, y0, torch.linspace(0, 1, 3), bm=BM(), dt=0.05, method="euler")
ys.sum().backward()
show("sde", ys, m.f_.weight.grad)
x = torch.tensor(array(2, 6, 3), dtype=torch.float32)
c = torchcde.hermite_cubic_coefficients_with_backward_differences(x)
X = torchcde.CubicSpline(c)


class F(torch.nn.Module):
    def __init__(s):
        super().__init__()
        s.l = torch.nn.Linear(4, 12)

    def forward(s, t, z):
        return s.l(z).tanh().view(*z.shape[:-1], 4, 3)


f = F()
fill(f)
z = torchcde.cdeint(
    X=X,
    func=f,
    z0=torch.tensor(array(2, 4), dtype=torch.float32),
    t=X.interval,
    method="rk4",
    options=dict(step_size=0.5),
)
z.sum().backward()
show("cde", z, f.l.weight.grad)
show(
    "nat",
    torchcde.natural_cubic_coeffs(x),
    torchcde.LinearInterpolation(torchcde.linear_interpolation_coeffs(x)).evaluate(torch.tensor(0.7)),
)
