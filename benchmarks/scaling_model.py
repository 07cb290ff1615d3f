"""A model on paper of how data-parallel training scales: what a step takes on N ranks, from measured compute.

    python -m benchmarks.scaling_model [--markdown]

A message of s bytes between two ranks takes alpha + s / bandwidth. An all_reduce of s bytes over N ranks takes

    ring      2 (N - 1) alpha + 2 (N - 1) / N s / B
    tree      2 ceil(log2 N) alpha + 2 s / B, a double binary tree, in which each rank sends and receives all the time

(Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009; Sanders, Speck and Traeff, "Two-tree algorithms
for full bandwidth broadcast, reduction and scan", 2009; a tree's pipeline is taken as full), the faster of the two.
Machines of 8 GPUs sum inside first, over NVLink, then with one GPU of each number over the network, and share the
result: the three phases of a hierarchical all_reduce, whose second moves an eighth of the bytes on each of 8 network
cards. Gradients are float32, in buckets of 25 MiB, the first of 1 MiB, as DistributedDataParallel makes them. Bucket i
begins when its share of backward is done and bucket i - 1 is over; the step ends when the last one does. A tied
embedding is a bucket of its own, at the end of backward. The batch a rank is fixed (weak scaling).
"""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

MIB = 1 << 20
RANKS = (8, 64, 1024)
A_MACHINE = 8  # GPUs of one machine


class Wire(NamedTuple):
    """alpha in seconds, bandwidth in bytes a second in one direction."""

    alpha: float
    bandwidth: float


# As NVIDIA states them for an H100 SXM machine (450 GB/s of NVLink a direction, a card of 400 Gbit/s a GPU), at 80 %;
# and one card of 10 Gbit/s that 8 GPUs share, at 90 %. The alphas are what a message of few bytes takes there, roughly.
NVLINK, INFINIBAND, ETHERNET = Wire(3e-6, 0.8 * 450e9), Wire(5e-6, 0.8 * 50e9), Wire(30e-6, 0.9 * 1.25e9 / A_MACHINE)


class Model(NamedTuple):
    """seconds: of a step on one rank, with its batch; measured on one H100 in float32 (docs/speed_h100.md). tied: how
    many of the parameters belong to an embedding whose gradient comes last."""

    name: str
    parameters: int
    seconds: float
    tied: int = 0


MODELS = (
    Model("MLP 784-128-64-10, batch 64", 784 * 128 + 128 + 128 * 64 + 64 + 64 * 10 + 10, 200e-6),
    Model("ResNet-18, batch 128 of 32 x 32", 11_173_962, 0.0104),
    Model("GPT-2 124M, batch 8 of 1,024", 124_439_808, 0.120, tied=50257 * 768),
)
BACKWARD = 2 / 3  # of a step: twice the products of forward


def all_reduce(size: float, ranks: int, wire: Wire) -> float:
    """Seconds that an all_reduce of `size` bytes takes, by a ring or a tree."""
    if ranks == 1:
        return 0.0
    ring = 2 * (ranks - 1) * wire.alpha + 2 * (ranks - 1) / ranks * size / wire.bandwidth
    tree = 2 * math.ceil(math.log2(ranks)) * wire.alpha + 2 * size / wire.bandwidth
    return min(ring, tree)


def of_machines(size: float, ranks: int, network: Wire) -> float:
    """The same over machines of 8 GPUs: inside, across with an eighth of the bytes a GPU, inside."""
    inside, machines = min(ranks, A_MACHINE), math.ceil(ranks / A_MACHINE)
    return all_reduce(size, inside, NVLINK) + all_reduce(size / inside, machines, network)


def buckets(model: Model) -> list[float]:
    """Bytes of each bucket, in the order in which they begin."""
    size = 4.0 * (model.parameters - model.tied)
    found = [min(size, MIB)]
    while (left := size - sum(found)) > 0:
        found.append(min(left, 25 * MIB))
    return [*found, 4.0 * model.tied]


def step(model: Model, ranks: int, network: Wire) -> float:
    """Seconds of a step on so many ranks."""
    *cut, tied = buckets(model)
    done, over = (1 - BACKWARD) * model.seconds, 0.0  # backward comes so far, the bucket before is over
    for size in cut:
        done += size / sum(cut) * BACKWARD * model.seconds
        over = max(over, done) + of_machines(size, ranks, network)
    return max(over, model.seconds) + (of_machines(tied, ranks, network) if tied else 0.0)


def rows(network: Wire) -> list[tuple[str, list[tuple[float, float]]]]:
    """Of each model, for each number of ranks, seconds of a step and the share of perfect scaling."""
    return [(m.name, [(t := step(m, n, network), m.seconds / t) for n in RANKS]) for m in MODELS]  # type: ignore[misc]


def shown(seconds: float) -> str:
    """A time with its unit."""
    return f"{1e6 * seconds:,.0f} us" if seconds < 1e-3 else f"{1e3 * seconds:,.1f} ms"


def main() -> None:
    """Prints a table for each network."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling_model", description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", action="store_true", help="as docs/distributed.md has it")
    markdown = parser.parse_args().markdown
    if markdown:
        print("| model, a step on one GPU | network | " + " | ".join(f"{n:,} ranks" for n in RANKS) + " |")
        print("| --- | --- |" + " --- |" * len(RANKS))
    for name, network in (("400 Gbit/s a GPU", INFINIBAND), ("10 Gbit/s a machine", ETHERNET)):
        for model, cells in rows(network):
            alone = next(shown(m.seconds) for m in MODELS if m.name == model)
            texts = [f"{shown(seconds)}, {100 * share:.0f} %" for seconds, share in cells]
            if markdown:
                print(f"| {model}: {alone} | {name} | " + " | ".join(texts) + " |")
            else:
                print(
                    f"{name:20} {model:34} {alone:>10}  " + "  ".join(f"{n:>5}: {t:18}" for n, t in zip(RANKS, texts))
                )


if __name__ == "__main__":
    main()
