"""Optimizers that few programs use. norch.optim imports them from here when their names are first read."""
