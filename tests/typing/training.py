"""A model, a data set and a training loop, as a user writes them."""

from collections.abc import Iterator

from typing_extensions import assert_type

import norch
import norch.nn.functional as F
from norch import Tensor, nn, optim
from norch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler
from norch.utils.data import ConcatDataset, DataLoader, Dataset, Sampler, Subset, TensorDataset, random_split


class Net(nn.Module):
    mean: Tensor

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(width, 3, bias=True)
        self.scale = nn.Parameter(norch.ones(1))
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.register_buffer("mean", norch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.body(x - self.mean)
        out = self.head(h) * self.scale
        for layer in self.layers:
            out = F.relu(layer(out))
        assert isinstance(out, Tensor)
        return out


class Points(Dataset[tuple[Tensor, int]]):
    def __init__(self, count: int) -> None:
        self.x = norch.randn(count, 2)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.x[index], index % 3


class Backwards(Sampler[int]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.count - 1, -1, -1))

    def __len__(self) -> int:
        return self.count


def batches(seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    data = Points(12)
    assert_type(data[0], tuple[Tensor, int])
    first, second = random_split(data, [8, 4], generator=norch.Generator().manual_seed(seed))
    assert len(first) == 8 and len(second) == 4
    loader: DataLoader[tuple[Tensor, int]] = DataLoader(data, batch_size=4, shuffle=True)
    assert len(loader) == 3
    part: Subset[tuple[Tensor, int]] = Subset(data, [3, 4])
    assert_type(part[0], tuple[Tensor, int])
    both = ConcatDataset[tuple[Tensor, int]]([part, data])
    assert len(DataLoader(both, sampler=Backwards(len(both)))) == 14
    assert_type(DataLoader([1.0, 2.0], batch_size=2), DataLoader[float])
    yield from loader


device = norch.device("cuda" if norch.cuda.is_available() else "cpu")
model = assert_type(Net().to(device), Net)
assert_type(model.train(), Net)
assert_type(model.half().float(), Net)
assert_type(model.head.weight, nn.Parameter)
for name, parameter in model.named_parameters():
    assert_type(name, str)
    assert_type(parameter, nn.Parameter)
assert_type([p.numel() for p in model.parameters()], list[int])

criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
grouped = optim.SGD([{"params": model.head.parameters(), "lr": 0.1}, {"params": [model.scale]}], lr=0.01, momentum=0.9)
schedules: list[LRScheduler] = [CosineAnnealingLR(optimizer, T_max=10), LambdaLR(grouped, lambda epoch: 0.9**epoch)]

total = 0.0
for epoch in range(2):
    for x, y in batches(epoch):
        optimizer.zero_grad(set_to_none=True)
        logits: Tensor = model(x.to(device))
        loss: Tensor = criterion(logits, y.to(device))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        assert_type(norm, Tensor)
        optimizer.step()
        total += loss.item()
    grouped.step()
    for schedule in schedules:
        schedule.step()
    rate: float = optimizer.param_groups[0]["lr"]

model.eval()
with norch.no_grad():
    predicted = model(norch.zeros(3, 2)).argmax(dim=1)
state = model.state_dict()
model.load_state_dict(state)
optimizer.load_state_dict(optimizer.state_dict())
table = TensorDataset(norch.zeros(4, 2), norch.arange(4))
assert_type(table[0], tuple[Tensor, ...])
