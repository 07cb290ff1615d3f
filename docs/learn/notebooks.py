"""Chapters as Jupyter notebooks, run from top to bottom: `make site` puts them into build/site/notebooks.

python docs/learn/notebooks.py FOLDER [CHAPTER...]
"""

import base64
import doctest
import re
import sys
from pathlib import Path

import chapter
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent


def _data_url(drawing):
    return "data:image/svg+xml;base64," + base64.b64encode((HERE / drawing).read_bytes()).decode()


def notebook(path):
    """A cell for each block of Python, each drawing, and the text between them. Examples that raise have a tag that
    lets them. A drawing is a data URL, so that a downloaded notebook shows it."""
    made = nbformat.v4.new_notebook()
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    page = path.read_text(encoding="utf-8")
    page = re.sub(r"\]\((\w+)\.md\)", r"](\1.ipynb)", page)
    page = re.sub(r"\[([^\]]*)\]\(\.\./(\w+)\.md\)", r"\1 (docs/\2.md)", page)  # a notebook has no path to the site
    for at, part in enumerate(re.split(r"^```python\n(.*?)^```$\n?", page, flags=re.M | re.S)):
        text = part.strip("\n")
        if at % 2 == 0:
            for piece in re.split(r"^(!\[.*\]\(\w+\.svg\))$", text, flags=re.M):
                if piece.strip():
                    piece = re.sub(r"\]\((\w+\.svg)\)", lambda found: f"]({_data_url(found[1])})", piece.strip("\n"))
                    made.cells.append(nbformat.v4.new_markdown_cell(piece))
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
