"""The number of threads of the library."""

from .library import lib
from .numbers import int64


def get_num_threads() -> int:
    """The number of threads that long operations share: NORCH_NUM_THREADS, or the cores that this process may use."""
    return lib.norch_num_threads()


def set_num_threads(count: int) -> None:
    """Sets the number of threads, 1 to 256, with the calling one. Results do not depend on it."""
    lib.norch_set_num_threads(int64(count, "count"))
