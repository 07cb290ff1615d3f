"""Exercise of chapter 7: two kernels on a simulated GPU. Run this file: it says
what is wrong until both are right.

t is a thread: t.thread is its place in its block, t.block the block, t.number
its place among all threads; t.threads and t.blocks are the sizes, and t.shared
is a dict of the block. t.read(memory, at) and t.write(memory, at, value) are
counted in sectors of 8 numbers; a sector counts once for the 32 threads of a
warp that use it in the same step. A `yield` waits for all threads of the
block."""

import itertools


class Thread:
    def __init__(self, thread, block, threads, blocks, shared):
        self.thread, self.block, self.threads, self.blocks, self.shared = (
            thread,
            block,
            threads,
            blocks,
            shared,
        )
        self.accesses = []

    @property
    def number(self):
        return self.block * self.threads + self.thread

    def read(self, memory, at):
        self.accesses.append(("read", id(memory), at // 8))
        return memory[at]

    def write(self, memory, at, value):
        self.accesses.append(("write", id(memory), at // 8))
        memory[at] = value


def launch(kernel, blocks, threads, *arguments):
    """Runs a kernel; the number of sectors that were read and written."""
    sectors = 0
    for block in range(blocks):
        shared = {}
        group = [
            Thread(i, block, threads, blocks, shared) for i in range(threads)
        ]
        started = [kernel(thread, *arguments) for thread in group]
        waiting = [
            one for one in started if one is not None
        ]  # a kernel without yield has already run
        while waiting:
            waiting = [one for one in waiting if next(one, "end") != "end"]
        for first in range(0, threads, 32):
            steps = itertools.zip_longest(
                *(thread.accesses for thread in group[first : first + 32])
            )
            sectors += sum(len(set(step) - {None}) for step in steps)
    return sectors


def dot(t, a, b, out):
    """Sums a[i] * b[i] over all i; out[t.block] is the part of a block.
    t.threads is a power of two."""
    raise NotImplementedError(
        "dot: block_sums of the chapter, with a product and a t.write"
    )
    yield


def transpose(t, n, x, out):
    """out[j * n + i] = x[i * n + j]. A block of 64 threads moves a square of 8
    x 8 elements by way of t.shared, so that neighbours read neighbours, and
    neighbours write neighbours. n is a multiple of 8."""
    raise NotImplementedError(
        "transpose: after the barrier, write what another thread read"
    )
    yield


def check(dot, transpose):
    """Raises an AssertionError that says what is wrong."""
    a, b, out = (
        [i % 13 for i in range(1000)],
        [i % 11 for i in range(1000)],
        [0] * 4,
    )
    sectors = launch(dot, 4, 64, a, b, out)
    wanted = sum(x * y for x, y in zip(a, b))
    assert sum(out) == wanted, (
        f"dot: the parts are {out}, which is {sum(out)}, not {wanted}"
    )
    assert sectors <= 260, f"dot: {sectors} sectors, where 254 will do"
    n = 24
    x, out = list(range(n * n)), [None] * (n * n)
    sectors = launch(transpose, (n // 8) ** 2, 64, n, x, out)
    wanted = [x[i * n + j] for j in range(n) for i in range(n)]
    assert out == wanted, (
        f"transpose: the first row is {out[:n]}, not {wanted[:n]}"
    )
    assert sectors == 2 * n * n // 8, (
        f"transpose: {sectors} sectors, where {2 * n * n // 8} will do"
    )


if __name__ == "__main__":
    check(dot, transpose)
    print("solved")
