"""torchvision: its operators in C++, nms, batched_nms and roi_align, which norch computes."""

import numpy as np
import torch
import torchvision
from numbers_made import array, show

boxes = torch.tensor(np.random.default_rng(2).uniform(0, 30, (60, 4)), dtype=torch.float32)
boxes[:, 2:] += boxes[:, :2]
scores = torch.tensor(np.random.default_rng(3).uniform(size=60), dtype=torch.float32)
kinds = torch.tensor(array(60, low=0, high=3))
show("nms", torchvision.ops.nms(boxes, scores, 0.4), torchvision.ops.batched_nms(boxes, scores, kinds, 0.3))
x = torch.tensor(array(2, 3, 16, 16), requires_grad=True)
rois = torch.tensor(
    [[0, 1.0, 2.0, 11.0, 9.5], [1, 0.0, 0.0, 15.0, 15.0], [1, -0.5, 5.0, 20.0, 8.0], [0, 4.0, 4.0, 4.5, 4.5]]
).double()
for aligned in (True, False):
    for ratio in (2, -1):
        y = torchvision.ops.roi_align(x, rois, (3, 4), 0.7, ratio, aligned)
        x.grad = None
        y.square().sum().backward()
        show("roi_align", y, x.grad)
