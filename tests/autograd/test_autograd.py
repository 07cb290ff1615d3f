"""The graph and the walk over it: modes, Functions, higher derivatives, and how graphs free themselves."""

import threading
import time
import warnings

import numpy as np
import pytest
from functions import leaf

import norch
from norch._binding.library import lib
from norch.autograd import Function
from norch.nn import functional as F
from norch.testing import assert_close

# ---- the walk ----------------------------------------------------------------------------------------------------


def test_a_tensor_used_twice():
    x = leaf(3.0)
    (x + x).backward()
    assert x.grad.item() == 2
    x.grad = None
    (x * x).backward()
    assert x.grad.item() == 6
    x.grad = None
    y = x * 2
    (y * y + y + x).backward()
    assert x.grad.item() == 8 * 3 + 2 + 1


def test_a_ladder_of_2_to_the_40_paths_is_quick():
    x = leaf(1.0)
    y = x
    for _ in range(40):
        y = y + y
    start = time.perf_counter()
    y.backward()
    assert time.perf_counter() - start < 0.5
    assert x.grad.item() == 2.0**40


@pytest.mark.parametrize("step", ["add", "exp", "view", "inplace", "function", "hook"])
def test_a_long_chain(step):
    n = 100_000 if step == "add" else 30_000

    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    start = lib.norch_live_storages()
    x = leaf(0.0, 1.0)
    y = x * 1.0
    for _ in range(n):
        if step == "add":
            y = y + 1.0
        elif step == "exp":
            y = y.tanh()
        elif step == "view":
            y = y.view(1, 2).view(2)
        elif step == "inplace":
            y += 1.0
        elif step == "function":
            y = Same.apply(y)
        else:
            y = y + 1.0
            y.register_hook(lambda g: g)
    y.sum().backward()
    assert x.grad[0].item() == 1
    del x, y
    assert lib.norch_live_storages() <= start + 1  # the number 1.0 is kept

    x = leaf(0.0, 1.0)  # a graph that nobody walked
    y = x * 1.0
    for _ in range(n):
        y = y + 1.0
    del x, y


def test_a_long_chain_of_writes_through_views():
    x = leaf(0.0, 1.0)
    y = x * 1.0
    for i in range(20_000):
        y[i % 2] += 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]
    del y


def test_wide_graphs():
    x = leaf(1.0)
    norch.stack([x * float(i) for i in range(2000)]).sum().backward()
    assert x.grad.item() == sum(range(2000))


def test_second_backward_needs_retain_graph():
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8
    with pytest.raises(norch.Error, match="retain_graph"):
        y.backward()


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x + 1,
        lambda x: x.sum(0),
        lambda x: x.mean(),
        lambda x: x.view(-1)[1:4],
        lambda x: x.T.expand(2, 3, 3),
        lambda x: x.clone().double(),
        lambda x: norch.cat([x, norch.stack([x, x])[0]]),
        lambda x: x.cumsum(0),
        lambda x: norch.add(x, x, alpha=2),
        lambda x: norch.lerp(x, x, 0.25),
        lambda x: norch.addmm(x, norch.eye(3), norch.eye(3), beta=2.0, alpha=3.0),
        lambda x: norch.addcmul(x, norch.eye(3), norch.eye(3), value=2),
        lambda x: x.fmod(0.3),
        lambda x: norch.nn.functional.linear(norch.eye(3), norch.eye(3), x[0]),
        lambda x: norch.nn.functional.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
    ],
)
def test_what_saves_no_tensor_is_walked_twice(make):
    x = norch.ones(3, 3, requires_grad=True)
    y = make(x).sum()
    y.backward()
    once = x.grad.clone()
    y.backward()
    assert_close(x.grad, 2 * once)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.exp(),
        lambda x: x / x,
        lambda x: x.sigmoid(),
        lambda x: x.view(1) * x,
        lambda x: x.prod(),
        lambda x: x * 2,  # PyTorch saves this number as a tensor
        lambda x: x / 2,
        lambda x: x**2,
    ],
)
def test_freed_graphs_say_so(make):
    x = leaf(2.0)
    y = make(x).sum()
    y.backward()
    with pytest.raises(norch.Error, match="second time"):
        y.backward()


def test_backward_needs_a_scalar_or_a_gradient():
    x = leaf(1.0, 2.0)
    with pytest.raises(norch.ShapeError, match="only for a scalar"):
        (x * 2).backward()
    with pytest.raises(norch.ShapeError, match="shape"):
        (x * 2).backward(norch.ones(3, dtype=norch.float64))
    assert x.grad is None
    (x * 2).backward(norch.tensor([1.0, 10.0], dtype=norch.float64))
    assert x.grad.tolist() == [2, 20]
    (x * 2)[:1].backward()
    for dead in (norch.ones(()), norch.ones((), dtype=norch.int64), x.detach().sum()):
        with pytest.raises(norch.Error, match="does not require grad"):
            dead.backward()


def test_gradients_have_the_dtype_and_shape_of_their_tensor():
    a = norch.ones(3, 1, requires_grad=True)
    b = norch.ones(4, dtype=norch.float64, requires_grad=True)
    c = norch.ones((), requires_grad=True)
    (a * b + c).sum().backward()
    for x in (a, b, c):
        assert x.grad.dtype is x.dtype and x.grad.shape == x.shape
    assert c.grad.item() == 12 and a.grad.tolist() == [[4]] * 3


def test_integers_have_no_gradient():
    for dtype in (norch.int64, norch.int32, norch.uint8, norch.bool):
        with pytest.raises(norch.DTypeError):
            norch.zeros(2, dtype=dtype, requires_grad=True)
        with pytest.raises(norch.DTypeError):
            norch.zeros(2, dtype=dtype).requires_grad_()
    x = leaf(1.0, 2.0)
    for y in (x.long(), x > 1, x.argmax(), x.bool(), x.isnan(), x.int()):
        assert not y.requires_grad


def test_backward_of_several_tensors():
    x = leaf(3.0)
    norch.autograd.backward([x * 2, x * x])
    assert x.grad.item() == 8
    norch.autograd.backward([x * 2, x * x], [norch.tensor(10.0, dtype=norch.float64), None])
    assert x.grad.item() == 8 + 26
    y = x * 1
    norch.autograd.backward([y, y])
    assert x.grad.item() == 36


def test_backward_into_chosen_inputs():
    x, w = leaf(3.0), leaf(2.0)
    (x * w).backward(inputs=[w])
    assert x.grad is None and w.grad.item() == 3
    y = x * w
    (y * y).backward(inputs=[y])
    assert y.grad.item() == 12 and x.grad is None


def test_grad_starts_anew():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    first = x.grad
    x.grad = None
    (x * x).sum().backward()
    assert x.grad is not first and x.grad.tolist() == first.tolist() == [2, 4]
    x.grad.zero_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]


# ---- leaves and what hangs on them -------------------------------------------------------------------------------


def test_requires_grad():
    x = norch.ones(2)
    assert x.requires_grad_() is x and x.requires_grad and x.is_leaf and x.grad_fn is None
    y = x * 2
    assert y.requires_grad and not y.is_leaf and y.grad_fn is not None and "Mul" in repr(y.grad_fn)
    with pytest.raises(norch.Error):
        y.requires_grad_(False)
    y.requires_grad_()
    x.requires_grad = False
    assert not x.requires_grad and not (x * 2).requires_grad
    y.sum().backward()
    (norch.ones(2) * y.detach()).requires_grad_().sum().backward()


def test_detach():
    x = leaf(1.0, 2.0)
    y = x * x
    d = y.detach()
    assert not d.requires_grad and d.is_leaf and d.data_ptr() == y.data_ptr()
    (y * d).sum().backward()
    assert x.grad.tolist() == [2.0 * 1 * 1, 2.0 * 2 * 4]
    z = x * 2
    assert z.detach_() is z and not z.requires_grad
    with pytest.raises(norch.Error):
        (x * 2)[0].detach_()


def test_retain_grad():
    x = leaf(1.0, 2.0)
    y = x * 3
    y.retain_grad()
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [6, 12] and x.grad.tolist() == [18, 36]
    x.retain_grad()  # a leaf has its own
    (x * 2).sum().backward()
    assert x.grad.tolist() == [20, 38]
    with pytest.raises(norch.Error):
        norch.ones(2).retain_grad()


def test_gradients_from_before_data_were_replaced():
    for size in (1, 5):
        x = leaf(1.0, 2.0, 3.0)
        (x * 2).sum().backward()
        x.data = norch.ones(size, dtype=x.dtype)
        with pytest.raises(norch.ShapeError, match=r"older than the current \.data; set \.grad to None"):
            (x * 2).sum().backward()
        x.grad = None
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2] * size


def test_the_graph_leads_to_its_leaves():
    x = leaf(2.0)
    (node, _), (nothing, _) = (x * norch.ones(1)).grad_fn.next_functions
    assert node.variable is x and node.name() == "AccumulateGrad" and nothing is None


# ---- grad ---------------------------------------------------------------------------------------------------------


def test_grad():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    gx, gw = norch.autograd.grad(y, [x, w])
    assert gx.item() == 3 and gw.item() == 2 and x.grad is None and w.grad is None
    with pytest.raises(norch.Error, match="second time"):
        norch.autograd.grad(y, x)
    other = leaf(1.0)
    y = x * w
    with pytest.raises(norch.Error, match="allow_unused"):
        norch.autograd.grad(y, [x, other], retain_graph=True)
    assert norch.autograd.grad(y, [x, other], retain_graph=True, allow_unused=True)[1] is None
    assert norch.autograd.grad(y, [other], retain_graph=True, materialize_grads=True)[0].item() == 0
    options = {"create_graph": True, "only_inputs": True, "is_grads_batched": False}
    assert norch.autograd.grad(outputs=y, inputs=x, grad_outputs=norch.ones(()), **options)[0].item() == 3
    with pytest.raises(norch.ArgumentError, match="allow_unused=False"):
        norch.autograd.grad(y, x, allow_unused=False, materialize_grads=True)
    (gy,) = norch.autograd.grad(y, [y], retain_graph=True)
    assert gy.item() == 1
    z = y * y
    gy, gx = norch.autograd.grad(z, [y, x])
    assert gy.item() == 12 and gx.item() == 36


class Product(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b.conj(), g * a.conj()


def test_grad_of_one_input_of_a_function_gives_the_other_none():
    a, b = norch.full((1,), 3.0, requires_grad=True), norch.full((1,), 2.0, requires_grad=True)
    assert [g.item() for g in norch.autograd.grad(Product.apply(a, b), a)] == [2.0]
    assert a.grad is None and b.grad is None


SEVERAL = {
    "product": (lambda a, b: a @ b, [(3, 4), (4, 2)]),
    "broadcast": (lambda a, b: a * b / (b + 3), [(3, 4), (4,)]),
    "linear": (F.linear, [(5, 3), (2, 3), (2,)]),
    "conv2d": (F.conv2d, [(2, 3, 6, 6), (4, 3, 3, 3), (4,)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (6,), w, b), [(4, 6), (6,), (6,)]),
    "attention": (F.scaled_dot_product_attention, [(1, 2, 5, 8)] * 3),
    "a function of a user": (Product.apply, [(3,), (3,)]),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", SEVERAL)
def test_grad_of_one_input_is_that_of_all(name, dtype):
    function, shapes = SEVERAL[name]
    if dtype == "complex64" and name not in ("product", "broadcast", "a function of a user"):
        return
    given = [norch.randn(shape).to(getattr(norch, dtype)).requires_grad_() for shape in shapes]
    out = function(*given)
    whole = norch.autograd.grad(out, given, norch.ones_like(out), retain_graph=True)
    for create_graph in (False, True):
        for x, wanted in zip(given, whole, strict=True):
            (found,) = norch.autograd.grad(out, x, norch.ones_like(out), retain_graph=True, create_graph=create_graph)
            # Recorded gradients of fused kernels are composed of others, and round otherwise.
            assert_close(found, wanted, rtol=1e-5 * create_graph, atol=1e-6 * create_graph)


def test_grad_computes_only_what_leads_to_an_input():
    weights = [norch.randn(4, 4, requires_grad=True) for _ in range(3)]
    x = norch.randn(4, 4, requires_grad=True)
    out = x @ weights[0] @ weights[1] @ weights[2]
    for wanted, products in ((x, 3), (weights[0], 3), (weights[2], 1), ([x, *weights], 6)):
        with norch.profiler.profile() as seen:
            norch.autograd.grad(out, wanted, norch.ones_like(out), retain_graph=True)
        assert sum(one.count for one in seen.key_averages() if one.key == "matmul") == products


def test_grad_of_a_batch_of_weights():
    x, w = leaf(2.0, 3.0), leaf(5.0)
    y = x * x * w
    eye = norch.eye(2)
    gx, gw = norch.autograd.grad(y, [x, w], eye, retain_graph=True, is_grads_batched=True)
    assert gx.tolist() == [[20, 0], [0, 30]] and gw.tolist() == [4, 9]
    (gx,) = norch.autograd.grad(y, x, (eye,), create_graph=True, is_grads_batched=True)
    assert norch.autograd.grad(gx.sum(), x)[0].tolist() == [10, 10]
    unused = norch.autograd.grad(x * 1, [x, w], eye, allow_unused=True, is_grads_batched=True)[1]
    assert unused is None
    with pytest.raises(norch.ShapeError, match="batch is empty"):
        norch.autograd.grad(x * 1, x, eye[:0], is_grads_batched=True)


def test_grad_of_several_outputs():
    x = leaf(1.0, 2.0)
    a, b = x * 2, x * x
    weights = [norch.tensor([1.0, 1.0], dtype=norch.float64), norch.tensor([10.0, 100.0], dtype=norch.float64)]
    (g,) = norch.autograd.grad([a, b], [x], weights)
    assert g.tolist() == [22, 402]
    g1, g2 = norch.autograd.grad(x.sum(), [x, x])
    assert g1.tolist() == g2.tolist() == [1, 1]
    with pytest.raises(norch.Error):
        norch.autograd.grad(x.sum(), norch.ones(2))
    with pytest.raises(norch.ShapeError):
        norch.autograd.grad([x.sum(), x.sum()], [x], [None])


def test_gradients_of_gradients(torch):
    values = np.linspace(0.2, 0.8, 4)
    for make in (
        lambda f, x: (x**3).sum(),
        lambda f, x: (x.exp() * x).sum(),
        lambda f, x: x.prod(),
        lambda f, x: (x.sin() / x).sum(),
        lambda f, x: f.logsumexp(x * x, 0),
        lambda f, x: ((x.view(2, 2) @ x.view(2, 2).T).tanh()).sum(),
        lambda f, x: x.sigmoid().log().mean() + x.std(),
        lambda f, x: (x[1:] * x[:-1]).sum() ** 2,
    ):
        found = []
        for f in (norch, torch):
            x = f.tensor(values.copy(), requires_grad=True)
            (g,) = f.autograd.grad(make(f, x), [x], create_graph=True)
            (h,) = f.autograd.grad((g * g).sum(), [x], create_graph=True)
            (h * g).sum().backward()
            found.append([t.detach().numpy().copy() for t in (g, h, x.grad)])
        for ours, theirs in zip(*found):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_create_graph_accumulates_into_grad():
    x = leaf(2.0)
    (x**3).backward(create_graph=True)
    assert x.grad.requires_grad and x.grad.item() == 12
    kept = x.grad
    x.grad = None
    kept.backward()
    assert x.grad.item() == 12
    x.grad = None


def test_many_orders():
    x = leaf(0.5)
    y, expected = x**6, 1.0
    for order in range(6):
        (y,) = norch.autograd.grad(y, [x], create_graph=True)
        expected *= 6 - order
        assert abs(y.item() - expected * 0.5 ** (5 - order)) < 1e-9 * expected


# ---- threads --------------------------------------------------------------------------------------------------------


def test_two_threads_walk_at_once():
    import sys

    shared = norch.ones(50, dtype=norch.float64, requires_grad=True)
    errors, own = [], []

    def work(seed):
        try:
            x = norch.full((50,), float(seed), dtype=norch.float64, requires_grad=True)
            for _ in range(100):
                ((x * shared).sum() + shared.sum() * 2).backward()
            own.append(x.grad.tolist() == [100.0] * 50)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors and own == [True] * 4
    assert shared.grad.tolist() == [100.0 * (0 + 1 + 2 + 3 + 8)] * 50


def test_one_graph_walked_by_two_threads():
    x = norch.ones(10, dtype=norch.float64, requires_grad=True)
    y = (x.exp() * x).sum()
    threads = [threading.Thread(target=lambda: [y.backward(retain_graph=True) for _ in range(50)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(x.grad.numpy(), 150 * 2 * np.e)


def test_a_walk_ends_where_it_was_sent() -> None:
    """What lies behind the last of the inputs is neither walked nor freed."""
    x = leaf(1.0, 2.0)
    y = x.exp()
    (g,) = norch.autograd.grad((y * 2).sum(), y)
    assert g.tolist() == [2, 2]
    z = y.sin()
    both = norch.autograd.grad(z.sum(), [z, y], retain_graph=True)  # z leads to y
    assert_close(both[1], y.cos())
    (z * y).sum().backward(inputs=[y])
    y.sum().backward()
    assert_close(x.grad, y)


@pytest.mark.host
@pytest.mark.parametrize("bad", ["no", 1, None])
def test_switches_take_bools(bad):
    x, before = norch.ones(2), norch.is_grad_enabled()
    with pytest.raises(TypeError, match=f"requires_grad_: .* bool, not {type(bad).__name__}"):
        x.requires_grad_(bad)
    with pytest.raises(TypeError, match="requires_grad_: .* bool"):
        x.requires_grad = bad
    with pytest.raises(TypeError, match=f"set_grad_enabled: .* bool, not {type(bad).__name__}"):
        norch.set_grad_enabled(bad)
    assert not x.requires_grad and norch.is_grad_enabled() is before


def test_a_gradient_that_backward_does_not_set_is_warned_of():
    x = norch.ones(2, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="of other tensors after retain_grad"):
        assert y.grad is None
    with pytest.warns(UserWarning, match="copy a tensor by"):
        norch.tensor(x)
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.grad is y.grad is norch.ones(2).grad is None
