"""einsum against NumPy and PyTorch on random equations; its plans, its errors."""

from __future__ import annotations

import string
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import examples

import norch
from norch.ops.composed import einsum as lowering
from norch.testing import assert_close, gradcheck, gradgradcheck


@st.composite
def products(draw: Any, operands: int = 4, size: int = 4) -> tuple[str, list[Any]]:
    """An equation and operands that fit it: repeated labels, ellipses, sizes of 0 and 1, any layout."""
    sizes = {letter: draw(st.integers(0 if draw(st.integers(0, 9)) == 0 else 1, size)) for letter in "abCdZ"}
    hidden = draw(st.lists(st.integers(1, 3), max_size=2))
    terms, shapes = [], []
    for _ in range(draw(st.integers(1, operands))):
        labels = draw(st.lists(st.sampled_from(sorted(sizes)), max_size=3))
        shape = [1 if draw(st.integers(0, 5)) == 0 and labels.count(x) == 1 else sizes[x] for x in labels]
        if hidden and draw(st.booleans()):
            at = draw(st.integers(0, len(labels)))
            shown = hidden[draw(st.integers(0, len(hidden))) :]
            shape[at:at] = [1 if draw(st.integers(0, 3)) == 0 else n for n in shown]
            labels[at:at] = ["..."]
        terms.append("".join(labels))
        shapes.append(shape)
    equation = ",".join(terms)
    if draw(st.booleans()):
        used = sorted(set(equation) - set(",."))
        output = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
        if "..." in equation:
            output.insert(draw(st.integers(0, len(output))), "...")
        equation += "->" + "".join(output)
    source = np.random.default_rng(draw(st.integers(0, 99)))
    return equation, [laid_out(source.integers(-3, 4, shape).astype(float), source) for shape in shapes]


def laid_out(array: Any, source: Any) -> Any:
    """The same values with their axes in another order in memory."""
    order = source.permutation(array.ndim)
    return np.array(array.transpose(order), order="C").transpose(np.argsort(order))


@settings(max_examples=examples(100), deadline=None)
@given(products())
def test_like_numpy(problem: tuple[str, list[Any]]) -> None:
    equation, arrays = problem
    wanted = np.einsum(equation, *arrays)
    found = norch.einsum(equation, *[norch.from_numpy(x) for x in arrays])
    assert_close(found, norch.tensor(wanted), rtol=0, atol=0)  # whole numbers: no rounding
    spaced = equation.replace(",", " , ").replace("->", " -> ")
    assert_close(norch.einsum(spaced, [norch.tensor(x) for x in arrays]), norch.tensor(wanted), rtol=0, atol=0)


@settings(max_examples=examples(25), deadline=None)
@given(products(operands=3, size=2))
def test_derivatives(problem: tuple[str, list[Any]]) -> None:
    equation, arrays = problem
    operands = [norch.tensor(x, requires_grad=True) for x in arrays]
    assert gradcheck(partial(norch.einsum, equation), operands)
    if sum(x.numel() for x in operands) < 14:
        assert gradgradcheck(partial(norch.einsum, equation), operands)


@settings(max_examples=examples(100), deadline=None)
@given(products())
def test_sublists(problem: tuple[str, list[Any]]) -> None:
    equation, arrays = problem
    left, arrow, right = equation.partition("->")
    letters = string.ascii_uppercase + string.ascii_lowercase

    def listed(term: str) -> list[Any]:
        return [... if x == "." else letters.index(x) for x in term.replace("...", ".")]

    arguments: list[Any] = []
    for array, term in zip(arrays, left.split(","), strict=True):
        arguments += [norch.tensor(array), listed(term)]
    found = norch.einsum(*arguments, *([listed(right)] if arrow else []))
    assert_close(found, norch.tensor(np.einsum(equation, *arrays)), rtol=0, atol=0)


def test_labels_are_any_iterable() -> None:
    a, b = norch.randn(2, 3), norch.randn(3, 4)
    assert norch.equal(norch.einsum(a, range(2), b, range(1, 3), (x for x in (0, 2))), norch.einsum("ab,bc->ac", a, b))


@pytest.mark.parametrize("count", [6, 9])
def test_many_operands(count: int) -> None:
    letters = string.ascii_letters[: count + 1]
    equation = ",".join(a + b for a, b in zip(letters, letters[1:])) + f"->{letters[-1]}{letters[0]}"
    arrays = [
        np.random.default_rng(k).integers(-2, 3, (2 + k % 3, 2 + (k + 1) % 3)).astype(float) for k in range(count)
    ]
    wanted = np.linalg.multi_dot(arrays).T
    assert_close(norch.einsum(equation, *map(norch.tensor, arrays)), norch.tensor(wanted))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "float32"])
def test_dtypes(dtype: str) -> None:
    to = getattr(norch, dtype)
    a, b = norch.arange(6).view(2, 3).to(to), norch.arange(6).view(3, 2).to(to)
    assert norch.einsum("ij,jk->ik", a, b).dtype is norch.einsum("ij,jk", a, b).dtype is to
    for equation, operands in (("ij->j", [a]), ("ij->j", [a[:1]]), ("ij,kl->jk", [a, b]), ("ij,jk->k", [a, b])):
        assert norch.einsum(equation, *operands).dtype is a.sum(0).dtype


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "bool"])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ab,c->c", ((2, 3), (2,))),
        ("ab,bc->c", ((2, 3), (1, 2))),
        ("a,b,c->a", ((3,), (2,), (1,))),
        ("aa->", ((1, 1),)),
        ("aa->a", ((1, 1),)),
        ("a,->", ((1,), ())),
    ],
)
def test_integers_that_one_operand_adds_up(torch: Any, dtype: str, equation: str, shapes: Any) -> None:
    ours, theirs = (
        m.einsum(equation, *[m.full(shape, 100).to(getattr(m, dtype)) for shape in shapes]) for m in (norch, torch)
    )
    assert (str(ours.dtype).rpartition(".")[2], ours.tolist()) == (str(theirs.dtype)[6:], theirs.tolist())


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3,)])
def test_factors_promote_whatever_their_sizes(torch: Any, shape: tuple[int, ...]) -> None:
    for m in (norch, torch):
        narrow, wide = m.full((2, 3), 0.1), m.full(shape, 0.1, dtype=m.float64)
        found = [m.einsum("...,...->...", narrow, wide), m.einsum("...,...->...", wide, narrow)]
        if shape != (3,):
            found += [m.einsum("...,...->", narrow, wide), m.einsum("ij,...->...", narrow, wide)]
        assert all(x.dtype is m.float64 for x in found), [x.dtype for x in found]
    assert norch.einsum("i,->i", norch.ones(3), 2.0).dtype is norch.float32
    assert norch.einsum("i,,->i", norch.ones(3, dtype=norch.int32), 2.5, norch.tensor(2)).tolist() == [5, 5, 5]


def test_views() -> None:
    x = norch.zeros(3, 3)
    norch.einsum("ii->i", x).fill_(2)
    norch.einsum("ij->ji", x)[0, 1] = 5
    same = norch.einsum("ij", x)
    assert same is not x
    same[0, 2] = 7
    assert x.tolist() == [[2, 0, 7], [5, 2, 0], [0, 0, 2]]


def steps_of(equation: str, *shapes: Any) -> list[str]:
    """The names of the steps of a plan."""
    return [step[0].__name__ for step in lowering._plan_of(equation, shapes)[0]]


def test_the_plans_copy_little() -> None:
    assert steps_of("ij,jk->ik", (2, 3), (3, 4)) == ["product"]
    assert steps_of("ji,kj->ik", (3, 2), (4, 3)) == ["product"]
    assert steps_of("bij,bjk->bik", (2, 3, 4), (2, 4, 5)) == ["product"]
    assert steps_of("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)) == ["product"]
    assert steps_of("bqhd,bkhd->bhqk", (2, 4, 3, 5), (2, 6, 3, 5)) == ["permute", "permute", "product"]
    assert steps_of("i,j->ij", (2,), (3,)) == ["reshape", "mul"]
    assert steps_of("ij,j", (2, 3), (3,)) == ["product"]
    assert steps_of("akb,kn->abn", (7, 5, 40), (5, 9)) == ["product"]  # a batch of 7, no copy
    assert steps_of("ij,kl->", (2, 3), (4, 5)) == ["sum", "sum", "mul"]


def pairs_of(equation: str, *shapes: Any) -> list[tuple[int, int]]:
    """The operands of each product of a plan; a product takes the place of its first operand."""
    return [(i, j) for _, i, j, _ in lowering._plan_of(equation, shapes)[0] if j >= 0]


def test_the_order_by_cost() -> None:
    """A vector behind matrices is multiplied from the right; the middle pair first where that is cheapest."""
    assert pairs_of("ab,bc,cd,de->ae", *[(100, 100)] * 3, (100, 1)) == [(2, 3), (1, 2), (0, 1)]
    assert pairs_of("ab,bc,cd->ad", (9, 50), (50, 2), (2, 50)) == [(0, 1), (0, 2)]
    assert len(pairs_of("ab,bc,cd,de,ef,fg,gh,hi->ai", *[(3, 3)] * 8)) == 7


BAD: Any = [
    (("ij,jk", (2, 3)), r"einsum\('ij,jk'\): the equation has 2 operands, but 1 were given"),
    (("ij", (2, 3), (2,)), "1 operands, but 2"),
    (("ij,jk", (2, 3), (4, 5)), r"label 'j' has size 3 in operand 0 and size 4 in operand 1"),
    (("ii", (2, 3)), r"label 'i' has sizes 2 and 3 in operand 0"),
    (("ii->i", (1, 3)), r"label 'i' has sizes 1 and 3 in operand 0"),
    (("...i,...i", (2, 3), (4, 3)), r"dimension -1 of the ellipsis has size 2 in operand 0 and size 4 in operand 1"),
    (("ijk", (2, 3)), r"operand 0 has shape \(2, 3\), but 3 dimensions are labelled 'ijk'"),
    (("i", (2, 3)), r"operand 0 has shape \(2, 3\), but 1 dimensions"),
    (("i,ij...", (2,), (2,)), r"operand 1 has shape \(2,\), but at least 2 dimensions"),
    (("ij->ik", (2, 3)), r"label 'k' of the output appears in no operand"),
    (("ij->ii", (2, 3)), r"label 'i' appears more than once in the output"),
    (("i1", (2, 3)), r"operand 0 is 'i1'; labels are letters"),
    (("i..j", (2, 3)), r"operand 0 is 'i..j'"),
    (("i......j", (2, 3)), r"at most one \.\.\."),
    (("ij->i->j", (2, 3)), r"the output is 'i->j'"),
    (("ij",), "at least one operand"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[str(one[0]) for one in BAD])
def test_errors(arguments: Any, message: str) -> None:
    equation, *shapes = arguments
    with pytest.raises(norch.Error, match=message):
        norch.einsum(equation, *[norch.zeros(shape) for shape in shapes])


def test_errors_of_dtypes_and_arguments() -> None:
    x = norch.zeros(2, 2)
    with pytest.raises(norch.DTypeError, match=r"einsum\('ij,jk'\): .*float32 and float64"):
        norch.einsum("ij,jk", x, x.double())
    with pytest.raises(norch.DTypeError, match=r"einsum\('ij,jk'\): .*bool"):
        norch.einsum("ij,jk", x > 0, x > 0)
    with pytest.raises(TypeError, match="einsum: expected a tensor or a number, not str"):
        norch.einsum("ij,jk", x, "x")
    with pytest.raises(TypeError, match="list of labels"):
        norch.einsum(x, x)
    with pytest.raises(norch.ArgumentError, match="from 0 to 51, not 52"):
        norch.einsum(x, [0, 52])
    with pytest.raises(norch.Error, match="17 dimensions; at most 16"):
        norch.einsum("abcdefghi,jklmnopq", norch.ones((1,) * 9), norch.ones((1,) * 8))


@pytest.mark.parametrize("count", range(1, 6))
def test_like_torch(torch: Any, count: int) -> None:
    """Where NumPy and PyTorch differ: an ellipsis that the output lacks is summed."""
    source = np.random.default_rng(count)
    arrays = [source.normal(size=(2, 3)) for _ in range(count)]
    equation = ",".join(["...i"] * count) + "->i"
    wanted = torch.einsum(equation, *map(torch.from_numpy, arrays)).numpy()
    assert_close(norch.einsum(equation, *map(norch.tensor, arrays)), norch.tensor(wanted))


def test_complex_elements_of_one_operand_are_added_up():
    x = norch.tensor([[1 + 2j, 3.0], [4j, 5.0]])
    assert norch.einsum("ij->i", x).tolist() == [4 + 2j, 5 + 4j]
    assert norch.einsum("ij,k->i", x, norch.ones(2)).tolist() == [8 + 4j, 10 + 8j]
