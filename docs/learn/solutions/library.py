"""A solution of exercises/library.py."""

import ctypes


def source():
    return """
#include <stdint.h>

double total(const double *data, int64_t rows, int64_t columns, int64_t down, int64_t right) {
    double sum = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) sum += data[i * down + j * right];
    return sum;
}
"""


def describe(library):
    library.total.argtypes = [ctypes.c_void_p] + [ctypes.c_int64] * 4
    library.total.restype = ctypes.c_double


if __name__ == "__main__":
    import _check

    _check.run(globals())
