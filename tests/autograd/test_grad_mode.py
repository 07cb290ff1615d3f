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
