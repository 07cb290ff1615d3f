"""Steps and inference by norch.capture, against PyTorch's eager mode; the group "training" has norch without it."""

from __future__ import annotations

from functools import partial
from typing import Any

from . import cases_training, models
from .cases_training import ROUGHLY, article_step, mlp_step
from .library import Case, Library, Marks, Run


def lstm_step(lib: Library) -> Run:
    """One step of an LSTM of 32 units over 20 steps of 8 numbers, batch size 1: mean squared error, Adam."""
    nn = lib.module.nn
    model = nn.ModuleList([nn.LSTM(8, 32, batch_first=True), nn.Linear(32, 1)])
    for p in model.parameters():
        p.data = lib.random(*p.shape, low=-0.2, high=0.2)
    criterion = nn.MSELoss()
    optimizer = lib.module.optim.Adam(model.parameters(), lr=1e-3)
    batches = [(lib.random(1, 20, 8), lib.random(1, 1))]

    def loss_of(x: Any, target: Any) -> Any:
        return criterion(model[1](model[0](x)[0][:, -1]), target)

    return models.training(lib, model, optimizer, loss_of, batches, captured=True)


def called(lib: Library, function: Any, argument: Any, *more: Any) -> Run:
    """function(argument), captured, and what more tensors then have in .grad."""
    function = lib.captured(function)
    for _ in range(models.WARM):
        function(argument)
    return lib.repeating(lambda: (function(argument), [x.grad for x in more]), function, lambda: (argument,))


def chain(lib: Library) -> Run:
    """Ten operations on 10 numbers, forward and backward."""
    w, x = lib.random(10, grad=True), lib.random(10)

    def function(x: Any) -> Any:
        w.grad = None
        h = (w * x + 1).tanh() * w
        loss = ((h - x).exp() / (h * h + 1)).sum()
        loss.backward()
        return loss

    return called(lib, function, x, w)


def inference(lib: Library) -> Run:
    """A 784-128-64-10 perceptron on one picture."""
    nn = lib.module.nn
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    for p, drawn in zip(model.parameters(), cases_training.parameters(lib, 784, 128, 64, 10)):
        p.data = drawn

    def function(x: Any) -> Any:
        with lib.module.no_grad():
            return model(x)

    return called(lib, function, lib.random(1, 784))


def _case(name: str, setup: Any, marks: Marks, tolerance: float = 1e-4) -> Case:
    return Case("captured", name, setup, None, marks, tolerance=tolerance, variants=("replay", "compiled"))


CASES = [
    _case("the article's step, batch 1", partial(article_step, captured=True), Marks(150.0, 300.0, bare=400.0)),
    _case("ten operations on 10 numbers", chain, Marks(60.0, 80.0)),
    _case("MLP, batch 1", partial(mlp_step, batch=1, captured=True), Marks(20.0, 25.0), ROUGHLY),
    _case("MLP, batch 64", partial(mlp_step, captured=True), Marks(2.4, 2.8), ROUGHLY),
    _case("CNN, batch 64", partial(models.cnn_step, captured=True), Marks(2.3, 2.8), ROUGHLY),
    _case("GPT, batch 16", partial(models.gpt_step, captured=True), Marks(1.8, 2.2), ROUGHLY),
    _case("LSTM, batch 1", lstm_step, Marks(5.0, 8.0), ROUGHLY),
    _case("inference of the MLP, batch 1", inference, Marks(5.0, 8.0)),
]
