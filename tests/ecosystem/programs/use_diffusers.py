"""diffusers: small U-nets with and without conditions, an autoencoder, and the schedulers of several methods."""

import torch
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    UNet2DConditionModel,
    UNet2DModel,
)
from numbers_made import array, fill, show

common = {"layers_per_block": 1, "block_out_channels": (8, 16), "norm_num_groups": 4}
kinds = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
net = fill(UNet2DModel(sample_size=16, in_channels=1, out_channels=1, **kinds, **common))
x = torch.tensor(array(1, 1, 16, 16)).float()
out = net(x, torch.tensor([10])).sample
out.square().mean().backward()
show("U-net", out, net.conv_in.weight.grad)
for method in (DDPMScheduler, DDIMScheduler, EulerDiscreteScheduler, DPMSolverMultistepScheduler):
    schedule = method(num_train_timesteps=100)
    schedule.set_timesteps(5)
    show(method.__name__, schedule.timesteps, schedule.add_noise(x, torch.ones_like(x), schedule.timesteps[2:3]))
    if method is not DDPMScheduler:  # which draws noise
        image = x
        with torch.no_grad():
            for t in schedule.timesteps:
                seen = schedule.scale_model_input(image, t)
                image = schedule.step(net(seen, t).sample, t, image).prev_sample
        show("sampled", image)

kinds = {"down_block_types": ("DownEncoderBlock2D",), "up_block_types": ("UpDecoderBlock2D",)}
pair = AutoencoderKL(3, 3, **kinds, block_out_channels=(8,), latent_channels=2, norm_num_groups=4, sample_size=16)
with torch.no_grad():
    latent = fill(pair).encode(torch.tensor(array(1, 3, 16, 16)).float()).latent_dist.mean
    show("autoencoder", latent, pair.decode(latent).sample)

kinds = {"down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D")}
kinds["up_block_types"] = ("CrossAttnUpBlock2D", "UpBlock2D")
sizes = {"sample_size": 8, "in_channels": 2, "out_channels": 2, "cross_attention_dim": 12, "attention_head_dim": 4}
net, text = fill(UNet2DConditionModel(**kinds, **sizes, **common)), torch.tensor(array(1, 5, 12)).float()
with torch.no_grad():
    show("conditioned", net(torch.tensor(array(1, 2, 8, 8)).float(), 3, text).sample)
