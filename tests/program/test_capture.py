"""norch.capture means what the function means: captured training steps equal those that are not, bit for bit."""

import importlib
import random
import warnings

import pytest

import norch
from norch import nn, optim
from norch.nn import functional as F

pytestmark = pytest.mark.host


@pytest.fixture(autouse=True)
def validation_as_it_was():
    yield
    norch.distributions.Distribution.set_default_validate_args(True)


def bits(x):
    """The elements of a tensor, so that NaN equals NaN and -0 differs from 0."""
    if not isinstance(x, norch.Tensor):
        return x
    whole = x.detach().float() if x.dtype is norch.bfloat16 else x.detach()
    return tuple(x.shape), str(x.dtype), whole.numpy().tobytes()


def state_of(modules, optimizers):
    """All that a training step changes."""
    found = []
    for module in modules:
        for name, p in module.named_parameters():
            found.append((name, bits(p), bits(p.grad)))
        found += [(name, bits(b)) for name, b in module.named_buffers()]
    for optimizer in optimizers:
        for p, entry in optimizer.state.items():
            found += [(tuple(p.shape), name, bits(value)) for name, value in sorted(entry.items())]
    return found


def run(make, steps, captured, **options):
    """What a function gives in each step, what it leaves behind, and how many recordings it has."""
    norch.manual_seed(3)
    step, arguments, modules, optimizers, after = make()
    called = norch.capture(step, **options) if captured else step
    results = []
    for i in range(steps):
        out = called(*arguments(i))
        parts = out if isinstance(out, (tuple, list)) else [out]
        results.append([bits(part) for part in parts])
        results.append(state_of(modules, optimizers))
        after(i)
    results.append(bits(norch.rand(3)))  # random numbers go on as they would
    return results, called.recordings() if captured else 0


def check(make, steps=100, recordings=1, **options):
    """Captured and not, `make`'s function does the same."""
    eager, _ = run(make, steps, False)
    captured, count = run(make, steps, True, **options)
    for i, (a, b) in enumerate(zip(eager, captured, strict=True)):
        assert a == b, f"step {i // 2}"
    assert count == recordings


def training(model, optimizer, criterion, set_to_none=True, clip=None):
    def step(x, y):
        loss = criterion(model(x), y)
        optimizer.zero_grad(set_to_none=set_to_none)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return loss

    return step


def batches(*shape, classes=None, targets=None, count=5):
    """A function of the step that gives one of a few batches."""
    made = []
    for _ in range(count):
        y = norch.randint(classes, shape[:1]) if classes else norch.randn(shape[:1] + targets)
        made.append((norch.randn(shape), y))
    return lambda i: made[i % count]


def nothing(i):
    pass


def mlp(p=0.0):
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(p), nn.Linear(8, 3))


OPTIMIZERS = {
    "sgd": lambda params: optim.SGD(params, lr=0.1),
    "momentum": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda params: optim.Adam(params, lr=0.01),
    "amsgrad": lambda params: optim.Adam(params, lr=0.01, amsgrad=True, maximize=True),
    "adamw": lambda params: optim.AdamW(params, lr=0.01),
    "rmsprop": lambda params: optim.RMSprop(params, momentum=0.5, centered=True),
    "adagrad": lambda params: optim.Adagrad(params, lr_decay=0.1),
    "adadelta": lambda params: optim.Adadelta(params, weight_decay=0.1),
    "adamax": lambda params: optim.Adamax(params, maximize=True),
    "nadam": lambda params: optim.NAdam(params, weight_decay=0.1, decoupled_weight_decay=True),
    "radam": lambda params: optim.RAdam(params, weight_decay=0.1),
    "rprop": lambda params: optim.Rprop(params),
}


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, set_to_none):
    def make():
        model = mlp(0.2)
        optimizer = OPTIMIZERS[name](model.parameters())
        step = training(model, optimizer, nn.CrossEntropyLoss(), set_to_none)
        return step, batches(4, 6, classes=3), [model], [optimizer], nothing

    check(make)


SCHEDULES = {
    "steps": lambda o: optim.lr_scheduler.StepLR(o, 7, 0.5),
    "cosine": lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 30),
    "one cycle": lambda o: optim.lr_scheduler.OneCycleLR(o, 0.2, total_steps=100),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("kind", ["momentum", "adam"])
def test_schedules(name, kind):
    def make():
        model = mlp()
        optimizer = OPTIMIZERS[kind](model.parameters())
        schedule = SCHEDULES[name](optimizer)
        step = training(model, optimizer, nn.CrossEntropyLoss())
        return step, batches(4, 6, classes=3), [model], [optimizer], lambda i: schedule.step()

    check(make)


def test_hyper_parameters_are_read_at_each_replay():
    def make():
        model = mlp()
        optimizer = optim.AdamW(
            [{"params": model[0].parameters(), "lr": 0.1}, {"params": model[3].parameters()}], lr=0.01
        )

        def change(i):
            optimizer.param_groups[0]["weight_decay"] = 0.01 * i
            optimizer.param_groups[1]["betas"] = (0.9 - 0.005 * i, 0.99)
            optimizer.param_groups[1]["eps"] = 1e-8 * (i + 1)

        step = training(model, optimizer, nn.CrossEntropyLoss())
        return step, batches(4, 6, classes=3), [model], [optimizer], change

    check(make)


def test_clipping():
    def make():
        model = mlp()
        optimizer = optim.SGD(model.parameters(), lr=0.5)
        step = training(model, optimizer, nn.CrossEntropyLoss(), clip=0.1)
        return step, batches(4, 6, classes=3), [model], [optimizer], nothing

    check(make)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_that_accumulate(set_to_none):
    def make():
        model = mlp(0.1)
        optimizer = optim.Adam(model.parameters())
        criterion = nn.CrossEntropyLoss()

        def add(x, y):
            loss = criterion(model(x), y) / 4
            loss.backward()
            return loss

        def after(i):
            if i % 4 == 3:
                optimizer.step()
                optimizer.zero_grad(set_to_none=set_to_none)

        return add, batches(4, 6, classes=3), [model], [optimizer], after

    check(make, recordings=2 if set_to_none else 1)


def test_batch_norm_and_modes():
    def make():
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        step = training(model, optimizer, nn.CrossEntropyLoss())
        return step, batches(4, 6, classes=3), [model], [optimizer], lambda i: model.train(i % 10 < 7)

    check(make, recordings=2)


def test_batch_norm_over_all_batches():
    def make():
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8, momentum=None), nn.Linear(8, 3))
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        step = training(model, optimizer, nn.CrossEntropyLoss())
        return step, batches(4, 6, classes=3), [model], [optimizer], nothing

    check(make)


def test_averages_of_weights():
    def make():
        model = mlp()
        average = mlp()
        average.load_state_dict(model.state_dict())
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        criterion = nn.CrossEntropyLoss()

        def step(x, y):
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with norch.no_grad():
                for mine, theirs in zip(average.parameters(), model.parameters(), strict=True):
                    mine.lerp_(theirs, 0.1)
            return loss

        return step, batches(4, 6, classes=3), [model, average], [optimizer], nothing

    check(make)


def test_two_optimizers_and_results_of_many_kinds():
    def make():
        one, two = nn.Linear(4, 4), nn.Linear(4, 4)
        first, second = optim.Adam(one.parameters(), lr=0.01), optim.SGD(two.parameters(), lr=0.1, momentum=0.5)

        def step(pair, *, scale):
            x, y = pair["x"], pair["y"]
            hidden = one(x)
            a = F.mse_loss(two(hidden.detach()), y)
            second.zero_grad()
            a.backward()
            second.step()
            b = F.mse_loss(two(hidden), y * scale)
            first.zero_grad()
            b.backward()
            first.step()
            return {"losses": [a, b], "scale": scale, "parts": (hidden.detach().T, None)}

        data = batches(3, 4, targets=(4,))

        def called(x, y, scale):
            return step({"x": x, "y": y}, scale=scale)

        return step, data, [one, two], [first, second], called

    eager, captured = [], []
    for wrap, found in ((lambda f: f, eager), (norch.capture, captured)):
        norch.manual_seed(3)
        step, data, modules, optimizers, _ = make()
        step = wrap(step)
        for i in range(20):
            x, y = data(i)
            out = step({"x": x, "y": y}, scale=2.0)
            assert out["scale"] == 2.0 and out["parts"][1] is None and not out["parts"][0].is_contiguous()
            found.append(
                [bits(loss) for loss in out["losses"]] + [bits(out["parts"][0]), state_of(modules, optimizers)]
            )
    assert eager == captured and step.recordings() == 1


def article():
    net = importlib.import_module("examples.norch_article").Net()
    optimizer = optim.SGD(net.parameters(), lr=0.001)
    return training(net, optimizer, nn.MSELoss()), batches(1, 1, targets=(1,)), [net], [optimizer], nothing


def digits():
    model = importlib.import_module("examples.digits").make_model()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    return training(model, optimizer, nn.CrossEntropyLoss()), batches(8, 64, classes=10), [model], [optimizer], nothing


def cnn_digits():
    model = importlib.import_module("examples.cnn_digits").make_model()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    data = batches(4, 1, 8, 8, classes=10)
    return training(model, optimizer, nn.CrossEntropyLoss()), data, [model], [optimizer], nothing


def tiny_gpt():
    module = importlib.import_module("examples.tiny_gpt")
    model = module.GPT()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    rng = random.Random(0)
    texts = [module.encode(module.lines(4, rng, False), "cpu") for _ in range(4)]

    def step(tokens):
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step, lambda i: (texts[i % 4],), [model], [optimizer], nothing


def vae():
    norch.distributions.Distribution.set_default_validate_args(False)  # checks read elements
    model = importlib.import_module("examples.vae_digits").Autoencoder()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    data = [norch.rand(4, 64) for _ in range(3)]

    def step(x):
        loss = model.bound(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step, lambda i: (data[i % 3],), [model], [optimizer], nothing


def lstm():
    model = nn.ModuleList([nn.LSTM(5, 6, batch_first=True), nn.Linear(6, 3)])
    optimizer = optim.RMSprop(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    def step(x, y):
        loss = criterion(model[1](model[0](x)[0][:, -1]), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step, batches(4, 7, 5, classes=3), [model], [optimizer], nothing


def transformer():
    model = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    return training(model, optimizer, nn.MSELoss()), batches(2, 5, 8, targets=(5, 8)), [model], [optimizer], nothing


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(4, 5, num_layers=2, dropout=0.2, bidirectional=True), nn.Linear(10, 2)

    def forward(self, x):
        return self.out(self.gru(x)[0])


class Penalty(nn.Module):
    """Derivatives of derivatives."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        x = x.clone().requires_grad_()
        y = self.second(self.first(x).tanh())
        (g,) = norch.autograd.grad(y.sum(), x, create_graph=True)
        return y + (g.norm(dim=1, keepdim=True) - 1) ** 2


class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.mix = nn.Embedding(7, 4, padding_idx=0), nn.Bilinear(4, 4, 3)

    def forward(self, x):
        index = (x.abs() * 100).long() % 7
        return self.mix(self.table(index[:, 0]), self.table(index[:, 1]))


def convolutions():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.PReLU(), nn.MaxPool2d(2),
        nn.ConvTranspose2d(4, 2, 2, stride=2), nn.Dropout2d(0.3), nn.GroupNorm(2, 2), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(2, 3),
    )  # fmt: skip


def halves():
    return nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.LayerNorm(8), nn.Linear(8, 3))


def normed():
    return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 8)), nn.ELU(), nn.Linear(8, 2))


# Model, shape of a batch, of its targets (None: three classes), criterion, dtype.
KINDS = {
    "gru": (Recurrent, (6, 3, 4), (3, 2), nn.MSELoss, None),
    "penalty": (Penalty, (5, 4), (1,), nn.MSELoss, None),
    "lookup": (Lookup, (5, 4), None, nn.CrossEntropyLoss, None),
    "convolutions": (convolutions, (4, 2, 6, 6), None, nn.CrossEntropyLoss, None),
    "float16": (halves, (5, 4), None, nn.CrossEntropyLoss, norch.float16),
    "bfloat16": (halves, (5, 4), None, nn.CrossEntropyLoss, norch.bfloat16),
    "float64": (halves, (5, 4), None, nn.CrossEntropyLoss, norch.float64),
    "weight norm": (normed, (5, 4), (2,), nn.SmoothL1Loss, None),
    "smoothed labels": (halves, (5, 4), None, lambda: nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=1), None),
    "weighted classes": (halves, (5, 4), None, lambda: nn.CrossEntropyLoss(norch.tensor([1.0, 2.0, 3.0])), None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_layers_losses_and_dtypes(kind):
    kind_of, shape, targets, criterion, dtype = KINDS[kind]

    def make():
        model = kind_of().to(dtype or norch.float32)
        optimizer = optim.Adam(model.parameters(), lr=0.01, eps=1e-4)
        data = batches(*shape, targets=targets, classes=None if targets else 3)

        def cast(i):
            return tuple(x.to(dtype) if dtype and x.is_floating_point() else x for x in data(i))

        return training(model, optimizer, criterion()), cast, [model], [optimizer], nothing

    check(make, 20)


@pytest.mark.parametrize("average", [None, optim.swa_utils.get_ema_avg_fn(0.9)], ids=["equal", "exponential"])
def test_averaged_models(average):
    def make():
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        averaged = optim.swa_utils.AveragedModel(model, avg_fn=average, use_buffers=True)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        train = training(model, optimizer, nn.MSELoss())

        def step(x, y):
            loss = train(x, y)
            averaged.update_parameters(model)
            return loss

        return step, batches(5, 4, targets=(4,)), [model, averaged], [optimizer], nothing

    check(make, 30)


MODELS = [article, digits, cnn_digits, tiny_gpt, vae, lstm, transformer]


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_models(make):
    check(make, 100 if make in (article, digits, vae) else 20)


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_memory_is_not_above_that_of_the_function(make):
    norch.manual_seed(0)
    step, arguments, *_ = make()
    captured = norch.capture(step)
    for i in range(4):
        captured(*arguments(i))
    memory = captured.program.memory()
    assert 0 < memory["temporary"] <= memory["eager"] + 64  # a block less than fits where the masks of dropout lie


@pytest.mark.parametrize("group", ["cnn_step", "gpt_step"])
def test_models_of_the_benchmarks(group):
    from benchmarks import library, models

    small = {"size": models.Text(batch=2, length=8, width=8, vocabulary=11)} if group == "gpt_step" else {}
    losses = []
    for wrap in (lambda f: f, norch.capture):
        lib = library.Library("norch")
        run = getattr(models, group)(lib, captured=wrap is norch.capture, **small)
        losses.append([bits(run()[0]) for _ in range(10 if wrap is norch.capture else 14)][-10:])
    assert losses[0] == losses[1]


def test_no_training_at_all():
    table = norch.randn(10, 4)

    def look_up(index, weights, power):
        with norch.no_grad():
            picked = table[index] * weights.unsqueeze(1)
            return picked.cumsum(0).softmax(-1) ** power, picked.sort(0)[0], norch.where(picked > 0, picked, 0.0).sum()

    captured = norch.capture(look_up)
    for i in range(12):
        index, weights = norch.randint(10, (5,)) - (5 if i % 2 else 0), norch.randn(5)
        for a, b in zip(look_up(index, weights, 2), captured(index, weights, 2), strict=True):
            assert bits(a) == bits(b)
    assert captured.recordings() == 1


def test_the_article_by_its_own_script_prints_its_losses():
    module = importlib.import_module("examples.norch_article")
    model = module.Net()
    module.start(model)
    optimizer = optim.SGD(model.parameters(), lr=0.001)
    step = norch.capture(training(model, optimizer, nn.MSELoss()))
    for known in module.KNOWN_LOSSES:
        for x, y in zip(module.XS, module.TARGETS):
            loss = step(norch.Tensor([[x]]), norch.Tensor([[y]]))
        assert abs(loss.item() - known) < module.TOLERANCE
    assert len(step.program) <= 17


@pytest.mark.parametrize("make", [optim.Adam, optim.AdamW, optim.NAdam, lambda p: optim.SGD(p, 0.1, momentum=0.9)])
def test_parameters_that_join_an_optimizer_later(make):
    results = []
    for wrap in (lambda f: f, norch.capture):
        norch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
        model[0].requires_grad_(False)
        optimizer = make(list(model.parameters()))

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        run, found = wrap(step), []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for i in range(16):
                if i == 6:
                    model[0].requires_grad_(True)
                found.append(run(norch.full((2, 2), 1.0 + i)).item())
        found += [p.tolist() for p in model.parameters()]
        if wrap is norch.capture:
            assert run.recordings() > 1
        results.append(found)
    assert results[0] == results[1]
