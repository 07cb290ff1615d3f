"""Private members of PyTorch's classes that programs call and define: what PyTorch prints, the door prints."""

from __future__ import annotations

from typing import Any

import pytest
from test_door import door, run

import norch
from norch.compat import placeholders

pytestmark = pytest.mark.host

PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)

conv = nn.Conv2d(2, 3, (3, 5), padding=(1, 2), padding_mode="reflect")
print(conv._reversed_padding_repeated_twice, conv._conv_forward(torch.ones(1, 2, 9, 9), conv.weight, None).shape)
conv._reversed_padding_repeated_twice = (0, 0, 0, 0)
print(conv._reversed_padding_repeated_twice)

linear = nn.Linear(2, 2)
linear.register_forward_hook(lambda *given: None, with_kwargs=True)
linear.register_forward_pre_hook(lambda *given: None)
print(linear._call_impl(torch.ones(2)).shape, linear._slow_forward(torch.ones(2)).shape, linear.dump_patches)
print(len(linear._forward_hooks_with_kwargs), len(linear._forward_pre_hooks_with_kwargs))
print(dict(linear._forward_hooks_always_called), linear._is_full_backward_hook)

class Twice(nn.Linear):
    def __call__(self, x):
        return 2 * self._call_impl(x)
print(Twice(2, 3)(torch.zeros(4, 2)).shape)

layers = nn.Sequential(nn.ReLU(), nn.Tanh())
print(layers._get_item_by_idx(iter(layers), -1), nn.ModuleList(layers)._get_abs_string_index(-1))

for bidirectional in (False, True):
    rnn = nn.LSTM(2, 3, 2, bidirectional=bidirectional, bias=not bidirectional)
    print(rnn._flat_weights_names, rnn._all_weights, [tuple(w.shape) for w in rnn._flat_weights])
    state = (torch.ones(2 * (1 + bidirectional), 5, 3),) * 2
    print(rnn.check_forward_args(torch.ones(4, 5, 2), state, None))
    x = torch.ones(4, 5, 2)
    print(rnn.get_expected_hidden_size(x, None), rnn.get_expected_cell_size(x, None))
    print(nn.GRU(2, 3, batch_first=True).get_expected_hidden_size(x, None))
    print([tuple(x.shape) for x in rnn.permute_hidden(state, torch.tensor([1, 0]))])
    print(rnn.permute_hidden(state, None) is state)
    for given, wrong in ((torch.ones(4, 5, 3), state), (torch.ones(5, 2), state), (torch.ones(4, 6, 2), state)):
        try:
            rnn.check_forward_args(given, wrong, None)
        except RuntimeError as error:
            print(type(error).__name__)

attention = nn.MultiheadAttention(4, 2)
query, hidden, mask = torch.ones(3, 5, 4), torch.tensor([[0.0, -1, 0, 0, 0]]).expand(3, 5), torch.eye(5)
print(attention.merge_masks(None, None, query), attention.merge_masks(mask, None, query)[1])
print(attention.merge_masks(None, hidden, query)[1], *attention.merge_masks(mask, hidden, query))
print(attention.merge_masks(mask.expand(6, 5, 5), hidden, query)[0].sum())

optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
print(optimizer._patch_step_function(), optimizer._cuda_graph_capture_health_check(), optimizer._optimizer_step_code())
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max")
plateau.step(3.0)
plateau._reset()
print(plateau.best, plateau.mode_worse, plateau.num_bad_epochs)

loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(3)))
print([int(x) for (x,) in loader._get_iterator()])

scaler = torch.amp.GradScaler("cpu")
weight = optimizer.param_groups[0]["params"][0]
scaler.scale(weight.sum()).backward()
print(scaler._check_inf_per_device(optimizer), scaler._found_inf_per_device(optimizer), scaler._get_scale_async())
print(torch.distributions.Categorical(torch.ones(2, 3))._num_events)
print(torch.tensor([True, False])._is_any_true(), torch.tensor([True, False])._is_all_true())
print(torch.jit.wait(torch.jit.fork(torch.add, torch.ones(2), 1)))
"""


def test_members_do_what_pytorchs_do(torch: Any) -> None:
    assert door(PROGRAM) == run("-W", "ignore", "-c", PROGRAM)


def test_every_member_is_one_of_pytorchs(torch: Any) -> None:
    """That it has, on its class or on an instance; methods.py has what is no value."""
    from norch.compat import methods

    of_classes = {"_List": torch.nn.ModuleList, "_Conv": torch.nn.Conv2d, "DataLoader": torch.utils.data.DataLoader}
    for module, classes in placeholders.members().items():
        for name, tokens in classes.items():
            places = (torch, torch.nn, torch.optim, torch.optim.lr_scheduler, torch.amp, torch.distributions)
            cls = of_classes.get(name) or next(getattr(place, name) for place in places if hasattr(place, name))
            for token in tokens:
                bare = token.lstrip("@").partition("=")[0]
                if name in ("ModuleList", "_List"):
                    assert hasattr(torch.nn.Sequential, bare) or hasattr(torch.nn.ModuleList, bare), token
                elif token[0] != "@" and "=" not in token:
                    assert hasattr(cls, bare), f"{module}.{name}: {token}"
                if "=" not in token:
                    assert callable(getattr(getattr(methods, name), bare)), token


def test_closing_takes_the_members_back() -> None:
    door(
        "import norch\nopened = norch.as_torch()\nassert norch.nn.Linear(1, 1)._is_full_backward_hook is None\n"
        "opened.close()\nassert not hasattr(norch.nn.Linear(1, 1), '_is_full_backward_hook')\n"
        "assert not hasattr(norch.nn.Module, '_call_impl')"
    )


FUNCTIONS = """
import torch
from torch import _VF

def made(*sizes):
    return (torch.arange(torch.Size(sizes).numel()).float().reshape(sizes) * 0.7).sin()

def say(*values):
    for x in values:
        print(tuple(x.shape), *[round(float(v), 3) + 0.0 for v in (x.double().mean(), x.double().abs().mean())])

statistics = made(3), made(3).abs() + 1
say(torch.batch_norm(made(2, 3, 4), made(3), made(3), *statistics, True, 0.1, 1e-5, False))
say(torch.instance_norm(made(2, 3, 4), None, None, None, None, True, 0.1, 1e-5, False), *statistics)
say(torch.embedding(made(5, 2), torch.tensor([1, 4])))
kernel = made(3, 2, 3, 3), made(3)
say(torch.convolution(made(1, 2, 5, 5), *kernel, [1, 1], [1, 1], [1, 1], False, [0, 0], 1))
say(*torch.native_layer_norm(made(2, 4), [4], None, None, 1e-5))
say(*torch.native_group_norm(made(2, 4, 3), None, None, 2, 4, 3, 2, 1e-5))
for mode, states, gates in ("lstm", 2, 4), ("gru", 1, 3), ("rnn_tanh", 1, 1), ("rnn_relu", 1, 1):
    for both, bias in (False, True), (True, False):
        params = []
        for inputs in (4, 3 * (1 + both)):
            one = [made(gates * 3, inputs), made(gates * 3, 3)] + [made(gates * 3)] * 2 * bias
            params += [p.requires_grad_() for p in one * (1 + both)]
        hx = (made(2 * (1 + both), 2, 3),) * states
        hx = hx if states == 2 else hx[0]
        options = params, bias, 2, 0.0, False, both
        out = getattr(_VF, mode)(made(5, 2, 4), hx, *options, False)
        out[0].sum().backward()
        say(*out, params[0].grad, *getattr(torch, mode)(made(2, 5, 4), hx, *options, True))
        say(*getattr(torch, mode)(made(7, 4), torch.tensor([2, 2, 2, 1]), hx, *options))
    hx = (made(2, 3),) * states
    weights = made(gates * 3, 4), made(gates * 3, 3), made(gates * 3), made(gates * 3)
    out = getattr(torch, mode + "_cell")(made(2, 4), hx if states == 2 else hx[0], *weights)
    say(*(out if states == 2 else [out]))
"""


def test_functions_of_layers_compute_what_pytorchs_do(torch: Any) -> None:
    assert door(FUNCTIONS) == run("-W", "ignore", "-c", FUNCTIONS)


SIZES = """
import numpy as np
import torch

def say(x):
    print(tuple(x.shape), x.stride(), x.storage_offset(), x.tolist())

x = torch.arange(6.0)
y = x[2:]
say(y.resize_(3))
say(y.resize_(2, 2))
say(y.resize_([1]).resize_(torch.Size([1, 1])))
say(x.t().resize_(2, 2) if x.ndim == 2 else x.view(2, 3).t().resize_(3, 2))
x[2] = 9
say(y)
weight, before = torch.ones(2, 1), y._version
y.resize_(1, 1), print(y._version == before)
product = torch.ones(2, 1, requires_grad=True) * weight
weight.resize_(1, 2)
try:
    product.sum().backward()
except RuntimeError:
    print("written to since")
grown = torch.arange(3).resize_(2, 3)
print(tuple(grown.shape), grown.view(-1)[:3].tolist())
old = torch.FloatTensor(1)
say(old.resize_(2, 2).copy_(torch.eye(2)))
say(torch.empty(0).resize_as_(x).copy_(x))
data = torch.zeros(2)
data.data.resize_(x.size()).copy_(x)
say(torch.zeros(4).resize_(np.int64(2)))
leaf = torch.ones(2, requires_grad=True)
for call in (
    lambda: leaf.resize_(1), lambda: torch.ones(2).set_(torch.ones(2).int()), lambda: leaf.set_(torch.ones(3)),
    lambda: torch.ones(2).resize_(-1),
):
    try:
        call()
    except RuntimeError:
        print("refused")
z = torch.zeros(2)
say(z.set_(x))
x[0] = 7
say(z)
say(z.set_(x.untyped_storage(), 1, (2, 2), (1, 2)))
say(z.set_(x.storage(), 2, torch.Size([2])))
say(z.set_(x, 1, (2, 2)))
say(z.set_(x.untyped_storage()))
say(z.set_())
"""


def test_tensors_of_other_sizes(torch: Any) -> None:
    assert door(SIZES) == run("-W", "ignore", "-c", SIZES)


# ---- what forward() calls, with the door and without it --------------------------------------------------------------


def test_a_subclass_defines_the_convolution_of_a_layer() -> None:
    class Halved(norch.nn.Conv1d):
        def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
            return super()._conv_forward(input, weight / 2, bias)

    layer = Halved(2, 3, 3, bias=False, padding=1, padding_mode="circular")
    x = norch.randn(1, 2, 6)
    assert norch.allclose(layer(x), norch.nn.Conv1d.forward(layer, 2 * x) / 2)
    plain = norch.nn.Conv1d(2, 3, 3, bias=False, padding=1, padding_mode="circular")
    plain.weight = layer.weight
    assert norch.allclose(layer(x), plain(x) / 2)


def test_a_subclass_asks_for_the_padding_of_a_transposed_convolution() -> None:
    """As the layers of quantization and of Bayesian libraries do, and by defining it."""

    class Own(norch.nn.ConvTranspose1d):
        def _output_padding(self, *args: Any) -> Any:
            asked.append(args[1])
            return super()._output_padding(*args)

    asked: list[Any] = []
    layer, x = Own(1, 1, 3, stride=2, output_padding=1), norch.ones(1, 1, 4)
    assert layer(x).shape == (1, 1, 10) and layer(x, [9]).shape == (1, 1, 9) and asked == [None, [9]]
    sizes = [2, 3], [0, 1], [3, 3]
    assert layer._output_padding(norch.ones(1, 1, 4, 4), [1, 1, 10, 11], *sizes, 2) == [1, 1]
    assert layer._output_padding(norch.ones(1, 4, 4), [11, 13], *sizes, 2, [2, 2]) == [0, 1]
    with pytest.raises(ValueError, match="the least is"):
        layer._output_padding(norch.ones(1, 1, 4, 4), [11, 11], *sizes, 2)


def test_a_subclass_defines_what_inputs_a_norm_takes() -> None:
    class OfAny(norch.nn.modules.batchnorm._BatchNorm):
        def _check_input_dim(self, input: Any) -> None:
            pass

    assert OfAny(2)(norch.ones(2, 2, 1, 1, 1, 1)).shape == (2, 2, 1, 1, 1, 1)
    with pytest.raises(norch.errors.ShapeError, match="expected 4D input"):
        norch.nn.BatchNorm2d(2)._check_input_dim(norch.ones(2, 2))


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_subclass_defines_the_parts_of_a_transformer_layer(norm_first: bool) -> None:
    called = []

    def noted(cls: Any) -> Any:
        def part(name: str) -> Any:
            def call(self: Any, *args: Any, **kwargs: Any) -> Any:
                called.append(name)
                return getattr(cls, name)(self, *args, **kwargs)

            return call

        return type("Noted", (cls,), {name: part(name) for name in ("_sa_block", "_mha_block", "_ff_block")})

    x = norch.randn(3, 2, 4)
    for cls, given, parts in (
        (norch.nn.TransformerEncoderLayer, (x,), ["_sa_block", "_ff_block"]),
        (norch.nn.TransformerDecoderLayer, (x, x), ["_sa_block", "_mha_block", "_ff_block"]),
    ):
        called.clear()
        layer = noted(cls)(4, 2, 8, norm_first=norm_first).eval()
        plain = cls(4, 2, 8, norm_first=norm_first).eval()
        plain.load_state_dict(layer.state_dict())
        assert norch.equal(layer(*given), plain(*given))
        assert called == parts


def test_a_module_under_the_name_of_a_property() -> None:
    """The property is asked first; where it raises an AttributeError, the module is found."""

    class Net(norch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = norch.nn.Linear(2, 3)
            self.register_buffer("scale", norch.ones(2))

        @property
        def head(self) -> Any:
            return self._head

        @property
        def size(self) -> int:
            return 5

    class Below(Net):
        pass

    for cls in (Net, Below):
        net = cls()
        assert net.head is net._modules["head"] and net.size == 5 and list(net.state_dict())[0] == "scale"
        with pytest.raises(AttributeError, match="nothing"):
            _ = net.nothing


def test_parts_of_complex_numbers_are_written() -> None:
    x = norch.zeros(2, dtype=norch.complex64)
    x.real, x.imag = norch.tensor([1.0, 2.0]), norch.tensor([3.0, 4.0])
    assert x.tolist() == [1 + 3j, 2 + 4j]
    y = norch.ones(2, requires_grad=True)
    x = norch.zeros(2, dtype=norch.complex64)
    x.imag = 3 * y
    x.abs().sum().backward()
    assert y.grad is not None and y.grad.tolist() == [3.0, 3.0]
    z = norch.zeros(2)
    z.real = norch.ones(2)
    assert z.tolist() == [1.0, 1.0]
    with pytest.raises(norch.errors.DTypeError, match="complex"):
        z.imag = z
