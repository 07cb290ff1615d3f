"""What an operation of several calls gives when another thread sets .data of one of its tensors meanwhile: the result
or the exception of the tensor as it was, or as it is then. The other thread is a trace function, which comes between
two bytecodes, so that a failure can be repeated."""

from __future__ import annotations

import os
import random
import re
import sys
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from case import Case, as_tensor, draw, source
from cases import CASES

import norch
from norch._lib import lib

pytestmark = pytest.mark.host

HOME = os.path.dirname(norch.__file__) + os.sep
MOMENTS = 8  # of each case, shape and input
# docs/reliability.md: views, products that check their sizes before they call the library, and a few others.
SEES_BOTH = re.compile(
    r"broadcast_tensors|\w*split|unbind|chunk|narrow|unflatten|(move|swap)(dim|axis|axes)|diagonal$|meshgrid"
    r"|adjoint|m?[TH]$|t$|cartesian_prod|einsum|\w*(mm|mv)$|v?dot$|matmul|scatter_reduce|index_fill|masked_scatter"
    r"|mean_square"
)


def parts(result: Any) -> list[Any]:
    return [p for each in result for p in parts(each)] if isinstance(result, (tuple, list)) else [result]


def outcome(compute: Callable[[], Any]) -> Any:
    norch.manual_seed(0)
    try:
        found = parts(compute())
    except Exception as error:
        return type(error), str(error)
    return [(p.dtype, tuple(p.shape), repr(p.tolist())) if isinstance(p, norch.Tensor) else repr(p) for p in found]


class At:
    """Calls act before the given bytecode of norch's that runs, and counts them."""

    def __init__(self, number: int, act: Callable[[], Any]):
        self.number, self.act, self.count = number, act, 0

    def trace(self, frame: Any, event: str, _: Any) -> Any:
        if event == "call":
            if not frame.f_code.co_filename.startswith(HOME):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            if self.count == self.number:
                self.act()
            self.count += 1
        return self.trace

    def run(self, compute: Callable[[], Any]) -> Any:
        before = sys.gettrace()
        sys.settrace(self.trace)
        try:
            return compute()
        finally:
            sys.settrace(before)


CHOSEN = {case.row or case.name: case for case in reversed(CASES)}


@pytest.mark.parametrize("case", [case for name, case in CHOSEN.items() if not SEES_BOTH.match(name)], ids=str)
def test_an_operation_reads_each_tensor_once(case: Case) -> None:
    dtype = next(name for name in ("float32", "int64", *case.dtypes) if name in case.dtypes)
    shapes, pick = case.shapes[0], random.Random(zlib.crc32(case.name.encode()))
    rng = source(case.name)
    given = [as_tensor(array, dtype) for array in draw(case, shapes, dtype, rng)]
    for i, shape in enumerate(shapes):
        for other in (tuple(size + 1 for size in shape), shape[1:]):
            try:
                new = as_tensor(draw(case, [*shapes[:i], other, *shapes[i + 1 :]], dtype, rng)[i], dtype)
            except (ValueError, IndexError):
                continue  # no such input of this case

            def called(x: Any, i: int = i) -> Any:
                return case.call(norch, *given[:i], x, *given[i + 1 :])

            legal = [outcome(lambda: called(given[i].clone())), outcome(lambda: called(new.clone()))]  # noqa: B023
            bytecodes = At(-1, lambda: None)
            outcome(lambda: bytecodes.run(lambda: called(given[i])))  # noqa: B023
            for _ in range(MOMENTS):
                x = given[i].clone()
                at = At(pick.randrange(max(bytecodes.count, 1)), lambda: lib.norch_set_data(x, new))  # noqa: B023
                assert outcome(lambda: at.run(lambda: called(x))) in legal, (i, other, at.number)  # noqa: B023
