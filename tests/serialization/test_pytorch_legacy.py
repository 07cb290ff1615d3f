"""Files of torch.save as before PyTorch 1.6: what they hold comes over; damaged and hostile ones are refused. And
map_location, of files of all formats."""

import io
import pickle
import struct
from collections import OrderedDict
from pathlib import Path

import pytest

import norch
from norch import nn
from norch.serialization import MAGIC

STORED = Path(__file__).resolve().parents[1] / "files" / "legacy.pth"


def number(value):
    return pickle.dumps(value, protocol=2)


def file_of(program, storages, keys=None, version=1001):
    """A file by hand: storages: {key: (number of elements, bytes)}."""
    keys = list(storages) if keys is None else keys
    head = number(MAGIC) + number(version) + number({"little_endian": True}) + program + number(keys)
    return io.BytesIO(head + b"".join(struct.pack("<q", count) + data for count, data in storages.values()))


def tensor_of(key, count, offset, shape, strides, kind=b"FloatStorage", view=b"N", call=b"_rebuild_tensor_v2"):
    reference = b"((Vstorage\nctorch\n" + kind + b"\nV" + key + b"\nVcuda:1\nI%d\n" % count + view + b"tQ"
    sizes = b"(" + b"".join(b"I%d\n" % n for n in shape) + b"t(" + b"".join(b"I%d\n" % n for n in strides) + b"t"
    more = b"I00\nN" if call.endswith(b"v2") else b""
    return b"ctorch._utils\n" + call + b"\n" + reference + b"I%d\n" % offset + sizes + more + b"tR"


SIX = 6, struct.pack("<6f", *range(6))
WHOLE = tensor_of(b"0", 6, 0, [2, 3], [3, 1])


def test_a_stored_file():
    found = norch.load(STORED)
    assert found["turned"].tolist() == [[0, 3], [1, 4], [2, 5]] and found["tail"].tolist() == [4, 5]
    assert found["tail"].untyped_storage() is found["turned"].untyped_storage()
    assert found["half"].dtype is norch.float16 and found["half"].tolist() == [1, -2]
    assert type(found["weight"]) is nn.Parameter and found["weight"].tolist() == [0.5]
    assert found["mask"].tolist() == [True, False] and found["none"].shape == (0, 3) and found["steps"].item() == 7
    assert found["other"] == [1, "x", None, 2.5]


@pytest.mark.parametrize("how", ["mmap", "pipe", "in a row", "unbuffered"])
def test_sources(how):
    content = STORED.read_bytes()
    if how == "mmap":
        found = [norch.load(STORED, mmap=True)]
    elif how == "pipe":
        source = io.BytesIO(content)
        found = [norch.load(type("Pipe", (), {"read": lambda self, n: source.read(min(n, 7))})())]
    elif how == "unbuffered":
        with open(STORED, "rb", buffering=0) as file:
            found = [norch.load(file)]
    else:
        file = io.BytesIO(content + content)
        found = [norch.load(file), norch.load(file)]
    for each in found:
        assert each["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_views_and_the_first_tensors():
    """Storages with views, as before PyTorch 0.4: a view has a key, an offset and a size."""
    view = tensor_of(b"0", 6, 1, [2], [1], view=b"(V9\nI3\nI3\nt", call=b"_rebuild_tensor")
    whole, part = norch.load(file_of(b"(" + WHOLE + view + b"t.", {"0": SIX}))
    assert whole.tolist() == [[0, 1, 2], [3, 4, 5]] and part.tolist() == [4, 5]
    part[0] = 9
    assert whole[1, 1].item() == 9


def test_an_empty_storage_of_tensors_of_two_dtypes():
    """All empty storages of a file may have one key: each tensor has the dtype that its own reference names."""
    kinds = [b"ComplexFloatStorage", b"FloatStorage", b"LongStorage"]
    parts = [tensor_of(b"0", 0, 0, [0, 2], [2, 1], kind) for kind in kinds]
    found = norch.load(file_of(b"(" + b"".join(parts) + b"t.", {"0": (0, b"")}))
    assert [x.dtype for x in found] == [norch.complex64, norch.float32, norch.int64]


def test_what_python_2_wrote():
    pairs = b"ccollections\nOrderedDict\n((l(lS'w'\na" + WHOLE + b"aatR."
    found = norch.load(file_of(pairs, {"0": SIX}))
    assert type(found) is OrderedDict and found["w"].shape == (2, 3)


@pytest.mark.parametrize(
    ("program", "storages", "options", "match"),
    [
        (WHOLE + b".", {"0": (5, SIX[1])}, {}, "5 elements of a storage of 6"),
        (WHOLE + b".", {"0": (6, SIX[1][:-1])}, {}, "1 of the 24 bytes of a storage are missing"),
        (WHOLE + b".", {"0": SIX}, {"keys": ["1"]}, "the keys of the storages"),
        (WHOLE + b".", {"0": SIX}, {"keys": ["0", "0"]}, "the keys of the storages"),
        (WHOLE + b".", {"0": SIX}, {"keys": "0"}, "the keys of the storages"),
        (WHOLE + b".", {"0": SIX}, {"version": 1000}, "version 1000 of the format, not 1001"),
        (tensor_of(b"0", 10**12, 0, [1], [1]) + b".", {"0": SIX}, {}, "more bytes than the file"),
        (tensor_of(b"0", -1, 0, [1], [1]) + b".", {"0": SIX}, {}, "neither a storage nor a dtype"),
        (tensor_of(b"0", 6, 3, [6], [1]) + b".", {"0": SIX}, {}, "as_strided: shape"),
        (tensor_of(b"0", 6, 0, [2], [1], view=b"(V9\nI3\nI4\nt") + b".", {"0": SIX}, {}, "elements 3 to 3 . 4"),
        (tensor_of(b"0", 6, 0, [2], [1], view=b"(V9\nI-3\nI4\nt") + b".", {"0": SIX}, {}, "a view of elements -3"),
        (tensor_of(b"0", 6, 0, [6], [1], kind=b"QInt8Storage") + b".", {"0": SIX}, {}, "torch.QInt8Storage"),
        (b"(Vmodule\ncbuiltins\nlist\nVsource\nVtext\ntQ.", {}, {}, "save the state_dict.. of a module"),
        (b"Vkey\nQ.", {}, {}, "'key' names no storage"),
        (b"cos\nsystem\n(Vtrue\ntR.", {}, {}, "os.system"),
        (b"ccollections\nOrderedDict\n((Vab\nltR.", {}, {}, "calls OrderedDict"),
    ],
)  # fmt: skip
def test_damaged_and_hostile_files(program, storages, options, match):
    with pytest.raises((norch.Error, pickle.UnpicklingError), match=match):
        norch.load(file_of(program, storages, **options))


def test_other_beginnings():
    content = bytearray(file_of(WHOLE + b".", {"0": SIX}).getvalue())
    content[13] ^= 1  # of the magic number, behind what all formats are known by
    with pytest.raises(norch.Error, match="another magic number"):
        norch.load(io.BytesIO(bytes(content)))


def test_state_dicts_of_torch(torch):
    theirs = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    ours, file = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)), io.BytesIO()
    torch.save(theirs.state_dict(), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    ours.load_state_dict(norch.load(file))
    x = torch.rand(2, 1, 5, 5)
    expected = theirs.eval()(x).detach().numpy()
    assert norch.allclose(ours.eval()(norch.from_numpy(x.numpy())), norch.from_numpy(expected), atol=1e-6)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_sparse_tensors_of_torch(torch, layout):
    """Whose elements follow the tensors in the file."""
    theirs, file = (
        torch.tensor([[0.0, 2.0], [3.0, 0.0], [0.0, 5.0]]).to_sparse(layout=getattr(torch, layout)),
        io.BytesIO(),
    )
    torch.save([theirs, theirs], file, _use_new_zipfile_serialization=False)
    file.seek(0)
    x, again = norch.load(file)
    assert x is again and x.layout is getattr(norch, layout) and x._nnz() == 3
    assert x.is_coalesced() if layout == "sparse_coo" else True
    assert x.to_dense().tolist() == theirs.to_dense().tolist()
    indices = {"sparse_coo": "indices", "sparse_csr": "col_indices", "sparse_csc": "row_indices"}[layout]
    part = getattr(theirs, indices)().numpy().tobytes()
    assert part in file.getvalue()
    with pytest.raises(norch.Error, match=r"BoundsError|must be in \[0, "):
        norch.load(io.BytesIO(file.getvalue().replace(part, b"\x7f" * len(part))))


# ---- map_location ----------------------------------------------------------------------------------------------------


def written(form):
    if form == "legacy":
        return file_of(b"(" + WHOLE + tensor_of(b"0", 6, 1, [2], [1]) + b"l.", {"0": SIX})
    x, file = norch.arange(6.0).view(2, 3), io.BytesIO()
    content = {"a": x, "b": norch.ones(2)} if form == "safetensors" else [x, x[0, 1:]]
    norch.save(content, file, format=form)
    file.seek(0)
    return file


FORMS = ("norch", "torch", "safetensors", "legacy")
PLACES = {
    "function": lambda storage, place: storage,
    "function of None": lambda storage, place: None,
    "function that copies": lambda storage, place: storage.cpu(),
    "dict": {"cuda:1": "cpu", "cpu": norch.device("cpu")},
    "dict of others": {"cuda:7": "cuda:0"},
    "str": "cpu",
    "bytes": b"cpu",
    "device": norch.device("cpu"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", PLACES)
def test_map_location(form, place):
    found = norch.load(written(form), map_location=PLACES[place])
    found = list(found.values()) if form == "safetensors" else found
    assert found[0].tolist() == [[0, 1, 2], [3, 4, 5]] and str(found[0].device) == "cpu"
    if form != "safetensors":
        assert found[1].tolist() == [1, 2] and found[1].untyped_storage() is found[0].untyped_storage()


@pytest.mark.parametrize("form", FORMS)
def test_map_location_is_asked_once_for_a_storage(form):
    asked = []
    norch.load(written(form), lambda storage, place: asked.append((storage.nbytes(), place)))
    place = "cuda:1" if form == "legacy" else "cpu"
    assert asked == ([(24, place)] if form != "safetensors" else [(24, place), (8, place)])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("place", "error", "match"),
    [
        (lambda storage, place: 1 / 0, ZeroDivisionError, "division"),
        (
            lambda storage, place: storage.nbytes(),
            TypeError,
            "load: map_location returned a int, not a storage or None",
        ),
        (lambda storage, place: norch.ones(9).storage(), ValueError, "load: map_location returned 36 bytes for a stor"),
        ({"cpu": "nothing", "cuda:1": "nothing"}, norch.DeviceError, "device string: nothing"),
        ("nothing", norch.DeviceError, "device string: nothing"),
    ],
)
def test_map_location_that_fails(form, place, error, match):
    with pytest.raises(error, match=match):
        norch.load(written(form), map_location=place)
