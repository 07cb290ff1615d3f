"""``norch.profiler``: what each operation of a program took, where it was called, and in which module
(docs/seeing.md)."""

from .._left_out import nothing_more as _nothing_more
from .profile import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip
__dir__ = __all__.copy  # completion shows the public names only

__getattr__ = _nothing_more(__name__)
