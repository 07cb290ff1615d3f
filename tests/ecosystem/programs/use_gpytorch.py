"""gpytorch: a Gaussian process trained by its marginal likelihood, and its predictions; several kernels."""

import gpytorch
import torch
from numbers_made import array, show

x = torch.linspace(0, 1, 25, dtype=torch.float64)
y = torch.sin(x * 6) + 0.1 * torch.tensor(array(25))


class Process(gpytorch.models.ExactGP):
    def __init__(self, likelihood, kernel):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


k = gpytorch.kernels
for kernel in (
    k.ScaleKernel(k.RBFKernel()),
    k.ScaleKernel(k.MaternKernel(2.5)),
    k.RBFKernel() + k.LinearKernel(),
    k.ScaleKernel(k.PeriodicKernel()),
):
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Process(likelihood, kernel).double()
    likelihood.double()
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    model.train(), likelihood.train()
    for _ in range(8):
        optimizer.zero_grad()
        loss = -mll(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval(), likelihood.eval()
    with torch.no_grad():
        found = likelihood(model(torch.linspace(0, 1.2, 7, dtype=torch.float64)))
    show(type(kernel).__name__, loss, found.mean, found.variance)
