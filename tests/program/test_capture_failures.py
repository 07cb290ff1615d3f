"""A replay that fails in the middle: the calls before the failing one count, as those of the function itself would."""

import pytest

import norch
from norch import nn, optim

pytestmark = pytest.mark.host

FINE, WRONG = norch.tensor([1]), norch.tensor([9])


@pytest.fixture(params=["capture", "compile"])
def wrap(request):
    return getattr(norch, request.param)


def fails(function, *arguments):
    with pytest.raises(IndexError):
        function(*arguments)


def test_what_was_written_before_counts(wrap):
    """A gradient that needs it notices."""
    total, table = norch.zeros(3), norch.randn(4, 3)

    @wrap
    def add(x, i):
        total.add_(x)
        x.mul_(2)
        return table[i]

    for _ in range(5):
        add(norch.ones(3), FINE)
    for written in (total, x := norch.ones(3)):
        w = norch.ones(3, requires_grad=True)
        loss = (w * written).sum()
        fails(add, x, WRONG)
        with pytest.raises(norch.Error, match="changed in place"):
            loss.backward()


def test_random_numbers_that_were_drawn_before_count(wrap):
    table, dropout = norch.randn(4, 8), nn.Dropout(0.5)

    def f(x, i):
        return dropout(x) + table[i]

    def calls(f):
        norch.manual_seed(3)
        for _ in range(5):
            f(norch.ones(8), FINE)
        fails(f, norch.ones(8), WRONG)
        return norch.rand(3).tolist(), f(norch.ones(8), FINE).tolist()

    assert calls(wrap(f)) == calls(f)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Rprop"])
def test_steps_of_optimizers_that_were_done_before_count(name, wrap):
    def trained(wrap):
        norch.manual_seed(3)
        first, second, table = nn.Linear(3, 3), nn.Linear(3, 3), norch.randn(4, 3)
        optimizers = [getattr(optim, name)(model.parameters(), lr=0.1) for model in (first, second)]

        @wrap
        def step(x, i):
            loss = second(first(x).tanh()).square().sum()
            for one in optimizers:
                one.zero_grad()
            loss.backward()
            optimizers[0].step()
            loss = loss + table[i].sum()
            optimizers[1].step()
            return loss.detach()

        x = norch.randn(2, 3)
        for _ in range(5):
            step(x, FINE)
        fails(step, x, WRONG)
        steps = [[entry.get("step") for entry in one.state.values()] for one in optimizers]
        loss = step(x, FINE)
        return steps, loss.tolist(), [p.tolist() for model in (first, second) for p in model.parameters()]

    assert trained(wrap) == trained(lambda function: function)
