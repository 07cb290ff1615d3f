"""A solution of exercises/product.py."""


def tiled(a, b, c, n):
    for top in range(0, n, 4):
        for left in range(0, n, 16):
            sums = [0] * 64
            for k in range(n):
                row = [b[k, left + j] for j in range(16)]
                for i in range(4):
                    number = a[top + i, k]
                    for j in range(16):
                        sums[16 * i + j] += number * row[j]
            for i in range(4):
                for j in range(16):
                    c[top + i, left + j] = sums[16 * i + j]


def pack(b, rows, columns, width):
    panels = []
    for left in range(0, columns, width):
        panel = []
        for i in range(rows):
            row = b[
                i * columns + left : i * columns + min(left + width, columns)
            ]
            panel += row + [0] * (width - len(row))
        panels.append(panel)
    return panels


if __name__ == "__main__":
    import _check

    _check.run(globals())
