"""Unpacks the library of a Python for embedding, as an installed Python has it.

    python.exe tests/windows/unpack.py ARCHIVE FOLDER

In the archive the code of a module names its file without a folder. In FOLDER it names the place where the module
is, by which norch.capture knows Python's own library. It is run by that Python: no other one reads its code objects.
"""

from __future__ import annotations

import marshal
import os
import sys
import types
import zipfile

HEADER = 16  # bytes of a .pyc before its code


def placed(code: types.CodeType, path: str) -> types.CodeType:
    """The code and what is defined in it, with the name of their file."""
    inner = tuple(placed(one, path) if isinstance(one, types.CodeType) else one for one in code.co_consts)
    return code.replace(co_filename=path, co_consts=inner)


def main(archive: str, folder: str) -> None:
    with zipfile.ZipFile(archive) as files:
        for name in files.namelist():
            path, data = os.path.join(folder, *name.split("/")), files.read(name)
            if name.endswith(".pyc"):
                data = data[:HEADER] + marshal.dumps(placed(marshal.loads(data[HEADER:]), path[:-1]))
            if not name.endswith("/"):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
