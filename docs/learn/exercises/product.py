"""Exercise of chapter 6: a product by tiles, and packing. Run this file; it
says what is wrong until both are right."""


class Matrix:
    """n x n numbers, row after row. x[i, j] reads and writes; the cache counts
    lines of 16 numbers."""

    def __init__(self, numbers, n, cache):
        self.numbers, self.n, self.cache = numbers, n, cache

    def __getitem__(self, place):
        i, j = place
        self.cache.touch(id(self), i * self.n + j)
        return self.numbers[i * self.n + j]

    def __setitem__(self, place, value):
        i, j = place
        self.cache.touch(id(self), i * self.n + j)
        self.numbers[i * self.n + j] = value


class Cache:
    """Keeps the lines that were used last."""

    def __init__(self, size):
        self.size, self.lines, self.loads = size, {}, 0

    def touch(self, matrix, at):
        line = matrix, at // 16
        if line in self.lines:
            del self.lines[line]
        else:
            self.loads += 1
            if len(self.lines) == self.size:
                del self.lines[next(iter(self.lines))]
        self.lines[line] = None


def tiled(a, b, c, n):
    """c = a @ b, of matrices n x n, by tiles of 4 rows and 16 columns, whose 64
    sums are a list: of a list nothing is counted, as it stands for the
    registers. n is a multiple of 16. Each sum is added up from k = 0 to n -
    1."""
    raise NotImplementedError(
        "tiled: 64 sums, the loop over k, then write c once"
    )


def pack(b, rows, columns, width):
    """The panels of a matrix (a list of rows * columns numbers, row after row)
    as a list of lists: panel p has columns p * width to p * width + width - 1,
    row after row, and zeros where the matrix has no more columns."""
    raise NotImplementedError("pack: a panel has rows * width numbers")


def check(tiled, pack):
    """Raises an AssertionError that says what is wrong."""
    for n in (16, 48):
        cache = Cache(32)
        a = Matrix([(7 * i) % 11 - 5 for i in range(n * n)], n, cache)
        b = Matrix([(5 * i) % 13 - 6 for i in range(n * n)], n, cache)
        c = Matrix([None] * (n * n), n, cache)
        tiled(a, b, c, n)
        wanted = [
            sum(a.numbers[i * n + k] * b.numbers[k * n + j] for k in range(n))
            for i in range(n)
            for j in range(n)
        ]
        assert c.numbers == wanted, (
            f"tiled: the first row is {c.numbers[:n]}, not {wanted[:n]}"
        )
        least = n // 4 * (n // 16) * (n + 4 * (n // 16) + 4)
        assert cache.loads <= least, (
            f"tiled: {cache.loads} lines were loaded for n = {n}, where {least} will do"
        )
    for rows, columns, width in [(2, 4, 2), (3, 5, 2), (1, 7, 4), (4, 3, 8)]:
        b = list(range(1, rows * columns + 1))
        found = pack(b, rows, columns, width)
        wanted = [
            [
                b[i * columns + j] if j < columns else 0
                for i in range(rows)
                for j in range(first, first + width)
            ]
            for first in range(0, columns, width)
        ]
        assert [list(panel) for panel in found] == wanted, (
            f"pack({b}, {rows}, {columns}, {width}) is {found}, not {wanted}"
        )


if __name__ == "__main__":
    check(tiled, pack)
    print("solved")
