"""What test_distributed.py runs on each rank: roots by their number in the group, timeouts, monitored barriers."""

from __future__ import annotations

import sys
import time

from programs import raises, same, start

import norch
import norch.distributed as dist


def roots(group: dist.ProcessGroup) -> None:
    """group: of the last two ranks, so that numbers in the group are not those in the world."""
    me, n = dist.get_rank(), dist.get_world_size()
    at, last = dist.get_rank(group), n - 1
    for options in ({"group_src": 1}, {"src": last}):
        dist.broadcast(x := norch.full((2,), float(me)), group=group, **options)
        same(x, [float(last)] * 2)
        out = norch.zeros(2)
        parts = [norch.full((2,), r + 0.5) for r in range(2)] if at == 1 else None
        dist.scatter(out, parts, group=group, **options)
        same(out, [at + 0.5] * 2)
        things = ["a", me]
        dist.broadcast_object_list(things, group=group, **options)
        assert things == ["a", last]
        got = [None]
        dist.scatter_object_list(got, [0, 1] if at == 1 else None, group=group, **options)
        assert got == [at]
    for options in ({"group_dst": 1}, {"dst": last}):
        dist.reduce(x := norch.full((2,), float(me)), group=group, **options)
        same(x, [2.0 * n - 3 if at == 1 else float(me)] * 2)
        into = [norch.zeros(1), norch.zeros(1)] if at == 1 else None
        dist.gather(norch.full((1,), float(me)), into, group=group, **options)
        assert into is None or [x.item() for x in into] == [last - 1.0, float(last)]
        told = [None, None] if at == 1 else None
        dist.gather_object(me, told, group=group, **options)
        assert told in (None, [last - 1, last])
    if at == 0:
        dist.send(norch.ones(2), group_dst=1, group=group)
    else:
        assert dist.recv(x := norch.zeros(2), group_src=0, group=group) == last - 1
        same(x, [1.0, 1.0])
    raises(norch.ArgumentError, "named twice", lambda: dist.broadcast(x, last, group=group, group_src=1))
    raises(norch.ArgumentError, "needs a rank", lambda: dist.broadcast(x, group=group))
    raises(norch.ArgumentError, "rank 2 is not in a group of 2", lambda: dist.broadcast(x, group=group, group_src=2))
    raises(norch.ArgumentError, "is this process", lambda: dist.isend(x, group=group, group_dst=at))


def groups() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    group = dist.new_group([n - 1, n - 2], timeout=20)
    if me >= n - 2:
        roots(group)
        assert group.watch.timeout == 20 and group.watch is not dist.new_group.__globals__["GroupMember"].WORLD.watch
    raises(norch.ArgumentError, "op is isend or irecv", lambda: dist.P2POp(dist.send, norch.ones(1), 0))
    raises(norch.ArgumentError, "one or more", lambda: dist.batch_isend_irecv([]))
    for _ in range(3):
        dist.monitored_barrier()
    since = time.monotonic()
    if me == 1:
        time.sleep(1.5)
    late = "did not answer" if me else "rank 1 did not come within 0.5 s"
    raises(norch.Error, late, lambda: dist.monitored_barrier(timeout=0.5, wait_all_ranks=True))
    assert time.monotonic() - since < 4
    dist.barrier()
    dist.monitored_barrier(timeout=20)  # what is left of the one that failed does not count
    raises(norch.ArgumentError, "timeout is -1.0 s", lambda: dist.new_group(timeout=-1))


if __name__ == "__main__":
    start()
    globals()[sys.argv[1]](*sys.argv[2:])
