"""Modules, optimizers and loaders whose tensors lie on a CUDA device, or move there. They run where there is one: in
make test-cudasim."""

from __future__ import annotations

import collections
import copy
import io
import pickle
import warnings
from typing import Any

import pytest

import norch
from norch import cuda, nn, optim
from norch.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def test_modules_move() -> None:
    net = network()
    weight, steps = net[0].weight, net[1].num_batches_tracked
    (net(norch.rand(5, 3))).sum().backward()
    assert net.to("cuda") is net and net[0].weight is weight and weight.is_leaf and weight.is_cuda
    assert weight.grad is not None and weight.grad.is_cuda and net[1].running_mean.is_cuda
    assert net[1].num_batches_tracked.is_cuda and net[1].num_batches_tracked.dtype is steps.dtype
    assert net.double()[0].weight.is_cuda and weight.dtype is norch.float64  # a dtype alone moves nothing
    assert net.to("cpu", norch.float32)[0].weight.is_cpu and net.cuda(0)[0].weight.is_cuda
    assert net.to(norch.ones(1))[0].weight.is_cpu and net.cuda("cuda:0")[3].bias.is_cuda
    assert net.cpu()[0].weight is weight and weight.is_cpu and weight.grad.is_cpu
    with pytest.raises(norch.DeviceError):
        net.cuda(99)
    assert weight.is_cpu
    assert copy.deepcopy(net.cuda())[0].weight.is_cuda
    assert nn.Linear(2, 2, device="cuda").weight.is_cuda


def test_state_crosses_devices() -> None:
    here, there = network(), network().cuda()
    there.load_state_dict(here.state_dict())
    assert there[0].weight.is_cuda and there[0].weight.tolist() == here[0].weight.tolist()
    norch.manual_seed(1)
    other = network()
    other.load_state_dict(pickle.loads(pickle.dumps(there.state_dict())))
    assert other[0].weight.is_cpu and other[0].weight.tolist() == here[0].weight.tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: optim.Adam(p, lr=0.1),
        optim.AdamW,
        lambda p: optim.RMSprop(p, momentum=0.9, centered=True),
        optim.Adagrad,
    ],
)
def test_optimizer_state_lies_with_its_parameters_and_crosses_devices(make: Any) -> None:
    norch.manual_seed(0)
    here = nn.Linear(3, 2)
    there = copy.deepcopy(here).cuda()
    x = norch.rand(4, 3)
    ours, theirs = make(here.parameters()), make(there.parameters())

    def step(net: nn.Module, optimizer: Any) -> None:
        optimizer.zero_grad()
        net(x.to(next(net.parameters()).device)).square().sum().backward()
        optimizer.step()

    for _ in range(2):
        step(here, ours)
        step(there, theirs)
    kept = [value for entry in theirs.state.values() for value in entry.values() if isinstance(value, norch.Tensor)]
    assert kept and all(value.is_cuda for value in kept)
    moved = copy.deepcopy(there).cpu()
    resumed = make(moved.parameters())
    resumed.load_state_dict(theirs.state_dict())
    assert all(v.is_cpu for entry in resumed.state.values() for v in entry.values() if isinstance(v, norch.Tensor))
    for net, optimizer in ((here, ours), (there, theirs), (moved, resumed)):
        step(net, optimizer)
        norch.testing.assert_close(net.weight.cpu(), here.weight, rtol=1e-5, atol=1e-6)


def test_loading_to_a_device_keeps_what_is_shared() -> None:
    x = norch.arange(6.0)
    file = io.BytesIO()
    norch.save({"x": x, "tail": x[2:], "turned": x.view(2, 3).t(), "weight": nn.Parameter(x[:2])}, file)
    file.seek(0)
    found = norch.load(file, map_location="cuda")
    assert all(value.is_cuda for value in found.values())
    assert found["turned"].stride() == (1, 3) and type(found["weight"]) is nn.Parameter
    found["x"][2] = 99
    assert found["tail"][0].item() == 99 and found["turned"].tolist() == [[0, 3], [1, 4], [99, 5]]


@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
def test_gradients_on_two_devices_have_one_norm(norm_type: float) -> None:
    gradients = norch.tensor([3.0, 4.0]), norch.tensor([12.0])
    here = [nn.Parameter(norch.zeros(g.shape)) for g in gradients]
    split = [nn.Parameter(p.detach().to(device)) for p, device in zip(here, ("cuda", "cpu"), strict=True)]
    for p, q, g in zip(here, split, gradients, strict=True):
        p.grad, q.grad = g.clone(), g.to(q.device)
    total = nn.utils.clip_grad_norm_(split, 1.0, norm_type)
    assert total.is_cuda and total.item() == nn.utils.clip_grad_norm_(here, 1.0, norm_type).item()
    for p, q in zip(here, split, strict=True):
        assert p.grad is not None and q.grad is not None
        norch.testing.assert_close(q.grad.cpu(), p.grad)


def test_an_optimizer_whose_parameters_have_left_says_so() -> None:
    net = nn.Linear(3, 2)
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for device in ("cpu", "cuda"):
        net.to(device).zero_grad()
        net(norch.rand(4, 3, device=device)).sum().backward()
        if device == "cpu":
            optimizer.step()
    with pytest.raises(norch.DeviceError) as caught:
        optimizer.step()
    assert "cpu" in str(caught.value) and "cuda:0" in str(caught.value)


Pair = collections.namedtuple("Pair", "x y")


def test_loaders_pin_what_they_give() -> None:
    data = TensorDataset(norch.arange(10.0).view(5, 2), norch.arange(5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x, y in DataLoader(data, batch_size=2, pin_memory=True):
            assert x.is_pinned() and y.is_pinned()
            assert (x.to("cuda", non_blocking=True).sum(1) * 2).tolist() == (x.sum(1) * 2).tolist()
    assert not any(x.is_pinned() for x, _ in DataLoader(data, batch_size=2))
    on_device = TensorDataset(norch.arange(4.0, device="cuda"))
    assert all(x.is_cuda for [x] in DataLoader(on_device))

    class Own:
        asked = False

        def pin_memory(self) -> Own:
            self.asked = True
            return self

    def collate(samples: list[Any]) -> Any:
        x, y = (norch.stack(part) for part in zip(*samples, strict=True))
        return {"pair": Pair(x, [y]), "name": "a", "own": Own()}

    for batch in DataLoader(data, batch_size=5, collate_fn=collate, pin_memory=True):
        assert type(batch["pair"]) is Pair and batch["pair"].x.is_pinned() and batch["pair"].y[0].is_pinned()
        assert batch["name"] == "a" and batch["own"].asked
