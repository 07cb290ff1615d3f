"""xitorch: eigenvalues, linear systems, roots, integrals and initial value problems, with gradients through them."""

import torch
import xitorch
from numbers_made import array, show
from xitorch.integrate import quad, solve_ivp
from xitorch.linalg import lsymeig, solve
from xitorch.optimize import rootfinder

base = torch.tensor(array(4, 4))
a = (base @ base.T + torch.eye(4)).double().requires_grad_()
operator = xitorch.LinearOperator.m(a, is_hermitian=True)
values, vectors = lsymeig(operator, neig=2)
show("eigenvalues", values, *torch.autograd.grad(values.sum(), a))
x = solve(operator, torch.tensor(array(4, 1, seed=1)))
show("solve", x, *torch.autograd.grad(x.square().sum(), a))
y = rootfinder(lambda y, a: a @ y + y**3 - 1, torch.zeros(4, 1).double(), params=(a,))
show("root", y, *torch.autograd.grad(y.sum(), a))
area = quad(lambda x, a: torch.sin(x) * a.sum(), torch.tensor(0.0).double(), torch.tensor(1.0).double(), params=(a,))
show("integral", area, *torch.autograd.grad(area.sum(), a))
rate = torch.tensor(0.5).double().requires_grad_()
y = solve_ivp(lambda t, y, r: -r * y, torch.linspace(0, 1, 5).double(), torch.ones(2).double(), params=(rate,))
show("initial value", y, *torch.autograd.grad(y.sum(), rate))
