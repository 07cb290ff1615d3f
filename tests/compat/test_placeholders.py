"""Names of PyTorch that are only names, and modules of compat/ that compute: operations of programs, futures, dual
numbers, attention whose scores a function changes."""

import importlib
import math
import pickle
import subprocess
import sys
from abc import ABC
from functools import partial
from typing import Any, Optional, get_type_hints

import numpy as np
import pytest
from conftest import DEVICE

import norch
from norch import nn
from norch.compat import placeholders
from norch.testing import assert_close, gradcheck

pytestmark = pytest.mark.host

MODULES = """
_dynamo _dynamo.config _inductor _custom_ops _subclasses.fake_tensor ao.quantization autograd.forward_ad
autograd.profiler
distributed.tensor distributed.tensor.placement_types distributed.fsdp
distributed._functional_collectives
distributed.algorithms.join distributed.rpc distributed.device_mesh distributed.constants functional futures fx.node
library nn.attention.flex_attention optim.adamw overrides sparse types utils._foreach_utils utils.data._utils.collate
utils.flop_counter xpu
mps
"""


@pytest.mark.parametrize("path", MODULES.split())
def test_modules_are_found_by_import_and_by_attribute(path: str) -> None:
    found = norch
    for name in path.split("."):
        found = getattr(found, name)
    assert found is importlib.import_module(f"norch.{path}")


def test_types_are_annotated_compared_and_refuse() -> None:
    graph = norch.cuda.CUDAGraph

    def replay(graph: graph | None, kind: Optional[norch.Event]) -> list[norch.distributed.tensor.DTensor]: ...  # noqa: UP045

    assert get_type_hints(replay)["kind"] == Optional[norch.Event]  # noqa: UP045
    assert not isinstance(norch.ones(1), graph) and not isinstance(3, (graph, norch.Stream))
    assert graph is norch.cuda.CUDAGraph and graph[int] is graph and issubclass(type("A", (graph, ABC), {}), graph)
    with pytest.raises(NotImplementedError, match=r"^norch\.cuda\.CUDAGraph: norch leaves it out: distribution over"):
        graph()
    with pytest.raises(NotImplementedError, match=r"^norch\.distributed\.tensor\.distribute_tensor: .*machines"):
        norch.distributed.tensor.distribute_tensor(norch.ones(2))
    decorated = norch._inductor.something(replay)  # refuses when it is called
    with pytest.raises(NotImplementedError, match=r"norch\._inductor\.something"):
        decorated()
    assert norch.distributed.tensor.Shard(0) == norch.distributed.tensor.Shard(0)
    assert norch._dynamo.disable(replay) is replay and norch._dynamo.disable(recursive=False)(replay) is replay


def test_what_torchao_names_when_it_is_imported() -> None:
    assert isinstance(nn.functional.ScalingType, type) and not hasattr(nn.functional, "grouped_mm")
    gather = norch.ops.c10d_functional.all_gather_into_tensor.default
    assert gather.name() == "c10d_functional::all_gather_into_tensor"
    for call in (gather, nn.functional.scaled_grouped_mm):
        with pytest.raises(NotImplementedError, match="norch leaves it out"):
            call(norch.ones(2))


DEFINED_IN = """
nn.utils.spectral_norm.spectral_norm nn.utils.weight_norm.weight_norm autograd.gradcheck.gradcheck
multiprocessing.spawn.spawn _lobpcg.lobpcg _lowrank.svd_lowrank _lowrank.pca_lowrank _tensor_str.set_printoptions
_library.custom_ops.custom_op _library.custom_ops.CustomOpDef _library.infer_schema.infer_schema
"""


def test_functions_in_modules_that_norch_has_not() -> None:
    """A function that norch has is found where PyTorch defines it, also where the module has the function's name. In a
    process of its own: an import of such a module sets it in the place of the function."""
    code = """if True:
        import importlib, sys
        for path in sys.argv[1:]:
            where, _, name = path.rpartition(".")
            found = getattr(importlib.import_module("norch." + where), name)
            print(path, getattr(found, "_is_placeholder", False))"""
    command = [sys.executable, "-c", code, *DEFINED_IN.split()]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said == [f"{path} False" for path in DEFINED_IN.split()]


def test_schemas_of_unions(torch: Any) -> None:
    number = int | float | bool
    for kind in (number, number | None, int | None, Optional[float], list[int], list[number], "bool | None"):  # noqa: UP045
        said = []
        for lib in (norch, torch):

            def function(x: Any) -> Any: ...

            function.__annotations__ = {"x": kind, "return": lib.Tensor}
            said.append(lib.library.infer_schema(function, mutates_args=()))
        assert said[0] == said[1]


def test_dtypes_and_layouts_that_are_left_out() -> None:
    eight = norch.float8_e4m3fn
    assert isinstance(eight, norch.dtype) and eight is norch.float8_e4m3fn and eight != norch.float16
    assert (eight.itemsize, eight.is_floating_point, norch.finfo(eight).max) == (1, True, 448.0)
    assert {eight: 1}[eight] == 1 and repr(eight) == "norch.float8_e4m3fn"
    for call in (lambda: norch.zeros(2, dtype=eight), lambda: norch.ones(1).to(eight)):
        with pytest.raises(norch.DTypeError, match=r": norch leaves \w+ out: dtypes that norch has not"):
            call()
    assert norch.ones(1).layout is norch.strided and norch.sparse_coo != norch.strided
    assert isinstance(norch.sparse_csr, norch.layout)
    for thing in (eight, norch.sparse_coo):
        assert pickle.loads(pickle.dumps(thing)) is thing


def test_devices_that_are_elsewhere() -> None:
    mps = norch.device("mps")
    assert (mps.type, mps.index, str(norch.device("xpu:1"))) == ("mps", None, "xpu:1") and mps == norch.device("mps")
    assert mps != norch.ones(1).device and not hasattr(mps, "nonsense")
    for call in (lambda: norch.ones(1, device=mps), lambda: norch.ones(1).to("mps"), lambda: nn.Linear(1, 1).to(mps)):
        with pytest.raises(norch.DeviceError, match="norch has no device 'mps'; there are 'cpu', 'cuda' and 'meta'"):
            call()
    with pytest.raises(norch.DeviceError, match="one of cpu, cuda, meta device type at .* string: nonsense$"):
        norch.device("nonsense")


LIMITED = "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"


@pytest.mark.parametrize("name", LIMITED.split())
def test_limits_of_floats_of_8_bits(torch: Any, name: str) -> None:
    ours, theirs = norch.finfo(getattr(norch, name)), torch.finfo(getattr(torch, name))
    assert (ours.bits, ours.max, ours.min, ours.eps, ours.tiny) == (8, theirs.max, theirs.min, theirs.eps, theirs.tiny)


def test_what_hasattr_is_asked_for() -> None:
    for thing, name in (
        (norch, "cond"),
        (norch, "sparse_bsr_tensor"),
        (nn, "LinearCrossEntropyLoss"),
        (norch, "Nonsense"),
    ):
        assert not hasattr(thing, name)
    assert not hasattr(norch.utils.data, "Nonsense") and not hasattr(norch._C, "_cuda_nothing")
    assert norch.xpu.is_available() is norch.mps.is_available() is False and norch.xpu.device_count() == 0
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("norch.distributed.nonsense")


def test_every_line_of_the_table_can_be_read() -> None:
    for where, listed in placeholders.table().items():
        for name in listed.names:
            if where not in ("torch", "Tensor") and not where.startswith(("quantization", "tensorboard")):
                assert placeholders.placeholder(where, name) is not None or listed.names[name].endswith("None")


# ---- operations of programs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ["custom_op", "triton_op"])
def test_an_operation_with_a_derivative(torch: Any, make: str) -> None:
    found = []
    for m in (norch, torch):
        library = importlib.import_module(f"{m.__name__}.library")

        @getattr(library, make)(f"testing::scaled_{make}", mutates_args=())
        def scaled(x: m.Tensor, y: m.Tensor, factor: float = 2.0) -> m.Tensor:
            return x * y * factor

        def setup(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs[:2])
            ctx.factor = inputs[2]

        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * y * ctx.factor, g * x * ctx.factor, None

        scaled.register_autograd(backward, setup_context=setup)
        x, y = (m.tensor([1.0, 2.0], requires_grad=True), m.tensor([3.0, 4.0], requires_grad=True))
        operation = getattr(m.ops.testing, f"scaled_{make}")
        for call in (scaled, operation, operation.default):
            call(x, y, 3.0).sum().backward()
        found.append((x.grad.tolist(), y.grad.tolist()))
    assert found[0] == found[1]


def _named_calls(m: Any) -> Any:
    """What setup_context got in calls with named arguments, and the gradients."""
    seen: list[Any] = []

    def setup(ctx: Any, inputs: Any, output: Any, **named: Any) -> None:
        seen.append((*inputs[1:3], named))
        ctx.save_for_backward(inputs[0], inputs[3])

    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g * w, None, None, g * x

    @m.library.custom_op("testing::placed", mutates_args=())
    def placed(x: m.Tensor, k: float = 2.0, s: str = "a,b", w: m.Tensor | None = None) -> m.Tensor:
        return x * w

    @m.library.custom_op("testing::starred", mutates_args=())
    def starred(x: m.Tensor, k: float, s: str, w: m.Tensor, *, j: float = 1.0) -> m.Tensor:
        return x * w

    text = '(Tensor x, float k=2.5, str s="a,b", Tensor? w=None, *, int[2] j=[1, 2]) -> Tensor'
    m.library.define("testing::defined", text)
    m.library.impl("testing::defined", "default", lambda x, k=0.0, s="", w=None, j=(0,): x * w)
    for op in (placed, starred, "testing::defined"):
        m.library.register_autograd(op, backward, setup_context=setup)
    x, w = m.tensor([1.0, 2.0], requires_grad=True), m.tensor([3.0, 4.0], requires_grad=True)
    for op in (placed, m.ops.testing.defined):
        for named in ({}, {"k": 3.0}, {"s": "d"}):
            op(x, w=w, **named).sum().backward()
            op(w=w, x=x, **named).sum().backward()
    starred(x, 1.0, w=w, s="c").sum().backward()
    starred(x, 1.0, "c", w, j=3.0).sum().backward()
    return seen, x.grad.tolist(), w.grad.tolist()


def test_named_arguments_of_an_operation_are_placed(torch: Any) -> None:
    """setup_context gets them by position, with the defaults, and only those after "*" by name."""
    assert _named_calls(norch) == _named_calls(torch)


def test_a_kernel_gets_no_defaults_behind_the_last_argument(torch: Any) -> None:
    for m in (norch, torch):
        seen: list[Any] = []
        m.library.define("testing::trailing", "(Tensor x, float k=2.5, int i=3, int j=1) -> Tensor")
        m.library.impl("testing::trailing", "default", lambda x, *more: (seen.append(more), x + 1)[1])  # noqa: B023
        for named in ({}, {"k": 3.0}, {"i": 4}):
            m.ops.testing.trailing(x=m.ones(1), **named)
        assert seen == [(), (3.0,), (2.5, 4)]


def test_operations_are_opaque_and_checked() -> None:
    @norch.library.custom_op("testing::plain", mutates_args=())
    def plain(x: norch.Tensor) -> norch.Tensor:
        return x.sin()

    with pytest.raises(RuntimeError, match="testing::plain has no derivative; register one"):
        plain(norch.ones(2, requires_grad=True)).sum().backward()
    plain.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=_save)
    gradcheck(plain, [norch.ones(2, dtype=norch.float64, requires_grad=True)])
    for required in (False, True):
        checked = norch.library.opcheck(plain, (norch.ones(2, requires_grad=required),))
        assert set(checked.values()) == {"SUCCESS"}
    plain.register_fake(lambda x: norch.empty_like(x))
    assert plain(norch.empty(3, device="meta")).is_meta
    made = norch.library.Library("testing", "FRAGMENT")
    made.define("twice(Tensor x) -> Tensor")
    made.impl("twice", lambda x: 2 * x)
    assert norch.ops.testing.twice(norch.ones(1)).item() == 2 and hasattr(norch.ops.testing, "twice")
    assert not hasattr(norch.ops.testing, "nothing") and norch.ops.aten.add.Tensor(norch.ones(1), 2).item() == 3
    with pytest.raises(OSError, match="load_library: /nothing.so"):
        norch.ops.load_library("/nothing.so")
    with pytest.raises(ValueError, match="'namespace::name', not 'bare'"):
        norch.library.custom_op("bare", mutates_args=())(lambda x: x)


@pytest.mark.parametrize("torch_too", [False, True])
def test_results_of_operations_share_no_memory(torch: Any, torch_too: bool) -> None:
    m = torch if torch_too else norch
    annotated = {"x": m.Tensor, "return": tuple[m.Tensor, m.Tensor]}
    for number, make in enumerate((lambda x: (x, x + 1), lambda x: (x + 1, x[1:]), lambda x: (x + 1,) * 2)):
        make.__annotations__ = annotated
        shares = m.library.custom_op(f"testing::shares{number}", make, mutates_args=())
        with pytest.raises(RuntimeError, match=f"shares{number}"):
            shares(m.ones(3))
        shares.register_kernel("cpu")(lambda x: (x + 1, x + 2))
        assert shares(m.ones(1))[1].item() == 3
    empty = m.library.custom_op("testing::empty", make, mutates_args=())
    empty.register_kernel("cpu", lambda x: (x[:0].clone(), x[:0].clone()))
    assert empty(m.ones(2))[0].shape == (0,)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0])


def test_boxes_and_regions() -> None:
    ops: Any = norch.ops.torchvision
    boxes = norch.tensor([[0.0, 0, 4, 4], [0, 0, 4, 4.2], [10, 10, 12, 12], [1, 1, 5, 5]], device=DEVICE)
    scores = norch.tensor([0.5, 0.9, 0.1, 0.6], device=DEVICE)
    assert ops.nms(boxes, scores, 0.5).tolist() == [1, 3, 2] and ops.nms(boxes, scores, 0.3).tolist() == [1, 2]
    assert ops.nms(boxes[:0], scores[:0], 0.5).tolist() == []
    image = norch.arange(16.0, device=DEVICE, dtype=norch.float64).reshape(1, 1, 4, 4).requires_grad_()
    rois = norch.tensor([[0.0, 0, 0, 4, 4], [0, -9, -9, -5, -5]], device=DEVICE, dtype=norch.float64)
    aligned = ops.roi_align(image, rois, 1.0, 2, 2, 2, True)
    assert_close(aligned[0, 0], image.detach()[0, 0].reshape(2, 2, 2, 2).mean((1, 3)))
    assert aligned[1].abs().sum() == 0  # outside
    gradcheck(lambda x: ops.roi_align(x, rois, 1.0, 2, 2, -1, False), [image])
    pooled, places = ops.roi_pool(image, rois[:1], 1.0, 2, 2)
    assert pooled.flatten().tolist() == [10, 11, 14, 15] and places.flatten().tolist() == [10, 11, 14, 15]
    weight, zeros = norch.ones(1, 1, 3, 3, device=DEVICE).double(), norch.zeros(1, 18, 2, 2, device=DEVICE).double()
    empty = zeros[:, :0]
    moved = ops.deform_conv2d(image, weight, zeros, empty, weight.new_zeros(1), 1, 1, 0, 0, 1, 1, 1, 1, False)
    assert_close(moved, nn.functional.conv2d(image, weight))


# ---- futures, dual numbers, attention --------------------------------------------------------------------------------


def test_changes_of_settings() -> None:
    config = importlib.import_module("norch._dynamo.config")

    @config.patch(suppress_errors=False)
    def double(x: int) -> int:
        return 2 * x

    with config.patch("suppress_errors", True):
        assert double(2) == 4


def test_what_asks_for_other_libraries_is_told_no() -> None:
    """Values, not placeholders, which would be true in an `if`."""
    extension, backends = importlib.import_module("norch.utils.cpp_extension"), norch.backends
    assert extension.CUDA_HOME is None and extension.ROCM_HOME is None and extension.IS_HIP_EXTENSION is False
    assert backends.xnnpack.enabled is False and backends.quantized.engine == "none"
    backends.mha.set_fastpath_enabled(False)
    assert backends.mha.get_fastpath_enabled() is False


def test_the_mode_in_which_vmap_takes_an_index_that_is_batched() -> None:
    """transformers 4 makes the masks of causal models in it."""
    mode = importlib.import_module("norch._dynamo._trace_wrapped_higher_order_op").TransformGetItemToIndex
    seen = norch.tensor([[True, False], [True, True]], device=DEVICE)
    with mode():
        found = norch.vmap(norch.vmap(lambda row, column: seen[row, column], (None, 0)), (0, None))(
            norch.arange(2, device=DEVICE), norch.arange(2, device=DEVICE)
        )
    assert found.tolist() == seen.tolist()


def test_futures() -> None:
    a, b = norch.futures.Future(), norch.futures.Future()
    both, double = norch.futures.collect_all([a, b]), a.then(lambda done: 2 * done.value())
    with pytest.raises(RuntimeError, match="the result is not set yet"):
        a.value()
    a.set_result(3)
    assert double.wait() == 6 and not both.done()
    b.set_exception(KeyError("b"))
    assert both.done() and isinstance(a, norch.Future)
    with pytest.raises(KeyError):
        norch.futures.wait_all([a, b])
    with pytest.raises(RuntimeError, match="the result is already set"):
        a.set_result(1)


def test_dual_numbers(torch: Any) -> None:
    x, t = np.array([[0.3, -1.2], [2.0, 0.1]]), np.array([[1.0, 0.5], [-2.0, 0.25]])
    found = []
    for m in (norch, torch):
        forward = importlib.import_module(f"{m.__name__}.autograd.forward_ad")
        with forward.dual_level():
            dual = forward.make_dual(m.tensor(x), m.tensor(t))
            y = (dual.exp() @ dual.sin()).sum(0) * 3
            primal, tangent = forward.unpack_dual(y)
            assert forward.unpack_dual(m.ones(2)).tangent is None
            assert forward.unpack_dual(dual).tangent.tolist() == t.tolist()
            found.append((primal.detach().numpy(), tangent.detach().numpy()))
        with pytest.raises(RuntimeError):
            forward.make_dual(m.ones(1), m.ones(1))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
    with (
        norch.autograd.forward_ad.dual_level(),
        pytest.raises(norch.ShapeError, match=r"shape \(2,\), tensor of \(1,\)"),
    ):
        norch.autograd.forward_ad.make_dual(norch.ones(1), norch.ones(2))


@pytest.mark.filterwarnings("ignore")
def test_attention_of_changed_scores(torch: Any) -> None:
    draw, found = np.random.default_rng(0), []
    arrays = [draw.normal(size=size) for size in ((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6), (4,))]
    for m in (norch, torch):
        flex = importlib.import_module(f"{m.__name__}.nn.attention.flex_attention")
        q, k, v, bias = (m.tensor(a).float() for a in arrays)
        window = flex.and_masks(lambda b, h, i, j: i + 2 >= j, lambda b, h, i, j: i <= j + 9)
        mask = flex.create_block_mask(window, None, None, 5, 7, device="cpu")
        out, sums = flex.flex_attention(
            q, k, v, lambda s, b, h, i, j, bias=bias: s + bias[h] * (i - j), mask, enable_gqa=True, return_lse=True
        )
        found.append([a.detach().numpy() for a in (out, sums)])
        if m is norch:  # PyTorch has no derivative of it on the CPU
            wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
            gradcheck(partial(flex.flex_attention, block_mask=mask, enable_gqa=True), wide)
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        for queries, keys in ((q, k[:, :, :-1]), (q[:, :, :-1], k), (q.repeat(1, 1, 2, 1), k)):
            with pytest.raises(ValueError, match="block_mask was created for block_mask.shape=.* but got q_len="):
                flex.flex_attention(queries, keys, keys, block_mask=mask, enable_gqa=True)
    with pytest.raises(TypeError, match="block_mask must be a BlockMask, not str"):
        norch.nn.attention.flex_attention.flex_attention(q, k, v, block_mask="x", enable_gqa=True)
    hidden = norch.nn.attention.flex_attention.create_block_mask(lambda b, h, i, j: i < 0, None, None, 2, 2)
    x = norch.ones(1, 1, 2, 2)
    assert norch.nn.attention.flex_attention.flex_attention(
        x, x, x, block_mask=hidden
    ).abs().sum() == 0 and not math.isnan(hidden.sparsity())
