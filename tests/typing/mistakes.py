"""What type checkers have to find: each line with a mark, and no other."""

import norch
import norch.nn.functional as F
from norch import nn, optim
from norch.nn import Liner  # error
from norch.optim.lr_scheduler import bisect_left  # error

print(Liner, bisect_left)
x = norch.zeros(2)
norch.sofmax(x, 0)  # error
F.reluu(x)  # error
nn.Conv9d(1, 1, 1)  # error
optim.Adamm([x])  # error
norch.linalg.qrr(x)  # error
norch.cuda.is_there()  # error
x.sofmax(0)  # error
x.sum(dmi=0)  # error
x.unsqueeze("0")  # error
x + "1"  # error
norch.exp("1")  # error
norch.cat(x, "0")  # error
nn.Linear("2", 2)  # error
print(x.shape.foo)  # error
name: str = x.shape[0]  # error
size: int = norch.max(x)  # error
values, indices, more = norch.max(x, 0)  # error
optim.SGD(x, lr="1")  # error
