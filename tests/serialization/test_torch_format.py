"""save(format="torch"): files that torch.load() and load() read alike, and what has no place in them."""

from __future__ import annotations

import io
import pickle
import random
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import pytest
from conftest import DEVICE

import norch
from norch import nn

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()


def saved(obj: Any) -> io.BytesIO:
    file = io.BytesIO()
    norch.save(obj, file, format="torch")
    file.seek(0)
    return file


def everything() -> dict[str, Any]:
    norch.manual_seed(0)
    x = norch.arange(12.0, device=DEVICE).view(3, 4)
    named, parameter = norch.ones(2), nn.Parameter(norch.ones(2))
    named.tag = parameter.tag = "a"
    return OrderedDict(
        whole=x,
        views=[x.t()[1:], x[1, 2], x[::2], norch.ones(1).expand(4), x[:0]],
        dtypes=[norch.arange(3).to(getattr(norch, name)) for name in DTYPES],
        shapes=[norch.tensor(2.5), norch.zeros(0, 3)],
        leaf=norch.ones(2, requires_grad=True),
        parameters=[nn.Parameter(norch.ones(2), requires_grad=False), parameter],
        named=named,
        state=nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).state_dict(),
        containers=[{1, 2}, b"x", b"", bytearray(b"y"), bytearray(), 1j, Counter("aab"), (1, (2,), ()), [], {}],
        numbers=[None, True, False, 0, -1, 2**40, 2**70, 1.5, float("inf"), "", "é\n"],
        again=x,
    )


def alike(mine: Any, theirs: Any, lib: Any) -> bool:
    if isinstance(mine, norch.Tensor):
        return (
            isinstance(theirs, lib.nn.Parameter) == isinstance(mine, nn.Parameter)
            and str(theirs.dtype).partition(".")[2] == mine.dtype.name
            and tuple(theirs.shape) == tuple(mine.shape)
            and theirs.tolist() == mine.tolist()
            and theirs.requires_grad == mine.requires_grad
            and vars(theirs) == vars(mine)
        )
    if isinstance(mine, dict):
        return type(mine) is type(theirs) and alike([*mine.items()], [*theirs.items()], lib)
    if isinstance(mine, (list, tuple)):
        return type(mine) is type(theirs) and len(mine) == len(theirs) and all(map(alike, mine, theirs, [lib] * 99))
    return type(mine) is type(theirs) and mine == theirs


def check(loaded: Any, expected: Any, lib: Any) -> None:
    assert alike(expected, loaded, lib)
    assert loaded["again"] is loaded["whole"] and loaded["views"][0].stride() == (1, 4)
    loaded["whole"][1, 2] = 70
    assert loaded["views"][1] == 70 and loaded["views"][0][1, 1] == 70, "views share their storage again"
    assert loaded["state"]._metadata == expected["state"]._metadata
    assert loaded["state"]._metadata["1"] == {"version": 2}


@pytest.mark.parametrize("options", [{"weights_only": True}, {"weights_only": False}])
def test_pytorch_reads_it(torch: Any, options: Any) -> None:
    check(torch.load(saved(everything()), **options), everything(), torch)


@pytest.mark.parametrize("options", [{}, {"weights_only": False}, {"map_location": "cpu"}])
def test_norch_reads_it(options: Any) -> None:
    check(norch.load(saved(everything()), **options), everything(), norch)


def test_pytorch_maps_it(torch: Any, tmp_path: Path) -> None:
    norch.save(everything(), tmp_path / "x.pt", format="torch")
    check(torch.load(tmp_path / "x.pt", mmap=True), everything(), torch)


def test_other_objects(torch: Any) -> None:
    found = torch.load(saved([norch.Size([2, 3]), norch.device("cpu"), norch.bfloat16, norch.float64, norch.bool]))
    assert found == [torch.Size([2, 3]), torch.device("cpu"), torch.bfloat16, torch.float64, torch.bool]
    loop: list[Any] = []
    loop.append(loop)
    assert (found := torch.load(saved(loop)))[0] is found


def test_what_only_writes(torch: Any) -> None:
    class OnlyWrite:
        content = b""

        def write(self, data: Any) -> None:
            self.content += bytes(data)

    file = OnlyWrite()
    norch.save(everything(), file, format="torch")
    check(torch.load(io.BytesIO(file.content)), everything(), torch)
    assert file.content == saved(everything()).getvalue(), "the same objects give the same bytes"


def test_storages_are_aligned_and_stand_once() -> None:
    x = norch.ones(100)
    content = saved([x, x[3:], norch.ones(1, dtype=norch.int8), norch.arange(5.0)]).getvalue()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [entry.filename for entry in archive.infolist() if "/data/" in entry.filename]
        assert names == ["archive/data/0", "archive/data/1", "archive/data/2"] and archive.testzip() is None
        for entry in archive.infolist():
            at = entry.header_offset
            start = at + 30 + sum(int.from_bytes(content[at + n : at + n + 2], "little") for n in (26, 28))
            assert start % 64 == 0 and entry.compress_type == zipfile.ZIP_STORED


def test_what_steps_backward_is_copied(torch: Any) -> None:
    x = norch.arange(6).view(2, 3)
    found = torch.load(saved([x, x[:, ::-1], x[::-1, :2]]))
    assert [y.tolist() for y in found[1:]] == [[[2, 1, 0], [5, 4, 3]], [[3, 4], [0, 1]]]


class Named(norch.Tensor):
    pass


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: defaultdict(list), "collections.defaultdict is no tensor"),
        (lambda: frozenset(), "frozenset is no tensor"),
        (lambda: range(3), "range is no tensor"),
        (lambda: nn.Linear(1, 1), "norch.nn.linear.Linear is no .* save its state_dict"),
        (lambda: Named([1.0]), "test_torch_format.Named is no tensor"),
        (lambda: norch.ones(1).untyped_storage(), "norch.storage.Storage is no tensor"),
        (lambda: norch.save, "does not take norch.serialization.save"),
        (lambda: int, "does not take builtins.int"),
        (lambda: object(), "object is no tensor"),
        (lambda: (x := norch.ones(4), x.view(norch.int32)), "float32 and norch.int32 that share their memory"),
    ],
)
def test_what_has_no_form_is_named(tmp_path: Path, make: Any, match: str) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(b"before")
    with pytest.raises(pickle.PicklingError, match=match):
        norch.save({"a": [1, make()]}, path, format="torch")
    assert path.read_bytes() == b"before"
    with pytest.raises(ValueError, match="format is 'norch', 'torch' or 'safetensors', not 'zip'"):
        norch.save({}, path, format="zip")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"momentum": 0.9}),
        ("Adam", {"amsgrad": True}),
        ("AdamW", {}),
        ("RMSprop", {"centered": True}),
        ("ASGD", {"t0": 2.0}),
        ("Adafactor", {}),
        ("LBFGS", {}),
    ],
)
def test_training_goes_on_in_pytorch(torch: Any, name: str, options: Any) -> None:
    def make(lib: Any) -> Any:
        net = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Tanh(), lib.nn.Linear(4, 2))
        optimizer = getattr(lib.optim, name)(net.parameters(), lr=0.01, **options)
        return net, optimizer, lib.optim.lr_scheduler.StepLR(optimizer, 2)

    def train(lib: Any, net: Any, optimizer: Any, scheduler: Any) -> None:
        x = lib.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0], [0.0, 1.0, -1.0]])

        def closure() -> Any:
            optimizer.zero_grad()
            loss = net(x).square().sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
            scheduler.step()

    ours, theirs = make(norch), make(torch)
    train(norch, *ours)
    for each, state in zip(theirs, torch.load(saved([each.state_dict() for each in ours])), strict=True):
        each.load_state_dict(state)
    train(norch, *ours)
    train(torch, *theirs)
    for a, b in zip(ours[0].state_dict().values(), theirs[0].state_dict().values(), strict=True):
        assert a.flatten().tolist() == pytest.approx(b.flatten().tolist(), abs=1e-5)


def drawn(pick: random.Random, depth: int, bases: list[Any]) -> Any:
    """A nest of containers, numbers and views of few storages."""
    if depth == 0 or pick.random() < 0.4:
        x = pick.choice(bases)
        views = [x, x.t(), x[1:], x[:, 1], x[0, 1], x[:, :0], x.detach(), x.unsqueeze(0).expand(2, 3, 4), x.clone()]
        return pick.choice(
            [*views, nn.Parameter(x.float()), pick.random(), pick.getrandbits(90) - 2**89, "a" * 300, None]
        )
    parts = [drawn(pick, depth - 1, bases) for _ in range(pick.randrange(4))]
    if pick.random() < 0.5:
        return pick.choice([list, tuple])(parts)
    return pick.choice([dict, OrderedDict])(zip(pick.sample([1, "a", "b", (1, "c"), 2.5, True], len(parts)), parts))


def test_random_nests_come_back(torch: Any) -> None:
    for seed in range(60):
        pick = random.Random(seed)
        bases = [norch.arange(12).view(3, 4).to(getattr(norch, pick.choice(DTYPES))) for _ in range(3)]
        obj = drawn(pick, 4, bases)
        file = saved(obj)
        for lib in (torch, norch):
            file.seek(0)
            assert alike(obj, lib.load(file, weights_only=True), lib), seed
