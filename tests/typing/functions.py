"""Functions of one's own, decorators, contexts, and the functions of nn.functional, func and distributions."""

from typing import Any

from typing_extensions import assert_type

import norch
import norch.nn.functional as F
from norch import Tensor, nn
from norch.autograd import Function
from norch.distributions import Categorical, Normal, kl_divergence
from norch.func import vmap


class Scaled(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x.detach() * factor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        assert_type(ctx.factor, Any)
        return grad * ctx.factor, None


x = norch.randn(2, 3, requires_grad=True)
scaled: Tensor = Scaled.apply(x, 2.0)


# ---- decorators keep signatures ----
@norch.no_grad()
def halved(x: Tensor, times: int = 1) -> Tensor:
    return x / (2.0 * times)


@norch.inference_mode()
def size_of(x: Tensor) -> int:
    return x.numel()


@norch.capture
def step(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum()


@norch.capture(limit=2)
def other_step(a: Tensor) -> tuple[Tensor, Tensor]:
    return a + 1, a + 2


class Trainer:
    @norch.capture
    def step(self, a: Tensor) -> Tensor:
        return a * 2


assert_type(halved(x, times=2), Tensor)
assert_type(size_of(x), int)
assert_type(step(norch.ones(2), norch.ones(2)), Tensor)
assert_type(step.recordings(), int)
assert_type(other_step(norch.ones(2)), tuple[Tensor, Tensor])
assert_type(Trainer().step(norch.ones(2)), Tensor)
with norch.no_grad(), norch.set_grad_enabled(False), norch.random.fork_rng():
    assert_type(norch.is_grad_enabled(), bool)
with norch.enable_grad():
    (grad,) = norch.autograd.grad(x.sum(), [x])

# ---- functions ----
image = norch.zeros(1, 3, 8, 8)
assert_type(F.relu(x) + F.softmax(x, dim=-1) + F.gelu(x, approximate="tanh") + F.softsign(x), Tensor)
assert_type(F.cross_entropy(x, norch.tensor([0, 1]), reduction="none"), Tensor)
assert_type(F.mse_loss(x, x.detach(), reduction="sum"), Tensor)
assert_type(F.conv2d(image, norch.zeros(4, 3, 3, 3), padding=1), Tensor)
assert_type(F.max_pool2d(image, 2), Tensor)
assert_type(F.max_pool2d(image, 2, return_indices=True), tuple[Tensor, Tensor])
assert_type(F.interpolate(image, scale_factor=2.0), Tensor)
assert_type(F.layer_norm(x, (3,)), Tensor)
assert_type(F.dropout(x, 0.5, training=False), Tensor)
assert_type(F.pad(x, (1, 1)), Tensor)
assert_type(F.one_hot(norch.tensor([0, 1])), Tensor)
assert_type(F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True), Tensor)
assert_type(F.linear(x, norch.ones(2, 3)), Tensor)
assert_type(nn.init.xavier_uniform_(norch.empty(2, 2)), Tensor)

# ---- distributions, func, random numbers ----
normal = Normal(norch.zeros(2), norch.ones(2))
assert_type(normal.rsample((3,)), Tensor)
assert_type(normal.log_prob(norch.zeros(2)), Tensor)
assert_type(normal.mean, Tensor)
assert_type(Categorical(logits=x).sample(), Tensor)
assert_type(kl_divergence(normal, normal), Tensor)
batched: Tensor = vmap(lambda a: a * 2)(x)
assert_type(norch.manual_seed(0), norch.Generator)
assert_type(norch.rand(2, generator=norch.Generator()), Tensor)
assert_type(norch.multinomial(norch.ones(3), 2), Tensor)
assert_type(norch.cuda.is_available(), bool)
assert_type(norch.cuda.device_count(), int)
assert_type(norch.__version__, str)
norch.backends.cudnn.benchmark = True
scripted = norch.jit.script(halved)
assert_type(scripted(x), Tensor)
average = norch.optim.swa_utils.AveragedModel(nn.Linear(2, 2))
