"""Helpers around training: the face of the folder, which defines nothing."""

from . import checkpoint as checkpoint
from . import data as data

__all__ = ["checkpoint", "data"]
