"""``norch._C``: what libraries call of PyTorch's private module. None of it changes a result, so it does nothing."""

import sys
from typing import Any

from .._package.exports import publish
from ..tensor import disabled_torch_function as _disabled_torch_function_impl  # noqa: F401


def _log_api_usage_once(name: str) -> None:
    """Nothing is logged."""


def _get_tracing_state() -> Any:
    """The trace of this thread (trace_graph.py), None where there is none."""
    traced = sys.modules.get("norch.compat.trace_graph")
    return None if traced is None else traced.here.tracing


def _is_tracing() -> bool:
    """Whether this thread makes a trace."""
    return _get_tracing_state() is not None


def _jit_set_profiling_executor(enabled: bool) -> bool:
    """The setting before: nothing is compiled."""
    return False


def _jit_set_profiling_mode(enabled: bool) -> bool:
    """The setting before: nothing is compiled."""
    return False


publish(globals(), {"...overrides": "DisableTorchFunction DisableTorchFunctionSubclass"})
