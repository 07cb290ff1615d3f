"""Optimizers that few programs use. norch.optim imports them when their names are first read."""
