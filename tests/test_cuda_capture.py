"""norch.capture on a CUDA device: a replay gives the bits that the function gives."""

import pytest

import norch
from norch import nn, optim
from norch.nn import functional as F  # noqa: N812

pytestmark = pytest.mark.skipif(not norch.cuda.is_available(), reason="needs a CUDA device, or the simulated one")


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.cell(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.norm, self.out = nn.Linear(3, 12), nn.LayerNorm(4), nn.Linear(4, 2)

    def forward(self, x):
        q, k, v = self.project(x).chunk(3, -1)
        return self.out(self.norm(F.scaled_dot_product_attention(q, k, v, is_causal=True)).mean(1))


MODELS = {
    "mlp": lambda: nn.Sequential(nn.Flatten(), nn.Linear(15, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2)),
    "convolutions": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 5)),
        nn.Conv2d(1, 3, 3, padding=1),
        nn.BatchNorm2d(3),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(6, 2),
    ),
    "recurrent": Recurrent,
    "attention": Attention,
}


def train(model, captured, make_optimizer, accumulate=False):
    """Losses, parameters and buffers after nine steps with a schedule."""
    norch.manual_seed(3)
    model = MODELS[model]().to("cuda")
    optimizer = make_optimizer(model.parameters())
    schedule = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        if not accumulate:
            optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    run = norch.capture(step) if captured else step
    losses = []
    for _ in range(9):
        x, y = norch.randn(4, 5, 3).to("cuda"), norch.randint(2, (4,)).to("cuda")
        losses.append(run(x, y).item())
        schedule.step()
    if captured:
        assert run.recordings() == 1
    return losses, [value.cpu().tolist() for value in model.state_dict().values()]


@pytest.mark.parametrize("model", list(MODELS))
def test_training_is_that_of_the_function(model):
    def adam(parameters):
        return optim.Adam(parameters, lr=0.05)

    assert train(model, True, adam) == train(model, False, adam)


def test_gradients_add_up_over_steps():
    def sgd(parameters):
        return optim.SGD(parameters, lr=0.05, momentum=0.9)

    assert train("mlp", True, sgd, accumulate=True) == train("mlp", False, sgd, accumulate=True)


def test_results_are_the_callers():
    @norch.capture
    def step(x):
        return x + 1, (x * 2).sum()

    results = [step(norch.full((100,), float(i), device="cuda")) for i in range(7)]
    for i, (vector, total) in enumerate(results):
        assert vector.device.type == "cuda"
        assert vector.tolist() == [i + 1.0] * 100
        assert total.item() == 200.0 * i


def test_one_function_is_recorded_for_each_device():
    @norch.capture
    def double(x):
        return x * 2

    for device in ("cpu", "cuda") * 4:
        y = double(norch.ones(3, device=device))
        assert (y.device.type, y.tolist()) == (device, [2.0, 2.0, 2.0])
    assert double.recordings() == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda x: x * x.sum().item(), "Python reads the elements of a tensor"),
        (lambda x: x + norch.ones(3).to(x.device), "copied from the host to a device"),
        (lambda x: (x * 2, norch.ones(3) * 2), "it computes on two devices"),
        (lambda x: x.int() // x.int(), "integer divisors on a device are read"),
    ],
    ids=["item", "to", "two devices", "divisors"],
)
def test_what_is_refused(wrong, message):
    step = norch.capture(wrong)
    with pytest.raises(norch.errors.CaptureError, match=message):
        for _ in range(4):
            step(norch.ones(3, device="cuda"))


def test_an_index_that_is_out_of_range_is_told_after_a_replay():
    @norch.capture
    def pick(x, index):
        return x.index_select(0, index)

    x = norch.arange(4.0, device="cuda")
    for _ in range(5):
        assert pick(x, norch.tensor([3, 0], device="cuda")).tolist() == [3.0, 0.0]
    with pytest.raises(IndexError, match="index 4 is out of range for size 4"):
        pick(x, norch.tensor([3, 4], device="cuda")).tolist()
    assert pick(x, norch.tensor([1, 2], device="cuda")).tolist() == [1.0, 2.0]


def replayed(function, *arguments):
    """The function's recording, replayed often enough that its graphs are there."""
    captured = norch.capture(function)
    for _ in range(6):
        captured(*arguments)
    assert captured.recordings() == 1
    return captured


def test_a_step_is_one_graph_and_the_optimizer():
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)).to("cuda")
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    captured = replayed(step, norch.randn(4, 6, device="cuda"), norch.randint(2, (4,), device="cuda"))
    calls = captured.program.calls()
    (graph,) = captured.program.graphs()
    assert [calls[i][0] for i in range(len(calls)) if i not in graph] == ["optimizer sgd"]
    assert "1 graph, " in str(captured.program).splitlines()[0]
    assert (
        len(captured.profile(norch.randn(4, 6, device="cuda"), norch.randint(2, (4,), device="cuda")).splitlines()) > 3
    )


@pytest.mark.parametrize("how", ["as it is", "transposed", "a part"])
def test_arguments_that_graphs_read(how):
    def take(x, y):
        z = (x * 2 + y).exp()
        return z.sum(0), (z - x).tanh(), y * x

    def arguments():
        x = {"as it is": (3, 4), "transposed": (4, 3), "a part": (5, 4)}[how]
        x = norch.randn(*x).to("cuda")
        return {"as it is": x, "transposed": x.T, "a part": x[1:4]}[how], norch.randn(4).to("cuda")

    captured = replayed(take, *arguments())
    for _ in range(3):
        x, y = arguments()
        for mine, theirs in zip(captured(x, y), take(x, y), strict=True):
            assert mine.tolist() == theirs.tolist()
    whole = list(range(len(captured.program)))
    assert captured.program.graphs() == ([[1, 2, 3]] if how == "transposed" else [whole])  # else x is taken in between


def test_arguments_that_graphs_do_not_read():
    def writes(x):
        y = (x * 2).exp()
        x.add_(1)
        return (x * 2).exp() + y

    captured = replayed(writes, norch.randn(5).to("cuda"))
    x = norch.randn(5)
    mine, theirs = x.to("cuda"), x.to("cuda")
    assert captured(mine).tolist() == writes(theirs).tolist() and mine.tolist() == theirs.tolist()
    assert captured.program.graphs() == []

    def reads(x):
        return (x + 1).sum(), (x - 1).sum(), (x * 2).sum(), (x * 3).sum()

    large = norch.ones(1 << 19, device="cuda")  # 2 MiB: copying would take longer than launches
    assert replayed(reads, large).program.graphs() == []
    assert [len(graph) for graph in replayed(reads, large[:100].clone()).program.graphs()] == [8]
    alone = replayed(lambda x: x + 1, large[:100].clone())
    assert alone.program.graphs() == [] and alone(large[:100].clone()).tolist() == [2.0] * 100


def test_two_arguments_over_one_storage():
    def take(x, y):
        return ((x + y).exp() * x - y).tanh() + x

    def arguments():
        both = norch.randn(12).to("cuda")
        return both[:6], both[6:]

    captured = replayed(take, *arguments())
    x, y = arguments()
    assert captured(x, y).tolist() == take(x, y).tolist()
    assert len(captured.program.graphs()) == 1


def test_numbers_in_graphs():
    scale = norch.tensor(2.0)  # of the host, and read anew

    def take(x):
        y = x * 3 - 1
        y = (y + 0.5).exp() * 0.25
        return (y * scale).sqrt() + 1

    captured, x = replayed(take, norch.rand(5).to("cuda")), norch.rand(5).to("cuda")
    names = [name for name, *_ in captured.program.calls()]
    assert captured.program.graphs() == [[1, 2, 3, 4]] and names[5:] == ["mul", "sqrt", "add"]
    for value in (2.0, 7.0):
        scale.fill_(value)
        assert captured(x).tolist() == take(x).tolist()


def test_integers_divided_by_a_number():
    def take(x):
        return ((x // 3) * 2 % 5 + x).cumsum(0)

    captured, x = replayed(take, norch.arange(9, device="cuda")), norch.arange(9, 18, device="cuda")
    assert captured(x).tolist() == take(x).tolist() and len(captured.program.graphs()[0]) == len(captured.program)


def test_an_index_of_a_graph_that_is_out_of_range_is_told():
    def take(x, index):
        y = x[index] * 2
        return (y + 1).sum(), (y - 1).exp() + x[index] * x.sum()

    x, index = norch.randn(5, 3).to("cuda"), norch.tensor([0, 4], device="cuda")
    captured = replayed(take, x, index)
    assert len(captured.program.graphs()[0]) == len(captured.program)
    with pytest.raises(IndexError, match="index 7 is out of range for size 5"):
        captured(x, norch.tensor([0, 7], device="cuda"))[0].item()
    for mine, theirs in zip(captured(x, index), take(x, index), strict=True):
        assert mine.tolist() == theirs.tolist()
