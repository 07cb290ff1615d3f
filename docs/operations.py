"""Writes docs/operations.md: every operation, what it takes and where it runs. `make docs` runs it from the sources.

The rows are the public functions of norch, the methods that Tensor alone has, and those of nn.functional and linalg.
What computes nothing of tensors stands at the end, with its sentence alone.
The dtypes are found by asking: each operation that has a case in tests/cases.py is called with every dtype, and has a
derivative when backward() leads from its result to an input. It runs on CUDA when each function of the library that it
calls is of a family (csrc/ops/x.c) that has kernels there (csrc/cuda/x.cu), or needs none: of a HOST row of
csrc/families.def, whose operations are composed of others there.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tests")]

import cases  # noqa: E402, F401  (fills CASES)
import numpy as np  # noqa: E402
from case import CASES, draw, source  # noqa: E402
from differences import notes  # noqa: E402
from expressions import ARRAYS, EXPRESSIONS  # noqa: E402
from sections import SECTIONS, SETTINGS_TITLE, operations, section  # noqa: E402

import norch  # noqa: E402
from norch._binding.library import lib  # noqa: E402
from norch._package import left_out as _left_out  # noqa: E402
from norch.dtype import DTYPES  # noqa: E402
from norch.nn import functional  # noqa: E402

HEAD = """# Operations

Every operation: what it gives, on which dtypes, where it runs, and whether it has a derivative. On the site a name
leads to its signature, with an example.

- **dtypes**: those for which a trial call succeeded, out of {dtypes}.
  Fewer operations take [complex numbers](complex.md).
- **CUDA**: whether the operation runs on the GPU. "over the host": its input is copied to the CPU, computed by LAPACK,
  and copied back. All operations run on the CPU.
- **derivative**: whether gradients flow through it. Derivatives can be differentiated again.
- **also**: the method of Tensor, its in-place form, and `out=`.

`out=` takes tensors for the results, as in PyTorch. Tensors of another shape are resized, with a warning if they had
elements. The result must be castable to their dtype, and no tensor may require grad; they may overlap the inputs.
[The end of the page](#left-out) lists what PyTorch has beyond this, with the reason. `make docs` writes this page from
the code, and a test fails when it is out of date.
"""

# How a function of no tensor is called, to learn its dtypes, and by benchmarks/sweep.py: t is the module, d a
# dtype, n a length.
MADE = {
    name: f"t.{name}(n, n, dtype=d)"
    for name in ("empty", "ones", "zeros", "rand", "randn")
} | {
    f"{name}_window": f"t.{name}_window(n, dtype=d)"
    for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")
} | {
    f"{name}_like": f"t.{name}_like(t.zeros(n), dtype=d)"
    for name in ("empty", "ones", "zeros", "rand", "randn")
} | {
    "arange": "t.arange(n, dtype=d)",
    "eye": "t.eye(n, n, dtype=d)",
    "full": "t.full((n,), 1, dtype=d)",
    "full_like": "t.full_like(t.zeros(n), 1, dtype=d)",
    "linspace": "t.linspace(0, 1, n, dtype=d)",
    "logspace": "t.logspace(0, 1, n, dtype=d)",
    "tensor": "t.tensor([1] * n, dtype=d)",
    "as_tensor": "t.as_tensor([1] * n, dtype=d)",
    "asarray": "t.asarray([1] * n, dtype=d)",
    "scalar_tensor": "t.scalar_tensor(1, dtype=d)",
    "randint": "t.randint(0, 2, (n,), dtype=d)",
    "randint_like": "t.randint_like(t.ones(n), 2, dtype=d)",
    "randperm": "t.randperm(n, dtype=d)",
    "tril_indices": "t.tril_indices(2, n, dtype=d)",
    "triu_indices": "t.triu_indices(2, n, dtype=d)",
    "empty_strided": "t.empty_strided((n,), (1,), dtype=d)",
    "bernoulli": "t.bernoulli(t.ones(n, dtype=d))",
    "multinomial": "t.multinomial(t.ones(n, dtype=d), 1)",
}  # fmt: skip

# Calls of what has no case, beside those of expressions.py; the tensors are the same.
CALLS = """
F.adaptive_avg_pool1d(b, 2); F.adaptive_max_pool1d(b, 2); F.adaptive_max_pool1d_with_indices(b, 2); F.avg_pool1d(b, 2)
F.adaptive_max_pool2d(image, 2); F.adaptive_max_pool2d_with_indices(image, 2); F.max_pool1d(b, 2)
F.adaptive_max_pool3d_with_indices(volume, 2); F.max_pool1d_with_indices(b, 2); F.max_pool2d_with_indices(image, 2)
F.max_pool3d_with_indices(volume, 2); F.max_unpool1d(b, i * 0 + b.new_zeros(2, 4, 4).long(), 2)
F.fractional_max_pool2d(image, 2, 2); F.fractional_max_pool3d(volume, 2, 2); F.lp_pool1d(b, 2, 2)
F.lp_pool2d(image, 2, 2); F.lp_pool3d(volume, 2, 2); F.local_response_norm(image, 2)
F.affine_grid(b[:, :2, :3], (2, 1, 3, 3)); F.channel_shuffle(image, 2); F.pixel_shuffle(image, 2)
F.pixel_unshuffle(image, 2); F.fold(b, 3, 2); F.upsample(image, 8); F.upsample_bilinear(image, 8)
F.upsample_nearest(image, 8); F.embedding_bag(i[None], x); F.one_hot(x); F.gumbel_softmax(x)
F.ctc_loss(b, i.new_ones(4, 2), i.new_ones(4) * 2, i.new_ones(4) * 2); F.celu_(x.clone()); F.elu_(x.clone())
F.hardtanh_(x.clone()); F.leaky_relu_(x.clone()); F.relu_(x.clone()); F.rrelu_(x.clone()); F.selu_(x.clone())
F.threshold_(x.clone(), 0, 1); F.alpha_dropout(x); F.dropout1d(b); F.dropout2d(image); F.dropout3d(volume)
F.feature_alpha_dropout(image); F.multilabel_margin_loss(x, i.expand(4, 4)); t.threshold_(x.clone(), 0, 1)
F.triplet_margin_with_distance_loss(x, y, x); t.linalg.det(spd); t.linalg.eig(spd); t.linalg.householder_product(x, v)
t.linalg.lu(spd); t.linalg.lu_factor(spd); t.linalg.lu_factor_ex(spd); t.linalg.lu_solve(*t.linalg.lu_factor(spd), x)
t.linalg.matrix_exp(x); t.linalg.matrix_rank(x); t.linalg.pinv(x); t.linalg.slogdet(spd); t.linalg.solve_ex(spd, x)
t.linalg.solve_triangular(spd, x, upper=True); t.special.entr(p); t.special.gammainc(y, p); t.special.gammaincc(y, p)
t.special.multigammaln(p + 2, 2); t.special.ndtr(x); t.special.xlog1py(x, p); t.special.expit(x); t.special.gammaln(p)
t.allclose(x, y); t.equal(x, y); t.sgn(x); t.is_same_size(x, y); t.normal(x, p); t.poisson(p)
t.as_strided_scatter(x, v, (4,), (1,)); t.stft(v, 4, window=p[0], return_complex=True); t.is_floating_point(x)
t.istft(t.stft(x[0], 4, 1, window=p[0], return_complex=True), 4, 1, window=p[0]); t.is_signed(x); t.result_type(x, x)
x.byte(); x.char(); x.clone().cauchy_(); x.clone().exponential_(); x.expand_as(b); x.clone().fill_diagonal_(1)
x.clone().geometric_(0.5); x.clone().log_normal_(); x.clone().uniform_(); x.clone().zero_(); x.new_empty(2)
x.new_zeros(2); x.new_full((2,), 1); x.new_ones(2); x.new_tensor([1]); x.reshape_as(b[0]); x.sum_to_size(4, 1)
x.to(t.int64); x.type_as(y); x.view_as(y); x.tolist(); x.numpy(); t.from_numpy(x.detach().numpy()); t.angle(x)
t.complex(x, y); t.conj(x); t.conj_physical(x); t.imag(x); t.is_complex(x); t.real(x); t.view_as_real(x); t.geqrf(x)
t.lu_solve(x, *t.linalg.lu_factor(spd)); t.lu(spd); t.pca_lowrank(x, 2); t.svd_lowrank(x, 2); t.logdet(spd)
t.orgqr(x, v); t.ormqr(x, v, y); t.lobpcg(spd.new_ones(9).diag(), 1); t.lu_unpack(spd, i.int() + 1)
"""

NOTES = notes()
GROUPS = {
    "real": lambda d: d.kind != "c",
    "real but bool": lambda d: d.kind not in "bc",
    "floats": lambda d: d.kind == "f",
    "integers and bool": lambda d: d.kind in "iub",
    "integers": lambda d: d.kind in "iu",
    "floats and bool": lambda d: d.kind in "fb",
}


# ---- what an operation takes --------------------------------------------------------------------------------------


def accepts(call: Callable[[Any], Any]) -> list[Any]:
    """The dtypes with which a call does not raise."""
    found = []
    for dtype in DTYPES:
        try:
            call(dtype)
        except (norch.Error, TypeError, ValueError, OverflowError, ZeroDivisionError):
            continue
        found.append(dtype)
    return found


class Written:
    """A call in CALLS as a case; its inputs are the tensors that it names."""

    def __init__(self, text: str) -> None:
        self.text, self.names = text, [name for name in ARRAYS if re.search(rf"\b{name}\b", text)]

    def call(self, t: Any, *tensors: Any) -> Any:
        names = {"t": t, "F": t.nn.functional, "i": t.tensor([0, 1, 2, 3]), **dict(zip(self.names, tensors))}
        return eval(self.text, names)


WRITTEN = [Written(text) for text in [*re.split(r"[;\n] *", CALLS.strip()), *EXPRESSIONS]]


def inputs(case: Any, dtype: Any) -> list[Any]:
    """Tensors for a case: those that it draws, in a dtype."""
    if isinstance(case, Written):
        arrays = [norch.tensor(ARRAYS[name]) for name in case.names]
        return [(x.abs().ceil() if dtype.kind != "f" else x).to(dtype) for x in arrays]
    arrays = draw(case, case.shapes[0], "float64", source(case.name))
    fixed = [isinstance(domain, str) for domain in case.domains] + [isinstance(case.domains[-1], str)] * len(arrays)
    tensors = [norch.tensor(np.asarray(x)) for x in arrays]
    whole = dtype.kind != "f"
    return [x if keep else (x.abs().ceil() if whole else x).to(dtype) for x, keep in zip(tensors, fixed)]


def derivable(case: Any) -> bool:
    """Whether gradients flow from what comes out to the inputs."""
    for dtype in (norch.float64, norch.complex128):
        tensors = [x.requires_grad_() if x.dtype.kind in "fc" else x for x in inputs(case, dtype)]
        try:
            made = case.call(norch, *tensors)
        except norch.Error:
            continue
        made = [x for x in (made if isinstance(made, (tuple, list)) else [made]) if norch.is_tensor(x)]
        leaves = [x for x in tensors if x.requires_grad]
        return any(reaches(out, x) for out in made if out.requires_grad for x in leaves)
    return False


def reaches(out: Any, x: Any) -> bool:
    """Whether the derivative of out by x is implemented."""
    try:
        return norch.autograd.grad(out, x, norch.ones_like(out), retain_graph=True, allow_unused=True)[0] is not None
    except NotImplementedError:
        return False


ROOT = HERE.parent
# The family of each function of the library; None for those that run no kernel.
FAMILIES: dict[str, str | None] = {
    name: path.stem if any((ROOT / "csrc" / "cpu").glob(f"{path.stem}*.c")) else None
    for path in sorted((ROOT / "csrc").glob("*/*.c"))
    for name in re.findall(r"^[a-z].*?\b(norch_\w+)\(", path.read_text(), re.M)
}
CALLED = {id(function): name for name, function in vars(lib).items()}


def lacking(case: Any) -> set[str]:
    """The families that a case needs and CUDA has not, and "host" where LAPACK computes."""
    names, host = set(), set()

    def note(frame: Any, event: str, function: Any) -> None:
        if event == "c_call" and id(function) in CALLED:
            names.add(CALLED[id(function)])
        elif event == "call" and frame.f_code.co_filename.endswith("lapack.py"):
            host.add("host")

    for dtype in (norch.float32, norch.int64):
        sys.setprofile(note)
        try:
            case.call(norch, *inputs(case, dtype))
        except (norch.Error, TypeError, ValueError):
            pass
        finally:
            sys.setprofile(None)
    # A check asks the device for the elements; complex.c has views.
    composed = re.findall(r"^HOST\(\w+, (\w+)", (ROOT / "csrc" / "families.def").read_text(), re.M)
    families = {FAMILIES.get(name) for name in names} - {None, "check", "complex", *composed}
    return host | {family for family in families if family and not (ROOT / "csrc" / "cuda" / f"{family}.cu").exists()}


def named(dtypes: list[Any]) -> str:
    for name, holds in GROUPS.items():
        if dtypes == [d for d in DTYPES if holds(d)]:
            return name
        if dtypes == [d for d in DTYPES if holds(d) or d.is_complex]:
            return {"real": "all", "real but bool": "all but bool"}.get(name, f"{name}, complex")
    for name, holds in {"real": GROUPS["real"], "all": lambda d: True}.items():
        missing = [d.name for d in DTYPES if holds(d) and d not in dtypes]
        if len(missing) < 5 and all(map(holds, dtypes)):
            return f"{name} but {', '.join(missing)}"
    return ", ".join(d.name for d in dtypes)


def taken(prefix: str, name: str, function: Any) -> tuple[str, str, str]:
    """The dtypes of an operation, whether it runs on CUDA and has a derivative, "" where that is unknown."""
    if name in MADE:
        code = MADE[name]
        return named(accepts(lambda d: eval(code, {"t": norch, "d": d, "n": 2}))), "yes", "no"
    names = {name, function.__name__}
    known: list[Any] = [case for case in CASES if names & {case.row, case.name.split()[0].removeprefix("linalg.")}]
    for spelt in (prefix, "F.", "t.linalg.") if prefix == "t." else (prefix,):
        called = re.compile(rf"(?<![\w.]){re.escape(spelt)}(clone\(\)\.)?({'|'.join(map(re.escape, names))})\(")
        known += [case for case in WRITTEN if called.search(case.text)][: None if known else 1]
    if not known:
        return "", "", ""
    dtypes = {d for case in known for d in accepts(lambda d, case=case: case.call(norch, *inputs(case, d)))}
    missing = set().union(*map(lacking, known))
    cuda = "no" if missing - {"host"} else "over the host" if missing else "yes"
    return named([d for d in DTYPES if d in dtypes]), cuda, "yes" if any(map(derivable, known)) else "no"


# ---- the table ------------------------------------------------------------------------------------------------------


def about(function: Any) -> str:
    """The first sentence of a docstring, and where the function differs from PyTorch's."""
    _, anchor = NOTES.get(function, ("", ""))
    differs = f" [Differs from PyTorch](differences.md#{anchor})." if anchor else ""
    text = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[^.]\.)(?<! al\.) ", text)[0].replace("|", "\\|") + differs


def out_form(function: Any) -> list[str]:
    return ["`out=`"] if hasattr(function, "takes_out") else []


def table(prefix: str, spelt: str, functions: list[tuple[str, Any, list[str]]], others: list[str]) -> list[str]:
    """Rows of functions (name, itself, other forms), named with one prefix and spelt with another in CALLS; what no
    call is known of goes to the others."""
    head, rows = ["operation", "what it gives", "dtypes", "CUDA", "derivative", "also"], []
    for name, thing, forms in functions:
        cells = taken(spelt, name, thing)
        if any(cells):
            rows.append([f"`{prefix}{name}`", about(thing), *cells, ", ".join(forms)])
        else:
            others.append(f"| `{prefix}{name}` | {about(thing)} |")
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)] + [""]


def text() -> str:
    found: dict[str, list[tuple[str, Any, list[str]]]] = {title: [] for title in SECTIONS.values()}
    settings = []
    for name, function in operations(norch):
        if (title := section(function)) is None:
            settings.append(f"| `norch.{name}` | {about(function)} |")
            continue
        forms = [f"`x.{name}`"] if hasattr(norch.Tensor, name) else []
        forms += [f"`x.{name}_`"] if hasattr(norch.Tensor, name + "_") else []
        forms += out_form(function)
        found[title].append((name, function, forms))
    methods = [
        (name, getattr(norch.Tensor, name))
        for name in sorted(set(dir(norch.Tensor)))
        if name[0] != "_" and hasattr(norch.Tensor, name) and not hasattr(norch, name.removesuffix("_"))
    ]
    lines = [HEAD.format(dtypes=", ".join(f"`{d.name}`" for d in DTYPES))]
    for title, rows in found.items():
        lines += [f"## {title}", "", *table("norch.", "t.", rows, settings)] if rows else []
    rows = [(name, thing, []) for name, thing in methods if callable(thing)]
    lines += ["## Methods of Tensor alone", "", *table("x.", "x.", rows, settings)]
    attributes = [f"`{name}`" for name, thing in methods if not callable(thing)]
    lines += [textwrap.fill("Attributes: " + ", ".join(attributes) + ".", 120), ""]
    for title, module, prefix, spelt in (
        ("norch.linalg", norch.linalg, "linalg.", "t.linalg."),
        ("norch.special", norch.special, "special.", "t.special."),
        ("norch.nn.functional", functional, "functional.", "F."),
    ):
        rows = [
            (name, thing, out_form(thing))
            for name, thing in operations(module)
            if name in getattr(module, "__all__", [name])
        ]
        lines += [f"## {title}", "", *table(prefix, spelt, rows, settings)]
    lines += [f"## {SETTINGS_TITLE}", "", "| | |", "| --- | --- |", *sorted(settings), ""]
    lines += ["## Left out", "", "Names of PyTorch that norch has not, by reason (`norch/compat/left_out.txt`).", ""]
    for why, names in _left_out.table().items():
        lines += [f"**{why[0].upper()}{why[1:]}**", ""]
        for where, left in names.items():
            prefix = "nn.functional" if where == "functional" else where
            lines += [textwrap.fill(f"{prefix}: " + ", ".join(f"`{name}`" for name in left), 120), ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (HERE / "operations.md").write_text(text())
