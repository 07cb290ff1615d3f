"""``norch.version``: what norch was built for, by the names of torch.version."""

from . import __version__ as __version__

cuda = hip = xpu = git_version = None  # the library needs no CUDA; the plugin's is that of the driver's runtime
debug = False
