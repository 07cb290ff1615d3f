"""safetensors: files that the package reads and writes too, what is refused, and how long mapped memory lives."""

from __future__ import annotations

import gc
import io
import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from conftest import DEVICE, torch_or_skip

import norch
from norch import nn
from norch._binding.library import lib
from norch.utils import safetensors
from norch.utils.safetensors import SafetensorError

NAMES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64".split()


def tensors() -> dict[str, Any]:
    return {
        **{name: norch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 5.0]]).to(getattr(norch, name)) for name in NAMES},
        "0-d": norch.tensor(2.5),
        "empty": norch.zeros(0, 3),
        "é": norch.arange(3),
    }


def same(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    return found.keys() == expected.keys() and all(
        found[name].dtype is x.dtype and found[name].shape == x.shape and norch.equal(found[name].cpu(), x.cpu())
        for name, x in expected.items()
    )


def file_of(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.fixture
def package() -> Any:
    torch_or_skip()
    pytest.importorskip("safetensors")
    from safetensors import torch as package

    return package


@pytest.mark.parametrize("metadata", [None, {"a": "b"}, {}])
def test_round_trip(tmp_path: Path, metadata: Any) -> None:
    path, expected = tmp_path / "x.safetensors", tensors()
    safetensors.save_file(expected, path, metadata)
    assert path.read_bytes() == safetensors.save(expected, metadata)
    assert same(safetensors.load_file(path), expected)
    assert same(safetensors.load(path.read_bytes()), expected)
    assert same(norch.load(path), expected) and same(norch.load(path, mmap=True), expected)
    norch.save(expected, path, format="safetensors")
    assert same(norch.load(io.BytesIO(path.read_bytes()), map_location="cpu"), expected)
    with safetensors.safe_open(path, framework="pt", device=DEVICE) as file:
        assert file.keys() == sorted(expected)
        assert file.get_tensor("float32").device.type == DEVICE.partition(":")[0]


def test_the_bytes_are_those_of_the_package(package: Any) -> None:
    import torch

    ours = tensors()
    theirs = {
        name: torch.tensor(x.tolist(), dtype=getattr(torch, x.dtype.name)).reshape(x.shape) for name, x in ours.items()
    }
    for metadata in (None, {"format": "pt"}):
        content = safetensors.save(ours, metadata)
        assert content == package.save(theirs, metadata)
        assert all(torch.equal(x, theirs[name]) for name, x in package.load(content).items())
        assert same(safetensors.load(package.save(theirs, metadata)), ours)


def test_tensors_see_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"w": norch.arange(4.0), "b": norch.ones(3)}, path)
    before = path.read_bytes()
    found = safetensors.load_file(path)
    os.remove(path)
    assert found["w"].tolist() == [0, 1, 2, 3]
    found["w"][0] = 9  # of this process alone
    path.write_bytes(before)
    assert safetensors.load_file(path)["w"][0] == 0
    w = found.pop("w")[1:]
    del found
    gc.collect()
    assert w.tolist() == [1, 2, 3]
    live = lib.norch_live_storages()
    del w
    gc.collect()
    assert lib.norch_live_storages() == live - 1


def test_what_is_not_aligned_is_copied(tmp_path: Path) -> None:
    header = {"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    for spaces in range(9):
        path = tmp_path / f"{spaces}"
        path.write_bytes(file_of(json.dumps(header).encode() + b" " * spaces, struct.pack("<f", 2.5)))
        assert safetensors.load_file(path)["x"].tolist() == [2.5]


def test_parts_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"b": norch.arange(12).view(3, 4), "a": norch.ones(1)}, path, {"step": "3"})
    with safetensors.safe_open(path) as file:
        part = file.get_slice("b")
        assert part.get_shape() == [3, 4] and part.get_dtype() == "I64" and part[1, 2:].tolist() == [6, 7]
        assert file.metadata() == {"step": "3"} and file.offset_keys() == ["b", "a"] and file.keys() == ["a", "b"]
        with pytest.raises(SafetensorError, match="no tensor 'c'"):
            file.get_tensor("c")
    with pytest.raises(SafetensorError, match="closed"):
        file.get_tensor("a")
    with pytest.raises(ValueError, match="framework 'jax'"):
        safetensors.safe_open(path, framework="jax")


def test_tied_weights(tmp_path: Path, package: Any) -> None:
    def tied() -> nn.Module:
        net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.BatchNorm1d(3))
        net[1].weight = net[0].weight
        return net

    path, first, second = tmp_path / "net", tied(), tied()
    safetensors.save_model(first, path, {"a": "b"})
    with safetensors.safe_open(path) as file:
        assert file.metadata() == {"a": "b", "1.weight": "0.weight"} and "1.weight" not in file.keys()
    assert "0.weight" in package.load_file(path)
    assert safetensors.load_model(second, path) == ([], [])
    assert all(norch.equal(x, y) for x, y in zip(first.parameters(), second.parameters()))
    more = nn.Sequential(*tied(), nn.Linear(1, 1))
    with pytest.raises(norch.Error, match=r"Missing key.*3.weight"):
        safetensors.load_model(more, path)
    assert safetensors.load_model(more, path, strict=False)[0] == ["3.weight", "3.bias"]


@pytest.mark.parametrize(
    ("tensors", "match"),
    [
        ([norch.ones(2)], "dict of tensors by name, not a list"),
        ({"x": 1.0}, "'x' is a float"),
        ({"__metadata__": norch.ones(2)}, "cannot be the name"),
        ({1: norch.ones(2)}, "cannot be the name"),
        ({"x": norch.ones(2, 3).t()}, "'x' is not contiguous"),
        ((lambda x: {"a": x, "b": x[:1]})(norch.ones(3)), "'[ab]' and '[ab]' share memory"),
    ],
)
def test_what_cannot_be_saved(tmp_path: Path, tensors: Any, match: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"before")
    for save in (
        lambda: safetensors.save_file(tensors, path),
        lambda: norch.save(tensors, path, format="safetensors"),
        lambda: safetensors.save(tensors),
    ):
        with pytest.raises(ValueError, match=match):
            save()
    assert path.read_bytes() == b"before"
    with pytest.raises(TypeError, match="metadata"):
        safetensors.save({}, {"a": 1})  # type: ignore[dict-item]


def test_parts_of_one_storage_that_do_not_overlap_are_saved() -> None:
    x = norch.arange(6.0)
    assert same(safetensors.load(safetensors.save({"a": x[:3], "b": x[3:]})), {"a": x[:3], "b": x[3:]})


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8), **more: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


GOOD = {
    "nothing": file_of({}),
    "one": file_of({"x": entry()}, bytes(8)),
    "unknown field": file_of({"x": entry(more=1)}, bytes(8)),
    "empty tensors": file_of({"a": entry(shape=[0], offsets=[0, 0]), "x": entry()}, bytes(8)),
    "out of order": file_of({"b": entry(offsets=[8, 16]), "a": entry()}, bytes(16)),
    "spaces": file_of(b"{}      "),
    "null metadata": file_of({"__metadata__": None}),
}
BAD = {
    "no bytes": b"",
    "seven bytes": bytes(7),
    "a header beyond the file": struct.pack("<Q", 3) + b"{}",
    "a header beyond the limit": struct.pack("<Q", 100_000_001) + b"{}",
    "a header of 2**64 - 1": struct.pack("<Q", 2**64 - 1) + b"{}",
    "no header": struct.pack("<Q", 0),
    "a list": file_of([]),
    "a space first": file_of(b" {}"),
    "no JSON": file_of(b"{,}"),
    "no UTF-8": file_of(b'{"\xff": 1}'),
    "deep": file_of(b'{"x":' + b"[" * 100_000),
    "a name twice": file_of(
        b'{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
    ),
    "an entry of numbers": file_of({"x": [1]}),
    "no shape": file_of({"x": {"dtype": "F32", "data_offsets": [0, 8]}}, bytes(8)),
    "a dtype": file_of({"x": entry("F31")}, bytes(8)),
    "a dtype of numbers": file_of({"x": entry(1)}, bytes(8)),
    "a negative size": file_of({"x": entry(shape=[-2])}, bytes(8)),
    "a fractional size": file_of({"x": entry(shape=[2.0])}, bytes(8)),
    "a true size": file_of({"x": entry(shape=[True, 2])}, bytes(8)),
    "a size beyond 64 bits": file_of({"x": entry(shape=[2**64])}, bytes(8)),
    "sizes that overflow": file_of({"x": entry(shape=[2**62, 2**62])}, bytes(8)),
    "another size": file_of({"x": entry(shape=[3])}, bytes(8)),
    "offsets backward": file_of({"x": entry(offsets=[8, 0])}, bytes(8)),
    "one offset": file_of({"x": entry(offsets=[8])}, bytes(8)),
    "a hole in front": file_of({"x": entry(offsets=[4, 12])}, bytes(12)),
    "a hole": file_of({"x": entry(), "y": entry(offsets=[12, 20])}, bytes(20)),
    "an overlap": file_of({"x": entry(), "y": entry(offsets=[4, 12])}, bytes(12)),
    "the same twice": file_of({"x": entry(), "y": entry()}, bytes(8)),
    "bytes behind": file_of({"x": entry()}, bytes(9)),
    "bytes missing": file_of({"x": entry()}, bytes(7)),
    "metadata of numbers": file_of({"__metadata__": {"a": 1}}),
    "a list of metadata": file_of({"__metadata__": []}),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_bytes(GOOD[name])
    found = safetensors.load_file(tmp_path / "x")
    assert all(x.tolist() == [0.0] * len(x) for x in found.values()) and same(safetensors.load(GOOD[name]), found)


_TOO_DEEP = pytest.mark.native("the stack of Python's own parser of JSON, which ends Pyodide")


@pytest.mark.parametrize("name", [pytest.param(name, marks=_TOO_DEEP if name == "deep" else ()) for name in BAD])
def test_what_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_bytes(BAD[name])
    for load in (lambda: safetensors.load_file(tmp_path / "x"), lambda: safetensors.load(BAD[name])):
        with pytest.raises(SafetensorError):
            load()
    with pytest.raises(norch.Error):
        norch.load(tmp_path / "x")
    with pytest.raises(norch.Error):
        norch.load(tmp_path / "x", mmap=True)


STRICTER = {"a name twice", "a space first"}  # which the package lets through


@pytest.mark.parametrize("name", [name for name in (*GOOD, *BAD) if name not in STRICTER])
def test_the_package_judges_alike(package: Any, name: str) -> None:
    content = GOOD.get(name) or BAD[name]
    if name in GOOD:
        package.load(content)
        return
    with pytest.raises(Exception):  # noqa: B017  (an error of its own, which its versions name differently)
        package.load(content)


def test_what_a_stream_claims_is_checked_first() -> None:
    header = {"x": entry("U8", [1 << 40], [0, 1 << 40])}
    with pytest.raises(SafetensorError, match="1099511627776 bytes of elements in a file of"):
        norch.load(io.BytesIO(file_of(header, bytes(8))))


def test_a_dtype_that_norch_lacks_is_named() -> None:
    with pytest.raises(SafetensorError, match="'x' is of U32, for which norch has no dtype"):
        safetensors.load(file_of({"x": entry("U32")}, bytes(8)))


def test_flipped_bits_and_cuts_do_no_harm(tmp_path: Path) -> None:
    whole, path = (
        safetensors.save({"w": norch.ones(3), "b": norch.ones(1, dtype=norch.int8)}, {"a": "b"}),
        tmp_path / "x",
    )
    for length in range(len(whole)):
        with pytest.raises(SafetensorError):
            safetensors.load(whole[:length])
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            safetensors.load_file(path)
            safetensors.load(bytes(changed))
        except SafetensorError:
            pass
