"""open_clip_torch: small models of images and text, their losses and gradients, and its tokenizer."""

import open_clip
import torch
from numbers_made import array, fill, show
from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg
from open_clip.modified_resnet import ModifiedResNet

images = torch.tensor(array(3, 3, 32, 32)).float()
tokens = torch.tensor(array(3, 16, low=0, high=60))
text = CLIPTextCfg(context_length=16, vocab_size=64, width=32, heads=2, layers=2)


def grads(model):
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


for name, vision in (
    ("transformer", CLIPVisionCfg(layers=2, width=32, head_width=16, patch_size=8, image_size=32)),
    ("pooled", CLIPVisionCfg(layers=1, width=32, head_width=16, patch_size=8, image_size=32, pool_type="avg")),
    ("resnet", CLIPVisionCfg(layers=(1, 1, 1, 1), width=8, image_size=32)),
):
    model = fill(CLIP(32, vision, text))
    of_images, of_text, scale = model(images, tokens)[:3]
    loss = open_clip.ClipLoss()(of_images, of_text, scale)
    loss.backward()
    show(name, of_images, of_text, scale, loss, grads(model))
net = fill(ModifiedResNet([1, 1, 1, 1], 16, 4, image_size=64, width=8)).eval()
out = net(torch.tensor(array(2, 3, 64, 64)).float())
out.sum().backward()
show("network", out, grads(net))
show("tokens", open_clip.tokenize(["a photo of a cat", "two dogs, on a beach"]))
