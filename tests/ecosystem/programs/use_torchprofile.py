"""torchprofile: multiply-adds of models, counted in the graph that PyTorch's tracer gives, by operator."""

import warnings
from collections import Counter

import torch
from numbers_made import show
from torch import nn
from torchprofile import profile_macs

warnings.simplefilter("ignore")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6(inplace=True))
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.line, self.norm = nn.Linear(4, 6), nn.LayerNorm(6)
        self.table, self.lstm = nn.Embedding(5, 6), nn.LSTM(6, 4, 2, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        x = nn.functional.interpolate(self.up(self.conv(x)), size=(6, 6), mode="bilinear")
        x = nn.functional.adaptive_avg_pool2d(x, (3, 3)).flatten(2).transpose(1, 2)
        x = self.norm(self.line(x)) + self.table(index).mean(1, keepdim=True)
        x = self.lstm(x)[0]
        return torch.einsum("bij,bkj->bik", x, x) @ x


encoder = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.GroupNorm(5, 5), nn.Linear(8, 3)).eval()
for name, model, inputs in (
    ("net", Net().eval(), (torch.ones(2, 3, 8, 8), torch.zeros(2, 3, dtype=torch.long))),
    ("encoder", encoder, (torch.ones(4, 5, 6),)),
    ("lstm", nn.LSTM(4, 5, 2), (torch.ones(3, 2, 4),)),
    ("conv1d", nn.Conv1d(4, 6, 3, groups=2), (torch.ones(1, 4, 9),)),
):
    show(name, profile_macs(model, inputs))
    counts: Counter[str] = Counter()
    for node, macs in profile_macs(model, inputs, reduction=None).items():
        counts[node.operator] += macs
    for operator, count in sorted(counts.items()):
        show(f"{name}:{operator}", count)
