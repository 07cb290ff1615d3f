"""The benchmarks run: tables, numbers and pictures of a few quick cases. What they measure is no matter of a test."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import norch

pytestmark = pytest.mark.host  # programs of their own; those that time a GPU are in test_cuda_errors.py

ROOT = Path(__file__).resolve().parents[2]
PNG = b"\x89PNG\r\n\x1a\n"

if not (ROOT / "benchmarks").is_dir():
    pytest.skip("benchmarks/ is not part of this checkout", allow_module_level=True)


def run(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, "--against", "numpy", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_tables_and_numbers(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    done = run("benchmarks", "--quick", "--only", "1 x 10 x 1", "--only", "x.item()", "--json", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    assert "norch" in first and "NumPy" in first and "Python" in first
    assert any(line.startswith("  1 x 10 x 1 ") for line in lines)
    assert any(line.startswith("  x.item() ") and line.endswith("(not counted)") for line in lines)
    for label in ("geometric mean ", "worst "):
        assert sum(label in line for line in lines) == 1, "one for matmul; of overhead nothing counts"
    kept = json.loads((tmp_path / "out").read_text())
    assert [(row["group"], row["case"]) for row in kept["rows"]] == [("matmul", "1 x 10 x 1"), ("overhead", "x.item()")]
    assert all(row["numpy"]["low"] <= row["numpy"]["ratio"] <= row["numpy"]["high"] for row in kept["rows"])


@pytest.mark.long
def test_the_charts(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    pytest.importorskip("matplotlib")
    bars, curves = tmp_path / "bars.png", tmp_path / "curves.png"
    done = run("benchmarks", "--quick", "--only", "exp, 1e3", "--only", "8x8", "--chart", str(bars))
    assert done.returncode == 0 and bars.read_bytes().startswith(PNG), done.stderr
    done = run("benchmarks.scaling", "--elements", "3", "--side", "2", "--chart", str(curves))
    assert done.returncode == 0 and curves.read_bytes().startswith(PNG), done.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["memory", "--against", "none", "--only", "MLP"], r"  MLP 784-128-64-10, batch 64 +\d+\.\d+ +\d"),
        (["cold_start", "--against", "none", "--rounds", "1"], r"  norch +[\d.]+ m?s +1.00 +\d+ MB"),
        (["threads", "--only", "MLP", "--rounds", "4", "--slot", "0"], r"  MLP .*\d\.\d\d  \(.+ \.\. .+\)"),
    ],
)
def test_memory_cold_starts_and_threads(arguments: list[str], line: str) -> None:
    command = [sys.executable, "-m", "benchmarks." + arguments[0], *arguments[1:]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(line, done.stdout), done.stdout


def test_the_picture_of_the_readme(tmp_path: Path) -> None:
    """Bars of the geometric means of what counts; a figure that was not measured stops it."""
    from benchmarks import headline
    from benchmarks.cases import TABLED

    about = {"date": "1 May 2026", "cpu": "A <B>", "cores": 2, "isa": "avx2", "python": "3.11.7", "torch": "2.13.0"}
    cases = [case for case in TABLED if headline.wanted(case.group, case.name)]
    rows = [
        {"group": case.group, "case": case.name, "counted": True, "torch": {"ratio": 4.0 if at % 2 else 2.0}}
        for at, case in enumerate(cases)
    ] + [{"group": "import", "case": "import", "counted": True, "torch": {"ratio": 33.4}}]
    svg = ElementTree.fromstring(headline.svg(rows, about))
    texts = ["".join(element.itertext()) for element in svg]
    assert texts[0].startswith("Times as fast as PyTorch: 33 import; 2.9 elementwise") and "2.8" in texts
    assert "1 May 2026" in texts[-4] and headline.COMMAND in texts[-3]
    assert "A <B>, 2 cores" in texts[-2] and "Python 3.11.7" in texts[-1]
    widths = [float(bar.get("width") or 0) for bar in svg.iter("{http://www.w3.org/2000/svg}rect")]
    assert len(widths) == len(headline.FIGURES) and widths[0] == max(widths) and min(widths) > 0
    with pytest.raises(SystemExit, match="cases for: import"):
        headline.svg(rows[:-1], about)
    done = run("benchmarks", "--headline", str(tmp_path / "speed.svg"))
    assert done.returncode == 1 and "PyTorch, which is not measured" in done.stderr


def test_the_readme_says_what_its_picture_shows() -> None:
    if not (ROOT / "docs").is_dir():
        pytest.skip("the docs are not here")
    title = re.search(r"<title>(.*)</title>", (ROOT / "docs" / "speed.svg").read_text())
    assert title and f"![{title[1]}](docs/speed.svg)" in (ROOT / "README.md").read_text()


def test_an_unknown_case_is_refused() -> None:
    done = run("benchmarks", "--only", "nonsense")
    assert done.returncode == 2 and "no group and no case" in done.stderr


def test_outputs_that_differ_stop_the_benchmark() -> None:
    measure = pytest.importorskip("benchmarks.measure")
    case = measure.CASES[0]
    measure.agree(case, {"norch": [[1.0, 2.0]], "numpy": [[1.0, 2.00001]]})
    for wrong in ([1.0, 2.1], [1.0], [float("nan"), 2.0]):
        with pytest.raises(SystemExit, match=r"norch and numpy disagree"):
            measure.agree(case, {"norch": [[1.0, 2.0]], "numpy": [wrong]})
    with pytest.raises(SystemExit, match=r"disagree"):  # small numbers are held against the largest of their tensor
        measure.agree(case, {"norch": [[1e-4, 2e-4], [5.0]], "numpy": [[1e-4, 2.1e-4], [5.0]]})


@pytest.mark.parametrize("broken", ["backward", "step"])
def test_a_step_that_does_nothing_is_found(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = pytest.importorskip("benchmarks.cases_training").CASES
    import norch
    from benchmarks import library, measure, worker

    for case in cases[:2]:
        outputs = {}
        for name in ("norch", "numpy"):
            lib = library.Library("norch")
            lib.seed(3)
            with monkeypatch.context() as patch:
                if name == "norch" and broken == "step":
                    patch.setattr(norch.optim.SGD, "step", lambda self: None)
                run = case.tensors(lib)
                if name == "norch" and broken == "backward":
                    run()  # leaves gradients and momenta of another step behind
                outputs[name] = worker.numbers(run())
        with pytest.raises(SystemExit, match="disagree"):
            measure.agree(case, outputs)


def test_inputs_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    import norch
    from benchmarks import library

    drawn, threads = [], norch.get_num_threads()
    for at_once in (1 << 26, 64):
        monkeypatch.setattr(library, "DRAWN_AT_ONCE", at_once)
        ours = library.Library("norch")
        drawn.append(ours.random(7, 11).tolist())
    norch.set_num_threads(threads)
    assert drawn[0] == drawn[1]


def test_replays_alone_are_timed() -> None:
    pytest.importorskip("numpy")
    done = run("benchmarks", "--quick", "--only", "ten operations")
    assert done.returncode == 0, done.stderr
    assert re.search(r"ten operations on 10 numbers +the replay alone: \d", done.stdout), done.stdout


def test_kernels_are_held_to_the_spills_that_are_known() -> None:
    from benchmarks.cuda_resources import SPILLS, known_spills

    known = "multiply<shape_16bit<dtype<9>, 64, 64, 64, 32, 32, 3, 3>, 2, 2>"
    assert [known_spills(known, arch) for arch in ("80", "90a", "75")] == [224, 300, 300]
    assert known_spills(known.replace("3, 3>", "3, 4>"), "80") == 0 == known_spills(f"dense<{known}>", "80")
    assert all(max(both) for both in SPILLS.values())


def test_small_calls() -> None:
    """Each call of the list runs in both libraries; a few are timed."""
    small_calls = pytest.importorskip("benchmarks.small_calls")
    torch = pytest.importorskip("torch")
    spaces = [small_calls.names_of(module) for module in (norch, torch)]
    for _, text in small_calls.texts():
        assert all(small_calls.repeated(text, names)(1) > 0 for names in spaces), text
    command = [sys.executable, "-m", "benchmarks.small_calls", "--only", "x.exp()", "--seconds", "0.001"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "x.exp()" in done.stdout and "one number each: geometric mean" in done.stdout


@pytest.mark.long
def test_the_sweep_times_calls_of_the_tests_and_of_the_pages(torch: object) -> None:
    words = ["--only", "hardsigmoid", "--only", "t.eye(n, n, dtype=d)"]
    done = run("benchmarks", "--quick", "--against", "torch", "--only", "sweep", *words)
    assert done.returncode == 0, done.stderr
    cells = r"( +\d+\.\d +\d+\.\d\d \|){%d} +\d+\.\d +\d+\.\d\d$"
    for name, more in (("hardsigmoid", 5), ("t.eye(n, n, dtype=d)", 2)):
        assert re.search(f"^  {re.escape(name)} *{cells % more}", done.stdout, re.M), done.stdout
    assert re.search(r"^  both +1000000 +\d+\.\d\d  \d+ of \d+ below 0.95$", done.stdout, re.M), done.stdout
