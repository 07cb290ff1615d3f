"""ptflops: operations and parameters of models, counted by hooks and by functions that it patches."""

import torch
from ptflops import get_model_complexity_info

nn = torch.nn


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = nn.functional.gelu(nn.functional.relu(self.layer(x)))
        return y + torch.matmul(x, x.T) @ nn.functional.softmax(x, -1)


models = {
    "convolutions": (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten()),
        (3, 8, 8),
    ),
    "linear": (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.SiLU()), (8,)),
    "transposed": (nn.Sequential(nn.ConvTranspose2d(2, 3, 2), nn.LeakyReLU(), nn.Upsample(scale_factor=2)), (2, 4, 4)),
    "functional": (Functional(), (4,)),
}
for name, (model, size) in models.items():
    counted = get_model_complexity_info(model, size, print_per_layer_stat=False, as_strings=False, backend="pytorch")
    print(name, *counted)
