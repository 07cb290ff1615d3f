"""norch.capture on a CUDA device: a replay gives the bits that the function gives."""

import struct

import pytest
from simulated import SIMULATION, launches

import norch
from norch import nn, optim
from norch._binding.library import lib
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
    ],
    ids=["item", "to", "two devices"],
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


def bits(x):
    if isinstance(x, (tuple, list)):
        return [bits(part) for part in x]
    plain = x.detach().cpu()
    found = (plain.float() if x.dtype in (norch.float16, norch.bfloat16) else plain).numpy().copy()
    found[found != found] = 0  # a NaN's sign is nobody's, and that there is one is said beside  # noqa: PLR0124
    return str(x.dtype), norch.isnan(plain).tolist(), found.tobytes()


def chains(captured):
    calls = captured.program.calls()
    return [[calls[i][0] for i in chain] for chain in captured.program.chains()]


def replayed(function, *arguments):
    """The function's recording, replayed often enough that its graphs are there."""
    captured = norch.capture(function)
    for _ in range(6):
        captured(*arguments)
    assert captured.recordings() == 1
    return captured


def test_a_step_is_listed_and_timed():
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)).to("cuda")
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    captured = replayed(step, norch.randn(4, 6, device="cuda"), norch.randint(2, (4,), device="cuda"))
    assert captured.program.graphs() == [list(range(len(captured.program)))]
    assert "1 graph, " in str(captured.program).splitlines()[0]
    assert (
        len(captured.profile(norch.randn(4, 6, device="cuda"), norch.randint(2, (4,), device="cuda")).splitlines()) > 3
    )


@pytest.mark.parametrize("how", ["as it is", "transposed", "a part"])
def test_arguments_that_graphs_read(how):
    def take(x, y):
        z = (x * 2 + y).exp()
        return z.cumsum(0).cumsum(0).cumsum(0), (z - x).tanh(), y * x

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
    assert captured.program.graphs() == (
        [[2, 3, 4, 5]] if how == "transposed" else [whole]
    )  # else x is taken in between


def test_bits_are_those_of_the_function_for_arguments_that_begin_anywhere():
    """Kernels add up rows at a multiple of 16 bytes in another order, so that a copy must not lie at one instead."""

    def function(x):
        return F.layer_norm(x, (200,)), x.softmax(-1), x.var(-1)

    captured, base = norch.capture(function), norch.randn(1000).to("cuda")
    for _ in range(7):
        for offset in (0, 1, 2, 4, 7, 200):
            x = base[offset : offset + 200].reshape(1, 200)
            for ours, expected in zip(captured(x), function(x), strict=True):
                assert bits(ours) == bits(expected), offset


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
        return x.cumsum(0), x.cumprod(0), x.softmax(0), x.log_softmax(0)

    large = norch.ones(1 << 19, device="cuda")  # 2 MiB: copying would take longer than launches
    assert replayed(reads, large).program.graphs() == []
    assert replayed(reads, large[:100].clone()).program.graphs() == [[0, 1, 2, 3]]
    alone = replayed(lambda x: x + 1, large[:100].clone())
    assert alone.program.graphs() == [] and alone(large[:100].clone()).tolist() == [2.0] * 100


def test_two_arguments_over_one_storage():
    def take(x, y):
        return ((x + y).exp() * x - y).sum(), x.cumsum(0), y.softmax(0)

    def arguments():
        both = norch.randn(16).to("cuda")
        return both[:8], both[8:]

    captured = replayed(take, *arguments())
    x, y = arguments()
    assert bits(captured(x, y)) == bits(take(x, y))
    assert len(captured.program.graphs()) == 1


def test_numbers_in_graphs_and_chains():
    scale = norch.tensor(2.0)  # of the host, and read anew

    def take(x):
        y = ((x * 3 - 1).cumsum(0) * 0.25).cumsum(0)
        return ((y + 0.5) * scale).sqrt() + 1

    captured, x = replayed(take, norch.rand(5).to("cuda")), norch.rand(5).to("cuda")
    assert chains(captured) == [["mul", "sub"], ["add", "mul", "sqrt", "add"]]
    assert captured.program.graphs() == [[2, 3, 4]]
    for value in (2.0, 7.0):
        scale.fill_(value)
        assert bits(captured(x)) == bits(take(x))


def test_integers_divided_by_a_number():
    def take(x):
        return ((x // 3) * 2 % 5 + x).cumsum(0)

    captured, x = replayed(take, norch.arange(9, device="cuda")), norch.arange(9, 18, device="cuda")
    assert captured(x).tolist() == take(x).tolist() and len(captured.program.graphs()[0]) == len(captured.program)


def test_integer_divisors_and_conditions_are_checked_in_replays():
    def take(x, divisor, p, y):
        return (x // divisor + x % divisor).cumsum(0), F.binary_cross_entropy(p, y)

    def arguments(divisor=3, p=0.5):
        x = (
            norch.randint(-20, 20, (6,)),
            norch.tensor([1, -2, 7, divisor, 5, -1]),
            norch.tensor([0.1, p]),
            norch.ones(2),
        )
        return [one.to("cuda") for one in x]

    captured = replayed(take, *arguments())
    assert captured.program.graphs() == [list(range(len(captured.program)))]
    for wrong, error, message in [
        ({"divisor": 0}, ZeroDivisionError, "integer division by zero"),
        ({"p": 1.5}, ValueError, "binary_cross_entropy: all elements of input and target must lie between 0 and 1"),
    ]:
        with pytest.raises(error, match=message):
            take(*arguments(**wrong))
        result = captured(*arguments(**wrong))
        with pytest.raises(error, match=message + r" \(an earlier operation on cuda:0\)"):
            result[0].tolist()
        given = arguments()
        assert bits(captured(*given)) == bits(take(*given))


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


# ---- launches ---------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(8), nn.LayerNorm(8)
        self.project, self.out, self.drop = nn.Linear(8, 24), nn.Linear(8, 8), nn.Dropout(0.2)
        self.mlp = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8), nn.Dropout(0.2))

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.project(self.first(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.drop(self.out(y))
        return x + self.mlp(self.second(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 8), nn.Embedding(6, 8)
        self.blocks, self.out = nn.Sequential(Block(), Block()), nn.Linear(8, 11)

    def forward(self, x):
        return self.out(self.blocks(self.tokens(x) + self.places.weight)).flatten(0, 1)


STEPS = {
    "article": (
        lambda: nn.Sequential(nn.Linear(1, 10), nn.Sigmoid(), nn.Linear(10, 1)),
        lambda: (norch.randn(4, 1), norch.randn(4, 1)),
        F.mse_loss,
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    ),
    "mlp": (
        lambda: nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)),
        lambda: (norch.randn(4, 12), norch.randint(3, (4,))),
        F.cross_entropy,
        lambda p: optim.Adam(p, lr=0.01),
    ),
    "cnn": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
        ),
        lambda: (norch.randn(2, 1, 8, 8), norch.randint(3, (2,))),
        F.cross_entropy,
        lambda p: optim.AdamW(p, lr=0.01),
    ),
    "gpt": (
        GPT,
        lambda: (norch.randint(11, (2, 6)), norch.randint(11, (12,))),
        F.cross_entropy,
        lambda p: optim.AdamW(p, lr=0.01),
    ),
}


def test_options_that_look_like_addresses():
    """The simulation refuses addresses of the host among a kernel's arguments; data that come with them are none."""
    model, x = nn.Linear(3, 2).to("cuda"), norch.ones(4, 3).to("cuda")
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    def step(x):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    captured = norch.capture(step)
    for _ in range(7):
        captured(x)
    assert captured.recordings() == 1 and captured.program.graphs()
    (optimizer.param_groups[0]["lr"],) = struct.unpack("d", struct.pack("Q", id(x)))
    before = model.weight.tolist()
    captured(x)
    assert model.weight.tolist() == before  # the rate is below the least float32


@pytest.mark.parametrize("name", list(STEPS))
def test_a_training_step_is_one_graph(name):
    """Beside it a launch moves the arguments, the options of the optimizer and the position of the random numbers."""
    make_model, draw, criterion, make_optimizer = STEPS[name]

    def train(captures):
        norch.manual_seed(0)
        model = make_model().to("cuda")
        optimizer = make_optimizer(model.parameters())
        schedule = optim.lr_scheduler.StepLR(optimizer, 1, 0.7)

        def step(x, y):
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        run, losses = norch.capture(step) if captures else step, []
        for _ in range(7):
            losses.append(run(*(x.to("cuda") for x in draw())).item())
            schedule.step()
        state = bits(list(model.state_dict().values())), norch.rand(3, device="cuda").tolist()
        if captures:
            assert run.program.graphs() == [list(range(len(run.program)))]
            batch = [x.to("cuda") for x in draw()]
            if SIMULATION:
                assert launches(lambda: run(*batch)) == (1, 1)
        return losses, state

    assert train(True) == train(False)


@pytest.mark.parametrize("shape", [(4, 5), (9000,)], ids=["plain", "with scratch memory"])
def test_memory_that_runs_out_while_graphs_are_made(shape):
    def take(x):
        y = F.dropout(x.cumsum(0), 0.5)
        return (y * 2 + 1).sum(0), y.softmax(0)

    def arguments():
        return norch.randn(shape).to("cuda")

    for n in range(100):
        captured = norch.capture(take)
        for _ in range(4):
            captured(arguments())
        norch.cuda.empty_cache()
        lib.norch_fail_allocation(n)
        try:
            captured(arguments())
            failed = False
        except MemoryError:
            failed = True
        finally:
            lib.norch_fail_allocation(-1)
        for _ in range(2):
            x, state = arguments(), norch.cuda.get_rng_state()
            mine = bits(captured(x))
            norch.cuda.set_rng_state(state)
            assert mine == bits(take(x))
        if not failed and n > 12:
            break
    assert captured.program.graphs() == [list(range(len(captured.program)))]
