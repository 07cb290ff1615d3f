"""The graph and the walk over it: modes, Functions, hooks, higher derivatives, and how graphs free themselves."""

import threading
import time
import weakref

import numpy as np
import pytest
from functions import leaf

import norch
from norch._lib import lib
from norch.autograd import Function
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


def test_hooks_on_results():
    x = leaf(2.0)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    handle = y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 2).backward(retain_graph=True)
    assert seen == [2, 20] and x.grad.item() == 60
    handle.remove()
    handle.remove()
    x.grad = None
    (y * 2).backward()
    assert seen == [2, 20, 2, 2] and x.grad.item() == 6


def test_hooks_on_leaves_see_the_whole_gradient():
    x = leaf(2.0)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.item()))
    double = x.register_hook(lambda g: g * 2)
    (x * 3 + x * 4).backward()
    assert seen == [7] and x.grad.item() == 14
    handle.remove()
    double.remove()
    (x * 3).backward()
    assert seen == [7] and x.grad.item() == 17
    with pytest.raises(norch.Error):
        norch.ones(1).register_hook(print)


def test_hooks_that_wait_for_the_gradient_in_a_leaf():
    x, w = leaf(2.0), leaf(3.0)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda leaf: seen.append((leaf is x, leaf.grad.item())))
    with x.register_hook(lambda g: g * 10):
        (x * 3 + x * w).backward()
    assert seen == [(True, 60)] and w.grad.item() == 2
    norch.autograd.grad(x * 3, x)
    (x * 2).backward(inputs=[x])
    assert seen == [(True, 60), (True, 62)]
    handle.remove()
    (x * 3).backward()
    assert len(seen) == 2 and x.grad.item() == 65
    del x.grad
    assert x.grad is None
    for bad in (norch.ones(1), x * 2):
        with pytest.raises(norch.Error, match="register_post_accumulate_grad_hook"):
            bad.register_post_accumulate_grad_hook(print)


def test_a_leaf_is_told_of_its_gradient_when_the_last_part_is_there():
    told = []

    class Marked(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x, name):
            ctx.name = name
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            told.append(ctx.name)
            return g, None

    weights = {name: norch.tensor([2.0], requires_grad=True) for name in ("early", "late", "both", "cut")}
    for name, w in weights.items():
        w.register_post_accumulate_grad_hook(lambda _, name=name: told.append(name))
    w = weights["both"]
    for _ in range(2):  # in the second walk all leaves are older than all nodes
        told.clear()
        x = Marked.apply(norch.tensor([1.0], requires_grad=True) * weights["early"] * w, "first")
        x = Marked.apply(x * weights["late"] * w * weights["cut"].detach(), "second")
        (x + weights["cut"] * 0 + norch.where(x > 0, x, Marked.apply(weights["cut"], "third"))).sum().backward()
        assert sorted(told) == sorted(["early", "late", "both", "cut", "first", "second", "third"])
        assert told.index("second") < told.index("late") < told.index("first") < told.index("early")
        assert told.index("both") > told.index("first")
    assert [w.grad.item() for w in weights.values()] == [2 * 2 * 16.0, 2 * 2 * 16.0, 2 * 2 * 32.0, 0.0]


def test_a_leaf_with_a_hook_gets_what_comes_where_a_part_never_comes():
    class Stops(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return None

    w, seen = norch.tensor([3.0], requires_grad=True), []
    w.register_hook(lambda g: seen.append(g.item()))
    (w * 2 + Stops.apply(w * 5)).sum().backward()
    assert seen == [2.0] and w.grad.item() == 2.0
    w.backward(norch.ones(1))
    assert seen == [2.0, 1.0] and w.grad.item() == 3.0
    norch.autograd.backward([w, (w * w).sum()], [norch.ones(1), None])  # the leaf is a root itself
    assert seen[2:] == [7.0] and w.grad.item() == 10.0


def test_gradients_from_before_data_were_replaced():
    for size in (1, 5):
        x = leaf(1.0, 2.0, 3.0)
        (x * 2).sum().backward()
        x.data = norch.ones(size, dtype=x.dtype)
        with pytest.raises(norch.ShapeError, match=r"\.data was replaced; set \.grad to None"):
            (x * 2).sum().backward()
        x.grad = None
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2] * size


def test_the_graph_leads_to_its_leaves():
    x = leaf(2.0)
    (node, _), (nothing, _) = (x * norch.ones(1)).grad_fn.next_functions
    assert node.variable is x and node.name() == "AccumulateGrad" and nothing is None


def test_the_same_hook_twice():
    x = leaf(1.0)
    calls = []

    def hook(g):
        calls.append(1)

    first = x.register_hook(hook)
    x.register_hook(hook)
    first.remove()
    first.remove()
    (x * 1).backward()
    assert len(calls) == 1


def test_a_handle_keeps_no_graph():
    y = leaf(1.0) * 2
    node = weakref.ref(y.grad_fn)
    handle = y.register_hook(lambda g: g)
    del y
    assert node() is None
    handle.remove()


def test_hooks_that_raise_leave_the_mode_alone():
    x = leaf(1.0)
    y = x * x

    def hook(g):
        raise KeyError("mine")

    y.register_hook(hook)
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    assert norch.is_grad_enabled()


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


def lists(gradients):
    return [None if g is None else g.tolist() for g in gradients]


def test_hooks_of_nodes(torch):
    """Node.register_hook() and register_prehook(): what they are given, what they may change, and when."""
    results = []
    for m in (norch, torch):
        x, z = (m.ones(4, requires_grad=True) for _ in range(2))
        seen = []
        y = x * z * 3
        y.grad_fn.register_prehook(lambda g, seen=seen: seen.append(("before", lists(g))))
        y.register_hook(lambda g, seen=seen: seen.append("of the tensor"))
        y.grad_fn.register_hook(lambda g, of, seen=seen: seen.append(("after", lists(g), lists(of))))
        product = y.grad_fn.next_functions[0][0]
        product.register_prehook(lambda g: (g[0] * 2,))
        product.register_hook(lambda g, of: (g[0] * 10, g[1] * 100))
        gone = product.register_hook(lambda g, of, seen=seen: seen.append("removed"))
        gone.remove()
        part = x[1:3]
        part.grad_fn.register_hook(lambda g, of, seen=seen: seen.append(("region", lists(g), lists(of))))
        leaf = product.next_functions[0][0]
        leaf.register_prehook(lambda g, seen=seen: seen.append(("leaf", lists(g))))
        leaf.register_hook(lambda g, of, seen=seen, x=x: seen.append((lists(g), lists(of), x.grad.tolist())))
        (y.sum() + part.sum()).backward()
        results.append((seen, x.grad.tolist(), z.grad.tolist()))
    assert results[0] == results[1] and len(results[0][0]) == 6


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (lambda g: g[0], TypeError, "returns None or a tuple of gradients, not Tensor"),
        (lambda g: (*g, *g), norch.Error, "returned 2 gradients, not 1"),
        (lambda g: (norch.ones(5),), norch.ShapeError, r"shape \(5,\) for a tensor of shape \(2,\)"),
    ],
)
def test_hooks_of_nodes_return_tuples(given, error, message):
    x = norch.ones(2, requires_grad=True)
    for register in ("register_prehook", "register_hook"):
        y = x.exp()
        getattr(y.grad_fn, register)(lambda g, *_: given(g))
        with pytest.raises(error, match=f"{register}: .*{message}"):
            y.sum().backward()
    assert x.grad is None
