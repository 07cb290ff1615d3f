"""What the tests of PyTorch's databases share: opening one, and counting what was compared."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def opened(name: str) -> Any:
    """The module `name` of this folder, which reads a database of PyTorch."""
    pytest.importorskip("torch", "2.13")
    pytest.importorskip("expecttest", reason="torch.testing's databases import it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


def differences(
    cases: Iterable[Any], check: Callable[[Any], Any], title: Callable[[Any], str], not_compared: type[Exception]
) -> tuple[dict[str, Any], int]:
    """The differences that check() finds, by the title of the case, and how many cases it compared."""
    found, compared = {}, 0
    for case in cases:
        try:
            difference = check(case)
        except not_compared:
            continue
        compared += 1
        if difference:
            found[title(case)] = difference
    return found, compared
