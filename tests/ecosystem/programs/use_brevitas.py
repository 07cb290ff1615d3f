"""brevitas: steps of training of a network with quantized weights and activations, and its quantized tensors."""

import brevitas.nn as qnn
import torch
from brevitas.quant import (
    Int8WeightPerChannelFloat,
    Int32Bias,
    SignedBinaryWeightPerTensorConst,
    SignedTernaryWeightPerTensorConst,
)
from numbers_made import array, fill, show

x = torch.tensor(array(4, 3, 8, 8), dtype=torch.float32)


class Net(torch.nn.Module):
    def __init__(s):
        super().__init__()
        s.q = qnn.QuantIdentity(bit_width=8, return_quant_tensor=True)
        s.c = qnn.QuantConv2d(3, 4, 3, weight_bit_width=4, bias=True, bias_quant=Int32Bias)
        s.r = qnn.QuantReLU(bit_width=4, return_quant_tensor=True)
        s.f = qnn.QuantLinear(144, 3, bias=True, weight_bit_width=3, weight_quant=Int8WeightPerChannelFloat)

    def forward(s, x):
        return s.f(s.r(s.c(s.q(x))).value.flatten(1))


m = Net()
fill(m)
opt = torch.optim.SGD(m.parameters(), lr=0.01)
for _ in range(3):
    opt.zero_grad()
    y = m(x)
    y = y.value if hasattr(y, "value") else y
    loss = y.pow(2).mean()
    loss.backward()
    opt.step()
    show("l", loss)
m.eval()
y = m(x)
show("y", y.value if hasattr(y, "value") else y)
show("qw", m.c.quant_weight().value, m.c.quant_weight().scale)
for q in (SignedBinaryWeightPerTensorConst, SignedTernaryWeightPerTensorConst):
    layer = qnn.QuantLinear(6, 4, bias=False, weight_quant=q)
    fill(layer)
    show(q.__name__, layer.quant_weight().value)
t = m.q(x)
print(type(t).__name__, t.bit_width.item())
u = t + t
show("u", u.value, u.scale)
show("cat", torch.cat([t, t], dim=0).value)
