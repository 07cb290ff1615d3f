"""kornia: filters, colours, geometry, features, morphology and augmentations of images, with gradients."""

import kornia
import torch
from kornia import augmentation, color, enhance, feature, filters, geometry, metrics, morphology
from numbers_made import array, show

image = torch.tensor(array(2, 3, 16, 16)).float().sigmoid().requires_grad_()
box = torch.ones(3, 3)
for name, function in {
    "blur": lambda x: filters.gaussian_blur2d(x, (5, 5), (1.0, 1.0)),
    "sobel": filters.sobel,
    "canny": lambda x: filters.canny(x)[0],
    "median": lambda x: filters.median_blur(x, (3, 3)),
    "unsharp": lambda x: filters.unsharp_mask(x, (3, 3), (1.5, 1.5)),
    "hsv": color.rgb_to_hsv,
    "lab": color.rgb_to_lab,
    "gray": color.rgb_to_grayscale,
    "rotate": lambda x: geometry.transform.rotate(x, torch.tensor([30.0, 10.0])),
    "resize": lambda x: geometry.resize(x, (8, 9)),
    "warp": lambda x: geometry.warp_perspective(x, torch.eye(3)[None].repeat(2, 1, 1), (12, 12)),
    "pyramid": geometry.pyrdown,
    "bright": lambda x: enhance.adjust_brightness(x, 0.2),
    "equalize": enhance.equalize,
    "harris": lambda x: feature.harris_response(color.rgb_to_grayscale(x)),
    "erosion": lambda x: morphology.erosion(x, box),
    "ssim": lambda x: metrics.ssim(x, x.roll(1, 3), 5),
}.items():
    show(name, function(image))
rotated = geometry.transform.rotate(image, torch.tensor([30.0, 10.0]))
show("gradient", *torch.autograd.grad(rotated.square().sum(), image))
steps = augmentation.AugmentationSequential(
    augmentation.RandomHorizontalFlip(p=1.0), augmentation.RandomAffine(0.0, p=1.0), augmentation.Normalize(0.5, 0.2)
)
show("augmented", steps(image))
print(kornia.utils.tensor_to_image(image[0].detach()).shape)
