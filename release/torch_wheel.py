"""Writes the wheel torch-VERSION+norch: norch in the place of PyTorch, for `make wheel-torch`.

It holds one module, which opens norch's door, and depends on norch. It is for environments of one's own, and not for an
index: the name is PyTorch's.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

import norch
from norch.compat import door

DESCRIPTION = f"""
This is not PyTorch. `import torch` gives norch {norch.__version__}, a small deep-learning framework with PyTorch's
names, so that programs and libraries that ask for torch run on it. Name it in each command that installs a library, or
pip may replace it: `pip install timm torch=={door.VERSION}`. To undo it: pip uninstall torch.
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: norch\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
INFO = f"torch-{door.VERSION}.dist-info"


def contents() -> dict[str, bytes]:
    """The files of the wheel, without its record."""
    more = ("Requires-Python: >=3.10", "License-Expression: MIT")
    return {
        "torch/__init__.py": Path(door.PATH, "torch", "__init__.py").read_bytes(),
        f"{INFO}/METADATA": (door.metadata(*more, "Description-Content-Type: text/markdown") + DESCRIPTION).encode(),
        f"{INFO}/WHEEL": WHEEL.encode(),
        f"{INFO}/top_level.txt": b"torch\n",
    }


def write(folder: Path) -> Path:
    """Writes the wheel; the same bytes each time."""
    files = contents()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{INFO}/RECORD"] = f"{record}{INFO}/RECORD,,\n".encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"torch-{door.VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            wheel.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data)
    return path


if __name__ == "__main__":
    made = write(Path(sys.argv[1]))
    print(f"{made}: {made.stat().st_size} bytes; for a fresh environment, with norch, and for no index")
    print(f"then: pip install LIBRARY torch=={door.VERSION}")
