"""Models train on a CUDA device as they do on the CPU: the same losses, to rounding. A simulated one will do."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from checks import example_module

import norch
import norch.nn.functional as F
from norch import cuda, nn, optim
from norch.utils.data import TensorDataset

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")

# ---- examples/ as programs, which check what they find where they have trained to the end ---------------------------

EXAMPLES = {
    "linear_regression": (["--out=line.png"], 0, "closed form"),
    "norch_article": ([], 0, "the ten losses agree with the known ones"),
    "digits": (["--epochs=1", "--out=digits.png"], 1, "test accuracy"),
    "cnn_digits": (["--epochs=1", "--out=cnn.png"], 1, "test accuracy"),
    "vae_digits": (["--epochs=1", "--out=vae.png"], 1, "nearest neighbours of one digit"),
    "tiny_gpt": (["--steps=1"], 1, "sorted without a mistake"),
}


def example(name: str, monkeypatch: pytest.MonkeyPatch, samples: int) -> ModuleType:
    """An example, which works with few samples."""
    for needed in {"norch_article": (), "tiny_gpt": ()}.get(name, ("numpy", "sklearn", "matplotlib", "tqdm")):
        pytest.importorskip(needed)
    module = example_module(name)
    if "digits" in name:
        parts = [TensorDataset(*(x[:samples] for x in part.tensors)) for part in module.load()]
        monkeypatch.setattr(module, "load", lambda: parts)
    elif name == "tiny_gpt":
        lines = module.lines
        monkeypatch.setattr(module, "lines", lambda count, *rest, **named: lines(min(count, samples), *rest, **named))
    return module


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_on_the_device(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, status, said = EXAMPLES[name]
    module = example(name, monkeypatch, 33)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments, "--device=cuda"])
    before = cuda.memory_allocated()
    cuda.reset_peak_memory_stats()
    assert module.main() == status
    assert said in capsys.readouterr().out
    assert cuda.max_memory_allocated() > before


# ---- losses of both devices -----------------------------------------------------------------------------------------


def assert_alike(losses_on: Callable[[str], list[float]]) -> None:
    here, there = losses_on("cpu"), losses_on("cuda")
    assert here[-1] < here[0]
    assert there == pytest.approx(here, rel=2e-4)


@pytest.mark.parametrize(("name", "batch"), [("digits", 96), ("cnn_digits", 64)])
def test_an_example_for_digits(monkeypatch: pytest.MonkeyPatch, name: str, batch: int) -> None:
    digits = example(name, monkeypatch, batch)

    def losses_on(device: str) -> list[float]:
        norch.manual_seed(0)
        return digits.train(digits.make_model().to(device), digits.load()[0], epochs=2, seed=0, device=device)

    assert_alike(losses_on)


def test_the_small_gpt() -> None:
    gpt = example_module("tiny_gpt")
    texts = gpt.encode(gpt.lines(6, random.Random(0), held_out=False), "cpu")

    def losses_on(device: str) -> list[float]:
        norch.manual_seed(0)
        model: nn.Module = gpt.GPT().to(device)
        optimizer = optim.Adam(model.parameters(), lr=3e-3)
        x, y = texts[:, :-1].to(device), texts[:, 1:].to(device)
        losses = []
        for _ in range(3):
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert all(p.device.type == device for p in model.parameters())
        return losses

    assert_alike(losses_on)


# ---- parameters in 16 bits ------------------------------------------------------------------------------------------

OPTIMIZERS = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "Adam": {"amsgrad": True},
    "AdamW": {},
    "RMSprop": {"momentum": 0.5, "centered": True},
    "Adagrad": {},
    "Adadelta": {},
}


@pytest.mark.parametrize("dtype", [norch.float16, norch.bfloat16], ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_of_narrow_parameters(name: str, dtype: norch.dtype) -> None:
    """As on the CPU, which widens them before; in one call that copies nothing, sizes and addresses as they come."""
    drawn = norch.Generator().manual_seed(3)
    start = [norch.randn(n + 1, generator=drawn).to(dtype) for n in (1, 6, 1030, 4096)]
    found = {}
    for device in ("cpu", "cuda"):
        model = nn.ParameterList([nn.Parameter(x.to(device)[i > 0 :].clone()) for i, x in enumerate(start)])
        taken = getattr(optim, name)(model.parameters(), lr=0.125, **OPTIMIZERS[name])
        for step in range(3):
            for p, x in zip(model, start):
                whole = x.to(device) * (step + 1)
                p.grad = whole[len(whole) - len(p) :]  # not where 8 bytes begin
            if step < 2:
                taken.step()
        if device == "cuda":
            with norch.profiler.profile() as watched:
                taken.step()
                cuda.synchronize()
            events = {
                event.key: event.count for event in watched.key_averages() if not event.key.startswith("copy from")
            }
            assert len(events) == 1 and list(events.values()) == [1], events
        else:
            taken.step()
        found[device] = [p.detach().cpu().float() for p in model]
    for one, other in zip(found["cpu"], found["cuda"]):
        assert norch.allclose(one, other, rtol=0.002 if dtype == norch.float16 else 0.016, atol=1e-6), name


# ---- peaks of memory, beside what PyTorch's kernels keep -------------------------------------------------------------


def peak_of(step: Callable[[], None]) -> int:
    step()
    cuda.synchronize()
    before = cuda.memory_allocated()
    cuda.reset_peak_memory_stats()
    step()
    return cuda.max_memory_allocated() - before


def test_peak_of_a_convolutional_step() -> None:
    """PyTorch holds results of relu and pooling, places of 8 bytes (here 4), and two gradients at its peak."""
    layers = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()]
    model = nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 64, 10)).to("cuda")
    x, target = norch.randn(32, 1, 32, 32, device="cuda"), norch.zeros(32, dtype=norch.int64, device="cuda")

    def step() -> None:
        model.zero_grad()
        F.cross_entropy(model(x), target).backward()

    first, second = 32 * 16 * 32 * 32 * 4, 32 * 32 * 16 * 16 * 4
    assert peak_of(step) < first + first // 4 * 2 + 3 * second + (200 << 10)


def test_peak_of_a_transformer_block() -> None:
    """PyTorch keeps 16 tensors of the size of the input, and of attention a sum for each row and head."""
    width, heads = 128, 2
    before, after = nn.LayerNorm(width).to("cuda"), nn.LayerNorm(width).to("cuda")
    attend, project = nn.Linear(width, 3 * width).to("cuda"), nn.Linear(width, width).to("cuda")
    widen, narrow = nn.Linear(width, 4 * width).to("cuda"), nn.Linear(4 * width, width).to("cuda")
    x = norch.randn(8, 64, width, device="cuda", requires_grad=True)

    def run() -> norch.Tensor:
        parts = attend(before(x)).split(width, -1)
        q, k, v = (part.reshape(8, 64, heads, width // heads).transpose(1, 2) for part in parts)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = x + project(seen.transpose(1, 2).reshape(x.shape))
        return y + narrow(F.gelu(widen(after(y))))

    held = cuda.memory_allocated()
    out = run()
    unit = x.numel() * 4
    assert cuda.memory_allocated() - held < 16.1 * unit, "x is there; what is returned counts"
    assert out.shape == x.shape
