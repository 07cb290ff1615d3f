"""Exercise of chapter 5: a function in C, and its description to ctypes. Run
this file: it says what is wrong until both are right."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import norch


def source():
    """The text of a C file with the function

        double total(const double *data, int64_t rows, int64_t columns,
                     int64_t down, int64_t right);

    the sum of a matrix whose element (i, j) is data[i * down + j * right]."""
    raise NotImplementedError("source: begin with #include <stdint.h>")


def describe(library):
    """Tells ctypes the types of the arguments and of the result of
    library.total."""
    raise NotImplementedError(
        "describe: set argtypes and restype; an address is a ctypes.c_void_p"
    )


def check(source, describe):
    """Raises an AssertionError that says what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        text, out = Path(folder, "total.c"), Path(folder, "total.so")
        text.write_text(source())
        made = subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", "-o", out, text],
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, "source: the compiler says\n" + made.stderr
        library = ctypes.CDLL(str(out))
        describe(library)
        x = norch.arange(12, dtype=norch.float64).reshape(3, 4)
        matrices = {
            "x": x,
            "x.T": x.T,
            "x[::-1, ::2]": x[::-1, ::2],
            "x[:1].expand(5, 4)": x[:1].expand(5, 4),
        }
        for name, matrix in matrices.items():
            found = library.total(
                matrix.data_ptr(), *matrix.shape, *matrix.stride()
            )
            wanted = matrix.sum().item()
            assert found == wanted, (
                f"the total of {name}, {matrix.tolist()}, is {found}, not {wanted}"
            )


if __name__ == "__main__":
    check(source, describe)
    print("solved")
