"""Complex numbers on a CUDA device: what moves, adds up and multiplies matrices works; the elementwise rows refuse."""

import numpy as np
import pytest

import norch
from norch import cuda

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")
rng = np.random.default_rng(0)
ARRAY = rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))

WORKING = {
    "transpose": lambda x: x.T.contiguous(),
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(1, keepdim=True),
    "var": lambda x: x.var(0),
    "norm": lambda x: x.norm(),
    "matmul": lambda x: x @ x.T,
    "vector": lambda x: x @ x[0],
    "index": lambda x: x[norch.tensor([2, 0], device=x.device)],
    "gather": lambda x: x.gather(1, norch.tensor([[0, 1]] * 3, device=x.device)),
    "mask": lambda x: x[x.real > 0],
    "cat": lambda x: norch.cat((x, x), 1),
    "flip": lambda x: x.flip(0),
    "pad": lambda x: norch.nn.functional.pad(x, (1, 1)),
    "parts": lambda x: x.real + x.imag,
    "cast": lambda x: x.to(norch.complex64),
    "fill": lambda x: x.clone().fill_(2 - 1j),
    "from real": lambda x: norch.zeros(3, 4, dtype=x.dtype, device=x.device).copy_(x.real),
    "full": lambda x: norch.full((2,), 3, dtype=x.dtype, device=x.device),
    "fft": lambda x: norch.fft.fft(x),
    "inv": lambda x: norch.linalg.inv(x[:, :3]),
}


@pytest.mark.parametrize("name", WORKING)
def test_works_as_on_the_cpu(name):
    way, x = WORKING[name], norch.tensor(ARRAY, device="cpu")
    found = way(x.cuda())
    assert found.is_cuda
    np.testing.assert_allclose(found.cpu().numpy(), way(x).numpy(), 1e-6, 1e-7)


def test_numbers_come_back():
    x = norch.tensor(ARRAY, device="cuda")
    assert x[1, 2].item() == ARRAY[1, 2] and x.tolist() == ARRAY.tolist()
    assert norch.randn(5, dtype=norch.complex64, device="cuda").shape == (5,)


@pytest.mark.parametrize("name", ["add", "mul", "abs", "exp"])
def test_elementwise_rows_refuse_by_name(name):
    x = norch.ones(2, dtype=norch.complex64, device="cuda")
    with pytest.raises(norch.DTypeError, match=f"^{name}: no cuda:0 kernel for dtype complex64"):
        getattr(norch, name)(*[x] * (2 if name in ("add", "mul") else 1))
