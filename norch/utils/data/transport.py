"""Sends batches from a worker to the consumer: tensors in shared memory, the rest pickled.

A worker writes the tensors of a batch into one block, which the consumer maps without a copy. The consumer's tensors
hold a lease of the block. When the last of them is freed, the worker reuses the block.

    worker (Outbox)      block 0 | block 1 | ...    -- (number, layout, pickle), a new block's handle -->
    consumer (Inbox)     tensors -> Lease -> block  <-- numbers of the blocks that are free again --
"""

from __future__ import annotations

import io
import os
import pickle
import weakref
from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

from ..._files.shared_memory import Block
from ...ops.copy import stack
from ...storage import Storage, restored
from ...tensor import Tensor
from . import collate
from .channel import Connection, receive_handle, send_handle

ALIGNMENT = 64
INLINE = 4096  # bytes of a message through the socket; longer ones would block, so they go through shared memory
LARGE = 4096  # bytes; larger samples are copied directly into the block
MOST_HELD = 256  # blocks of a worker that a program may hold; further batches are copied out of their blocks


# ---- messages --------------------------------------------------------------------------------------------------------


def send(connection: Any, message: Any) -> None:
    """Sends a picklable object over a connection or its Outgoing."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    if len(data) <= INLINE:
        connection.send_bytes(data)
        return
    block = Block(len(data))
    block.write(0, data)
    connection.send_bytes(b"%d" % len(data))
    send_handle(connection, block.handle)


def receive(connection: Connection) -> Any:
    """The next message; EOFError or OSError if the other end is closed."""
    data = connection.recv_bytes()
    if data[0] != 0x80:  # pickles begin with it
        data = Block(int(data), receive_handle(connection)).read(int(data))
    return pickle.loads(data)


class Lease:
    """Keeps a block alive while tensors of the worker or consumer use it. It has no __del__, in which a Ctrl-C would be
    lost."""

    __slots__ = ("__weakref__", "block")

    def __init__(self, block: Block):
        self.block = block


# ---- the worker's side -----------------------------------------------------------------------------------------------


class Outbox:
    """A worker's blocks. reserve() and stack() belong to the batch being made, send() ends it."""

    def __init__(self, connection: Connection):
        self.connection = connection
        self.blocks: dict[int, Block] = {}
        self.reservations: dict[int, weakref.ref[Lease]] = {}
        self.free: list[int] = []
        self.dropped: list[int] = []  # blocks that the consumer may unmap
        self.created = 0
        self.wanted = 0  # bytes of the largest batch so far
        self.start()
        collate.stack_samples = self.stack

    def start(self) -> None:
        """Starts a batch with no memory reserved."""
        self.reservation: Lease | None = None
        self.number, self.used = -1, 0

    def abandon(self) -> None:
        """Discards the batch being made."""
        number = self.number
        self.start()
        if number >= 0:
            self.take_back([number])

    def take_back(self, numbers: Sequence[int]) -> None:
        """Takes back blocks that the consumer released. A negative number marks one that must not be reused."""
        for number in numbers:
            if number < 0:
                del self.blocks[~number], self.reservations[~number]
            elif self.reservations[number]() is None:
                self.free.append(number)
            else:
                self._drop(number)  # a tensor in the worker still uses it

    def _drop(self, number: int) -> None:
        del self.blocks[number], self.reservations[number]
        self.dropped.append(number)

    def _open(self, size: int) -> Lease:
        """A block of size bytes for the batch."""
        while self.free:
            number = self.free.pop()
            if self.blocks[number].size >= size:
                break
            self._drop(number)
        else:
            number, self.created = self.created, self.created + 1
            self.blocks[number] = Block(-(-size // (64 << 10)) * (64 << 10))
        reservation = Lease(self.blocks[number])
        self.number, self.reservation, self.reservations[number] = number, reservation, weakref.ref(reservation)
        return reservation

    def reserve(self, count: int) -> Storage | None:
        """A storage of count bytes in this batch's block; None if the block is full."""
        if self.reservation is None and self.wanted:
            self._open(self.wanted)
        at = self.used
        if self.reservation is None or at + count > self.reservation.block.size:
            return None
        self.used = at + _aligned(count)
        return self.reservation.block.storage(at, count, self.reservation)

    def stack(self, samples: Sequence[Any]) -> Any:
        """norch.stack(samples); large samples are copied once, directly into this batch's block."""
        first = samples[0]
        storage = None
        if first.nbytes >= LARGE and all(_is_like(first, sample) for sample in samples):
            storage = self.reserve(first.nbytes * len(samples))
        if storage is None:
            return stack(list(samples), 0)
        count = len(samples) * first.numel()
        out = storage.seen_as(first.dtype, (count,), (1,), 0).view(len(samples), *first.shape)
        for i, sample in enumerate(samples):
            out[i].copy_(sample)
        return out

    def send(self, head: tuple[Any, ...], batch: Any, state: Any) -> None:
        """Sends (*head, state, ...) with the arguments of Inbox.open()."""
        file = io.BytesIO()
        pickler = _Pickler(file)
        pickler.dump(batch)
        layout, outside, size = [], [], self.used
        for storage in pickler.numbers:
            at = -1 if self.reservation is None else storage.data_ptr() - self.reservation.block.address
            if not 0 <= at < self.used:
                at, size = size, size + _aligned(storage.nbytes())
                outside.append((at, storage))
            layout.append((at, storage.nbytes()))
        block, fresh = self._block_of(size), False
        if block is not None:
            for at, storage in outside:
                block.write(at, storage)
            fresh = block.handle >= 0
        header = (self.number, block.size if block and fresh else 0, layout, self.dropped)
        self.dropped = []
        self.start()
        send(self.connection, (*head, state, *header, file.getvalue()))
        if block and fresh:
            send_handle(self.connection, block.handle)
            block.close()

    def _block_of(self, size: int) -> Block | None:
        """This batch's block, with at least size bytes; a larger block replaces one that is too small."""
        self.wanted = max(self.wanted, size)
        if size == 0:  # the batch does not use the reserved memory
            self.abandon()
            return None
        small, number, used = self.reservation, self.number, self.used
        if small is not None and small.block.size >= size:
            return small.block
        block = self._open(self.wanted).block
        if small is not None:
            block.write(0, small.block.storage(0, used, small))
            self._drop(number)
        return block


class _Pickler(ForkingPickler):
    """Numbers the storages that it finds. If a tensor uses a part of a large storage, only that part is sent."""

    def __init__(self, file: io.BytesIO):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.numbers: dict[Storage, int] = {}

    def persistent_id(self, obj: Any) -> int | None:
        return self.numbers.setdefault(obj, len(self.numbers)) if isinstance(obj, Storage) else None

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, Tensor) or obj._in_coordinates or obj.untyped_storage().nbytes() <= obj.nbytes:
            return NotImplemented
        part = obj.detach().clone()
        rebuild, (_, dtype, shape, _, _, *rest), attributes = obj.__reduce__()
        return rebuild, (part.untyped_storage(), dtype, shape, part.stride(), 0, *rest), attributes


# ---- the consumer's side ---------------------------------------------------------------------------------------------


class _Forks:
    """The number of forks so far: a child may use the blocks held at its fork as long as it runs."""

    count = 0


def _note_fork() -> None:
    _Forks.count += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=_note_fork)


class Inbox:
    """The blocks of one worker that the consumer has mapped."""

    def __init__(self, connection: Connection):
        self.connection = connection
        self.blocks: dict[int, Block] = {}
        # For blocks that tensors use: their leases, numbers, and _Forks.count at delivery.
        self.leases: list[tuple[weakref.ref[Lease], int, int]] = []

    def open(self, number: int, size: int, layout: list[tuple[int, int]], dropped: list[int], data: bytes) -> Any:
        """A function, to be called once, that makes the batch of a message. Maps a new block immediately."""
        for old in dropped:
            self.blocks.pop(old, None)
        if size:
            block = self.blocks[number] = Block(size, receive_handle(self.connection))
            block.close()
        if number < 0:
            return _Unpickler(data, [restored(b"") for _ in layout]).load
        lease = Lease(self.blocks[number])
        self.leases.append((weakref.ref(lease), number, _Forks.count))
        storages = [lease.block.storage(at, count, lease) if count else restored(b"") for at, count in layout]
        if len(self.leases) > MOST_HELD:
            storages = [Storage(storage.elements.clone()) for storage in storages]
        return _Unpickler(data, storages).load

    def returned(self) -> list[int]:
        """The blocks freed since the last call; ~number for one that a child may still use."""
        numbers, held = [], []
        for entry in self.leases:
            lease, number, forks = entry
            if lease() is not None:
                held.append(entry)
            elif forks == _Forks.count:
                numbers.append(number)
            else:
                numbers.append(~number)
                del self.blocks[number]
        self.leases = held
        return numbers


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, storages: list[Storage]):
        super().__init__(io.BytesIO(data))
        self.storages = storages

    def persistent_load(self, pid: Any) -> Storage:
        return self.storages[pid]


def _aligned(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT


def _is_like(first: Tensor, sample: Any) -> bool:
    """Whether a sample has the dtype and shape of the first, and can be copied into the block."""
    return (
        isinstance(sample, Tensor)
        and sample.shape == first.shape
        and sample.dtype is first.dtype
        and not (sample.requires_grad or sample.is_cuda)
    )
