"""Random numbers by the names of ``torch.cuda``.

CPU and CUDA share one generator, and draw the same from the same seed.
"""

from __future__ import annotations

from typing import Any

from .. import random
from ..device import cuda_device_count

__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
    "set_rng_state", "set_rng_state_all",
]  # fmt: skip


def manual_seed(seed: int) -> None:
    """norch.manual_seed(): seeds the default generator, which all devices share.

    >>> norch.cuda.manual_seed(0)
    >>> on_device = norch.rand(2, device="cuda")
    >>> norch.cuda.manual_seed(0)
    >>> norch.equal(on_device.cpu(), norch.rand(2))
    True
    """
    random.manual_seed(seed)


def seed() -> None:
    """norch.seed(): gives the default generator a random seed.

    >>> norch.cuda.seed()
    """
    random.seed()


def initial_seed() -> int:
    """norch.initial_seed(): the seed of the default generator.

    >>> norch.cuda.manual_seed(3)
    >>> norch.cuda.initial_seed()
    3
    """
    return random.initial_seed()


def get_rng_state(device: Any = None) -> Any:
    """norch.get_rng_state(): seed and position of the default generator.

    >>> state = norch.cuda.get_rng_state()
    >>> x = norch.rand(2, device="cuda")
    >>> norch.cuda.set_rng_state(state)
    >>> norch.equal(x, norch.rand(2, device="cuda"))
    True
    """
    return random.get_rng_state()


def get_rng_state_all() -> list[Any]:
    """The states of the random numbers of all devices.

    >>> len(norch.cuda.get_rng_state_all()) == norch.cuda.device_count()
    True
    """
    return [get_rng_state(index) for index in range(cuda_device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Restores what get_rng_state_all() gave.

    >>> norch.cuda.set_rng_state_all(norch.cuda.get_rng_state_all())
    """
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def set_rng_state(new_state: Any, device: Any = None) -> None:
    """norch.set_rng_state(): restores the default generator.

    >>> norch.cuda.set_rng_state(norch.cuda.get_rng_state())
    """
    random.set_rng_state(new_state)


manual_seed_all, seed_all = manual_seed, seed
