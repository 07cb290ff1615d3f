"""einops: rearranged, reduced and repeated tensors, its layers, einsum; gradients through them."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import Rearrange, Reduce
from numbers_made import array, fill, show
from torch import nn

x = torch.tensor(array(2, 3, 4, 6), requires_grad=True)
show("rearrange", rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=3))
show("reduce", reduce(x, "b c h w -> b c", "max"), reduce(x, "b c (h p) w -> b h", "mean", p=2))
show("repeat", repeat(x[:, 0], "b h w -> b h (w r)", r=2))
show("einsum", einsum(x, x, "b c h w, b d h w -> b c d"))
packed, shapes = pack([x, x[:, 0]], "b * w")
show("pack", packed, *unpack(packed, shapes, "b * w"))
model = nn.Sequential(
    nn.Conv2d(3, 4, 3, padding=1), Rearrange("b c h w -> b (c h w)"), nn.Linear(96, 5), Reduce("b c -> b", "sum")
)
fill(model)
model(x.float()).square().sum().backward()
show("layers", model[0].weight.grad, model[2].bias.grad, x.grad)
