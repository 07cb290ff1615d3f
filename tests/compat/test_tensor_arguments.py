"""Tensors of one element where a function takes an integer: PyTorch accepts them, in lists of integers too."""

import pytest

import norch
import norch.nn.functional as F

pytestmark = pytest.mark.host

X = norch.arange(24.0).reshape(2, 3, 4)
ROW = X[0, 0]
INDICES = norch.tensor([0, 1])

CALLS = {
    "argmax": lambda n: X.argmax(n(1)),
    "as_strided": lambda n: X.as_strided((n(2), n(2)), (n(1), n(1)), n(1)),
    "bincount": lambda n: norch.bincount(INDICES, minlength=n(5)),
    "cat": lambda n: norch.cat([X, X], n(1)),
    "chunk": lambda n: X.chunk(n(2))[0],
    "combinations": lambda n: norch.combinations(ROW, n(2)),
    "conv1d": lambda n: F.conv1d(X, norch.ones(1, 3, 2), stride=n(2), padding=n(1)),
    "cumsum": lambda n: X.cumsum(n(1)),
    "diag": lambda n: norch.diag(ROW, n(1)),
    "diff": lambda n: X.diff(n(1)),
    "expand": lambda n: X[:1].expand(n(2), -1, -1),
    "eye": lambda n: norch.eye(n(3)),
    "fft along an axis": lambda n: norch.fft.fft(X, dim=n(1)).real,
    "fft of a size": lambda n: norch.fft.fft(X, n(4)).real,
    "fftn": lambda n: norch.fft.fftn(X, dim=(n(0), n(1))).real,
    "fftshift": lambda n: norch.fft.fftshift(X, n(1)),
    "flatten": lambda n: X.flatten(n(1)),
    "flip": lambda n: X.flip(n(1)),
    "gather": lambda n: X.gather(n(1), norch.zeros(2, 1, 4, dtype=norch.int64)),
    "group_norm": lambda n: F.group_norm(X, n(3)),
    "histc": lambda n: norch.histc(X, n(4), n(0), n(23)),
    "interpolate": lambda n: F.interpolate(X, size=n(8)),
    "kthvalue": lambda n: X.kthvalue(n(2)).values,
    "layer_norm": lambda n: F.layer_norm(X, (n(4),)),
    "matrix_power": lambda n: norch.matrix_power(X[:, :, :3], n(2)),
    "max_pool1d": lambda n: F.max_pool1d(X, n(2)),
    "movedim": lambda n: X.movedim(n(0), n(1)),
    "mvlgamma": lambda n: norch.mvlgamma(X + 5, n(2)),
    "narrow": lambda n: X.narrow(n(1), n(0), n(2)),
    "one_hot": lambda n: F.one_hot(INDICES, n(3)),
    "pad": lambda n: F.pad(X, (n(1), n(1))),
    "permute": lambda n: X.permute(n(2), 0, 1),
    "pixel_shuffle": lambda n: F.pixel_shuffle(norch.ones(1, 4, 2, 2), n(2)),
    "polygamma": lambda n: norch.polygamma(n(1), X + 1),
    "polygamma as a method": lambda n: (X + 1).polygamma(n(1)),
    "repeat": lambda n: X.repeat(n(2), 1, 1),
    "repeat_interleave": lambda n: X.repeat_interleave(n(2), dim=n(1)),
    "reshape": lambda n: X.reshape(n(6), n(4)),
    "roll": lambda n: X.roll(n(1), n(1)),
    "roll of a row": lambda n: X.roll(n(1)),
    "roll along several": lambda n: X.roll((n(1), n(2)), (n(0), n(1))),
    "rot90": lambda n: X.rot90(n(1)),
    "round": lambda n: (X / 7).round(decimals=n(1)),
    "select": lambda n: X.select(n(1), n(2)),
    "softmax": lambda n: X.softmax(n(1)),
    "sort": lambda n: X.sort(n(1)).values,
    "split": lambda n: X.split([n(1), n(2)], n(1))[1],
    "squeeze": lambda n: X[:1].squeeze(n(0)),
    "stack": lambda n: norch.stack([X, X], n(1)),
    "sum": lambda n: X.sum((n(0), n(1))),
    "tensordot": lambda n: norch.tensordot(X, X, n(3)),
    "tile": lambda n: X.tile(n(2)),
    "topk": lambda n: X.topk(n(2)).values,
    "transpose": lambda n: X.transpose(n(0), n(1)),
    "tril": lambda n: X.tril(n(1)),
    "unbind": lambda n: X.unbind(n(1))[0],
    "unflatten": lambda n: X.unflatten(n(2), (n(2), n(2))),
    "unfold": lambda n: X.unfold(n(2), n(2), n(1)),
    "unsqueeze": lambda n: X.unsqueeze(n(1)),
    "vander": lambda n: norch.vander(ROW, n(3)),
    "var": lambda n: X.var(n(1), correction=n(1)),
    "view": lambda n: X.view((n(6), -1)),
    "zeros": lambda n: norch.zeros(n(3), n(2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_tensor_of_one_integer_is_that_integer(name):
    by_tensor, by_number = CALLS[name](norch.tensor), CALLS[name](int)
    assert by_tensor.dtype == by_number.dtype and by_tensor.tolist() == by_number.tolist()


@pytest.mark.parametrize("call", [lambda n: X.movedim(n, 0), lambda n: X.roll(1, n), lambda n: norch.fft.fft(X, dim=n)])
def test_a_fraction_is_no_integer(call):
    with pytest.raises(TypeError, match="integer"):
        call(norch.tensor(0.5))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_fourier_transforms_take_axis(name):
    """NumPy's name of dim, with which programs for both libraries call them."""
    one, many = getattr(norch.fft, name), getattr(norch.fft, name + "n")
    assert one(X, axis=1).equal(one(X, dim=1)) and many(X, axis=(0, 1)).equal(many(X, dim=(0, 1)))


def test_squeeze_and_unsqueeze_take_axis():
    x = norch.zeros(2, 1, 3, 1)
    assert x.squeeze(axis=1).shape == norch.squeeze(x, axis=1).shape == (2, 3, 1)
    assert x.squeeze(axis=(1, 3)).shape == (2, 3)
    assert x.unsqueeze(axis=0).shape == norch.unsqueeze(x, axis=0).shape == (1, 2, 1, 3, 1)
    with pytest.raises(TypeError, match="unsqueeze: expected an integer"):
        x.unsqueeze()


@pytest.mark.parametrize(
    "call",
    [
        lambda: X.sum(axis=0, dim=1),
        lambda: norch.sum(X, 0, axis=1),
        lambda: norch.fft.fft(X, dim=0, axis=1),
        lambda: X.squeeze(0, axis=1),
        lambda: X.unsqueeze(0, axis=0),
        lambda: norch.gather(X, 1, axis=0, index=INDICES),
    ],
)
def test_dim_and_axis_together_are_refused(call):
    with pytest.raises(TypeError):
        call()
