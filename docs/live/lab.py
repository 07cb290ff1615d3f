"""Puts JupyterLite with norch and the notebooks of the chapters into the site: `make site` calls it.

python docs/live/lab.py PACKAGES LIVE WHEEL    what the kernel loads, downloaded to PACKAGES, beside LIVE's Pyodide
python docs/live/lab.py SITE                   JupyterLite itself, in SITE/lab, with the notebooks of SITE/notebooks
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# JupyterLite's own, which its extension brings along; the kernel loads these by name
KERNEL = ("piplite", "ipykernel", "pyodide_kernel")
LOADED = ["micropip", "piplite", "ipykernel", "comm", "pyodide-kernel", "jedi", "ipython", "norch-dl", "norch-live"]
ASSISTED = """try:
    import norch_live  # in a page, which has no compiler and no scikit-learn: what the chapter needs of them
except ImportError:
    pass"""


RAISES = "try:\n", '\nexcept Exception as error:\n    print(f"{type(error).__name__}: {error}")'


def entry(wheel: Path) -> dict[str, Any]:
    """A wheel as pyodide-lock.json has it."""
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        about = files.read(next(name for name in names if name.endswith(".dist-info/METADATA"))).decode()
    needs = re.findall(r"^Requires-Dist: ([\w.-]+)((?:(?!extra ==).)*)$", about, re.M)
    name, version = (re.search(rf"^{field}: (.+)$", about, re.M)[1] for field in ("Name", "Version"))  # type: ignore[index]
    tops = {
        top.partition("/")[0].removesuffix(".py")
        for top in names
        if "/__init__.py" in top or re.fullmatch(r"\w+\.py", top)
    }
    return {
        "name": canonical(name),
        "version": version,
        "file_name": wheel.name,
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "imports": sorted(tops),
        "depends": [canonical(need) for need, _ in needs],
        "install_dir": "site",
        "package_type": "package",
        "unvendored_tests": False,
        "tool": {},
    }


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def shim(path: Path, live: Path) -> None:
    """A wheel with what stands for a compiler and for digits (compiler.py), which takes effect when it is imported."""
    about = "Metadata-Version: 2.1\nName: norch-live\nVersion: 1\n"
    with zipfile.ZipFile(live / "norch.zip") as given, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name in given.namelist():
            if name in ("compiler.py", "digits.bin") or name.startswith("compiled/"):
                out.writestr(f"norch_live/{name}", given.read(name))
        out.writestr("norch_live/__init__.py", "from .compiler import install\n\ninstall()\n")
        out.writestr("norch_live-1.dist-info/METADATA", about)
        out.writestr("norch_live-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        out.writestr("norch_live-1.dist-info/RECORD", "")


def packages(folder: Path, live: Path, wheel: Path) -> None:
    """The kernel's wheels beside Pyodide, and a pyodide-lock.json of these alone: nothing comes from elsewhere."""
    import jupyterlite_pyodide_kernel as kernel

    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    pip += ["--require-hashes", "--only-binary=:all:", "--python-version=3.14", "--dest", str(folder)]
    subprocess.run([*pip, "-r", str(HERE / "lab.txt")], check=True)
    named = dict(re.findall(r"^([\w.-]+)==(\S+)", (HERE / "lab.txt").read_text(), re.M))
    wheels = [next(folder.glob(f"{name}-{version}-*.whl")) for name, version in named.items()]
    shipped = Path(sys.prefix, "share/jupyter/labextensions/@jupyterlite/pyodide-kernel-extension/static/pypi")
    wheels += [
        next(shipped.glob(f"{name}-{kernel.__version__}-*.whl" if name != "ipykernel" else f"{name}-*.whl"))
        for name in KERNEL
    ]
    there = live / "pyodide"
    for path in [*wheels, wheel]:
        shutil.copy(path, there)
    shim(there / "norch_live-1-py3-none-any.whl", live)
    lock = json.loads((there / "pyodide-lock.json").read_text())
    entries = [entry(path) for path in sorted(there.glob("*.whl"))]
    known = {one["name"] for one in entries}
    for one in entries:
        one["depends"] = [need for need in one["depends"] if need in known]
    lock["packages"] = {one["name"]: one for one in entries}
    (there / "pyodide-lock.json").write_text(json.dumps(lock, indent=1))


def build(site: Path) -> None:
    """JupyterLite without its source maps, two thirds of its bytes."""
    lab = site.resolve() / "lab"
    shutil.rmtree(lab, ignore_errors=True)
    settings = {
        "pyodideUrl": "../../_static/live/pyodide/pyodide.mjs",
        "disablePyPIFallback": True,
        "loadPyodideOptions": {"packages": LOADED},
    }
    config = {
        "appName": "norch",
        "contentsAllJsonFile": "all.json",
        "litePluginSettings": {"@jupyterlite/pyodide-kernel-extension:kernel": settings},
    }
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "jupyter-lite.json").write_text(
            json.dumps({"jupyter-lite-schema-version": 0, "jupyter-config-data": config})
        )
        run = [sys.executable, "-m", "jupyterlite_core", "build", "--no-sourcemaps", "--output-dir", str(lab)]
        made = subprocess.run(run, cwd=folder, capture_output=True, text=True)
        if made.returncode:
            sys.exit(made.stdout + made.stderr)
    contents(site / "notebooks", lab)


def contents(notebooks: Path, lab: Path) -> None:
    """The notebooks as files of JupyterLite, and the list of them, in the form of Jupyter's API."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    common = {"created": now, "last_modified": now, "writable": True, "mimetype": None, "content": None}
    found = []
    (lab / "files").mkdir(parents=True, exist_ok=True)
    for path in sorted(notebooks.glob("*.ipynb")):
        book = json.loads(path.read_text())
        if any(re.search(r'\["cc"|sklearn', "".join(cell["source"])) for cell in book["cells"]):
            cell = {"cell_type": "code", "id": "norch-live", "metadata": {}, "outputs": [], "execution_count": None}
            book["cells"].insert(0, {**cell, "source": ASSISTED})
        for cell in book["cells"]:
            if "raises-exception" in cell["metadata"].get("tags", []):  # which would end "Run All Cells"
                cell["source"] = textwrap.indent("".join(cell["source"]), "    ").join(RAISES)
        text = json.dumps(book, indent=1)
        (lab / "files" / path.name).write_text(text)
        found.append(
            {**common, "name": path.name, "path": path.name, "type": "notebook", "format": None, "size": len(text)}
        )
    folder = {**common, "name": "", "path": "", "type": "directory", "format": "json", "size": None, "content": found}
    api = lab / "api" / "contents"
    api.mkdir(parents=True, exist_ok=True)
    (api / "all.json").write_text(json.dumps(folder, indent=1))


if __name__ == "__main__":
    packages(*map(Path, sys.argv[1:])) if len(sys.argv) == 4 else build(Path(sys.argv[1]))
