"""How many threads the library may use."""

from ._lib import int64, lib


def get_num_threads() -> int:
    """The number of threads that long operations share: NORCH_NUM_THREADS, or the number of cores."""
    return lib.norch_num_threads()


def set_num_threads(count: int) -> None:
    """Sets that number, 1 to 256, the calling thread included. Results do not depend on it."""
    lib.norch_set_num_threads(int64(count, "count"))
