"""ptwt: wavelet transforms of one to three dimensions by several wavelets and borders, inverted, with a gradient."""

import ptwt
import torch
from numbers_made import array, show

x = torch.tensor(array(2, 64))
i2 = torch.tensor(array(2, 32, 32))
v = torch.tensor(array(1, 16, 16, 16))
for w in ("haar", "db4", "sym3", "bior2.4"):
    for mode in ("zero", "reflect", "periodic", "symmetric", "constant"):
        c = ptwt.wavedec(x, w, mode=mode, level=2)
        show(f"{w}{mode}", *c, ptwt.waverec(c, w))
    c2 = ptwt.wavedec2(i2, w, level=2)
    show(w, c2[0], *c2[1])
    show(w, ptwt.waverec2(c2, w))
    c3 = ptwt.wavedec3(v, w, level=1)
    show(w, c3[0], *[c3[1][k] for k in sorted(c3[1])], ptwt.waverec3(c3, w))
cw, f = ptwt.cwt(x, torch.arange(1, 6), "cgau2" if False else "mexh")
show("cwt", cw.real)
p = ptwt.WaveletPacket(x, "db2", mode="reflect", maxlevel=2)
show("wp", *[p[k] for k in p.get_level(2)])
m = ptwt.MatrixWavedec("db2", level=2)
c = m(x)
show("mat", *c, ptwt.MatrixWaverec("db2")(c))
m2 = ptwt.MatrixWavedec2("db2", level=1)
c = m2(i2)
show("mat2", c[0], *c[1], ptwt.MatrixWaverec2("db2")(c))
s = ptwt.swt(x, "haar", level=2)
show("swt", *s, ptwt.iswt(s, "haar"))
y = x.clone().requires_grad_()
ptwt.wavedec(y, "db3")[0].pow(2).sum().backward()
show("g", y.grad)
