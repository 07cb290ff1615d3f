"""NCCL: the binding of its library, and the transport of tensors of CUDA devices, on a separate stream.

The library is loaded when a group asks for it: NORCH_NCCL_LIBRARY, or the library of the wheel nvidia-nccl-cu12 or
-cu13 (`pip install "norch-dl[nccl]"`), or the system's. Functions, enums and structs are those of nccl.h, version 2.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pickle
import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from .. import cuda
from .._binding.buffers import memory_of
from .._binding.library import lib
from ..device import cuda_place
from ..dtype import bool_, int16, int32, uint8
from ..errors import ArgumentError, DeviceError, DTypeError, Error
from ..ops.create import empty
from ..ops.values import from_bytes
from ..tensor import Tensor
from .watch import Watch, described

_DTYPES = {  # (ncclDataType_t, how many of them an element is)
    "int8": (0, 1), "uint8": (1, 1), "int32": (2, 1), "int64": (4, 1), "float32": (7, 1), "float64": (8, 1),
    "complex64": (7, 2), "complex128": (8, 2),
}  # fmt: skip
_BYTE = 1  # ncclUint8
_OPS = {"sum": 0, "product": 1, "max": 2, "min": 3, "avg": 4}
_BOOL_OPS = {"sum": 2, "max": 2, "product": 3, "min": 3}  # or, and
_ID_BYTES = 128


class _UniqueId(ctypes.Structure):
    _fields_ = (("internal", ctypes.c_byte * _ID_BYTES),)


_POINTER, _SIZE, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_SIGNATURES = {  # each gives a ncclResult_t
    "GetUniqueId": [ctypes.POINTER(_UniqueId)],
    "CommInitRank": [ctypes.POINTER(_POINTER), _INT, _UniqueId, _INT],
    "CommDestroy": [_POINTER],
    "CommAbort": [_POINTER],
    "CommGetAsyncError": [_POINTER, ctypes.POINTER(_INT)],
    "GetVersion": [ctypes.POINTER(_INT)],
    "GroupStart": [],
    "GroupEnd": [],
    "AllReduce": [_POINTER, _POINTER, _SIZE, _INT, _INT, _POINTER, _POINTER],
    "Broadcast": [_POINTER, _POINTER, _SIZE, _INT, _INT, _POINTER, _POINTER],
    "Reduce": [_POINTER, _POINTER, _SIZE, _INT, _INT, _INT, _POINTER, _POINTER],
    "AllGather": [_POINTER, _POINTER, _SIZE, _INT, _POINTER, _POINTER],
    "ReduceScatter": [_POINTER, _POINTER, _SIZE, _INT, _INT, _POINTER, _POINTER],
    "Send": [_POINTER, _SIZE, _INT, _INT, _POINTER, _POINTER],
    "Recv": [_POINTER, _SIZE, _INT, _INT, _POINTER, _POINTER],
}


def _candidates() -> list[str]:
    if chosen := os.environ.get("NORCH_NCCL_LIBRARY"):
        return [chosen]
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    wheels = [str(Path(folder) / "nccl" / "lib" / "libnccl.so.2") for folder in folders]
    return [*(path for path in wheels if os.path.exists(path)), "libnccl.so.2"]


@cache
def nccl() -> Any:
    """NCCL's library, with function names without the prefix "nccl". ImportError if there is none, or an older one."""
    failures = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)  # not PyDLL: calls wait for other ranks, so the GIL is released
            break
        except OSError as error:
            failures.append(str(error))
    else:
        raise ImportError(
            "norch.distributed needs NCCL for backend='nccl': pip install 'norch-dl[nccl]' brings it "
            f"(or name it by NORCH_NCCL_LIBRARY): {'; '.join(failures)}"
        )
    functions: dict[str, Any] = {}
    for name, types in _SIGNATURES.items():
        function = getattr(library, f"nccl{name}", None)
        if function is None:
            raise ImportError(f"norch.distributed: the NCCL of {path} has no nccl{name}; it needs 2.10 or later")
        function.argtypes, function.restype = types, _INT
        functions[name] = function
    for name, types in {"GetErrorString": [_INT], "GetLastError": [_POINTER]}.items():
        function = getattr(library, f"nccl{name}", None)  # GetLastError: since 2.13
        if function is not None:
            function.argtypes, function.restype = types, ctypes.c_char_p
        functions[name] = function
    return type("NCCL", (), {name: staticmethod(function) for name, function in functions.items() if function})


def _message(status: int, operation: str) -> str:
    text = nccl().GetErrorString(status).decode()
    last = getattr(nccl(), "GetLastError", None)
    more = last(None).decode().strip() if last is not None else ""
    return f"{operation}: NCCL: {text}" + (f": {more}" if more else "")


def _check(status: int, name: str) -> None:
    if status:
        raise Error(_message(status, name))


def version() -> tuple[int, int, int]:
    """The version of the library, such as (2, 27, 3)."""
    code = _INT()
    _check(nccl().GetVersion(ctypes.byref(code)), "version")
    return code.value // 10000, code.value % 10000 // 100, code.value % 100


def unique_id() -> bytes:
    """The id of a new communicator (ncclUniqueId), which all its ranks pass to NCCL."""
    unique = _UniqueId()
    _check(nccl().GetUniqueId(ctypes.byref(unique)), "init_process_group")
    return bytes(unique.internal)


def local_device(local_rank: int, device_id: Any) -> int:
    """The device of a process: device_id; or the current device if that is not the first; or the device with the number
    of the process on its machine. DeviceError if there are fewer devices than processes.
    """
    cuda.init()
    if device_id is not None:
        chosen = cuda_place(device_id)[1] if not isinstance(device_id, int) else device_id
        cuda._exists(chosen)
        return chosen
    if (current := cuda.current_device()) != 0:
        return current
    count = cuda.device_count()
    if count == 1 and os.environ.get("CUDA_VISIBLE_DEVICES"):
        return 0  # the launcher made one device visible to each process
    if local_rank >= count:
        raise DeviceError(
            f"init_process_group: process {local_rank} of this machine has no CUDA device of its own: there are "
            f"{count}; start as many processes as devices, or name one by device_id"
        )
    return local_rank


def id_through_file(path: str, size: int, rank: int, timeout: float) -> bytes:
    """The id that rank 0 makes and writes to a file that all ranks see; other ranks read the file. Rank 0 removes it
    when the communicator is complete. ArgumentError on rank 0 if the file exists already; Error if the file does not
    appear.
    """
    if size == 1:
        return unique_id()
    if rank == 0:
        unique = unique_id()
        if os.path.exists(path) and os.path.getsize(path):
            raise ArgumentError(f"init_process_group: {path} is there already, from an earlier run perhaps; remove it")
        new = f"{path}.{socket.gethostname()}.{os.getpid()}"
        Path(new).write_bytes(unique)
        os.replace(new, path)  # atomically
        return unique
    since = time.monotonic()
    while time.monotonic() - since < timeout:
        try:
            if len(content := Path(path).read_bytes()) == _ID_BYTES:
                return content
        except FileNotFoundError:
            pass
        time.sleep(0.01)
    raise Error(f"init_process_group: rank 0 has not written {path} within {timeout:.1f} s")


class _Request:
    """A call submitted to a stream: the event recorded after it."""

    def __init__(self, operation: tuple[Any, ...], event: cuda.Event) -> None:
        self.operation, self.since, self.event = operation, time.monotonic(), event


class Link:
    """The transport of collectives through NCCL. It has the methods of mpi.Link and, under mpi4py's names, those of
    its communicators that collectives call.

    Calls are submitted to a stream of the link, which first waits for the work of the current stream. wait() makes the
    current stream wait for them, and does not block the host.
    """

    in_place = None
    widens = {int16: int32}  # noqa: RUF012  (dtypes that are combined in another)

    def __init__(self, ident: bytes, size: int, rank: int, device: int, watch: Watch) -> None:
        self.count, self.me, self.watch, self.device = size, rank, watch, cuda.Device("cuda", device)
        self.stream = cuda.Stream(self.device, priority=-1)
        comm = _POINTER()
        lib.norch_device_synchronize(1, device)  # makes it the current device of this thread, for NCCL
        name, unique = "init_process_group", _UniqueId.from_buffer_copy(ident)
        _check(watch.run((name,), nccl().CommInitRank, ctypes.byref(comm), size, unique, rank), name)
        self.comm: Any = comm
        self.flights: deque[_Request] = deque()
        self._grouped: list[_Request] | None = None  # the calls of together(), which share one event
        watch.checks.append(self._look)

    # ---- tensors ----------------------------------------------------------------------------------

    def placed(self, x: Tensor, name: str) -> Tensor:
        """x itself, or a contiguous copy. DeviceError unless it is on the device of the group."""
        if x.device != self.device:
            raise DeviceError(
                f"{name}: a tensor on {x.device}, where the group computes on {self.device}; NCCL takes tensors of "
                "that device, and backend='cpu:gloo,cuda:nccl' those of the CPU, too"
            )
        return x if x.is_contiguous() else x.detach().contiguous()

    def device_for(self, x: Tensor) -> Any:
        """The device of temporary memory for x."""
        return self.device

    def number_type(self, dtype: Any, name: str) -> tuple[int, int, int]:
        """(ncclDataType_t, how many of them an element has, bytes of an element)."""
        if dtype.name not in _DTYPES:
            raise DTypeError(f"{name}: {dtype} is not supported")
        return *_DTYPES[dtype.name], dtype.itemsize

    def byte_type(self, dtype: Any) -> tuple[int, int, int]:
        """The same for elements that are moved without arithmetic."""
        return _BYTE, dtype.itemsize, dtype.itemsize

    def reduction(self, how: str, dtype: Any, name: str) -> int:
        """ncclRedOp_t. DTypeError for products of complex numbers, which NCCL lacks."""
        if how == "product" and dtype.is_complex:
            raise DTypeError(f"{name}: NCCL has no product of {dtype}")
        return (_BOOL_OPS if dtype is bool_ else _OPS)[how]

    def divides(self, how: str) -> bool:
        """False: NCCL computes averages itself."""
        return False

    def buffer(self, address: int, size: int) -> int:
        """The memory of x as NCCL takes it."""
        return address

    # ---- calls ------------------------------------------------------------------------------------

    def begin(self, operation: tuple[Any, ...], method: str, *arguments: Any) -> _Request:
        """Submits a call to the stream, after the work of the current stream."""
        self._raise(operation[0])
        self.stream.wait_stream(cuda.current_stream(self.device))
        self.watch.run(operation, getattr(self, method), operation[0], *arguments)  # NCCL may connect ranks first
        request = _Request(operation, self.stream.record_event())
        if self._grouped is not None:
            self._grouped.append(request)
        while self.flights and self.flights[0].event.query():
            self.flights.popleft()
        self.flights.append(request)
        return request

    @contextmanager
    def together(self, operation: str) -> Iterator[None]:
        """A context whose calls are submitted to the stream as one."""
        grouped: list[_Request] = []
        self._grouped = grouped
        try:
            with _together(operation):
                yield
        finally:
            self._grouped = None
            for request in grouped:
                request.event.record(self.stream)

    def wait(self, operation: tuple[Any, ...], request: _Request) -> None:
        """Makes the current stream wait for a request."""
        self._raise(operation[0])
        request.event.wait(cuda.current_stream(self.device))

    def test(self, operation: tuple[Any, ...], request: _Request) -> bool:
        """Whether a request is complete."""
        self._raise(operation[0])
        return request.event.query()

    def call(self, operation: tuple[Any, ...], method: str, *arguments: Any) -> None:
        """begin() and wait(); a barrier blocks the host."""
        request = self.begin(operation, method, *arguments)
        self.wait(operation, request)
        if method == "Barrier":
            request.event.synchronize()
            self._raise(operation[0])

    def status(self) -> None:
        """None: NCCL reports nothing about received data."""

    def sender(self, status: None, source: int) -> int:
        """The rank of the sender."""
        return source

    def head(self, x: Tensor) -> tuple[Any, ...]:
        """Nothing: a message of NCCL has elements only."""
        return ()

    def any_source(self, name: str) -> int:
        """ArgumentError: NCCL needs the rank of the sender."""
        raise ArgumentError(f"{name}: NCCL receives from a rank that src names")

    def _error(self, operation: str) -> str | None:
        code = _INT()
        status = nccl().CommGetAsyncError(self.comm, ctypes.byref(code))
        return _message(status or code.value, operation) if status or code.value else None

    def _raise(self, name: str) -> None:
        if self.comm is None:
            raise Error(f"{name}: the group was destroyed")
        if (message := self._error(name)) is not None:
            raise Error(message)

    def _look(self, now: float) -> str | None:
        """The message for the watch: an asynchronous error of NCCL, or a call that has run on the stream for too
        long."""
        flights = list(self.flights)
        if self.comm is None or not flights:
            return None
        message = self._error(f"rank {self.watch.rank}: {described(flights[0].operation)}")
        for flight in flights:
            if message is None and now - flight.since > self.watch.timeout and not flight.event.query():
                message = self.watch.late(described(flight.operation), now - flight.since)
        return message  # the watch ends the process: after ncclCommAbort it would continue with incomplete results

    def free(self) -> None:
        """Destroys the communicator."""
        if self._look in self.watch.checks:
            self.watch.checks.remove(self._look)
        comm, self.comm = self.comm, None
        if comm is None:
            return
        code = _INT()
        if nccl().CommGetAsyncError(comm, ctypes.byref(code)) or code.value:
            nccl().CommAbort(comm)  # unlike CommDestroy it does not wait for ranks that have failed
        else:
            self.stream.synchronize()
            _check(nccl().CommDestroy(comm), "destroy_process_group")

    # ---- methods of mpi4py's communicators: a spec is [address, elements or those of each rank, datatype] -----------

    def _run(
        self, operation: str, name: str, addresses: tuple[int, ...], count: int, datatype: Any, *more: int
    ) -> None:
        """Submits a call of NCCL for count elements; more: its arguments after their datatype."""
        kind, units, _ = datatype
        stream = self.stream.cuda_stream
        _check(getattr(nccl(), name)(*addresses, count * units, kind, *more, self.comm, stream), operation)

    def Allreduce(self, operation: str, _: None, x: list[Any], op: int) -> None:  # noqa: N802
        self._run(operation, "AllReduce", (x[0], x[0]), x[1], x[2], op)

    def Bcast(self, operation: str, x: list[Any], root: int) -> None:  # noqa: N802
        self._run(operation, "Broadcast", (x[0], x[0]), x[1], x[2], root)

    def Reduce(self, operation: str, x: Any, into: Any, op: int, root: int) -> None:  # noqa: N802
        x = into if x is None else x
        self._run(operation, "Reduce", (x[0], x[0]), x[1], x[2], op, root)

    def Allgather(self, operation: str, x: list[Any], into: list[Any]) -> None:  # noqa: N802
        self._run(operation, "AllGather", (x[0], into[0]), x[1], x[2])

    def Reduce_scatter_block(self, operation: str, x: list[Any], into: list[Any], op: int) -> None:  # noqa: N802
        self._run(operation, "ReduceScatter", (x[0], into[0]), into[1], into[2], op)

    def Allgatherv(self, operation: str, x: list[Any], into: list[Any]) -> None:  # noqa: N802
        with _together(operation):
            for rank, (address, count) in enumerate(_parts(into)):
                source = x[0] if rank == self.me else address
                self._run(operation, "Broadcast", (source, address), count, x[2], rank)

    def Reduce_scatter(self, operation: str, x: list[Any], into: list[Any], counts: list[int], op: int) -> None:  # noqa: N802
        with _together(operation):
            for rank, (address, count) in enumerate(_parts([x[0], counts, x[2]])):
                target = into[0] if rank == self.me else address
                self._run(operation, "Reduce", (address, target), count, x[2], op, rank)

    def Alltoallv(self, operation: str, x: list[Any], into: list[Any]) -> None:  # noqa: N802
        with _together(operation):
            for rank, (address, count) in enumerate(_parts(x)):
                self.Send(operation, [address, count, x[2]], rank)
            for rank, (address, count) in enumerate(_parts(into)):
                self.Recv(operation, [address, count, into[2]], rank)

    def Gather(self, operation: str, x: list[Any], into: Any, root: int) -> None:  # noqa: N802
        with _together(operation):
            self.Send(operation, x, root)
            for rank in range(self.count if into is not None else 0):
                self.Recv(operation, [into[0] + rank * into[1] * into[2][2], into[1], into[2]], rank)

    def Scatter(self, operation: str, x: Any, into: list[Any], root: int) -> None:  # noqa: N802
        with _together(operation):
            for rank in range(self.count if x is not None else 0):
                self.Send(operation, [x[0] + rank * x[1] * x[2][2], x[1], x[2]], rank)
            self.Recv(operation, into, root)

    def Send(self, operation: str, x: list[Any], to: int, _tag: int = 0) -> None:  # noqa: N802
        self._run(operation, "Send", (x[0],), x[1], x[2], to)

    def Recv(self, operation: str, x: list[Any], source: int, _tag: int = 0, _status: None = None) -> None:  # noqa: N802
        self._run(operation, "Recv", (x[0],), x[1], x[2], source)

    def Barrier(self, operation: str) -> None:  # noqa: N802
        self._nothing = empty(1, dtype=uint8, device=self.device)
        address = self._nothing._data_pointer
        self._run(operation, "AllReduce", (address, address), 1, self.byte_type(uint8), _OPS["max"])


@contextmanager
def _together(operation: str) -> Iterator[None]:
    """A context whose calls NCCL runs as one group (ncclGroupStart, ncclGroupEnd)."""
    _check(nccl().GroupStart(), operation)
    try:
        yield
    finally:
        _check(nccl().GroupEnd(), operation)


def _parts(spec: list[Any]) -> list[tuple[int, int]]:
    """(address, elements) of the part of each rank."""
    address, counts, (_, _, size) = spec
    parts = []
    for count in counts:
        parts.append((address, count))
        address += count * size
    return parts


class Objects:
    """The methods of mpi4py's communicators for objects, through NCCL where there is no MPI: pickles, as tensors of
    bytes."""

    def __init__(self, link: Link) -> None:
        self.link, self.rank, self.size = link, link.me, link.count

    def _gathered(self, data: bytes) -> list[bytes]:
        """The data of all ranks, which have one length."""
        link = self.link
        x = from_bytes(data, (len(data),), uint8).to(link.device)
        out = empty(self.size * len(data), dtype=uint8, device=link.device)
        kind = link.byte_type(uint8)
        link.call(("objects",), "Allgather", [x._data_pointer, len(data), kind], [out._data_pointer, len(data), kind])
        whole = bytes(memory_of(out.cpu()))
        link._raise("objects")
        return [whole[at : at + len(data)] for at in range(0, len(whole), len(data))]

    def allgather(self, value: Any) -> list[Any]:
        """The objects of all ranks."""
        data = pickle.dumps(value)
        sizes = [int.from_bytes(part, "little") for part in self._gathered(len(data).to_bytes(8, "little"))]
        each = self._gathered(data.ljust(max(sizes), b"\0"))
        return [pickle.loads(part[:size]) for part, size in zip(each, sizes, strict=True)]  # of ranks of this program

    def bcast(self, value: Any, root: int) -> Any:
        """The object of rank root."""
        return self.allgather(value if self.rank == root else None)[root]

    def gather(self, value: Any, root: int) -> list[Any] | None:
        """The objects of all ranks, on rank root; None elsewhere."""
        objects = self.allgather(value)
        return objects if self.rank == root else None

    def scatter(self, values: Any, root: int) -> Any:
        """This rank's element of the list of rank root."""
        return self.allgather(values if self.rank == root else None)[root][self.rank]

    def Dup(self) -> Objects:  # noqa: N802
        """Itself: NCCL runs calls in order, so that no second communicator is needed."""
        return self

    def Free(self) -> None:  # noqa: N802
        """Does nothing: the group frees the link."""
