"""Exercise of chapter 2: find the index of a view, and the positions where a
mask is true. Run this file: it says what is wrong until both functions are
right."""

import norch


def first_index(view, base):
    """The index of the first element of a view in its contiguous base, as a
    tuple of integers: first_index(x[2, 1:], x) is (2, 1). Both have the method
    storage_offset()."""
    raise NotImplementedError(
        "first_index: divide by the strides of base, one after another"
    )


def positions(mask):
    """The indices of all elements of a mask that are true: a matrix with one
    row for each, in order of memory. The mask has any number of dimensions.
    norch.nonzero(mask) gives the same; do not call it."""
    raise NotImplementedError(
        "positions: flatten the mask, number its elements, unflatten"
    )


def check(first_index, positions):
    """Raises an AssertionError that says what is wrong."""
    x = norch.arange(60).reshape(3, 4, 5)
    for name, index in {
        "x[2]": 2,
        "x[1:, 3, 2:]": (slice(1, None), 3, slice(2, None)),
        "x[..., 4]": (..., 4),
    }.items():
        found, wanted = (
            first_index(x[index], x),
            norch.nonzero(x == x[index].flatten()[0])[0].tolist(),
        )
        assert list(found) == wanted, (
            f"the first element of {name} is x{wanted}, not x{list(found)}"
        )
    for mask in (
        x % 7 == 0,
        x[0, 0] > 2,
        x < 0,
        norch.ones(2, 2, 2, dtype=norch.bool),
    ):
        found, wanted = positions(mask), norch.nonzero(mask)
        assert found.shape == wanted.shape, (
            f"positions gives the shape {found.shape}, not {wanted.shape}"
        )
        assert norch.equal(found, wanted), (
            f"positions({mask.tolist()}) is {found.tolist()}, not {wanted.tolist()}"
        )


if __name__ == "__main__":
    check(first_index, positions)
    print("solved")
