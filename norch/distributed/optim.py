"""ZeroRedundancyOptimizer: each rank keeps the optimizer's state of some parameters only (Rajbhandari et al., ZeRO,
SC 2020, stage 1: P_os).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._package.exports import publish
from ..autograd import enable_grad
from ..errors import Error
from ..optim.optimizer import Optimizer, Params
from . import collectives, objects
from .process_group import ProcessGroup, group_of

__all__ = ["ZeroRedundancyOptimizer"]
publish(globals())


class ZeroRedundancyOptimizer(Optimizer):
    """optimizer_class(params, **defaults), divided over the ranks. Each rank updates its part of the parameters and
    receives the others from the ranks that updated them, so it keeps about 1 / ranks of the state. Gradients must be
    the same on all ranks, as they are after DistributedDataParallel.

    optimizer_class must skip parameters without a gradient, as the optimizers of norch.optim do. TypeError for LBFGS,
    which cannot be divided. overlap_with_ddp=True is refused; the other options of PyTorch have no effect.

    >>> model = norch.nn.Linear(2, 1)
    >>> optimizer = ZeroRedundancyOptimizer(model.parameters(), norch.optim.Adam, lr=1e-3)
    """

    def __init__(
        self,
        params: Params,
        optimizer_class: Callable[..., Optimizer],
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        name = "ZeroRedundancyOptimizer"
        if overlap_with_ddp:
            raise NotImplementedError(f"{name}: overlap_with_ddp is not supported")
        if getattr(optimizer_class, "__name__", "") == "LBFGS":
            raise TypeError(f"{name}: LBFGS steps all parameters together")
        self.process_group = group_of(process_group, name)
        self.optim = optimizer_class(params, **defaults)
        super().__init__(self.optim.param_groups, self.optim.defaults)
        self._share()
        self._owners: dict[Any, int] = {}  # the rank in the world that updates each parameter
        self._loads = [0] * self.process_group.size()
        self._assign()
        self._whole: dict[str, Any] | None = None

    def _share(self) -> None:
        """Shares groups and state with the inner optimizer, so that schedules change the inner rates too."""
        self.param_groups, self.state = self.optim.param_groups, self.optim.state

    def _assign(self) -> None:
        """Gives each new parameter to the rank with the fewest elements; the largest parameters come first."""
        new = [p for group in self.param_groups for p in group["params"] if p not in self._owners]
        for p in sorted(new, key=lambda p: -p.numel()):
            at = self._loads.index(min(self._loads))
            self._owners[p] = self.process_group.ranks[at]
            self._loads[at] += p.numel()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group, whose parameters are distributed over the ranks like the others."""
        if "_owners" not in self.__dict__:
            return super().add_param_group(param_group)
        self.optim.add_param_group(param_group)
        return self._assign()

    def _is_mine(self, p: Any) -> bool:
        return self._owners[p] == self.process_group.ranks[self.process_group.rank()]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates this rank's parameters. Then each rank broadcasts its part, so that all ranks have all parameters."""
        loss = self._whole = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        not_mine = [(p, p.grad) for p in self._owners if not self._is_mine(p)]
        try:
            for p, _ in not_mine:
                p.grad = None
            self.optim.step()
        finally:
            for p, grad in not_mine:
                p.grad = grad
        for p, owner in self._owners.items():
            collectives.broadcast(p.detach(), owner, self.process_group)
        return loss

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Sends the state of all ranks to rank `to`, for its state_dict(). All ranks call it."""
        group = self.process_group
        is_there = group.ranks[group.rank()] == to
        parts: list[Any] | None = [None] * group.size() if is_there else None
        mine = self.optim.state_dict()
        objects.gather_object(mine["state"], parts, to, group)
        if parts is not None:
            self._whole = {**mine, "state": dict(sorted(pair for part in parts for pair in part.items()))}

    def state_dict(self) -> dict[str, Any]:
        """The state dict of an optimizer_class without ranks, of all parameters. Error unless consolidate_state_dict()
        was called since the last step, on the rank that it names."""
        if self._whole is None:
            raise Error(
                "ZeroRedundancyOptimizer: call consolidate_state_dict(to=rank) on all ranks before state_dict()"
            )
        return self._whole

    def _state_dict_of_rank(self) -> dict[str, Any]:
        """The state of this rank's parameters, and all options: checkpoint.py joins the parts."""
        return self.optim.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state_dict(), for any number of ranks, or the state dict of a single optimizer_class."""
        state = state_dict["state"] if isinstance(state_dict, dict) and "state" in state_dict else {}
        params = [p for group in self.param_groups for p in group["params"]]
        mine = {i for i, p in enumerate(params) if self._is_mine(p)}
        kept = {number: entry for number, entry in state.items() if number in mine}
        self.optim.load_state_dict({**state_dict, "state": kept})
        self._whole = None
        self._share()
