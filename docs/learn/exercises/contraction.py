"""Exercise of chapter 4: einsum of two operands as one matrix product. Run this file; it tells what is wrong until both
functions are right."""

import norch


def kinds(left, right, out):
    """The labels of "left,right->out" by their role: batch (in all three), rows (in left and out), columns (in right
    and out) and inner (in left and right, summed). Four strings, in the order of left; columns in that of right.
    kinds("bij", "bjk", "bik") is ("b", "i", "k", "j")."""
    raise NotImplementedError("kinds: four comprehensions")


def contract(equation, x, y):
    """norch.einsum(equation, x, y), by permute, reshape and one product `@` of shapes (batch, rows, inner) and (batch,
    inner, columns). Each label stands once in an operand; each one of one operand alone is in the output."""
    raise NotImplementedError("contract: permute both, reshape to three axes, multiply, and undo it for the result")


def check(kinds, contract):
    """Raises an AssertionError that says what is wrong."""
    for labels, wanted in {
        ("bij", "bjk", "bik"): ("b", "i", "k", "j"),
        ("ab", "cb", "ca"): ("", "a", "c", "b"),
    }.items():
        found = kinds(*labels)
        assert tuple(found) == wanted, f"kinds{labels} is {found}, not {wanted}"
    norch.manual_seed(0)
    sizes = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 2}
    for equation in [
        "ab,bc->ac",
        "bac,bcd->bad",
        "ab,cb->ca",
        "abc,dbc->da",
        "abc,abc->b",
        "a,b->ba",
        "dabc,edbc->eadb",
        "ab,ab->",
    ]:
        left, right = equation.split("->")[0].split(",")
        x, y = (norch.randn(*[sizes[label] for label in labels]) for labels in (left, right))
        found, wanted = contract(equation, x, y), norch.einsum(equation, x, y)
        assert found.shape == wanted.shape, f"contract({equation!r}) has the shape {found.shape}, not {wanted.shape}"
        assert norch.allclose(found, wanted, atol=1e-5), f"contract({equation!r}) has other numbers than einsum"


if __name__ == "__main__":
    check(kinds, contract)
    print("solved")
