"""A pytest plugin that runs files of PyTorch's own test suite on norch: `torch` means norch, but for torch.testing,
which comes from the sources that the tests come from. test_pytorch_suite.py fetches these and runs it.

The wording of errors is norch's own, so that assertRaisesRegex() compares the class alone.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import norch

SOURCES = Path(os.environ.get("NORCH_PYTORCH_SOURCES", ""))
OF_SOURCES = ("torch.testing._internal", "torch.testing._comparison", "torch.testing._creation")


class _Stub(ModuleType):
    """A module of PyTorch's build that tests import and norch has not: each of its names is a class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        members = {
            "__init__": lambda self, *_, **__: None,
            "__call__": lambda self, *args, **_: args[0] if args else None,
        }
        setattr(self, name, cls := type(name, (), members))
        return cls


class _HigherOrderOperator:
    """Stands for PyTorch's class, so that the tests of it are skipped."""

    def __init__(self, *_: Any) -> None:
        pass

    def py_impl(self, key: Any) -> Any:
        return lambda function: function

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise unittest.SkipTest("norch has no HigherOrderOperator")


class _FromSources(importlib.abc.MetaPathFinder):
    """Finds the modules of OF_SOURCES, and those below, in PyTorch's sources."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith(OF_SOURCES):
            return None
        file = SOURCES / name.replace(".", "/")
        if file.is_dir():
            folder = [str(file)]
            return importlib.util.spec_from_file_location(name, file / "__init__.py", submodule_search_locations=folder)
        path = str(file.with_suffix(".py"))
        loader = _OperationDatabase(name, path) if name.endswith(".opinfo.core") else None
        return importlib.util.spec_from_file_location(name, path, loader=loader)


class _OperationDatabase(importlib.machinery.SourceFileLoader):
    """Loads the operation database's core, and skips the operations that norch has not."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        module._getattr_qual = _found_or_skipped(module._getattr_qual)  # type: ignore[attr-defined]


class _Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stub for every other module of torch that norch has not."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.startswith("torch.") else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


@contextlib.contextmanager
def _rng_state_kept() -> Iterator[None]:
    state = norch.get_rng_state()
    try:
        yield
    finally:
        norch.set_rng_state(state)


def _enter() -> None:
    """Makes torch mean norch, and gives the suite what it asks PyTorch's own build."""
    norch.as_torch()
    torch = importlib.import_module("torch")
    importlib.import_module("torch.testing")
    sys.meta_path.insert(0, _FromSources())
    sys.meta_path.append(_Stubs())
    sys.path.insert(0, str(SOURCES / "test"))
    torch.backends.disable_global_flags = lambda: None
    torch._C.has_lapack = torch._C.has_spectral = True
    torch.__future__ = future = _Stub("torch.__future__")
    for setting in ("swap_module_params_on_conversion", "overwrite_module_params_on_conversion"):
        setattr(future, f"get_{setting}", lambda: False)
        setattr(future, f"set_{setting}", lambda value: None)
    torch.jit.TracerWarning.ignore_lib_warnings = lambda: None
    torch._mkldnn, torch._segment_reduce = _Stub("torch._mkldnn"), torch.segment_reduce
    torch._nnpack_available = torch._C._get_graph_executor_optimize = lambda *_: False
    torch._C._jit_set_profiling_executor = torch._C._jit_set_profiling_mode = lambda *_: False
    torch.cuda.jiterator._create_jit_fn = torch.cuda.jiterator._create_multi_output_jit_fn = lambda *_, **__: None
    torch._C._debug_only_are_vmap_fallback_warnings_enabled = lambda: False
    torch._C._debug_only_display_vmap_fallback_warnings = lambda value: None
    torch.backends.quantized.supported_engines = []
    torch.Tensor.__rdiv__ = torch.Tensor.__rtruediv__
    importlib.import_module("functorch").__path__ = []
    for name in ("functorch.experimental", "functorch.experimental.control_flow", "functorch.compile"):
        sys.modules[name] = _Stub(name)
    torch._ops.HigherOrderOperator = _HigherOrderOperator
    torch._utils_internal.get_file_path_2 = lambda *_: os.devnull
    importlib.import_module("torch._custom_op.impl").global_registry = {}
    passes: Any = importlib.import_module("torch.fx.passes.dialect.common.cse_pass")
    passes.CSEPass, passes.get_CSE_banned_ops = _Stub("passes").CSEPass, set
    imports = importlib.import_module("torch.utils._import_utils")
    imports._check_module_exists = lambda name: importlib.util.find_spec(name) is not None
    imports.import_dill = lambda: None
    importlib.import_module("torch.testing._utils").freeze_rng_state = _rng_state_kept
    importlib.import_module("torch.optim.lr_scheduler").EPOCH_DEPRECATION_WARNING = ""
    for name in OF_SOURCES[1:]:
        sys.modules.pop(name, None)
        setattr(torch.testing, name.rpartition(".")[2], importlib.import_module(name))
    torch.testing.make_tensor = torch.testing._creation.make_tensor
    torch.testing.assert_close = torch.testing._comparison.assert_close
    for check in ("gradcheck", "gradgradcheck"):
        setattr(torch.autograd, check, _backward_only(getattr(torch.autograd, check)))
    for name in ("hypothesis_utils", "common_quantized", "common_quantization"):  # of quantised tensors
        name = f"torch.testing._internal.{name}"
        sys.modules[name] = _Stub(name)
    importlib.import_module("torch.testing._internal.optests").generate_opcheck_tests = lambda *_, **__: None
    common: Any = importlib.import_module("torch.testing._internal.common_utils")
    common.TestCase.assertRaisesRegex = lambda self, error, _, *args, **named: unittest.TestCase.assertRaises(
        self, error, *args, **named
    )


def _found_or_skipped(find: Any) -> Any:
    """The function by which the operation database finds a function; where norch has none, its tests are skipped."""

    def found(module: Any, name: str, *default: Any) -> Any:
        try:
            return find(module, name, *default)
        except AttributeError:

            def missing(*_: Any, **__: Any) -> Any:
                raise unittest.SkipTest(f"norch has no {name}")

            missing.__name__ = name
            return missing

    return found


def _backward_only(check: Any) -> Any:
    """gradcheck() without the checks of forward mode and of batched gradients."""

    def checked(*args: Any, **named: Any) -> Any:
        kept = ("eps", "atol", "rtol", "raise_exception", "nondet_tol", "gen_non_contig_grad_outputs")
        return check(*args, **{name: value for name, value in named.items() if name in kept})

    return checked


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """A test that asks for what norch leaves out is skipped."""
    report = yield
    if report.failed and re.search(r"leaves it out|leaves out|dtypes that norch has not", str(call.excinfo.value)):
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {call.excinfo.value}")
    return report


def pytest_runtest_teardown() -> None:
    """Removes the hooks of all modules that a failed test leaves."""
    from norch.nn import _hooks

    for hooks in _hooks.GLOBAL_HOOKS:
        for key in list(hooks):
            del hooks[key]


if SOURCES != Path():
    _enter()
