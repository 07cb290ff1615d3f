"""Exercise of chapter 8: two passes over a list of calls, which are (operation,
inputs, output). Run this file: it says what is wrong until both are right."""


def drop_dead(calls, results):
    """The calls that are needed for results, a list of buffers, in their order.
    Each buffer is written once."""
    raise NotImplementedError("drop_dead: walk from the last call to the first")


def share_common(calls, results):
    """(calls, results) without calls that repeat an earlier one: the same
    operation on the same inputs. Calls that read the later output read the
    earlier one instead. Results are renamed as well."""
    raise NotImplementedError(
        "share_common: a dict of computed calls, and one of new names"
    )


def check(drop_dead, share_common):
    """Raises an AssertionError that says what is wrong."""
    add, mul, tanh = "add", "mul", "tanh"
    calls = [
        (mul, (0, 0), 2),
        (add, (0, 1), 3),
        (tanh, (3,), 4),
        (add, (2, 1), 5),
        (tanh, (2,), 6),
        (mul, (5, 2), 7),
    ]
    for results, kept in {
        (7,): [0, 3, 5],
        (4,): [1, 2],
        (4, 6): [0, 1, 2, 4],
        (): [],
        (0,): [],
    }.items():
        found, wanted = (
            drop_dead(calls, list(results)),
            [calls[at] for at in kept],
        )
        assert found == wanted, (
            f"drop_dead for the results {list(results)} keeps {found}, not {wanted}"
        )
    again = [
        (mul, (0, 1), 2),
        (mul, (0, 1), 3),
        (add, (2, 0), 4),
        (add, (3, 0), 5),
        (mul, (4, 5), 6),
        (mul, (1, 0), 7),
    ]
    found, results = share_common(again, [6, 5, 7])
    wanted = [
        (mul, (0, 1), 2),
        (add, (2, 0), 4),
        (mul, (4, 4), 6),
        (mul, (1, 0), 7),
    ]
    assert found == wanted, f"share_common gives {found}, not {wanted}"
    assert list(results) == [6, 4, 7], (
        f"share_common renames the results to {results}, not to [6, 4, 7]"
    )


if __name__ == "__main__":
    check(drop_dead, share_common)
    print("solved")
