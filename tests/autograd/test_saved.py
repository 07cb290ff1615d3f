"""What a graph keeps alive: only what the derivatives need, counted in bytes, a chain for each family."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from case import draw, source
from cases import CASES
from conftest import DEVICE, drop_numbers
from test_derivatives import variables

import norch
from norch._binding.library import lib
from norch.nn import functional as F  # noqa: N812

SIZE = 4096  # elements of each operand, float64
UNIT = SIZE * 8
FIRST = norch.zeros(64, 64, dtype=norch.int64, device=DEVICE)

# name: (the chain, how many operands' worth of bytes it keeps beside its inputs and its result, and what those are)
CHAINS: dict[str, tuple[Callable[..., Any], float, str]] = {
    "sums": (lambda x, y: -(x + y - 3 + x), 0, "nothing"),
    "scales": (lambda x, y: (x * 3 / 2 - 1) * 0.5, 0, "nothing but numbers"),
    "products": (lambda x, y: (x + 1) * (y + 1), 2, "both factors"),
    "a product by a constant": (lambda x, y: (x + 1) * y.detach(), 0, "the constant, which lives anyway"),
    "quotient": (lambda x, y: (x + 1) / (y + 1), 2, "both"),
    "quotient by a constant": (lambda x, y: (x + 1) / y.detach(), 0, "nothing new"),
    "of the result": (lambda x, y: x.exp().sigmoid().tanh(), 2, "the results of exp and sigmoid"),
    "of the input": (lambda x, y: x.sin().cos().square(), 2, "the inputs of cos and square"),
    "roots": (lambda x, y: (x + 9).sqrt().sqrt(), 1, "the result of the first root"),
    "relu": (lambda x, y: (x + 1).relu().relu(), 1, "one tensor a relu, the last one's is its result"),
    "power": (lambda x, y: (x + 9) ** 2.5, 1, "its base"),
    "cube": (lambda x, y: (x + 9) ** 3, 1, "its base"),
    "maximum": (lambda x, y: norch.maximum(x + 1, y + 1), 2, "both"),
    "where": (lambda x, y: norch.where(x.detach() > 0, x + 1, y * 2), 1 / 8, "the condition, a byte an element"),
    "sum": (lambda x, y: (x + 1).sum() + (y * 2).mean(0).sum(), 0, "nothing"),
    "amax": (lambda x, y: (x + 1).amax(0), 1, "its input"),
    "max": (lambda x, y: (x + 1).max(1).values, 1 / 64, "the indices, one a row"),
    "variance": (lambda x, y: (x + 1).var(), 1, "its input"),
    "logsumexp": (lambda x, y: (x + 1).logsumexp(1), 1, "its input"),
    "softmax": (lambda x, y: (x + 1).softmax(1), 0, "its result"),
    "log_softmax": (lambda x, y: (x + 1).log_softmax(1), 0, "its result"),
    "norm": (lambda x, y: norch.linalg.vector_norm(x + 1), 1, "its input"),
    "norm of order 3": (lambda x, y: norch.linalg.vector_norm(x + 1, 3), 1, "its input"),
    "norm of order inf": (lambda x, y: norch.linalg.vector_norm(x + 1, float("inf"), 0), 1, "its input"),
    "cumsum": (lambda x, y: (x + 1).cumsum(0).cumsum(1), 0, "nothing"),
    "cumprod": (lambda x, y: (x + 1).cumprod(0), 1, "its input"),
    "cummax": (lambda x, y: (x + 1).cummax(0).values, 1, "the indices"),
    "sort": (lambda x, y: (x + 1).sort(1).values, 1, "the indices"),
    "topk": (lambda x, y: (x + 1).topk(8).values, 1 / 8, "the indices"),
    "median": (lambda x, y: (x + 1).median(1).values, 1 / 64, "the indices, one a row"),
    "pad": (lambda x, y: F.pad(x + 1, (1, 1)) * 2, 0, "nothing"),
    "turns": (lambda x, y: (x + 1).roll(1, 0).flip(1).tril().repeat(2, 1), 0, "nothing"),
    "matmul": (lambda x, y: (x + 1) @ (y + 1), 2, "both factors"),
    "matmul by constants": (lambda x, y: (x + 1) @ y.detach() @ y.detach(), 0, "nothing new"),
    "linear": (lambda x, y: F.linear(F.linear(x, y), y), 1, "the input of the second"),
    "einsum": (lambda x, y: norch.einsum("ij,kj,kl->il", x, y + 1, y), 2, "y + 1 and the first product"),
    "einsum of views": (lambda x, y: norch.einsum("ij->ji", x + 1) + norch.einsum("ii", x), 0, "nothing"),
    "views": (lambda x, y: (x + 1).view(-1).view(64, 64).t()[1:, ::2].unsqueeze(0).contiguous(), 0, "nothing"),
    "joins": (lambda x, y: norch.cat([x + 1, norch.stack([x * 2, y * 2]).sum(0)]), 0, "nothing"),
    "casts": (lambda x, y: (x + 1).float().double(), 0, "nothing"),
    "index_select": (lambda x, y: (x + 1).index_select(0, norch.arange(64)), 1 / 64, "the index"),
    "gather": (lambda x, y: (x + 1).gather(0, FIRST), 0, "the index, which lives anyway"),
    "in place": (lambda x, y: x.clone().mul_(2).add_(y).exp_(), 0, "the result"),
    "scatter": (lambda x, y: (x + 1).scatter(0, FIRST, y + 1).scatter_add(1, FIRST, y * 2), 0, "nothing new"),
    "index_put": (lambda x, y: (x + 1).index_put((FIRST[0],), y + 1), 0, "the index, which lives anyway"),
    "masked_select": (lambda x, y: (x + 1).masked_select(x.detach() > 0), 1 / 8, "the mask"),
    "masked_scatter": (lambda x, y: (x + 1).masked_scatter(x.detach() > 0, y + 1), 1 / 8, "the mask"),
    "cross": (lambda x, y: norch.linalg.cross((x + 1)[:, :3], (y + 1)[:, :3]), 2, "both"),
    "conv2d": (lambda x, y: F.conv2d((x + 1).view(1, 1, 64, 64), y[:3, :3].view(1, 1, 3, 3)), 1, "its input"),
    "max_pool2d": (lambda x, y: F.max_pool2d((x + 1).view(1, 64, 64), 2), 1 / 4, "the indices, one a window"),
    "avg_pool2d": (lambda x, y: F.avg_pool2d((x + 1).view(1, 64, 64), 2), 0, "nothing"),
    "attention": (lambda x, y: F.scaled_dot_product_attention(x + 1, y + 1, x * 2), 3, "its three inputs"),
    "layer_norm": (lambda x, y: F.layer_norm(x + 1, (64,), y[0], y[1]), 1, "its input"),
    "batch_norm": (lambda x, y: F.batch_norm(x + 1, None, None, y[0], y[1], True), 1, "its input"),
    "group_norm": (lambda x, y: F.group_norm((x + 1).view(2, 8, 4, 64), 2, y[0, :8], y[1, :8]), 1, "its input"),
    "instance_norm": (lambda x, y: F.instance_norm((x + 1).view(4, 8, 128), None, None, y[0, :8]), 1, "its input"),
    "glu": (lambda x, y: F.glu(x + 1), 1, "its input"),
    "cdist": (lambda x, y: norch.cdist(x + 1, (y + 1).view(4, 16, 64)), 2, "its inputs, and its result"),
    "cdist of order 1": (lambda x, y: norch.cdist((x + 1)[:8], (y + 1)[:8], 1), 2, "its inputs"),
    "bilinear": (lambda x, y: F.bilinear(x + 1, y + 1, x[:2].view(2, 1, 64).expand(2, 64, 64)), 2, "its inputs"),
    "embedding": (lambda x, y: F.embedding(FIRST, x + 1), 0, "the index, which lives anyway"),
    "mse_loss": (lambda x, y: F.mse_loss(x + 1, y + 1), 1, "the difference"),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_keeps_what_it_needs(name: str) -> None:
    chain, count, what = CHAINS[name]
    source = norch.Generator().manual_seed(0)
    x, y = (norch.randn(64, 64, generator=source, dtype=norch.float64).abs().requires_grad_() for _ in range(2))
    chain(x, y)  # numbers that are kept for the next time
    drop_numbers()
    before = lib.norch_live_bytes()
    out = chain(x, y)
    drop_numbers()
    kept = lib.norch_live_bytes() - before - out.nbytes
    assert kept <= count * UNIT + 1024, f"{name} keeps {kept / UNIT:.3f} operands; its derivative needs {what}"
    out.sum().backward()
    x.grad = y.grad = None
    if "ind" not in what and "mask" not in what:  # those are not freed, but with the graph
        assert lib.norch_live_bytes() - before - out.nbytes <= 1024, "a walk frees what it used"


# Cases that keep more than PyTorch.
MORE = {"renorm": "norms and factors of the rows; PyTorch computes them again"}


def _bytes(tensors: Iterable[Any]) -> dict[int, int]:
    """The bytes of each storage, by its address."""
    storages = [x.untyped_storage() for x in tensors]
    return {storage.data_ptr(): storage.nbytes() for storage in storages}


def _listed(result: Any) -> list[Any]:
    """The tensors of a result, of any depth."""
    if isinstance(result, (tuple, list)):
        return [x for one in result for x in _listed(one)]
    return [] if result is None else [result]


def _kept(call: Callable[[], Any]) -> tuple[int, Any]:
    """Bytes that norch keeps for a call beside its results, and those."""
    result = None
    for _ in range(2):  # numbers that are kept for the next time
        result = None
        drop_numbers()
        before = lib.norch_live_bytes()
        result = call()
    drop_numbers()
    return lib.norch_live_bytes() - before - sum(_bytes(_listed(result)).values()), result


def _kept_by_pytorch(torch: Any, call: Callable[[], Any], known: Iterable[Any]) -> int:
    """Bytes that PyTorch's graph keeps for a call beside its results and what is known."""
    kept: list[Any] = []
    with (
        warnings.catch_warnings(),
        torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x),
    ):
        warnings.simplefilter("ignore")
        results = _listed(call())
    if any(type(x.grad_fn).__name__ == "NotImplemented" for x in results):
        return 1 << 60  # there it has no derivative
    found, others = _bytes(kept), _bytes([*known, *results])
    return sum(count for place, count in found.items() if place not in others)


def _clones(tensors: list[Any]) -> list[Any]:
    """Those that require grad as no leaves, which nobody else keeps."""
    return [x.clone() if x.requires_grad else x for x in tensors]


@pytest.mark.skipif(DEVICE != "cpu", reason="counts the bytes of the CPU")
def test_no_case_keeps_more_than_pytorch(torch: Any) -> None:
    more = []
    for case in CASES:
        if not case.grad or case.torch is False or case.name in MORE:
            continue
        for shapes in [s for s in case.shapes if all(len(one) and np.prod(one) for one in s)] or case.shapes[-1:]:
            arrays = draw(case, shapes, "float64", source(case.name))
            inputs = [norch.tensor(a) for a in arrays]
            chosen = variables(case, inputs)
            for i in chosen:
                inputs[i].requires_grad_()
            theirs = [torch.from_numpy(np.array(a)).requires_grad_(i in chosen) for i, a in enumerate(arrays)]
            kept, _ = _kept(lambda: case.call(norch, *_clones(inputs)))  # noqa: B023  (called here)
            most = _kept_by_pytorch(torch, lambda: case.torch_call()(torch, *_clones(theirs)), theirs)  # noqa: B023
            if kept > most + 64:  # some numbers
                more.append(f"{case} of {shapes} keeps {kept} bytes, PyTorch {most}")
    assert not more, "\n".join(more)


# ---- modules --------------------------------------------------------------------------------------------------------

ROWS, LINES, IMAGES, BOXES = (16, 32), (4, 16, 32), (4, 8, 16, 16), (2, 4, 4, 4, 4)
CLASSES, HALVES, SIGNS = ("index", ROWS[:1], 32), ("half", ROWS), ("sign", ROWS)
# name: (arguments, the inputs: a shape, or what else it holds), or several of them
MODULES: dict[str, Any] = {
    **dict.fromkeys(
        """AlphaDropout CELU Dropout ELU FeatureAlphaDropout Flatten GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh
        Identity LeakyReLU
        LogSigmoid Mish PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign
        Tanh Tanhshrink""".split(),
        ((), [ROWS]),
    ),
    **dict.fromkeys("L1Loss MSELoss SmoothL1Loss HuberLoss PoissonNLLLoss PairwiseDistance".split(), ((), [ROWS] * 2)),
    **dict.fromkeys("HingeEmbeddingLoss SoftMarginLoss".split(), ((), [ROWS, SIGNS])),
    **dict.fromkeys("BCEWithLogitsLoss KLDivLoss MultiLabelSoftMarginLoss".split(), ((), [ROWS, HALVES])),
    **dict.fromkeys("NLLLoss MultiMarginLoss".split(), ((), [ROWS, CLASSES])),
    **dict.fromkeys("TripletMarginLoss TripletMarginWithDistanceLoss".split(), ((), [ROWS] * 3)),
    **dict.fromkeys("CircularPad1d ReflectionPad1d ReplicationPad1d ZeroPad1d".split(), ((1,), [LINES])),
    **dict.fromkeys("CircularPad2d ReflectionPad2d ReplicationPad2d ZeroPad2d".split(), ((1,), [IMAGES])),
    **dict.fromkeys("CircularPad3d ReflectionPad3d ReplicationPad3d ZeroPad3d".split(), ((1,), [BOXES])),
    **dict.fromkeys("ChannelShuffle PixelShuffle PixelUnshuffle AvgPool2d AdaptiveAvgPool2d".split(), ((2,), [IMAGES])),
    **dict.fromkeys("AvgPool1d MaxPool1d AdaptiveAvgPool1d AdaptiveMaxPool1d".split(), ((2,), [LINES])),
    **dict.fromkeys("LogSoftmax Softmax Softmin".split(), ((1,), [ROWS])),
    **dict.fromkeys("Dropout2d Softmax2d".split(), ((), [IMAGES])),
    **dict.fromkeys("GRU LSTM RNN".split(), ((32, 8), [LINES])),
    **dict.fromkeys("GRUCell LSTMCell RNNCell".split(), ((32, 8), [ROWS])),
    **dict.fromkeys("AvgPool3d AdaptiveAvgPool3d".split(), ((2,), [BOXES])),
    **dict.fromkeys("BatchNorm3d InstanceNorm3d".split(), ((4,), [BOXES])),
    **dict.fromkeys("MaxPool3d AdaptiveMaxPool3d".split(), ((2,), [BOXES])),
    "LPPool3d": ((2, 3), [BOXES]),
    "AdaptiveLogSoftmaxWithLoss": ((32, 32, [8]), [ROWS, CLASSES]),
    "AdaptiveMaxPool2d": ((5,), [IMAGES]),
    "BCELoss": ((), [("half", ROWS), HALVES]),
    "BatchNorm1d": [((32,), [ROWS]), ((16,), [LINES])],
    "BatchNorm2d": ((8,), [IMAGES]),
    "Bilinear": ((32, 32, 8), [ROWS, ROWS]),
    "ConstantPad1d": ((1, 0.5), [LINES]),
    "ConstantPad2d": ((1, 0.5), [IMAGES]),
    "ConstantPad3d": ((1, 0.5), [BOXES]),
    "Conv1d": ((16, 8, 3), [LINES]),
    "Conv2d": [((8, 4, 3), [IMAGES]), ((8, 8, 3, 1, 1, 1, 4), [IMAGES])],
    "Conv3d": [((4, 8, 3), [BOXES]), ((4, 4, 2, 2, 0, 1, 2), [BOXES])],
    "ConvTranspose3d": ((4, 3, 3, 2), [BOXES]),
    "ConvTranspose1d": ((16, 8, 3), [LINES]),
    "ConvTranspose2d": ((8, 4, 3, 2), [IMAGES]),
    "CosineEmbeddingLoss": ((), [ROWS, ROWS, ("sign", ROWS[:1])]),
    "CosineSimilarity": ((), [LINES, LINES]),
    "CrossEntropyLoss": [((), [ROWS, CLASSES]), ((), [ROWS, HALVES])],
    "Dropout1d": ((), [LINES]),
    "Dropout3d": ((), [BOXES]),
    "Embedding": ((50, 8), [("index", ROWS, 50)]),
    "Fold": (((16, 16), 3), [(4, 72, 196)]),
    "GaussianNLLLoss": ((), [ROWS, HALVES, HALVES]),
    "GroupNorm": ((4, 8), [IMAGES]),
    "InstanceNorm1d": ((16,), [LINES]),
    "InstanceNorm2d": ((8, 1e-5, 0.1, True), [IMAGES]),
    "LayerNorm": ((32,), [LINES]),
    "Linear": [((32, 8), [LINES]), ((32, 8, False), [ROWS])],
    "LPPool1d": ((2, 3), [LINES]),
    "LPPool2d": ((2, 3), [IMAGES]),
    "LocalResponseNorm": ((3,), [IMAGES]),
    "MarginRankingLoss": ((), [ROWS, ROWS, SIGNS]),
    "MaxPool2d": ((3, 2, 1), [IMAGES]),
    "MultiheadAttention": ((32, 4), [LINES] * 3),
    "RMSNorm": ((32,), [LINES]),
    "Threshold": ((0.1, 1.0), [ROWS]),
    "Transformer": ((32, 4, 1, 1, 64, 0.0), [LINES, LINES]),
    "TransformerDecoderLayer": ((32, 4, 64, 0.0), [LINES, LINES]),
    "TransformerEncoderLayer": ((32, 4, 64, 0.0), [LINES]),
    "Unflatten": ((1, (4, 8)), [ROWS]),
    "Unfold": ((3,), [IMAGES]),
    # the places and weights that each row and column of the result is taken from; PyTorch computes them again
    "Upsample": None,
    "UpsamplingBilinear2d": None,
    "UpsamplingNearest2d": None,
    "EmbeddingBag": ((50, 8), [("index", ROWS, 50)]),
    **dict.fromkeys("FractionalMaxPool2d FractionalMaxPool3d MultiLabelMarginLoss".split()),  # composed
    "CTCLoss": None,  # what each step through time is composed of; PyTorch keeps one table
    # what holds others, or stands for several
    **dict.fromkeys(
        "DataParallel Module ModuleDict ModuleList ParameterDict ParameterList RNNBase RNNCellBase Sequential "
        "SyncBatchNorm LazyLinear MaxUnpool1d MaxUnpool2d MaxUnpool3d".split()
    ),
    **dict.fromkeys("TransformerDecoder TransformerEncoder".split()),
    **{
        f"Lazy{kind}{axes}d": None for kind in "Conv ConvTranspose BatchNorm InstanceNorm".split() for axes in (1, 2, 3)
    },
}


def _array(kind: Any, rng: np.random.Generator) -> Any:
    if not isinstance(kind[0], str):
        return rng.standard_normal(kind, np.float32)
    if kind[0] == "index":
        return rng.integers(0, kind[2], kind[1])
    values = rng.random(kind[1], np.float32) * 0.8 + 0.1
    return values if kind[0] == "half" else np.sign(values - 0.5)


@pytest.mark.skipif(DEVICE != "cpu", reason="counts the bytes of the CPU")
def test_no_module_keeps_more_than_pytorch(torch: Any) -> None:
    kinds = {name for name in dir(norch.nn) if isinstance(getattr(norch.nn, name), type) and hasattr(torch.nn, name)}
    new = {name for name in kinds if issubclass(getattr(norch.nn, name), norch.nn.Module)} - set(MODULES)
    assert not new, f"not walked: {new}"
    more = []
    for name, calls in MODULES.items():
        for arguments, shapes in calls if isinstance(calls, list) else [calls] if calls else []:
            arrays = [_array(kind, source(name)) for kind in shapes]
            found = []
            for m in (norch, torch):
                module = getattr(m.nn, name)(*arguments)
                inputs = [m.tensor(a, requires_grad=not isinstance(k[0], str)) for a, k in zip(arrays, shapes)]
                call = lambda: module(*_clones(inputs))  # noqa: B023, E731  (called here)
                if m is norch:
                    found.append(_kept(call)[0])
                else:
                    found.append(_kept_by_pytorch(m, call, [*inputs, *module.parameters(), *module.buffers()]))
            if found[0] > found[1] + 256:  # some numbers
                more.append(f"{name}{arguments} of {shapes} keeps {found[0]} bytes, PyTorch {found[1]}")
    assert not more, "\n".join(more)
