"""What torch.utils.checkpoint has beside checkpoint(), as other libraries' checkpoints call it: against PyTorch's."""

import contextlib
import functools
import importlib
import sys
from typing import Any

import numpy as np
import pytest

import norch

X, W = (np.random.default_rng(0).normal(size=shape) for shape in ((3, 4), (4, 2)))


def of(lib: Any) -> tuple[Any, Any, Any]:
    """The module utils.checkpoint and two leaves."""
    return importlib.import_module(f"{lib.__name__}.utils.checkpoint"), *(
        lib.tensor(a, requires_grad=True) for a in (X, W)
    )


def reentrant(lib: Any) -> list[Any]:
    module, x, w = of(lib)
    y, z = module.CheckpointFunction.apply(lambda a, b: ((a @ w).sin(), a * b), True, x, 2.0)
    (y.sum() + z.square().sum()).backward()
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        module.CheckpointFunction.apply(lambda a: a.detach() * 2, False, x).sum().backward()
    return [t.tolist() for t in (y, z, x.grad, w.grad)]


def test_reentrant_checkpoints(torch: Any) -> None:
    for found, wanted in zip(reentrant(norch), reentrant(torch), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_reentrant_checkpoint_draws_the_same_numbers_again() -> None:
    module, x, _ = of(norch)
    drop = norch.nn.Dropout(0.5)
    module.CheckpointFunction.apply(drop, True, x).sum().backward()
    state = norch.get_rng_state()
    y = module.CheckpointFunction.apply(drop, True, x)
    x.grad = None
    y.sum().backward()
    assert norch.equal(x.grad != 0, y != 0) and not norch.equal(norch.get_rng_state(), state)


def with_contexts(lib: Any) -> list[Any]:
    module, x, w = of(lib)
    seen: list[Any] = []

    @contextlib.contextmanager
    def note(name: str) -> Any:
        seen.append(name)
        yield

    both = lambda: (note("first"), note("again"))  # noqa: E731
    module.checkpoint(lambda a: (a @ w).exp(), x, use_reentrant=False, context_fn=both).sum().backward()
    policy = functools.partial(module.create_selective_checkpoint_contexts, lambda *_, **__: module.CheckpointPolicy(1))
    for name, fn in (("none", module.noop_context_fn), ("default", policy)):
        with module.set_checkpoint_early_stop(False), module.set_checkpoint_debug_enabled(False):
            y = module.checkpoint(
                lambda a: (a @ w).exp(), x, use_reentrant=False, context_fn=fn, determinism_check=name, debug=False
            )
            y.sum().backward()
    with pytest.raises(TypeError, match="policy_fn_or_list"):
        module.create_selective_checkpoint_contexts(3)
    return [seen, x.grad.tolist(), w.grad.tolist()]


def test_contexts_of_both_calls(torch: Any) -> None:
    found, wanted = with_contexts(norch), with_contexts(torch)
    assert found[0] == wanted[0] == ["first", "again"]
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-12)
    np.testing.assert_allclose(found[2], wanted[2], rtol=1e-12)


def helpers(lib: Any) -> list[Any]:
    module, x, _ = of(lib)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        module.check_backward_validity([3, lib.ones(1)])
    module.check_backward_validity((x, 3))  # without a warning: they are errors here
    leaf, other = module.detach_variable((x.exp(), "text"))
    with pytest.raises(RuntimeError, match="Only tuple of tensors is supported"):
        module.detach_variable([x])
    said = [leaf.is_leaf, leaf.requires_grad, other, module._infer_device_type(3)]
    said += [{p.name: p.value for p in module.CheckpointPolicy}, issubclass(module.CheckpointError, RuntimeError)]
    return [*said, lib.autograd._is_checkpoint_valid()]


@pytest.mark.skipif(norch.cuda.is_available(), reason="the type of device is then another")
def test_helpers_like_pytorch(torch: Any) -> None:
    assert helpers(norch) == helpers(torch)


def test_sizes_of_storages_are_those_of_their_bytes(torch: Any) -> None:
    for lib in (norch, torch):
        x = lib.zeros(1000)
        for storage in (x.untyped_storage(), x.storage()):
            assert 4000 < sys.getsizeof(storage) < 4200
