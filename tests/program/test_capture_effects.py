"""What a recorded function writes to in Python: counters, logs and kept tensors are recorded, with a warning where a
replay does not write them, and what it reads of its own is refused."""

import collections
import logging
import re
import threading
import types
import warnings

import pytest

import norch
from norch import nn, optim
from norch.nn._watch import note_traced, watching

pytestmark = pytest.mark.host


class Trainer:
    def __init__(self):
        norch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        self.seen, self.shape, self.last = 0, None, None
        self.metrics, self.counts = collections.defaultdict(list), collections.Counter()
        self.features = {}
        self.log = logging.getLogger("norch.test.trainer")

    def step(self, x):
        loss = self.model(x).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


def counts_elements(self, x):
    n = x.shape[0]
    self.seen += n
    return self.step(x)


def counts_steps(self, x):
    self.seen = self.seen + 1
    return self.step(x)


def counts_by_key(self, x):
    self.counts["n"] += len(x)
    return self.step(x)


def appends(self, x):
    loss = self.step(x)
    self.metrics["loss"].append(loss)
    return loss


def keeps_shape(self, x):
    self.shape = x.shape
    self.log.info("step")
    return self.step(x)


def keeps_loss(self, x):
    self.last = self.step(x)
    return self.last


def keeps_argument(self, x):
    self.last = x
    return self.step(x)


def reads_a_hooks_feature(self, x):
    if not self.features:
        self.model[1].register_forward_hook(lambda module, args, out: self.features.__setitem__("a", out))
        self.features["a"] = None
    loss = self.model(x).pow(2).mean() + self.features["a"].pow(2).mean()
    self.optimizer.zero_grad()
    loss.backward()
    self.optimizer.step()
    return loss


# Functions, and the name in the warning; None: there is none.
RECORDED = {
    counts_elements: "seen", counts_steps: "seen", counts_by_key: "counts", appends: "metrics", keeps_shape: None,
    keeps_loss: None, keeps_argument: None, reads_a_hooks_feature: None,
}  # fmt: skip


@pytest.mark.parametrize("body", RECORDED, ids=lambda body: body.__name__)
def test_steps_of_trainers(body):
    norch.manual_seed(1)
    batches, found = [norch.randn(5, 3) for _ in range(12)], []
    for wrap in (lambda f: f, norch.capture):
        trainer = Trainer()
        step = wrap(lambda x, trainer=trainer: body(trainer, x))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            losses = [step(x).item() for x in batches]
        kept = trainer.last.tolist() if body in (keeps_loss, keeps_argument) else None
        found.append((losses, [p.tolist() for p in trainer.model.parameters()], kept))
    assert found[0] == found[1] and step.recordings() == 1
    name = RECORDED[body]
    assert len(told) == (name is not None)
    if name is not None:
        assert re.search(rf"replays do not: {name!r} at {re.escape(__file__)}:\d+; do so after", str(told[0].message))


LAST = None


@pytest.mark.parametrize("how", ["capture", "compile"])
@pytest.mark.parametrize("place", ["attribute", "item", "global", "closure"])
def test_tensors_that_are_kept_follow_replays(place, how):
    holder, held, cell = types.SimpleNamespace(last=None), {}, None

    def f(x):
        global LAST
        nonlocal cell
        y = x * 2.0
        if place == "attribute":
            holder.last = y
        elif place == "item":
            held["last"] = y
        elif place == "global":
            LAST = y
        else:
            cell = y
        return y

    step = norch.capture(f) if how == "capture" else norch.compile(f, fullgraph=True)
    for i in range(9):
        y = step(norch.full((2,), float(i)))
        last = {"attribute": holder.last, "item": held.get("last"), "global": LAST, "closure": cell}[place]
        assert last.tolist() == y.tolist() == [2.0 * i] * 2
    assert step.recordings() == 1
    globals()["LAST"] = None


KEPT = {
    "argument": lambda x: x,
    "part": lambda x: x[1:],
    "column": lambda x: x.view(3, 1),
    "detached": lambda x: x.detach(),
    "tuple": lambda x: (x, x[1:]),
    "list": lambda x: [x[:1], 2],
    "dict": lambda x: {"a": [x[2:], (x,)], "n": 1},
    "made": lambda x: x * 3,
    "made tuple": lambda x: (x * 3, (x + 1, 2)),
    "made list": lambda x: [x * 3, [x + 1]],
    "made and argument": lambda x: [x * 3, x[1:]],
}


class Holder:
    last = None


@pytest.mark.parametrize("place", ["attribute", "item"])
@pytest.mark.parametrize("kind", KEPT)
def test_what_is_kept_of_arguments_and_results_follows_replays(kind, place):
    holder, held = Holder(), {"last": None}

    @norch.capture
    def step(x):
        kept = KEPT[kind](x)
        if place == "attribute":
            holder.last = kept
        else:
            held["last"] = kept
        return x * 2

    for i in range(8):
        x = norch.arange(3.0) + i
        step(x)
        kept = holder.last if place == "attribute" else held["last"]
        assert repr(kept) == repr(KEPT[kind](x))
        if kind in ("argument", "part"):
            x.fill_(7.0)
            assert kept.tolist() == [7.0] * len(kept)
    assert step.recordings() == 1
    step.replay(2, x := norch.arange(3.0) * 9)
    assert repr(holder.last if place == "attribute" else held["last"]) == repr(KEPT[kind](x))


def test_an_argument_that_was_kept_once_stays():
    holder = Holder()

    @norch.capture
    def step(x):
        if holder.last is None:
            holder.last = x
        return x * 2

    first = norch.ones(3)
    for x in [first] * 5 + [norch.zeros(3) for _ in range(5)]:
        assert step(x).tolist() == (x * 2).tolist() and holder.last is first


@pytest.mark.parametrize(
    ("read", "change"),
    [
        (lambda x: x.requires_grad, lambda x: x.requires_grad_()),
        (lambda x: x.grad is not None, lambda x: setattr(x, "grad", norch.ones(2))),
        (lambda x: hasattr(x, "k"), lambda x: setattr(x, "k", 1)),
    ],
    ids=["requires_grad", "grad", "attribute"],
)
def test_what_is_read_of_a_tensor_before_it_is_replaced(read, change):
    held = {"h": norch.ones(2)}

    @norch.capture
    def step(x):
        factor = 3.0 if read(held["h"]) else 2.0
        held["h"] = x.detach() * 1.0
        return x * factor

    for i in range(12):
        if i in (6, 9):
            change(held["h"])
        assert step(norch.ones(2)).tolist() == [3.0 if i in (6, 9) else 2.0] * 2


def returns_what_was_there(held, x):
    before = held["h"]
    held["h"] = x * 2
    return before


def returns_a_view_of_it(held, x):
    return returns_what_was_there(held, x).view(2)


def moves_it(held, x):
    held["p"] = held["h"]
    held["h"] = x * 2
    return x + 1


def exchanges(held, x):
    held["p"], held["h"] = held["h"], held["p"]
    return x + 1


def counts_and_reads(held, x):
    held["n"] += 1
    return x * 2 if held["n"] % 100 else x


@pytest.mark.parametrize("how", ["capture", "compile"])
@pytest.mark.parametrize(
    "f", [returns_what_was_there, returns_a_view_of_it, moves_it, exchanges, counts_and_reads],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_what_a_function_changes_and_reads_is_refused(f, how):
    held = {"h": norch.zeros(2), "p": norch.zeros(2), "n": 0}
    given = lambda x: f(held, x)  # noqa: E731
    step = norch.capture(given) if how == "capture" else norch.compile(given, fullgraph=True)
    with pytest.raises(norch.CaptureError, match=r"(?s)changes a value.*pass it as an argument\n  at .*effects.py:\d+"):
        for i in range(8):
            step(norch.full((2,), float(i)))


def test_a_count_of_what_did_not_happen_is_not_read():
    counts = collections.Counter()

    @norch.capture
    def step(x, is_rare=False):
        if is_rare:
            counts["rare"] += 1
        counts["calls"] += 1
        return x * 2

    with pytest.warns(UserWarning, match="'counts'"):
        for _ in range(5):
            step(norch.ones(2))
    assert step.recordings() == 1 and counts == {"calls": 3}


def test_another_thread_that_changes_a_value_while_it_is_recorded():
    holder, turn, done = types.SimpleNamespace(k=2.0), threading.Semaphore(0), threading.Semaphore(0)

    def work():
        for i in range(16):
            turn.acquire()
            holder.k = 2.0 + i % 2
            done.release()

    threading.Thread(target=work, daemon=True).start()

    def f(x):
        y = x * holder.k
        turn.release()
        done.acquire()
        return y * holder.k

    step = norch.capture(f)
    for _ in range(16):
        before = holder.k
        assert step(norch.ones(1)).item() == before * holder.k
    assert step.recordings() == 0


def test_another_thread_that_records():
    """It puts another function in place of Module.__call__ meanwhile."""
    model, x = nn.Linear(2, 2), norch.ones(1, 2)

    @norch.capture
    def run(x):
        with norch.no_grad():
            return model(x)

    run(x)
    with watching(note_traced):
        run(x)
    for _ in range(2):
        run(x)
    assert run.recordings() == 1
    first = run.program
    with watching(note_traced):
        run(x)
    assert run.program is first


@pytest.mark.parametrize("make", [threading.Thread, lambda target: threading.Timer(0.0, target)])
def test_a_thread_is_refused_as_one(make):
    def f(x):
        thread = make(target=lambda: None) if make is threading.Thread else make(lambda: None)
        thread.start()
        thread.join()
        return x + 1

    step = norch.capture(f)
    step(norch.ones(1))
    with pytest.raises(norch.CaptureError, match=r"starts a thread.*\n  at .*test_capture_effects.py:\d+"):
        step(norch.ones(1))


def test_locks_and_queues_are_no_obstacle():
    import queue

    items, lock, condition = queue.Queue(), threading.Lock(), threading.Condition()

    def f(x):
        with lock, condition:
            condition.notify_all()
        return x + 1

    step = norch.capture(f)
    for i in range(5):
        assert step(norch.full((1,), float(i))).item() == i + 1.0
    assert step.recordings() == 1 and items.empty()
