"""monai: networks, losses, metrics and transforms of medical images, windows, cached data and a trainer."""

import monai
import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceFocalLoss, DiceLoss, FocalLoss, GeneralizedDiceLoss, SSIMLoss, TverskyLoss
from monai.metrics import DiceMetric, HausdorffDistanceMetric, MeanIoU, SurfaceDistanceMetric
from monai.networks.nets import (
    UNETR,
    AttentionUnet,
    BasicUNet,
    DynUNet,
    SegResNet,
    SwinUNETR,
    UNet,
    ViT,
    VNet,
)
from monai.transforms import (
    Activations,
    Affine,
    AsDiscrete,
    CenterSpatialCrop,
    Compose,
    Flip,
    GaussianSmooth,
    NormalizeIntensity,
    Orientation,
    RandAffine,
    RandFlipd,
    RandGaussianNoise,
    Resize,
    Rotate,
    Rotate90,
    ScaleIntensity,
    ScaleIntensityd,
    Spacing,
    SpatialPad,
    Zoom,
)
from numbers_made import array, fill, show

x2 = torch.tensor(array(1, 1, 32, 32)).float()
x3 = torch.tensor(array(1, 1, 32, 32, 32)).float()
torch.manual_seed(0)
for name, net, x in [
    ("unet", UNet(2, 1, 2, (4, 8, 16), (2, 2), num_res_units=1), x2),
    ("basic", BasicUNet(2, 1, 2, features=(4, 4, 8, 8, 8, 4)), x2),
    ("seg", SegResNet(3, 8, 1, 2), x3),
    ("vnet", VNet(3, 1, 2), x3),
    ("att", AttentionUnet(2, 1, 2, (4, 8, 16), (2, 2)), x2),
    ("dyn", DynUNet(2, 1, 2, [3, 3, 3], [1, 2, 2], [2, 2]), x2),
    ("vit", ViT(1, (32, 32), (8, 8), hidden_size=32, mlp_dim=64, num_layers=2, num_heads=4, spatial_dims=2), x2),
    ("unetr", UNETR(1, 2, (32, 32), feature_size=4, hidden_size=32, mlp_dim=64, num_heads=4, spatial_dims=2), x2),
    (
        "swin",
        SwinUNETR(1, 2, patch_size=2, depths=(1, 1, 1, 1), num_heads=(1, 2, 4, 4), feature_size=12, spatial_dims=2),
        torch.tensor(array(1, 1, 64, 64)).float(),
    ),
]:
    fill(net)
    net.eval()
    out = net(x)
    out = out[0] if isinstance(out, tuple) else out
    out.square().mean().backward()
    show(name, out, next(p.grad for p in net.parameters() if p.grad is not None))
p = torch.tensor(array(2, 3, 8, 8)).float().requires_grad_()
t = torch.tensor(array(2, 1, 8, 8, low=0, high=3))
for L in (
    DiceLoss(softmax=True, to_onehot_y=True),
    DiceCELoss(softmax=True, to_onehot_y=True),
    FocalLoss(to_onehot_y=True),
    TverskyLoss(softmax=True, to_onehot_y=True),
    GeneralizedDiceLoss(softmax=True, to_onehot_y=True),
    DiceFocalLoss(softmax=True, to_onehot_y=True),
):
    p.grad = None
    loss = L(p, t)
    loss.backward()
    show(type(L).__name__, loss, p.grad)
show("ssim", SSIMLoss(2)(torch.rand(1, 1, 16, 16) * 0 + 0.5, torch.ones(1, 1, 16, 16) * 0.4))
oh = monai.networks.one_hot(t, 3)
pr = monai.networks.one_hot(p.argmax(1, keepdim=True), 3)
for M in (DiceMetric(), HausdorffDistanceMetric(), MeanIoU(), SurfaceDistanceMetric()):
    M(pr, oh)
    show(type(M).__name__, M.aggregate())
show(
    "sw",
    sliding_window_inference(
        torch.tensor(array(1, 1, 40, 40)).float(), (16, 16), 2, lambda v: v * 2, overlap=0.5, mode="gaussian"
    ),
)
im = torch.tensor(array(1, 12, 14)).float()
for T in (
    ScaleIntensity(),
    Resize((8, 9)),
    Rotate(0.3),
    Zoom(1.2),
    Flip(0),
    SpatialPad((16, 16)),
    CenterSpatialCrop((6, 6)),
    NormalizeIntensity(),
    GaussianSmooth(1.0),
    Affine(rotate_params=0.2, translate_params=(1, 2), image_only=True),
    Rotate90(),
):
    r = T(im)
    show(type(T).__name__, r)
    print(type(r).__name__)
m = monai.data.MetaTensor(im, affine=torch.diag(torch.tensor([2.0, 2.0, 1.0, 1.0])))
r = Spacing((1.0, 1.0))(m)
show("spacing", r, r.affine)
o = Orientation("RAS", labels=None)(
    monai.data.MetaTensor(
        torch.tensor(array(1, 4, 5, 6)).float(), affine=torch.diag(torch.tensor([-1.0, 1.0, -1.0, 1.0]))
    )
)
show("or", o, o.affine)
pipe = Compose([ScaleIntensityd("a"), RandFlipd("a", prob=1.0)])
show("pipe", pipe({"a": monai.data.MetaTensor(im)})["a"])
d = monai.data.DataLoader(
    monai.data.Dataset([{"a": monai.data.MetaTensor(im), "b": i} for i in range(4)], pipe), batch_size=2
)
for b in d:
    show("batch", b["a"], b["b"])
    print(type(b["a"]).__name__, b["a"].applied_operations[0][0]["class"])
print(AsDiscrete(argmax=True, to_onehot=3)(p[0]).shape, repr(Activations(softmax=True)(p[0]).sum().round().item()))
ra = RandAffine(prob=1.0, rotate_range=0.3, translate_range=2.0)
ra.set_random_state(0)
show("ra", ra(im))
rg = RandGaussianNoise(prob=1.0)
rg.set_random_state(0)
show("rg", rg(im))
from monai.data import CacheDataset

c = CacheDataset([{"a": im}] * 3, pipe, progress=False)
show("cache", c[0]["a"])
from monai.engines import SupervisedTrainer

tr = SupervisedTrainer(
    torch.device("cpu"),
    1,
    monai.data.DataLoader(monai.data.Dataset([{"image": im, "label": im} for _ in range(4)]), batch_size=2),
    (net := fill(torch.nn.Conv2d(1, 1, 3, padding=1))),
    torch.optim.SGD(net.parameters(), 0.1),
    torch.nn.MSELoss(),
)
tr.run()
show("trained", net.weight)
