"""The examples in docstrings run, and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import norch

FOUND = pkgutil.walk_packages(norch.__path__, "norch.")
MODULES = ["norch", *(module.name for module in FOUND if "libnorch" not in module.name)]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    norch.manual_seed(0)
    module = importlib.import_module(name)
    names = {"norch": norch, "nn": norch.nn, "F": norch.nn.functional, "optim": norch.optim}
    result = doctest.testmod(module, extraglobs=names, optionflags=FLAGS)
    assert not result.failed


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = sum(len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name)))
    assert found > 150
