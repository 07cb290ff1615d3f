"""``norch.utils.hooks``: RemovableHandle, which register_..._hook() returns."""

from ..autograd.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
