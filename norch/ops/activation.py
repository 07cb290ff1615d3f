"""The rows of the table that are activations; nn/functional.py gives them their signatures."""

from __future__ import annotations

from ..autograd import derivatives as d
from ..autograd import derivatives_pointwise as dp
from ._forms import binary, ternary, unary
from .pointwise import PointwiseMethods

silu = unary("silu", d.Silu, "x * sigmoid(x) (Elfwing et al. 2017). Floats only.")
gelu = unary(
    "gelu", d.Gelu, "x times the normal distribution at x (Hendrycks and Gimpel 2016), exact form. Floats only."
)
gelu_tanh = unary("gelu_tanh", dp.GeluTanh, "gelu with a tanh in place of erf. Floats only.")
mish = unary("mish", dp.Mish, "x * tanh(softplus(x)) (Misra 2019). Floats only.")
hardswish = unary("hardswish", dp.Hardswish, "x * relu6(x + 3) / 6 (Howard et al. 2019). Floats only.")
softsign = unary("softsign", dp.Softsign, "x / (1 + |x|). Integers become floats.")
logsigmoid = PointwiseMethods._logsigmoid
leaky_relu = binary("leaky_relu", dp.LeakyRelu, "x for positive x, b * x for others. Floats only.")
hardtanh = ternary("clamp", dp.Hardtanh, "x between b and c; a value at a bound has no gradient.")
elu = ternary("elu", dp.Elu, "x for positive x, b * expm1(c * x) for others. Floats only.")
softplus = ternary("softplus", dp.Softplus, "log(1 + e**(b x)) / b, and x where b x > c. Floats only.")
