"""The channel between the consumer of a loader and a worker, on POSIX and Windows.

    send_handle, receive_handle     pass the handle of a section (_files/section.py) over a connection
    Outgoing                        the consumer's sending end; never waits for the worker
    Incoming                        the consumer's ends of all workers: which of them have something to read
    interrupts_held, ignore_interrupts

POSIX: a connection is a socket, which says whether a write would block, and passes descriptors.
Windows: it is a pipe, which cannot say so, so a thread writes. The receiver duplicates handles.
"""

from __future__ import annotations

import contextlib
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any

if sys.platform == "win32":
    import pickle
    import queue
    import threading
    from multiprocessing.connection import PipeConnection as Connection
    from multiprocessing.connection import wait
    from multiprocessing.reduction import ForkingPickler

    from ..._files.section import sendable

    def send_handle(connection: Any, handle: int) -> None:
        connection.send_bytes(ForkingPickler.dumps(sendable(handle)))

    def receive_handle(connection: Connection) -> int:
        return pickle.loads(connection.recv_bytes()).detach()

    class Outgoing:
        def __init__(self, connection: Connection):
            self.connection = connection
            self.broken = False
            self.messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
            threading.Thread(target=self._write, daemon=True, name="norch-loader-requests").start()

        def _write(self) -> None:
            while (message := self.messages.get()) is not None:
                try:
                    self.connection.send_bytes(message)
                except OSError:
                    self.broken = True
                    return

        def send_bytes(self, message: Any) -> None:
            if self.broken:
                raise BrokenPipeError
            self.messages.put(bytes(message))

        def is_free(self) -> bool:
            """Whether a message can be sent at once."""
            return True

        def close(self) -> None:
            """Ends the messages. The worker reads from a pipe end that no other process has."""
            self.messages.put(None)
            self.connection.close()

    class Incoming:
        def __init__(self, connections: Sequence[Connection]):
            self.connections = connections

        def wait(self, seconds: float) -> list[Any]:
            """The connections with data to read; waits for the first until the timeout."""
            return wait(self.connections, seconds)

    def ignore_interrupts() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    interrupts_held = contextlib.nullcontext  # signals cannot be held back
else:
    import socket
    from multiprocessing.connection import Connection

    # multiprocessing.reduction's send_handle() and recv_handle() exchange an acknowledgement (from Python 3.14 on; on
    # macOS always). The worker could read the consumer's next message in its place, so they are not used.

    def send_handle(connection: Any, handle: int) -> None:
        with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as end:
            socket.send_fds(end, [b"F"], [handle])

    def receive_handle(connection: Connection) -> int:
        with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as end:
            _, descriptors, *_ = socket.recv_fds(end, 1, 1)
        if not descriptors:
            raise EOFError
        return descriptors[0]

    class Outgoing:
        def __init__(self, connection: Connection):
            self.connection = connection
            self.send_bytes, self.fileno = connection.send_bytes, connection.fileno
            self._writable = select.poll()
            self._writable.register(connection, select.POLLOUT)

        def is_free(self) -> bool:
            """Whether a message can be sent at once."""
            return bool(self._writable.poll(0))

        def close(self) -> None:
            """Ends the messages."""
            self.connection.close()

    class Incoming:
        def __init__(self, connections: Sequence[Connection]):
            self._readable = select.poll()
            for connection in connections:
                self._readable.register(connection, select.POLLIN)
            self._of_file = {connection.fileno(): connection for connection in connections}

        def wait(self, seconds: float) -> list[Any]:
            """The connections with data to read; waits for the first until the timeout."""
            return [self._of_file[file] for file, _ in self._readable.poll(seconds * 1000)]

    def ignore_interrupts() -> None:
        """Ctrl-C also reaches the consumer, which ends the workers."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    @contextlib.contextmanager
    def interrupts_held() -> Iterator[None]:
        """Blocks SIGINT in this thread and in processes that it starts, until they unblock it."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
