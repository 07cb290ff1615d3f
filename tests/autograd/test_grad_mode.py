"""The modes of autograd, no_grad and its kin: as blocks, as decorators, around generators, one a thread."""

import threading

import pytest
from functions import leaf

import norch


def test_modes():
    x = leaf(1.0)
    with norch.no_grad():
        assert not norch.is_grad_enabled() and not (x * 2).requires_grad
        with norch.enable_grad():
            assert (x * 2).requires_grad
            with norch.set_grad_enabled(False):
                assert not (x * 2).requires_grad
            assert norch.is_grad_enabled()
        assert not norch.is_grad_enabled()
    assert norch.is_grad_enabled()
    with norch.set_grad_enabled(True):
        assert norch.is_grad_enabled()
    norch.set_grad_enabled(False)
    assert not norch.is_grad_enabled()
    norch.set_grad_enabled(True)
    with pytest.raises(KeyError), norch.no_grad():
        raise KeyError
    assert norch.is_grad_enabled()


def _inference_modes(m):
    """(inference mode, grad mode) in blocks within each other."""
    seen = []

    def look():
        seen.append((m.is_inference_mode_enabled(), m.is_grad_enabled()))

    def steps():
        look()
        yield
        look()

    for outer in (m.enable_grad, m.no_grad, m.inference_mode, lambda: m.inference_mode(False)):
        with outer():
            for inner in (m.enable_grad, m.no_grad, m.inference_mode, lambda: m.inference_mode(mode=False)):
                with inner():
                    look()
                inner()(look)()
                look()
    m.inference_mode(look)()
    list(m.inference_mode()(steps)())
    thread = threading.Thread(target=look)
    with m.inference_mode():
        thread.start()
        thread.join()
    mode = m.inference_mode()
    with pytest.raises(KeyError), mode:
        look()
        raise KeyError
    look()
    return seen, isinstance(mode, m.inference_mode), mode.mode


def test_inference_mode_is_told(torch):
    assert _inference_modes(norch) == _inference_modes(torch)


def test_a_recording_is_of_one_inference_mode():
    @norch.capture
    def told(x):
        return x * (2.0 if norch.is_inference_mode_enabled() else 3.0)

    x = norch.ones(2)
    for _ in range(4):
        with norch.no_grad():
            assert told(x).tolist() == [3.0, 3.0]
        with norch.inference_mode():
            assert told(x).tolist() == [2.0, 2.0]


def test_modes_as_decorators():
    x = leaf(1.0)

    @norch.no_grad()
    def silent():
        "about"
        return x * 2, norch.is_grad_enabled()

    @norch.no_grad
    def bare():
        return norch.is_grad_enabled()

    @norch.enable_grad()
    def loud():
        return x * 2

    @norch.set_grad_enabled(False)
    def off(n):
        return norch.is_grad_enabled() or (n > 0 and off(n - 1))

    assert norch.is_grad_enabled()
    assert not silent()[0].requires_grad and silent.__name__ == "silent" and silent.__doc__ == "about"
    assert bare() is False and not off(3)
    with norch.no_grad():
        assert loud().requires_grad
    mode = norch.no_grad()
    with mode:
        with mode:
            pass
        assert not norch.is_grad_enabled()
    assert norch.is_grad_enabled()


def test_modes_of_generators_hold_while_they_run():
    @norch.no_grad()
    def numbers():
        try:
            for _ in range(3):
                sent = yield norch.is_grad_enabled()
                assert sent in (None, "hello")
        except KeyError:
            yield norch.is_grad_enabled()
        finally:
            ends.append(norch.is_grad_enabled())
        return "end"

    def whole():
        return (yield from numbers())

    ends = []
    assert [(inside, norch.is_grad_enabled()) for inside in numbers()] == [(False, True)] * 3
    steps = numbers()
    assert next(steps) is False and steps.send("hello") is False and steps.throw(KeyError()) is False
    assert norch.is_grad_enabled()
    steps.close()
    steps = whole()
    assert [next(steps) for _ in range(3)] == [False] * 3
    with pytest.raises(StopIteration, match="end"):
        next(steps)
    assert ends == [False] * 3 and norch.is_grad_enabled()


def test_modes_are_per_thread():
    seen = []
    with norch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(norch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


WRITES = {
    "copy_": lambda x, v, i: x.copy_(v),
    "copy_ of fewer": lambda x, v, i: x.copy_(v[:1]),
    "item": lambda x, v, i: x.__setitem__(0, v[0]),
    "items": lambda x, v, i: x.__setitem__(i, v),
    "masked_fill_": lambda x, v, i: x.masked_fill_(i > 0, v[0]),
    "masked_fill": lambda x, v, i: x.masked_fill(i > 0, v[0]),
    "index_put_": lambda x, v, i: x.index_put_((i,), v),
    "index_put": lambda x, v, i: x.index_put((i,), v),
    "index_fill": lambda x, v, i: x.index_fill(0, i, 2.0),
    "index_add": lambda x, v, i: x.index_add(0, i, v),
    "index_copy_": lambda x, v, i: x.index_copy_(0, i, v),
    "scatter": lambda x, v, i: x.scatter(0, i, v),
    "scatter_": lambda x, v, i: x.scatter_(0, i, v),
    "scatter_add": lambda x, v, i: x.scatter_add(0, i, v),
    "part": lambda x, v, i: x[1:].copy_(v[1:]),
}


@pytest.mark.parametrize("mode", [norch.no_grad, norch.inference_mode])
@pytest.mark.parametrize("name", WRITES)
def test_writes_are_not_recorded(name, mode):
    leaf, values, index = norch.ones(3, requires_grad=True), norch.ones(3, requires_grad=True), norch.tensor([0, 2, 1])
    for x in (leaf, norch.zeros(3)):
        with mode():
            out = WRITES[name](x, values, index)
        assert x.is_leaf and x.requires_grad is (x is leaf) and (out is None or out.grad_fn is None)
