"""Exercise of chapter 1: two views by `as_strided`. Run this file: it says what
is wrong until both are right."""

import norch


def windows(x, width):
    """All windows of `width` neighbours of a vector, as the rows of a matrix,
    without a copy: of shape (len(x) - width + 1, width). windows(tensor([1, 2,
    3, 4]), 2) is [[1, 2], [2, 3], [3, 4]]."""
    raise NotImplementedError(
        "windows: which strides lead to the next window and element?"
    )


def blocks(image, size):
    """An image cut into blocks of size x size, without a copy: blocks(image,
    size)[i, j] is block j of the i-th row of blocks. The sides of the image are
    multiples of size."""
    raise NotImplementedError(
        "blocks: four strides, of which you know two already"
    )


def check(windows, blocks):
    """Raises an AssertionError that says what is wrong."""
    for n, width in [(4, 2), (7, 3), (5, 5), (6, 1)]:
        x = norch.arange(2 * n + 3)[
            3::2
        ]  # a vector whose stride is 2, and whose offset is 3
        out = windows(x, width)
        wanted = [
            [3 + 2 * (i + j) for j in range(width)]
            for i in range(n - width + 1)
        ]
        assert out.tolist() == wanted, (
            f"windows({x.tolist()}, {width}) is {out.tolist()}, not {wanted}"
        )
        assert out.data_ptr() == x.data_ptr(), (
            "windows copied the numbers: a view was asked for"
        )
    for rows, columns, size in [(4, 6, 2), (3, 3, 3), (6, 3, 3)]:
        for image in (
            norch.arange(5 + rows * columns)[5:].reshape(rows, columns),
            norch.arange(rows * columns).reshape(columns, rows).T,
        ):
            out = blocks(image, size)
            for i in range(rows // size):
                for j in range(columns // size):
                    wanted = image[
                        i * size : (i + 1) * size, j * size : (j + 1) * size
                    ].tolist()
                    found = out[i, j].tolist()
                    assert found == wanted, (
                        f"block ({i}, {j}) of {image.tolist()} is {found}, not {wanted}"
                    )
            assert out.data_ptr() == image.data_ptr(), (
                "blocks copied the numbers: a view was asked for"
            )


if __name__ == "__main__":
    check(windows, blocks)
    print("solved")
