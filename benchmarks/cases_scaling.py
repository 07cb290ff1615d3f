"""Three operations at growing sizes, for scaling.py: does their cost grow as it should?"""

from __future__ import annotations

from .cases_elementwise import binary
from .cases_matmul import product
from .library import Case, Library, Run, Setup, same


def _sum(size: int) -> Setup:
    def setup(lib: Library) -> Run:
        x = lib.random(size, low=-1.0, high=2.0)
        return lambda: x.sum()

    return setup


def _add(size: int) -> Setup:
    return lambda lib: binary(lambda a, b: a + b)(lib, (1, size))


def _case(operation: str, size: int) -> tuple[int, Case]:
    setup = product(size, size, size) if operation == "matmul" else {"add": _add, "sum": _sum}[operation](size)
    return size, same("scaling", f"{operation}, {size:,}", setup)


_COUNTS = [start * 10**power for power in range(8) for start in (1, 3)] + [10**8]
_SIDES = [1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096]

# By operation: number of elements, or rows of a square matrix, and the case.
SCALING = {
    "add": [_case("add", count) for count in _COUNTS],
    "sum": [_case("sum", count) for count in _COUNTS],
    "matmul": [_case("matmul", side) for side in _SIDES],
}
