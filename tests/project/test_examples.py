"""The examples do what they say, and the README's example runs as printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from checks import example_module

import norch

pytestmark = pytest.mark.host  # what is run in a process of its own; test_cuda_training.py has the others

ROOT = Path(__file__).resolve().parents[2]
NEEDED_BY_DIGITS = ("numpy", "sklearn", "matplotlib", "tqdm")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)


def test_the_article_golden_run() -> None:
    _, losses = example_module("norch_article").train()
    known = [1.7035, 0.7193, 0.3068, 0.1742, 0.1342, 0.1232, 0.1220, 0.1241, 0.1270, 0.1297]
    assert losses == pytest.approx(known, rel=0, abs=2e-4)


def test_the_article_prints_its_losses(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["norch_article.py"])
    assert example_module("norch_article").main() == 0
    printed = capsys.readouterr().out
    assert "Epoch [1/10], Loss: 1.7035\n" in printed and "agree with the known ones" in printed


def test_the_article_notices_other_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    article = example_module("norch_article")
    monkeypatch.setattr(sys, "argv", ["norch_article.py"])
    monkeypatch.setattr(article, "KNOWN_LOSSES", [loss + 3e-4 for loss in article.KNOWN_LOSSES])
    assert article.main() == 1


def test_a_line_is_fitted_as_algebra_says() -> None:
    lines = example_module("linear_regression")
    x, y = lines.make_points(seed=3)
    slope, intercept, losses = lines.fit(x, y)
    assert (slope, intercept) == pytest.approx(lines.closed_form(x, y), rel=0, abs=1e-3)
    assert slope == pytest.approx(lines.TRUE_SLOPE, abs=0.3) and losses[-1] < losses[0] / 10


def test_plots_are_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name, option in (("norch_article", "--plot"), ("linear_regression", "--out")):
        picture = tmp_path / f"{name}.png"
        done = run(f"examples/{name}.py", option, str(picture))
        assert done.returncode == 0, done.stderr
        assert picture.read_bytes().startswith(b"\x89PNG") and str(picture) in done.stdout


def output_of(name: str, folder: Path) -> str:
    """The output of an example that draws a picture."""
    for needed in NEEDED_BY_DIGITS:
        pytest.importorskip(needed)
    picture = folder / f"{name}.png"
    done = run(f"examples/{name}.py", "--out", str(picture))
    assert done.returncode == 0, done.stdout + done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG") and str(picture) in done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.long  # .ci/run has `make demo`
def test_digits_are_read(tmp_path: Path) -> None:
    found = re.fullmatch(r"test accuracy: (\d+\.\d)%", output_of("digits", tmp_path).splitlines()[-1])
    assert found is not None and float(found[1]) >= 97


@pytest.mark.slow
@pytest.mark.long
def test_digits_are_read_by_a_convolutional_network(tmp_path: Path) -> None:
    found = re.fullmatch(r"test accuracy: (\d+\.\d)%", output_of("cnn_digits", tmp_path).splitlines()[-1])
    assert found is not None and float(found[1]) >= 98


@pytest.mark.slow
@pytest.mark.long
def test_a_map_of_digits_is_drawn(tmp_path: Path) -> None:
    found = re.search(
        r"held-out bound: (\d+\.\d\d) nats\nnearest neighbours of one digit: (\d+\.\d)%",
        output_of("vae_digits", tmp_path),
    )
    assert found is not None and float(found[1]) <= 25 and float(found[2]) >= 70


@pytest.mark.slow
def test_a_small_gpt_learns_to_sort() -> None:
    done = run("examples/tiny_gpt.py")
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.fullmatch(r"sorted without a mistake: (\d+\.\d)%", done.stdout.splitlines()[-1])
    assert found is not None and float(found[1]) >= 95
    assert run("examples/tiny_gpt.py", "--steps=1").returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "needed", "says", "too_little"),
    [
        ("pendulum", ("scipy", "matplotlib"), r"largest error of the angle: 0\.00\d+", "--steps=5"),
        ("gaussian_process", ("scipy", "matplotlib"), r"new measurements inside the band: 9\d\.\d%", None),
        pytest.param(
            *("image_network", ("sklearn", "matplotlib"), r"with waves: 2\d\.\d dB", "--steps=5"),
            marks=pytest.mark.long,
        ),
        pytest.param(
            *("cartpole", ("matplotlib",), r"mean return of 200 new episodes: \d+\.\d", "--rounds=2"),
            marks=pytest.mark.long,
        ),
        pytest.param(
            *("diffusion_digits", ("sklearn", "matplotlib"), r"drawings read as .* asked for: \d+\.\d%", "--steps=5"),
            marks=pytest.mark.long,
        ),
        pytest.param(
            *("gpt_text", ("matplotlib",), r"held-out text by the network: [12]\.\d\d bits a character", None),
            marks=pytest.mark.long,
        ),
        ("resnet_torchvision", ("torchvision", "matplotlib"), r"median error of 104 results: .*", None),
        pytest.param(
            *("matrix_factorization", ("sklearn", "matplotlib"), r"less error than .* alone: \d\d\.\d%", "--steps=5"),
            marks=pytest.mark.long,
        ),
    ],
)
def test_stories_check_themselves(
    name: str, needed: tuple[str, ...], says: str, too_little: str | None, tmp_path: Path
) -> None:
    for module in needed:
        pytest.importorskip(module)
    picture = tmp_path / f"{name}.png"
    done = run(f"examples/{name}.py", "--out", str(picture))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(says, done.stdout.splitlines()[-1]), done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG") and str(picture) in done.stdout
    if too_little:
        done = run(f"examples/{name}.py", "--out", str(picture), too_little)
        assert done.returncode == 1 and "it should be" in done.stderr


def test_what_a_resnet_of_torchvision_needs_is_said(tmp_path: Path) -> None:
    """Where torchvision is missing, and where it was built for another torch."""
    for error, says in (
        ("ImportError(name='torchvision')", "torchvision, which is not"),
        ("RuntimeError()", "built for"),
    ):
        (tmp_path / "torchvision.py").write_text(f"raise {error}")
        program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.modules['torch'] = sys; sys.argv = ['']\n"
        path = str(ROOT / "examples" / "resnet_torchvision.py")
        done = run("-c", program + f"import runpy; runpy.run_path({path!r}, run_name='__main__')")
        assert done.returncode == 1 and done.stderr.startswith("This example needs ") and says in done.stderr
        assert done.stderr.count("\n") == 1, "one sentence"


@pytest.mark.slow
@pytest.mark.long
def test_a_gpt_that_has_not_learnt_to_write_fails(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = run("examples/gpt_text.py", "--steps=5", "--out", str(tmp_path / "gpt.png"))
    assert done.returncode == 1 and "it should be at most" in done.stderr and "it writes:" in done.stdout
    assert (tmp_path / "gpt.png").read_bytes().startswith(b"\x89PNG")


def test_counts_of_characters_are_those_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """What gpt_text is measured against: a text of which each character tells the next costs next to nothing."""
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    text = norch.arange(4).repeat(500)
    none, one, two = (example_module("gpt_text").table(known, text, text, 4) for known in range(3))
    assert none == pytest.approx(2, abs=1e-3) and 0 < one < 0.01 and 0 < two < 0.01


@pytest.mark.slow
@pytest.mark.long
def test_digits_fail_when_they_are_not_learnt(tmp_path: Path) -> None:
    for name in NEEDED_BY_DIGITS:
        pytest.importorskip(name)
    done = run("examples/digits.py", "--epochs", "1", "--out", str(tmp_path / "digits.png"))
    assert done.returncode == 1 and "less than the 97%" in done.stderr


@pytest.mark.parametrize(
    "script, option",
    [
        ("digits", "--epochs=1"),
        ("cnn_digits", "--epochs=1"),
        ("vae_digits", "--epochs=1"),
        ("image_network", "--steps=1"),
        ("pendulum", "--seed=1"),
        ("cartpole", "--rounds=1"),
        ("diffusion_digits", "--steps=1"),
        ("matrix_factorization", "--steps=1"),
        ("gaussian_process", "--seed=1"),
        ("linear_regression", "--seed=1"),
        ("norch_article", "--plot=x.png"),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(script: str, option: str) -> None:
    code = (
        "import runpy, sys; sys.modules['matplotlib'] = None; "
        f"sys.argv = ['{script}.py', '{option}']; runpy.run_path('examples/{script}.py', run_name='__main__')"
    )
    done = run("-c", code)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1 and "matplotlib" in done.stderr and 'pip install ".[examples]"' in done.stderr


@pytest.mark.parametrize(
    "script", ["digits", "cnn_digits", "image_network", "linear_regression", "norch_article", "tiny_gpt"]
)
def test_a_device_that_is_not_there_is_said_in_a_sentence(script: str) -> None:
    for name in NEEDED_BY_DIGITS:
        pytest.importorskip(name)
    done = run(f"examples/{script}.py", "--device=cuda:99")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith("--device cuda:99: cuda") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_example_runs_as_printed(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    example = next(block for block in blocks if block.startswith("import norch"))
    assert len(example.splitlines()) <= 20
    done = run("-c", example)
    assert done.returncode == 0, done.stderr
    printed = [line.partition("# prints ")[2] for line in example.splitlines() if "# prints " in line]
    assert printed and done.stdout.splitlines()[-len(printed) :] == printed


def test_the_readme_names_what_exists() -> None:
    text = (ROOT / "README.md").read_text()
    rules = "".join(path.read_text() for path in (ROOT / "Makefile", *ROOT.glob("mk/*.mk")))
    for target in re.findall(r"`make ([a-z-]+)[` ]", text):
        assert re.search(rf"^{target}:", rules, re.M), f"make {target} does not exist"
