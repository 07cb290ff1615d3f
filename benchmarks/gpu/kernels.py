"""Kernels and their times, as CUPTI records them for PyTorch's profiler: it sees those of norch in the same process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from .library import OnDevice

LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaLaunchCooperativeKernel", "cudaGraphLaunch")
NO_KERNELS = ("Memcpy", "Memset")


class Counts(NamedTuple):
    """Of one call: launches by the host, kernels that ran, and by their names how many and the seconds they took.

    Copies and fills by CUDA itself are among the names, but are no kernels.
    """

    launches: int
    kernels: int
    by_name: dict[str, tuple[int, float]]

    @property
    def busy(self) -> float:
        """Seconds that the device spent."""
        return sum(spent for _, spent in self.by_name.values())


def profiler(torch: Any) -> Any | None:
    """PyTorch's profiler, None where it has no CUPTI."""
    if torch is None:
        return None
    supported = torch.profiler.supported_activities()
    return torch.profiler if torch.profiler.ProfilerActivity.CUDA in supported else None


def count(torch: Any, lib: OnDevice, run: Callable[[], Any]) -> Counts | None:
    """What one call does, None where nobody can see it."""
    profile = profiler(torch)
    if profile is None:
        return None
    lib.module.cuda.synchronize()
    with profile.profile(activities=[profile.ProfilerActivity.CUDA], acc_events=True) as watching:
        run()
        lib.module.cuda.synchronize()
    launches, kernels = 0, 0
    by_name: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for event in watching.profiler.kineto_results.events():
        name = event.name()
        if event.device_type() != torch.autograd.DeviceType.CUDA:
            launches += name.startswith(LAUNCHES)
            continue
        kernels += not name.startswith(NO_KERNELS)
        times, spent = by_name[name]
        by_name[name] = times + 1, spent + event.duration_ns() / 1e9
    return Counts(launches, kernels, dict(by_name)) if by_name else None


def device_seconds(lib: OnDevice, run: Callable[[], Any]) -> float:
    """The device's time of one call, by events."""
    cuda = lib.module.cuda
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record()
    run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def show(torch: Any, lib: OnDevice, run: Callable[[], Any], most: int = 25) -> None:
    """Prints where the device's time goes in one call."""
    counts = count(torch, lib, run)
    if counts is None:
        spent = device_seconds(lib, run)
        print(f"  {lib.name}: {spent * 1e6:.1f} us by events; kernels are named where PyTorch's profiler has CUPTI")
        return
    print(f"  {lib.name}: {counts.busy * 1e6:.1f} us busy, {counts.kernels} kernels, {counts.launches} launches")
    ordered = sorted(counts.by_name.items(), key=lambda item: -item[1][1])
    for name, (times, spent) in ordered[:most]:
        print(f"    {spent * 1e6:11.1f} us {spent / counts.busy:5.0%} {times:6d} x  {name[:110]}")
    if rest := ordered[most:]:
        print(f"    {sum(spent for _, (_, spent) in rest) * 1e6:11.1f} us       {len(rest)} other names")
