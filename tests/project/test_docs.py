"""What the documentation says is so: the table of operations is up to date, and the examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import subprocess
import sys
import traceback
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

import norch
from norch.ops._deferred import DeferredMethod

pytestmark = pytest.mark.host  # what is printed names no device

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
DOCS = Path(__file__).resolve().parents[2] / "docs"
ELSEWHERE = "norch.cuda", "norch.distributed"  # tests of these run their examples, on a device and in a process group
MODULES = ["norch"] + [m.name for m in pkgutil.walk_packages(norch.__path__, "norch.") if "libnorch" not in m.name]


@pytest.mark.filterwarnings("ignore")
def _script(script: str) -> Any:
    """A script of docs/, as a module."""
    if not DOCS.exists():
        pytest.skip("the docs are not here")
    spec = importlib.util.spec_from_file_location(script, DOCS / f"{script}.py")
    assert spec is not None and spec.loader is not None
    made: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_table_of_operations_is_up_to_date() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = _script("operations").text()
    assert text == (DOCS / "operations.md").read_text(), "docs/operations.md is old: run make docs"


def test_the_table_of_operations_says_all_of_each() -> None:
    """No empty cell but of other forms, and no sentence cut short."""
    text = (DOCS / "operations.md").read_text().partition("## Left out")[0]
    rows = [re.split(r"(?<!\\)\|", line[1:-1]) for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) > 650 and sum(row[0].startswith(" `functional.") for row in rows) > 120
    for name, *cells in rows:
        assert all(cell.strip() for cell in cells[:4]), name
        said = re.sub(r"[\[(][^][()]*, [^][()]*[])]", "", cells[0].strip())  # half-open intervals
        assert said.endswith((".", ":")) and said.count("(") == said.count(")") and said.count("`") % 2 == 0, name
    operations, _, settings = text.partition("## Settings and questions")
    names = set(re.findall(r"^\| `norch\.(\w+)`", settings, re.M))
    assert names and not names & set(re.findall(r"^\| `(?:functional|linalg|special)\.(\w+)`", operations, re.M))
    assert not [name for name in names if hasattr(getattr(norch, name), "takes_out")]


def test_what_differs_is_marked_in_the_reference_and_in_the_table() -> None:
    conf = _script("conf")
    table = (DOCS / "operations.md").read_text()
    modules = re.findall(r"^   (norch\.[\w.]+)$", (DOCS / "reference" / "index.md").read_text(), re.M)
    pages = {id(thing) for name in modules for thing in vars(importlib.import_module(name)).values()}
    notes = conf.notes()
    assert len(notes) > 20 and {norch.nn.CTCLoss, norch.clone, norch.load} <= notes.keys()
    for thing, (said, anchor) in notes.items():
        lines = ["What it does."]
        conf._plain(None, "function", thing.__name__, thing, None, lines)
        assert lines[0] == "What it does." and lines[2] == f"Differs from PyTorch: {said}" and thing.__name__ in said
        row = re.search(
            rf"^\| `\w+\.{thing.__name__}` \|.* \[Differs from PyTorch\]\(differences.md#{anchor}\)", table, re.M
        )
        assert row or id(thing) in pages, f"{thing.__name__} has neither a row nor a page"
    lines = ["What it does: `a_b`, ``with c_d:``, e_f."]
    conf._plain(None, "function", "exp", norch.exp, None, lines)
    assert lines == ["What it does: `a_b`, ``with c_d:``, e\\_f."]


def test_each_class_of_a_long_page_has_a_heading() -> None:
    for page, headings in _script("conf").families().items():
        listed = sorted(name for names in headings.values() for name in names)
        module = importlib.import_module(page)
        assert listed == sorted(name for name in module.__all__ if isinstance(getattr(module, name), type))
        assert all(headings.values())


def test_each_function_of_norch_has_an_entry_with_types() -> None:
    """In the page of norch in the reference, under one heading; what returns a tensor says so."""
    sections = _script("sections")
    listed = [name for names in sections.sections(norch).values() for name in names]
    assert sorted(listed) == sorted(name for name, _ in sections.operations(norch)) and len(listed) > 400
    assert {"arange", "capture", "cat", "einsum", "randint", "set_num_threads"} <= set(listed)
    listed += [*sections.classes(norch), *norch.errors.__dict__, "Tensor"]  # those two have pages of their own
    assert not [name for name in norch.__all__ if callable(getattr(norch, name)) and name not in listed]
    assert re.search(r"^   norch$", (DOCS / "reference" / "index.md").read_text(), re.M)
    pytest.importorskip("sphinx")
    reference = _script("sphinx_reference")
    untyped = [
        f"{module.__name__}.{name}"
        for module in (norch, norch.nn.functional, norch.linalg, norch.special)
        for name, function in sections.operations(module)
        if name in getattr(module, "__all__", [name])
        and reference.hints(f"{module.__name__}.{name}", function).get("return", "Any") == "Any"
    ]
    open_types = "atleast_1d atleast_2d atleast_3d compile get_num_threads load set_num_threads to_dlpack"
    pools = "nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d"
    assert set(untyped) <= {f"norch.{name}" for name in f"{open_types} {pools}".split()}
    assert reference.returns()["norch.nn.functional.max_pool1d"] == "Tensor | tuple[Tensor, Tensor]"
    sources = {name: reference.source(function) for name, function in sections.operations(norch)}
    assert sources["exp"] == "norch/ops/pointwise.py" and sources["capture"] == "norch/program/captured.py"
    assert reference.source(norch.nn.Linear) == "norch/nn/linear.py"
    assert not [name for name, path in sources.items() if path is None]
    for name in ("exp", "sum", "add_", "reshape"):
        assert reference.hints(f"norch.Tensor.{name}", getattr(norch.Tensor, name))["return"] in ("Tensor", "Self")


def test_options_that_are_not_there_say_so() -> None:
    x = norch.ones(1, requires_grad=True)
    names = {"norch": norch, "nn": norch.nn, "optim": norch.optim, "x": x, "images": norch.ones(1, 1, 4, 4)}
    names["places"] = norch.zeros(1, 2, 2, 2)
    section = (DOCS / "differences.md").read_text().partition("## Options that are not there")[2].partition("\n## ")[0]
    calls = re.findall(r"\| `((?:nn|optim|norch)\.[^`]*)`", section)
    assert len(calls) == 3
    for call in calls:
        with pytest.raises(NotImplementedError):
            eval(call, names)


@pytest.mark.parametrize("name", [name for name in MODULES if not name.startswith(ELSEWHERE)])
def test_examples_in_docstrings(name: str) -> None:
    default = norch.get_default_dtype()
    found = doctest.testmod(
        importlib.import_module(name),
        extraglobs={"norch": norch},
        optionflags=FLAGS,
    )
    norch.set_default_dtype(default)
    assert not found.failed, f"{found.failed} examples of {name} give something else"


# Public names with no example: what they do is seen in another process or device alone, or has one line to say.
WITHOUT_EXAMPLE = set(
    """
    Tensor.is_ipu Tensor.is_maia Tensor.is_mkldnn Tensor.is_mps Tensor.is_mtia Tensor.is_nested Tensor.is_quantized
    Tensor.is_sparse Tensor.is_sparse_csr Tensor.is_vulkan Tensor.is_xla Tensor.is_xpu Tensor.ndim Tensor.device
    Tensor.dtype Tensor.shape Tensor.pin_memory Tensor.record_stream nn.RNNBase nn.RNNCellBase
    optim.lr_scheduler.LRScheduler distributions.Distribution distributions.ExponentialFamily cuda.OutOfMemoryError
    """.split()
)
ROOMS = "norch nn.functional nn.init compiler linalg fft special Tensor"
ROOMS_OF_CLASSES = (
    "nn nn.utils nn.utils.parametrize nn.utils.prune optim optim.lr_scheduler optim.swa_utils utils.data distributions"
    " cuda distributed"
)  # and functions


def _documented(room: str) -> dict[str, str]:
    """The docstrings of the public functions (and classes) of a module, or of the methods and properties of Tensor, by
    name."""
    of: Any = norch
    for part in room.split(".") if room != "norch" else ():
        of = getattr(of, part)
    found = {}
    for name in dir(of):
        if name[0] == "_" or not hasattr(of, name):
            continue
        thing = inspect.getattr_static(of, name) if room == "Tensor" else getattr(of, name)
        thing = thing.function() if isinstance(thing, DeferredMethod) else thing
        thing = getattr(of, name) if type(thing).__name__ == "Method" else thing  # a row, which C calls
        elsewhere = getattr(thing, "__module__", "") == "norch.overrides"
        if isinstance(thing, type) and room in ROOMS_OF_CLASSES.split() and name in of.__all__:
            found[name] = vars(thing).get("__doc__") or ""
        elif isinstance(thing, (type, types.ModuleType)) or elsewhere:
            continue
        elif callable(thing) or inspect.isdatadescriptor(thing):
            found[name] = inspect.getdoc(thing) or ""
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("room", f"{ROOMS} {ROOMS_OF_CLASSES}".split())
def test_each_public_function_has_an_example_that_runs(room: str) -> None:
    """Those too that another function has made, which doctest does not look for. In-place forms and methods may leave
    it to the function of that name."""
    docs, functions = _documented(room), _documented("norch")
    without = {name for name, text in docs.items() if ">>>" not in text and name[-1] != "_"}
    without -= {name for name in without if room == "Tensor" and ">>>" in functions.get(name, "")}
    assert len(docs) > 5 and {f"{room}.{name}" for name in without} <= WITHOUT_EXAMPLE
    if f"norch.{room}" in ELSEWHERE:
        return
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=FLAGS)
    default = norch.get_default_dtype()
    for text, name in {text: name for name, text in docs.items() if ">>>" in text}.items():
        runner.run(parser.get_doctest(text, {"norch": norch}, f"{room}.{name}", None, None))
    norch.set_default_dtype(default)
    assert runner.tries > len(docs) / 3 and not runner.failures


# What a paper introduced, by the name of the function; the class of it has the same name without underscores.
FROM_A_PAPER = """
    relu relu6 leaky_relu prelu rrelu elu celu selu gelu silu mish hardswish glu softplus dropout1d alpha_dropout
    batch_norm layer_norm group_norm rms_norm instance_norm local_response_norm scaled_dot_product_attention
    gumbel_softmax ctc_loss kl_div_loss gaussian_nll_loss smooth_l1_loss huber_loss triplet_margin_loss
    pixel_shuffle channel_shuffle fractional_max_pool2d max_unpool2d lstm gru lstm_cell gru_cell rnn_cell
    adaptive_log_softmax_with_loss multihead_attention transformer_encoder transformer_decoder
    adadelta adagrad adafactor adam adamax adamw asgd lbfgs nadam radam rprop sgd
""".split()


def test_what_a_paper_introduced_names_it() -> None:
    functional, found = norch.nn.functional, 0
    classes = {name.lower(): getattr(room, name) for room in (norch.nn, norch.optim) for name in room.__all__}
    for name in FROM_A_PAPER:
        things = [getattr(functional, name, None), classes.get(name.replace("_", "")), classes.get(f"{name}1d")]
        for thing in filter(callable, things):
            found += 1
            assert re.search(r"(?:[A-Z][a-z]+|al\.),? \(?(?:19|20)\d\d", " ".join((thing.__doc__ or "").split())), thing
    assert found > len(FROM_A_PAPER)


def test_what_lapack_computes_names_the_routine() -> None:
    factors = "cholesky eig eigh householder_product lu lu_factor qr svd"
    for name in f"{factors} det inv lstsq lu_solve slogdet solve solve_triangular".split():
        assert re.search(r"(LAPACK|BLAS)'s \w+", getattr(norch.linalg, name).__doc__ or ""), name


@pytest.mark.parametrize("module", ["nn", "optim", "optim.lr_scheduler", "optim.swa_utils"])
def test_each_parameter_of_a_class_is_described(module: str) -> None:
    """By its docstring, by those of the classes and functions that it names, or by those of its public bases."""
    of = importlib.import_module(f"norch.{module}")
    packages = norch.nn, norch.optim, norch.optim.lr_scheduler
    known: Any = {name: getattr(one, name) for one in packages for name in one.__all__}  # some are loaded on demand

    def words(thing: Any, seen: set[Any]) -> set[str]:
        seen.add(thing)
        found = set(re.findall(r"\w+", (thing.__doc__ or "").partition(">>>")[0]))
        names = set(re.findall(r"functional\.(\w+)", thing.__doc__ or ""))
        others = {known.get(name) for name in found} | {getattr(norch.nn.functional, name, None) for name in names}
        others |= {base for base in getattr(thing, "__mro__", ()) if known.get(base.__name__) is base}
        for other in others - seen:
            if callable(other):
                found |= words(other, seen)
        return found

    classes = {name: thing for name in of.__all__ if isinstance(thing := getattr(of, name), type)}
    assert classes
    for name, thing in classes.items():
        parameters = set(inspect.signature(thing).parameters) - {"params", "args", "kwargs", "_random_samples"}
        assert not parameters - words(thing, set()), name


@pytest.mark.parametrize(("page", "count"), [("cuda_inside.md", 7), ("backward.md", 4)])
def test_what_a_page_quotes_is_in_the_files(page: str, count: int) -> None:
    quotes = re.findall(r"^`([\w/.]+)`:\n\n```\w+\n(.*?)```", (DOCS / page).read_text(), re.M | re.S)
    assert len(quotes) >= count
    for path, lines in quotes:
        there = {line.strip() for line in (DOCS.parent / path).read_text().splitlines()}
        assert {line.strip() for line in lines.splitlines()} <= there, f"docs/{page} quotes what {path} does not say"


@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("amp.md", 11),
        ("backward.md", 20),
        ("capture.md", 15),
        ("capture_inside.md", 15),
        ("compatibility.md", 11),
        ("complex.md", 7),
        ("data.md", 20),
        ("differences.md", 15),
        ("less_common.md", 20),
        ("linalg.md", 6),
        ("seeing.md", 15),
        ("train.md", 35),
        ("vmap.md", 10),
    ],
)
def test_the_examples_of_a_page_run(page: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # The doctest of Python 3.11.2 and before compares the last line alone: of an exception with notes, a note.
    lines = traceback.format_exception_only
    monkeypatch.setattr(traceback, "format_exception_only", lambda *of: ["".join(lines(*of))])
    found = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > count and not found.failed


def test_what_the_page_about_compatibility_lists_is_there_and_refuses() -> None:
    rows = re.findall(r"^\| `([\w.*()]+)` \|(.*)\|(.*)\|(.*)\|$", (DOCS / "compatibility.md").read_text(), re.M)
    refused, found = 0, 0
    for where, works, nothing, refuses in rows:
        path = where.removesuffix(".*")
        if path.endswith("()"):
            assert callable(getattr(norch.Tensor, path[7:-2]))
            continue
        thing = importlib.import_module(f"norch.{path}") if path != "compile" else norch
        for name in re.findall(r"`([a-zA-Z_]\w*)`", works + nothing):
            found += 1
            assert hasattr(thing, name) or hasattr(norch.Tensor, name), (path, name)
        for name in re.findall(r"`(\w+)`", refuses):
            refused += 1
            with pytest.raises(NotImplementedError, match=rf"^norch\.{path}\.{name}: "):
                getattr(thing, name)()
    assert len(rows) == 19 and found > 20 and refused > 11


def test_the_pictures_of_a_page_are_up_to_date() -> None:
    """But for numbers, which rounding may change."""
    made: Any = _script("seeing").pictures()
    assert len(made) == 3
    for name, text in made.items():
        stored = (DOCS / name).read_text(encoding="utf-8")
        words = [re.findall(r">([^<]*?)[-\d.e, ]*<", one) for one in (text, stored)]
        assert words[0] == words[1], f"docs/{name} is old: run make docs"


def test_the_pictures_of_ways_are_up_to_date_and_name_files() -> None:
    ways = _script("ways")
    made = ways.pictures()
    assert len(made) == 3
    for name, text in made.items():
        assert text == (DOCS / name).read_text(encoding="utf-8"), f"docs/{name} is old: run make docs"
        assert any(name in page.read_text() for page in DOCS.glob("*.md"))
        for path in re.findall(r"(?:norch|csrc)/[\w/.]+\w", text):
            assert (DOCS.parent / path).exists(), path
    assert f"{1 + norch.tensor([2.0, 6.0]).cos()[1].item():.2f}" in ways.BACKWARD[3][2]


def test_what_the_pages_about_cuda_name_is_there() -> None:
    """Files, targets of make, variables of the environment, names of norch and of the C sources."""
    root = DOCS.parent
    pages = [(DOCS / name).read_text() for name in ("cuda.md", "cuda_inside.md")]
    text = re.sub(r"```.*?```", "", "\n".join(pages), flags=re.S)
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
    sources = [p for folder in ("csrc", "tests/cudasim") for p in (root / folder).rglob("*") if p.is_file()]
    code = "\n".join(p.read_text() for p in [*sources, root / "norch" / "_binding/library.py"])
    for path in [span for span in spans if re.fullmatch(r"[\w/]+/[\w.]*", span) and not span.endswith(".so")]:
        assert (root / path).exists(), path
    rules = "".join(path.read_text() for path in (root / "Makefile", *root.glob("mk/*.mk")))
    targets = set(re.findall(r"^([a-z-]+):", rules, re.M))
    named = {name for span in spans for name in re.findall(r"make ([a-z-]+)", span)}
    assert len(named) > 5 and named <= targets, named - targets
    for variable in set(re.findall(r"NORCH_\w+", text)):
        assert f'"{variable}"' in code, variable
    for name in set(re.findall(r"norch\.cuda((?:\.\w+)+)", text)):
        thing: Any = norch.cuda
        for part in name[1:].split("."):
            thing = getattr(thing, part)
    words = {span for span in spans if re.fullmatch(r"nr_\w+|LAUNCH\w*|K::\w+|cudaMallocAsync", span)}
    assert len(words) >= 4
    for word in words:
        assert word in code, word


def test_files_that_pages_name_are_there() -> None:
    root, found = DOCS.parent, 0
    for page in [*DOCS.glob("*.md"), *DOCS.glob("learn/*.md"), root / "README.md", root / "CONTRIBUTING.md"]:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
        for path in re.findall(
            r"`((?:csrc|norch|docs|examples|tests|benchmarks|release|mk|\.ci)/[\w./-]+\.\w+)`", text
        ):
            found += 1
            built = path.endswith(".so") or path == "tests/test_x.py" or "/x." in path
            assert built or (root / path).exists(), f"{page.name} names {path}"
    for module in (root / "norch").rglob("*.py"):
        for path in re.findall(r"\bdocs/\w+\.md\b", module.read_text()):
            found += 1
            assert (root / path).exists(), f"{module} names {path}"
    assert found > 200


def test_the_tour_names_few_files_and_what_they_hold() -> None:
    rows = re.findall(r"^\| ([^|]+\?) \| (.+) \|$", (DOCS / "tour.md").read_text(), re.M)
    assert len(rows) == 18
    for question, answer in rows:
        path = ""
        paths = set()
        for quoted in re.findall(r"`([^`]+)`", answer):
            if "/" in quoted or quoted.endswith((".def", ".c")):
                paths.add(path := quoted)
                text = (DOCS.parent / path).read_text()
            else:
                assert quoted in text, f"{question} {path} has no {quoted}"
        assert 1 <= len(paths) <= 3, question


def test_each_setting_that_the_code_reads_is_described() -> None:
    """Variables of the environment; those of the simulation and of measurements are for tests alone."""
    root = DOCS.parent
    read = set()
    for path in [*(root / "csrc").rglob("*.[ch]"), *(root / "csrc").rglob("*.cu"), *(root / "norch").rglob("*.py")]:
        read |= set(re.findall(r'(?:getenv\(|environ(?:\.get\(|\[))"(NORCH_\w+)"', path.read_text()))
    described = set(re.findall(r"^\| `(NORCH_\w+)` \|", (DOCS / "settings.md").read_text(), re.M))
    assert len(described) > 9 and read - {"NORCH_CUDASIM_DRIVER", "NORCH_MATMUL_16BIT"} <= described


def test_sizes_that_pages_state_are_those_of_the_sources() -> None:
    """The lines of the trunk, the size of the library, and the example in the README."""
    root = DOCS.parent
    if not (root / ".ci").exists():
        pytest.skip("not a checkout")
    counted = subprocess.run([sys.executable, root / ".ci/lines.py"], capture_output=True, text=True, cwd=root).stdout
    (trunk,) = re.findall(r"^ *\d+ +(\d+)  the product", counted, re.M)
    readme = (root / "README.md").read_text()
    for text in (readme, (DOCS / "architecture.md").read_text()):
        (said,) = re.findall(r"([\d,]+) lines, (?:an afternoon|the \*trunk\*)", text)
        assert abs(int(said.replace(",", "")) - int(trunk)) < 0.05 * int(trunk), (said, trunk)
    (size,) = re.findall(r"in a library of ([\d.]+) MB", readme)
    assert abs((root / "norch" / "libnorch.so").stat().st_size / 1e6 - float(size)) < 0.6
    (code,) = re.findall(r"^## Fifteen lines\n\n```python\n(.*?)^```$", readme, re.M | re.S)
    assert len([line for line in code.splitlines() if line.strip()]) == 15
    assert "imports 30 times as fast" in readme and "36 import" in readme


def test_dtypes_of_layers_are_those_that_the_readme_states() -> None:
    """Integers have max pooling, and no convolution or average; complex numbers have convolution, and no pooling."""
    text = " ".join((DOCS.parent / "README.md").read_text().split())
    assert (
        "Integers have max pooling, but no convolution or average; complex numbers have convolution, but no pooling."
        in text
    )
    calls: dict[str, Any] = {
        "conv": lambda x: norch.nn.functional.conv2d(x, x),
        "max": lambda x: norch.nn.functional.max_pool2d(x, 2),
        "average": lambda x: norch.nn.functional.avg_pool2d(x, 2),
    }
    for dtype, works in {norch.int64: {"max"}, norch.complex64: {"conv"}, norch.float32: set(calls)}.items():
        for name, call in calls.items():
            x = norch.ones(1, 1, 2, 2, dtype=dtype)
            if name in works:
                call(x)
            else:
                with pytest.raises(norch.DTypeError):
                    call(x)


def test_what_contributing_names_is_there() -> None:
    root = DOCS.parent
    text = (root / "CONTRIBUTING.md").read_text()
    makefiles = "\n".join(path.read_text() for path in [root / "Makefile", *(root / "mk").glob("*.mk")])
    goals = set(re.findall(r"^([a-z-]+)(?:[ a-z-]*):", makefiles, re.M))
    assert {"dev", "test-fast", "check", "help"} <= set(re.findall(r"make (?:-j8 )?([a-z-]+)", text)) - {"a"} <= goals
    for path, anchor in re.findall(r"\]\(([\w./]+)(?:#([\w-]+))?\)", text):
        page = (root / path).read_text()
        slugs = [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", page, re.M)]
        assert not anchor or anchor in slugs, (path, anchor, slugs)
    for path in re.findall(r"`((?:csrc|norch|tests)/[\w./]+)`", text):
        assert (root / path).exists() or path == "tests/test_x.py", path
    for page in (text, (DOCS / "architecture.md").read_text()):  # the order of imports, of packages and modules
        (order,) = re.findall(r"`(\{_\w+, autograd\} <- [^`]*)`", page)
        for name in re.findall(r"\w+", order):
            assert importlib.util.find_spec(f"norch.{name}"), name


def test_figures_say_when_where_and_how_they_were_measured() -> None:
    """Each section with a time or a rate, or the head of its page, has a date, a machine and a command or a program."""
    figure, found = re.compile(r"\b\d[\d.,]* (us|ms|ns|[GT]FLOP/s)\b"), 0
    needed = r"\d+ \w+ 20\d\d|20\d\d-\d\d-\d\d", r"EPYC|H100", r"\bmake \w|python -m|\.py\b|>>>|`time"
    for page in sorted({*DOCS.glob("*.md"), *DOCS.glob("learn/*.md")} - {DOCS / "tour.md"}):  # which names a threshold
        head, *sections = re.split(r"\n(?=## )", page.read_text())
        for section in [head, *sections]:
            if figure.search(section):
                found += 1
                for pattern in needed:
                    assert re.search(pattern, head + section), f"{page.name}, {section.splitlines()[0]}: no {pattern}"
    assert found > 15
