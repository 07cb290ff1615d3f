"""What a beginner's mistake says: what was expected, what came, and what to write instead."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import norch
from norch import nn

pytestmark = pytest.mark.host


ROOT = Path(__file__).resolve().parents[2]
TEXTS = ("*.md", "*.py", "*.pyi", "*.toml", "*.c", "*.h", "*.cu", "*.txt", "Makefile", "*.mk", ".ci/*")
FOREIGN = (  # the project of that name on the package index
    r"(?<![\w.-])norch\\*\[(linalg|mpi|nccl|cuda|tensorboard|examples|test|dev|site|release)\b",
    r"pip3? install [^\n`#;]*(?<![\w./+-])norch(?![\w/-])",
    r"metadata\.\w+\([\"']norch[\"']",
    r"(?<![\w.-])norch([=<>~]=|-[\d*])",
)


def run(code: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(Path(norch.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env)
    return done.stdout


@pytest.mark.parametrize(("code", "meant"), [("norch.sofmax", "softmax"), ("norch.nn.Conv2D", "Conv2d")])
def test_a_misspelled_name_is_suggested(code: str, meant: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import norch; {code}"], capture_output=True, text=True)
    assert f"Did you mean: '{meant}'?" in done.stderr


def test_channels_that_do_not_fit() -> None:
    message = r"conv2d: weight of shape \(8, 3, 3, 3\) with groups=1 expects 3 input channels, got 1 in an input of "
    for shape in ((2, 1, 8, 8), (1, 8, 8)):
        with pytest.raises(norch.errors.ShapeError, match=message + rf"shape \({shape[0]}, "):
            nn.Conv2d(3, 8, 3)(norch.ones(*shape))
    for layer, shape in (
        (nn.Conv1d(1, 3, 3), (5, 9)),
        (nn.Conv2d(1, 3, 3), (8, 28, 28)),
        (nn.ConvTranspose2d(1, 3, 3), (8, 9, 9)),
    ):
        with pytest.raises(norch.errors.ShapeError, match=r"one sample: x\.unsqueeze\(1\) adds a channel to a batch"):
            layer(norch.ones(*shape))
        layer(norch.ones(*shape).unsqueeze(1))
    with pytest.raises(norch.errors.ShapeError, match="conv1d: .*groups=2 expects 4 input channels, got 5 in an input"):
        nn.functional.conv1d(norch.ones(5, 9), norch.ones(6, 2, 3), groups=2)
    with pytest.raises(norch.errors.ShapeError, match="conv_transpose1d: .*expects 3 input channels, got 2 in"):
        nn.ConvTranspose1d(3, 8, 3)(norch.ones(1, 2, 8))


def test_float_class_labels() -> None:
    x, labels = norch.zeros(2, 3), norch.tensor([0.0, 2.0])
    with pytest.raises(ValueError, match=r"cross_entropy: .*\(2,\).*\(2, 3\); if they are class .* target\.long\(\)"):
        nn.functional.cross_entropy(x, labels)
    with pytest.raises(TypeError, match=r"nll_loss: expected integer class indices.*float32; target\.long\(\) casts"):
        nn.functional.nll_loss(x, labels)
    assert nn.functional.cross_entropy(x, labels.long()).item() == pytest.approx(np.log(3))


def test_numpy_without_numpy() -> None:
    code = """
import sys; sys.modules["numpy"] = None
import norch
try: norch.ones(2).numpy()
except ImportError as error: print(error)
try: norch.stft(norch.ones(16), 8, return_complex=True)
except ImportError as error: print(error)
print(norch.ones(2).tolist())
"""
    message, transform, values = run(code).splitlines()
    assert transform.startswith("norch.fft needs SciPy or NumPy") and "pip install" in transform
    assert message.startswith("numpy: needs NumPy: `pip install numpy`") and "norch-dl[linalg]" in message
    assert values == "[1.0, 1.0]"


def test_no_text_installs_a_package_of_another_project() -> None:
    assert 'name = "norch-dl"' in (ROOT / "pyproject.toml").read_text()
    texts = {path for pattern in TEXTS for path in ROOT.rglob(pattern) if path.is_file()}
    parts = {path: path.relative_to(ROOT).parts for path in texts}
    ours = [
        path for path in texts if parts[path][0] not in ("build", "dist", ".venv", ".git") and path != Path(__file__)
    ]
    assert len(ours) > 500
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in ours
        for match in re.finditer("|".join(FOREIGN), path.read_text(errors="replace"))
    ]
    assert found == []
    for old in ("norch[linalg]", "pip install norch", 'metadata.version("norch")', "norch==0.2", "norch-0.2.0-py3"):
        assert re.search("|".join(FOREIGN), old)
    for new in ("norch-dl[linalg]", "pip install norch-dl", "pip install .", "x = norch.ones(2)", "norch-cuda"):
        assert not re.search("|".join(FOREIGN), new)
