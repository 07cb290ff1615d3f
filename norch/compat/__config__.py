"""``norch.__config__``: how norch was built."""

from .. import __version__
from .._binding.threads import get_num_threads


def show() -> str:
    """A description of the build in a few lines.

    >>> "norch" in norch.__config__.show()
    True
    """
    return f"norch {__version__}, with kernels of its own for all that runs\n{parallel_info()}"


def parallel_info() -> str:
    """The number of threads."""
    return f"threads: {get_num_threads()}\n"
