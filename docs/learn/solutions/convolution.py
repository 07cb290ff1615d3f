"""A solution of exercises/convolution.py."""

import norch


def windows(images, size):
    n, c, rows, columns = images.shape
    shape = (n, c, rows - size + 1, columns - size + 1, size, size)
    return images.as_strided(shape, (*images.stride(), *images.stride()[2:]))


def conv2d(images, weight):
    return norch.einsum(
        "ncijpq,kcpq->nkij", windows(images, weight.shape[-1]), weight
    )


def max_pool2d(images, size):
    return windows(images, size)[:, :, ::size, ::size].amax((-2, -1))


if __name__ == "__main__":
    import _check

    _check.run(globals())
