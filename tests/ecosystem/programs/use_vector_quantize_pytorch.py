"""vector-quantize-pytorch: codebooks of several kinds (FSQ, LFQ, residual), their losses and gradients."""

import torch
from numbers_made import array, fill, show
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize

x = torch.tensor(array(2, 6, 8)).float()
quantizer = fill(VectorQuantize(dim=8, codebook_size=16, decay=0.9)).eval()
show("vq", *quantizer(x))
quantizer = fill(VectorQuantize(dim=8, codebook_size=16, codebook_dim=4, use_cosine_sim=True)).eval()
show("cosine", *quantizer(x))
show("residual", *fill(ResidualVQ(dim=8, num_quantizers=3, codebook_size=8)).eval()(x))
y = x[..., :3].clone().requires_grad_()
codes, places = FSQ([8, 5, 3])(y)
(codes * x[..., 3:6]).sum().backward()
show("fsq", codes, places, y.grad)
found, places, loss = fill(LFQ(codebook_size=8, dim=8)).eval()(x)
show("lfq", found, places, loss)
