"""For the programs: numbers that NumPy draws, so that libraries start from the same, and how numbers are printed."""

import sys
import zlib

import numpy as np
import torch


def array(*shape, seed=0, low=None, high=None):
    """Numbers of a normal distribution, or integers."""
    draw = np.random.default_rng(seed)
    return draw.integers(low, high, shape) if high is not None else draw.normal(size=shape)


def fill(model, scale=1.0):
    """Sets the weights and buffers of a model by their names, so that signals keep their size; norms are about 1."""
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if not tensor.is_floating_point() or not tensor.numel():
                continue
            values = np.random.default_rng(zlib.crc32(name.encode())).normal(size=tuple(tensor.shape))
            if tensor.ndim < 2:
                values = 1 + 0.1 * np.abs(values) if name.endswith(("weight", "running_var")) else 0.1 * values
            else:
                values *= scale / np.sqrt(np.prod(tensor.shape[1:]))
            tensor.copy_(torch.tensor(values, dtype=tensor.dtype))
    return model


def show(name, *values):
    """A line: a name, and of each value its shape, mean, standard deviation and three elements."""
    said = [name]
    for value in values:
        a = value.detach().cpu().double().numpy() if isinstance(value, torch.Tensor) else np.asarray(value, dtype=float)
        flat = a.ravel()
        picked = flat[[0, len(flat) // 2, -1]] if len(flat) else []
        said.append("x".join(map(str, a.shape)) or "number")
        said += [f"{v:.7g}" for v in (*((flat.mean(), flat.std()) if len(flat) else ()), *picked)]
    print(" ".join(said))
    sys.stdout.flush()
