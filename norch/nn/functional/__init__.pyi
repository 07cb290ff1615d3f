"""Written by `make stubs` from the code; a test fails when it is out of date."""

import builtins
from norch.dtype import dtype
from norch.nn.attention import multi_head_attention_forward as multi_head_attention_forward
from norch.nn.extras.ctc_loss import ctc_loss as ctc_loss
from norch.nn.extras.embedding_bag import embedding_bag as embedding_bag
from norch.nn.extras.fractional_pool import fractional_max_pool2d as fractional_max_pool2d, fractional_max_pool3d as fractional_max_pool3d
from norch.nn.extras.grid_sample import affine_grid as affine_grid, grid_sample as grid_sample
from norch.nn.extras.unpool import max_unpool1d as max_unpool1d, max_unpool2d as max_unpool2d, max_unpool3d as max_unpool3d
from norch.nn.functional._activation import gelu as gelu, glu as glu, gumbel_softmax as gumbel_softmax, relu as relu, softmin as softmin, tanhshrink as tanhshrink
from norch.nn.functional._cross_entropy import binary_cross_entropy as binary_cross_entropy, binary_cross_entropy_with_logits as binary_cross_entropy_with_logits, cross_entropy as cross_entropy, nll_loss as nll_loss
from norch.nn.functional._dropout import dropout as dropout
from norch.nn.functional._embedding import one_hot as one_hot
from norch.nn.functional._loss import cosine_embedding_loss as cosine_embedding_loss, gaussian_nll_loss as gaussian_nll_loss, hinge_embedding_loss as hinge_embedding_loss, huber_loss as huber_loss, kl_div as kl_div, l1_loss as l1_loss, margin_ranking_loss as margin_ranking_loss, mse_loss as mse_loss, multi_margin_loss as multi_margin_loss, multilabel_margin_loss as multilabel_margin_loss, multilabel_soft_margin_loss as multilabel_soft_margin_loss, poisson_nll_loss as poisson_nll_loss, smooth_l1_loss as smooth_l1_loss, soft_margin_loss as soft_margin_loss, triplet_margin_loss as triplet_margin_loss, triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from norch.nn.functional._normalize import local_response_norm as local_response_norm, normalize as normalize
from norch.nn.functional._pool import lp_pool1d as lp_pool1d, lp_pool2d as lp_pool2d, lp_pool3d as lp_pool3d
from norch.nn.functional._vision import channel_shuffle as channel_shuffle, fold as fold, interpolate as interpolate, pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle
from norch.ops.attention import scaled_dot_product_attention as scaled_dot_product_attention
from norch.ops.batch_norm import batch_norm as batch_norm
from norch.ops.composed.adaptive_pool import adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d, adaptive_avg_pool3d as adaptive_avg_pool3d
from norch.ops.composed.distance import cosine_similarity as cosine_similarity, pairwise_distance as pairwise_distance, pdist as pdist
from norch.ops.composed.pad import pad as pad
from norch.ops.composed.products import bilinear as bilinear
from norch.ops.conv import Sizes
from norch.ops.matmul import linear as linear
from norch.ops.normalization import group_norm as group_norm, layer_norm as layer_norm, rms_norm as rms_norm
from norch.ops.pool import Sizes, avg_pool1d as avg_pool1d
from norch.overrides import handle_torch_function as handle_torch_function, has_torch_function as has_torch_function, has_torch_function_unary as has_torch_function_unary, has_torch_function_variadic as has_torch_function_variadic
from norch.tensor import Tensor
from typing import Any, Literal, overload

@overload
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: Literal[False] = ...) -> Tensor: ...
@overload
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = ...) -> Any: ...
def adaptive_max_pool1d_with_indices(input: Tensor, *arguments: Any, **named: Any) -> tuple[Tensor, Tensor]: """adaptive_max_pool1d(return_indices=True)."""
@overload
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: Literal[False] = ...) -> Tensor: ...
@overload
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = ...) -> Any: ...
def adaptive_max_pool2d_with_indices(input: Tensor, *arguments: Any, **named: Any) -> tuple[Tensor, Tensor]: """adaptive_max_pool2d(return_indices=True)."""
@overload
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: Literal[False] = ...) -> Tensor: ...
@overload
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = ...) -> Any: ...
def adaptive_max_pool3d_with_indices(input: Tensor, *arguments: Any, **named: Any) -> tuple[Tensor, Tensor]: """adaptive_max_pool3d(return_indices=True)."""
def alpha_dropout(input: Tensor, p: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor: """Dropout that keeps mean 0 and variance 1 of the output of selu(): dropped elements take the limit of selu() at -inf, and the result is scaled and shifted (Klambauer et al. 2017)."""
def avg_pool2d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., ceil_mode: bool = ..., count_include_pad: bool = ..., divisor_override: int | None = ...) -> Tensor: """The mean of each window of input (N, C, H, W) or (C, H, W). stride: kernel_size unless given."""
def avg_pool3d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., ceil_mode: bool = ..., count_include_pad: bool = ..., divisor_override: int | None = ...) -> Tensor: """The mean of each window of input (N, C, D, H, W) or (C, D, H, W); as avg_pool2d."""
def celu(input: Tensor, alpha: float = ..., inplace: bool = ...) -> Tensor: """x if x > 0, else alpha * (exp(x / alpha) - 1) (Barron 2017). Floats only; DivisionError if alpha is 0."""
def celu_(input: Tensor, alpha: float = ..., inplace: bool = ...) -> Tensor: """celu() in place."""
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes | str = ..., dilation: Sizes = ..., groups: int = ...) -> Tensor: """input (N, C, L) or (C, L) with weight (O, C / groups, K) and bias (O): (N, O, L') or (O, L')."""
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes | str = ..., dilation: Sizes = ..., groups: int = ...) -> Tensor: """input (N, C, H, W) or (C, H, W) with weight (O, C / groups, KH, KW) and bias (O); otherwise as conv1d."""
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes | str = ..., dilation: Sizes = ..., groups: int = ...) -> Tensor: """input (N, C, D, H, W) or (C, D, H, W) with weight (O, C / groups, KD, KH, KW) and bias (O); otherwise as conv1d. While it runs it takes KD times the memory of input."""
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes = ..., output_padding: Sizes = ..., groups: int = ..., dilation: Sizes = ...) -> Tensor: """The adjoint of conv1d: input (N, C, L) with weight (C, O / groups, K) and bias (O) gives (N, O, L')."""
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes = ..., output_padding: Sizes = ..., groups: int = ..., dilation: Sizes = ...) -> Tensor: """The adjoint of conv2d: input (N, C, H, W) with weight (C, O / groups, KH, KW) and bias (O)."""
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: Sizes = ..., padding: Sizes = ..., output_padding: Sizes = ..., groups: int = ..., dilation: Sizes = ...) -> Tensor: """The adjoint of conv3d: input (N, C, D, H, W) with weight (C, O / groups, KD, KH, KW) and bias (O)."""
def dropout1d(input: Tensor, p: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor: """dropout() of whole channels of input (N, C, L) or (C, L) (Tompson et al. 2015)."""
def dropout2d(input: Tensor, p: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor: """dropout() of whole channels of input (N, C, H, W) (Tompson et al. 2015)."""
def dropout3d(input: Tensor, p: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor: """dropout() of whole channels of input (N, C, D, H, W) (Tompson et al. 2015)."""
def elu(input: Tensor, alpha: float = ..., inplace: bool = ...) -> Tensor: """x if x > 0, else alpha * (exp(x) - 1) (Clevert et al. 2015). Floats only."""
def elu_(input: Tensor, alpha: float = ..., inplace: bool = ...) -> Tensor: """elu() in place."""
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = ..., max_norm: float | None = ..., norm_type: float = ..., scale_grad_by_freq: bool = ..., sparse: bool = ...) -> Tensor: """The rows of weight (rows, columns) with the indices input, integers of any shape: (*input.shape, columns)."""
def feature_alpha_dropout(input: Tensor, p: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor: """alpha_dropout() of whole channels of input (N, C, ...)."""
def hardshrink(input: Tensor, lambd: float = ...) -> Tensor: """input, but 0 where |input| <= lambd. Floats only."""
def hardsigmoid(input: Tensor, inplace: bool = ...) -> Tensor: """relu6(x + 3) / 6. Floats only."""
def hardswish(input: Tensor, inplace: bool = ...) -> Tensor: """x * relu6(x + 3) / 6 (Howard et al. 2019). Floats only."""
def hardtanh(input: Tensor, min_val: float = ..., max_val: float = ..., inplace: bool = ...) -> Tensor: """min(max(min_val, x), max_val); the gradient is 0 at the bounds. ArgumentError if min_val > max_val."""
def hardtanh_(input: Tensor, min_val: float = ..., max_val: float = ..., inplace: bool = ...) -> Tensor: """hardtanh() in place."""
def instance_norm(input: Tensor, running_mean: Tensor | None = ..., running_var: Tensor | None = ..., weight: Tensor | None = ..., bias: Tensor | None = ..., use_input_stats: bool = ..., momentum: float = ..., eps: float = ...) -> Tensor: """input (N, C, L...): each channel of each sample with mean 0 and variance 1; times weight (C), plus bias (C) (Ulyanov et al. 2016)."""
def leaky_relu(input: Tensor, negative_slope: float = ..., inplace: bool = ...) -> Tensor: """x if x > 0, else negative_slope * x (Maas et al. 2013). Floats only."""
def leaky_relu_(input: Tensor, negative_slope: float = ..., inplace: bool = ...) -> Tensor: """leaky_relu() in place."""
def log_softmax(input: Tensor, dim: int | None = ..., _stacklevel: int = ..., dtype: dtype | None = ...) -> Tensor: """log(softmax(x)) along dim, computed as x - logsumexp(x): finite for finite x of any size."""
def logsigmoid(input: Tensor) -> Tensor: """log(sigmoid(x)), without overflow. Floats only."""
@overload
def max_pool1d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ..., return_indices: Literal[False] = ...) -> Tensor: ...
@overload
def max_pool1d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ..., *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool1d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ..., return_indices: bool = ...) -> Any: ...
def max_pool1d_with_indices(input: Tensor, *arguments: Any, **named: Any) -> tuple[Tensor, Tensor]: """max_pool1d(return_indices=True)."""
@overload
def max_pool2d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ..., return_indices: Literal[False] = ...) -> Tensor: ...
@overload
def max_pool2d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ..., *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ..., return_indices: bool = ...) -> Any: ...
def max_pool2d_with_indices(input: Tensor, *arguments: Any, **named: Any) -> tuple[Tensor, Tensor]: """max_pool2d(return_indices=True)."""
@overload
def max_pool3d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ..., return_indices: Literal[False] = ...) -> Tensor: ...
@overload
def max_pool3d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ..., *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = ..., padding: Sizes = ..., dilation: Sizes = ..., ceil_mode: bool = ..., return_indices: bool = ...) -> Any: ...
def max_pool3d_with_indices(input: Tensor, *arguments: Any, **named: Any) -> tuple[Tensor, Tensor]: """max_pool3d(return_indices=True)."""
def mish(input: Tensor, inplace: bool = ...) -> Tensor: """x * tanh(softplus(x)) (Misra 2019). Floats only."""
def prelu(input: Tensor, weight: Tensor) -> Tensor: """input, times weight where it is negative: one weight, or one for each channel (dimension 1) (He et al. 2015). Floats only."""
def relu6(input: Tensor, inplace: bool = ...) -> Tensor: """min(max(0, x), 6) (Krizhevsky 2010)."""
def relu_(self: Tensor) -> Tensor: """relu() in place."""
def rrelu(input: Tensor, lower: float = ..., upper: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor: """leaky_relu() with a random slope per element, uniform in [lower, upper), in training, and with the mean of both otherwise (Xu et al. 2015). Floats only."""
def rrelu_(input: Tensor, lower: float = ..., upper: float = ..., training: bool = ..., inplace: bool = ...) -> Tensor: """rrelu() in place."""
def selu(input: Tensor, inplace: bool = ...) -> Tensor: """scale * elu(x, alpha), with constants that keep mean 0 and variance 1 (Klambauer et al. 2017). Floats only."""
def selu_(input: Tensor, inplace: bool = ...) -> Tensor: """selu() in place."""
def sigmoid(input: Tensor) -> Tensor: """1 / (1 + e**-x). Integers become floats."""
def silu(input: Tensor, inplace: bool = ...) -> Tensor: """x * sigmoid(x) (Elfwing et al. 2017). Floats and complex numbers."""
def softmax(input: Tensor, dim: int | None = ..., _stacklevel: int = ..., dtype: dtype | None = ...) -> Tensor: """exp(x) / sum(exp(x)) along dim. The maximum is subtracted first, so that exp() does not overflow."""
def softplus(input: Tensor, beta: float = ..., threshold: float = ...) -> Tensor: """log(1 + exp(beta * x)) / beta, and x itself where beta * x > threshold (Dugas et al. 2000). Floats only."""
def softshrink(input: Tensor, lambd: float = ...) -> Tensor: """x - lambd if x > lambd, x + lambd if x < -lambd, else 0. Floats only; ArgumentError if lambd < 0."""
def softsign(input: Tensor) -> Tensor: """x / (1 + |x|)."""
def tanh(input: Tensor) -> Tensor: """Hyperbolic tangent. Integers become floats."""
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = ...) -> Tensor: """x if x > threshold or x is NaN, else value."""
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor: """threshold() in place."""
def unfold(input: Tensor, kernel_size: Any, dilation: Any = ..., padding: Any = ..., stride: Any = ...) -> Tensor: """The patches of input (N, C, H, W) or (C, H, W) that conv2d() reads, as columns: (N, C * kh * kw, patches)."""
def upsample(input: Tensor, size: Any = ..., scale_factor: Any = ..., mode: str = ..., align_corners: bool | None = ...) -> Tensor: """interpolate() under its former name."""
def upsample_bilinear(input: Tensor, size: Any = ..., scale_factor: Any = ...) -> Tensor: """interpolate() with mode "bilinear" and align_corners."""
def upsample_nearest(input: Tensor, size: Any = ..., scale_factor: Any = ...) -> Tensor: """interpolate() with mode "nearest"."""
