"""The signatures of norch's functions, methods and classes against PyTorch's, name by name: names, positions, defaults.
What differs stands in torch_signatures_left.txt with a reason."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import norch

torch = pytest.importorskip("torch", "2.13")
import torch_signatures  # noqa: E402  (needs PyTorch)

LEFT = Path(__file__).with_name("torch_signatures_left.txt")


def listed():
    lines = LEFT.read_text().splitlines()
    return dict(line.split(" | ") for line in lines if line and line[0] not in "#[")


@pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="the list is of PyTorch 2.13")
def test_signatures_are_those_of_torch():
    """What the list lacks is to be mended, or to be listed with a reason; what it has too much is mended."""
    found = {name: "; ".join(said) for name, said in torch_signatures.all_differences().items()}
    expected = listed()
    assert not {name: said for name, said in found.items() if expected.get(name) != said}
    assert not expected.keys() - found.keys()


def test_the_list_is_read():
    assert len(listed()) > 50
    assert torch_signatures.signatures("linalg", "det")[0].parameters.keys() == {"A"}
    assert [p.name for p in torch_signatures.signatures("", "addcmul")[-1].parameters.values()][:1] == ["input"]


# Each form of functions with several: f is the library, x a float tensor (2, 4), i an integer tensor (2, 1).
FORMS = [
    "f.max(x)", "f.max(x, 1)", "f.max(x, x + 1)", "f.max(x, other=x)", "f.max(input=x, dim=0, keepdim=True)",
    "x.max(x)",
    "f.min(x, x + 1)", "f.min(x, 0)", "f.arange(3)", "f.arange(1, 3)", "f.arange(1, 5, 2)", "f.arange(end=3)",
    "f.arange(start=1, end=3)", "f.repeat_interleave(i.flatten())", "f.repeat_interleave(x, 2, 0)",
    "f.repeat_interleave(repeats=i.flatten())", "f.result_type(x, 1)", "f.result_type(1, x)", "f.result_type(1, 2.0)",
    "f.result_type(tensor=x, other=x)", "f.result_type(scalar=1, tensor=x)", "f.result_type(scalar1=1, scalar2=2)",
    "f.scatter(x, 1, i, 5.0)", "f.scatter(x, 1, i, value=5.0)", "f.scatter(x, 1, i, x)", "f.scatter(x, 1, i, src=x)",
    "x.scatter(1, i, 5.0, reduce='add')", "f.hsplit(x, 2)", "f.hsplit(x, [1])", "f.vsplit(x, 2)",
    "f.tensor_split(x, 3, 1)",
    "f.tensor_split(x, [1, 2], 1)", "f.std(x)", "f.std(x, False)", "f.std(x, 1)", "f.std(x, 1, False)",
    "f.std(x, unbiased=False)", "f.std(x, dim=1, correction=2)", "f.var(x, False)", "f.var(x, (0, 1), True, True)",
    "f.std_mean(x, False)", "f.var_mean(x, 1, keepdim=True)", "f.isin(x, x)", "f.isin(elements=x, test_elements=x)",
    "f.linspace(0, 1, 3)", "f.logspace(0, 1, steps=3)", "x.split(2, 1)", "x.split(split_size=1)", "f.split(x, [1, 1])",
    "f.trapezoid(x)", "f.trapezoid(x, dx=2.0)", "f.trapezoid(x, x)", "f.gradient(x)",
    "f.gradient(x, spacing=2.0, dim=1)",
    "f.histogram(x)", "f.nan_to_num(x, None)", "f.roll(x, 1)", "f.roll(x, 1, 0)", "f.det(input=x[:, :2])",
    "f.inverse(input=x[:, :2])", "f.slogdet(input=x[:, :2])", "f.matrix_exp(input=x[:, :2])", "f.geqrf(input=x)",
    "f.cholesky_solve(input=x[:, :2], input2=f.eye(2))", "f.orgqr(input=f.eye(2), input2=f.ones(2))",
    "f.triangular_solve(input=x, A=f.eye(2))", "x.clone().swapdims_(dim0=0, dim1=1)", "x.clone().copy_(other=x)",
    "f.linalg.pinv(x, 1e-3)", "f.linalg.pinv(x, rcond=0.9)", "f.linalg.pinv(input=x @ x.T, rcond=0.1, hermitian=True)",
    "f.linalg.matrix_rank(x @ x.T, 1e-3, True)", "f.linalg.cholesky(input=x @ x.T)", "f.linalg.eigh(input=x @ x.T)[0]",
    "f.linalg.lstsq(input=x.T, b=x.T)[0]", "f.linalg.solve_triangular(input=x[:, 1:3], B=x, upper=True)",
    "f.linalg.tensorsolve(x[:, :2], other=x[:, 0])", "f.linalg.matrix_exp(input=x[:, :2])",
    "f.hardshrink(x, 1.5, out=f.empty(0))", "f.slice_scatter(x, x[:1] + 1, 0, 0, 1, out=f.empty(0))",
    "f.dropout(x, 0.0, True)", "f.linalg.svd(x, False)[1]", "f.linalg.qr(x, 'r')", "f.linalg.vector_norm(x, 2)",
    "f.zeros(2, layout=f.strided, pin_memory=False)", "f.full((2,), 1.0, layout=None)", "f.eye(2, layout=f.strided)",
    "f.tril_indices(2, 2, requires_grad=False, layout=f.strided)", "f.hann_window(4, layout=f.strided)",
    "f.empty_like(x, layout=f.strided).shape", "f.ones_like(x, layout=f.strided, pin_memory=False)",
]  # fmt: skip


def plain(x):
    if isinstance(x, norch.Tensor | torch.Tensor):
        return np.asarray(x.detach().numpy(), dtype=np.float64)
    return str(x).rpartition(".")[2] if isinstance(x, norch.dtype | torch.dtype) else x


def parts(x):
    return list(x) if isinstance(x, list | tuple) and not isinstance(x, norch.Size | torch.Size) else [x]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_taken(form):
    results = []
    for f in (norch, torch):
        names = {"f": f, "x": f.tensor([[1.0, 2.0, 0.5, 3.0], [4.0, 2.5, 1.0, 0.0]]), "i": f.tensor([[1], [2]])}
        results.append(parts(eval(form, names)))
    assert len(results[0]) == len(results[1])
    for a, b in zip(*results, strict=True):
        if isinstance(b, torch.Tensor):
            assert plain(a).shape == plain(b).shape
            np.testing.assert_allclose(plain(a), plain(b), rtol=1e-5, atol=1e-6)
        else:
            assert tuple(plain(a)) == tuple(plain(b)) if isinstance(b, torch.Size) else plain(a) == plain(b)


MAKERS = [
    "f.zeros(2, {})", "f.empty(2, {})", "f.full((2,), 1, {})", "f.rand(2, {})", "f.randn_like(x, {})",
    "f.arange(3, {})",
    "f.linspace(0, 1, 3, {})", "f.eye(2, {})", "f.randint(3, (2,), {})", "f.randperm(3, {})",
    "f.triu_indices(2, 2, {})",
    "f.hann_window(3, {})", "f.fft.fftfreq(3, {})", "x.new_zeros(2, {})", "f.scalar_tensor(1, {})",
    "f.normal(0, 1, (2,), {})",
]  # fmt: skip


@pytest.mark.parametrize("maker", MAKERS)
def test_makers_refuse_other_layouts(maker):
    names = {"f": norch, "x": norch.ones(2)}
    assert eval(maker.format("pin_memory=True, layout=f.strided"), names).ndim < 3
    with pytest.raises(NotImplementedError, match="sparse_coo: norch has strided tensors alone"):
        eval(maker.format("layout=f.sparse_coo"), names)


def test_pickle_arguments(tmp_path):
    norch.save({"a": norch.ones(2)}, tmp_path / "a.pt", pickle, 4)
    assert norch.load(tmp_path / "a.pt", "cpu", pickle, encoding="latin1")["a"].tolist() == [1, 1]
    for call in (
        lambda: norch.load(tmp_path / "a.pt", pickle_module=np),
        lambda: norch.save(1, tmp_path / "b.pt", pickle_module=np),
        lambda: norch.save(1, tmp_path / "b.pt", _use_new_zipfile_serialization=False),
    ):
        with pytest.raises(NotImplementedError, match="pickle_module=numpy|before PyTorch 1.6 are read, not written"):
            call()
    with pytest.raises(TypeError, match="there is no argument endoding"):
        norch.load(tmp_path / "a.pt", endoding="ascii")
