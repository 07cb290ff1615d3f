"""``norch.profiler``: the time of each operation of a program, the line that called it, and its module
(docs/seeing.md)."""

from .._package.exports import publish as _publish
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
