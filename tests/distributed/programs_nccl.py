"""What test_nccl.py runs on each rank beside programs.py."""

from __future__ import annotations

import os
import signal
import sys
import time

from programs import raises, same, start

import norch
import norch.distributed as dist


def both() -> None:
    """Tensors of the CPU go through MPI, those of the device through NCCL, in one group."""
    me, n = dist.get_rank(), dist.get_world_size()
    assert dist.get_backend() == "cpu:mpi,cuda:nccl"
    for device in ("cpu", "cuda"):
        dist.all_reduce(x := norch.full((3,), me + 1.0, device=device))
        same(x, [n * (n + 1) / 2] * 3)
    pair = dist.new_group([1, 0], timeout=30)
    dist.broadcast(x := norch.full((2,), float(me), device="cuda"), group_src=1, group=pair)
    assert x.tolist() == [1.0, 1.0]
    raises(norch.DeviceError, "several devices", lambda: dist.all_gather([x, x.cpu()], x))
    dist.monitored_barrier(timeout=20)
    dist.barrier()


def wrong() -> None:
    """What NCCL refuses, and what it tells."""
    me = dist.get_rank()
    x = norch.ones(3)
    raises(
        norch.DeviceError, "a tensor on cpu, in a group of NCCL", lambda: dist.all_reduce(norch.ones(1, device="cpu"))
    )
    other = f"cuda:{3 - me}"
    raises(norch.DeviceError, f"a tensor on {other}", lambda: dist.all_reduce(norch.ones(1, device=other)))
    raises(norch.ArgumentError, "a rank that src names", lambda: dist.recv(x))
    raises(norch.ArgumentError, "the group has no MPI", lambda: dist.monitored_barrier())
    raises(norch.Error, "called before", lambda: dist.init_process_group("nccl"))
    work = dist.all_reduce(x, async_op=True)
    while not work.is_completed():
        pass
    assert work.wait() and x.tolist() == [2.0] * 3
    dist.all_reduce(y := norch.ones(2 + me))  # which real NCCL may hang in
    try:
        for _ in range(100):
            y.tolist()
            dist.all_reduce(x)
    except norch.Error as error:
        assert str(error) == "all_reduce: NCCL: invalid usage", error
        dist.destroy_process_group()
        start()
        dist.all_reduce(x := norch.ones(2))
        same(x, [2.0] * 2)
    else:
        raise AssertionError("ranks that differ went unseen")


def late() -> None:
    if dist.get_rank() == 1:
        time.sleep(60)
    dist.all_reduce(x := norch.ones(4))
    x.tolist()


def dies() -> None:
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(x := norch.ones(4))
    x.tolist()


if __name__ == "__main__":
    start(timeout=2 if sys.argv[1] == "late" else 60)
    globals()[sys.argv[1]](*sys.argv[2:])
    print(f"rank {dist.get_rank()} is done")
