"""``norch._C``: functions of PyTorch's private module that libraries call. They do not change results, and have no
effect."""

import sys
from typing import Any

from .._package.exports import publish
from .._tensor.copying import disabled_torch_dispatch as _disabled_torch_dispatch_impl  # noqa: F401
from ..tensor import disabled_torch_function as _disabled_torch_function_impl  # noqa: F401


def _log_api_usage_once(name: str) -> None:
    """Logs nothing."""


def _get_tracing_state() -> Any:
    """The trace that this thread records (trace_graph.py), or None."""
    traced = sys.modules.get("norch.compat.trace_graph")
    return None if traced is None else traced.here.tracing


def _is_tracing() -> bool:
    """Whether this thread records a trace."""
    return _get_tracing_state() is not None


def _jit_set_profiling_executor(enabled: bool) -> bool:
    """Returns the old setting; nothing is compiled."""
    return False


def _jit_set_profiling_mode(enabled: bool) -> bool:
    """Returns the old setting; nothing is compiled."""
    return False


publish(globals(), {"...overrides": "DisableTorchFunction DisableTorchFunctionSubclass"})
