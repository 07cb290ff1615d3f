"""``norch.profiler``: what each operation of a program took, where it was called, and in which module
(docs/seeing.md)."""

from .._exports import publish as _publish
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
_publish(globals())
