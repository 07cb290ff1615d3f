"""``norch.distributed``: one program as many processes, on MPI and NCCL, with the names of torch.distributed.

    mpiexec -n 4 python train.py

>>> import norch.distributed as dist
>>> dist.init_process_group("mpi")  # doctest: +SKIP
>>> dist.all_reduce(norch.ones(3))
"""

from __future__ import annotations

from .._package.exports import publish
from . import collectives, objects, point_to_point, process_group
from .collectives import *  # noqa: F403
from .objects import *  # noqa: F403
from .point_to_point import *  # noqa: F403
from .process_group import *  # noqa: F403

__all__ = [*process_group.__all__, *collectives.__all__, *objects.__all__, *point_to_point.__all__]
publish(globals(), {".": "checkpoint optim"})
