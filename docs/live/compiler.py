"""What stands for a C compiler, for threads and for scikit-learn's digits in a page, which has none of them.

The C of chapters and solutions was compiled when the site was built (build.py); `subprocess.run(["cc", ...])` finds it
by the text's hash. A ThreadPoolExecutor runs what it is given at once. `load_digits` reads a file that build.py writes.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

COMPILED = Path(__file__).parent / "compiled"
NONE = """a page has no C compiler. It brings along what the site's own C compiles to: that of this chapter as it is
printed, and that of the solution. To compile C of your own, run it on your machine.
"""


def compiled(text: str) -> Path:
    """The file that holds what a C source compiles to."""
    return COMPILED / f"{hashlib.sha256(text.strip().encode()).hexdigest()[:16]}.so"


def run(command: Any, *, check: bool = False, **options: Any) -> subprocess.CompletedProcess[str]:
    """subprocess.run() of cc: copies what was compiled, or fails as a compiler would."""
    words = [str(word) for word in command]
    if words[0] not in ("cc", "gcc", "clang"):
        raise OSError(f"{words[0]}: a page starts no programs")
    found = compiled(Path(words[-1]).read_text())
    if found.exists():
        shutil.copy(found, words[words.index("-o") + 1])
    result = subprocess.CompletedProcess(command, 0 if found.exists() else 1, "", "" if found.exists() else NONE)
    if check and result.returncode:
        print(NONE)
        result.check_returncode()
    return result


class InPlace(concurrent.futures.Executor):
    """An executor that runs each call in the thread that submits it."""

    def __init__(self, max_workers: int | None = None, *_: Any, **__: Any):
        self._max_workers = max_workers or 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


def load_digits() -> types.SimpleNamespace:
    """The digits of scikit-learn: data (1797, 64), target (1797,), as tensors."""
    import norch

    read = bytearray((Path(__file__).parent / "digits.bin").read_bytes())
    rows = norch.frombuffer(read, dtype=norch.uint8).reshape(-1, 65)
    return types.SimpleNamespace(data=rows[:, :64].double(), target=rows[:, 64].long())


def install() -> None:
    """Puts them where programs look."""
    datasets: Any = types.ModuleType("sklearn.datasets")
    datasets.load_digits = load_digits
    sys.modules |= {"sklearn": types.ModuleType("sklearn"), "sklearn.datasets": datasets}
    subprocess.run = run  # type: ignore[assignment]
    concurrent.futures.ThreadPoolExecutor = InPlace  # type: ignore[assignment, misc]
