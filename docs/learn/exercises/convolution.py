"""Exercise of chapter 9: convolution and pooling from windows. Run this file;
it says what is wrong until all three are right."""

import norch


def windows(images, size):
    """Images (N, C, H, W) as (N, C, H - size + 1, W - size + 1, size, size),
    without a copy: [n, c, i, j] is the square of size x size pixels whose upper
    left corner is pixel (i, j) of channel c of image n."""
    raise NotImplementedError("windows: the strides of H and W serve twice")


def conv2d(images, weight):
    """Images (N, C, H, W) and weights (K, C, size, size) to (N, K, H - size +
    1, W - size + 1): element [n, k, i, j] is the sum of the window at (i, j),
    times weight k. norch.nn.functional.conv2d() without itself."""
    raise NotImplementedError(
        "conv2d: one einsum of the windows and the weights"
    )


def max_pool2d(images, size):
    """Images (N, C, H, W) to (N, C, H / size, W / size): the largest pixel of
    each square of size x size. The squares do not overlap; H and W are
    multiples of size."""
    raise NotImplementedError("max_pool2d: the windows at every size-th place")


def check(windows, conv2d, max_pool2d):
    """Raises an AssertionError that says what is wrong."""
    functional = norch.nn.functional
    norch.manual_seed(0)
    for shape, size in [
        ((2, 3, 5, 6), 3),
        ((1, 1, 4, 4), 2),
        ((2, 2, 3, 3), 1),
    ]:
        images = norch.randn(*shape)
        for x in (images, images.transpose(2, 3), norch.randn(3, *shape)[1]):
            found = windows(x, size)
            n, c, rows, columns = (
                *x.shape[:2],
                x.shape[2] - size + 1,
                x.shape[3] - size + 1,
            )
            wanted = (n, c, rows, columns, size, size)
            assert tuple(found.shape) == wanted, (
                f"windows: the shape is {tuple(found.shape)}, not {wanted}"
            )
            assert found.data_ptr() == x.data_ptr(), (
                "windows copied the numbers: a view was asked for"
            )
            for i in range(rows):
                for j in range(columns):
                    square = x[:, :, i : i + size, j : j + size]
                    assert norch.equal(found[:, :, i, j], square), (
                        f"windows: [..., {i}, {j}] is another square"
                    )
            weight = norch.randn(4, c, size, size)
            found, right = conv2d(x, weight), functional.conv2d(x, weight)
            assert found.shape == right.shape, (
                f"conv2d: the shape is {tuple(found.shape)}, not {tuple(right.shape)}"
            )
            assert norch.allclose(found, right, atol=1e-4), (
                "conv2d: other numbers than norch.nn.functional.conv2d"
            )
    for size in (1, 2, 3):
        x = norch.randn(2, 3, 6, 12)
        found, right = max_pool2d(x, size), functional.max_pool2d(x, size)
        assert found.shape == right.shape, (
            f"max_pool2d: the shape is {tuple(found.shape)}, not {tuple(right.shape)}"
        )
        assert norch.equal(found, right), (
            "max_pool2d: other numbers than norch.nn.functional.max_pool2d"
        )


if __name__ == "__main__":
    check(windows, conv2d, max_pool2d)
    print("solved")
