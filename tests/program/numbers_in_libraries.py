"""Ways to hold a number in what libraries call or hold for the program: hooks on tensors, nodes, modules and optimizers
(test_capture_reads.py)."""

import functools

from numbers_held import WAYS, Plain, of_attribute

import norch
from norch import nn, optim

# ---- hooks ----------------------------------------------------------------------------------------------------------


class Scale(Plain):
    """Hooks of each kind, as methods: they multiply by k."""

    def gradient(self, g):
        return g * self.k

    def leaf(self, w):
        w.grad.mul_(self.k)

    def node(self, inputs, outputs):
        return tuple(None if g is None else g * self.k for g in inputs)

    def before_node(self, outputs):
        return (outputs[0] * self.k,)

    def forward(self, module, args, out=None):
        return args[0] * self.k if out is None else out * self.k

    def backward(self, module, inputs, outputs=None):
        return tuple(g * self.k for g in inputs)

    def step(self, optimizer, args, kwargs):
        optimizer.param_groups[0]["params"][0].grad.mul_(self.k)


class Called(Plain):
    """A callable object over one of the methods."""

    def __init__(self, method):
        self._method = method

    def __call__(self, *args):
        return getattr(Scale, self._method)(self, *args)


def bound(method):
    holder = Scale()
    holder.k = 2.0
    return holder, getattr(holder, method)


def called(method):
    holder = Called(method)
    holder.k = 2.0
    return holder, holder


def partial(method):
    holder = Scale()
    holder.k = 2.0
    return holder, functools.partial(getattr(Scale, method), holder)


def gradient_of(w, y):
    """A function of x that gives the gradient of y x by w."""

    def f(x):
        w.grad = None
        (y * x.detach()).sum().backward(retain_graph=True)
        return w.grad.detach() * 1

    return f


def leaf(add):
    w = norch.ones(1, requires_grad=True)
    add(w)
    return gradient_of(w, w)


def result(add):
    w = norch.ones(1, requires_grad=True)
    y = w * 3
    add(y)
    return gradient_of(w, y)


def grad_of_leaf(add):
    w = norch.ones(1, requires_grad=True)
    add(w)
    return lambda x: norch.autograd.grad((w * x.detach()).sum(), w)[0]


def step_of(add_to_parameter=None, add_to_optimizer=None):
    layer = nn.Linear(1, 1, bias=False)
    optimizer = optim.SGD(layer.parameters(), lr=1.0)
    if add_to_parameter:
        add_to_parameter(layer.weight)
    if add_to_optimizer:
        add_to_optimizer(optimizer)

    def f(x):
        with norch.no_grad():
            layer.weight.fill_(1.0)
        optimizer.zero_grad()
        layer(x.detach()[None]).sum().backward()
        optimizer.step()
        return layer.weight.detach()[0] * 1

    return f


def module_of(add):
    layer = nn.Tanh()
    add(layer)
    w = norch.ones(1, requires_grad=True)

    def f(x):
        w.grad = None
        layer(w * x.detach()).sum().backward()
        return w.grad.detach() * 1

    return f


HOOKS = {
    "gradient": lambda hook: leaf(lambda w: w.register_hook(hook)),
    "leaf": lambda hook: leaf(lambda w: w.register_post_accumulate_grad_hook(hook)),
    "node": lambda hook: result(lambda y: y.grad_fn.register_hook(hook)),
    "before_node": lambda hook: result(lambda y: y.grad_fn.register_prehook(hook)),
    "gradient of a result": lambda hook: result(lambda y: y.register_hook(hook)),
    "gradient in grad()": lambda hook: grad_of_leaf(lambda w: w.register_hook(hook)),
    "gradient of a parameter": lambda hook: step_of(lambda w: w.register_hook(hook)),
    "leaf of a step": lambda hook: step_of(lambda w: w.register_post_accumulate_grad_hook(hook)),
    "step": lambda hook: step_of(None, lambda optimizer: optimizer.register_step_pre_hook(hook)),
    "forward": lambda hook: module_of(lambda layer: layer.register_forward_hook(hook)),
    "forward before": lambda hook: module_of(lambda layer: layer.register_forward_pre_hook(hook)),
    "backward": lambda hook: module_of(lambda layer: layer.register_full_backward_hook(hook)),
    "backward before": lambda hook: module_of(lambda layer: layer.register_full_backward_pre_hook(hook)),
}


def hooked(add, make, method):
    def one():
        holder, hook = make(method)
        return of_attribute(holder, add(hook))

    return one


for name, add in HOOKS.items():
    for make in (bound, called, partial):
        WAYS[f"hook_{name.replace(' ', '_')}_{make.__name__}"] = hooked(add, make, name.partition(" ")[0])


def hook_on_a_result_added_later():
    w = norch.ones(1, requires_grad=True)
    y = w * 3
    handles = []

    def change(value):
        for handle in handles:
            handle.remove()
        handles[:] = [y.register_hook(lambda g: g * value)]

    change(2.0)
    return gradient_of(w, y), change


WAYS["hook_on_a_result_added_later"] = hook_on_a_result_added_later
