"""The number of threads of the library."""

from .library import lib
from .numbers import int64


def get_num_threads() -> int:
    """The number of threads that long operations share: NORCH_NUM_THREADS, or the cores that this process may use.

    >>> norch.get_num_threads() >= 1
    True
    """
    return lib.norch_num_threads()


def set_num_threads(count: int) -> None:
    """Sets the number of threads, 1 to 256, with the calling one. Results do not depend on it.

    >>> before = norch.get_num_threads()
    >>> norch.set_num_threads(1)
    >>> norch.get_num_threads()
    1
    >>> norch.set_num_threads(before)
    """
    lib.norch_set_num_threads(int64(count, "count"))
