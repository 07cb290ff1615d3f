"""``norch.distributed.nn``: importable; its functions, which are collectives with derivatives, raise."""

from ..compat.refused import refused

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce",
           "reduce_scatter", "scatter"]  # fmt: skip

(
    all_gather, all_reduce, all_to_all, all_to_all_single, broadcast, gather, reduce, reduce_scatter, scatter,
) = refused(
    "norch.distributed.nn",
    "norch has no derivatives of collectives; DistributedDataParallel sums gradients",
    " ".join(__all__),
)  # fmt: skip
