"""botorch: a Gaussian process that is fitted, expected improvement, and the point where it is largest."""

import torch
from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from numbers_made import array, show

X = torch.tensor(array(12, 2)).double().sigmoid()
Y = (X - 0.4).square().sum(1, keepdim=True).neg()
model = SingleTaskGP(X, Y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
posterior = model.posterior(X[:3] + 0.05)
show("posterior", posterior.mean, posterior.variance)
improvement = LogExpectedImprovement(model, best_f=Y.max())
show("acquisition", UpperConfidenceBound(model, beta=2.0)(X[:4].unsqueeze(1) + 0.02))
bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
# Starts are random: with many, one of them comes to the larger of two maxima.
best, _ = optimize_acqf(improvement, bounds, q=1, num_restarts=16, raw_samples=256)
print("near the optimum", bool((best - 0.4).abs().max() < 0.1))
