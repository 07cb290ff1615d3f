"""PyTorch's databases of modules (module_db and common_nn of torch.testing), run on norch beside PyTorch: each module
with the arguments and inputs that PyTorch tests it with. test_module_database.py runs it."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import operation_database as database
import torch
from torch.testing._internal import common_nn
from torch.testing._internal.common_modules import module_db

import norch

# What they draw in training is each library's own.
RANDOM = frozenset("RReLU Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout".split())


class Case(NamedTuple):
    """A module in both libraries, with the same weights, and what it is called with."""

    name: str
    theirs: Any
    ours: Any
    inputs: Any  # of the call: positional ones, and those with names

    def sample(self, change: Callable[[Any], Any] = lambda x: x) -> database.Sample:
        """The call, whose tensors are the inputs and then the parameters; the values of buffers are results too.
        change(x): what is called with instead of each input x of PyTorch."""
        tensors: list[Any] = []
        build = database.flattened(self.inputs, tensors)
        tensors = [change(x.detach()).requires_grad_(x.requires_grad) for x in tensors]
        copies = [database.converted(x).requires_grad_(x.requires_grad) for x in tensors]
        inputs = build(database.converted, copies)
        return database.Sample(
            _call_of(self.theirs, build),
            _call_of(self.ours, database.flattened(inputs, [])),
            [*tensors, *self.theirs.parameters()],
            [*copies, *self.ours.parameters()],
        )


def _same(value: Any) -> Any:
    return value


def _call_of(module: Any, build: Any) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        args, kwargs = build(_same, given)
        return [module(*args, **kwargs), [x.clone() for x in module.buffers()]]

    return call


class Described(NamedTuple):
    """A module that a database describes."""

    name: str
    constructor: Any
    constructed_with: Any
    inputs: Any


def described(dtype: Any, training: bool) -> Iterator[Described]:
    """The modules of both databases that take a dtype."""
    for info in module_db:
        if dtype not in info.dtypes:
            continue
        for given in info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training):
            if given.forward_input is not None:
                constructed_with, inputs = ([x.args, x.kwargs] for x in (given.constructor_input, given.forward_input))
                name = f"{info.module_cls.__name__} {given.desc}"
                yield Described(name, info.module_cls, constructed_with, inputs)
    for test in [*common_nn.module_tests, *common_nn.get_new_module_tests(), *common_nn.criterion_tests]:
        name = test.get("fullname") or f"{test['module_name']} {test.get('desc', '')}"
        constructor = test.get("constructor") or getattr(torch.nn, test["module_name"])
        parts = [_given(test, "input"), _given(test, "target", ())]
        inputs = [_cast(x, dtype) for part in parts for x in (part if isinstance(part, tuple) else (part,))]
        yield Described(name, constructor, [_given(test, "constructor_args", ()), {}], [inputs, {}])


def _given(test: dict[str, Any], name: str, default: Any = None) -> Any:
    if name in test:
        return test[name]
    if f"{name}_fn" in test:
        return test[f"{name}_fn"]()
    return torch.randn(test[f"{name}_size"]) if f"{name}_size" in test else default


def _cast(x: Any, dtype: Any) -> Any:
    return x.to(dtype).requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def module_of_norch(constructor: Any, constructed_with: Any) -> Any:
    """What a constructor of PyTorch makes, in norch."""
    if isinstance(constructor, type) and constructor.__module__.startswith("torch.nn."):
        constructor = getattr(norch.nn, constructor.__name__)
    elif isinstance(constructor, type):  # a function as a module, of common_nn
        constructor = type("Functional", (norch.nn.Module,), {"forward": database.translated(constructor.forward)})
    else:
        constructor = database.translated(constructor)
    tensors: list[Any] = []
    build = database.flattened(constructed_with, tensors)
    args, kwargs = build(_converted, list(map(database.converted, tensors)))
    return constructor(*args, **kwargs)


def _converted(x: Any) -> Any:
    if isinstance(x, torch.nn.Module):
        file = io.BytesIO()
        torch.save(x, file)
        file.seek(0)
        return norch.load(file, weights_only=False)
    return database.translated(x)


def leaves(inputs: Any) -> Any:
    """Copies of inputs whose tensors have no history."""
    tensors: list[Any] = []
    build = database.flattened(inputs, tensors)
    return build(_same, [x.detach().clone().requires_grad_(x.requires_grad) for x in tensors])


def cases(dtype: str, training: bool, left: set[str]) -> Iterator[Case]:
    """The modules that PyTorch can make and call, but those in left."""
    torch.manual_seed(0)
    for given in described(getattr(torch, dtype), training):
        name = given.name.replace("_", " ").split()[0]
        if name in left or (training and name in RANDOM):
            continue
        args, kwargs = given.constructed_with
        inputs = leaves(given.inputs)
        try:
            theirs = given.constructor(*args, **kwargs).train(training).to(getattr(torch, dtype))
            theirs(*inputs[0], **inputs[1])  # lazy modules learn their shapes
        except Exception:
            continue
        ours = module_of_norch(given.constructor, given.constructed_with).train(training).to(getattr(norch, dtype))
        case = Case(given.name, theirs, ours, leaves(given.inputs))
        state = {name: database.converted(x) for name, x in theirs.state_dict().items()}
        ours.load_state_dict(state)
        with contextlib.suppress(Exception):  # a check says what norch refuses
            sample = case.sample()
            sample.ours(*sample.copies)  # lazy modules become ordinary ones
            ours.load_state_dict(state)
        yield case


def compared_copies(case: Case) -> str | None:
    """How a module differs from PyTorch's in its names and description, or its copies from it in their results."""
    if list(case.theirs.state_dict()) != list(case.ours.state_dict()):
        return "names of the state"
    if repr(case.theirs).replace("FunctionalModule", "Functional") != repr(case.ours):
        return "description"
    makers = {"deepcopy": lambda: copy.deepcopy(case.ours)}
    if type(case.ours).__module__.startswith("norch."):
        makers["pickle"] = lambda: pickle.loads(pickle.dumps(case.ours))
        makers["file of PyTorch"] = lambda: _converted(case.theirs)
    made = {name: make() for name, make in makers.items()}
    sample = case.sample()
    try:
        wanted = [database.array(x).tobytes() for x in database.results(sample.ours(*sample.copies))]
    except Exception as error:
        raise database.NotComparedError from error
    for name, module in made.items():
        sample = case._replace(ours=module).sample()
        if [database.array(x).tobytes() for x in database.results(sample.ours(*sample.copies))] != wanted:
            return name
    return None


def compared_shapes(case: Case) -> str | None:
    """How shapes, strides or dtypes of results on the device "meta" differ from those on the CPU."""
    if not type(case.ours).__module__.startswith("norch."):
        raise database.NotComparedError  # a function as a module, which holds tensors of the CPU
    sample = case.sample()
    module = copy.deepcopy(case.ours).to("meta")
    inputs = [x.detach().to("meta") for x in sample.copies]
    try:
        wanted = database.results(sample.ours(*sample.copies))
        found = database.results(case._replace(ours=module).sample().ours(*inputs))
    except NotImplementedError as error:
        raise database.NotComparedError from error
    except Exception as error:
        return f"raises {type(error).__name__}"
    pairs = [
        [(x.shape, x.stride(), x.dtype) if isinstance(x, norch.Tensor) else x for x in part] for part in (wanted, found)
    ]
    return None if pairs[0] == pairs[1] else "shapes"


def compared_replays(case: Case) -> str | None:
    """How results, gradients and buffers of a captured step differ from those of the step as it is, to the bit."""

    def step_of(module: Any) -> Callable[..., list[Any]]:
        call = case._replace(ours=module).sample().ours

        def step(*inputs: Any) -> list[Any]:
            outs = [x for x in database.results(call(*inputs)) if isinstance(x, norch.Tensor)]
            numbers = [(norch.view_as_real(x) if x.is_complex() else x).square().sum() for x in outs if x.requires_grad]
            wanted = [x for x in [*inputs, *module.parameters()] if x.requires_grad]
            return [*outs, *(norch.autograd.grad(sum(numbers), wanted, allow_unused=True) if numbers else ())]

        return step

    inputs = case.sample().copies
    steps = [step_of(copy.deepcopy(case.ours)) for _ in range(2)]
    steps[1] = norch.capture(steps[1])
    for k in range(4):
        changed = [
            (x.detach() * (1 - 0.02 * k) if x.is_floating_point() else x).requires_grad_(x.requires_grad)
            for x in inputs
        ]
        try:
            plain = [x if x is None else database.array(x).tobytes() for x in steps[0](*changed)]
        except Exception as error:
            raise database.NotComparedError from error
        try:
            replayed = [x if x is None else database.array(x).tobytes() for x in steps[1](*changed)]
        except norch.CaptureError as error:
            raise database.NotComparedError from error
        if plain != replayed:
            return "replays"
    return None


def spread(x: Any) -> Any:
    """The same values, not contiguous: every second element along the axis after the first that has several."""
    axis = next((axis + 1 for axis, size in enumerate(x.shape) if size > 1), x.ndim)
    return torch.stack([torch.empty_like(x), x], axis).select(axis, 1)


def emptied(x: Any) -> Any:
    """The values of no sample."""
    return x[:0] if x.ndim else x


def compared_calls(case: Case, change: Callable[[Any], Any]) -> str | None:
    """How results and gradients of a call with changed inputs differ."""
    return database.compared_results(case.sample(change)) or database.compared_gradients(case.sample(change), order=1)


CHECKS: dict[str, Callable[[Case], str | None]] = {
    "values": lambda case: database.compared_results(case.sample()),
    "gradients": lambda case: database.compared_gradients(case.sample(), order=1),
    "second gradients": lambda case: database.compared_gradients(case.sample(), order=2),
    "copies": compared_copies,
    "shapes": compared_shapes,
    "replays": compared_replays,
    "strides": lambda case: compared_calls(case, spread),
    "empty batches": lambda case: compared_calls(case, emptied),
}
