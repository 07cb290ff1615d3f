"""torchvision: models, transforms (v1, v2) of PIL images and of tensors; boxes."""

import numpy as np
import torch
import torchvision
from numbers_made import array, fill, show
from PIL import Image
from torchvision import models, transforms
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

for name in ("resnet18", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5"):
    model = fill(getattr(models, name)(num_classes=4)).eval()
    x = torch.tensor(array(1, 3, 64, 64), dtype=torch.float32, requires_grad=True)
    y = model(x)
    y.square().sum().backward()
    show(name, y, x.grad)
model = fill(models.vit_b_32(num_classes=4, image_size=64)).eval()
show("vit_b_32", model(torch.tensor(array(1, 3, 64, 64), dtype=torch.float32)))

pixels = np.random.default_rng(1).integers(0, 256, (40, 50, 3), dtype=np.uint8)
picture, image = Image.fromarray(pixels), torch.tensor(pixels).permute(2, 0, 1)
mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
v1 = transforms.Compose(
    [transforms.Resize(32), transforms.CenterCrop(28), transforms.ToTensor(), transforms.Normalize(mean, std)]
)
show("v1", v1(picture))
for name, kind in (("pil", picture), ("tensor", image)):
    steps = [
        v2.ToImage(),
        v2.Resize((20, 31)),
        v2.CenterCrop(18),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(mean, std),
    ]
    show(f"v2-{name}", v2.Compose(steps)(kind))
for antialias in (True, False):
    for mode in (transforms.InterpolationMode.BILINEAR, transforms.InterpolationMode.BICUBIC):
        show(
            "resize",
            F.resize(image, [17, 23], interpolation=mode, antialias=antialias),
            F.resize(image.float(), [61, 23], interpolation=mode, antialias=antialias),
        )
show(
    "flips",
    F.horizontal_flip(image),
    F.vertical_flip(image),
    F.rotate(image, 30.0),
    F.affine(image, 10.0, [2, 3], 1.2, [5.0, 0.0]),
)
show(
    "colours",
    F.adjust_brightness(image, 1.3),
    F.adjust_contrast(image, 0.7),
    F.adjust_saturation(image, 1.4),
    F.adjust_hue(image, 0.1),
    F.rgb_to_grayscale(image),
    F.gaussian_blur(image, [3, 5]),
)
show("perspective", F.perspective(image, [[0, 0], [49, 0], [49, 39], [0, 39]], [[2, 3], [45, 1], [47, 38], [1, 35]]))

boxes = torch.tensor(np.random.default_rng(2).uniform(0, 30, (30, 4)), dtype=torch.float32)
boxes[:, 2:] += boxes[:, :2]
scores = torch.tensor(np.random.default_rng(3).uniform(size=30), dtype=torch.float32)
show(
    "boxes",
    torchvision.ops.box_iou(boxes[:4], boxes[4:9]),
    torchvision.ops.box_area(boxes),
    torchvision.ops.generalized_box_iou(boxes[:3], boxes[3:6]),
)
