"""array-api-compat: the array API standard on tensors, reductions, linear algebra and dtypes."""

import array_api_compat
import torch
from numbers_made import array, show

x = torch.tensor(array(4, 5))
xp = array_api_compat.array_namespace(x)
print(xp.__name__, array_api_compat.is_torch_array(x))
names = "sum prod mean std var max min any all".split()
names += "argmax argmin cumulative_sum cumulative_prod flip sort argsort unique_values nonzero count_nonzero".split()
for n in names:
    r = getattr(xp, n)(x, axis=1) if n not in ("unique_values", "nonzero") else getattr(xp, n)(x)
    show(n, *(r if isinstance(r, tuple) else (r,)))
show(
    "m",
    xp.matmul(x, xp.matrix_transpose(x)),
    xp.tensordot(x, x, axes=2),
    xp.vecdot(x, x),
    xp.expand_dims(x, axis=0),
    xp.squeeze(x[None], axis=0),
    xp.roll(x, 1, axis=0),
    xp.repeat(x, 2, axis=0),
    xp.take(x, torch.tensor([1, 0]), axis=1),
    xp.take_along_axis(x, torch.argsort(x, 1), axis=1),
    xp.clip(x, -0.5, None),
    xp.permute_dims(x, (1, 0)),
    xp.concat([x, x], axis=None),
)
show(
    "l",
    xp.linalg.det(x @ x.T),
    *xp.linalg.svd(x)[1:2],
    xp.linalg.vector_norm(x, axis=1),
    xp.linalg.matrix_norm(x),
    xp.linalg.trace(x),
    xp.linalg.matrix_rank(x),
    xp.linalg.cross(x[:, :3], x[:, 2:]),
)
show(
    "f",
    xp.abs(xp.fft.fft(x)),
    xp.fft.fftfreq(5),
    xp.linspace(0, 1, 5),
    xp.arange(5),
    xp.eye(3),
    xp.tril(x),
    *xp.meshgrid(xp.arange(2), xp.arange(3)),
)
i = xp.__array_namespace_info__()
print(i.capabilities(), i.default_dtypes(), sorted(i.dtypes()), i.devices(), i.default_device())
print(
    xp.astype(x, xp.int32).dtype,
    xp.result_type(x, xp.int32),
    xp.can_cast(xp.int32, xp.float64),
    xp.isdtype(x.dtype, "real floating"),
    xp.finfo(xp.float32).eps,
    array_api_compat.device(x),
    array_api_compat.size(x),
    array_api_compat.to_device(x, "cpu").shape,
)
print(
    xp.from_dlpack(x).shape,
    xp.unstack(x)[0].shape,
    xp.searchsorted(xp.sort(x[0]), x[1]).tolist(),
    xp.bitwise_left_shift(xp.arange(3), 1).tolist(),
    xp.sign(x[0]).tolist(),
    xp.hypot(x, x).shape,
)
