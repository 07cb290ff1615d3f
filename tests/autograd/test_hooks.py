"""Hooks of tensors, of leaves and of nodes: what they are given, what they may change, and when."""

import gc
import math
import weakref

import pytest
from functions import leaf

import norch
from norch.autograd.region import walk_to


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
        (lambda g: g[0], TypeError, "must return None or a tuple of gradients, not Tensor"),
        (lambda g: (*g, *g), norch.Error, "returned 2 gradients, not 1"),
        (lambda g: (3.0,), TypeError, "a gradient must be a tensor, not float"),
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


def test_a_hook_of_a_node_returns_none_for_no_gradient():
    x, y = (norch.ones(2, requires_grad=True) for _ in range(2))
    z = x * y
    z.grad_fn.register_hook(lambda grads, of: (None, grads[1] * 2))
    z.sum().backward()
    assert x.grad is None and y.grad.tolist() == [2.0, 2.0]
    z = x * norch.ones(2)
    z.grad_fn.register_hook(lambda grads, of: (grads[0], of[0]))
    with pytest.raises(norch.Error, match="register_hook: a hook returned a gradient in place of None"):
        z.sum().backward()


@pytest.mark.parametrize(
    "call",
    [
        "x * y",
        "x * 3",
        "x.exp()",
        "x[:1]",
        "x[None] @ y[:, None]",
        "m.cat([x, y])",
        "x.sum()",
        "x.double()",
        "x.max(0)[0]",
    ],
)
@pytest.mark.parametrize("further", [False, True])
def test_a_prehook_of_a_node_may_leave_no_gradient(torch, call, further):
    results = []
    for m in (norch, torch):
        x, y = (m.ones(2, requires_grad=True) for _ in range(2))
        z, seen = eval(call, {"m": m, "x": x, "y": y}), []
        z.grad_fn.register_prehook(lambda g: (None,))
        if further:
            z.grad_fn.register_prehook(seen.append)
        z.grad_fn.register_hook(lambda grads, of, seen=seen: seen.append((grads, of)))
        (z * 2).sum().backward()
        results.append((x.grad, y.grad, seen))
    assert results[0] == results[1] and results[0][0] is None


@pytest.mark.parametrize("materialize", [True, False])
def test_a_prehook_of_a_function_may_leave_no_gradient(torch, materialize):
    results = []
    for m in (norch, torch):
        seen = []

        class Twice(m.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(materialize)
                return x * 2

            @staticmethod
            def backward(ctx, g, seen=seen, m=m):
                seen.append(g if g is None else g.tolist())
                return m.ones(2)

        x = m.ones(2, requires_grad=True)
        y = Twice.apply(x)
        y.grad_fn.register_prehook(lambda g: (None,))
        y.sum().backward()
        results.append((seen, x.grad.tolist()))
    assert results[0] == results[1]


def test_prehooks_of_a_node_come_after_its_gradient_is_collected(torch):
    """grad() returns that of the result; the node of a leaf is visited by backward() only."""
    results = []
    for m in (norch, torch):
        x, seen = m.ones(2, requires_grad=True), []
        y = x * 2
        y.grad_fn.register_prehook(lambda g: (g[0] * 5,))
        leaf = y.grad_fn.next_functions[0][0]
        leaf.register_prehook(lambda g: (g[0] * 7,))
        leaf.register_hook(lambda g, of, seen=seen: seen.append((lists(g), lists(of))))
        x.register_post_accumulate_grad_hook(lambda x, seen=seen: seen.append(lists([x.grad])))
        found = [lists(m.autograd.grad(y.sum(), of, retain_graph=True)) for of in ([y], [y, x], [x])]
        y.sum().backward(inputs=[x])
        results.append((found, seen, x.grad.tolist()))
        leaf.register_prehook(lambda g: (None,))
        x.grad = None
        (x * 3).sum().backward()
        results[-1] += (x.grad,)
    assert results[0] == results[1] and len(results[0][1]) == 4


def test_inputs_that_get_no_gradient_are_left_alone():
    x = norch.ones(2, requires_grad=True)
    y, z = x * 2, x * 3
    z.sum().backward(inputs=[y, x])
    assert y.grad is None and x.grad.tolist() == [3.0, 3.0]


def test_a_tensor_that_a_hook_of_a_node_returns_stays_its_own():
    x, own = norch.ones(2, requires_grad=True), norch.full((2,), 5.0)
    for i in range(3):
        y = x.exp()  # whose gradient would be .grad itself
        y.grad_fn.register_hook(lambda g, of: (own,))
        y.sum().backward()
        assert x.grad.tolist() == [5.0 * (i + 1)] * 2 and own.tolist() == [5.0, 5.0]
    z = norch.ones(4, requires_grad=True) * 1.0
    other, part = z[1:3], z[:2]  # the gradient of the one is added in place to that of the other
    whole = norch.full((4,), 5.0)
    part.grad_fn.register_hook(lambda g, of: (whole,))
    (other.sum() + part.sum()).backward()
    assert whole.tolist() == [5.0] * 4


@pytest.mark.parametrize(
    "part", [lambda x: x[0], lambda x: x[0:1], lambda x: x.narrow(0, 0, 1), lambda x: x.unbind()[0]]
)
def test_hooks_of_a_leaf_see_each_gradient_of_a_part_of_it(part):
    x, seen = norch.ones(3, requires_grad=True), []
    x.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
    for i in range(3):
        part(x).sum().backward()  # added in place to .grad from the second on
        assert x.grad.tolist() == [10.0 * (i + 1), 0.0, 0.0]
    assert seen == [[1.0, 0.0, 0.0]] * 3


@pytest.mark.parametrize("walked", ["boundary", "graph"])
@pytest.mark.parametrize("changed", ["removed", "added"])
def test_hooks_that_change_in_a_walk_which_calls_none_stay_changed(walked, changed):
    """A walk to a boundary, as norch.compile takes, and one for a picture of the graph."""
    x, seen = norch.ones(2, requires_grad=True), []

    class Change(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            if changed == "removed":
                first.remove()
            else:
                y.register_hook(lambda g: seen.append("second"))
            return g * 2

    y = x * 1
    first = y.register_hook(lambda g: seen.append("first"))
    loss = Change.apply(y).sum()
    if walked == "graph":
        norch.utils.draw_graph(loss)
    else:
        (g,) = walk_to([y.grad_fn], [(loss.grad_fn, norch.ones(()))], True, False)
        assert g.tolist() == [2.0, 2.0]
    assert seen == []
    (y * 1).sum().backward()
    assert seen == ([] if changed == "removed" else ["first", "second"])


WRITES = {
    "exp_": lambda v: v.exp_(),
    "sqrt_": lambda v: v.sqrt_(),
    "div_": lambda v: v.div_(v.detach() + 1),
    "pow_": lambda v: v.pow_(v.detach() + 1),
    "cumprod_": lambda v: v.cumprod_(0),
    "elu_": lambda v: norch.nn.functional.elu_(v),
}
VIEWS = {
    "index": lambda y: y[:2],
    "view": lambda y: y.view(3, 1).view(3)[:2],
    "subclass": lambda y: y.as_subclass(type("Kind", (norch.Tensor,), {}))[:2],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("write", WRITES)
def test_hooks_of_a_view_see_the_gradient_of_what_a_write_to_it_saved(write, view):
    def derivatives(take, hooked):
        x = leaf([0.5, 0.25, 2.0], dtype=norch.float64)
        v = take(x * 1)
        WRITES[write](v)
        hooked(v).register_hook(lambda g: g * 10)
        v = v.as_subclass(norch.Tensor)
        (first,) = norch.autograd.grad((v * v).sum(), x, create_graph=True)
        return first.tolist(), norch.autograd.grad(first.sum(), x)[0].tolist()

    wanted = derivatives(lambda y: y.split(2)[0] * 1, lambda v: v)
    got = derivatives(VIEWS[view], lambda v: v)
    assert got[0] == pytest.approx(wanted[0]) and got[1] == pytest.approx(wanted[1])
    of_base = derivatives(VIEWS[view], lambda v: v._view.base)
    assert of_base[1][:2] == pytest.approx(wanted[1][:2])


SEVERAL = {
    "eigh": lambda a: norch.linalg.eigh(a)[::-1],
    "svd": lambda a: norch.linalg.svd(a)[:2],
    "qr": lambda a: norch.linalg.qr(a),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_hooks_of_one_of_several_results_see_the_gradient_of_what_was_saved(name):
    seen = []
    a = leaf([[2.0, 0.5], [0.5, 1.0]], dtype=norch.float64)
    factor, other = SEVERAL[name](a * 1)
    factor.register_hook(seen.append)
    (first,) = norch.autograd.grad((other**3).sum(), a, create_graph=True)
    assert seen == []
    norch.autograd.grad((first * first).sum(), a)
    assert len(seen) == 1


def test_hooks_of_a_result_of_a_function_see_the_gradient_of_what_it_saved():
    class Both(norch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            e = x.exp()
            ctx.save_for_backward(e)
            return e, x.sin()

        @staticmethod
        def backward(ctx, g, _):
            return g * ctx.saved_tensors[0]

    x = leaf([0.0, 1.0])
    e, _ = Both.apply(x)
    e.register_hook(lambda g: g * 10)
    (first,) = norch.autograd.grad(e.sum(), x, create_graph=True)
    (second,) = norch.autograd.grad(first.sum(), x)
    assert second.tolist() == pytest.approx([100.0, 100 * math.e])


def test_retain_grad_sees_the_gradient_after_all_hooks_of_the_tensor():
    x = norch.tensor(1.0, requires_grad=True)
    y = x.clone()
    y.register_hook(lambda g: g + 2)
    y.retain_grad()
    handle = y.register_hook(lambda g: g * 4)
    y.backward(retain_graph=True)
    assert y.grad.item() == x.grad.item() == 12.0
    handle.remove()
    y.backward()
    assert y.grad.item() == 15.0


def test_a_hook_after_the_update_returns_none():
    x = leaf([1.0, 2.0])
    x.register_post_accumulate_grad_hook(lambda x: x.grad)
    with pytest.raises(norch.errors.Error, match="must return None"):
        x.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_sparse_gradients_of_a_root():
    sparse = norch.sparse_coo_tensor(norch.tensor([[1, 1]]), norch.tensor([1.0, 2.0]), (2,))
    for grad in (None, norch.ones(2), sparse.clone()):
        x = norch.ones(2, requires_grad=True)
        x.grad = grad
        x.backward(sparse)
        wanted = [0.0, 3.0] if grad is None else [1.0, 4.0] if not grad.is_sparse else [0.0, 6.0]
        assert (x.grad.to_dense() if x.grad.is_sparse else x.grad).tolist() == wanted


def test_hooks_outlive_a_time_without_gradients():
    layer = norch.nn.Linear(2, 2)
    seen = []
    scale = layer.weight.register_hook(lambda g: g * 10)
    layer.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    for stop in (lambda: layer.requires_grad_(False), layer.weight.detach_):
        layer.zero_grad()
        stop()
        layer.requires_grad_(True)
        layer(norch.ones(1, 2)).sum().backward()
        assert layer.weight.grad.tolist() == [[10.0, 10.0]] * 2
    scale.remove()
    layer.zero_grad()
    layer(norch.ones(1, 2)).sum().backward()
    assert layer.weight.grad.tolist() == [[1.0, 1.0]] * 2
    assert len(seen) == 3


@pytest.mark.parametrize("stop", [lambda x: x.requires_grad_(False), lambda x: x.detach_()])
def test_a_leaf_is_the_same_node_after_a_time_without_gradients(stop):
    x = norch.ones(2, requires_grad=True)
    y, seen = (x * 3).sum(), []
    x.register_hook(seen.append)
    stop(x)
    x.requires_grad_(True)
    y.backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [5, 5] and len(seen) == 2


@pytest.mark.parametrize("stop", [lambda x: x, lambda x: x.requires_grad_(False), lambda x: x.detach_()])
def test_a_leaf_whose_hook_refers_to_it_is_freed(stop):
    def alive():
        x = norch.ones(3, requires_grad=True)
        x.register_hook(lambda g: g * x.detach())
        stop(x)
        return weakref.ref(x)

    x = alive()
    gc.collect()
    assert x() is None


@pytest.mark.parametrize("make", [lambda x: x * 2, lambda x: x[:2] + x[1:], lambda x: norch.cat([x, x])])
@pytest.mark.parametrize("hooked", [False, True])
def test_a_leaf_that_stopped_requiring_grad_gets_none(make, hooked):
    x = norch.arange(3.0).view(3).requires_grad_()
    if hooked:
        x.register_hook(lambda g: g)
    x.sum().backward()
    earlier, later = make(x).sum(), make(x).sum()
    x.requires_grad_(False)
    earlier.backward()
    assert x.grad.tolist() == [1, 1, 1]
    x.requires_grad_(True)
    (wanted,) = norch.autograd.grad(later, x, retain_graph=True)  # the graph leads to the same leaf
    later.backward()
    assert x.grad.equal(1 + wanted)


def test_inputs_of_backward_retain_their_gradients():
    x = norch.ones(2, requires_grad=True)
    y = x * 2
    z = y * 3
    z.sum().backward(inputs=[y, y], retain_graph=True)
    assert y.retains_grad and y.grad.tolist() == [3, 3] and x.grad is None
    z.sum().backward(retain_graph=True)
    assert y.grad.tolist() == [6, 6] and x.grad.tolist() == [6, 6]
    z.sum().backward(inputs=[y, x])
    assert y.grad.tolist() == [9, 9] and x.grad.tolist() == [12, 12]
