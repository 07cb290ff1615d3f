"""``norch.utils.tensorboard``: SummaryWriter on tensorboardX, which is imported when a writer is made."""

from __future__ import annotations

from functools import wraps
from typing import Any

from .._package.exports import publish
from ..tensor import Tensor
from .pytree import tree_map_only

__all__ = ["SummaryWriter"]
publish(globals(), name="norch.utils.tensorboard")


class SummaryWriter:
    """tensorboardX.SummaryWriter(*args, **options) whose methods also take tensors: add_scalar, add_histogram, ...

    ImportError without tensorboardX.

    >>> with norch.utils.tensorboard.SummaryWriter("runs/first") as writer:  # doctest: +SKIP
    ...     writer.add_scalar("loss", norch.tensor(0.5), 1)
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._writer = _package("SummaryWriter").SummaryWriter(*args, **options)

    def __getattr__(self, name: str) -> Any:
        if name == "_writer":  # __init__ failed
            raise AttributeError(name)
        attribute = getattr(self._writer, name)
        if not callable(attribute):
            return attribute

        @wraps(attribute)
        def with_arrays(*args: Any, **options: Any) -> Any:
            return attribute(*_arrays(args), **_arrays(options))

        return with_arrays

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Writes the graph of model(*input_to_model): its calls, by the modules that make them."""
        from .tensorboard_graph import graph

        self._writer._get_file_writer().add_graph(graph(model, input_to_model, verbose, use_strict_trace))

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self._writer.close()


def _package(needed_by: str) -> Any:
    try:
        import tensorboardX  # type: ignore[import-not-found]
    except ImportError as error:
        advice = "pip install 'norch-dl[tensorboard]' brings it"
        raise ImportError(f"{needed_by} needs tensorboardX: {advice}") from error
    return tensorboardX


def _summary(name: str) -> Any:
    """A function of torch.utils.tensorboard.summary, which makes a record for the writer's file."""

    def summary(*args: Any, **options: Any) -> Any:
        return getattr(_package(name).summary, name)(*_arrays(args), **_arrays(options))

    summary.__name__ = summary.__qualname__ = name
    return summary


for _name in "audio custom_scalars histogram hparams image mesh pr_curve scalar text video".split():
    globals()[_name] = _summary(_name)


def _arrays(tree: Any) -> Any:
    """Converts tensors to NumPy arrays, bfloat16 to float32."""
    return tree_map_only(Tensor, lambda x: (x.float() if x.dtype.name == "bfloat16" else x).numpy(force=True), tree)
