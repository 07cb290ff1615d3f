"""PyTorch's database of optimizers (optim_db of torch.testing), run on norch beside PyTorch: each with the options that
PyTorch tests it with. test_optimizer_database.py runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import operation_database as database
import torch
from torch.testing._internal.common_optimizers import optim_db

import norch

STEPS = 12
SHAPES = ((3, 4), (2, 5), (1, 1), (6,), (), (2, 1, 3))
MATRICES = 3  # the first ones: what Muon takes
# PyTorch keeps ASGD's eta in float32. Muon's products are in bfloat16. LBFGS amplifies the order of its sums.
LOOSE = {"ASGD": 1e-5, "Muon": 0.05, "LBFGS": 1e-6}


class Case(NamedTuple):
    """An optimizer with options. sparse: its gradients are."""

    name: str
    options: dict[str, Any]
    dtype: str
    sparse: bool = False

    def optimizer(self, lib: Any, params: list[Any], grouped: bool = False) -> Any:
        given = database.translated(self.options) if lib is norch else self.options
        groups = [{"params": params[:1], "weight_decay": 0.05, "lr": 0.02}, {"params": params[1:]}]
        if self.name in ("SparseAdam", "Rprop"):
            groups[0].pop("weight_decay")
        return getattr(lib.optim, self.name)(groups if grouped else params, **given)

    def starts(self) -> list[Any]:
        rng = np.random.default_rng(3)
        shapes = SHAPES[:MATRICES] if self.name == "Muon" or self.sparse else SHAPES
        return [self._drawn(rng, shape) for shape in shapes]

    def gradients(self) -> list[list[Any]]:
        """Of each step those of the parameters: None, at times, and large and small ones."""
        rng, shapes = np.random.default_rng(4), [x.shape for x in self.starts()]
        drawn = [[self._drawn(rng, shape) * 10.0 ** rng.integers(-3, 2) for shape in shapes] for _ in range(STEPS)]
        drawn[0][1] = drawn[5][1] = None
        return drawn

    def _drawn(self, rng: Any, shape: Any) -> Any:
        x = rng.standard_normal(shape)
        return np.asarray(x + 1j * rng.standard_normal(shape) if self.dtype.startswith("complex") else x)

    def difference(self, theirs: Any, ours: Any) -> str | None:
        """What differs between two values by more than the steps of this optimizer may."""
        found = database.difference(theirs, ours)
        if found != "values" or self.name not in LOOSE:
            return found
        a, b = database.array(theirs), database.array(ours)
        return None if np.allclose(a, b, rtol=0, atol=LOOSE[self.name] * max(1.0, abs(a).max())) else found


def cases(dtype: str, sparse: bool = False) -> Iterator[Case]:
    """The optimizers that take a dtype and such gradients, with each set of options of the database."""
    for info in optim_db:
        if dtype.startswith("complex") and not info.supports_complex:
            continue
        if sparse != info.only_supports_sparse_grads and not (sparse and info.supports_sparse):
            continue
        for given in info.optim_inputs_func("cpu", getattr(torch, dtype)):
            yield Case(info.optim_cls.__name__, given.kwargs, dtype, sparse)


def parameters(lib: Any, case: Case) -> list[Any]:
    return [lib.nn.Parameter(lib.from_numpy(x.copy()).to(getattr(lib, case.dtype))) for x in case.starts()]


def stepped(lib: Any, case: Case, optimizer: Any, params: list[Any], steps: range) -> list[Any]:
    """The parameters after each of the steps."""
    seen, dtype = [], getattr(lib, case.dtype)
    for gradients in case.gradients()[steps.start : steps.stop]:
        grads = [None if x is None else lib.from_numpy(np.asarray(x)).to(dtype) for x in gradients]
        for param, grad in zip(params, grads, strict=True):
            param.grad = _sparse(lib, grad) if case.sparse and grad is not None else grad
        result = optimizer.step(_closure(lib, params)) if case.name == "LBFGS" else optimizer.step()
        seen.append([*(param.detach().clone() for param in params), *database.results(result)])
    return seen


def _closure(lib: Any, params: list[Any]) -> Callable[[], Any]:
    """Of LBFGS, which asks again for gradients: a smooth function, computed by NumPy, as a line search near a minimum
    depends on the last bits of the loss."""

    def closure() -> Any:
        total = 0.0
        for k, param in enumerate(params):
            x = database.array(param) - 0.5
            total += float((k + 1) * (abs(x) ** 2).sum() + 0.1 * (abs(x) ** 4).sum())
            param.grad = lib.from_numpy(np.asarray(2 * (k + 1) * x + 0.4 * abs(x) ** 2 * x))
        return lib.tensor(total, dtype=lib.float64)

    return closure


def _sparse(lib: Any, grad: Any) -> Any:
    """The first row of a gradient, twice, as a sparse tensor."""
    return lib.sparse_coo_tensor(lib.tensor([[0, 0]]), lib.stack([grad[0], grad[0] * 0.5]), tuple(grad.shape))


def compared_steps(case: Case, grouped: bool = False) -> str | None:
    """How the parameters and the state differ after steps of both."""
    found, states = [], []
    for lib in (torch, norch):
        params = parameters(lib, case)
        try:
            optimizer = case.optimizer(lib, params, grouped)
            found.append(stepped(lib, case, optimizer, params, range(STEPS)))
            states.append(optimizer.state_dict())
        except Exception as error:
            if lib is torch or isinstance(error, NotImplementedError):
                raise database.NotComparedError from error
            return f"raises {type(error).__name__}: {error}"
    for step, (a, b) in enumerate(zip(*found, strict=True)):
        for theirs, ours in zip(a, b, strict=True):
            if different := case.difference(theirs, ours):
                return f"{different} of step {step}"
    return _different_state(case, *states)


def _different_state(case: Case, a: Any, b: Any) -> str | None:
    for index, theirs in a["state"].items():
        ours = b["state"].get(index, {})
        if theirs.keys() - {"al"} != ours.keys():  # al: what LBFGS computes with
            return f"names in the state: {sorted(theirs)} and {sorted(ours)}"
        for key, value in theirs.items():
            if isinstance(value, torch.Tensor) and value.ndim and (different := case.difference(value, ours[key])):
                return f"{different} of {key}"
    same = len(a["state"]) == len(b["state"]) and database.translated(a["param_groups"]) == b["param_groups"]
    return None if same else "options or parameters in the state"


def compared_states(case: Case) -> str | None:
    """How steps differ after each library has loaded the state of the other, in the middle."""
    half = STEPS // 2
    made = []
    for lib in (torch, norch):
        params = parameters(lib, case)
        try:
            optimizer = case.optimizer(lib, params)
            stepped(lib, case, optimizer, params, range(half))
        except Exception as error:
            raise database.NotComparedError from error
        made.append((params, optimizer.state_dict()))
    finals = []
    for lib, (params, state) in ((torch, made[1]), (norch, made[0])):
        convert = _converted_back if lib is torch else database.translated
        copies = [lib.nn.Parameter(convert(p.detach())) for p in params]
        optimizer = case.optimizer(lib, copies)
        try:
            optimizer.load_state_dict(convert(state))
            finals.append(stepped(lib, case, optimizer, copies, range(half, STEPS)))
        except Exception as error:
            return f"raises {type(error).__name__} {error}"
    pairs = (pair for step in zip(*finals, strict=True) for pair in zip(*step, strict=True))
    return next(filter(None, (case.difference(a, b) for a, b in pairs)), None)


def _converted_back(x: Any) -> Any:
    tensors: list[Any] = []
    return database.flattened(x, tensors)(lambda leaf: leaf, [torch.from_numpy(t.numpy().copy()) for t in tensors])


def compared_replays(case: Case) -> str | None:
    """How captured steps differ from steps as they are, to the bit."""
    found, zeros = [], list(map(np.zeros_like, case.starts()))
    given = [[zero if x is None else x for x, zero in zip(grads, zeros, strict=True)] for grads in case.gradients()]
    for wrap in (lambda step: step, norch.capture):
        params = parameters(norch, case)
        try:
            optimizer = case.optimizer(norch, params)
        except Exception as error:
            raise database.NotComparedError from error
        step, seen = wrap(_training_step(optimizer, params)), []
        for grads in given:
            try:
                losses = step(*(norch.from_numpy(np.asarray(x)).to(getattr(norch, case.dtype)) for x in grads))
            except norch.CaptureError as error:
                raise database.NotComparedError from error
            seen.append([database.array(x).tobytes() for x in [losses, *params]])
        found.append(seen)
    return None if found[0] == found[1] else "replays"


def _training_step(optimizer: Any, params: list[Any]) -> Callable[..., Any]:
    def step(*goals: Any) -> Any:
        loss = sum(((p - goal).abs() ** 3).sum() for p, goal in zip(params, goals, strict=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


CHECKS: dict[str, Callable[[Case], str | None]] = {
    "steps": compared_steps,
    "groups": lambda case: compared_steps(case, grouped=True),
    "sparse": compared_steps,
    "states": compared_states,
    "replays": compared_replays,
}
