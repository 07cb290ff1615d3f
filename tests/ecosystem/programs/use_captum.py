"""captum: attributions of a network's outputs."""

import torch
from captum.attr import (
    DeepLift,
    FeatureAblation,
    GuidedGradCam,
    InputXGradient,
    IntegratedGradients,
    LayerConductance,
    LayerGradCam,
    Occlusion,
    Saliency,
)
from numbers_made import array, fill, show
from torch import nn

model = fill(
    nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(27, 4))
).eval()
x = torch.tensor(array(2, 1, 8, 8)).float()
for method in (IntegratedGradients, Saliency, InputXGradient, DeepLift, FeatureAblation):
    show(method.__name__, method(model).attribute(x.clone().requires_grad_(), target=1))
show("Occlusion", Occlusion(model).attribute(x, target=2, sliding_window_shapes=(1, 3, 3)))
for method in (LayerConductance, LayerGradCam):
    show(method.__name__, method(model, model[0]).attribute(x.clone().requires_grad_(), target=1))
show("GuidedGradCam", GuidedGradCam(model, model[0]).attribute(x.clone().requires_grad_(), target=0))
