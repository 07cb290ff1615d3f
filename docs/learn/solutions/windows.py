"""A solution of exercises/windows.py."""


def windows(x, width):
    (step,) = x.stride()
    return x.as_strided(
        (len(x) - width + 1, width), (step, step), x.storage_offset()
    )


def blocks(image, size):
    down, right = image.stride()
    rows, columns = image.shape
    shape = (rows // size, columns // size, size, size)
    return image.as_strided(
        shape, (size * down, size * right, down, right), image.storage_offset()
    )


if __name__ == "__main__":
    import _check

    _check.run(globals())
