"""Autocast: the dtypes of operations are PyTorch's, on the CPU as PyTorch computes them, on CUDA by its list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from expressions import ARRAYS, EXPRESSIONS

import norch
from norch.amp import entries, lists


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


@pytest.mark.parametrize("device", [0, 1])
def test_no_step_of_a_call_in_place_is_cast(device: int) -> None:
    """Of all in-place methods that are made of functions that autocast casts on the CPU, and on CUDA."""
    found = [entry for devices, some in entries._entries().items() if devices[device] for entry in some]
    uncast = {entry.function for entry in found if isinstance(entry, entries._Uncast)}
    operations = [entry for entry in found if isinstance(entry, entries._Operation)]
    cast = {entry.function for entry in operations if entry.policies[device] is not entries._POLICIES["given"]}
    for name, method in vars(norch.Tensor).items():
        if name.endswith("_") and not name.endswith("__"):
            steps = [method]
            while hasattr(steps[-1], "__wrapped__"):
                steps.append(steps[-1].__wrapped__)
            assert method in uncast or not any(step in cast for step in steps if callable(step)), name


# ---- CUDA's list ----------------------------------------------------------------------------------------------------

# Operations of PyTorch's list that go by another name here, or are not here.
RENAMED = {
    "pow": "pow _pow", "sum": "sum _sum_method", "softmax": "softmax", "linalg_vecdot": "vecdot",
    "linalg_multi_dot": "multi_dot", "linalg_vector_norm": "vector_norm", "linalg_matrix_norm": "matrix_norm",
    "lstm_cell": "_lstm", "gru_cell": "_gru", "rnn_tanh_cell": "_tanh", "rnn_relu_cell": "_relu",
    "upsample_nearest1d": "interpolate", "upsample_bilinear2d": "interpolate", "grid_sampler": "grid_sample",
    "frobenius_norm": "norm", "nuclear_norm": "norm",
}  # fmt: skip
ABSENT = """
_convolution convolution conv_tbc _thnn_fused_lstm_cell _thnn_fused_gru_cell _scaled_dot_product_flash_attention
native_layer_norm nll_loss2d multilabel_margin_loss _upsample_nearest_exact1d upsample_nearest2d
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
    for _, names, _, policy in lists.OPERATIONS:
        ours.setdefault(policy, set()).update(names.split())
    for policy, listed in theirs.items():
        wanted = {name for their in listed - set(ABSENT.split()) for name in RENAMED.get(their, their).split()}
        assert not wanted - ours[policy], policy
    only_ours = {"product", "linear_with_epilogue", "square", "Tensor.__rtruediv__", "cross_entropy"}
    known = {name for listed in theirs.values() for their in listed for name in RENAMED.get(their, their).split()}
    assert ours["lower"] | ours["float32"] | ours["widest"] <= known | only_ours
