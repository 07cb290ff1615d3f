"""``norch.utils.hooks``: the class of what register_..._hook() gives."""

from ..autograd.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
