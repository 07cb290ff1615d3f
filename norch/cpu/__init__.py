"""``norch.cpu``: what older programs import of torch.cpu, ``norch.cpu.amp``."""

from .._package.exports import publish as _publish
from . import amp as amp

_publish(globals())
