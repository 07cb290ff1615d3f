"""Exercise of chapter 4: two optimizer steps. Run this file; it says what is
wrong until both are right."""

import norch


def nesterov(p, g, velocity, lr, momentum):
    """A step of SGD with Nesterov's momentum, in place, without weight decay.
    The velocity becomes momentum * velocity + g, and p moves by -lr * (g +
    momentum * velocity). p, g and velocity have one shape."""
    raise NotImplementedError("nesterov: mul_, add_ and sub_ write in place")


def adamw(p, g, m, v, t, lr, beta1, beta2, eps, weight_decay):
    """Step t (1 for the first) of AdamW, in place. p shrinks by the factor 1 -
    lr * weight_decay, and then moves as with Adam, whose averages m and v see g
    alone."""
    raise NotImplementedError("adamw: Adam's step is in the chapter")


def check(nesterov, adamw):
    """Raises an AssertionError that says what is wrong: the parameters after
    five steps, against norch's optimizers."""
    norch.manual_seed(0)
    begin, slopes = norch.randn(4), norch.rand(5, 4) * 2 - 0.5

    def reference(make):
        p = norch.nn.Parameter(begin.clone())
        optimizer = make([p])
        for g in slopes:
            p.grad = g.clone()
            optimizer.step()
        return p.detach()

    p, velocity = begin.clone(), norch.zeros(4)
    for g in slopes:
        nesterov(p, g, velocity, lr=0.1, momentum=0.9)
    wanted = reference(
        lambda params: norch.optim.SGD(
            params, lr=0.1, momentum=0.9, nesterov=True
        )
    )
    assert norch.allclose(p, wanted, atol=1e-6), (
        f"nesterov: after five steps p is {p.tolist()}, not {wanted.tolist()}"
    )

    p, m, v = begin.clone(), norch.zeros(4), norch.zeros(4)
    for t, g in enumerate(slopes, 1):
        adamw(
            p,
            g,
            m,
            v,
            t,
            lr=0.1,
            beta1=0.9,
            beta2=0.99,
            eps=1e-8,
            weight_decay=0.3,
        )
    wanted = reference(
        lambda params: norch.optim.AdamW(
            params, lr=0.1, betas=(0.9, 0.99), weight_decay=0.3
        )
    )
    assert norch.allclose(p, wanted, atol=1e-6), (
        f"adamw: after five steps p is {p.tolist()}, not {wanted.tolist()}"
    )


if __name__ == "__main__":
    check(nesterov, adamw)
    print("solved")
