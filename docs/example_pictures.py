"""Makes the pictures of examples.md, by running the examples: python docs/example_pictures.py [NAME ...].

They are reduced to the width of a page and 64 colours, by Pillow, which matplotlib brings along.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parent
WIDEST, COLORS = 1100, 64


def pictures():
    """The picture of each example on the page."""
    found = re.findall(r"^!\[.*\]\((examples/(\w+)\.png)\)", (DOCS / "examples.md").read_text(), re.M)
    return {"digits": DOCS / "demo.png"} | {name: DOCS / path for path, name in found}


def make(name, path):
    with tempfile.TemporaryDirectory() as folder:
        drawn = os.path.join(folder, "drawn.png")
        environment = {**os.environ, "PYTHONPATH": str(DOCS.parent)}
        subprocess.run(
            [sys.executable, DOCS.parent / f"examples/{name}.py", "--out", drawn], env=environment, check=True
        )
        picture = Image.open(drawn).convert("RGB")
        picture.thumbnail((WIDEST, WIDEST), Image.Resampling.LANCZOS)
        picture.quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    chosen = pictures()
    for name in sys.argv[1:] or chosen:
        make(name, chosen[name])
        print(name)
