"""Counts lines by folder, for `make check`: what there is to read, and how much of it is the trunk of trunk.py."""

import os
from pathlib import Path

import trunk

SOURCES = {".c", ".h", ".cu", ".cuh", ".cpp", ".def", ".py"}
PRODUCT = ["csrc", "norch"]
OTHERS = ["tests", "benchmarks", "examples"]


def files(*parts: str) -> list[str]:
    """The sources in files and folders, as paths from here."""
    found = [path for part in map(Path, parts) for path in ([part] if part.is_file() else part.rglob("*"))]
    return sorted({str(path) for path in found if path.suffix in SOURCES})


def trunk_files() -> dict[str, list[str]]:
    """The files of each part of the trunk."""
    left_out = set(files(*trunk.NOT_TRUNK.split()))
    return {part: [f for f in files(*names.split()) if f not in left_out] for part, names in trunk.TRUNK.items()}


def lines(paths: list[str]) -> int:
    return sum(len(Path(path).read_text().splitlines()) for path in paths)


def table() -> str:
    parts = trunk_files()
    whole = {path for paths in parts.values() for path in paths}
    rows = [f"{lines(paths):7d}  {part}: {' '.join(trunk.TRUNK[part].split())}" for part, paths in parts.items()]
    rows += [f"{lines(sorted(whole)):7d}  the trunk", "", "  lines   trunk"]
    product = files(*PRODUCT)
    for folder in sorted({os.path.dirname(path) for path in product}):
        inside = [path for path in product if os.path.dirname(path) == folder]
        in_trunk = lines([path for path in inside if path in whole])
        rows.append(f"{lines(inside):7d} {in_trunk or '':>7}  {folder}")
    rows.append(f"{lines(product):7d} {lines(sorted(whole)):7d}  the product: {' and '.join(PRODUCT)}")
    return "\n".join(rows + [f"{lines(files(folder)):7d}          {folder}" for folder in OTHERS])


if __name__ == "__main__":
    print(table())
