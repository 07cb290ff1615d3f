"""piq: measures of the quality of images and of generated ones, with gradients."""

import piq
import torch
from numbers_made import array, show

x = torch.tensor(array(2, 3, 64, 64)).sigmoid().float().requires_grad_()
y = torch.tensor(array(2, 3, 64, 64, seed=1)).sigmoid().float()
for n in "psnr gmsd vsi haarpsi mdsi fsim vif_p multi_scale_gmsd srsim dss".split():
    try:
        r = getattr(piq, n)(x, y)
    except ValueError as e:
        print(n, str(e)[:50])
        continue
    x.grad = None
    r.sum().backward()
    show(n, r, x.grad)
show(
    "ssim",
    piq.ssim(x, y, kernel_size=5),
    piq.information_weighted_ssim(
        torch.tensor(array(1, 3, 256, 256)).sigmoid(), torch.tensor(array(1, 3, 256, 256, seed=2)).sigmoid()
    ),
)
show("tv", piq.total_variation(x))
f1, f2 = torch.tensor(array(20, 8)), torch.tensor(array(20, 8, seed=4))
show("fid", piq.FID()(f1, f2), piq.KID()(f1, f2), *piq.PR()(f1, f2))
