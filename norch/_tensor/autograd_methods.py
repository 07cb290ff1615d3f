"""The autograd attributes and methods of Tensor besides backward(): requires_grad, grad, grad_fn, detach(), hooks."""

from __future__ import annotations

from collections.abc import Callable

from .._binding.library import lib
from .._package import recording as _recording
from .._package.typing import Any, Tensor, TypeVar
from ..autograd.hooks import PostAccumulateHook, RemovableHandle, RetainGradHook, add_node_hook, retaining
from ..autograd.node import Leaf
from ..autograd.record import gradient_edge
from ..autograd.view_history import base_of
from ..errors import DTypeError, Error, stacklevel_of_user
from .handle import Handle, alias


class AutogradMethods(Handle):
    """These methods of Tensor."""

    __slots__ = ()

    @property
    def requires_grad(self) -> bool:
        """Whether autograd records operations on this tensor. It can be set on leaves.

        >>> x = norch.ones(2)
        >>> x.requires_grad = True
        >>> (x * 2).requires_grad
        True
        """
        return (self._node if self._view is None else gradient_edge(self)) is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Sets whether this tensor collects a gradient in .grad; floats or complex numbers only. TypeError unless the
        argument is a bool.
        """
        if requires_grad is not True and requires_grad is not False:
            raise TypeError(f"requires_grad_: requires_grad must be a bool, not {type(requires_grad).__name__}")
        node = gradient_edge(self)
        if not requires_grad:
            if node is not None and type(node) is not Leaf:
                raise Error("requires_grad: only a leaf can stop requiring grad; use detach() on a computed tensor")
            if node is not None:
                self._leaf = node  # with its hooks, and the edges that lead to it
            self._node = None
        elif node is None:
            if self.dtype.kind not in "fc":
                raise DTypeError(
                    f"requires_grad: only floats and complex numbers have gradients, not {self.dtype.name}"
                )
            self._node = self._leaf or Leaf(self)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether this tensor is a leaf of the graph: no recorded operation computed it.

        >>> x = norch.ones(2, requires_grad=True)
        >>> x.is_leaf, (x * 2).is_leaf
        (True, False)
        """
        node = self._node if self._view is None else gradient_edge(self)
        return node is None or type(node) is Leaf

    @property
    def _base(self: T) -> T | None:
        """The tensor of which this one is a view. None if it is no view, or if the view was not recorded."""
        return base_of(self)

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def grad_fn(self) -> Any:
        """The node of the operation that computed this tensor; None for leaves.

        >>> x = norch.ones(2, requires_grad=True)
        >>> x.grad_fn, (x * 2).grad_fn.name()
        (None, 'MulBackward')
        """
        node = gradient_edge(self)
        return None if type(node) is Leaf else node

    def detach(self) -> Tensor:
        """A tensor of the same memory outside any graph.

        >>> norch.ones(2, requires_grad=True).detach().requires_grad
        False
        """
        return alias(self)

    @property
    def data(self) -> Tensor:
        """A tensor of the same memory outside any graph; autograd does not notice writes to it.

        >>> x = norch.ones(2, requires_grad=True)
        >>> x.data.mul_(3)
        tensor([3., 3.])
        """
        return lib.norch_alias(self)

    @data.setter
    def data(self, other: Tensor) -> None:
        if not isinstance(other, Handle):
            raise TypeError(f"data: expected a tensor, not {type(other).__name__}")
        if other._in_coordinates:
            raise TypeError("data: a dense tensor does not become a sparse one")
        if other.dtype is not self.dtype and self._node is not None and other.dtype.kind not in "fc":
            raise DTypeError(f"data: a tensor that requires grad cannot become {other.dtype.name}")
        lib.norch_set_data(self, other)
        self._version_counter = self._view = None

    def detach_(self: T) -> T:
        """Takes this tensor out of the graph that computed it: detach() in place."""
        if self._view is not None and self._node is not None:
            raise Error("detach_: a view cannot leave the graph of its base; use detach()")
        if type(self._node) is Leaf:
            self._leaf = self._node
        self._node = None
        return self

    @property
    def grad(self) -> Tensor | None:
        """The sum of the gradients of backward(); None before the first.

        >>> x = norch.tensor([3.0], requires_grad=True)
        >>> (x * x).backward()
        >>> x.grad
        tensor([6.])
        """
        g = lib.norch_grad_of(self) if _recording.traced else self._grad  # a recording notes that it is read
        if g is None and not (self.is_leaf or self.retains_grad):  # type: ignore[attr-defined]
            import warnings

            message = "grad: backward() sets it of leaves, and of other tensors after retain_grad()"
            warnings.warn(message, stacklevel=stacklevel_of_user())
        return g

    @grad.setter
    def grad(self, g: Tensor | None) -> None:
        if g is not None:
            if not isinstance(g, Handle):
                raise TypeError(f"grad: a gradient is a tensor or None, not {type(g).__name__}")
            if g is self:
                raise Error("grad: a tensor cannot be its own gradient")
            if g._dtype != self._dtype or g.shape != self.shape or g.device != self.device:
                raise Error(
                    f"grad: a gradient of {g.dtype} and shape {tuple(g.shape)} on {g.device} "
                    f"for a tensor of {self.dtype} and shape {tuple(self.shape)} on {self.device}"
                )
        if _recording.traced:
            lib.norch_note_set_grad(self)
        self._grad = g

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def retain_grad(self) -> None:
        """Makes backward() keep the gradient in .grad of this tensor, even if it is not a leaf.

        >>> y = norch.ones(1, requires_grad=True) * 2
        >>> y.retain_grad()
        >>> (y * 3).backward()
        >>> y.grad
        tensor([3.])
        """
        node = self._hookable("retain_grad")
        if type(node) is not Leaf:
            if not retaining(node.hooks, self):
                node.hooks = [*(node.hooks or ()), RetainGradHook(self)]

    def register_hook(self: T, hook: Callable[[T], Any]) -> RemovableHandle:
        """Calls hook(gradient) when the gradient of this tensor is complete; a result other than None replaces it.

        >>> x = norch.ones(1, requires_grad=True)
        >>> hook = x.register_hook(lambda gradient: gradient * 10)
        >>> (x * 2).backward()
        >>> x.grad
        tensor([20.])
        """
        if not callable(hook):
            raise TypeError(f"register_hook: expected a function of the gradient, not {type(hook).__name__}")
        return add_node_hook(self._hookable("register_hook"), hook)

    def register_post_accumulate_grad_hook(self: T, hook: Callable[[T], None]) -> RemovableHandle:
        """Calls hook(tensor) when backward() has added to the .grad of this tensor, a leaf.

        >>> w = norch.ones(2, requires_grad=True)
        >>> handle = w.register_post_accumulate_grad_hook(lambda w: print(w.grad))
        >>> (w * 3).sum().backward()
        tensor([3., 3.])
        """
        node = self._hookable("register_post_accumulate_grad_hook")
        if type(node) is not Leaf:
            raise Error("register_post_accumulate_grad_hook: only a leaf collects a gradient")
        return add_node_hook(node, PostAccumulateHook(hook))

    def _hookable(self, name: str) -> Any:
        node = gradient_edge(self)
        if node is None:
            raise Error(f"{name}: this tensor does not require grad")
        return node.apart(self)

    @property
    def _version(self) -> int:
        """The sequence number, as nodes have, of the last in-place write; 0 if there was none."""
        return self._version_counter[0] if self._version_counter else 0


T = TypeVar("T", bound=AutogradMethods)
