"""Files of PyTorch's own test suite, run on norch by pytorch_suite.py. The tests of pytorch_suite_left.txt fail: they
are about what norch leaves out or does otherwise (docs/differences.md), or about PyTorch's build."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import urllib.request
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEFT = Path(__file__).with_name("pytorch_suite_left.txt")
SOURCES = ROOT / "build" / "pytorch"
# PyTorch 2.6, as Debian has its sources; its license is BSD.
URL = "http://deb.debian.org/debian/pool/main/p/pytorch/pytorch_2.6.0+dfsg.orig.tar.xz"
SHA256 = "099a9601bc40d67656e75735c44abedb0fbe92d08817852ab7472eebb7e6ddff"
FILES = (
    "test_complex.py test_indexing.py test_scatter_gather_ops.py test_shape_ops.py test_sort_and_select.py"
    " test_stateless.py test_type_promotion.py test_view_ops.py nn/test_dropout.py nn/test_embedding.py"
    " nn/test_init.py nn/test_lazy_modules.py nn/test_load_state_dict.py nn/test_module_hooks.py"
    " nn/test_multihead_attention.py nn/test_packed_sequence.py nn/test_parametrization.py nn/test_pooling.py"
    " nn/test_pruning.py optim/test_lrscheduler.py optim/test_swa_utils.py functorch/test_eager_transforms.py"
).split()


@pytest.fixture(scope="module")
def sources() -> Path:
    """PyTorch's sources, fetched once."""
    pytest.importorskip("expecttest", reason="PyTorch's tests import it")
    folder = SOURCES / "pytorch-v2.6.0"
    if not folder.exists():
        try:
            with urllib.request.urlopen(URL, timeout=60) as answer:
                archive = answer.read()
        except OSError as error:
            pytest.skip(f"PyTorch's sources cannot be fetched: {error}")
        assert hashlib.sha256(archive).hexdigest() == SHA256
        SOURCES.mkdir(parents=True, exist_ok=True)
        path = SOURCES / "sources.tar.xz"
        path.write_bytes(archive)
        with tarfile.open(path) as tar:
            wanted = [x for x in tar if re.match(r"[^/]+/(test|torch/testing)/.*\.py$", x.name)]
            tar.extractall(SOURCES, wanted)
    return folder


def left(file: str) -> list[str]:
    """The patterns of the tests of a file that are listed."""
    lines = LEFT.read_text().splitlines() if LEFT.exists() else []
    return [line for line in lines if line.startswith(f"{file}::")]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("file", FILES)
def test_file_of_pytorch(sources: Path, file: str) -> None:
    """The tests that fail are those that are listed."""
    paths = os.pathsep.join((str(ROOT), str(Path(__file__).parent)))
    environment = {**os.environ, "PYTHONPATH": paths, "NORCH_PYTORCH_SOURCES": str(sources), "OMP_NUM_THREADS": "1"}
    options = (
        "-p pytorch_suite -p no:cacheprovider -p no:randomly --noconftest -q --tb=no -rfEp -W ignore --timeout 120"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options.split(), "-o", "addopts=", f"--rootdir={sources / 'test'}", file],
        cwd=sources / "test", env=environment, capture_output=True, text=True,
    )  # fmt: skip
    results = re.findall(r"^(PASSED|FAILED|ERROR) (\S+::\S+)", done.stdout, re.MULTILINE)
    assert results, done.stdout[-2000:] + done.stderr[-2000:]
    failed = {name for result, name in results if result != "PASSED"}
    listed = left(file)
    new = sorted(name for name in failed if not any(fnmatchcase(name, pattern) for pattern in listed))
    assert not new, f"{len(new)} of {len(results)} tests fail and are not listed: {new}"
    stale = [pattern for pattern in listed if not any(fnmatchcase(name, pattern) for name in failed)]
    assert not stale, f"no test fails for these of {LEFT.name} any more: {stale}"
