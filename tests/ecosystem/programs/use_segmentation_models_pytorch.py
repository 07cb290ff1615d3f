"""segmentation-models-pytorch: architectures, losses and metrics."""

import segmentation_models_pytorch as smp
import torch
from numbers_made import array, fill, show

x = torch.tensor(array(1, 3, 64, 64), dtype=torch.float32)
target = torch.tensor(array(1, 1, 64, 64, low=0, high=2))
for name in ("Unet", "FPN", "Linknet", "PSPNet", "DeepLabV3Plus"):
    model = fill(getattr(smp, name)("resnet18", encoder_weights=None, classes=1)).eval()
    y = model(x)
    loss = smp.losses.DiceLoss("binary")(y, target) + smp.losses.FocalLoss("binary")(y, target)
    loss.backward()
    show(name, y, loss, next(model.parameters()).grad)
counts = smp.metrics.get_stats((y > 0).long(), target, mode="binary")
show("iou", smp.metrics.iou_score(*counts, reduction="micro"))
