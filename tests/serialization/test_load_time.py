"""load() of files of others takes time in proportion to their size: a file and one four times as large, of each kind
that a dict, a number, a name or a message may take longer for."""

import io
import json
import pickle
import struct
import time
import zipfile
import zlib

import pytest

import norch
from norch.utils import safetensors

pytestmark = [pytest.mark.host, pytest.mark.resident]

MODULUS = 2**61 - 1  # of Python's hash of numbers
KIND = b"\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\n"


def native(program, storages=()):
    data = b"norch file 7\n"
    for nbytes in storages:
        data += struct.pack("<q", nbytes)
        body = bytes(nbytes)
        data += bytes(-len(data) % 64) + body + struct.pack("<I", zlib.crc32(body))
    assert not storages or len(storages) == 1  # the checksum of the pickle leaves out the bytes of storages
    own = data if not storages else data[: len(data) - 4 - storages[0]] + data[-4:]
    tail = struct.pack("<qq", -1, len(program)) + program
    return data + tail + struct.pack("<I", zlib.crc32(own + tail))


def zipped(program, more=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", program)
        archive.writestr("a/byteorder", b"little")
        for name, content in more:
            archive.writestr(name, content)
    return file.getvalue()


def header(said):
    text = said if isinstance(said, bytes) else json.dumps(said).encode()
    return struct.pack("<Q", len(text)) + text


def integer(n):
    data = n.to_bytes((n.bit_length() + 8) // 8, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data if len(data) < 256 else b"\x8b" + struct.pack("<i", len(data)) + data


def text(data):
    return b"X" + struct.pack("<I", len(data)) + data


def number(x):
    return b"G" + struct.pack(">d", x)


def colliding(n):
    return [integer(k * MODULUS) for k in range(n)]


def tuples(n):
    return [b"(" + integer(k * MODULUS) + b"K\x01t" for k in range(n)]


def complexes(n):
    return [
        b"cbuiltins\ncomplex\n" + number(float(k % 64)) + number(2.0 ** (k // 64 - 500)) + b"\x86R" for k in range(n)
    ]


def real_and_imaginary(n):  # hash(a) + 1000003 hash(b) is the same
    return [b"cbuiltins\ncomplex\n" + number(-1000003.0 * k) + number(float(k)) + b"\x86R" for k in range(n)]


def sets(n):
    return [b"(" + integer(k * MODULUS) + b"\x91" for k in range(n)]


def ranges(n):
    return [b"cbuiltins\nrange\nK\x00" + integer(k * 2**62 + 1) + b"K\x01\x87R" for k in range(n)]


def as_dict(keys):
    return b"\x80\x04}(" + b"".join(key + b"N" for key in keys) + b"u."


def one_by_one(keys):
    return b"\x80\x04}" + b"".join(key + b"Ns" for key in keys) + b"."


def in_a_set(keys):
    return b"\x80\x04\x8f(" + b"".join(keys) + b"\x90."


def in_dict_opcode(keys):
    return b"\x80\x04(" + b"".join(key + b"N" for key in keys) + b"d."


def in_call(name, keys, pair=b"", proto=4):
    make = b"\x80\x04c" + name + b"\n"
    return make + b"](" + b"".join(key + pair for key in keys) + b"e\x85R."


def in_counter(keys):
    return b"\x80\x04ccollections\nCounter\n}(" + b"".join(key + b"K\x01" for key in keys) + b"u\x85R."


def again(key, n):
    return b"\x80\x04" + key + b"q\x000}q\x01" + b"h\x00Ns" * n + b"."


def lists_in_lists(depth, inner=b"]"):
    """A list that is short in the file, and has 2 to the power depth elements."""
    return (
        inner
        + b"q\x00"
        + b"".join(b"(h" + bytes([k]) + b"h" + bytes([k]) + b"lq" + bytes([k + 1]) for k in range(depth))
    )


def tuples_in_tuples(depth):
    return b"K\x01q\x00" + b"".join(
        b"h" + bytes([k]) + b"h" + bytes([k]) + b"\x86q" + bytes([k + 1]) for k in range(depth)
    )


def tensors_of_one_storage(n):
    one = norch.ones(4)
    file = io.BytesIO()
    norch.save([one[:2] for _ in range(n)], file)
    return file.getvalue()


def script(n):
    classes = b"".join(b"c__torch__.m\nC%d\n)\x81}(X\x01\x00\x00\x00aK\x01ub" % k for k in range(n))
    program = b"\x80\x02c__torch__.m\nRoot\n)\x81}(X\x01\x00\x00\x00a(" + classes + b"lub."
    source = b"".join(b'class C%d(Module):\n  __parameters__ = ["a", ]\n' % k for k in range(n))
    return zipped(program, [("a/constants.pkl", b"\x80\x02)."), ("a/code/__torch__/m.py", source)])


KEYS = {
    "integers": colliding,
    "tuples": tuples,
    "complex numbers": complexes,
    "complex numbers of one hash": real_and_imaginary,
    "frozensets": sets,
    "ranges": ranges,
    "strings": lambda n: [text(b"%d" % k) for k in range(n)],
    "floats": lambda n: [number(2.0 ** (k % 2000 - 1000) * (1 + k // 2000)) for k in range(n)],
    "integers far apart": lambda n: [integer(k << 40) for k in range(n)],
}
HOLDERS = {
    "dict": as_dict,
    "dict, one by one": one_by_one,
    "set": in_a_set,
    "DICT": in_dict_opcode,
    "call of set": lambda keys: in_call(b"builtins\nset", keys),
    "Counter": in_counter,
    "OrderedDict": lambda keys: in_call(b"collections\nOrderedDict", keys, b"N\x86"),
}
FILES = {
    **{
        f"{key} in a {holder}": lambda n, key=key, holder=holder: native(HOLDERS[holder](KEYS[key](n // 20)))
        for key in KEYS
        for holder in (HOLDERS if key in ("integers", "tuples") else ("dict", "set"))
    },
    "a large integer as key": lambda n: native(again(integer(1 << (8 * n)), n // 5)),
    "a large integer in a tuple": lambda n: native(again(b"(" + integer(1 << (8 * n)) + b"t", n // 5)),
    "a long tuple as key": lambda n: native(again(b"(" + b"K\x01" * n + b"t", n // 5)),
    "a long string as key": lambda n: native(
        b"\x80\x04" + text(b"a" * n) + b"q\x000}q\x01" + text(b"a" * n)
        + b"q\x020h\x00Ns" + b"h\x02Ns" * (n // 5) + b"."
    ),
    "tuples in tuples as key": lambda n: native(b"\x80\x04}" + tuples_in_tuples(100) + b"Ns."),
    "places of the memo": lambda n: native(b"N" + b"".join(b"p%d\n" % (k * MODULUS) for k in range(n // 20)) + b"."),
    "places of the memo, read": lambda n: native(b"N" + b"g" + b"7" * n + b"\n" + b"."),
    "a long number written out": lambda n: native(b"L" + b"7" * (10 * n) + b"L\n."),
    "a long int written out": lambda n: native(b"I" + b"7" * (10 * n) + b"\n."),
    "a long float written out": lambda n: native(b"F" + b"7" * (10 * n) + b"\n."),
    "a range of large numbers": lambda n: native(
        b"\x80\x04cbuiltins\nrange\nK\x00" + integer(1 << (80 * n)) + integer(1 << (40 * n)) + b"\x87R."
    ),
    "the number of a storage": lambda n: native(b"\x80\x04" + integer(1 << (80 * n)) + b"Q."),
    "lists as the number of a storage": lambda n: native(b"\x80\x04" + lists_in_lists(100) + b"Q."),
    "lists as a kind": lambda n: zipped(b"\x80\x02(" + lists_in_lists(100) + b"NNNNtQ."),
    "lists as a key": lambda n: zipped(KIND + lists_in_lists(100) + b"NNtQ."),
    "tuples as a key": lambda n: zipped(KIND + tuples_in_tuples(100) + b"NNtQ."),
    "lists as a place": lambda n: zipped(KIND + text(b"0") + lists_in_lists(100) + b"NtQ.", [("a/data/0", b"")]),
    "lists as a class": lambda n: zipped(
        b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(" + lists_in_lists(100) + b"ctorch\nTensor\n)NtR."
    ),
    "lists as a name": lambda n: native(
        b"\x80\x02" + pickle.dumps(norch.ones(0, device="meta"), 2)[2:-1] + b"}" + text(b"__name__")
        + lists_in_lists(100) + b"sb)R."
    ),
    "appended again and again": lambda n: native(b"\x80\x04]q\x00" + b"(NNe" * (n // 4) + b"."),
    "bytes": lambda n: native(b"\x80\x05" + b"B" + struct.pack("<I", n) + bytes(n) + b"."),
    "bytearrays": lambda n: native(
        b"\x80\x05" + (b"\x96" + struct.pack("<Q", 8) + bytes(8) + b"0") * (n // 18) + b"N."
    ),
    "latin1 again and again": lambda n: native(
        b"\x80\x02" + text(b"a" * n) + b"q\x000" + b"c_codecs\nencode\nq\x010" + text(b"latin1") + b"q\x020"
        + b"h\x01h\x00h\x02\x86R0" * (n // 9) + b"N."
    ),
    "sets of one list": lambda n: native(
        b"\x80\x04](" + b"K\x01" * n + b"eq\x000cbuiltins\nset\nq\x010" + b"h\x01h\x00\x85R0" * (n // 7) + b"N."
    ),
    "names": lambda n: native(
        b"\x80\x04" + text(b"torch." + b"a" * n) + b"q\x000" + text(b"b") + b"q\x010" + b"h\x00h\x01\x930" * (n // 6)
        + b"N."
    ),
    "tensors of one storage": lambda n: tensors_of_one_storage(n // 200),
    "state dicts": lambda n: native(
        pickle.dumps([{"lr": 0.1, "betas": (0.9, 0.999), k: None} for k in range(n // 50)], 4)
    ),
    "frames": lambda n: native(b"\x80\x04" + (b"\x95" + struct.pack("<Q", 2) + b"N0") * (n // 11) + b"N."),
    "entries of a zip": lambda n: zipped(b"\x80\x02N.", [(f"a/data/{k}", b"") for k in range(n // 110)]),
    "classes of a script": lambda n: script(n // 100),
    "sizes of safetensors": lambda n: header(
        {"a": {"dtype": "F32", "shape": [2**62] * (n // 20) + [0], "data_offsets": [0, 0]}}
    ),
    "sizes of 1": lambda n: header({"a": {"dtype": "U8", "shape": [1] * (n // 3), "data_offsets": [0, 0]}}),
    "a long number in safetensors": lambda n: header(b'{"a": {"dtype": "U8", "shape": [' + b"7" * (10 * n) + b"]}}"),
    "lists in safetensors": lambda n: header(b'{"a":' + b"[" * n + b"]" * n + b"}"),
    "tensors of safetensors": lambda n: header(
        {f"{k}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for k in range(n // 60)}
    ),
}  # fmt: skip


def seconds(data):
    start = time.process_time()
    try:
        norch.load(io.BytesIO(data))
        said = ""
    except Exception as error:
        assert isinstance(error, (norch.Error, pickle.UnpicklingError)), repr(error)[:200]
        said = str(error)
    taken = time.process_time() - start
    assert len(said) < 2000 + len(data)
    return taken


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", FILES)
def test_time_grows_as_the_file_does(name):
    small, large = FILES[name](50_000), FILES[name](200_000)
    first = min(seconds(small) for _ in range(2))
    again = seconds(large)
    assert again < 8 * first + 0.25, (len(small), first, len(large), again)


def test_keys_that_share_a_hash_are_taken_up_to_a_number():
    for make in (colliding, tuples, sets):
        assert len(norch.load(io.BytesIO(native(as_dict(make(300)))))) == 300
        with pytest.raises(pickle.UnpicklingError, match="more work than its size allows"):
            norch.load(io.BytesIO(native(as_dict(make(20_000)))))
    many = {(i, float(j), "a"): i for i in range(200) for j in range(100)} | {1 << k: k for k in range(60, 3000)}
    file = io.BytesIO()
    norch.save(many, file)
    file.seek(0)
    assert norch.load(file) == many


@pytest.mark.parametrize(
    "said",
    [
        {"a": {"dtype": "F32", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}},
        {"a": {"dtype": "F32", "shape": [2**62, 2**62, 0], "data_offsets": [0, 0]}},
        {"a": {"dtype": "F32", "shape": [1] * 70, "data_offsets": [0, 4]}},
        {"a": {"dtype": "F64", "shape": [2**60], "data_offsets": [0, 2**63 - 1]}},
        {"a": {"dtype": [[]], "shape": [1], "data_offsets": [0, 4]}},
        b'{"a": {"dtype": "F32", "shape": [' + b"7" * 5000 + b'], "data_offsets": [0, 4]}}',
    ],
)
def test_sizes_that_no_tensor_has_are_refused_at_once(said):
    with pytest.raises(safetensors.SafetensorError):
        safetensors.load(header(said) + bytes(4))
