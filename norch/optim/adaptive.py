"""RMSprop (Hinton 2012), Adagrad (Duchi, Hazan and Singer 2011), Adadelta (Zeiler 2012) and Rprop (Riedmiller and Braun
1993)."""

from __future__ import annotations

from typing import Any

from .._package.options import KW_ONLY, options
from ..autograd import no_grad
from ..errors import Error
from ..tensor import Tensor
from .fused import Fused


@options
class RMSprop(Fused, row="rmsprop"):
    """RMSprop (Tieleman and Hinton 2012): a step is p -= lr * g / (sqrt(square) + eps), where square is the running
    average of g^2 with the factor alpha. centered subtracts the square of the running average of g from it (Graves
    2013). With momentum, buf = momentum * buf + g / (sqrt(square) + eps) and p -= lr * buf. Optimizer describes the
    other options.

    >>> p = norch.nn.Parameter(norch.ones(2))
    >>> opt = norch.optim.RMSprop([p], lr=0.01)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.data
    tensor([0.9000, 0.9000])
    """

    lr: float = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0
    momentum: float = 0
    centered: bool = False
    capturable: bool = False
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False

    def _kept(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        centered, momentum = group["centered"], group["momentum"] > 0
        return "square_avg", "grad_avg" if centered else None, "momentum_buffer" if momentum else None


@options
class Adagrad(Fused, row="adagrad"):
    """Adagrad (Duchi, Hazan and Singer 2011): a step is p -= lr / (1 + step * lr_decay) * g / (sqrt(sum) + eps), where
    sum is initial_accumulator_value plus the g^2 of all steps. A step with a sparse gradient changes only the elements
    of the gradient, and allows no weight_decay. Optimizer describes the other options.

    >>> p = norch.nn.Parameter(norch.ones(2))
    >>> opt = norch.optim.Adagrad([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.data
    tensor([0.5000, 0.5000])
    """

    lr: float = 1e-2
    lr_decay: float = 0
    weight_decay: float = 0
    initial_accumulator_value: float = 0
    eps: float = 1e-10
    foreach: bool | None = None
    _: KW_ONLY
    maximize: bool = False
    differentiable: bool = False
    fused: bool | None = None

    def __post_init__(self) -> None:
        for group in self.param_groups:
            for param in group["params"]:
                self._entry(param, group)

    def _advance(self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any], hyper: Any, at: int) -> None:
        dense = [i for i, grad in enumerate(grads) if not grad.is_sparse]
        if dense:
            super()._advance([params[i] for i in dense], [grads[i] for i in dense], group, hyper, at)
        for param, grad in zip(params, grads):
            if grad.is_sparse:
                self._advance_rows(param, grad, group)

    def _advance_rows(self, param: Tensor, grad: Any, group: dict[str, Any]) -> None:
        """Updates the elements of a sparse gradient."""
        if group["weight_decay"] != 0:
            raise Error("Adagrad: weight_decay cannot be used with sparse gradients")
        entry = self.state.get(param) or self._entry(param, group)
        grad = (-grad if group["maximize"] else grad).coalesce()
        with no_grad():
            entry["sum"].add_(grad.pow(2))
            root = entry["sum"].sparse_mask(grad).values().sqrt_().add_(group["eps"])
            rate = float(group["lr"]) / (1 + entry["step"] * group["lr_decay"])
            at, values = tuple(grad.indices()), grad.values() / root
            param.index_put_(at, values * -rate, accumulate=True)
        self._count(entry, group)

    def _first(self, group: dict[str, Any], name: str) -> float:
        return float(group["initial_accumulator_value"])


@options
class Adadelta(Fused, row="adadelta"):
    """Adadelta (Zeiler 2012): a step is p -= lr * delta with delta = sqrt(moved + eps) / sqrt(square + eps) * g. square
    and moved are the running averages of g^2 and delta^2 with the factor rho in [0, 1]. Optimizer describes the other
    options.

    >>> p = norch.nn.Parameter(norch.ones(2))
    >>> opt = norch.optim.Adadelta([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> bool((p < 1).all())
    True
    """

    lr: float = 1.0
    rho: float = 0.9
    eps: float = 1e-6
    weight_decay: float = 0
    foreach: bool | None = None
    _: KW_ONLY
    capturable: bool = False
    maximize: bool = False
    differentiable: bool = False


@options
class Rprop(Fused, row="rprop"):
    """Rprop (Riedmiller and Braun 1993): a step is p -= sign(g) * size. size starts at lr. It is multiplied by etas[1]
    while g keeps its sign and by etas[0] when the sign changes, and stays between the two step_sizes. A step in which
    the sign of g changes does not change p. ValueError unless 0 < etas[0] < 1 < etas[1]. Optimizer describes the other
    options.

    >>> p = norch.nn.Parameter(norch.ones(1))
    >>> opt = norch.optim.Rprop([p], lr=0.5)
    >>> p.sum().backward()
    >>> opt.step()
    >>> p.item()
    0.5
    """

    lr: float = 1e-2
    etas: tuple[float, float] = (0.5, 1.2)
    step_sizes: tuple[float, float] = (1e-6, 50)
    _: KW_ONLY
    capturable: bool = False
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False

    def _check_options(self, group: dict[str, Any]) -> None:
        super()._check_options(group)
        if not 0 < group["etas"][0] < 1 < group["etas"][1]:
            raise ValueError(f"invalid etas: {group['etas']!r}")

    def _first(self, group: dict[str, Any], name: str) -> float:
        return float(group["lr"]) if name == "step_size" else 0.0
