"""Conditions of control code that mutants of one token (tests/mutate.py) got past: here each operand decides."""

import warnings

import numpy as np
import pytest

import norch
from norch import nn
from norch.amp import GradScaler, custom_bwd, custom_fwd

# ---- modules ---------------------------------------------------------------------------------------------------------


def test_named_modules_gives_a_shared_module_as_often_as_it_is_asked_for():
    shared = nn.Linear(1, 1)
    net = nn.Sequential(shared, nn.Sequential(shared))
    assert [name for name, _ in net.named_modules()] == ["", "0", "1"]
    assert [name for name, _ in net.named_modules(remove_duplicate=False)] == ["", "0", "1", "1.0"]


@pytest.mark.parametrize("name", ["", "a.b"])
@pytest.mark.parametrize(
    "register", [nn.Module.register_buffer, nn.Module.register_parameter, nn.Module.register_module]
)
def test_a_name_is_not_empty_and_has_no_dot(register, name):
    with pytest.raises(KeyError, match="can't be empty or contain a dot"):
        register(nn.Module(), name, None)


@pytest.mark.parametrize("fails", ["forward", "hook"])
def test_after_an_error_hooks_are_called_that_are_always_and_were_not(fails):
    calls = []

    class Failing(nn.Module):
        def forward(self, x):
            return x if fails == "hook" else x.no_such_name

    def failing(module, inputs, output):
        raise AttributeError("no_such_name")

    module = Failing()
    module.register_forward_hook(lambda *_: calls.append("first"), always_call=True)
    module.register_forward_hook(failing)
    module.register_forward_hook(lambda *_: calls.append("ordinary"))
    module.register_forward_hook(lambda *_: calls.append("last"), always_call=True)
    with pytest.raises(AttributeError, match="no_such_name"):
        module(norch.ones(1))
    assert calls == ["first", "last"]


@pytest.mark.parametrize("changed", [lambda x: x * 2, lambda x: (x * 2,)], ids=["tensor", "tuple"])
def test_a_hook_before_forward_gives_a_tensor_or_a_tuple(changed):
    module = nn.Identity()
    module.register_forward_pre_hook(lambda module, arguments: changed(arguments[0]))
    assert module(norch.ones(1)).item() == 2


def test_skipped_keys_of_either_kind_are_shown():
    module = nn.Linear(1, 1, bias=False)
    missing, unexpected = module.load_state_dict({}, strict=False), {**module.state_dict(), "other": norch.ones(1)}
    assert repr(missing) == "IncompatibleKeys(missing_keys=['weight'], unexpected_keys=[])"
    found = module.load_state_dict(unexpected, strict=False)
    assert repr(found) == "IncompatibleKeys(missing_keys=[], unexpected_keys=['other'])"
    assert repr(module.load_state_dict(module.state_dict())) == "<All keys matched successfully>"


def test_a_parameter_is_loaded_from_its_own_transpose():
    module = nn.Linear(2, 2, bias=False)
    wanted = module.weight.detach().t().tolist()
    module.load_state_dict({"weight": module.weight.detach().t()})
    assert module.weight.tolist() == wanted


def test_assigned_tensors_are_parameters_where_parameters_were():
    module = nn.BatchNorm1d(1)
    weight, bias = nn.Parameter(norch.ones(1)), nn.Parameter(norch.ones(1), requires_grad=False)
    mean = norch.ones(1)
    state = {**module.state_dict(), "weight": weight, "bias": bias, "running_mean": mean}
    module.load_state_dict(state, assign=True)
    assert module.weight is weight and module.bias is not bias and module.running_mean is mean
    assert type(module.bias) is nn.Parameter and module.bias.requires_grad
    for plain in (norch.full((1,), 3.0), norch.full((1,), 3.0, requires_grad=True)):
        module.load_state_dict({**state, "weight": plain}, assign=True)
        assert type(module.weight) is nn.Parameter and module.weight.item() == 3 and module.weight.requires_grad


def test_a_buffer_that_is_none_has_no_key():
    module = nn.Module()
    module.register_buffer("empty", None)
    module.register_buffer("passing", norch.ones(1), persistent=False)
    module.register_buffer("kept", norch.ones(1))
    assert [*module.state_dict()] == ["kept"]
    module.load_state_dict({"kept": norch.zeros(1)})
    assert module.kept.item() == 0


# ---- autocast --------------------------------------------------------------------------------------------------------


class Seen(norch.autograd.Function):
    """Gives a tensor whose dtype is that in which forward got its input."""

    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=norch.bfloat16)
    def forward(ctx, x):
        return norch.zeros(1, dtype=x.dtype)

    @staticmethod
    def backward(ctx, g):
        return g


def test_custom_fwd_casts_where_autocast_is_on_and_tensors_of_its_device():
    x = norch.ones(1)
    assert Seen.apply(x).dtype is norch.float32
    with norch.autocast("cpu"):
        assert Seen.apply(x).dtype is norch.bfloat16
        assert Seen.apply(norch.ones(1, device="meta")).dtype is norch.float32
        assert Seen.apply(x.double()).dtype is norch.float64
        assert Seen.apply(x.int()).dtype is norch.int32


def test_custom_fwd_leaves_arrays_as_they_are():
    class Scaled(norch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=norch.bfloat16)
        def forward(ctx, x, by):
            return x * float(by.sum())

    with norch.autocast("cpu"):
        assert Scaled.apply(norch.ones(1), np.ones(2)).tolist() == [2]


def test_devices_of_pytorch_alone_have_the_dtype_that_autocast_has_there():
    assert norch.get_autocast_dtype("mps") is norch.float16 and norch.get_autocast_dtype("xla") is norch.bfloat16
    with pytest.raises(norch.DeviceError, match="no autocast for device_type 'abacus'"):
        norch.get_autocast_dtype("abacus")


class WithoutContext(norch.autograd.Function):
    """Its forward gets no ctx; backward gives 1 where autocast is on, else 0."""

    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * norch.is_autocast_enabled("cpu")


class WithContext(WithoutContext):
    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx, x):
        return x.clone()

    backward = staticmethod(custom_bwd(WithoutContext.backward, device_type="cpu"))
    setup_context = norch.autograd.Function.setup_context


@pytest.mark.parametrize("function", [WithContext, WithoutContext])
@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("backward", [False, True])
def test_backward_has_autocast_as_forward_had_it(function, forward, backward):
    x = norch.ones(1, requires_grad=True)
    with norch.autocast("cpu", enabled=forward):
        y = function.apply(x)
    with norch.autocast("cpu", enabled=backward):
        y.backward()
    assert x.grad.item() == (forward and function is WithContext)


@pytest.mark.parametrize(
    "device, dtype", [("cpu", norch.float32), ("cuda", norch.float32), ("cuda", norch.float16)], ids=str
)
def test_autocast_that_is_not_enabled_warns_of_nothing(device, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        norch.autocast(device, dtype=dtype, enabled=False)


def test_autocast_of_a_device_leaves_tensors_of_others():
    x = norch.ones(2, 2, device="meta")
    with norch.autocast("cpu"):
        assert (x @ x).dtype is norch.float32
        assert (norch.ones(2, 2) @ norch.ones(2, 2)).dtype is norch.bfloat16


def scaled():
    """A scaler that has scaled, its optimizer, and the parameter, with a gradient."""
    w = nn.Parameter(norch.ones(1))
    scaler, optimizer = GradScaler("cpu", init_scale=4.0), norch.optim.SGD([w], lr=1.0)
    scaler.scale(w.sum()).backward()
    return scaler, optimizer, w


@pytest.mark.parametrize("first", ["unscale_", "step"])
def test_gradients_are_unscaled_once(first):
    scaler, optimizer, w = scaled()
    getattr(scaler, first)(optimizer)
    with pytest.raises(norch.Error, match=rf"{first}\(\) has been called"):
        scaler.unscale_(optimizer)
    assert w.grad.tolist() == [1.0]


@pytest.mark.parametrize("scale", [norch.ones(2), norch.ones(1, requires_grad=True)], ids=["two", "requires_grad"])
def test_a_new_scale_is_a_number(scale):
    scaler, optimizer, _ = scaled()
    scaler.step(optimizer)
    with pytest.raises(norch.ArgumentError, match="new_scale"):
        scaler.update(scale)
    scaler.update(norch.full((1,), 8.0))
    assert scaler.get_scale() == 8.0


def test_a_scaler_that_has_scaled_loads_a_state():
    scaler, optimizer, _ = scaled()
    scaler.step(optimizer)
    scaler.update()
    scaler.load_state_dict({**scaler.state_dict(), "scale": 32.0, "_growth_tracker": 7})
    assert scaler.get_scale() == 32.0 and scaler.state_dict()["_growth_tracker"] == 7


# ---- optimizers and schedules ---------------------------------------------------------------------------------------


def sgd(lr=0.1, **options):
    return norch.optim.SGD([nn.Parameter(norch.ones(2))], lr=lr, **options)


@pytest.mark.parametrize(
    "schedule, options",
    [
        ("LinearLR", {"start_factor": 0.0}),
        ("LinearLR", {"start_factor": 1.5}),
        ("LinearLR", {"end_factor": -0.5}),
        ("LinearLR", {"end_factor": 1.5}),
        ("ConstantLR", {"factor": -0.5}),
        ("ConstantLR", {"factor": 1.5}),
        ("StepLR", {"step_size": 0}),
        ("PolynomialLR", {"total_iters": 0}),
        ("CosineAnnealingLR", {"T_max": 0}),
        ("ReduceLROnPlateau", {"mode": "low"}),
        ("ReduceLROnPlateau", {"threshold_mode": "low"}),
        ("ReduceLROnPlateau", {"factor": 1.0}),
    ],
)
def test_each_bound_of_a_schedule_refuses(schedule, options):
    with pytest.raises(norch.ArgumentError, match=schedule):
        getattr(norch.optim.lr_scheduler, schedule)(sgd(), **options)


@pytest.mark.parametrize(
    "schedule, options, rates",
    [
        ("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 2}, [1.0, 0.5, 0.0]),
        ("ConstantLR", {"factor": 0.0, "total_iters": 1}, [0.0, 1.0]),
        ("ConstantLR", {"factor": 1.0, "total_iters": 1}, [1.0, 1.0]),
        ("StepLR", {"step_size": 1, "gamma": 0.5}, [1.0, 0.5]),
        ("PolynomialLR", {"total_iters": 1}, [1.0, 0.0]),
        ("CosineAnnealingLR", {"T_max": 1}, [1.0, 0.0]),
    ],
)
def test_the_ends_of_each_range_are_taken(schedule, options, rates):
    optimizer = sgd(lr=1.0)
    steps = getattr(norch.optim.lr_scheduler, schedule)(optimizer, **options)
    found = [optimizer.param_groups[0]["lr"]]
    for _ in rates[1:]:
        optimizer.step()
        steps.step()
        found.append(optimizer.param_groups[0]["lr"])
    assert found == pytest.approx(rates)


@pytest.mark.parametrize("betas", [0.9, (0.9,), (0.9, 0.99, 0.999), "ab"])
def test_betas_are_two_numbers(betas):
    with pytest.raises((ValueError, TypeError), match="betas|beta parameter|number"):
        norch.optim.Adam([nn.Parameter(norch.ones(1))], betas=betas)


class Counting(norch.optim.Optimizer):
    """A user's optimizer with state of its own besides that of its parameters."""

    def __init__(self, params):
        super().__init__(params, {})
        self.state["calls"] = 0

    def step(self, closure=None):
        self.state["calls"] += 1
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["seen"] = [norch.ones(1), "text"]


def test_state_that_belongs_to_no_parameter_is_saved_and_loaded():
    used, unused = nn.Parameter(norch.ones(1)), Counting([nn.Parameter(norch.ones(1))])
    first = Counting([used])
    first.step()
    saved = first.state_dict()
    assert saved["state"]["calls"] == 1 and set(saved["state"]) == {0, "calls"}
    unused.load_state_dict(saved)
    assert unused.state["calls"] == 1
    (entry,) = (entry for key, entry in unused.state.items() if isinstance(key, norch.Tensor))
    assert entry["seen"][0].tolist() == [1.0] and entry["seen"][1] == "text"
    empty = Counting([used])
    assert empty.state[used] == {} and set(empty.state_dict()["state"]) == {"calls"}  # no entry of an empty state


def test_an_average_has_one_function():
    swa = norch.optim.swa_utils
    ema, several = swa.get_ema_avg_fn(0.75), swa.get_ema_multi_avg_fn(0.75)
    assert ema(norch.tensor(4.0), norch.tensor(8.0), 3).item() == 5.0
    model = nn.Linear(1, 1)
    for option in ({"avg_fn": ema}, {"multi_avg_fn": several}):
        average = swa.AveragedModel(model, **option)
        average.update_parameters(model)
        with norch.no_grad():
            before = model.weight.item()
            model.weight.add_(4.0)
        average.update_parameters(model)
        assert average.module.weight.item() == pytest.approx(before + 1.0)
        with norch.no_grad():
            model.weight.sub_(4.0)
    with pytest.raises(norch.ArgumentError, match="not both"):
        swa.AveragedModel(model, avg_fn=ema, multi_avg_fn=several)


@pytest.mark.parametrize(
    "name, options, change",
    [
        ("SGD", {"lr": 0.1}, {"momentum": 0.5}),
        ("SGD", {"lr": 0.1, "momentum": 0.5}, {"momentum": 0}),
        ("Adam", {"lr": 0.1}, {"amsgrad": True}),
        ("RMSprop", {"lr": 0.1}, {"momentum": 0.5}),
        ("RMSprop", {"lr": 0.1}, {"centered": True}),
    ],
)
def test_an_option_that_changes_the_state_of_a_recorded_step(name, options, change):
    def trained(wrap):
        w = nn.Parameter(norch.tensor([1.0, -2.0]))
        optimizer = getattr(norch.optim, name)([w], **options)

        def step(scale):
            optimizer.zero_grad()
            (w * w * scale).sum().backward()
            optimizer.step()

        step, programs = wrap(step), []
        for k in range(12):
            if k == 6:
                optimizer.param_groups[0].update(change)
                for entry in optimizer.state.values():
                    entry.update({"max_exp_avg_sq": norch.zeros(2)} if change.get("amsgrad") else {})
            step(norch.tensor(1.0 + (k == 7)))
            programs.append(getattr(step, "program", None))
        assert len(set(programs[2:])) == (2 if wrap is norch.capture else 1)
        return w.tolist()

    assert trained(norch.capture) == trained(lambda step: step)


# ---- autograd --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16], ids=str)
def test_backward_rounds_gradients_of_halves_once(dtype):
    """In 16 bits, 1 + x rounds, and so does the quotient."""
    x = norch.linspace(0.1, 3, 50).to(dtype).requires_grad_()
    x.log1p().sum().backward()
    once = (1 / (1 + x.detach().float())).to(dtype)
    assert x.grad.tolist() == once.tolist()
    assert x.grad.tolist() != (1 / (1 + x.detach())).tolist()


def test_a_leaf_within_vmap_collects_its_gradient_if_it_is_batched():
    def gradient(x):
        leaf = x.detach().requires_grad_()
        (leaf * leaf).sum().backward()
        return leaf.grad

    assert norch.vmap(gradient)(norch.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    whole = norch.ones(1, requires_grad=True)
    with pytest.raises(norch.Error, match="within vmap a leaf that is not batched"):
        norch.vmap(lambda x: (whole * x).sum().backward())(norch.tensor([1.0, 2.0]))


@pytest.mark.parametrize("result, saved", [("float64", "float32"), ("float32", "float64")])
def test_the_gradient_of_a_sum_in_another_dtype_has_that_of_its_input(result, saved):
    x = norch.ones(3, dtype=getattr(norch, saved), requires_grad=True)
    total = x.sum(dtype=getattr(norch, result))
    (gradient,) = norch.autograd.grad(total, x, create_graph=True)
    assert gradient.dtype is x.dtype and gradient.tolist() == [1.0] * 3
