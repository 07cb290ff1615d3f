"""Averages of weights over training steps: stochastic weight averaging (Izmailov et al. 2018, algorithm 1) and
exponential moving averages (Polyak and Juditsky 1992).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

from .._package.exports import publish
from ..autograd import no_grad
from ..errors import ArgumentError, one_of
from ..nn.module import Module
from ..nn.norm import _BatchNorm
from ..ops.values import tensor
from ..tensor import Tensor
from .optimizer import Optimizer
from .schedule import LRScheduler, _copied, one_a_group

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip

Average = Callable[[Tensor, Tensor, Any], Tensor]
MultiAverage = Callable[[list[Tensor], list[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """A function (average, current, count) that returns decay * average + (1 - decay) * current.

    >>> norch.optim.swa_utils.get_ema_avg_fn(0.75)(norch.tensor(4.0), norch.tensor(8.0), 1)
    tensor(5.)
    """
    if not 0 <= decay <= 1:
        raise ArgumentError(f"decay must be in [0, 1], not {decay}")
    return no_grad()(lambda average, current, count: decay * average + (1 - decay) * current)


def get_swa_avg_fn() -> Average:
    """A function (average, current, count) that returns the mean of `current` and `count` values averaged before.

    >>> norch.optim.swa_utils.get_swa_avg_fn()(norch.tensor(2.0), norch.tensor(5.0), 2)
    tensor(3.)
    """
    return no_grad()(lambda average, current, count: average + (current - average) / (count + 1))


def _of_lists(average: Average) -> MultiAverage:
    @no_grad()
    def update(averages: list[Tensor], currents: list[Tensor], count: Any) -> None:
        for mine, theirs in zip(averages, currents, strict=True):
            mine.copy_(average(mine, theirs, count))

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """get_ema_avg_fn() for lists of tensors. The function updates the averages in place.

    >>> averages = [norch.tensor(1.0), norch.tensor(2.0)]
    >>> norch.optim.swa_utils.get_ema_multi_avg_fn(0.5)(averages, [norch.tensor(3.0), norch.tensor(4.0)], 1)
    >>> averages
    [tensor(2.), tensor(3.)]
    """
    return _of_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> MultiAverage:
    """get_swa_avg_fn() for lists of tensors. The function updates the averages in place.

    >>> averages = [norch.tensor(2.0)]
    >>> norch.optim.swa_utils.get_swa_multi_avg_fn()(averages, [norch.tensor(5.0)], 2)
    >>> averages
    [tensor(3.)]
    """
    return _of_lists(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of model, on device unless that is None, whose parameters are averages.

    The first update_parameters(model) copies the parameters. Later calls average them, with equal weights by default.
    avg_fn(average, current, n_averaged) returns the new average of a parameter; multi_avg_fn takes lists and writes to
    the first. Buffers are averaged with use_buffers=True, and copied otherwise.

    >>> model = norch.nn.Linear(1, 1, bias=False)
    >>> average = norch.optim.swa_utils.AveragedModel(model, avg_fn=norch.optim.swa_utils.get_ema_avg_fn(0.5))
    >>> for value in (1.0, 3.0):
    ...     _ = norch.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average(norch.ones(1)).item()
    2.0
    """

    n_averaged: Tensor
    _averaged: tuple[Tensor, int] | None = None  # n_averaged, and a non-zero version of it

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError("AveragedModel: give avg_fn or multi_avg_fn, not both")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Adds the parameters of a model with the same structure to the averages."""
        groups: dict[Any, list[tuple[Tensor, Tensor]]] = {}  # by device and dtype, for a multi_avg_fn
        pairs: list[tuple[Tensor, Tensor]] = [*zip(self.module.parameters(), model.parameters(), strict=True)]
        buffers = [*zip(self.module.buffers(), model.buffers(), strict=True)]
        for mine, theirs in pairs + buffers * self.use_buffers:
            pair = mine.detach(), theirs.detach().to(mine.device)
            groups.setdefault((mine.device, mine.dtype), []).append(pair)
        for mine, theirs in buffers * (not self.use_buffers):
            mine.copy_(theirs)
        average = self.multi_avg_fn or _of_lists(self.avg_fn or get_swa_avg_fn())
        count = self.n_averaged
        averaged, version = self._averaged or (None, 0)
        first = not (averaged is count and version == count._version) and int(count) == 0
        for (device, _), group in groups.items():
            if first:
                for mine, theirs in group:
                    mine.copy_(theirs)
            else:
                averages, currents = map(list, zip(*group, strict=True))
                average(averages, currents, count.to(device))
        count += 1
        self._averaged = count, count._version


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Sets the running statistics of all batch normalizations in model to the means over the batches of loader. A batch
    is the model's input, or a tuple or list that begins with it.

    >>> model = norch.nn.Sequential(norch.nn.BatchNorm1d(1))
    >>> norch.optim.swa_utils.update_bn([norch.tensor([[1.0], [3.0]]), norch.tensor([[5.0], [7.0]])], model)
    >>> model[0].running_mean
    tensor([4.])
    """
    layers = {bn: bn.momentum for bn in model.modules() if isinstance(bn, _BatchNorm)}
    if not layers:
        return
    was_training = model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # averages with equal weights
    for batch in loader:
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(x if device is None else x.to(device))
    for layer, momentum in layers.items():
        layer.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Moves the rate of each group from its current value to swa_lr in anneal_epochs. swa_lr is a number, or one for
    each group. anneal_strategy is "cos", half a cosine, or "linear"; ValueError for others. LRScheduler describes the
    rest.

    >>> opt = norch.optim.SGD(norch.nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = norch.optim.swa_utils.SWALR(opt, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> for _ in range(3):
    ...     opt.step()
    ...     schedule.step()
    ...     print(schedule.get_last_lr())
    [0.75]
    [0.5]
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        one_of("SWALR: anneal_strategy", anneal_strategy, ("cos", "linear"))
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs must be an integer >= 0, not {anneal_epochs!r}")
        for group, rate in zip(optimizer.param_groups, one_a_group(optimizer, swa_lr), strict=True):
            # A copy: the program may change its tensor.
            group["swa_lr"] = _copied(rate)
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """The fraction of the way to swa_lr after this many steps."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def rate(self, epoch: int, index: int) -> float:
        """The rate of group `index` in this epoch, starting from the initial rate."""
        end, share = float(self.optimizer.param_groups[index]["swa_lr"]), self._share(epoch)
        return end * share + self.base_lrs[index] * (1 - share)

    def get_lr(self) -> list[float]:
        """The rates of this epoch, from those of the previous one, which other schedules may have set."""
        if self._is_initial and self.last_epoch > 0:
            return self._resumed()
        groups = self.optimizer.param_groups
        step = self.last_epoch if self.anneal_epochs else max(1, self.last_epoch)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in groups:
            end, present = float(group["swa_lr"]), float(group["lr"])
            start = end if before == 1 else (present - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates


publish(globals())
