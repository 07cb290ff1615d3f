"""einsum: products that need an order of contraction, a layout, or neither; NumPy optimises its order too."""

from __future__ import annotations

from .library import Library, Run, Setup, same


def contraction(equation: str, *shapes: tuple[int, ...]) -> Setup:
    def setup(lib: Library) -> Run:
        operands = [lib.random(*shape) for shape in shapes]
        options = {"optimize": True} if lib.name == "numpy" else {}
        return lambda: lib.module.einsum(equation, *operands, **options)

    return setup


# name: the equation, and the shapes of its operands
EQUATIONS = {
    "attention, scores": ("bhid,bhjd->bhij", (4, 8, 128, 32), (4, 8, 128, 32)),
    "attention, scores of (B, T, H, D)": ("bihd,bjhd->bhij", (4, 128, 8, 32), (4, 128, 8, 32)),
    "attention, values to (B, T, H, D)": ("bhij,bjhd->bihd", (4, 8, 128, 128), (4, 128, 8, 32)),
    "batched product": ("bij,bjk->bik", (16, 64, 64), (16, 64, 64)),
    "projection to heads": ("btd,hdk->bhtk", (8, 64, 128), (4, 128, 32)),
    "small product": ("ij,jk->ik", (8, 8), (8, 8)),
    "chain, right to left": ("ij,jk,k->i", (200, 200), (200, 200), (200,)),
    "chain of three": ("ij,jk,kl->il", (10, 400), (400, 400), (400, 10)),
    "four operands": ("abc,ai,bj,ck->ijk", (24, 24, 24), (24, 8), (24, 8), (24, 8)),
    "outer product": ("i,j->ij", (500,), (500,)),
    "product of elements": ("ij,ij->ij", (300, 300), (300, 300)),
    "trace of a product": ("ij,ji->", (300, 300), (300, 300)),
}

CASES = [same("einsum", name, contraction(equation, *shapes)) for name, (equation, *shapes) in EQUATIONS.items()]
