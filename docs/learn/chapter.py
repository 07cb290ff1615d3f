"""The code of a chapter, for the tests and the pictures."""

import re
from pathlib import Path

LEARN = Path(__file__).resolve().parent
# In the order of their numbers.
CHAPTERS = sorted(LEARN.glob("[0-9]*_*.md"), key=lambda path: int(path.stem.partition("_")[0]))


def blocks(path):
    """The blocks of Python of a page, from its top to its bottom; those that begin with >>> show what comes out."""
    return re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S)


def run(path):
    """The names that the blocks make, but for those that show something."""
    names = {"__name__": path.stem}
    for at, block in enumerate(blocks(path)):
        if not block.startswith(">>>"):
            exec(compile(block, f"{path.name}, block {at}", "exec"), names)
    return names
