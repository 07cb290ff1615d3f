"""Files of torch.save: what they hold comes over, what else they name is refused."""

import io
import pickle
import struct
import zipfile
from collections import OrderedDict, defaultdict
from typing import Any

import pytest

import norch
from norch import nn

LAYER = {"weight": [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], "bias": [0.1, 0.2]}
BATCH = [[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]]


def file_of(program: bytes, storages: dict[str, bytes], **others: bytes) -> io.BytesIO:
    """A file as torch.save writes it, of a pickle written by hand."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {"data.pkl": program, **{f"data/{key}": data for key, data in storages.items()}}.items():
            archive.writestr(f"archive/{name}", content)
        for name, content in others.items():
            archive.writestr(f"archive/{name}", content)
    file.seek(0)
    return file


def tensor_of(kind: bytes, key: bytes, offset: int, shape: str, strides: str) -> bytes:
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n((Vstorage\nctorch\n" + kind + b"\nV" + key + b"\nVcpu\nI6\ntQ"
        + f"I{offset}\n({shape}t({strides}tI00\nccollections\nOrderedDict\n(tRtR".encode()
    )  # fmt: skip


WHOLE = tensor_of(b"FloatStorage", b"0", 0, "I6\n", "I1\n")
SIX = struct.pack("<6f", *range(6))


def test_tensors_of_a_file_share_their_storage():
    turned = tensor_of(b"FloatStorage", b"0", 1, "I2\nI2\n", "I1\nI2\n")
    halves = tensor_of(b"HalfStorage", b"1", 0, "I2\n", "I1\n")
    file = file_of(b"(" + WHOLE + turned + halves + b"l.", {"0": SIX, "1": b"\x00\x3c\x00\xc0"}, byteorder=b"little")
    x, y, z = norch.load(file)
    assert x.tolist() == [0, 1, 2, 3, 4, 5] and y.tolist() == [[1, 3], [2, 4]] and y.stride() == (1, 2)
    assert z.dtype is norch.float16 and z.tolist() == [1, -2]
    x[1] = 9
    assert y[0, 0] == 9


def of_bytes(dtype: bytes) -> bytes:
    """The tensor WHOLE as PyTorch writes one of a newer dtype: its storage has none."""
    whole = WHOLE.replace(b"_v2", b"_v3").replace(b"torch\nFloatStorage", b"torch.storage\nUntypedStorage")
    return whole.removesuffix(b"tR") + b"ctorch\n" + dtype + b"\ntR."


def test_a_dtype_beside_an_untyped_storage():
    x = norch.load(file_of(of_bytes(b"float32"), {"0": SIX}))
    assert x.dtype is norch.float32 and x.tolist() == [0, 1, 2, 3, 4, 5]
    for trusts in (True, False):
        with pytest.raises(pickle.UnpicklingError, match=r"has the dtype torch\.uint16, which norch lacks$"):
            norch.load(file_of(of_bytes(b"uint16"), {"0": SIX}), weights_only=not trusts)
        with pytest.raises(pickle.UnpicklingError) as refused:
            norch.load(file_of(b"ctorch._dynamo\nnothing\n.", {}), weights_only=not trusts)
        assert ("weights_only=False" in str(refused.value)) is not trusts


@pytest.mark.parametrize(
    ("program", "match"),
    [
        (tensor_of(b"FloatStorage", b"0", 3, "I6\n", "I1\n"), "as_strided: shape"),  # beyond its end
        (tensor_of(b"FloatStorage", b"7", 0, "I6\n", "I1\n"), "no item named 'archive/data/7'"),
        (
            tensor_of(b"QInt8Storage", b"0", 0, "I6\n", "I1\n"),
            "torch.QInt8Storage; what comes over are dense",
        ),
        (tensor_of(b"Size", b"0", 0, "I6\n", "I1\n"), "neither a storage nor a dtype"),
        (b"ctorch.nn.modules.linear\nLinear\n(tR", "torch.nn.modules.linear.Linear; .* save the state_dict"),
        (b"cos\nsystem\n(Vtrue\ntR", "os.system"),
        (b"ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\nlist\nctorch\nTensor\n(t(dtR", "made by"),
        (b"Vtext\n", None),
    ],
)
def test_what_a_file_may_hold(program, match):
    file = file_of(program + b".", {"0": SIX})
    if match is None:
        assert norch.load(file) == "text"
        return
    with pytest.raises((norch.Error, pickle.UnpicklingError), match=match):
        norch.load(file)


def test_damaged_files():
    whole = file_of(WHOLE + b".", {"0": SIX}).getvalue()
    for length in range(len(whole)):
        with pytest.raises(norch.Error, match="damaged"):
            norch.load(io.BytesIO(whole[:length]))
    for file in (file_of(WHOLE + b".", {"0": SIX}, byteorder=b"big"), file_of(b"", {})):
        with pytest.raises(norch.Error, match="damaged"):
            norch.load(file)
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(norch.Error, match=r"without the data.pkl of torch.save"):
        norch.load(io.BytesIO(other.getvalue()))


# ---- files that PyTorch wrote --------------------------------------------------------------------------------------


def through(torch: Any, x: Any, how: Any = (), **options: Any) -> Any:
    file = io.BytesIO()
    torch.save(x, file, **dict(how))
    file.seek(0)
    return norch.load(file, **options)


@pytest.mark.parametrize("protocol", [None, 1, 2, 3, 4, 5])  # None: as a zip; or as before PyTorch 1.6
@pytest.mark.parametrize("weights_only", [True, False])
def test_what_pytorch_saves(torch, weights_only, protocol):
    named = torch.ones(2)
    named.tag = "a"
    again = through(
        torch,
        {
            "shapes": [torch.zeros(0, 3), torch.tensor(2.5), torch.ones(2, 3).t(), torch.ones(1).expand(4)],
            "dtypes": [torch.arange(2).to(getattr(torch, str(each)[6:])) for each in DTYPES],
            "leaf": torch.ones(2, requires_grad=True),
            "parameter": torch.nn.Parameter(torch.ones(2), requires_grad=False),
            "state": torch.nn.BatchNorm1d(3).state_dict(),
            "containers": CONTAINERS,
            "others": (torch.float16, torch.device("cpu"), torch.Size([2, 3]), 3, None, named),
        },
        {} if protocol is None else {"_use_new_zipfile_serialization": False, "pickle_protocol": protocol},
        map_location="cpu",
        weights_only=weights_only,
    )
    empty, number, turned, expanded = again["shapes"]
    assert empty.shape == (0, 3) and number.item() == 2.5 and turned.stride() == (1, 3) and expanded.stride() == (0,)
    assert [x.dtype for x in again["dtypes"]] == DTYPES and all(x.tolist() == [0, 1] for x in again["dtypes"])
    assert again["leaf"].requires_grad and type(again["parameter"]) is nn.Parameter
    assert not again["parameter"].requires_grad and type(again["state"]) is OrderedDict
    nn.BatchNorm1d(3).load_state_dict(again["state"])
    assert again["containers"] == CONTAINERS
    *others, tagged = again["others"]
    assert others == [norch.float16, norch.device("cpu"), norch.Size([2, 3]), 3, None] and tagged.tag == "a"


@pytest.mark.parametrize("how", [{}, {"_use_new_zipfile_serialization": False}])
@pytest.mark.parametrize("options", [{}, {"weights_only": False}, {"map_location": "meta"}])
def test_tensors_that_pytorch_conjugates_when_they_are_read(torch, how, options):
    x = torch.tensor([[1 + 2j, 3 + 4j], [5 + 6j, 7 + 8j]])
    saved = [
        x,
        x.conj(),
        x.clone().conj().imag,
        x.T.conj()[1:],
        torch._neg_view(torch.ones(2)),
        x.conj().requires_grad_(),
    ]
    again = through(torch, saved, how, **options)
    assert [y.requires_grad for y in again] == [y.requires_grad for y in saved]
    assert [y.stride() for y in again] == [y.stride() for y in saved]
    if "map_location" not in options:
        assert [y.tolist() for y in again] == [y.tolist() for y in saved]
        again[0].zero_()
        assert again[1].data_ptr() == again[5].data_ptr() and again[1].tolist() == saved[1].tolist()


def test_a_storage_comes_as_one(torch):
    x = through(torch, torch.ones(2).storage())
    assert isinstance(x, norch.storage.Storage) and x.nbytes() == 8


def test_a_module_is_refused_where_only_weights_are_read(torch):
    with pytest.raises(pickle.UnpicklingError, match="save the state_dict"):
        through(torch, torch.nn.Linear(1, 1), weights_only=True)


CONTAINERS = [{1, 2}, frozenset("a"), b"x", b"", bytearray(b"y"), 1j, range(3), slice(1, 2), defaultdict(list, a=[1])]
DTYPES = [getattr(norch, name) for name in "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {}),
        ("SGD", {"momentum": 0.9}),
        ("Adam", {"amsgrad": True}),
        ("AdamW", {}),
        ("NAdam", {}),
        ("ASGD", {"t0": 2.0}),
        ("Adafactor", {}),
        ("RMSprop", {"momentum": 0.9, "centered": True}),
        ("Adagrad", {}),
        ("LBFGS", {}),
    ],
)
def test_training_goes_on_where_pytorch_stopped(torch, name, options):
    def make(lib: Any) -> Any:
        layer = lib.nn.Linear(3, 2)
        layer.load_state_dict({key: lib.tensor(value) for key, value in LAYER.items()})
        return layer, getattr(lib.optim, name)(layer.parameters(), lr=0.01, **options)

    def train(lib: Any, layer: Any, optimizer: Any) -> None:
        def closure() -> Any:
            optimizer.zero_grad()
            loss = layer(lib.tensor(BATCH)).square().sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)

    theirs, ours = make(torch), make(norch)
    train(torch, *theirs)
    for mine, state in zip(ours, through(torch, [each.state_dict() for each in theirs]), strict=True):
        mine.load_state_dict(state)
    train(torch, *theirs)
    train(norch, *ours)
    for a, b in zip(ours[0].parameters(), theirs[0].parameters(), strict=True):
        assert a.flatten().tolist() == pytest.approx(b.flatten().tolist(), abs=1e-6)
