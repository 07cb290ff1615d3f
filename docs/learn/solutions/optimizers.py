"""A solution of exercises/optimizers.py."""


def nesterov(p, g, velocity, lr, momentum):
    velocity.mul_(momentum).add_(g)
    p.sub_(lr * (g + momentum * velocity))


def adamw(p, g, m, v, t, lr, beta1, beta2, eps, weight_decay):
    p.mul_(1 - lr * weight_decay)
    m.mul_(beta1).add_((1 - beta1) * g)
    v.mul_(beta2).add_((1 - beta2) * g**2)
    p.sub_(lr * (m / (1 - beta1**t)) / ((v / (1 - beta2**t)).sqrt() + eps))


if __name__ == "__main__":
    import _check

    _check.run(globals())
