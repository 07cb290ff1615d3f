"""Programs patch functions of nn.functional, to count operations say: layers call what stands there, as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import norch
from norch import nn

F = nn.functional
# Each constructs a layer of lib.nn and gives its arguments; r draws them.
LAYERS = """
nn.CELU(),r(2,4) nn.ELU(),r(2,4) nn.GELU(),r(2,4) nn.GLU(),r(2,4) nn.SELU(),r(2,4) nn.Hardswish(),r(2,4)
nn.Mish(),r(2,4) nn.LeakyReLU(),r(2,4) nn.LogSigmoid(),r(2,4) nn.ReLU(),r(2,4) nn.ReLU(True),r(2,4) nn.SiLU(),r(2,4)
nn.Softplus(),r(2,4) nn.Softmax(1),r(2,4) nn.LogSoftmax(1),r(2,4) nn.Threshold(.1,2.),r(3) nn.Sigmoid(),r(2)
nn.Tanh(),r(2) nn.Conv1d(2,2,2),r(1,2,4) nn.Conv2d(2,2,2),r(1,2,4,4) nn.Conv3d(2,2,2),r(1,2,4,4,4)
nn.ConvTranspose1d(2,2,2),r(1,2,4) nn.ConvTranspose2d(2,2,2),r(1,2,4,4) nn.ConvTranspose3d(2,2,2),r(1,2,4,4,4)
nn.MaxPool2d(2),r(1,2,4,4) nn.Conv2d(2,2,3,padding=1,padding_mode="circular"),r(1,2,4,4) nn.AvgPool1d(2),r(1,2,4)
nn.AdaptiveAvgPool2d(2),r(1,2,4,4) nn.AdaptiveMaxPool1d(2),r(1,2,4) nn.LPPool2d(2,2),r(1,2,4,4)
nn.BatchNorm2d(2),r(3,2,4,4) nn.InstanceNorm1d(2),r(3,2,4) nn.LayerNorm(4),r(2,4) nn.RMSNorm(4),r(2,4)
nn.GroupNorm(2,4),r(2,4) nn.LocalResponseNorm(2),r(1,4,2,2) nn.Dropout(),r(3) nn.Dropout2d(),r(3,2,4,4)
nn.AlphaDropout(),r(3) nn.ReflectionPad1d(1),r(1,2,4) nn.ZeroPad2d(1),r(2,3,3) nn.Linear(3,2),r(2,3)
nn.Bilinear(3,2,2),r(2,3),r(2,2) nn.LazyLinear(2),r(2,3) nn.Embedding(4,3),i(1,2) nn.EmbeddingBag(4,3),i(1,2)[None]
nn.CosineSimilarity(),r(2,3),r(2,3) nn.PairwiseDistance(),r(2,3),r(2,3) nn.PixelShuffle(2),r(1,4,2,2)
nn.Upsample(scale_factor=2),r(1,1,2,2) nn.Fold((3,3),2),r(1,4,4) nn.Unfold(2),r(1,1,3,3)
nn.MaxUnpool2d(1),r(1,1,2,2),i(0,1,2,3).view(1,1,2,2) nn.MSELoss(),r(2),r(2) nn.BCELoss(),r(2),r(2)
nn.CrossEntropyLoss(),r(2,3),i(0,1) nn.NLLLoss(),r(2,3),i(0,1) nn.TripletMarginLoss(),r(2,3),r(2,3),r(2,3)
nn.CTCLoss(),r(5,1,4),i(1,2)[None],i(5),i(2) nn.TransformerEncoderLayer(4,2,8,dropout=0.).eval().train(),r(3,1,4)
nn.MultiheadAttention(4,2,.5),r(3,1,4),r(3,1,4),r(3,1,4)
nn.MultiheadAttention(4,2,0.,kdim=2,batch_first=True),r(3,2,4),r(3,5,2),r(3,5,4)
nn.Sequential(nn.Linear(3,3),nn.ReLU(),nn.Linear(3,3),nn.GELU(),nn.Linear(3,3),nn.SiLU()),r(2,3)
"""


def called(lib: Any, made: str, patch: pytest.MonkeyPatch) -> list[str]:
    """The functions of nn.functional that a call of a layer calls, but for those that these call."""
    names = {"nn": lib.nn, "r": lambda *shape: lib.full(shape, 0.5), "i": lambda *values: lib.tensor(values)}
    layer, *arguments = eval(made, names)
    calls: list[str] = []
    depth = 0
    functional = lib.nn.functional

    def counting(name: str, function: Any) -> Any:
        def counted(*args: Any, **options: Any) -> Any:
            nonlocal depth
            if depth == 0:
                calls.append(name)
            depth += 1
            try:
                return function(*args, **options)
            finally:
                depth -= 1

        return counted

    with patch.context() as within:
        for name in F.__all__:
            if hasattr(functional, name):
                within.setattr(functional, name, counting(name, getattr(functional, name)))
        layer(*arguments)
    return calls


@pytest.mark.parametrize("made", LAYERS.split())
def test_layers_call_what_stands_in_functional(torch: Any, monkeypatch: pytest.MonkeyPatch, made: str) -> None:
    assert called(norch, made, monkeypatch) == called(torch, made, monkeypatch)


def test_a_patched_function_gives_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of layers, of a Linear and an activation that are one operation otherwise, and of recordings made before."""
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    x = norch.ones(2, 3)
    with norch.no_grad():
        recorded = norch.capture(lambda x: model(x))
        recorded(x), recorded(x)
        monkeypatch.setattr(F, "relu", lambda input, inplace=False: input * 0 + 7)
        assert (model(x) == 7).all() and (nn.ReLU()(x) == 7).all()
        assert (recorded(x) == 7).all()
        monkeypatch.undo()
        monkeypatch.setattr(F, "linear", lambda input, weight, bias=None: input * 0 - 1)
        assert (model(x) == 0).all() and (model[0](x) == -1).all()
        assert (recorded(x) == 0).all()


@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"kdim": 3, "vdim": 2, "batch_first": True}], ids=str)
def test_patched_attention_gets_what_torch_gives(
    torch: Any, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """And the function in it gives the result of the layer."""
    found = []
    for lib in (norch, torch):
        layer = lib.nn.MultiheadAttention(4, 2, **options)
        x, y, z = (lib.linspace(0, 1, 30 * n).view(5, 6, n) for n in (4, layer.kdim, layer.vdim))
        inputs = (x, x, x) if "kdim" not in options else (x, y, z)
        expected = layer(*inputs, need_weights=False)[0]
        function, given = lib.nn.functional.multi_head_attention_forward, {}

        def patched(*args: Any, given: Any = given, function: Any = function, **named: Any) -> Any:
            given["shapes"] = [tuple(x.shape) for x in args[:3]], args[0] is args[1] is args[2]
            given |= {k: tuple(v.shape) if hasattr(v, "shape") else v for k, v in named.items() if v is not None}
            return function(*args, **named)

        monkeypatch.setattr(lib.nn.functional, "multi_head_attention_forward", patched)
        out = layer(*inputs, need_weights=False)[0]
        assert out.shape == expected.shape and (out - expected).abs().max() < 1e-6
        found.append(given)
        monkeypatch.undo()
    ours, theirs = found  # PyTorch also gives what is the default
    assert ours == {key: theirs[key] for key in ours} and theirs.keys() - ours.keys() <= {"use_separate_proj_weight"}
