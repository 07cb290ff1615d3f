"""torchkbnufft: Fourier transforms at any frequencies and back, weights of density, Toeplitz kernels, gradients."""

import torch
import torchkbnufft
from numbers_made import array, show

image = torch.complex(*(torch.tensor(array(1, 2, 16, 12, seed=seed), dtype=torch.float32) for seed in (0, 1)))
image.requires_grad_()
where = torch.tensor(array(2, 60, seed=2), dtype=torch.float32).clamp(-3, 3)
size = (16, 12)
forward, adjoint = torchkbnufft.KbNufft(im_size=size), torchkbnufft.KbNufftAdjoint(im_size=size)
signal = forward(image, where)
show("forward", *torch.view_as_real(signal).unbind(-1))
show("adjoint", *torch.view_as_real(adjoint(signal, where)).unbind(-1))
signal.abs().sum().backward()
show("gradient", torch.view_as_real(image.grad))
show("table", torch.view_as_real(torchkbnufft.KbNufft(im_size=size, numpoints=4, kbwidth=2.0)(image, where)))
coils = torch.complex(*(torch.tensor(array(1, 3, 16, 12, seed=seed), dtype=torch.float32) for seed in (3, 4)))
show("coils", torch.view_as_real(forward(image[:, :1], where, smaps=coils)))
weights = torchkbnufft.calc_density_compensation_function(where, im_size=size)
show("weights", torch.view_as_real(weights))
kernel = torchkbnufft.calc_toeplitz_kernel(where, im_size=size)
show("toeplitz", torch.view_as_real(torchkbnufft.ToepNufft()(image, kernel)))
matrices = torchkbnufft.calc_tensor_spmatrix(where, im_size=size)
show("matrices", torch.view_as_real(forward(image, where, interp_mats=matrices)))
