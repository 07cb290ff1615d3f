"""Autocast beside PyTorch's: states, weights that are cast once, backward, capture, training."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import norch
from norch import amp, nn, optim
from norch.autograd.autocast import current
from norch.autograd.grad_mode import mode
from norch.nn import functional as F
from norch.utils.checkpoint import checkpoint

CODE_OF_LINEAR = F.linear.__code__


@pytest.fixture(autouse=True)
def is_off_afterwards() -> Iterator[None]:
    yield
    assert not current().active and not mode.casting


def ones(*shape: int, **options: Any) -> Any:
    return norch.ones(*shape, **options)


# ---- what is on -----------------------------------------------------------------------------------------------------


def test_settings_nest_and_come_back() -> None:
    assert not norch.is_autocast_enabled("cpu") and norch.get_autocast_dtype("cpu") is norch.bfloat16
    assert norch.get_autocast_dtype("cuda") is norch.float16 and norch.is_autocast_cache_enabled()
    with norch.autocast("cpu", norch.float16, cache_enabled=False):
        assert (ones(2, 2) @ ones(2, 2)).dtype is norch.float16 and norch.get_autocast_dtype("cpu") is norch.float16
        assert norch.is_autocast_enabled("cpu") and not norch.is_autocast_cache_enabled()
        with norch.autocast("cpu", enabled=False):
            assert (ones(2, 2) @ ones(2, 2)).dtype is norch.float32
            with norch.autocast("cpu", norch.bfloat16):
                assert (ones(2, 2) @ ones(2, 2)).dtype is norch.bfloat16
        assert (ones(2, 2) @ ones(2, 2)).dtype is norch.float16
    assert (ones(2, 2) @ ones(2, 2)).dtype is norch.float32 and norch.get_autocast_dtype("cpu") is norch.bfloat16


def test_functions_that_programs_have_imported_are_cast_too() -> None:
    from norch import matmul
    from norch.nn.functional import linear

    method, bound = norch.Tensor.matmul, ones(2, 2).matmul
    layer = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with norch.autocast("cpu"):
        for y in (matmul(ones(2, 2), ones(2, 2)), method(ones(2, 2), ones(2, 2)), bound(ones(2, 2)), layer(ones(2, 2))):
            assert y.dtype is norch.bfloat16
        assert linear(input=ones(2, 2), weight=ones(2, 2)).dtype is norch.bfloat16


def test_as_a_decorator_and_one_object_entered_twice() -> None:
    region = norch.autocast("cpu")

    @region
    def product(x: Any) -> Any:
        """Says so."""
        return x @ x

    assert product(ones(2, 2)).dtype is norch.bfloat16 and product.__doc__ == "Says so."
    with region, region:
        assert product(ones(2, 2)).dtype is norch.bfloat16
    assert (ones(2, 2) @ ones(2, 2)).dtype is norch.float32


def test_set_by_functions() -> None:
    try:
        norch.set_autocast_enabled("cpu", True)
        norch.set_autocast_dtype("cpu", norch.float16)
        assert (ones(2, 2) @ ones(2, 2)).dtype is norch.float16
        with norch.autocast("cpu", enabled=False):
            assert (ones(2, 2) @ ones(2, 2)).dtype is norch.float32
        norch.set_autocast_cache_enabled(False)
        assert (ones(2, 2) @ ones(2, 2)).dtype is norch.float16 and not norch.is_autocast_cache_enabled()
    finally:
        norch.set_autocast_enabled("cpu", False)
        norch.set_autocast_dtype("cpu", norch.bfloat16)
        norch.set_autocast_cache_enabled(True)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="device_type must be a str"):
        norch.autocast(norch.device("cpu"))  # type: ignore[arg-type]
    with pytest.raises(norch.DeviceError, match="no autocast for device_type 'tpu'"):
        norch.autocast("tpu")
    with pytest.warns(UserWarning, match="bfloat16 and float16 only"):
        off = norch.autocast("cpu", norch.float64)
    with off:
        assert (ones(2, 2) @ ones(2, 2)).dtype is norch.float32
    assert amp.is_autocast_available("cuda") and not amp.is_autocast_available("tpu")
    if not norch.cuda.is_available():
        with pytest.warns(UserWarning, match="no CUDA device"):
            assert not norch.cuda.amp.autocast()._enabled
    with pytest.raises(TypeError, match="autocast: dtype must be a norch.dtype, not str"):
        norch.autocast("cpu", dtype="bfloat16")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="set_autocast_dtype"):
        norch.set_autocast_dtype("cpu", "bfloat16")  # type: ignore[arg-type]


def test_each_thread_has_its_own() -> None:
    inside, checked, found = threading.Event(), threading.Event(), []

    def other() -> None:
        inside.wait()
        half = ones(2, 2).bfloat16()
        found.append((ones(2, 2) @ ones(2, 2)).dtype)
        assert half.prod().dtype is F.linear(half, half).dtype is F.mse_loss(half, half).dtype is norch.bfloat16
        assert mode.casting and not norch.is_autocast_enabled("cpu")
        with norch.autocast("cpu", norch.float16):
            found.append((ones(2, 2) @ ones(2, 2)).dtype)
        checked.set()

    thread = threading.Thread(target=other)
    thread.start()
    with norch.autocast("cpu"):
        inside.set()
        checked.wait()
        assert (ones(2, 2) @ ones(2, 2)).dtype is norch.bfloat16
    thread.join()
    assert found == [norch.float32, norch.float16]


def test_a_decorator_leaves_each_of_its_threads_as_it_was() -> None:
    """The thread that entered first leaves first."""
    entered, left = [threading.Event(), threading.Event()], threading.Event()
    found: list[Any] = [None, None]

    @norch.autocast("cpu")
    def inside(i: int) -> None:
        entered[i].set()
        entered[1].wait()
        if i == 1:
            left.wait()

    def first() -> None:
        with norch.autocast("cpu", norch.float16):
            inside(0)
            found[0] = (ones(2, 2) @ ones(2, 2)).dtype
            left.set()

    def second() -> None:
        entered[0].wait()
        inside(1)
        found[1] = (ones(2, 2) @ ones(2, 2)).dtype

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [norch.float16, norch.float32]


def test_it_ends_with_its_thread() -> None:
    casts = []

    def other() -> None:
        norch.set_autocast_enabled("cpu", True)
        norch.set_autocast_dtype("cpu", norch.float16)
        casts.append(mode.casting)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert casts == [True] and not mode.casting


def test_an_exception_ends_it() -> None:
    with pytest.raises(ZeroDivisionError), norch.autocast("cpu"):
        raise ZeroDivisionError
    with norch.autocast("cpu"):
        with pytest.raises(norch.ShapeError):
            ones(2, 3) @ ones(2, 3)
        assert (ones(2, 2) @ ones(2, 2)).dtype is norch.bfloat16


@pytest.mark.parametrize("around", [False, True])
def test_a_signal_between_two_bytecodes_leaves_it_as_it_was(around: bool) -> None:
    class Interrupted(Exception):
        pass

    def handler(*_: object) -> None:
        raise Interrupted

    def work() -> None:
        with norch.autocast("cpu", norch.float16):
            x @ x

    before, interrupted = signal.signal(signal.SIGALRM, handler), 0
    x = ones(2, 2)
    work()  # imports what it needs
    try:
        for i in range(200):
            with norch.autocast("cpu", enabled=around):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 1e-5 + i * 1e-6, 5)  # again, where a callback loses it
                    while True:
                        x @ x
                        work()
                except Interrupted:
                    interrupted += 1
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                assert (x @ x).dtype is (norch.bfloat16 if around else norch.float32)
            assert not current().active and (x @ x).dtype is norch.float32
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted == 200


def test_warnings_and_tracebacks_cite_the_program() -> None:
    with warnings.catch_warnings(record=True) as seen, norch.autocast("cpu"):
        warnings.simplefilter("always")
        F.mse_loss(ones(2, 3), ones(3))
        nn.MSELoss()(ones(2, 3), ones(3))
        compiled = norch.compile(lambda x: x.sum().item())
        for _ in range(3):
            compiled(ones(2))
    assert [warning.filename for warning in seen] == [__file__] * 3
    with norch.autocast("cpu"), pytest.raises(norch.ShapeError) as caught:
        F.linear(ones(2, 3), ones(2, 2))
    frames = [step.frame.code for step in caught.traceback]
    places = {(code.raw.co_filename, code.raw.co_firstlineno) for code in frames if code.name == "linear"}
    assert places == {(CODE_OF_LINEAR.co_filename, CODE_OF_LINEAR.co_firstlineno)}  # also where a class overrides


# ---- weights and backward --------------------------------------------------------------------------------------------


def test_a_weight_is_cast_once_and_again_when_it_was_written_to() -> None:
    w, x = ones(2, 2, requires_grad=True), ones(2, 2)
    with norch.autocast("cpu"):
        a, b = x @ w, x @ w
        assert a.grad_fn.next_functions[1][0] is b.grad_fn.next_functions[1][0]
        with norch.autocast("cpu"):
            assert (x @ w).grad_fn.next_functions[1][0] is a.grad_fn.next_functions[1][0]
        w.data = ones(2, 2) * 4  # which, as w before, was never written to
        assert (x @ w)[0, 0].item() == 8
        with norch.no_grad():
            assert (x @ w)[0, 0].item() == 8
            w.fill_(3.0)
        assert (x @ w)[0, 0].item() == 6
        norch.clear_autocast_cache()
        assert (x @ w).grad_fn.next_functions[1][0] is not a.grad_fn.next_functions[1][0]
    with norch.autocast("cpu"):
        assert (x @ w).grad_fn.next_functions[1][0] is not b.grad_fn.next_functions[1][0]
    with norch.autocast("cpu", cache_enabled=False):
        assert (x @ w).grad_fn.next_functions[1][0] is not (x @ w).grad_fn.next_functions[1][0]


def test_a_weight_first_used_without_a_graph_gets_its_gradient() -> None:
    w = ones(2, 2, requires_grad=True)
    with norch.autocast("cpu"):
        with norch.no_grad():
            ones(2, 2) @ w
        (ones(2, 2) @ w).sum().backward()
    assert w.grad is not None and w.grad.dtype is norch.float32


def test_backward_takes_the_dtypes_of_forward() -> None:
    seen = []

    class Watched(norch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            product = ones(2, 2) @ ones(2, 2)
            seen.append((g.dtype, product.dtype, norch.is_autocast_enabled("cpu")))
            return g

    w = ones(2, 2, requires_grad=True)
    with norch.autocast("cpu"):
        y = Watched.apply(ones(2, 2) @ w)
        y.sum().backward()
        assert (ones(2, 2) @ ones(2, 2)).dtype is norch.bfloat16
    assert seen == [(norch.bfloat16, norch.float32, False)]


@pytest.mark.parametrize("cast_inputs", [None, "float32"])
def test_custom_fwd_and_custom_bwd(torch: Any, cast_inputs: str | None) -> None:
    def run(t: Any) -> list[str]:
        seen = []

        class Product(t.autograd.Function):
            @staticmethod
            @t.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs and getattr(t, cast_inputs))
            def forward(ctx: Any, a: Any, b: Any) -> Any:
                ctx.save_for_backward(a, b)
                out = a @ b
                seen.extend([a.dtype, out.dtype])
                return out

            @staticmethod
            @t.amp.custom_bwd(device_type="cpu")
            def backward(ctx: Any, g: Any) -> Any:
                a, b = ctx.saved_tensors
                grads = g @ b.T, a.T @ g
                seen.extend([g.dtype, grads[0].dtype])
                return grads

        half = t.ones(2, 2, dtype=t.bfloat16)
        for on in (True, False):
            w = t.ones(2, 2, requires_grad=True)
            with t.autocast("cpu", enabled=on):
                y = Product.apply(half if on else half.float(), w)
            y.float().sum().backward()
            seen.append(w.grad.dtype)
        return [str(dtype).rpartition(".")[2] for dtype in seen]

    assert run(norch) == run(torch)


@pytest.mark.parametrize("cast_inputs", [None, "float32"])
def test_custom_fwd_of_a_forward_without_ctx(torch: Any, cast_inputs: str | None) -> None:
    """setup_context() gets ctx then, and the inputs, the first too, are cast (roma)."""

    def run(t: Any) -> list[str]:
        class Product(t.autograd.Function):
            @staticmethod
            @t.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs and getattr(t, cast_inputs))
            def forward(a: Any, b: Any) -> Any:
                return a @ b

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                ctx.save_for_backward(*inputs)

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                a, b = (x.float() for x in ctx.saved_tensors)
                return g.float() @ b.T, a.T @ g.float()

        w = t.ones(2, 2, requires_grad=True)
        with t.autocast("cpu"):
            y = Product.apply(t.ones(2, 2, dtype=t.bfloat16), w)
        y.float().sum().backward()
        return [str(y.dtype).rpartition(".")[2], *map(str, w.grad.flatten().tolist())]

    assert run(norch) == run(torch)


def test_a_checkpoint_computes_again_in_the_same_autocast() -> None:
    seen = []

    def layer(x: Any) -> Any:
        y = x @ w
        seen.append(y.dtype)
        return y

    w = ones(2, 2, requires_grad=True)
    for inside in (False, True):
        with norch.autocast("cpu"):
            y = checkpoint(layer, ones(2, 2)).float().sum()
            if inside:
                y.backward()
                assert (ones(2, 2) @ w).dtype is norch.bfloat16
        if not inside:
            y.backward()
    assert seen == [norch.bfloat16] * 4


def test_recurrent_layers_use_the_kernel(torch: Any) -> None:
    for name in ("LSTM", "GRU", "RNN"):
        theirs = getattr(torch.nn, name)(5, 6)
        ours = getattr(nn, name)(5, 6)
        ours.load_state_dict({key: norch.tensor(value.numpy()) for key, value in theirs.state_dict().items()})
        x = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
        with norch.autocast("cpu"):
            found = ours(norch.tensor(x))[0]
        try:
            with torch.autocast("cpu"):
                wanted = theirs(torch.tensor(x))[0]
        except RuntimeError:  # oneDNN's LSTM needs a processor with AVX-512
            wanted = theirs(torch.tensor(x))[0].bfloat16()
        assert str(found.dtype).rpartition(".")[2] == str(wanted.dtype).rpartition(".")[2]
        np.testing.assert_allclose(
            found.detach().float().numpy(), wanted.detach().float().numpy(), rtol=0.05, atol=0.02
        )


# ---- norch.capture and norch.compile --------------------------------------------------------------------------------


def _steps(count: int, around: bool, through: Any) -> list[Any]:
    norch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    x, y = norch.rand(6, 4), norch.tensor([0, 1, 2, 0, 1, 2])

    def step() -> Any:
        optimizer.zero_grad()
        with norch.autocast("cpu"):
            loss = F.cross_entropy(model(x) + model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def loss_of(x: Any) -> Any:
        return F.cross_entropy(model(x) + model(x), y)

    if not around:
        recorded = through(step)
        return [recorded().item() for _ in range(count)]
    recorded, losses = through(loss_of), []
    for _ in range(count):
        optimizer.zero_grad()
        with norch.autocast("cpu"):
            loss = recorded(x)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("through", ["capture", "compile"])
def test_recorded_steps_are_those_of_eager(through: str) -> None:
    eager = _steps(8, False, lambda function: function)
    assert len(set(eager)) == 8
    assert _steps(8, True, lambda function: function) == eager
    if through == "capture":
        assert _steps(8, False, norch.capture) == eager
    else:
        assert _steps(8, True, norch.compile) == eager


def test_a_recording_is_for_one_autocast() -> None:
    w = ones(2, 2, requires_grad=True)

    @norch.capture
    def product(x: Any) -> Any:
        with norch.no_grad():
            return x @ w @ w

    x = ones(2, 2)
    for _ in range(5):
        assert product(x).dtype is norch.float32
    assert product.recordings() == 1
    with norch.autocast("cpu"):
        assert (x @ w).dtype is norch.bfloat16  # kept casts are not for recordings
        for _ in range(5):
            assert product(x).dtype is norch.bfloat16
        assert product.recordings() == 2
        with norch.no_grad():
            w.fill_(2.0)
        assert product(x)[0, 0].item() == 16
        with norch.autocast("cpu", enabled=False):
            assert product(x).dtype is norch.float32
    assert product(x).dtype is norch.float32 and product.recordings() == 2


@pytest.mark.parametrize("place", ["around", "inside", "decorator", "one object"])
@pytest.mark.parametrize("grad", [True, False])
def test_compile_records_what_autocast_casts(place: str, grad: bool) -> None:
    def run(through: Any) -> tuple[list[Any], Any]:
        norch.manual_seed(0)
        layer, region = nn.Linear(8, 2), norch.autocast("cpu")

        def called(x: Any) -> Any:
            with norch.autocast("cpu"):
                return layer(x) + layer(x)

        def in_one_object(x: Any) -> Any:
            with region:
                return layer(x) + layer(x)

        functions = {"inside": called, "one object": in_one_object, "decorator": region(lambda x: layer(x) + layer(x))}
        function = through(functions.get(place, lambda x: layer(x) + layer(x)))
        x, found = norch.randn(4, 8), []
        for _ in range(6):
            with norch.autocast("cpu", enabled=place == "around"), norch.set_grad_enabled(grad):
                if place == "around":
                    layer(x)  # kept casts that were made before
                y = function(x)
                z = function(x)
            if grad:
                (y + z).sum().backward()
                with norch.no_grad():
                    layer.weight.sub_(layer.weight.grad, alpha=0.1)
            found += [y.tolist(), z.tolist(), layer.weight.tolist()]
        return found, function

    eager, _ = run(lambda function: function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, compiled = run(norch.compile)
    assert compiled.recordings() == 1 and found == eager


def test_compile_records_a_product_of_an_argument_in_autocast() -> None:
    compiled = norch.compile(lambda y: norch.mm(y, y))
    y, grads = norch.arange(16.0).reshape(4, 4).requires_grad_(), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            with norch.autocast("cpu"):
                out = compiled(y)
            out.sum().backward()
            grads.append(y.grad.tolist())
            y.grad = None
    assert compiled.recordings() == 1 and out.dtype is norch.bfloat16 and grads.count(grads[0]) == 5


# ---- training --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_model_trains_as_in_pytorch(torch: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.normal(size=(32, 1, 8, 8)).astype(np.float32), rng.integers(0, 4, size=32)
    start: dict[str, Any] = {}

    def losses(t: Any) -> list[float]:
        layers = t.nn
        model = layers.Sequential(
            layers.Conv2d(1, 8, 3), layers.ReLU(), layers.BatchNorm2d(8), layers.Flatten(), layers.Linear(288, 16),
            layers.LayerNorm(16), layers.GELU(), layers.Linear(16, 4),
        )  # fmt: skip
        if not start:
            start.update({name: value.numpy().copy() for name, value in model.state_dict().items()})
        model.load_state_dict({name: t.tensor(value) for name, value in start.items()})
        optimizer = t.optim.Adam(model.parameters(), lr=0.01)
        scaler = t.amp.GradScaler("cpu", init_scale=256.0)
        x, y = t.tensor(images), t.tensor(labels)
        seen = []
        for _ in range(30):
            optimizer.zero_grad()
            with t.autocast("cpu", dtype=getattr(t, dtype)):
                loss = layers.functional.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            seen.append(loss.item())
        return seen

    theirs, ours = losses(torch), losses(norch)
    assert theirs[-1] < 0.2 * theirs[0]
    np.testing.assert_allclose(ours, theirs, rtol=0.1, atol=0.03)


def test_the_old_names() -> None:
    with norch.cpu.amp.autocast(dtype=norch.float16):
        assert (ones(2, 2) @ ones(2, 2)).dtype is norch.float16
    from norch.cuda.amp import GradScaler, autocast, custom_bwd, custom_fwd

    assert issubclass(GradScaler, amp.GradScaler) and issubclass(autocast, amp.autocast)
    assert isinstance(norch.cpu.amp.GradScaler(4.0), norch.GradScaler) and callable(custom_fwd(custom_bwd(len)))
