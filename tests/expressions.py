"""Calls written out, with t = torch or norch, F its nn.functional, and the arrays that they name: what autocast and the
table of operations are tried on. x, y: (4, 4); v: (4); b: (2, 4, 4); image: (2, 4, 4, 4); volume: (1, 2, 4, 4, 4);
kernels k1, k2, k3; i: indices."""

import numpy as np

CALLS = """
x @ y; x @ v; v @ x; t.matmul(x, y); t.mm(x, y); t.bmm(b, b); F.linear(x, y); F.linear(x, y, v); F.linear(b, y, v)
t.addmm(v, x, y); t.addbmm(x, b, b); t.baddbmm(x, b, b); t.linalg.vecdot(x, y); t.einsum("ij,jk->ik", x, y)
t.linalg.multi_dot([x, y, x]); t.chain_matmul(x, y, x); t.tensordot(x, y, 1); t.mv(x, v); t.dot(v, v); t.vdot(v, v)
t.inner(v, v); t.inner(x, y); t.tensordot(x, y, 2)
t.addmv(v, x, v); t.addr(x, v, v); F.bilinear(x, y, b.new_ones(3, 4, 4).to(b.dtype)); t.outer(v, v)
F.conv1d(b, k1); F.conv2d(image, k2); F.conv2d(image, k2, v); F.conv3d(volume, k3); F.conv_transpose1d(b, k1)
F.conv_transpose2d(image, k2); F.conv_transpose3d(volume, k3); F.prelu(x, v); F.scaled_dot_product_attention(b, b, b)
F.scaled_dot_product_attention(image, image, image, is_causal=True)
F.mse_loss(x, y); F.l1_loss(x, y); F.smooth_l1_loss(x, y); F.huber_loss(x, y); F.kl_div(x, y); F.poisson_nll_loss(x, y)
F.mse_loss(x, y, reduction="none"); F.hinge_embedding_loss(x, y); F.soft_margin_loss(x, y)
F.margin_ranking_loss(v, v, v); F.cosine_embedding_loss(x, y, v); F.triplet_margin_loss(x, y, x)
F.multi_margin_loss(x, i); F.nll_loss(x, i); F.nll_loss(image, i.new_zeros(2, 4, 4)); F.cross_entropy(x, i)
F.cross_entropy(x, y.softmax(1)); F.cross_entropy(x, i, label_smoothing=0.1); F.binary_cross_entropy(p, p)
F.binary_cross_entropy_with_logits(x, p)
F.ctc_loss(b.log_softmax(2), i.new_ones(4, 2), i.new_ones(4) * 2, i.new_ones(4) * 2)
F.multilabel_margin_loss(x, i.expand(4, 4)); F.gaussian_nll_loss(x, y, p); F.multilabel_soft_margin_loss(x, p)
x.prod(); t.prod(x, 0); t.cdist(x, y); t.trace(x); x.trace(); t.quantile(p, 0.5); p.nanquantile(0.5)
F.grid_sample(image, image[:, :, :, :2], align_corners=True); F.avg_pool3d(volume, 2); F.max_pool3d(volume, 2)
F.adaptive_avg_pool3d(volume, 2); F.adaptive_max_pool3d(volume, 2); F.max_unpool2d(image, i.new_zeros(2, 4, 4, 4), 2)
F.max_unpool3d(volume, i.new_zeros(1, 2, 4, 4, 4), 2); F.max_unpool1d(b, i.new_zeros(2, 4, 4), 2)
F.fractional_max_pool2d(image, 2, output_size=2); F.fractional_max_pool3d(volume, 2, output_ratio=0.5)
F.pad(b, (1, 1), mode="reflect"); F.pad(image, (1, 1, 1, 1), mode="reflect"); F.pad(b, (1, 1), mode="replicate")
F.pad(volume, (1,) * 6, mode="replicate"); F.pad(x, (1, 1)); F.pad(b, (1, 1), mode="circular")
t.cat([x, y]); t.stack([x, y]); t.cat([x, one]); t.stack([x, one]); t.cat([half, half]); t.stack([half, half])
t.index_copy(x, 0, i, y); t.index_copy(half, 0, i, one); t.hstack([x, one])
t.linalg.cholesky(spd); t.linalg.inv(spd); t.linalg.solve(spd, x); t.linalg.qr(x)[0]; t.linalg.svd(x)[1]
t.linalg.eigh(spd)[0]; t.linalg.eigvalsh(spd); t.linalg.svdvals(x); t.linalg.cond(spd); t.linalg.lstsq(spd, x)[0]
t.inverse(spd); t.cholesky(spd); t.pinverse(spd); t.svd(x)[1]; t.qr(x)[0]; t.linalg.inv_ex(spd)[0]
t.linalg.cholesky_ex(spd)[0]; t.cholesky_solve(x, spd); t.cholesky_inverse(spd); t.linalg.eigvals(spd)
t.geqrf(x)[0]; t.orgqr(x, v); t.ormqr(x, v, y); t.linalg.householder_product(x, v)
t.triangular_solve(x, spd)[0]; t.linalg.tensorinv(spd, 1); t.linalg.tensorsolve(spd, v)
t.fft.fft(x); t.fft.ifft(x); t.fft.rfft(x); t.fft.fft2(x); t.fft.rfft2(x); t.fft.fftn(x); t.fft.hfft(x)
t.polar(p, x); t.view_as_complex(pairs)
x + y; x * 2; x + one; half + one; x / y; x.exp(); x.log(); x.sqrt(); x ** 2; 1 / x; x.sum(); x.mean(); x.sum(0)
x.softmax(1); t.log_softmax(x, 1); F.softmax(x, 1); x.cumsum(0); x.norm(); x.var(); x.std(); t.logsumexp(x, 1); x.tanh()
F.relu(x); F.gelu(x); F.silu(x); F.softplus(x); F.sigmoid(x); F.elu(x); F.leaky_relu(x); F.mish(x); F.hardswish(x)
F.layer_norm(x, (4,)); F.group_norm(x, 2); F.rms_norm(x, (4,)); F.batch_norm(image, v, p[0]); F.normalize(x)
F.instance_norm(image); F.layer_norm(x, (4,), one[0], one[0]); F.batch_norm(image, one[0], one[0] ** 2)
F.max_pool2d(image, 2); F.avg_pool2d(image, 2); F.adaptive_avg_pool2d(image, 2); F.interpolate(image, scale_factor=2)
F.dropout(x); F.embedding(i, x); t.where(x > 0, x, y); x.max(); x.max(1)[0]; x.clamp(0, 1); t.maximum(x, y)
F.pairwise_distance(x, y); F.cosine_similarity(x, y); t.dist(x, y); x.reciprocal(); t.atan2(x, y); t.addcmul(x, x, y)
x.index_select(0, i); x.gather(1, i[None]); t.scatter_add(x, 0, i[None], x); x.sort()[0]; x.cumprod(0); x.lerp(y, 0.5)
"""
EXPRESSIONS = [call.strip() for line in CALLS.strip().splitlines() for call in line.split(";")]

RNG = np.random.default_rng(0)
ARRAYS = {
    name: RNG.normal(size=shape)
    for name, shape in {
        "x": (4, 4), "y": (4, 4), "v": (4,), "b": (2, 4, 4), "image": (2, 4, 4, 4), "volume": (1, 2, 4, 4, 4),
        "k1": (4, 4, 3), "k2": (4, 4, 3, 3), "k3": (2, 2, 2, 2, 2), "pairs": (4, 2), "one": (4, 4), "half": (4, 4),
    }.items()
}  # fmt: skip
ARRAYS["p"] = RNG.uniform(0.1, 0.9, size=(4, 4))
ARRAYS["spd"] = np.eye(4) * 4 + 0.1
