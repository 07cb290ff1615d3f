"""In which precision autocast computes which operation: PyTorch's lists, by the functions that norch has for them.

They are those of PyTorch 2.13, for CUDA in aten/src/ATen/autocast_mode.h, for the CPU in autocast_mode.cpp.
"""

# A policy says what an operation makes of its floating arguments on a device, but for float64:
#   lower     casts them to autocast's dtype
#   float32   casts them to float32
#   widest    casts them to float32 if one of them has it, else to autocast's dtype
#   refused   raises an Error
#   given     takes them as they are, and its steps too. So do operations in no list (None), whose steps may be in one
Policy = str | None

# Of each row: a module, functions in it, their policy on the CPU and on CUDA.
OPERATIONS: tuple[tuple[str, str, Policy, Policy], ...] = (
    # ---- products
    ("ops.matmul", "matmul mm bmm product linear linear_with_epilogue", "lower", "lower"),
    ("ops.composed.products", "addmm addbmm baddbmm vecdot", "lower", "lower"),
    ("ops.conv", "conv1d conv2d conv_transpose1d conv_transpose2d", "lower", "lower"),
    ("ops.conv3d", "conv3d conv_transpose3d", "lower", "lower"),
    ("ops.attention", "scaled_dot_product_attention", "lower", "lower"),
    ("ops.composed.activation", "prelu", "lower", "lower"),
    ("ops.matmul", "mv", "given", "lower"),
    ("ops.composed.products", "addmv addr", "given", "lower"),
    ("ops.composed.products", "chain_matmul multi_dot", None, "lower"),
    ("ops.composed.einsum", "einsum", None, "lower"),
    ("ops.matmul", "dot vdot", "given", "widest"),
    ("ops.composed.products", "tensordot", None, "widest"),
    ("ops.composed.products", "bilinear cross", "given", "widest"),
    ("nn.recurrent", "_tanh _relu _lstm _gru", None, "lower"),
    # ---- losses
    ("nn.functional._loss", "mse_loss l1_loss smooth_l1_loss huber_loss kl_div poisson_nll_loss", "float32", "float32"),
    ("nn.functional._loss", "hinge_embedding_loss soft_margin_loss margin_ranking_loss", "float32", "float32"),
    ("nn.functional._loss", "cosine_embedding_loss triplet_margin_loss multi_margin_loss", "float32", "float32"),
    ("nn.functional._cross_entropy", "nll_loss cross_entropy", "float32", "float32"),
    ("nn.functional._cross_entropy", "binary_cross_entropy_with_logits", "float32", "float32"),
    ("nn.functional._cross_entropy", "binary_cross_entropy", "float32", "refused"),
    ("nn.extras.ctc_loss", "ctc_loss", "float32", None),
    # ---- functions that grow fast, or lose digits
    ("ops.pointwise", "acos asin cosh erfinv exp expm1 log log10 log1p log2 pow _pow", None, "float32"),
    ("ops.pointwise", "reciprocal rsqrt sinh square tan", None, "float32"),
    ("tensor", "Tensor.__rtruediv__", None, "float32"),
    ("nn.functional._activation", "softplus", None, "float32"),
    ("ops.pointwise", "atan2", None, "widest"),
    ("ops.composed.pointwise", "addcdiv addcmul", None, "widest"),
    # ---- sums, norms and normalization
    ("ops.reduce", "prod", "float32", "float32"),
    ("ops.reduce", "sum _sum_method logsumexp", None, "float32"),
    ("ops.scan", "cumprod cumsum", None, "float32"),
    ("ops.softmax", "softmax log_softmax", None, "float32"),
    ("ops.norm", "norm vector_norm matrix_norm", None, "float32"),
    ("ops.normalization", "layer_norm rms_norm group_norm", None, "float32"),
    ("ops.normalization", "instance_norm", None, "given"),
    ("ops.composed.distance", "cdist", "float32", "float32"),
    ("ops.composed.distance", "pdist renorm cosine_similarity", None, "float32"),
    ("ops.composed.pointwise", "dist", None, "float32"),
    ("ops.composed.diagonal", "trace", "float32", None),
    ("ops.composed.order", "quantile nanquantile", "float32", None),
    # ---- images and volumes
    ("nn.functional._vision", "interpolate", None, "float32"),
    ("nn.extras.grid_sample", "grid_sample", "float32", "widest"),
    ("nn.extras.unpool", "max_unpool2d max_unpool3d", "float32", None),
    ("ops.composed.pad", "_mirrored", "float32", None),
    ("ops.composed.pad", "_wrapped", "given", None),
    ("ops.pool", "avg_pool3d max_pool3d", "float32", None),
    ("ops.composed.adaptive_pool", "adaptive_avg_pool3d adaptive_max_pool3d", "float32", None),
    # ---- joins and writes
    ("ops.copy", "cat stack", "widest", None),
    ("ops.index", "index_copy", "widest", None),
    ("ops.getitem", "index_put", None, "widest"),
    ("ops.scatter", "scatter_add", None, "widest"),
    # ---- linear algebra and Fourier transforms
    ("ops.complex", "polar view_as_complex", "float32", None),
    ("linalg", "cholesky cholesky_ex cond eig eigh eigvals eigvalsh inv inv_ex lstsq matrix_rank", "float32", None),
    ("linalg", "qr solve svd svdvals tensorinv tensorsolve", "float32", None),
    ("ops.linalg.torch_names", "cholesky cholesky_inverse cholesky_solve lu_solve pinverse qr", "float32", None),
    ("ops.linalg.torch_names", "svd triangular_solve", "float32", None),
    ("fft", "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn", "float32", None),
)

# What takes dtypes as they are where autocast is on: backward those that forward took, calls in place and with out=
# those given. Of each row: a module, functions in it, whether on the CPU and on CUDA a step of them is in OPERATIONS.
UNCAST = (
    ("autograd.engine", "walk", True, True),
    ("ops._out", "written", True, True),
    ("tensor", "Tensor.addmm_ Tensor.addbmm_ Tensor.baddbmm_", True, True),
    ("tensor", "Tensor.addmv_ Tensor.addr_ Tensor.addcdiv_ Tensor.addcmul_ Tensor.cumprod_", False, True),
    ("tensor", "Tensor.cumsum_ Tensor.renorm_ Tensor.scatter_reduce_", False, True),
)
