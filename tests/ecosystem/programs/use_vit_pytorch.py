"""vit-pytorch: transformers of images of several kinds, forward and backward, and a step of training."""

from importlib import import_module

import torch
from numbers_made import array, fill, show

BASE = {"image_size": 16, "patch_size": 4, "num_classes": 5, "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 32}
MODELS = {
    ("vit", "ViT"): BASE,
    ("simple_vit", "SimpleViT"): BASE,
    ("deepvit", "DeepViT"): BASE,
    ("cait", "CaiT"): BASE | {"cls_depth": 1},
    ("t2t", "T2TViT"): {k: v for k, v in BASE.items() if k != "patch_size"} | {"t2t_layers": ((3, 2), (3, 2))},
    ("pit", "PiT"): BASE | {"depth": (1, 1)},
    ("nest", "NesT"): {
        "image_size": 16, "patch_size": 4, "dim": 16, "heads": 2, "num_hierarchies": 2, "block_repeats": (1, 1),
        "num_classes": 5,
    },
    ("xcit", "XCiT"): BASE | {"depth": 1, "cls_depth": 1, "local_patch_kernel_size": 3},
    ("learnable_memory_vit", "ViT"): BASE,
}  # fmt: skip

images = torch.tensor(array(2, 3, 16, 16)).float()
for (module, name), options in MODELS.items():
    model = fill(getattr(import_module(f"vit_pytorch.{module}"), name)(**options)).eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    out = model(images)
    loss = out.square().mean()
    loss.backward()
    grads = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    optimizer.step()
    show(module, out, loss, grads, model(images))
