"""Functions of a tensor and numbers, in place: what the function computes, and nothing written where it is refused."""

import pytest

import norch


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("celu_", (0.7,)), ("elu_", (0.7,)), ("selu_", ()),
        ("hardtanh_", (-0.5, 0.75)), ("hardtanh_", (-0.5, 0.5)), ("hardtanh_", (0, 6)),
        ("leaky_relu_", (0.1,)), ("addcmul_", (2.0, 0.25)), ("addcdiv_", (2.0, 0.25)),
        ("rrelu_", (0.1, 0.3)), ("threshold_", (0.2, 2.0)), ("clamp_", (-0.5, 0.75)), ("lerp_", (2.0, 0.25)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("strided", [False, True])
def test_rows_with_parameters_write_into_the_tensor(name, arguments, recorded, strided):
    """What the function computes, in the memory of the tensor, with its gradient and a new version."""
    numbers = [[-2.0, -0.25, 0.0, 0.5], [float("nan"), float("inf"), -float("inf"), 3.0]]
    x = norch.tensor(numbers, dtype=norch.float64)
    x = x.T if strided else x
    if name in ("lerp_", "addcmul_", "addcdiv_"):
        second = arguments[1] if name == "lerp_" else norch.full(x.shape, arguments[1], dtype=x.dtype)
        arguments = (norch.full(x.shape, arguments[0], dtype=x.dtype), second)
    in_place = getattr(norch.nn.functional, name, None) or getattr(norch.Tensor, name)
    plain = getattr(norch.nn.functional, name[:-1], None) or getattr(norch.Tensor, name[:-1])
    leaf = x.clone().requires_grad_(recorded)
    source = leaf.clone()
    version, address = source._version, source.data_ptr()
    found, expected = in_place(source, *arguments), plain(leaf, *arguments)
    assert found is source and source._version > version and source.data_ptr() == address
    norch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    if recorded:
        gradients = [norch.autograd.grad(out.nan_to_num(0, 1, 1).sum(), leaf)[0] for out in (found, expected)]
        norch.testing.assert_close(*gradients, rtol=0, atol=0, equal_nan=True)
        with pytest.raises(norch.Error, match="leaf"):
            in_place(leaf, *arguments)


def test_rows_with_parameters_that_do_not_fit_write_nothing():
    x = norch.tensor([1, 2, 3])
    with pytest.raises(norch.DTypeError, match="clamp_"):
        x.clamp_(0.5, 1.5)
    y = norch.ones(3)
    with pytest.raises(norch.ShapeError, match="clamp_"):
        y.clamp_(norch.zeros(2, 3), norch.ones(2, 3))
    with pytest.raises(TypeError, match="threshold"):
        norch.nn.functional.threshold_(y, None, 1.0)
    assert x.tolist() == [1, 2, 3] and y.tolist() == [1.0] * 3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("bounds", [(-1.1, 0.3), (-1.1, 1.1), (0.0, 6.0)])
def test_what_hardtanh_wrote_at_a_bound_has_no_gradient(dtype, bounds):
    """Bounds that no half is equal to, too; the node saves what was written."""
    leaf = norch.tensor([-5.0, *bounds, 0.1, 9.0], dtype=getattr(norch, dtype)).requires_grad_()
    source = leaf * 1
    norch.nn.functional.hardtanh_(source, *bounds)
    plain = norch.nn.functional.hardtanh(leaf, *bounds)
    assert source.equal(plain)
    found, expected = (norch.autograd.grad(one.sum(), leaf)[0] for one in (source, plain))
    assert found.equal(expected) and found[0] == found[-1] == 0
    source = leaf * 1
    norch.nn.functional.relu6(source, inplace=True)
    if leaf.element_size() >= 4:
        source.add_(1)
        with pytest.raises(norch.Error, match="changed in place"):
            source.sum().backward()


def test_rows_in_place_with_gradients_of_all_inputs():
    x, a, b = (norch.tensor([v, 2 * v], dtype=norch.float64).requires_grad_() for v in (0.5, -1.0, 3.0))
    for name in ("addcmul", "addcdiv", "lerp", "clamp"):
        found = getattr(x * 1, name + "_")(a, b)
        expected = getattr(x, name)(a, b)
        assert found.equal(expected)
        pairs = (norch.autograd.grad(one.sum(), (x, a, b), allow_unused=True) for one in (found, expected))
        for one, other in zip(*pairs):
            assert one.equal(other)
        y = x * 1
        y = getattr(y, name + "_")(y, b) if name != "clamp" else y.clamp_(y, 9.0)
        assert y.equal(getattr(x, name)(x, b) if name != "clamp" else x.clamp(x, 9.0))


FACTORS = {
    "add_": lambda x, y, value: x.add_(y, alpha=value),
    "sub_": lambda x, y, value: x.sub_(y, alpha=value),
    "addcmul_": lambda x, y, value: x.addcmul_(y, y, value=value),
    "addcdiv_": lambda x, y, value: x.addcdiv_(y, y + 1, value=value),
}


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("value", [0.3, -2, 1, 0, float("inf"), norch.tensor(0.5)])
@pytest.mark.parametrize("dtypes", ["float32 float32", "float64 float64", "float16 float16", "float32 float64"])
def test_sums_with_a_factor_are_those_that_are_not_in_place(name, value, dtypes):
    """To the bit, for all kinds of tensors; their gradients too."""
    one, other = (getattr(norch, dtype) for dtype in dtypes.split())
    start, y = norch.randn(4, 3, dtype=one), norch.rand(4, 3, dtype=other) + 0.1
    plain = start.clone()
    if name in ("add_", "sub_"):
        expected = getattr(start, name[:-1])(y, alpha=value).to(one)
    else:
        expected = getattr(start, name[:-1])(y, y if name == "addcmul_" else y + 1, value=value).to(one)
    assert FACTORS[name](plain, y, value) is plain and plain.equal(expected)
    leaf, factor = start.clone().requires_grad_(), y.clone().requires_grad_()
    recorded = FACTORS[name](leaf * 1, factor, value)
    assert recorded.equal(expected) and recorded.requires_grad
    recorded.sum().backward()
    assert leaf.grad.equal(norch.ones_like(leaf)) and factor.grad is not None
    with norch.no_grad():
        assert FACTORS[name](leaf, y, value).equal(expected)
    rows = start.clone()
    FACTORS[name](rows[1:3], y[1:3], value)
    assert rows[1:3].equal(expected[1:3]) and rows[0].equal(start[0])
    with pytest.raises(norch.ShapeError, match=name):
        FACTORS[name](start.clone(), y[:3], value)


class Noted(norch.overrides.TorchFunctionMode):
    """Notes which functions are called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.names.append(function.__name__)
        return function(*args, **(kwargs or {}))


WRITES = {
    "exp_": lambda x: x.exp_(),
    "mul_": lambda x: x.mul_(0.37),
    "+=": lambda x: x.__iadd__(norch.ones(2, 1)),
    "clamp_": lambda x: x.clamp_(-0.5, 0.75),
    "relu6": lambda x: norch.nn.functional.relu6(x, inplace=True),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_c_writes_at_once_is_what_python_would(write):
    """A plain tensor is written to by one call of C; each of these has something that Python has to see to."""
    start = norch.tensor([[-1.0, 0.25, 2.0], [0.5, -3.0, 7.0]])
    plain = start.clone()
    version = plain._version
    expected = write(plain)
    assert expected is plain and plain._version > version and not plain.requires_grad
    # nodes that saved a tensor get a copy of it before the write
    logits = start.clone()
    loss = norch.nn.functional.cross_entropy(leaf := logits.clone().requires_grad_(), norch.tensor([0, 2]))
    with norch.no_grad():
        write(leaf)
    loss.backward()
    norch.nn.functional.cross_entropy(logits.requires_grad_(), norch.tensor([0, 2])).backward()
    assert leaf.equal(expected) and leaf.grad.equal(logits.grad)
    # others notice it
    y = start.clone().requires_grad_() * 1
    squared = y.square().sum()
    with norch.no_grad():
        write(y)
    with pytest.raises(norch.Error, match="changed in place"):
        squared.backward()
    # views: of a base with a history, and of a leaf
    leaf = norch.cat([start, start]).requires_grad_()
    base = leaf * 1
    write(base[:2])
    assert base[:2].equal(expected) and base[2:].equal(start) and base.requires_grad
    with pytest.raises(norch.Error, match="leaf"):
        write(leaf[:2])
    # of a base that gets its history after the view was taken
    gradients = []
    for early in (True, False):
        factor, base = norch.full((4, 3), 0.5, requires_grad=True), norch.cat([start, start])
        view = base[:2]
        base.mul_(factor)
        write(view if early else base[:2])
        gradients.extend(norch.autograd.grad(base.sum(), [factor]))
    assert gradients[0].equal(gradients[1])
    # modes that override functions
    with Noted() as noted:
        write(norch.empty(2, 3))
    assert noted.names[-1] in ("exp_", "mul_", "add_", "clamp_", "relu6")
    # subclasses, parameters, vmap, and a function that is recorded
    assert write(norch.nn.Parameter(start.clone(), requires_grad=False)).equal(expected)
    assert type(write(start.clone().as_subclass(type("Sub", (norch.Tensor,), {})))).__name__ == "Sub"
    assert norch.vmap(lambda x: write(x.clone()))(norch.stack([start, start]))[1].equal(expected)
    recorded = norch.capture(lambda x: write(x.clone()))
    for _ in range(3):
        assert recorded(start).equal(expected)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("factor", [3, -2, 0.1])
def test_sums_with_a_factor_in_place_are_those_out_of_place(dtype, factor):
    x, y = (norch.tensor([7, 100, 3, n]).to(getattr(norch, dtype)) for n in (0, 9))
    if isinstance(factor, float) and dtype in ("uint8", "int32"):
        with pytest.raises(norch.DTypeError, match="a factor of integers is an integer"):
            x.clone().add_(y, alpha=factor)
        return
    assert x.clone().add_(y, alpha=factor).equal(x.add(y, alpha=factor))
    if dtype != "uint8" or factor > 0:
        assert x.clone().sub_(y, alpha=factor).equal(x.sub(y, alpha=factor))


def test_the_older_form_of_addcmul_in_place():
    x, y = norch.tensor([1.0, 2.0]), norch.tensor([3.0, 5.0])
    assert x.clone().addcmul_(2, y, y).tolist() == x.addcmul(2, y, y).tolist() == [19.0, 52.0]
    assert x.clone().addcdiv_(2, y, y).tolist() == [3.0, 4.0]
    with pytest.raises(norch.ArgumentError, match="addcmul_"):  # a factor is a number
        x.clone().addcmul_(y, 2.0, y)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("addmm", ((2, 3), (2, 4), (4, 3))),
        ("addmv", ((2,), (2, 4), (4,))),
        ("addr", ((2, 3), (2,), (3,))),
        ("addbmm", ((2, 3), (5, 2, 4), (5, 4, 3))),
        ("baddbmm", ((5, 2, 3), (5, 2, 4), (5, 4, 3))),
    ],
)
def test_the_older_forms_of_products(name, shapes):
    x, a, b = map(norch.rand, shapes)
    function, method, in_place = getattr(norch, name), getattr(x, name), getattr(x.clone(), f"{name}_")
    both = method(a, b, beta=2, alpha=-3)
    for found in (function(2, x, -3, a, b), method(2, -3, a, b), in_place(2, -3, a, b)):
        assert found.equal(both)
    assert function(2, x, a, b).equal(method(2, a, b)) and method(2, a, b).equal(method(a, b, beta=2))
    for wrong in (lambda: method(2, -3, a, b, beta=2), lambda: method(a, b, 2), lambda: method(a, 2, 2, b)):
        with pytest.raises(TypeError, match=f"{name}: expected an input and two factors"):
            wrong()


@pytest.mark.parametrize(
    ("name", "arguments"), [("hardtanh", (-0.5, 0.5)), ("hardtanh", ()), ("relu6", ()), ("threshold", (0.2, 2.0))]
)
def test_functions_that_can_write_in_place_do_so_only_when_asked(name, arguments):
    numbers = [-9.0, 0.125, 9.0]
    x = norch.tensor(numbers)
    getattr(norch.nn.functional, name)(x, *arguments)
    assert x.tolist() == numbers and x._version == 0
