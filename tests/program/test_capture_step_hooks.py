"""Hooks of optimizers' steps, an optimizer's own and global ones, that come and go while a step is replayed."""

import pytest

import norch
from norch import optim
from norch.optim import optimizer as optimizers


def halved(w):
    return lambda *_: [w.grad.mul_(0.5)] and None


def doubled(w):
    return lambda *_: [w.data.mul_(2)] and None


WAYS = {
    "own, before": lambda o, w: o.register_step_pre_hook(halved(w)),
    "own, after": lambda o, w: o.register_step_post_hook(doubled(w)),
    "global, before": lambda o, w: optimizers.register_optimizer_step_pre_hook(halved(w)),
    "global, after": lambda o, w: optimizers.register_optimizer_step_post_hook(doubled(w)),
}


@pytest.mark.parametrize("earlier", ["none", *WAYS])
@pytest.mark.parametrize("add", WAYS)
def test_hooks_that_come_and_go(add, earlier):
    """earlier: a hook that was there before the recording; with it steps call hooks, and look for others."""
    found = []
    for wrap in (lambda f: f, norch.capture):
        w = norch.ones(2, requires_grad=True)
        optimizer = optim.SGD([w], lr=0.1)
        if earlier != "none":
            WAYS[earlier](optimizer, w).remove()

        def step(x, w=w, optimizer=optimizer):
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()

        called, seen = wrap(step), []
        for change in ("nothing", "add", "remove", "add", "remove"):
            if change == "add":
                handle = WAYS[add](optimizer, w)
            elif change == "remove":
                handle.remove()
            for i in range(5):
                called(norch.full((2,), float(i)))
                seen.append(w.tolist())
        found.append(seen)
    assert found[0] == found[1]
    assert called.recordings() >= 2
