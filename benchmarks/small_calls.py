"""Calls on ten elements beside PyTorch: what a call costs where there is next to nothing to compute.

    python -m benchmarks.small_calls [--only WORD] [--below 1.0] [--seconds 0.05]

A line is the least time of each library in nanoseconds, and PyTorch's time / norch's: above 1, norch is the faster one.
Both are in one process, on one thread, and take turns, so that a change of the machine's speed meets both.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

# By what a call is for. Names: t the module, F its nn.functional; x, y, z, p (within 0 to 1) ten numbers, w and v with
# gradients; a, b (4, 4), spd positive definite, c (1, 3, 4, 4), q (2, 5), k (3, 3, 3, 3); i five indices of ten, j five
# classes, m a mask of x, n a NumPy array.
CALLS = {
    "attributes": """
        x.shape; x.dtype; x.device; x.ndim; x.dim(); x.size(); x.size(0); x.numel(); len(x); x.stride(); x.T; a.mT
        x.is_contiguous(); x.requires_grad; x.grad; w.is_leaf; w.grad_fn; x.data_ptr(); x.element_size()
        x.is_floating_point(); x.item; x.storage_offset(); x.itemsize; x.nbytes; x.is_complex(); t.is_tensor(x)
        x.get_device(); x.layout; x.is_cuda
        """,
    "values out": """
        x.tolist(); s.item(); float(s); bool(s > 0); x.numpy(); n.sum(); t.from_numpy(n); t.as_tensor(n); repr(s)
        list(x); x.data; x.detach(); x.detach().numpy(); x.__array__(); t.equal(x, y); t.allclose(x, y)
        x.is_same_size(y)
        """,
    "made": """
        t.zeros(10); t.ones(10); t.empty(10); t.full((10,), 2.0); t.arange(10); t.linspace(0, 1, 10); t.eye(4)
        t.tensor(1.0); t.tensor([1.0, 2.0, 3.0]); t.zeros_like(x); t.ones_like(x); t.empty_like(x)
        t.full_like(x, 2.0); x.new_zeros(10); x.new_tensor([1.0, 2.0]); t.rand(10); t.randn(10)
        t.randint(0, 5, (10,)); t.randperm(10); t.rand_like(x); t.randn_like(x); t.bernoulli(p); t.multinomial(p, 2)
        t.scalar_tensor(2.0); t.logspace(0, 1, 10); x.clone(); t.tril_indices(4, 4); t.complex(x, y)
        t.normal(0.0, 1.0, (10,)); t.meshgrid(x, y, indexing='ij')
        """,
    "one number each": """
        x.abs(); -x; x.exp(); x.log(); x.sqrt(); x.sin(); x.tanh(); x.sigmoid(); x.square(); x.floor(); x.round()
        x.sign(); x.reciprocal(); x.rsqrt(); x.erf(); x.frac(); x.nan_to_num(); x.isnan(); x.isfinite()
        x.logical_not(); x.trunc(); x.clamp(0.2, 0.8); x.clamp(min=0.0); x.clamp_min(0.0); x.log1p(); x.expm1()
        x.lgamma(); x.digamma(); p.logit(); x.sinc(); F.relu(x); F.gelu(x); F.silu(x); F.elu(x); F.selu(x)
        F.celu(x); F.softplus(x); F.hardsigmoid(x); F.hardswish(x); F.mish(x); F.leaky_relu(x); F.relu6(x)
        F.hardtanh(x); F.softsign(x); F.tanhshrink(x); F.logsigmoid(x); F.threshold(x, 0.1, 0.0); F.softshrink(x)
        F.hardshrink(x); F.dropout(x, 0.5, False); F.dropout(x, 0.5); F.sigmoid(x); F.tanh(x); F.glu(x); x.deg2rad()
        """,
    "two and three": """
        x + y; x - y; x * y; x / y; x ** 2; x ** 0.5; x ** y; x + 1; x * 2.0; 1 - x; 1 / x; x // y; x % y; x > y
        x == y; x > 0; t.maximum(x, y); t.minimum(x, y); t.atan2(x, y); t.where(m, x, y); t.lerp(x, y, 0.3)
        t.addcmul(x, y, z); t.addcdiv(x, y, p); t.hypot(x, y); t.fmod(x, y); x.mul(y); x.add(y, alpha=2); x.sub(y)
        x.div(y); x.pow(2); x.eq(y); m & m; ~m; m | m; i + i; i * 2; i // 2; i % 3; t.logaddexp(x, y)
        x.masked_fill(m, 0.0); t.where(m, x, 0.0); x.dist(y); t.clamp(x, y, z); t.isclose(x, y); x.xlogy(y)
        t.cross(q3, q3, dim=-1); x.copysign(y); t.bitwise_and(i, i)
        """,
    "in place": """
        z.add_(1.0); z.mul_(1.0); z.zero_(); z.fill_(1.0); z.copy_(x); z.add_(x, alpha=0.0); z.clamp_(0.0, 1.0)
        z.relu_(); z.abs_(); z.masked_fill_(m, 1.0); z.uniform_(); z.normal_(); z.sub_(y); z.div_(2.0); z.sqrt_()
        z.addcmul_(x, y); z.__setitem__(0, 1.0); z.__setitem__(slice(1, 3), 1.0); z.lerp_(x, 0.5); z.exponential_()
        z.bernoulli_(0.5)
        """,
    "reductions": """
        x.sum(); x.mean(); x.prod(); x.max(); x.min(); x.std(); x.var(); x.norm(); x.argmax(); x.argmin(); x.any()
        x.all(); a.sum(0); a.sum(1, keepdim=True); a.mean(-1); a.max(0); a.min(1); a.argmax(1); a.std(0); a.var(1)
        a.amax(1); a.prod(0); a.logsumexp(1); x.cumsum(0); x.cumprod(0); x.cummax(0); x.softmax(0); x.log_softmax(0)
        a.norm(dim=1); x.median(); x.kthvalue(2); x.topk(2); x.sort(); x.argsort(); x.unique(); x.quantile(0.5)
        x.mode(); x.count_nonzero(); i.bincount(); t.histc(x, 5); t.searchsorted(x, y); t.bucketize(x, y)
        x.nansum(); t.std_mean(x); t.var_mean(x); x.aminmax(); x.diff(); t.cov(a); t.corrcoef(a); x.logcumsumexp(0)
        t.trapezoid(x); t.linalg.norm(x); t.linalg.vector_norm(x)
        """,
    "shape": """
        x.view(2, 5); x.reshape(2, 5); a.t(); a.T; a.transpose(0, 1); a.permute(1, 0); x.unsqueeze(0); q.squeeze()
        x.expand(3, 10); a.flatten(); a.contiguous(); a.t().contiguous(); x[0]; x[1:3]; a[:, 1]; a[1, 2]; x[None]
        x[m]; x[i]; a[..., 0]; x.chunk(2); x.split(5); x.unbind(0); t.cat((x, y)); t.stack((x, y)); x.repeat(2)
        x.repeat_interleave(2); x.flip(0); x.roll(1); a.tril(); a.triu(); a.diag(); a.diagonal(); a.trace()
        x.index_select(0, i); x.gather(0, i); x.narrow(0, 1, 3); x.scatter(0, i, y); x.scatter_add(0, i, y)
        x.index_add(0, i, y5); x.masked_select(m); x.take(i); m.nonzero(); x.unfold(0, 2, 1); F.pad(x, (1, 1))
        F.one_hot(j, 5); t.hstack((x, y)); t.vstack((x, y)); x.tile(2); a.rot90(); t.movedim(a, 0, 1)
        x.to(t.float64); x.double(); x.float(); x.int(); x.bool(); x.to('cpu'); x.type_as(y); x.select(0, 1)
        x.view_as(y); x.expand_as(y); t.broadcast_tensors(x, y); t.atleast_2d(x); x.swapaxes(0, 0)
        t.tensor_split(x, 2); t.block_diag(a, b); t.combinations(x); t.cartesian_prod(x, y); x.index_fill(0, i, 1.0)
        x.index_copy(0, i, y5); x.half()
        """,
    "products": """
        a @ b; a.mm(b); a.matmul(b); a.mv(r); x.dot(y); t.outer(x, y); t.bmm(a[None], b[None]); t.addmm(a, a, b)
        F.linear(a, b); F.linear(a, b, r); t.einsum('ij,jk->ik', a, b); t.tensordot(a, b, 1); t.kron(a, b)
        t.baddbmm(a[None], a[None], b[None]); F.bilinear(a, b, t3, None); t.cdist(a, b)
        F.cosine_similarity(x, y, 0); F.normalize(a); F.embedding(j, a5); t.inner(x, y)
        F.scaled_dot_product_attention(a[None], b[None], a[None]); t.chain_matmul(a, b)
        t.linalg.multi_dot((a, b, a)); t.linalg.inv(spd); t.linalg.det(spd); t.linalg.solve(spd, a)
        t.linalg.cholesky(spd); t.linalg.qr(a); t.linalg.svd(a); t.linalg.eigh(spd); t.matrix_power(a, 3)
        t.linalg.pinv(spd); t.linalg.slogdet(spd); t.fft.fft(x); t.fft.rfft(x)
        """,
    "layers": """
        F.conv2d(c, k); F.conv1d(c[0], k1); F.max_pool2d(c, 2); F.avg_pool2d(c, 2); F.adaptive_avg_pool2d(c, 1)
        F.layer_norm(a, (4,)); F.batch_norm(a, r, p4); F.group_norm(c, 1); F.rms_norm(a, (4,))
        F.interpolate(c, scale_factor=2); F.softmax(a, -1); F.log_softmax(a, -1); F.unfold(c, 2)
        F.pixel_shuffle(c4, 2); F.instance_norm(c); F.conv_transpose2d(c, k); F.cross_entropy(a, j4)
        F.nll_loss(a, j4); F.mse_loss(x, y); F.l1_loss(x, y); F.smooth_l1_loss(x, y); F.huber_loss(x, y)
        F.binary_cross_entropy(p, p); F.binary_cross_entropy_with_logits(x, p); F.kl_div(x, p)
        F.hinge_embedding_loss(x, y); F.cosine_embedding_loss(a, b, y4); F.margin_ranking_loss(x, y, y)
        F.triplet_margin_loss(a, b, a); F.gaussian_nll_loss(x, y, p); F.poisson_nll_loss(x, y)
        F.soft_margin_loss(x, y); F.pairwise_distance(a, b); F.embedding_bag(j4[None], a5); F.prelu(x, s1); layer(a)
        net(a); t.clip(x, 0.1, 0.9); F.grid_sample(c, grid, align_corners=False)
        F.affine_grid(theta, (1, 1, 4, 4), False)
        """,
    "recorded": """
        w + v; w * v; w.exp(); w * 2.0; w.sum(); w.view(2, 5); w[1:3]; w.relu(); w.softmax(0); wa @ wa
        F.linear(wa, wa); w.mean(); w.clone(); t.cat((w, v)); t.where(m, w, v); w.detach(); w.abs(); w / v; w ** 2
        F.gelu(w); F.mse_loss(w, x); w.clamp(0.1, 0.9); F.layer_norm(wa, (4,)); F.cross_entropy(wa, j4); w.norm()
        w.tanh(); w.max(); wa.sum(0); wa.t(); w[i]
        """,
    "backward": """
        back(w + v); back(w * v); back(w.exp()); back(w.sum()); back(w * 2.0); back(w.relu()); back(w[1:3])
        back(w.softmax(0)); back(wa @ wa); back(w.mean()); back(w * v + w); back(F.gelu(w)); back(F.mse_loss(w, x))
        back(F.cross_entropy(wa, j4)); back(F.layer_norm(wa, (4,))); back(t.where(m, w, v)); back(t.cat((w, v)))
        back(w ** 2); back(w / v); back(w.norm()); back(w.max()); back(wa.sum(0)); back(w[i])
        back(F.linear(wa, wa)); back(w.abs()); back(w.clamp(0.1, 0.9)); back(F.elu(w)); back(F.hardsigmoid(w))
        back(F.selu(w)); back(w.std()); back(w.cumsum(0)); back(net(a)); back(w.view(2, 5)); back(w.log())
        """,
}


def texts(word: str = "") -> Iterator[tuple[str, str]]:
    """(what a call is for, its text) for all that contain the word."""
    for group, listed in CALLS.items():
        for text in filter(None, re.split(r"\s*[;\n]\s*", listed)):
            if word in group or word in text:
                yield group, text


def names_of(t: Any) -> dict[str, Any]:
    """The names in the texts, for a module; the same numbers for each."""
    import numpy

    rng = numpy.random.default_rng(0)

    def numbers(*shape: int, grad: bool = False) -> Any:
        x = t.tensor(rng.uniform(0.1, 0.9, shape).astype("float32"))
        return x.requires_grad_() if grad else x

    def back(out: Any) -> None:
        out.backward(ones.get(tuple(out.shape)) if tuple(out.shape) else None)

    x, y, z, p, a, b = (numbers(*shape) for shape in [(10,)] * 4 + [(4, 4)] * 2)
    w, v, wa = numbers(10, grad=True), numbers(10, grad=True), numbers(4, 4, grad=True)
    i, j, j4 = t.tensor([1, 3, 5, 7, 9]), t.tensor([0, 1, 2, 3, 4]), t.tensor([0, 1, 2, 3])
    ones = {shape: t.ones(shape) for shape in [(10,), (4,), (4, 4), (2,), (5,), (2, 5), (20,), (4, 2)]}
    layer = t.nn.Linear(4, 2)
    net = t.nn.Sequential(t.nn.Linear(4, 4), t.nn.ReLU(), t.nn.Linear(4, 2))
    named = {"t": t, "F": t.nn.functional, "layer": layer, "net": net, "back": back, "n": rng.uniform(0, 1, 10)}
    named |= {"x": x, "y": y, "z": z, "p": p, "w": w, "v": v, "wa": wa, "a": a, "b": b, "i": i, "j": j, "j4": j4}
    named |= {"m": x > 0.5, "spd": a @ a.t() + 4 * t.eye(4), "s": numbers(1)[0], "s1": numbers(1), "y4": t.ones(4)}
    shapes = {"r": (4,), "p4": (4,), "y5": (5,), "q": (2, 5), "q3": (2, 3), "a5": (5, 4), "t3": (3, 4, 4)}
    shapes |= {"c": (1, 3, 4, 4), "c4": (1, 4, 4, 4), "k": (3, 3, 3, 3), "k1": (3, 4, 3)}
    shapes |= {"grid": (1, 2, 2, 2), "theta": (1, 2, 3)}
    return named | {name: numbers(*shape) for name, shape in shapes.items()}


def least(calls: list[Callable[[int], float]], seconds: float) -> list[float]:
    """The least time of one call of each, in nanoseconds; they take turns. call(n) is the time of n calls."""
    counts = []
    for call in calls:
        call(3)
        counts.append(max(1, int(seconds / 20 / max(call(3) / 3, 1e-8))))
    times = [math.inf] * len(calls)
    for _ in range(20):
        for at, (call, count) in enumerate(zip(calls, counts)):
            times[at] = min(times[at], call(count) / count)
    return [1e9 * one for one in times]


def repeated(text: str, names: dict[str, Any]) -> Callable[[int], float]:
    """A function of n: the time of n calls."""
    # as parameters names are read as local ones are, and so the call itself is what is timed
    used = ", ".join(f"{name}={name}" for name in names if re.search(rf"\b{name}\b", text))
    lines = (
        f"def run(calls_, {used}):\n  start = clock()\n  for _ in range(calls_):\n    {text}\n  return clock() - start"
    )
    space = {**names, "clock": time.perf_counter}
    exec(lines, space)
    return space["run"]


def compared(word: str = "", seconds: float = 0.05) -> Iterator[tuple[str, str, float, float]]:
    """(group, text, nanoseconds of norch, of PyTorch) for all calls that contain the word."""
    import torch

    import norch

    norch.set_num_threads(1)
    torch.set_num_threads(1)
    spaces = [names_of(norch), names_of(torch)]
    for group, text in texts(word):
        ours, theirs = least([repeated(text, names) for names in spaces], seconds)
        yield group, text, ours, theirs


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main() -> None:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_calls", description=__doc__)
    parser.add_argument("--only", metavar="WORD", default="", help="calls, or kinds of calls, that contain it")
    parser.add_argument("--below", type=float, default=math.inf, help="show only calls with a smaller ratio")
    parser.add_argument("--seconds", type=float, default=0.05, help="for each call and library")
    options = parser.parse_args()
    found: dict[str, list[float]] = {}
    for group, text, ours, theirs in compared(options.only, options.seconds):
        found.setdefault(group, []).append(theirs / ours)
        if theirs / ours < options.below:
            print(f"{theirs / ours:6.2f}  {ours:9.0f} {theirs:9.0f}  {text}", flush=True)
    for group, ratios in found.items():
        slow = sum(ratio < 1 for ratio in ratios)
        print(f"{group}: geometric mean {mean(ratios):.2f} of {len(ratios)} calls, {slow} below 1")
    every = [ratio for ratios in found.values() for ratio in ratios]
    print(f"all: {mean(every):.2f} of {len(every)}, {sum(ratio < 1 for ratio in every)} below 1")


if __name__ == "__main__":
    main()
