"""Optimizers that few programs use: LBFGS. norch.optim imports it from here when its name is first read."""
