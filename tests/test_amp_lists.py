"""Autocast: the dtypes of operations are PyTorch's, on the CPU as PyTorch computes them, on CUDA by its list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import norch
from norch.amp import entries, lists

# Calls with t = torch or norch and F its nn.functional: what autocast does on the CPU. x, y: (4, 4); v: (4); b:
# (2, 4, 4); image: (2, 4, 4, 4); volume: (1, 2, 4, 4, 4); kernels k1, k2, k3; i: indices.
CALLS = """
x @ y; x @ v; v @ x; t.matmul(x, y); t.mm(x, y); t.bmm(b, b); F.linear(x, y); F.linear(x, y, v); F.linear(b, y, v)
t.addmm(v, x, y); t.addbmm(x, b, b); t.baddbmm(x, b, b); t.linalg.vecdot(x, y); t.einsum("ij,jk->ik", x, y)
t.linalg.multi_dot([x, y, x]); t.chain_matmul(x, y, x); t.tensordot(x, y, 1); t.mv(x, v); t.dot(v, v); t.vdot(v, v)
t.addmv(v, x, v); t.addr(x, v, v); F.bilinear(x, y, b.new_ones(3, 4, 4).to(b.dtype)); t.outer(v, v)
F.conv1d(b, k1); F.conv2d(image, k2); F.conv2d(image, k2, v); F.conv3d(volume, k3); F.conv_transpose1d(b, k1)
F.conv_transpose2d(image, k2); F.conv_transpose3d(volume, k3); F.prelu(x, v); F.scaled_dot_product_attention(b, b, b)
F.scaled_dot_product_attention(image, image, image, is_causal=True)
F.mse_loss(x, y); F.l1_loss(x, y); F.smooth_l1_loss(x, y); F.huber_loss(x, y); F.kl_div(x, y); F.poisson_nll_loss(x, y)
F.mse_loss(x, y, reduction="none"); F.hinge_embedding_loss(x, y); F.soft_margin_loss(x, y)
F.margin_ranking_loss(v, v, v); F.cosine_embedding_loss(x, y, v); F.triplet_margin_loss(x, y, x)
F.multi_margin_loss(x, i); F.nll_loss(x, i); F.nll_loss(image, i.new_zeros(2, 4, 4)); F.cross_entropy(x, i)
F.cross_entropy(x, y.softmax(1)); F.cross_entropy(x, i, label_smoothing=0.1); F.binary_cross_entropy(p, p)
F.binary_cross_entropy_with_logits(x, p)
F.ctc_loss(b.log_softmax(2), i.new_ones(4, 2), i.new_ones(4) * 2, i.new_ones(4) * 2)
F.gaussian_nll_loss(x, y, p); F.multilabel_soft_margin_loss(x, p)
x.prod(); t.prod(x, 0); t.cdist(x, y); t.trace(x); x.trace(); t.quantile(p, 0.5); p.nanquantile(0.5)
F.grid_sample(image, image[:, :, :, :2], align_corners=True); F.avg_pool3d(volume, 2); F.max_pool3d(volume, 2)
F.adaptive_avg_pool3d(volume, 2); F.adaptive_max_pool3d(volume, 2); F.max_unpool2d(image, i.new_zeros(2, 4, 4, 4), 2)
F.max_unpool3d(volume, i.new_zeros(1, 2, 4, 4, 4), 2)
F.pad(b, (1, 1), mode="reflect"); F.pad(image, (1, 1, 1, 1), mode="reflect"); F.pad(b, (1, 1), mode="replicate")
F.pad(volume, (1,) * 6, mode="replicate"); F.pad(x, (1, 1)); F.pad(b, (1, 1), mode="circular")
t.cat([x, y]); t.stack([x, y]); t.cat([x, one]); t.stack([x, one]); t.cat([half, half]); t.stack([half, half])
t.index_copy(x, 0, i, y); t.index_copy(half, 0, i, one); t.hstack([x, one])
t.linalg.cholesky(spd); t.linalg.inv(spd); t.linalg.solve(spd, x); t.linalg.qr(x)[0]; t.linalg.svd(x)[1]
t.linalg.eigh(spd)[0]; t.linalg.eigvalsh(spd); t.linalg.svdvals(x); t.linalg.cond(spd); t.linalg.lstsq(spd, x)[0]
t.inverse(spd); t.cholesky(spd); t.pinverse(spd); t.svd(x)[1]; t.qr(x)[0]; t.linalg.inv_ex(spd)[0]
t.linalg.cholesky_ex(spd)[0]; t.cholesky_solve(x, spd); t.cholesky_inverse(spd); t.linalg.eigvals(spd)
t.triangular_solve(x, spd)[0]; t.linalg.tensorinv(spd, 1); t.linalg.tensorsolve(spd, v)
t.fft.fft(x); t.fft.ifft(x); t.fft.rfft(x); t.fft.fft2(x); t.fft.rfft2(x); t.fft.fftn(x); t.fft.hfft(x)
t.polar(p, x); t.view_as_complex(pairs)
x + y; x * 2; x + one; half + one; x / y; x.exp(); x.log(); x.sqrt(); x ** 2; 1 / x; x.sum(); x.mean(); x.sum(0)
x.softmax(1); t.log_softmax(x, 1); F.softmax(x, 1); x.cumsum(0); x.norm(); x.var(); x.std(); t.logsumexp(x, 1); x.tanh()
F.relu(x); F.gelu(x); F.silu(x); F.softplus(x); F.sigmoid(x); F.elu(x); F.leaky_relu(x); F.mish(x); F.hardswish(x)
F.layer_norm(x, (4,)); F.group_norm(x, 2); F.rms_norm(x, (4,)); F.batch_norm(image, v, p[0]); F.normalize(x)
F.instance_norm(image); F.layer_norm(x, (4,), one[0], one[0]); F.batch_norm(image, one[0], one[0] ** 2)
F.max_pool2d(image, 2); F.avg_pool2d(image, 2); F.adaptive_avg_pool2d(image, 2); F.interpolate(image, scale_factor=2)
F.dropout(x); F.embedding(i, x); t.where(x > 0, x, y); x.max(); x.max(1)[0]; x.clamp(0, 1); t.maximum(x, y)
F.pairwise_distance(x, y); F.cosine_similarity(x, y); t.dist(x, y); x.reciprocal(); t.atan2(x, y); t.addcmul(x, x, y)
x.index_select(0, i); x.gather(1, i[None]); t.scatter_add(x, 0, i[None], x); x.sort()[0]; x.cumprod(0); x.lerp(y, 0.5)
"""
EXPRESSIONS = [call.strip() for line in CALLS.strip().splitlines() for call in line.split(";")]

RNG = np.random.default_rng(0)
ARRAYS = {
    name: RNG.normal(size=shape)
    for name, shape in {
        "x": (4, 4), "y": (4, 4), "v": (4,), "b": (2, 4, 4), "image": (2, 4, 4, 4), "volume": (1, 2, 4, 4, 4),
        "k1": (4, 4, 3), "k2": (4, 4, 3, 3), "k3": (2, 2, 2, 2, 2), "pairs": (4, 2), "one": (4, 4), "half": (4, 4),
    }.items()
}  # fmt: skip
ARRAYS["p"] = RNG.uniform(0.1, 0.9, size=(4, 4))
ARRAYS["spd"] = np.eye(4) * 4 + 0.1


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
