"""norch.fft against PyTorch's: values, dtypes, shapes, gradients; NumPy's transforms where there is no SciPy."""

import builtins
import subprocess
import sys

import numpy as np
import pytest
from conftest import torch_or_skip

import norch
from norch.testing import gradcheck, gradgradcheck

torch = torch_or_skip()
rng = np.random.default_rng(0)
REAL = rng.standard_normal((4, 5, 6))
COMPLEX = REAL + 1j * rng.standard_normal((4, 5, 6))
FORMS = [name + suffix for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for suffix in ("", "2", "n")]


def options(name):
    if name[-1] == "t":
        return [{}, {"n": 4}, {"n": 9, "dim": 1}, {"dim": 0}]
    return [{}, {"s": (3, 7)}, {"dim": (0, 2)}, {"s": (6, -1), "dim": (1, 0)}]


def inputs(name):
    return [REAL] if name.startswith(("rfft", "ihfft")) else [REAL, COMPLEX]


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", FORMS)
def test_is_pytorchs(name, norm):
    for array in inputs(name):
        for wide in (True, False):
            x = array if wide else array.astype(np.complex64 if array.dtype.kind == "c" else np.float32)
            rtol = 1e-9 if wide else 2e-4
            for given in options(name):
                a, b = norch.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
                ours = getattr(norch.fft, name)(a, norm=norm, **given)
                theirs = getattr(torch.fft, name)(b, norm=norm, **given)
                assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
                np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().resolve_conj(), rtol, rtol)
                weight = rng.standard_normal(ours.shape) + (
                    1j * rng.standard_normal(ours.shape) if ours.is_complex() else 0
                )
                ours.backward(norch.tensor(weight))
                theirs.backward(torch.tensor(weight))
                np.testing.assert_allclose(a.grad.numpy(), b.grad.resolve_conj(), rtol, 10 * rtol)


@pytest.mark.parametrize("name", FORMS)
def test_derivatives(name):
    for array in inputs(name):
        x = norch.tensor(array[0, :2, :2].copy(), requires_grad=True)
        assert gradcheck(getattr(norch.fft, name), x) and gradgradcheck(getattr(norch.fft, name), x)


def test_there_and_back():
    x = norch.tensor(COMPLEX)
    assert norch.allclose(norch.fft.ifftn(norch.fft.fftn(x)), x)
    r = norch.tensor(REAL)
    assert norch.allclose(norch.fft.irfft(norch.fft.rfft(r, norm="ortho"), 6, norm="ortho"), r)
    assert norch.allclose(norch.fft.hfft(norch.fft.ihfft(r), 6), r)
    assert norch.fft.fft(norch.arange(4)).dtype is norch.complex64  # integers become floats
    assert norch.fft.rfft(norch.zeros(0, 4)).shape == (0, 3)


def test_frequencies():
    for n in (1, 2, 5, 8):
        np.testing.assert_allclose(norch.fft.fftfreq(n, 0.5, dtype=norch.float64), np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(norch.fft.rfftfreq(n, 3.0, dtype=norch.float64), np.fft.rfftfreq(n, 3.0))
        x = rng.standard_normal((n, 3))
        for dim in (None, 0, (0, 1)):
            np.testing.assert_array_equal(norch.fft.fftshift(norch.tensor(x), dim), np.fft.fftshift(x, dim))
            np.testing.assert_array_equal(norch.fft.ifftshift(norch.tensor(x), dim), np.fft.ifftshift(x, dim))


def test_bad_arguments():
    x = norch.ones(3, 4)
    for call, kind, message in (
        (lambda: norch.fft.fft(x, norm="up"), norch.ArgumentError, "fft: norm is"),
        (lambda: norch.fft.fft(x, 0), norch.ArgumentError, "fft: a transform of 0 numbers"),
        (lambda: norch.fft.irfft(x, -1), norch.ArgumentError, "irfft: a transform of -1 numbers"),
        (lambda: norch.fft.fft(x[:0], dim=0), norch.ArgumentError, "fft: a transform of 0 numbers"),
        (lambda: norch.fft.fft(x, dim=2), IndexError, "fft: dimension 2 is out of range"),
        (lambda: norch.fft.fft(x, dim=(0, 1)), TypeError, "fft: dim must be an integer"),
        (lambda: norch.fft.fftn(x, dim=(0, -2)), norch.ArgumentError, "fftn: a dimension appears twice"),
        (lambda: norch.fft.fft2(x, s=(2,)), norch.ArgumentError, "fft2: 1 sizes for 2 dimensions"),
        (lambda: norch.fft.irfft(x[:, :1]), norch.ArgumentError, "irfft: a transform of 0 numbers"),
        (lambda: norch.fft.rfft(x * 1j), norch.DTypeError, "rfft: complex64 is not supported"),
        (lambda: norch.fft.fft(x.half()), norch.DTypeError, "fft: float16 is not supported"),
        (lambda: norch.fft.fft(3), TypeError, "fft: expected a tensor, not int"),
        (lambda: norch.fft.fftfreq(0), norch.ArgumentError, "fftfreq: 0 numbers"),
    ):
        with pytest.raises(kind, match=message):
            call()


def test_without_scipy_numpys_are_used(monkeypatch):
    real_import = builtins.__import__

    def without(*names):
        def importing(name, *rest, **named):
            if name.startswith(names):
                raise ImportError(name)
            return real_import(name, *rest, **named)

        return importing

    x = norch.tensor(COMPLEX).to(norch.complex64)
    calls = norch.fft.fft2, norch.fft.irfft, norch.fft.irfft2, lambda x: norch.fft.rfftn(x.real, dim=(2, 0))
    expected = [call(x) for call in calls]
    monkeypatch.setattr(norch.fft, "_pocketfft", norch.fft._pocketfft.__wrapped__)  # which looks again at each call
    monkeypatch.setattr(builtins, "__import__", without("scipy"))
    for a, b in zip([call(x) for call in calls], expected, strict=True):
        assert a.dtype is b.dtype and norch.allclose(a, b, rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(builtins, "__import__", without("scipy", "numpy.fft"))
    with pytest.raises(ImportError, match=r"norch\.fft needs SciPy or NumPy"):
        norch.fft.fft(x)


@pytest.mark.parametrize("name", ["fft", "ifft", "fft2", "ifftn"])
def test_real_numbers_have_the_transform_of_complex_ones(name):
    x = norch.tensor(COMPLEX.real, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    found, wanted = (getattr(norch.fft, name)(z, norm="ortho") for z in (x, y.to(norch.complex128)))
    assert found.dtype is norch.complex128 and norch.allclose(found, wanted)
    for z in (found, wanted):
        (z * norch.tensor(COMPLEX)).real.sum().backward()
    assert x.grad.dtype is norch.float64 and norch.allclose(x.grad, y.grad)


def test_public_functions_are_called_where_scipy_lacks_the_inner_ones(monkeypatch):
    x = norch.tensor(COMPLEX).to(norch.complex64)
    calls = [norch.fft.fft2, norch.fft.irfftn, lambda x: norch.fft.rfft(x.real), lambda x: norch.fft.ihfft2(x.real)]
    expected = [call(x) for call in calls]
    import scipy.fft

    monkeypatch.setattr(norch.fft, "_pocketfft", lambda: norch.fft._by_functions(scipy.fft))
    for call, wanted in zip(calls, expected):
        found = call(x)
        assert found.dtype is wanted.dtype and norch.allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [norch.float32, norch.complex64], ids=str)
def test_no_dimensions_give_a_copy(dtype):
    x = norch.ones(2, 3, dtype=dtype)
    found = norch.fft.fftn(x, dim=())
    assert found.dtype is norch.complex64
    found.mul_(2)
    assert x.equal(norch.ones(2, 3, dtype=dtype))


def test_the_first_complex_numbers_of_a_process_have_gradients():
    """Walks conjugate gradients once there has been a complex tensor: that of an array of NumPy counts too."""
    program = """if True:
        import norch
        x = norch.arange(16.0).view(4, 4).sin().requires_grad_()
        out = (norch.fft.rfft2(x).imag.sum(1) * norch.arange(4.0)).sum()
        first, second = (norch.autograd.grad(out, x, retain_graph=True)[0] for _ in range(2))
        later = norch.autograd.grad((norch.fft.rfft2(x).imag.sum(1) * norch.arange(4.0)).sum(), x)[0]
        assert norch.equal(first, later), (first, later)
    """
    subprocess.run([sys.executable, "-c", program], check=True)
