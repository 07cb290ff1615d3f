"""segment-anything: a small encoder of images, prompts by points and boxes, and the decoder of masks."""

import torch
from numbers_made import array, fill, show
from segment_anything.modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, Sam, TwoWayTransformer

encoder = ImageEncoderViT(
    img_size=64, patch_size=16, embed_dim=16, depth=2, num_heads=2, out_chans=16, global_attn_indexes=(1,),
    window_size=2, use_rel_pos=True,
)  # fmt: skip
decoder = MaskDecoder(transformer_dim=16, transformer=TwoWayTransformer(2, 16, 2, 32), num_multimask_outputs=3)
model = fill(Sam(encoder, PromptEncoder(16, (4, 4), (64, 64), 8), decoder))
image = torch.tensor(array(3, 64, 64)).float()
prompts = (
    {"point_coords": torch.tensor([[[10.0, 12.0]]]), "point_labels": torch.tensor([[1]])},
    {"boxes": torch.tensor([[5.0, 6.0, 40.0, 50.0]])},
)
for number, prompt in enumerate(prompts):
    (found,) = model([{"image": image, "original_size": (60, 60), **prompt}], multimask_output=True)
    show(f"prompt {number}", found["iou_predictions"], found["low_res_logits"], found["masks"].float())
x = image[None].requires_grad_()
features = model.image_encoder(x)
features.square().mean().backward()
show("encoder", features, x.grad, *[p.grad for p in model.image_encoder.parameters()][:6])
