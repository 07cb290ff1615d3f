"""Files cut at every byte and with every bit flipped, hostile ones, and saves that are killed.

An ordinary run tries every bit and byte of a file of norch, and some of PyTorch's, far enough apart that each part of a
file, and each bit of a byte, is among them; `make fuzz` tries all.
"""

from __future__ import annotations

import io
import pickle
import random
import resource
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from budget import SECONDS, SEED, cases

import norch

REFUSALS = (norch.Error, pickle.UnpicklingError, MemoryError)


def saved(x: Any) -> bytes:
    file = io.BytesIO()
    norch.save(x, file)
    return file.getvalue()


FILES = Path(__file__).parents[1] / "files"
WHOLE = {"w": norch.arange(12.0).view(3, 4), "names": ["a", 1, 2.5], "b": norch.ones(3, dtype=norch.float16)}


def places(count: int, apart: int) -> range:
    """Bits or bytes of a file to damage in turn; apart: a prime."""
    return range(0, count, 1 if SECONDS else apart)


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("weights_only", [True, False])
def test_no_flipped_bit_goes_unseen(weights_only: bool) -> None:
    content = saved(WHOLE)
    for bit in range(8 * len(content)):
        with pytest.raises((norch.Error, MemoryError)):
            norch.load(io.BytesIO(flipped(content, bit)), weights_only=weights_only)


@pytest.mark.parametrize("weights_only", [True, False])
def test_no_cut_goes_unseen(weights_only: bool) -> None:
    content = saved(WHOLE)
    for length in range(len(content)):
        with pytest.raises(norch.Error, match="damaged"):
            norch.load(io.BytesIO(content[:length]), weights_only=weights_only)


def test_flipped_bits_without_checksums_do_no_harm() -> None:
    content = (FILES / "format_1_last.pt").read_bytes()
    for bit in range(8 * 13, 8 * len(content)):
        try:
            norch.load(io.BytesIO(flipped(content, bit)))
        except REFUSALS:
            pass


def test_flipped_bits_of_a_pytorch_file_do_no_harm(torch: Any) -> None:
    file = io.BytesIO()
    torch.save({"w": torch.arange(3.0), "n": 1}, file)
    content, expected = file.getvalue(), [0.0, 1.0, 2.0]
    for bit in places(8 * len(content), 13):
        try:
            assert norch.load(io.BytesIO(flipped(content, bit)))["w"].tolist() == expected, bit
        except REFUSALS:
            pass


@pytest.mark.parametrize("name", ["legacy.pth", "script.pth"])
def test_flipped_bits_of_other_pytorch_files_do_no_harm(name: str) -> None:
    content = (FILES / name).read_bytes()
    for bit in places(8 * len(content), 5 if name == "legacy.pth" else 31):
        try:
            norch.load(io.BytesIO(flipped(content, bit)))
        except REFUSALS:
            pass


@pytest.mark.parametrize("name", ["legacy.pth", "script.pth"])
def test_no_cut_of_other_pytorch_files_goes_unseen(name: str) -> None:
    content = (FILES / name).read_bytes()
    for length in places(len(content), 3 if name == "legacy.pth" else 31):
        with pytest.raises((norch.Error, pickle.UnpicklingError)):
            norch.load(io.BytesIO(content[:length]))


# ---- files that ask for more than they are --------------------------------------------------------------------------

NAMED = {
    name: f"cbuiltins\n{name}\n".encode() for name in ("set", "range", "list", "str", "bytes", "bytearray", "slice")
}
MANY = b"(" + NAMED["range"] + b"(I0\nI10000000000\nI1\ntRt"  # (range(10**10),)
TUPLES = b")" + b"\x85" * 1_000_000  # of one element each, in each other
DOUBLED = b")" + b"2\x86" * 40  # each is twice the one before it
ONE_MB = b"B" + struct.pack("<I", 1 << 20) + bytes(1 << 20)
TENSOR = (
    b"cnorch.tensor\nrebuilt\n(cnorch.storage\nrestored\n(C\1\0tRcnorch.dtype\ndtype_named\n(Vuint8\ntR"
    b"(I10000000000\nt(I0\ntI0\ncnorch.tensor\nTensor\nI00\ntR"
)  # one byte, expanded to 10**10

HOSTILE = {
    "deep key": b"}" + TUPLES + b"Ns.",
    "deep element": b"\x80\x04\x8f(" + TUPLES + b"\x90.",
    "deep frozenset": b"\x80\x04(" + TUPLES + b"\x91.",
    "deep callable": TUPLES + b")R.",
    "doubled key": b"}" + DOUBLED + b"Ns.",
    "doubled keys": b"(" + DOUBLED + b"NVa\nN" + b"d.",
    "doubled element": b"\x80\x04\x8f(" + DOUBLED + b"\x90.",
    "doubled text": NAMED["str"] + DOUBLED + b"\x85R.",
    "set of a range": NAMED["set"] + MANY + b"R.",
    "list of a range": NAMED["list"] + MANY + b"R.",
    "bytes by number": NAMED["bytes"] + b"(I10000000000\ntR.",
    "bytearray by number": NAMED["bytearray"] + b"(I10000000000\ntR.",
    "BYTEARRAY8": b"\x80\x05\x96" + struct.pack("<Q", 12 << 30) + b"abc.",
    "BINBYTES8": b"\x80\x04\x8e" + struct.pack("<Q", 12 << 30) + b"abc.",
    "size from a range": b"cnorch.tensor\nSize\n" + MANY + b"R.",
    "copies of one bytearray": b"(" + ONE_MB + b"q\0" + (NAMED["bytearray"] + b"(h\0tR") * 1000 + b"l.",
    "copies of one storage": b"(" + ONE_MB + b"q\0" + b"cnorch.storage\nrestored\n(h\0tR" * 1000 + b"l.",
    "codecs": b"c_codecs\nencode\n(Va\nVidna\ntR.",
    "tensor by size": b"cnorch.tensor\nTensor\n(I10000000000\ntR.",
    "tensor written to": TENSOR + b"NI1\ns.",
    "tensor added to": b"\x80\x04" + TENSOR + b"(" + TENSOR + b"\x90.",
}


def bounded(content: bytes) -> tuple[str, float, int]:
    """What load() says of a file, its seconds, and the MiB by which the process grew, in a process of its own."""
    program = (
        "import io, resource, sys, time, norch\n"
        "content = sys.stdin.buffer.read()\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024\n"
        "before, begin = peak(), time.process_time()\n"
        "try: said = 'loaded ' + type(norch.load(io.BytesIO(content))).__name__\n"
        "except Exception as error: said = type(error).__name__\n"
        "print(said, time.process_time() - begin, peak() - before)\n"
    )
    limits = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_CPU, (20, 20))}
    done = subprocess.run([sys.executable, "-c", program], input=content, capture_output=True, **limits)
    assert done.returncode == 0, (done.returncode, done.stderr[-500:])
    said, seconds, grown = done.stdout.decode().rsplit(maxsplit=2)
    return said, float(seconds), int(grown)


@pytest.mark.host
@pytest.mark.resident
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_at_once(name: str) -> None:
    program = HOSTILE[name]
    end = struct.pack("<qq", -1, len(program)) + program
    today = b"norch file 7\n" + end + struct.pack("<I", zlib.crc32(b"norch file 7\n" + end))
    said, seconds, grown = bounded(today if len(name) % 2 else b"norch file 1\n" + program)
    assert said in ("Refusal", "Error") and seconds < 4 and grown < 100, (said, seconds, grown)


LEGACY = b"".join(pickle.dumps(each, protocol=2) for each in (norch.serialization.MAGIC, 1001, {}))
STORAGES = b"(Vstorage\nctorch\nByteStorage\nV%d\nVcpu\nI10000000\nNtQ"


@pytest.mark.host
@pytest.mark.resident
@pytest.mark.parametrize("name", ["many storages", *HOSTILE])
def test_hostile_files_of_the_legacy_format_are_refused_at_once(name: str) -> None:
    program = b"(" + b"".join(STORAGES % i for i in range(1000)) + b"l." if name == "many storages" else HOSTILE[name]
    said, seconds, grown = bounded(LEGACY + program)
    assert said in ("Refusal", "Error") and seconds < 4 and grown < 100, (said, seconds, grown)


@pytest.mark.host
@pytest.mark.resident
@pytest.mark.parametrize("way", ["bz2", "deflate", "overlapping"])
def test_zip_bombs_are_refused_at_once(way: str) -> None:
    kinds = {"bz2": zipfile.ZIP_BZIP2, "deflate": zipfile.ZIP_DEFLATED}
    file = io.BytesIO()
    tensors = b"".join(
        b"ctorch._utils\n_rebuild_tensor_v2\n((Vstorage\nctorch\nByteStorage\nV%d\nVcpu\nI1\ntQI0\n(I1\nt(I1\ntI00\nNtR"
        % i
        for i in range(200)
    )
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", b"(" + tensors + b"l.")
        archive.writestr("a/data/0", bytes(128 << 20 if way in kinds else 1 << 20), kinds.get(way))
        if way == "overlapping":
            for i in range(1, 200):
                copy = zipfile.ZipInfo(f"a/data/{i}")
                first = archive.getinfo("a/data/0")
                copy.CRC, copy.file_size, copy.compress_size = first.CRC, first.file_size, first.compress_size
                copy.header_offset = first.header_offset
                archive.filelist.append(copy)
    said, seconds, grown = bounded(file.getvalue())
    assert said in ("Refusal", "Error") and seconds < 4 and grown < 100, (said, seconds, grown)


# ---- saves that are killed -------------------------------------------------------------------------------------------

SAVES = """
import sys, norch
x = norch.zeros(300_000)
for number in range(1, 1_000_000):
    norch.save({"number": number, "x": x.fill_(number)}, sys.argv[1])
    print(flush=True)
"""


@pytest.mark.host
def test_a_save_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    for number in cases(8, 0.1):
        process = subprocess.Popen([sys.executable, "-c", SAVES, tmp_path / "x.pt"], stdout=subprocess.PIPE)
        assert process.stdout
        process.stdout.readline()
        time.sleep(random.Random(f"{SEED}/{number}").uniform(0, 0.02))
        process.kill()
        process.communicate()
        loaded = norch.load(tmp_path / "x.pt")
        assert (loaded["x"] == loaded["number"]).all(), f"{SEED}/{number}"
        for left in tmp_path.glob(".norch-*"):
            left.unlink()
