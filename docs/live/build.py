"""Builds what the live pages load: `make site` calls it.

python docs/live/build.py OUT NODE_MODULES WHEEL CC LINK

OUT/live gets the editor, Pyodide, and norch.zip: norch's wheel, the session, byte code of both (bytecode.mjs), and
what the C of chapters and solutions compiles to. CC and LINK are the commands for a side module of Pyodide: of C, and
of its object files.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEARN = HERE.parent / "learn"
sys.path[:0] = [str(HERE), str(LEARN)]
from chapter import blocks  # noqa: E402
from compiler import compiled  # noqa: E402

PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
ZIP_TIME = (2026, 1, 1, 0, 0, 0)  # the same files make the same archive


def c_sources() -> list[str]:
    """The strings of chapters and solutions that are C."""
    texts = [block for page in sorted(LEARN.glob("*.md")) for block in blocks(page) if not block.startswith(">>>")]
    texts += [path.read_text() for path in sorted((LEARN / "solutions").glob("*.py"))]
    constants = (node.value for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return [value for value in constants if isinstance(value, str) and re.search(r"^#include <", value, re.M)]


def side_module(source: str, cc: str, link: str) -> bytes:
    """A library for Pyodide's ctypes, which exports each function that the source defines."""
    exports = re.findall(r"^(?!static)[a-z].*?\b(\w+)\([^;]*\) \{", source, re.M)
    with tempfile.TemporaryDirectory() as folder:
        text, out = Path(folder, "source.c"), Path(folder, "out.so")
        text.write_text(source)
        options = ["-std=gnu11", "-O3", "-msimd128", "-ffp-contract=fast", "-fPIC", "-fvisibility=default"]
        subprocess.run([*shlex.split(cc), *options, "-c", "-o", f"{folder}/source.o", text], check=True)
        subprocess.run(
            [*shlex.split(link), *[f"--export={name}" for name in exports], "-o", out, f"{folder}/source.o"], check=True
        )
        return out.read_bytes()


def archive(path: Path, wheel: Path, files: dict[str, bytes]) -> None:
    """A zip of the wheel's files and others."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out, zipfile.ZipFile(wheel) as given:
        for name in given.namelist():
            files.setdefault(name, given.read(name))
        for name, data in files.items():
            out.writestr(zipfile.ZipInfo(name, ZIP_TIME), data, zipfile.ZIP_DEFLATED)


def digits() -> bytes:
    """1,797 handwritten digits of scikit-learn: 64 numbers of 0 to 16 each, then the digit."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return b"".join(bytes([*map(int, image), label]) for image, label in zip(found.data, found.target))


def licences(modules: Path, out: Path) -> None:
    """The licences of what is bundled, in one file."""
    texts = []
    for package in sorted(
        {*modules.glob("@codemirror/*"), *modules.glob("@lezer/*"), *modules.glob("@marijn/*"), *modules.glob("*")}
    ):
        if (
            (package / "package.json").exists()
            and package.name not in ("esbuild", "ws")
            and package.parent.name not in ("@esbuild", "@types")
        ):
            about = json.loads((package / "package.json").read_text())
            found = [path.read_text() for path in sorted(package.glob("LICEN[CS]E*"))]
            texts.append(
                f"{about['name']} {about['version']}: {about.get('license', '')}\n\n"
                + ("".join(found) or about.get("homepage", ""))
            )
    texts.append((HERE / "NOTICE").read_text())
    out.write_text(("\n\n" + "-" * 80 + "\n\n").join(texts))


def main(out: str, modules: str, wheel: str, cc: str, link: str) -> None:
    live = Path(out, "live")
    shutil.rmtree(live, ignore_errors=True)
    (live / "pyodide").mkdir(parents=True)
    for name in PYODIDE:
        shutil.copyfile(Path(modules, "pyodide", name), live / "pyodide" / name)
    bundler = [
        Path(modules, "esbuild/bin/esbuild"),
        HERE / "editor.js",
        "--bundle",
        "--minify",
        "--format=esm",
        "--log-level=warning",
    ]
    subprocess.run(
        [*bundler, f"--outfile={live / 'editor.js'}"], check=True, env={"PATH": "/usr/bin:/bin", "NODE_PATH": modules}
    )
    files = {name: (HERE / name).read_bytes() for name in ("session.py", "compiler.py")}
    files |= {f"compiled/{compiled(text).name}": side_module(text, cc, link) for text in c_sources()}
    files["digits.bin"] = digits()
    archive(live / "norch.zip", Path(wheel), files)
    subprocess.run(["node", HERE / "bytecode.mjs", live], check=True)
    licences(Path(modules), live / "LICENCES.txt")
    fetched = [path for path in [*(live / "pyodide").iterdir(), live / "norch.zip"] if path.suffix != ".mjs"]
    (live / "sizes.json").write_text(json.dumps({"total": sum(path.stat().st_size for path in fetched)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
