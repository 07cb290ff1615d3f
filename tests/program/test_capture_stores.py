"""Calls that norch.capture leaves out: those that nobody reads, and stores that are overwritten before anybody does."""

import pytest

import norch

pytestmark = pytest.mark.host


def bits(x):
    if isinstance(x, tuple):
        return [bits(part) for part in x]
    return tuple(x.shape), x.detach().contiguous().numpy().tobytes()


def made(function, *arguments, **options):
    captured = norch.capture(function, **options)
    for _ in range(4):
        captured(*arguments)
    assert captured.recordings() == 1
    return captured


def operations(captured):
    return [call[0] for call in captured.program.calls()]


def overwritten(x):
    y = norch.zeros(40, 6)
    y.copy_(x)
    return y + 1


def overwritten_row_by_row(x):
    y = norch.zeros(5, 6)
    for i in range(5):
        y[i] = x[i]
    return y * 2


def overwritten_from_the_last_row(x):
    y = norch.zeros(3, 6)
    for i in reversed(range(3)):
        y[i] = x[i]
    return y * 2


def overwritten_as_a_result(x):
    y = norch.zeros(40, 6)
    y.copy_(x)
    return y


def overwritten_twice(x):
    y = x.clone()
    y.fill_(3.0)
    y.copy_(x)
    return y * 2


def overwritten_in_another_order(x):
    y = norch.zeros(6, 40)
    y.T.copy_(x)
    return y * 2


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (overwritten, ["copy", "add"]),
        (overwritten_row_by_row, ["copy"] * 5 + ["mul"]),
        (overwritten_from_the_last_row, ["copy"] * 3 + ["mul"]),
        (overwritten_as_a_result, ["copy"]),
        (overwritten_twice, ["copy", "mul"]),
        (overwritten_in_another_order, ["copy", "mul"]),
    ],
)
@pytest.mark.parametrize("fuse", [True, False])
def test_stores_that_are_overwritten(function, calls, fuse):
    captured = made(function, norch.randn(40, 6), fuse=fuse)
    assert operations(captured) == calls
    x = norch.randn(40, 6)
    assert bits(captured(x)) == bits(function(x))


def read_between(x):
    y = norch.zeros(40, 6)
    z = y + 1
    y.copy_(x)
    return y * z


def overwritten_in_part(x):
    y = norch.zeros(41, 6)
    y[:40] = x
    return y * 2


def overwritten_with_a_gap(x):
    y = norch.zeros(40, 6)
    y[:10] = x[:10]
    y[20:] = x[20:]
    return y * 2


def added_to(x):
    y = norch.zeros(40, 6)
    y += x
    return y * 2


def added_to_once_overwritten(x):
    y = norch.zeros(40, 6)
    y.copy_(x)
    y.mul_(y)
    return y * 2


def columns_overwritten(x):
    y = norch.zeros(40, 6)
    y[:, :3] = x[:, :3]
    return y * 2


def summed_up_by_index(x):
    y = norch.zeros(40, 6)
    return y.index_add_(0, norch.tensor([0, 1, 1]), x[:3])


def an_argument_overwritten(x):
    x.fill_(2.0)
    x.copy_(norch.ones(40, 6))
    return x * 2


@pytest.mark.parametrize(
    ("function", "removed"),
    [
        (read_between, 0),
        (overwritten_in_part, 0),
        (overwritten_with_a_gap, 0),
        (added_to, 0),
        (added_to_once_overwritten, 1),
        (columns_overwritten, 0),
        (summed_up_by_index, 0),
        (an_argument_overwritten, 0),  # other tensors may lie there, and a run that fails shows it
    ],
)
def test_stores_that_are_read(function, removed):
    captured = made(function, norch.randn(40, 6))
    x = norch.randn(40, 6)
    with norch.profiler.profile() as seen:
        wanted = function(x)
    recorded = sum(row.count for row in seen.key_averages())
    assert bits(captured(x)) == bits(wanted)
    assert len(captured.program) == recorded - removed


def test_gradients_that_nobody_asks_for():
    def both(x, w):
        y = ((x @ w).exp() @ w).sum()
        of_x, of_w = norch.autograd.grad(y, (x, w))
        return of_x

    def one(x, w):
        return norch.autograd.grad(((x @ w).exp() @ w).sum(), x)[0]

    x, w = norch.randn(7, 5).requires_grad_(), norch.randn(5, 5).requires_grad_()
    captured = made(both, x, w)
    assert operations(captured) == operations(made(one, x, w))
    assert bits(captured(x, w)) == bits(one(x, w))


def constants_of_numbers(x):
    scale = norch.full((2,), 3.0) * 0.5  # a copy and a product
    return x * scale.neg()


def first_gradients(x):
    w = norch.ones(2, requires_grad=True)
    ((w * x) ** 2).mean().backward()  # the gradient of the mean starts with 1 and 1 / 2
    return w.grad


def filled_and_written(x):
    y = norch.zeros(2)
    z = y + 1
    y += x
    return y * z


def read_from_a_tensor(x):
    return norch.zeros(2) + x[0]


def large(x):
    return norch.ones(40) * x[0]


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (constants_of_numbers, ["mul"]),
        (first_gradients, ["mul", "mul", "mul", "mul"]),
        (filled_and_written, ["copy", "add", "add", "mul"]),
        (read_from_a_tensor, ["add"]),
        (large, ["copy", "mul"]),
    ],
)
def test_small_results_of_numbers_are_computed_once(function, left):
    given = [norch.tensor([float(i), -0.5 * i]) for i in range(7)]
    captured = made(function, given[0])
    assert operations(captured) == left
    for x in given:
        assert bits(captured(x)) == bits(function(x))


def number_added_to(x):
    factor = norch.tensor(2.0)
    factor += x.sum()
    return x * factor


def list_multiplied(x):
    y = norch.tensor([[1.0, 2.0, 3.0]] * 20)
    y *= x
    y[0] = 5
    return y


def row_of_counts(x):
    y = norch.arange(60).view(20, 3)
    row = y[0]
    row += 1
    return y + x


def read_and_cleared(x):
    y = norch.linspace(0, 1, 3)
    z = y + x
    y.zero_()
    return z + y


def indices_moved(x):
    at = norch.tensor([0, 2])
    y = x[:, at]
    at -= 1
    return y + x[:, at]


def mask_inverted(x):
    mask = norch.tensor([True, False, True])
    mask ^= True
    return x.masked_fill(mask, -1)


def triangle_moved(x):
    rows = norch.triu_indices(3, 3)
    rows += 1
    return x[rows[0]] + rows[1].sum()


def returned(x):
    y = norch.tensor([1.0, 2.0, 3.0])
    return y, y.add_(x[0])


@pytest.mark.parametrize(
    "function",
    [number_added_to, list_multiplied, row_of_counts, read_and_cleared, indices_moved, mask_inverted, triangle_moved,
     returned],
)  # fmt: skip
def test_tensors_of_numbers_are_written_to(function):
    """Each replay begins with the numbers again."""
    captured = made(function, norch.ones(20, 3))
    for number in (2.0, -3.0, 0.5):
        x = norch.full((20, 3), number)
        assert bits(captured(x)) == bits(function(x))


def test_tensors_of_numbers_that_are_only_read_are_not_copied():
    captured = made(lambda x: x + norch.tensor([[float(i) for i in range(50)]] * 20), norch.ones(20, 50))
    assert operations(captured) == ["add"]


@pytest.mark.parametrize("kind", ["argument", "closure", "gradient"])
def test_another_view_of_the_same_storage_is_another_tensor(kind):
    both = norch.arange(1.0, 5.0)
    w, x = norch.nn.Parameter(both[:2]), norch.zeros(2)
    w.grad = both[:2]
    functions = {
        "argument": lambda x, w=w: (x + w).detach(),
        "closure": lambda x: (x + w).detach(),
        "gradient": lambda x: x + w.grad,
    }
    step = norch.capture(functions[kind])
    for place in (both[:2], both[2:], both[1:3], both[:2]):
        with norch.no_grad():
            if kind == "gradient":
                w.grad = place
            else:
                w.data = place
            for _ in range(5):
                assert step(x).tolist() == place.tolist()


@pytest.mark.parametrize(
    ("make", "option", "value"),
    [
        (norch.optim.Adam, "amsgrad", True),
        (norch.optim.AdamW, "amsgrad", True),
        (norch.optim.SGD, "momentum", 0.9),
        (norch.optim.SGD, "nesterov", True),
        (norch.optim.SGD, "maximize", True),
        (norch.optim.Adam, "weight_decay", 0.5),
        (norch.optim.Adam, "betas", (0.5, 0.6)),
        (norch.optim.RMSprop, "centered", True),
        (norch.optim.RMSprop, "momentum", 0.9),
    ],
)
@pytest.mark.parametrize("replayed", [5, 1])
def test_an_option_that_is_set_after_the_recording(make, option, value, replayed):
    found = []
    for wrap in (lambda f: f, norch.capture):
        w = norch.tensor([1.0, -2.0], requires_grad=True)
        optimizer = make([w], lr=0.1, **({"momentum": 0.5} if option == "nesterov" else {}))

        def step(x, w=w, optimizer=optimizer):
            optimizer.zero_grad()
            ((w * x) ** 2).sum().backward()
            optimizer.step()
            return w.detach() * 1

        called, seen = wrap(step), []
        for i in range(14):
            if i == replayed + 3:
                optimizer.param_groups[0][option] = value
            seen.append([called(norch.tensor([4.0 / (i + 1), 1.0 + i % 3])).tolist(), w.grad.tolist()])
        found.append(seen)
    assert found[0] == found[1]
