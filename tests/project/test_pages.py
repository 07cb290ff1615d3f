"""What README, CONTRIBUTING and the pages of docs/ name and count is there: files, targets of make, names of norch,
chapters, examples, and the sizes that more than one page states."""

from __future__ import annotations

import importlib
import marshal
import re
from pathlib import Path
from typing import Any

import pytest

import norch

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/learn/*.md")]
FOLDERS = r"csrc|norch|docs|tests|examples|benchmarks|release|mk|\.ci"
MADE = {"norch/libnorch_cuda.so", "tests/test_x.py"}  # by make, and what stands for any
# Misspelled on purpose, and a name of norch.backends.
NO_NAMES = {"norch.sofmax", "nn.Liner", "Tensor.sofmax", "norch.x.y", "cuda.sdp_kernel"}

pytestmark = [pytest.mark.host, pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="not a checkout")]


def text_of(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)


def test_files_are_there() -> None:
    found = 0
    for page in PAGES:
        for path in re.findall(rf"`((?:{FOLDERS})/[\w./*-]+)`", text_of(page)):
            found += 1
            stands_for_any = re.fullmatch(r".*/x\.\w+", path)
            assert stands_for_any or path in MADE or any(ROOT.glob(path.rstrip("/"))), (page.name, path)
    assert found > 300


def test_targets_of_make_are_there() -> None:
    rules = "\n".join(path.read_text() for path in (ROOT / "Makefile", *ROOT.glob("mk/*.mk")))
    targets = {name for names in re.findall(r"^([a-z][a-z -]*):", rules, re.M) for name in names.split()}
    for page in PAGES:
        for name in re.findall(r"`make (?:[A-Z]+=[^\s`]* |-j8 )*([a-z][a-z-]*)[ `]", text_of(page)):
            assert name in targets, f"{page.name}: make {name}"
    assert len(targets) > 40


def is_there(name: str) -> bool:
    at: Any = norch
    parts = name.split(".")
    for i, part in enumerate(parts):
        if not hasattr(at, part):
            try:
                at = importlib.import_module(".".join(("norch", *parts[: i + 1])))
            except ImportError:
                return False
        else:
            at = getattr(at, part)
    return True


@pytest.mark.filterwarnings("ignore")
def test_names_of_norch_are_there() -> None:
    found = set()
    rooms = "nn|optim|utils|linalg|fft|special|amp|func|cuda|Tensor|x"
    for page in PAGES:
        for name in re.findall(rf"`((?:norch|{rooms})(?:\.[A-Za-z_]\w*)+)[`(]", text_of(page)):
            name = re.sub(r"^x\.", "Tensor.", name)
            if not re.search(r"\.(py|h|def|c)$|^cuda\.matmul\.", name) and name not in NO_NAMES:
                found.add(name)
                assert is_there(name.removeprefix("norch.")), (page.name, name)
    assert len(found) > 500


def test_counts_and_sizes_are_those_of_the_files() -> None:
    readme, index = ((ROOT / name).read_text() for name in ("README.md", "docs/index.md"))
    chapters = sorted(path.name for path in ROOT.glob("docs/learn/*_*.md"))
    assert "1_tensor.md" in chapters and len(chapters) == 10
    assert all("ten chapters" in text.replace("\n", " ") for text in (readme, index))
    assert "has fifteen programs" in readme and len(list(ROOT.glob("examples/*.py"))) == 15
    questions = re.findall(r"^\| [^|]+\? \|", (ROOT / "docs/tour.md").read_text(), re.M)
    assert "answers eighteen questions" in readme and len(questions) == 18

    def rows(text: str) -> list[str]:
        return re.findall(r"^\| ([^\n|]+ \|[^\n]*?)(?: \(\[a tour\]\S+\))? \|$", text.replace("docs/", ""), re.M)

    table = rows(index)
    assert len(table) > 4 and table == rows(readme)[: len(table)]


def test_what_is_installed_has_the_size_that_the_readme_states() -> None:
    """The library without symbols (at most 4.5 MB: test_build.py), sources and byte code."""
    files = [path for path in (ROOT / "norch").rglob("*") if path.suffix in (".py", ".pyi", ".txt", ".typed")]
    code = [marshal.dumps(compile(path.read_bytes(), str(path), "exec")) for path in files if path.suffix == ".py"]
    size = 4.3 + (sum(path.stat().st_size for path in files) + sum(map(len, code))) / 1e6
    (stated,) = re.findall(r"^\| installed \| 754 MB \| (\d+) MB \|$", (ROOT / "README.md").read_text(), re.M)
    assert abs(int(stated) - size) < 1, size


def test_the_wheel_for_pages_has_the_size_that_they_state() -> None:
    """release/wheels.py refuses a larger one, and `make wasm` runs it."""
    most = re.findall(r'"(?:wheel|library, compressed)": ([\d_]+)', (ROOT / "release/wheels.py").read_text())
    assert [int(n) for n in most] == [1_600_000, 500_000]
    for name in ("README.md", "docs/index.md", "docs/browser.md"):
        assert "1.6 MB" in (ROOT / name).read_text(), name
    assert "library's limit of 500 kB" in (ROOT / "docs/browser.md").read_text()
