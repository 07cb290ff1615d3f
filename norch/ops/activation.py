"""The rows of the table that are activations; nn/functional.py gives them their signatures."""

from __future__ import annotations

from ..autograd import derivatives as d
from ._forms import binary, ternary, unary
from .pointwise import PointwiseMethods

silu = unary("silu", d.Silu, "x * sigmoid(x) (Elfwing et al. 2017). Floats only.")
gelu = unary(
    "gelu", d.Gelu, "x times the normal distribution at x (Hendrycks and Gimpel 2016), exact form. Floats only."
)
gelu_tanh = unary("gelu_tanh", d.GeluTanh, "gelu with a tanh in place of erf. Floats only.")
mish = unary("mish", d.Mish, "x * tanh(softplus(x)) (Misra 2019). Floats only.")
hardswish = unary("hardswish", d.Hardswish, "x * relu6(x + 3) / 6 (Howard et al. 2019). Floats only.")
softsign = unary("softsign", d.Softsign, "x / (1 + |x|). Integers become floats.")
logsigmoid = PointwiseMethods._logsigmoid
leaky_relu = binary("leaky_relu", d.LeakyRelu, "x for positive x, b * x for others. Floats only.")
hardshrink = binary("hardshrink", d.Hardshrink, "0 for |x| up to b, x for others. Floats only.")
softshrink = binary("softshrink", d.Softshrink, "0 for |x| up to b, x less b or plus b for others. Floats only.")
huber = binary("huber", d.Huber, "x**2 / 2 for |x| below b, b (|x| - b / 2) for others. Floats only.")
hardtanh = PointwiseMethods._between
elu = ternary("elu", d.Elu, "x for positive x, b * expm1(c * x) for others. Floats only.")
softplus = ternary("softplus", d.Softplus, "log(1 + e**(b x)) / b, and x where b x > c. Floats only.")
