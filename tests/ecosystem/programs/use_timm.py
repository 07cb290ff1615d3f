"""timm: models of several kinds, forward and backward; its optimizers, schedules and data transforms."""

import numpy as np
import timm
import torch
from numbers_made import array, fill, show
from PIL import Image
from timm.data import create_transform
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler

for name in (
    "resnet18", "efficientnet_b0", "mobilenetv3_small_100", "convnext_atto", "regnetx_002", "vit_tiny_patch16_224",
    "deit_tiny_patch16_224", "mixer_s32_224", "swin_tiny_patch4_window7_224",
):  # fmt: skip
    options = {"img_size": 64} if name[-3:] == "224" else {}
    model = fill(timm.create_model(name, num_classes=5, **options)).eval()
    x = torch.tensor(array(1, 3, 64, 64), dtype=torch.float32, requires_grad=True)
    y = model(x)
    y.square().sum().backward()
    show(name, y, x.grad)
features = fill(timm.create_model("resnet18", features_only=True)).eval()
show("features", *features(torch.tensor(array(1, 3, 64, 64), dtype=torch.float32)))

for name in ("sgd", "adamw", "lamb", "lion", "adafactor", "nadamw"):
    model = fill(timm.create_model("vit_tiny_patch16_224", num_classes=3, img_size=32, depth=2))
    optimizer = create_optimizer_v2(model, name, lr=0.01, weight_decay=0.05)
    schedule = CosineLRScheduler(optimizer, t_initial=4, warmup_t=1, warmup_lr_init=0.001)
    for step in range(2):
        loss = torch.nn.functional.cross_entropy(
            model(torch.tensor(array(2, 3, 32, 32, seed=step), dtype=torch.float32)), torch.tensor([0, 2])
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step(step + 1)
    show(f"optim-{name}", loss, optimizer.param_groups[0]["lr"])
image = Image.fromarray(np.random.default_rng(1).integers(0, 256, (80, 100, 3), dtype=np.uint8))
show("transform", create_transform(64, is_training=False)(image))
