"""Results of replays: a small one that nothing refers to is given again, one that is in use never."""

import gc
import weakref

import pytest

import norch

pytestmark = pytest.mark.host


def doubles():
    captured = norch.capture(lambda x: 2 * x)
    for i in range(6):
        captured(norch.full((3,), float(i)))
    return captured


def call(double, value):
    return double(norch.full((3,), float(value)))


def test_a_forgotten_result_is_given_again():
    double = doubles()
    place = id(call(double, 1))
    assert id(call(double, 2)) == place
    result = call(double, 3)
    for value in range(4, 8):  # the result before is dropped after the call
        result = call(double, value)
        assert result.tolist() == [2.0 * value] * 3


def test_results_that_are_kept_stay():
    double = doubles()
    results = [call(double, value) for value in range(6)]
    assert [result.tolist() for result in results] == [[2.0 * value] * 3 for value in range(6)]


@pytest.mark.parametrize("part", [lambda y: y[:2], lambda y: y.detach(), lambda y: y.numpy()])
def test_a_view_of_a_result_stays(part):
    double = doubles()
    views = [part(call(double, value)) for value in range(5)]
    assert [view[1] for view in views] == [2.0 * value for value in range(5)]


def _write(y):
    y.mul_(norch.ones(3, requires_grad=True))


def _set_attribute(y):
    y.name = "loss"


def _replace(y):
    y.data = norch.zeros(2)


def _add_gradient(y):
    y.grad = norch.ones(3)


@pytest.mark.parametrize("change", [_write, _set_attribute, _replace, _add_gradient, norch.Tensor.requires_grad_])
def test_a_changed_result_is_not_given_again(change):
    double = doubles()
    for value in range(5):
        y = call(double, value)
        assert not y.requires_grad and y.grad is None and not hasattr(y, "name")
        assert y.tolist() == [2.0 * value] * 3
        change(y)
        del y


def test_weak_references_to_results_die():
    double = doubles()
    ended = []
    for value in range(5):
        y = call(double, value)
        weakref.finalize(y, ended.append, value)
        del y
    assert ended == [0, 1, 2]  # the last two are kept


def test_kept_results_are_freed_with_the_recording():
    double = doubles()
    call(double, 1)
    gc.collect()
    before = norch._binding.library.lib.norch_live_storages()
    double.reset()
    gc.collect()
    assert norch._binding.library.lib.norch_live_storages() < before


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: x.T @ x,
        lambda x, w: x @ x.T,
        lambda x, w: x @ w,
        lambda x, w: x[x.shape[0] :] @ w,
        lambda x, w: x[x.shape[0] :].T @ x[x.shape[0] :],
        lambda x, w: x[:, 4:] @ w[4:],
        lambda x, w: norch.bmm(x.reshape(-1, 2, 2), x.reshape(-1, 2, 2)),
        lambda x, w: norch.einsum("ij,ik->jk", x, x + 1),
        lambda x, w: norch.cat([x, x * 2]).softmax(-1),
        lambda x, w: norch.nn.functional.conv2d(x.reshape(-1, 1, 2, 2), w.reshape(8, 1, 1, 1)),
    ],
)
def test_empty_batches_are_recorded(function, rows):
    captured, w = norch.capture(function), norch.arange(8.0).reshape(4, 2)
    for i in range(5):
        for x in (norch.full((rows, 4), i + 1.0), norch.full((rows + 3, 4), i + 1.0)[3:]):
            assert norch.equal(captured(x, w), function(x, w))
    assert captured.recordings() == 1
    gradients = []
    for wrap in (lambda step: step, norch.capture):
        leaf = norch.zeros(4, 2, requires_grad=True)
        step = wrap(lambda x, leaf=leaf: (function(x, leaf).sum() + (leaf * 2).sum()).backward())
        for _ in range(5):
            step(norch.ones(rows, 4))
        gradients.append(leaf.grad)
    assert norch.equal(*gradients)


class Keeps:
    """Stores a tensor, and reads it there: it is the same one after each replay."""

    def f(self, x):
        self.kept = x * 2
        return self.kept + 1

    def __init__(self):
        self.call = norch.capture(self.f)

    def __call__(self, x):
        self.call(x)
        return self.kept


OVERWRITTEN = {
    "result": lambda: norch.capture(lambda x: x * 2, copy=False),
    "view": lambda: norch.capture(lambda x: (x * 2).reshape(2, 1), copy=False),
    "stored": Keeps,
}


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_a_gradient_that_needs_what_a_replay_overwrites_notices(name):
    call, values = OVERWRITTEN[name](), []
    for i in range(6):
        result, w = call(norch.full((2,), float(i))), norch.ones(2, requires_grad=True)
        values.append(((w * result.flatten()).sum(), w, i * 2.0))
    *earlier, (last, w, value) = values
    last.backward()
    assert w.grad.tolist() == [value] * 2
    for loss, w, value in earlier:
        try:
            loss.backward()
        except norch.Error as error:
            assert "changed in place" in str(error)
        else:
            assert w.grad.tolist() == [value] * 2
