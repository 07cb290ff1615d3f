"""Autocast: the dtypes of operations are PyTorch's, on the CPU as PyTorch computes them, on CUDA by its list."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from expressions import ARRAYS, EXPRESSIONS

import norch
from norch.ops import _autocast
from norch.ops.op import METHODS


def _declared() -> set[Any]:
    """The functions that have a policy."""
    for name in ("nn.recurrent", "nn.extras.ctc_loss", "nn.extras.grid_sample", "linalg", "fft", "ops.composed.einsum"):
        import_module(f"norch.{name}")
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "norch"]
    things = [thing for module in modules for thing in vars(module).values()]
    things += [getattr(norch.Tensor, name) for name in METHODS]
    return {one for one in things if isinstance(one, FunctionType) and hasattr(one, "autocast")}


def _evaluated(t: Any, call: str, dtype: str, device_type: str = "cpu", to: Any = None) -> Any:
    """The dtype of a call's result in autocast, or "refused"."""
    names: dict[str, Any] = {"t": t, "F": t.nn.functional, "i": t.tensor([0, 1, 2, 3])}
    for name, array in ARRAYS.items():
        kind = {"one": "float32", "half": "bfloat16"}.get(name, dtype)
        names[name] = t.tensor(array).to(getattr(t, kind))
    with t.autocast(device_type, dtype=None if to is None else getattr(t, to)):
        try:
            return str(eval(call, names).dtype).rpartition(".")[2]
        except (RuntimeError, TypeError, NotImplementedError) as error:
            return f"refused: {error}"


# Where norch is asked for what PyTorch refuses: its dtypes are its own.
@pytest.mark.parametrize("to", ["bfloat16", "float16"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_dtypes_are_those_of_pytorch(torch: Any, dtype: str, to: str) -> None:
    wrong = []
    for call in EXPRESSIONS:
        wanted = _evaluated(torch, call, dtype, to=to)
        found = _evaluated(norch, call, dtype, to=to)
        if not wanted.startswith("refused") and found != wanted:
            wrong.append(f"{call}: {found}, PyTorch {wanted}")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", ["prod", "quantile", "nanquantile", "trace", "matmul", "mm", "inverse", "cholesky"])
def test_functions_and_methods_are_cast_alike(name: str) -> None:
    """Under each of the names that a function has: what takes out= is another function than the method."""
    spd = norch.tensor(ARRAYS["spd"]).bfloat16()
    arguments = {"quantile": (0.5,), "nanquantile": (0.5,), "matmul": (spd.float(),), "mm": (spd.float(),)}.get(
        name, ()
    )
    linalg = getattr(norch.linalg, {"inverse": "inv"}.get(name, name), None)
    with norch.autocast("cpu"):
        for function in (getattr(norch, name), getattr(norch.Tensor, name), linalg):
            if function is not None:
                found = function(spd, *arguments)
                assert found.dtype is (norch.bfloat16 if name in ("matmul", "mm") else norch.float32)


_CALLS_THAT_WRITE = """
t.matmul(x, y, out=o); t.mm(x, y, out=o); t.matmul(b, v, out=o); t.bmm(b, b, out=o); t.addmm(v, x, y, out=o)
t.baddbmm(x, b, b, out=o); t.linalg.vecdot(x, y, out=o); t.mv(x, v, out=o); t.dot(v, v, out=o)
t.prod(x, 0, out=o); t.prod(half, 0, out=o); t.quantile(x, 0.5, out=o); t.quantile(half, 0.5, out=o)
t.cat([one, half], out=o); t.stack([one, half], out=o); t.inverse(spd, out=o); t.linalg.inv(spd, out=o)
t.inverse(half, out=o); t.linalg.solve(spd, x, out=o); t.mm(one, half, out=o); t.fft.fft(x, out=o.cfloat())
x.clone().addmm_(x, y); x.clone().addmm_(x, y, beta=0.5, alpha=3); b.clone().baddbmm_(b, b); x.clone().addbmm_(b, b)
v.clone().addmv_(x, v); x.clone().addr_(v, v); x.clone().addmm_(half, half); half.clone().addmm_(x, y)
"""
WRITING = [call.strip() for line in _CALLS_THAT_WRITE.strip().splitlines() for call in line.split(";")]


@pytest.mark.parametrize("call", WRITING)
def test_calls_in_place_and_with_out_are_not_cast(torch: Any, call: str) -> None:
    results = []
    for t in (torch, norch):
        names = {name: t.tensor(array).to(t.float32) for name, array in ARRAYS.items()}
        names |= {"t": t, "o": t.empty(0), "half": t.tensor(ARRAYS["half"]).to(t.bfloat16)}
        with t.autocast("cpu", dtype=t.bfloat16):
            try:
                results.append(eval(call, names).numpy())
            except (RuntimeError, TypeError):
                results.append(None)
            assert (names["x"] @ names["y"]).dtype is t.bfloat16
    theirs, ours = results
    if theirs is None:
        assert ours is None
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


IN_PLACE = [name for name in vars(norch.Tensor) if name.endswith("_") and not name.endswith("__")]


def _calls_in_place(dtype: Any) -> list[tuple[str, Any]]:
    """(name, a call without arguments) of each in-place method, for one of these lists of arguments that it takes."""
    m, i = norch.tensor([[4.0, 1.0], [1.0, 3.0]]).to(dtype), norch.tensor([[0, 1], [1, 0]])
    b, v, index = norch.stack([m, m]), m[0], i[0]
    choices = [(), (0.5,), (m,), (v,), (m, m), (m, v), (v, v), (b, b), (0,), (0, 1), (2.0, 0, 1.0), (0, index, m)]
    choices += [(0, index, 0.5), (0, i, m), (0, i, m, "sum"), ((index,), v), (m > 1, 0.5)]
    found = []
    for name in IN_PLACE:
        for x, arguments in product((m, v, b), choices):
            with suppress(RuntimeError, TypeError, ValueError, IndexError, AttributeError):
                getattr(x.clone(), name)(*arguments)
                found.append((name, partial(getattr(x.clone(), name), *arguments)))
                break
    return found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("device", [0, 1])
def test_no_step_of_a_call_in_place_is_cast(device: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all in-place methods, by the policies for the CPU, and by those for CUDA."""
    named = "addmm_ addbmm_ baddbmm_ addmv_ addr_ addcdiv_ addcmul_ cumprod_ cumsum_ renorm_ scatter_reduce_"
    calls, casts = _calls_in_place(getattr(norch, dtype)), []
    assert {name for name, _ in calls} >= {*named.split(), "exp_", "pow_", "index_copy_", "index_put_"}
    for function in _declared():
        policy = function.autocast[device]
        monkeypatch.setattr(function, "autocast", (policy, policy))
        monkeypatch.setattr(function, "casts", _autocast.casts_of(policy))
    monkeypatch.setattr(_autocast, "cast", lambda x, to: casts.append(name) or x)
    with norch.autocast("cpu"):
        for name, call in calls:  # noqa: B007  (read by the function above)
            call()
    assert not casts


# ---- CUDA's list ----------------------------------------------------------------------------------------------------

# Operations of PyTorch's list that go by another name here, or are not here.
RENAMED = {
    "matmul": "product", "linalg_vecdot": "vecdot",
    "linalg_multi_dot": "multi_dot", "linalg_vector_norm": "vector_norm", "linalg_matrix_norm": "matrix_norm",
    "lstm_cell": "_lstm", "gru_cell": "_gru", "rnn_tanh_cell": "_tanh", "rnn_relu_cell": "_relu",
    "upsample_nearest1d": "interpolate", "upsample_bilinear2d": "interpolate", "grid_sampler": "grid_sample",
    "frobenius_norm": "norm", "nuclear_norm": "norm",
}  # fmt: skip
ABSENT = """
_convolution convolution conv_tbc _thnn_fused_lstm_cell _thnn_fused_gru_cell _scaled_dot_product_flash_attention
native_layer_norm nll_loss2d _upsample_nearest_exact1d upsample_nearest2d
_upsample_nearest_exact2d upsample_nearest3d _upsample_nearest_exact3d upsample_linear1d _upsample_bilinear2d_aa
upsample_trilinear3d upsample_bicubic2d _upsample_bicubic2d_aa
"""


def _macro(text: str, name: str) -> set[str]:
    """The operations that a macro of autocast_mode.h lists."""
    body = re.search(rf"#define {name}\(_\)(.*?[^\\])\n", text, re.S)
    assert body is not None
    return set(re.findall(r"_\((\w+)", body[1]))


def test_cuda_has_the_list_of_pytorch(torch: Any) -> None:
    header = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
    if not header.exists():
        pytest.skip("this PyTorch has no headers")
    text = header.read_text()
    theirs = {
        "lower": _macro(text, "AT_FORALL_LOWER_PRECISION_FP"),
        "float32": _macro(text, "AT_FORALL_FP32") | _macro(text, "AT_FORALL_FP32_SET_OPT_DTYPE") | {"norm"},
        "widest": _macro(text, "AT_FORALL_PROMOTE"),
    }
    ours: dict[Any, set[str]] = {}
    for function in _declared():
        ours.setdefault(function.autocast[1], set()).add(function.__name__)
    for policy, listed in theirs.items():
        wanted = {name for their in listed - set(ABSENT.split()) for name in RENAMED.get(their, their).split()}
        assert not wanted - ours[policy], policy
    only_ours = {"linear_with_epilogue", "square", "__rtruediv__", "cross_entropy", "contract"}
    listed_names = {
        name for listed in theirs.values() for their in listed for name in RENAMED.get(their, their).split()
    }
    assert ours["lower"] | ours["float32"] | ours["widest"] <= listed_names | only_ours
