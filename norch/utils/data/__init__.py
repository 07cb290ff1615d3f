"""``norch.utils.data``: data sets, samplers and DataLoader."""

from ..._package.exports import exported as _exported
from ..._package.exports import publish as _publish
from .collate import default_collate as default_collate
from .collate import default_convert as default_convert
from .dataloader import DataLoader as DataLoader
from .dataset import *  # noqa: F403
from .distributed import DistributedSampler as DistributedSampler
from .sampler import *  # noqa: F403
from .worker import get_worker_info as get_worker_info

__all__ = _exported(globals())
_publish(globals())
