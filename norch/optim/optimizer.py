"""Optimizer: parameter groups with options and state, hooks, saving and loading. Subclasses compute the steps
(fused.py; extras/).
"""

from __future__ import annotations

import copy
import functools
import warnings
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any, ClassVar

from .._package.exports import publish
from .._package.options import Option, options
from .._package.recording import here, unseen
from ..autograd import enable_grad
from ..autograd.hooks import RemovableHandle, add_hook
from ..errors import DTypeError, Error, ShapeError
from ..tensor import Tensor

__all__ = ["Optimizer"]

Params = Iterable[Tensor | dict[str, Any] | tuple[str, Tensor]]
ParamsT = Params  # PyTorch's name
required: Any = object()  # the default of an option that each group must give


class Optimizer:
    """Base of the optimizers. A subclass passes its defaults to the constructor and defines step(), which runs under
    no_grad(), updates the parameters in `self.param_groups` and keeps their state in the dict `self.state[param]`.

    params: an iterable of leaf tensors, of (name, tensor) pairs as from named_parameters(), or of groups `{"params":
    [...], "lr": ...}` whose options override the defaults. ValueError for an empty list, a parameter in two groups, or
    a tensor that is not a leaf; a warning if a parameter is twice in a group.

    Options that most optimizers share (ValueError if out of range):

    lr            the learning rate, at least 0: a number or a one-element tensor, which may change between steps
    betas         the factors in [0, 1) of the running averages of the gradient and its square: a step makes an average
      beta * average + (1 - beta) * value; it remembers about 1 / (1 - beta) steps
    eps           a small number >= 0, which keeps a denominator from being 0
    weight_decay  the factor >= 0 of an L2 penalty: weight_decay * p is added to the gradient of a parameter p; with
      decoupled_weight_decay p -= lr * weight_decay * p instead (Loshchilov and Hutter 2019)
    momentum      the factor >= 0 of the previous step in the current one
    maximize      negates the gradient, to ascend
    foreach, fused, capturable  choose PyTorch's implementation; ignored
    differentiable  lets autograd record a step: True raises NotImplementedError

    >>> class SignSGD(norch.optim.Optimizer):
    ...     @norch.no_grad()
    ...     def step(self, closure=None):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p -= group["lr"] * p.grad.sign()
    >>> w = norch.ones(2, requires_grad=True)
    >>> opt = SignSGD([w], {"lr": 0.25})
    >>> (3 * w).sum().backward()
    >>> opt.step()
    >>> w.detach()
    tensor([0.7500, 0.7500])
    """

    takes_complex = False  # whether a step treats complex parameters as pairs of real ones

    _opt_called = False  # whether a step was taken; schedules check it
    _options: dict[str, Option] = {}  # empty for user-defined optimizers

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        if isinstance(params, (Tensor, dict)) or not hasattr(params, "__iter__"):
            raise TypeError(f"params should be an iterable of tensors or dicts, got {type(params).__name__}")
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._hyper: list[Any] = []
        self._hooks: dict[str, OrderedDict[int, Any]] = defaultdict(OrderedDict)
        listed: list[Any] = list(params)
        if not listed:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(listed[0], dict):
            listed = [{"params": listed}]
        for group in listed:
            self.add_param_group(group)
        self._join_global_hooks()

    def _join_global_hooks(self) -> None:
        """Makes global step hooks, registered before or later, run in steps of this optimizer."""
        _optimizers.add(self)
        if any(_global_step_hooks.values()):
            self._call_hooks_around_steps()

    def __init_subclass__(cls, **named: Any) -> None:
        """Makes norch.capture refuse a step() that is defined in Python, because a replay would repeat its numbers
        unchanged. Records that step() was called.
        """
        super().__init_subclass__(**named)
        function = cls.__dict__.get("step")
        if function is None or getattr(function, "recordable", False):
            return

        @functools.wraps(function)
        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            unseen(f"the step of {type(self).__name__} computes with Python's numbers")
            self._opt_called = True
            return function(self, *args, **kwargs)

        cls.step = step  # type: ignore[method-assign]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group `{"params": tensors, option: value, ...}`. An option that the dict lacks gets its default.
        ValueError if a tensor is no leaf, or is in a group already.

        >>> a, b = norch.nn.Linear(2, 2), norch.nn.Linear(2, 2)
        >>> opt = norch.optim.SGD(a.parameters(), lr=0.1)
        >>> opt.add_param_group({"params": b.parameters(), "lr": 0.01})
        >>> [group["lr"] for group in opt.param_groups]
        [0.1, 0.01]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, got {type(param_group).__name__}")
        if "params" not in param_group:
            raise ValueError("a parameter group needs the key 'params'")
        params = param_group["params"]
        if isinstance(params, (set, frozenset)):
            raise TypeError("a parameter group needs its parameters in an order, not as a set: its state goes by place")
        params = [params] if isinstance(params, Tensor) else list(params)
        names = [pair[0] for pair in params if isinstance(pair, tuple)]
        if len(names) not in (0, len(params)) or any(("param_names" in g) != bool(names) for g in self.param_groups):
            raise ValueError("all parameters of an optimizer have names, or none has")
        params = [pair[1] if isinstance(pair, tuple) else pair for pair in params]
        elsewhere = {id(p) for group in self.param_groups for p in group["params"]}
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(f"an optimizer takes Tensors, but one of the params is {type(param).__name__}")
            if not param.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
            if not (param.is_floating_point() or (self.takes_complex and param.is_complex())):
                raise DTypeError(f"can't optimize a tensor of dtype {param.dtype}")
            if id(param) in elsewhere:
                raise ValueError("some parameters appear in more than one parameter group")
        if len({id(param) for param in params}) != len(params):
            warnings.warn("a parameter group holds a parameter twice, which each step updates twice", stacklevel=3)
        group: dict[str, Any] = {"params": params}
        if names:
            group["param_names"] = names
        for name, value in {**self.defaults, **param_group}.items():
            if value is required:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            if name != "params":
                group[name] = value
        self._check_options(group)
        self.param_groups.append(group)

    def __getstate__(self) -> dict[str, Any]:
        """The state for pickle and deepcopy. It has no hooks, and not the hyper-parameters in C, which each step writes
        again.
        """
        return {name: value for name, value in self.__dict__.items() if name not in ("_hyper", "_hooks", "step")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Sets a pickled state, or the "state" and "param_groups" that load_state_dict() has prepared. Subclasses
        extend it, for instance to add options that older files lack.
        """
        self.__dict__.update(state)
        self._hyper = []
        if "_hooks" not in self.__dict__:
            self._hooks = defaultdict(OrderedDict)
        self._join_global_hooks()

    def _check_options(self, group: dict[str, Any]) -> None:
        """ValueError for invalid options. Subclasses add checks."""
        if group.get("differentiable"):
            raise NotImplementedError(
                f"{type(self).__name__}: steps are not differentiable; differentiable must be False"
            )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients to None, or to zeros if set_to_none is False."""
        is_traced = here.trace is not None
        if is_traced:
            self._guard_groups(here.trace)
        for group in self.param_groups:
            for param in group["params"]:
                if not set_to_none:
                    if param.grad is not None:
                        param.grad = param.grad.detach().zero_()
                elif is_traced:
                    param.grad = None
                else:
                    param._grad = None

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once. A closure, if there is one, is called first, with grad mode enabled, to compute
        the loss and the gradients; step() returns its result.
        """
        raise NotImplementedError

    def _guard_groups(self, trace: Any) -> None:
        """Adds guards to a recording: a replay requires the same groups and parameters (norch/program/trace.py)."""
        trace.guard(self.__dict__, "param_groups", self.param_groups)
        trace.guard_size(self.param_groups)
        for i, group in enumerate(self.param_groups):
            trace.guard(self.param_groups, i, group)
            trace.guard_size(group)
            trace.guard(group, "params", group["params"])
            trace.guard_size(group["params"])
            for k, param in enumerate(group["params"]):
                trace.guard(group["params"], k, param)

    # ---- hooks ---------------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(optimizer, args, kwargs) before each step. args begins with the optimizer. If the hook returns a
        result other than None, it replaces (args, kwargs).
        """
        return self._around_steps("before", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(optimizer, args, kwargs) after each step.

        >>> opt = norch.optim.SGD([norch.ones(1, requires_grad=True)])
        >>> with opt.register_step_post_hook(lambda opt, args, kwargs: print("stepped")):
        ...     opt.step()
        stepped
        """
        return self._around_steps("after", hook)

    def _all_hooks(self) -> tuple[dict[str, OrderedDict[int, Any]], ...]:
        """The hooks of this optimizer, and the global ones."""
        return self._hooks, _global_step_hooks

    def _around_steps(self, when: str, hook: Callable[..., Any]) -> RemovableHandle:
        self._call_hooks_around_steps()
        return add_hook(self._hooks[when], hook)

    def _call_hooks_around_steps(self) -> None:
        def step(*arguments: Any, **kwargs: Any) -> Any:
            args: Any = (self, *arguments)
            for hook in (*_global_step_hooks["before"].values(), *self._hooks["before"].values()):
                if (changed := hook(self, args, kwargs)) is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise Error(f"a step pre-hook returns None or (args, kwargs), not {changed!r}")
                    args, kwargs = changed
            result = type(self).step(*args, **kwargs)
            for hook in (*self._hooks["after"].values(), *_global_step_hooks["after"].values()):
                hook(self, args, kwargs)
            return result

        self.__dict__.setdefault("step", step)  # so that a step without hooks has no overhead

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls hook(optimizer) before state_dict()."""
        return add_hook(self._hooks["state_dict"], hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls hook(optimizer, state_dict) after state_dict(); a result other than None replaces it."""
        return add_hook(self._hooks["state_dict done"], hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls hook(optimizer, state_dict) before load_state_dict(); a result other than None is loaded instead."""
        return add_hook(self._hooks["load"], hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls hook(optimizer) after load_state_dict()."""
        return add_hook(self._hooks["load done"], hook, prepend)

    def _through_hooks(self, when: str, state_dict: dict[str, Any]) -> dict[str, Any]:
        for hook in list(self._hooks[when].values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        return state_dict

    # ---- saving and loading --------------------------------------------------------------------------------

    def _loss(self, closure: Callable[[], Any] | None) -> Any:
        if closure is None:
            return None
        with enable_grad():
            return closure()

    def state_dict(self) -> dict[str, Any]:
        """`{"state": {index: {...}}, "param_groups": [...]}` with indices in place of parameters. The tensors are those
        of the optimizer, so the next step changes them.

        >>> opt = norch.optim.SGD(norch.nn.Linear(2, 2).parameters(), lr=0.1)
        >>> opt.state_dict()["param_groups"][0]["params"]
        [0, 1]
        """
        for hook in list(self._hooks["state_dict"].values()):
            hook(self)
        numbers: dict[int, int] = {}
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
        state = {
            "state": {
                numbers[id(key)] if isinstance(key, Tensor) else key: dict(entry) if isinstance(entry, dict) else entry
                for key, entry in self.state.items()
                if entry or not isinstance(key, Tensor)
            },
            "param_groups": [
                {**group, "params": [numbers[id(param)] for param in group["params"]]} for group in self.param_groups
            ],
        }
        return self._through_hooks("state_dict done", state)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a copy of a state_dict(). ValueError if the sizes of groups differ; ShapeError, for norch's optimizers,
        if a state and its parameter differ in shape. After an error nothing has changed.
        """
        if not isinstance(state_dict, dict) or not {"state", "param_groups"} <= state_dict.keys():
            raise ValueError("load_state_dict: expected a result of state_dict(), with 'state' and 'param_groups'")
        state_dict = self._through_hooks("load", dict(state_dict))
        groups: Sequence[dict[str, Any]] = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError(f"loaded state dict has {len(groups)} groups, the optimizer {len(self.param_groups)}")
        owner: dict[Any, Tensor] = {}
        for theirs, ours in zip(groups, self.param_groups, strict=True):
            if len(theirs["params"]) != len(ours["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of the "
                    f"optimizer's group: {len(theirs['params'])} and {len(ours['params'])} parameters"
                )
            owner.update(zip(theirs["params"], ours["params"], strict=True))
        state: dict[Any, Any] = defaultdict(dict)
        for number, entry in state_dict["state"].items():
            if not isinstance(number, int):  # a user's optimizer may have state without a parameter
                state[number] = copy.deepcopy(entry)
                continue
            if number not in owner:
                raise ValueError(f"loaded state dict has state of parameter {number}, which is in no group")
            state[owner[number]] = {name: self._adapted(value, name, owner[number]) for name, value in entry.items()}
        fresh = [
            {**self.defaults, **copy.deepcopy({**theirs, "params": None}), "params": ours["params"]}
            for theirs, ours in zip(groups, self.param_groups, strict=True)
        ]
        for group in fresh:
            self._check_options(group)
        for ours, group in zip(self.param_groups, fresh, strict=True):
            # Schedules refer to these dicts, so the objects must stay.
            ours.clear()
            ours.update(group)
        self.__setstate__({"state": state, "param_groups": self.param_groups})
        for hook in list(self._hooks["load done"].values()):
            hook(self)

    def _adapted(self, value: Any, name: str, param: Tensor) -> Any:
        """A copy of a state entry in the dtype and on the device of its parameter. A 'step' keeps its dtype. Real state
        of a complex parameter, as LBFGS has it, stays real.
        """
        if isinstance(value, dict):
            return {key: self._adapted(part, key, param) for key, part in value.items()}
        if isinstance(value, (list, tuple, set)):
            return type(value)(self._adapted(part, "", param) for part in value)
        if not isinstance(value, Tensor):
            return copy.deepcopy(value)
        if name == "step":
            return value.clone()
        dtype = param.dtype if value.is_complex() else param.dtype.to_real()
        return value.detach().to(param.device, dtype).clone()

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            text += "".join(f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params")
        return text + ")"


NUMBERS = {"step": int, "mu_product": float, "eta": float, "mu": float}  # one-element tensors in PyTorch's state


NOT_NEGATIVE = "lr weight_decay eps momentum alpha lr_decay momentum_decay initial_accumulator_value rho".split()


_optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()
_global_step_hooks: dict[str, OrderedDict[int, Any]] = {"before": OrderedDict(), "after": OrderedDict()}


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(optimizer, args, kwargs) before each step of every optimizer, before the optimizer's own hooks."""
    return _add_global_step_hook("before", hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls hook(optimizer, args, kwargs) after each step of every optimizer, after the optimizer's own hooks."""
    return _add_global_step_hook("after", hook)


def _add_global_step_hook(when: str, hook: Callable[..., Any]) -> RemovableHandle:
    for optimizer in list(_optimizers):
        optimizer._call_hooks_around_steps()
    return add_hook(_global_step_hooks[when], hook)


@options
class Elementwise(Optimizer):
    """Base of optimizers that update each element of a parameter independently. The annotations of a subclass are its
    options with their defaults. The class checks the ranges of options and the shapes of loaded state.
    """

    params: Params
    _any_sign: ClassVar[tuple[str, ...]] = ()  # options of NOT_NEGATIVE that may be negative

    @classmethod
    def _init_body(cls) -> list[str]:
        defaults = ", ".join(f"{name!r}: {name}" for name in cls._options if name != "params")
        return [f"super(first, self).__init__(params, {{{defaults}}})"]

    def _check_options(self, group: dict[str, Any]) -> None:
        super()._check_options(group)
        for name in NOT_NEGATIVE:
            if name in group and name not in self._any_sign and not at_least_0(group[name]):
                raise ValueError(f"invalid {name} value: {group[name]!r}")
        if group.get("rho", 0) > 1:
            raise ValueError(f"invalid rho value: {group['rho']!r}")
        betas = group.get("betas", (0, 0))
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise ValueError(f"betas must be two numbers, not {betas!r}")
        for index, beta in enumerate(betas):
            if not (at_least_0(beta) and beta < 1):
                raise ValueError(f"invalid beta parameter at index {index}: {beta}")

    def _state_shape(self, name: str, param: Tensor) -> Sequence[int]:
        """The shape of a state tensor."""
        return param.shape

    def _adapted(self, value: Any, name: str, param: Tensor) -> Any:
        if isinstance(value, Tensor) and name in NUMBERS and value.numel() == 1:
            return NUMBERS[name](value.item())
        if isinstance(value, Tensor) and list(value.shape) != list(self._state_shape(name, param)):
            shapes = f"{tuple(value.shape)}, its parameter {tuple(param.shape)}"
            raise ShapeError(f"loaded state {name!r} has shape {shapes}")
        return super()._adapted(value, name, param)

    def _groups(self) -> list[dict[str, Any]]:
        """The parameter groups. Checks their learning rates, which users may change between steps."""
        for group in self.param_groups:
            rate = group["lr"]
            if type(rate) is not float and not isinstance(rate, (Real, Tensor)):
                raise TypeError(f"{type(self).__name__}: lr must be a number, not {rate!r}")
        return self.param_groups


def have_no_gradient(params: Iterable[Tensor]) -> Callable[[], bool]:
    """A function that returns whether the parameters without a gradient now still have none."""
    absent = [param for param in params if param._grad is None]
    return lambda: all(param._grad is None for param in absent)


def at_least_0(value: Any) -> bool:
    """Whether value is a number or one-element tensor >= 0, and not NaN."""
    return (isinstance(value, Real) or (isinstance(value, Tensor) and value.numel() == 1)) and float(value) >= 0


publish(globals())
