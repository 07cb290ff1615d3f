"""Runs the test suite on a wheel for Windows, by Windows' CPython under wine.

    python tests/windows/run.py FOLDER WHEEL [arguments of pytest]

FOLDER holds python.exe and, in site-packages/, the packages of the tests, as `make test-windows` puts them there. The
status is pytest's. Wine is not Windows: it is Windows' interface over Linux' files, processes and memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "release"))
from tests import run_tests  # noqa: E402


def on_windows(folders: Sequence[str]) -> str:
    """Folders of this machine as wine's drive Z: has them."""
    return ";".join("Z:" + folder.replace("/", "\\") for folder in folders)


def unpack(folder: Path) -> None:
    """Python's library out of its archive, once."""
    for archive in folder.glob("python3*.zip"):
        script = ROOT / "tests" / "windows" / "unpack.py"
        command = [
            "wine",
            str(folder / "python.exe"),
            *map(on_windows, ([str(script)], [str(archive)], [str(folder / "Lib")])),
        ]
        subprocess.run(command, check=True)
        archive.rename(archive.with_suffix(".unpacked"))


def main(folder: Path, wheel: Path, arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as prefix:  # outside the checkout, for it has a link to "/"
        os.environ |= {"WINEPREFIX": prefix, "WINEDEBUG": "-all", "NORCH_TEST_TORCH": "0"}
        os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
        os.environ.pop("PYTHONPATH", None)
        copied = subprocess.Popen(["cat"], stdin=subprocess.PIPE)  # Windows' Python cannot print to a file of wine's
        assert copied.stdin is not None
        os.dup2(copied.stdin.fileno(), 1)
        os.dup2(1, 2)
        path = [str(folder / "site-packages"), str(ROOT / "tests" / "windows")]
        try:
            unpack(folder)
            return run_tests(
                wheel,
                ["wine", str(folder / "python.exe")],
                ["-p", "plugin", *arguments],
                lambda given: on_windows([*given, *path]),
            )
        finally:
            subprocess.run(["wineserver", "--kill"], check=False)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:]))
