"""The models of examples/ and benchmarks/ through norch.compile: losses, gradients and buffers are those without it."""

import importlib
import random

import pytest
from test_compile import bits

import norch
from norch import nn, optim
from norch.nn import functional as F

pytestmark = pytest.mark.host


def pictures(*shape):
    return lambda: (norch.rand(4, *shape),)


def tokens(length, kinds):
    return lambda: (norch.randint(0, kinds, (2, length)), norch.arange(length))


def example(name, make):
    return lambda: getattr(importlib.import_module(f"examples.{name}"), make)()


def text():
    module = importlib.import_module("examples.tiny_gpt")
    return module.encode(module.lines(4, random.Random(0), False), "cpu")[:, :-1]


def benchmark(make):
    models = pytest.importorskip("benchmarks.models")
    return make(models)


def small_gpt(models):
    return models._gpt(nn, models.TOY)


def resnet(models):
    return models._resnet(nn, (4, 8))


def convolutions(models):
    layers = nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()
    return nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10))


def perceptron(models):
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(8, 32, batch_first=True), nn.Linear(32, 1)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


# Each: a function that makes the model, and one that makes its inputs.
MODELS = {
    "examples.digits": (example("digits", "make_model"), pictures(64)),
    "examples.cnn_digits": (example("cnn_digits", "make_model"), pictures(1, 8, 8)),
    "examples.norch_article": (example("norch_article", "Net"), lambda: (norch.rand(1, 1),)),
    "examples.linear_regression": (lambda: nn.Linear(1, 1), pictures(1)),
    "examples.tiny_gpt": (example("tiny_gpt", "GPT"), lambda: (text(),)),
    "examples.vae_digits": (example("vae_digits", "Autoencoder"), pictures(64)),
    "GPT": (lambda: benchmark(small_gpt), tokens(64, 65)),
    "ResNet": (lambda: benchmark(resnet), pictures(3, 8, 8)),
    "CNN": (lambda: benchmark(convolutions), pictures(1, 8, 8)),
    "MLP": (lambda: benchmark(perceptron), pictures(784)),
    "LSTM": (lambda: benchmark(lambda models: Recurrent()), pictures(20, 8)),
}


def steps(name, compiled):
    norch.manual_seed(2)
    norch.distributions.Distribution.set_default_validate_args(False)  # checks read elements
    make, inputs = MODELS[name]
    model = make()
    whole = model.bound if name == "examples.vae_digits" else model
    called = norch.compile(whole, fullgraph=True) if compiled else whole
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    found = []
    for _ in range(8):
        out = called(*inputs())
        loss = F.mse_loss(out, norch.ones(out.shape))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append([bits(loss), [bits(p.grad) for p in model.parameters()], [bits(b) for b in model.buffers()]])
    norch.distributions.Distribution.set_default_validate_args(True)
    return found, (called.forward if isinstance(called, nn.Module) else called)


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    eager, _ = steps(name, False)
    found, compiled = steps(name, True)
    for i, (a, b) in enumerate(zip(eager, found, strict=True)):
        assert a == b, i
    assert compiled.recordings() == 1
