"""Files of any size: storages go to them and come from them in pieces; what an earlier norch wrote still loads."""

from __future__ import annotations

import errno
import io
import os
import pickle
import shutil
import struct
import subprocess
import sys
import threading
import zlib
from collections import Counter, OrderedDict, defaultdict
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import pytest
from conftest import DEVICE

import norch
from norch import nn, serialization, storage

HERE = Path(__file__).resolve().parents[1]


def all_kinds() -> dict[str, Any]:
    """What the files of tests/files hold: norch.save() of each format, and of the first and last norch 0.1.0."""
    w = norch.arange(6.0).view(2, 3)
    return OrderedDict(
        w=w,
        t=w.t()[1:],
        p=nn.Parameter(norch.ones(1, dtype=norch.float64)),
        none=norch.zeros(0, 2),
        half=norch.ones(2, dtype=norch.bfloat16),
        size=norch.Size([1, 2]),
        device=norch.device("cpu"),
        dtype=norch.int8,
        others=[1, 2.5, 1j, None, True, "a", b"x", bytearray(b"y"), {1, 2}, frozenset("a"), range(3), slice(1, 2)]
        + [Counter("aab"), defaultdict(list, a=[1])],
    )


def file_of(program: bytes, *storages: bytes) -> bytes:
    """A file of a pickle and the bytes of storages, with the checksums that it should have."""
    content = checked = b"norch file 7\n"
    for data in storages:
        content += size(len(data))
        padding, own = bytes(-len(content) % 64), struct.pack("<I", zlib.crc32(data))
        content, checked = content + padding + data + own, checked + size(len(data)) + padding + own
    end = size(-1) + size(len(program)) + program
    return content + end + struct.pack("<I", zlib.crc32(checked + end))


def size(count: int) -> bytes:
    return struct.pack("<q", count)


class OnlyRead:
    """A file that can be read in order, and no more, as one from a network."""

    def __init__(self, content: bytes):
        file = io.BytesIO(content)
        self.read = file.read


class OnlyWrite:
    """A file that can be written to, and no more; notes how much it was given at once."""

    def __init__(self) -> None:
        self.content = b""
        self.most = 0

    def write(self, data: Any) -> None:
        self.content += data
        self.most = max(self.most, len(data))


# ---- in pieces -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [1, 7, 24, 1000])
@pytest.mark.parametrize("weights_only", [True, False])
def test_storages_go_in_pieces(monkeypatch: Any, piece: int, weights_only: bool) -> None:
    monkeypatch.setattr(storage, "PIECE", piece)
    x = norch.arange(100.0)
    saved = {"x": x, "view": x.view(10, 10).t()[3:], "none": norch.zeros(0, 3), "other": norch.arange(7).to(norch.int8)}
    file = OnlyWrite()
    norch.save(saved, file)
    loaded = norch.load(OnlyRead(file.content), DEVICE, weights_only=weights_only)
    assert all(norch.equal(loaded[key], saved[key]) for key in saved) and loaded["none"].shape == (0, 3)
    loaded["x"][3] = -1
    assert loaded["view"][0, 0] == -1, "views share their storage again"


def test_what_is_written_at_once_is_a_piece() -> None:
    file = OnlyWrite()
    norch.save([norch.zeros(3 * storage.PIECE, dtype=norch.int8), norch.zeros(storage.PIECE + 1)], file)
    assert file.most == storage.PIECE


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_files_of_pytorch_in_pieces(torch: Any, monkeypatch: Any, piece: int) -> None:
    monkeypatch.setattr(storage, "PIECE", piece)
    file = io.BytesIO()
    torch.save([torch.arange(100.0), torch.zeros(0), torch.tensor(2.5)], file)
    for again in (io.BytesIO(file.getvalue()), OnlyRead(file.getvalue())):
        x, none, number = norch.load(again)
        assert x.tolist() == list(range(100)) and none.shape == (0,) and number.item() == 2.5


def test_the_bytes_of_a_pytorch_storage_are_checked(torch: Any) -> None:
    file = io.BytesIO()
    torch.save(torch.arange(100.0), file)
    damaged = file.getvalue().replace(struct.pack("<2f", 50, 51), struct.pack("<2f", 50, 52))
    with pytest.raises(norch.Error, match="damaged .*CRC"):
        norch.load(io.BytesIO(damaged))


MEASURED = """
import sys, norch
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024
norch.save(norch.zeros(1), sys.argv[2] + ".small")
norch.load(sys.argv[2] + ".small")
if sys.argv[1] == "save":
    x = norch.ones(16 << 20)
before = peak()
if sys.argv[1] == "save":
    norch.save(x, sys.argv[2])
else:
    x = norch.load(sys.argv[2], weights_only=sys.argv[1] == "load")
print(peak() - before)
"""


@pytest.mark.resident
@pytest.mark.host
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_no_second_copy_in_memory(tmp_path: Any) -> None:
    taken = {}
    for what in ("save", "load", "load trusting"):
        command = [sys.executable, "-c", MEASURED, what, str(tmp_path / "x.pt")]
        taken[what] = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert taken["save"] < 16 and max(taken["load"], taken["load trusting"]) < 64 + 16, taken


def free_memory() -> int:
    try:
        with open("/proc/meminfo") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except OSError:
        return 0


@pytest.mark.slow
@pytest.mark.host
@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=pytest.mark.long) for way in ("save", "pickle 4", "pickle 5", "deepcopy")]
)
def test_more_than_four_gib(tmp_path: Any, way: str) -> None:
    count = (4 << 30) + 1000
    if shutil.disk_usage(tmp_path).free < 2 * count or free_memory() < 4 * count:
        pytest.skip("takes 9 GB on the disk and 18 GB of memory")
    x = norch.empty(count, dtype=norch.int8)
    x[-3:] = norch.tensor([1, 2, 3])
    x[:3] = x[-3:] * 10
    path = tmp_path / "x"
    if way == "save":
        norch.save(x, path)
        assert path.stat().st_size > count
        y = norch.load(path)
    elif way == "deepcopy":
        y = deepcopy(x)
    else:
        with open(path, "wb") as file:
            pickle.dump(x, file, protocol=int(way[-1]))
        with open(path, "rb") as file:
            y = pickle.load(file)
    path.unlink(missing_ok=True)
    assert y.shape == (count,) and y[-3:].tolist() == [1, 2, 3] and y[:3].tolist() == [10, 20, 30]


# ---- pickles -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_every_protocol(protocol: int) -> None:
    x = norch.arange(10.0)
    whole, part, none = pickle.loads(pickle.dumps([x, x[4:6], norch.zeros(0, 2)], protocol))
    whole[4] = -1
    assert part.tolist() == [-1, 5] and x[4] == 4 and none.shape == (0, 2)
    assert copy(x.untyped_storage()).nbytes() == 40


def test_a_pickle_with_its_buffers_beside_it() -> None:
    x, buffers = norch.arange(10.0), []
    program = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(program) < 400 and [each.raw().nbytes for each in buffers] == [40]
    y = pickle.loads(program, buffers=[bytes(each) for each in buffers])
    y[0] = 7
    assert y.tolist()[:2] == [7, 1] and x[0] == 0


# ---- files that are old, damaged or hostile --------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted((HERE / "files").glob("*.pt")), ids=lambda path: path.stem)
@pytest.mark.parametrize("options", [{}, {"weights_only": False}, {"map_location": "cpu"}])
def test_files_of_each_format_load(path: Path, options: Any) -> None:
    loaded, expected = norch.load(path, **options), all_kinds()
    assert type(loaded) is OrderedDict and list(loaded) == list(expected)
    for name, x in expected.items():
        y = loaded[name]
        assert type(y) is type(x)
        if isinstance(x, norch.Tensor):
            assert y.dtype is x.dtype and y.stride() == x.stride() and norch.equal(x, y.to(x.device))
        else:
            assert y == x
    assert [type(each) for each in loaded["others"]] == [type(each) for each in expected["others"]]
    loaded["w"][0, 1] = 9
    assert loaded["t"][0, 0] == 9


def test_the_format_of_today_has_a_file() -> None:
    heads = {path.read_bytes()[:13] for path in (HERE / "files").glob("*.pt")}
    assert heads == {serialization.FIRST, serialization.HEAD}


def test_two_objects_in_one_file(tmp_path: Any) -> None:
    with open(tmp_path / "both", "w+b") as file:
        norch.save([norch.ones(2)], file)
        norch.save({"x": norch.zeros(3)}, file)
        file.seek(0)
        assert norch.load(file)[0].tolist() == [1, 1] and norch.load(file)["x"].tolist() == [0, 0, 0]


class Trickle(OnlyRead):
    """Gives less than it is asked for, as a pipe does."""

    def __init__(self, content: bytes):
        file = io.BytesIO(content)
        self.read = lambda count: file.read(min(count, 3))


@pytest.mark.parametrize("stem", ["format_1_first", "format_1_last", "format_7"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_what_gives_less_than_it_is_asked_for(stem: str, weights_only: bool) -> None:
    content = (HERE / "files" / f"{stem}.pt").read_bytes()
    assert norch.load(Trickle(content), weights_only=weights_only)["others"] == all_kinds()["others"]


def test_a_pytorch_file_from_what_can_only_read(torch: Any) -> None:
    file = io.BytesIO()
    torch.save(torch.arange(100.0), file)
    assert norch.load(Trickle(file.getvalue())).tolist() == list(range(100))


def test_a_pipe_without_a_buffer() -> None:
    """Such a pipe gives at most 64 KB at once."""
    file = io.BytesIO()
    norch.save(norch.arange(100_000), file)
    out, into = os.pipe()

    def write() -> None:
        with open(into, "wb") as end:
            end.write(file.getvalue())

    writer = threading.Thread(target=write)
    writer.start()
    with open(out, "rb", buffering=0) as pipe:
        assert norch.equal(norch.load(pipe), norch.arange(100_000, device="cpu"))
    writer.join()


def test_what_does_not_read_bytes_is_named() -> None:
    with pytest.raises(TypeError, match=r"load: expected a file opened with 'rb', not one that gives str"):
        norch.load(io.StringIO("norch file 4"))
    out, into = os.pipe()
    os.set_blocking(out, False)
    with open(out, "rb", buffering=0) as pipe, pytest.raises(BlockingIOError, match="no bytes yet"):
        norch.load(pipe)
    os.close(into)


HEAD = serialization.HEAD


@pytest.mark.parametrize(
    "content",
    [
        HEAD + size(4) + bytes(64 - 21) + b"abc",  # a byte is missing
        HEAD + size(-2) + file_of(b"N.")[13:],
        HEAD + size(1 << 40) + bytes(64 - 21) + b"abc",
        file_of(b"I1\nQ.", b"ab"),  # the storage 1 of 1
        file_of(b"I-1\nQ.", b"ab"),
        file_of(b"I01\nQ.", b"ab"),  # True
        file_of(b"P0\n.", b"ab"),  # "0"
        file_of(b"N.", b"ab").replace(size(-1), b""),
        file_of(b"N.", b"ab")[:-6],
        file_of(b"N.", b"ab").replace(HEAD, b"norch file 4\n"),  # a format that no version wrote
    ],
)
@pytest.mark.parametrize("weights_only", [True, False])
def test_damaged_storages(content: bytes, weights_only: bool) -> None:
    with pytest.raises((norch.Error, MemoryError)):
        norch.load(io.BytesIO(content), weights_only=weights_only)


def test_storages_by_number() -> None:
    first, again, second = norch.load(io.BytesIO(file_of(b"(I0\nQI0\nQI1\nQt.", b"ab", b"")))
    assert first is again and first.elements.tolist() == [97, 98] and second.nbytes() == 0


# Only what is given as False trusts a file.
EVIL = b"cos\nmkdir\n(Vmade\ntR."


@pytest.mark.parametrize("distrusting", [None, 0, "", [], (), 1, "False", norch.tensor(False)])
def test_only_false_trusts(tmp_path: Any, monkeypatch: Any, distrusting: Any) -> None:
    monkeypatch.chdir(tmp_path)
    refusal = pickle.UnpicklingError if distrusting is None else TypeError
    for content in (b"norch file 1\n" + EVIL, file_of(EVIL)):
        (tmp_path / "evil.pt").write_bytes(content)
        for file in (io.BytesIO(content), tmp_path / "evil.pt"):
            with pytest.raises(refusal, match="os.mkdir|weights_only must be True or False"):
                norch.load(file, weights_only=distrusting)
    assert os.listdir(tmp_path) == ["evil.pt"]
    norch.load("evil.pt", weights_only=False)
    assert (tmp_path / "made").is_dir(), "the file would have run it"


def test_a_write_that_fails_leaves_the_file_that_was_there(tmp_path: Any, monkeypatch: Any) -> None:
    norch.save({"w": norch.ones(2)}, tmp_path / "w.pt")
    write, given = storage.Storage.write_to, []

    def full(self: Any, file: Any) -> None:
        write(self, file)
        given.append(self.nbytes())
        if len(given) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage.Storage, "write_to", full)
    with pytest.raises(OSError, match="No space left"):
        norch.save([norch.zeros(100), norch.zeros(10), norch.zeros(3)], tmp_path / "w.pt")
    assert given == [400, 40] and os.listdir(tmp_path) == ["w.pt"]
    assert norch.load(tmp_path / "w.pt")["w"].tolist() == [1, 1]


def test_a_raw_file_that_writes_less_than_it_is_given() -> None:
    class Short(io.RawIOBase):
        def __init__(self, room: int):
            self.written, self.room = bytearray(), room

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            piece = bytes(data)[: min(7, self.room - len(self.written))]
            if not piece:
                raise OSError("no space left")
            self.written += piece
            return len(piece)

    whole = Short(10**6)
    norch.save(norch.ones(100), whole)
    assert norch.load(io.BytesIO(bytes(whole.written))).tolist() == [1.0] * 100 and not whole.closed
    with pytest.raises(OSError, match="no space left"):
        norch.save(norch.ones(100), Short(50))


def test_what_cannot_be_pickled_leaves_a_file_that_cannot_be_replaced(tmp_path: Any, monkeypatch: Any) -> None:
    path, bad = tmp_path / "w.pt", {"w": norch.zeros(2), "f": lambda: 1}
    norch.save(norch.ones(2), path)
    access = os.access  # which tells root that nothing is forbidden; here to make files in the folder is
    monkeypatch.setattr(os, "access", lambda name, mode: os.fspath(name) != str(tmp_path) and access(name, mode))
    with pytest.raises((AttributeError, pickle.PicklingError)):
        norch.save(bad, path)
    with open(path, "r+b") as file, pytest.raises((AttributeError, pickle.PicklingError)):
        norch.save(bad, file)
    assert norch.load(path).tolist() == [1, 1]
    norch.save(norch.zeros(2), path)
    assert norch.load(path).tolist() == [0, 0] and os.listdir(tmp_path) == ["w.pt"]
