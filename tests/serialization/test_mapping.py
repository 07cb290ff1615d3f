"""load(mmap=True): tensors over the bytes of a file, written to without it, and read only where they must be."""

from __future__ import annotations

import gc
import io
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import DEVICE

import norch
from norch import nn
from norch._binding.library import lib

HERE = Path(__file__).resolve().parents[1]
FORMATS = ["norch", "torch", "safetensors"]


def state() -> dict[str, Any]:
    return {"w": norch.arange(6.0).view(2, 3), "b": norch.ones(3, dtype=norch.int8), "e": norch.zeros(0, 2)}


def mapped(x: Any) -> bool:
    """Whether the elements lie in a file that is mapped."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            where, *_, inode = line.split(maxsplit=5)[:5]
            first, last = (int(end, 16) for end in where.split("-"))
            if first <= x.data_ptr() < last:
                return inode != "0"
    return False


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs /proc")


@pytest.fixture(params=FORMATS)
def path(request: Any, tmp_path: Path) -> Path:
    norch.save(state(), tmp_path / "x", format=request.param)
    return tmp_path / "x"


@needs_proc
@pytest.mark.parametrize("weights_only", [True, False])
def test_tensors_lie_in_the_file(path: Path, weights_only: bool) -> None:
    before = path.read_bytes()
    found = norch.load(path, mmap=True, weights_only=weights_only)
    assert mapped(found["w"]) and mapped(found["b"]) and not mapped(norch.load(path)["w"])
    found["w"].mul_(2)
    found["b"][1] = 7
    assert path.read_bytes() == before and norch.load(path, mmap=True)["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    os.remove(path)
    assert found["w"].tolist() == [[0, 2, 4], [6, 8, 10]] and found["b"].tolist() == [1, 7, 1]
    assert found["e"].shape == (0, 2)


def test_a_file_that_is_saved_anew_leaves_what_was_mapped(path: Path) -> None:
    found = norch.load(path, mmap=True)
    norch.save({"w": norch.zeros(2, 3)}, path)
    assert found["w"].tolist() == [[0, 1, 2], [3, 4, 5]] and norch.load(path, mmap=True)["w"].sum() == 0


@needs_proc
def test_the_mapping_ends_with_the_last_tensor(path: Path) -> None:
    def count() -> int:
        with open("/proc/self/maps") as maps:
            return sum(line.rstrip().endswith(str(path)) for line in maps)

    found = norch.load(path, mmap=True)
    live = lib.norch_live_storages()
    row = found["w"][1]
    del found
    gc.collect()
    assert count() == 1 and row.tolist() == [3, 4, 5]
    del row
    gc.collect()
    assert count() == 0 and lib.norch_live_storages() < live


def test_views_share_their_storage(tmp_path: Path) -> None:
    x = norch.arange(12.0).view(3, 4)
    for format in ("norch", "torch"):
        norch.save([x, x.t()[1:], nn.Parameter(x)], tmp_path / "x", format=format)
        whole, view, parameter = norch.load(tmp_path / "x", mmap=True)
        whole[0, 1] = 9
        assert view[0, 0] == 9 and parameter[0, 1] == 9 and parameter.requires_grad


def test_gradients_and_devices(path: Path) -> None:
    x = norch.load(path, DEVICE, mmap=True)["w"]
    assert x.device.type == DEVICE.partition(":")[0]
    x.requires_grad_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [[0, 2, 4], [6, 8, 10]]


def test_cut_files_are_refused(path: Path) -> None:
    whole = path.read_bytes()
    for length in {*range(0, len(whole), 7), *range(len(whole) - 100, len(whole))}:  # a zip's directory is at its end
        path.write_bytes(whole[:length])
        with pytest.raises(norch.Error):
            norch.load(path, mmap=True)


def test_flipped_bits_do_no_harm(path: Path) -> None:
    """What is mapped is not compared with its checksum; all else is."""
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), max(3, len(whole) // 200 | 1)):  # an odd step meets every bit of a byte
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            [x.tolist() for x in norch.load(path, mmap=True).values()]
        except (norch.Error, MemoryError, norch.serialization.Refusal):
            pass


def test_a_damaged_size_or_pickle_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "x"
    norch.save(state(), path)
    whole = path.read_bytes()
    inside = {*range(64, 88), *range(128, 131)}  # the bytes of the storages
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 16
        path.write_bytes(changed)
        if place in inside:
            norch.load(path, mmap=True)
            with pytest.raises(norch.Error, match="checksum"):
                norch.load(path)
        else:
            with pytest.raises((norch.Error, MemoryError)):
                norch.load(path, mmap=True)


@pytest.mark.parametrize("stem", ["format_1_first", "format_1_last"])
def test_files_of_earlier_versions_are_read(stem: str) -> None:
    found = norch.load(HERE / "files" / f"{stem}.pt", mmap=True)
    assert found["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_zips_that_are_not_aligned_are_read(tmp_path: Path) -> None:
    norch.save(state(), tmp_path / "x", format="torch")
    for shift in range(1, 18):
        with zipfile.ZipFile(tmp_path / "x") as old, zipfile.ZipFile(tmp_path / "y", "w") as new:
            new.writestr("archive/" + "a" * shift, b"")
            for entry in old.infolist():
                new.writestr(entry.filename, old.read(entry))
        assert norch.load(tmp_path / "y", mmap=True)["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


@needs_proc
def test_files_of_pytorch(torch: Any, tmp_path: Path) -> None:
    torch.save({"w": torch.arange(1000.0)}, tmp_path / "x")
    w = norch.load(tmp_path / "x", mmap=True)["w"]
    assert mapped(w) and w.sum() == 499500


def test_an_entry_that_is_not_where_it_should_be(tmp_path: Path) -> None:
    norch.save(state(), tmp_path / "x", format="torch")
    content = bytearray((tmp_path / "x").read_bytes())
    at = content.index(b"PK\1\2", content.index(b"PK\1\2") + 1)  # of an entry of the directory
    while content[at + 46 : at + 60] != b"archive/data/0":
        at = content.index(b"PK\1\2", at + 1)
    for wrong in (struct.pack("<I", 7), struct.pack("<I", 2**31)):
        content[at + 42 : at + 46] = wrong
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(norch.Error):
            norch.load(tmp_path / "x", mmap=True)


def test_only_paths_are_mapped(tmp_path: Path) -> None:
    norch.save([], tmp_path / "x")
    with open(tmp_path / "x", "rb") as file, pytest.raises(ValueError, match="a BufferedReader is read"):
        norch.load(file, mmap=True)
    with pytest.raises(ValueError, match="BytesIO"):
        norch.load(io.BytesIO(), mmap=True)
    with pytest.raises(TypeError, match="mmap must be True or False"):
        norch.load(tmp_path / "x", mmap=1)  # type: ignore[arg-type]
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(norch.Error, match="damaged"):
        norch.load(tmp_path / "x", mmap=True)
