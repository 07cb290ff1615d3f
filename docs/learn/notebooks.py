"""Chapters as Jupyter notebooks, run from top to bottom: `make site` puts them into build/site/notebooks.

python docs/learn/notebooks.py FOLDER [CHAPTER...]
"""

import doctest
import re
import sys
from pathlib import Path

import chapter
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent


def notebook(path):
    """A cell for each block of Python, and for the text between them. Examples that raise have a tag that lets them."""
    made = nbformat.v4.new_notebook()
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    page = path.read_text(encoding="utf-8")
    page = re.sub(r"\]\(([\w/.]*)\.md\)", r"](../learn/\1.html)", page)
    page = re.sub(r"\]\((\w+\.svg)\)", r"](../_images/\1)", page)
    for at, part in enumerate(re.split(r"^```python\n(.*?)^```$\n?", page, flags=re.M | re.S)):
        text = part.strip("\n")
        if at % 2 == 0:
            made.cells += [nbformat.v4.new_markdown_cell(text)] if text else []
        elif not text.startswith(">>>"):
            made.cells.append(nbformat.v4.new_code_cell(text))
        else:
            for example in doctest.DocTestParser().get_examples(text):
                cell = nbformat.v4.new_code_cell(example.source.rstrip("\n"))
                cell.metadata.tags = ["raises-exception"] if example.exc_msg else []
                made.cells.append(cell)
    return made


def main(folder, *chapters):
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    for name in chapters or [path.stem for path in chapter.CHAPTERS]:
        made = notebook(HERE / f"{name}.md")
        NotebookClient(made, timeout=300, resources={"metadata": {"path": str(HERE)}}).execute()
        nbformat.write(made, out / f"{name}.ipynb")
        print(f"wrote {out / name}.ipynb")


if __name__ == "__main__":
    main(*sys.argv[1:])
