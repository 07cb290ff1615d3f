"""Runs a program with PyTorch, for the numbers that are kept: python reference.py program.

PyPI's torchvision has operators for another build of PyTorch. They are declared here, so that torchvision can be
imported, and computed by NumPy and by torchvision's own Python.
"""

import importlib
import runpy
import sys

import numpy as np
import torch

library = torch.library.Library("torchvision", "DEF")
library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
library.define(
    "roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor"
)
others = (
    "qnms qroi_align _roi_align_backward roi_pool _roi_pool_backward ps_roi_align _ps_roi_align_backward ps_roi_pool "
)
for name in f"{others} _ps_roi_pool_backward deform_conv2d _deform_conv2d_backward box_iou_rotated".split():
    library.define(f"{name}(Tensor x) -> Tensor")


def nms(dets: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """The definition, box by box."""
    boxes, kept = dets.detach().numpy(), []
    for i in np.argsort(-scores.detach().numpy(), kind="stable"):
        for j in kept:
            low, high = np.maximum(boxes[i, :2], boxes[j, :2]), np.minimum(boxes[i, 2:], boxes[j, 2:])
            both = np.prod(np.maximum(high - low, 0))
            if (
                both / (np.prod(boxes[i, 2:] - boxes[i, :2]) + np.prod(boxes[j, 2:] - boxes[j, :2]) - both)
                > iou_threshold
            ):
                break
        else:
            kept.append(int(i))
    return torch.tensor(kept)


sound = torch.library.Library("_torchaudio", "DEF")
sound.define("is_align_available() -> bool")
sound.define("cuda_version() -> int?")
sound.impl("is_align_available", lambda: False, "CompositeExplicitAutograd")
sound.impl("cuda_version", lambda: None, "CompositeExplicitAutograd")
filters = torch.library.Library("torchaudio", "DEF")
filters.define("_lfilter_core_loop(Tensor x, Tensor a, Tensor(a!) y) -> ()")
filters.define("_overdrive_core_loop(Tensor x, Tensor t, Tensor i, Tensor o, Tensor(a!) y) -> ()")

library.impl("nms", nms, "CPU")
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0] or ".")
if "torchvision" in sys.argv[0]:
    import torchvision

    torchvision.extension._has_ops = torchvision.ops.boxes._assert_has_ops = lambda: True
    torchvision.ops.boxes._assert_has_ops = lambda: None
    inner = sys.modules["torchvision.ops.roi_align"]
    inner.lazy_compile = lambda **options: lambda function: function
    inner._roi_align = inner._roi_align.__wrapped__
if sys.argv[0].endswith(("torchcrepe.py", "torchaudio.py", "transformers.py", "peft.py", "diffusers.py")):
    load_library = torch.ops.load_library
    torch.ops.load_library = lambda path: None if "torchaudio" in str(path) else load_library(path)

    inner = importlib.import_module("torchaudio.functional.filtering")
    inner._lfilter_core_loop = inner._lfilter_core_generic_loop
    inner._overdrive_core_loop_cpu = inner._overdrive_core_loop_generic
runpy.run_path(sys.argv[0], run_name="__main__")
