"""Data sets and functions for the tests of loaders with workers: of a module, so that every context can send them."""

from __future__ import annotations

import os
import random
import signal
import time

import numpy as np

import norch
from norch._files.shared_memory import _shared
from norch.utils.data import Dataset, IterableDataset, default_collate, get_worker_info


class Drawn(Dataset):
    """Samples that depend on their index and on the global streams, as augmented ones do."""

    def __init__(self, size, width=3):
        self.size, self.width = size, width

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        drawn = norch.rand(self.width) + random.random() + float(np.random.rand())  # noqa: NPY002
        return {"x": norch.full((self.width,), float(index)) + drawn, "index": index, "name": f"item {index}"}


class Lines(IterableDataset):
    """0 ... size - 1 with something drawn; each worker reads its part."""

    def __init__(self, size):
        self.size = size

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        shift = random.randrange(1000)
        for i in range(first, self.size, step):
            yield float(i), shift + norch.rand(2)


class Counting(IterableDataset):
    """Counts up, and can say where it is."""

    def __init__(self, size):
        self.size, self.at, self.read = size, 0, 0

    def __iter__(self):
        info = get_worker_info()
        while self.at < self.size:
            self.at += 1
            self.read += 1
            yield (info.id if info else 0, self.at, self.read)

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Of(Dataset):
    """Samples that a function makes of their index."""

    def __init__(self, size, make):
        self.size, self.make = size, make

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.make(index)


class Holding(Dataset):
    """Holds a large tensor; a sample tells the worker, and the section behind the tensor there."""

    def __init__(self):
        self.x = norch.ones(100_000)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(0.05)  # the other worker has its turn
        return get_worker_info().id, repr(_shared[self.x.data_ptr()].identity)


class TwoWords(Exception):
    """An exception whose constructor takes two arguments."""

    def __init__(self, first, second):
        super().__init__(first, second)


def failing(index):
    if index == 5:
        raise {"value": ValueError, "key": KeyError}[os.environ.get("NORCH_TEST_ERROR", "value")](f"sample {index}")
    return index


def failing_otherwise(index):
    if index == 5:
        raise TwoWords("one", "two")
    return index


def stopping(index):
    if index == 5:
        raise StopIteration
    return index


def killed(index):
    if index == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return index


def exiting(index):
    if index == 5:
        os._exit(3)
    return index


def slow(index):
    time.sleep(0.4 if index == 0 else 0)
    return index


class FirstIsLate(Dataset):
    """Of 8 numbers the first waits for the sixth, which another worker loads once a number has been delivered."""

    def __init__(self, folder):
        self.sixth = os.path.join(folder, "sixth")

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5:
            open(self.sixth, "w").close()
        end = time.monotonic() + 60
        while index == 0 and not os.path.exists(self.sixth) and time.monotonic() < end:
            time.sleep(0.01)
        return index


def hanging(index):
    time.sleep(60)


def pid(index):
    return os.getpid()


def threads(index):
    return norch.get_num_threads()


def wide(index):
    return norch.full((30_000,), float(index))


def images(index):
    return np.full((100, 100), index, np.float32)


kept = []


def keeping(batch):
    """Collates, and keeps every batch in the worker: later ones must not be written over it."""
    kept.append(default_collate(batch))
    return kept[-1], [x[0, 0].item() for x in kept[-40:]]


def means(batch):
    """Collates, and gives something else."""
    return default_collate(batch).mean().item()


def unpicklable(batch):
    return lambda: batch


def seeds(index):
    info = get_worker_info()
    return info.id, info.num_workers, len(info.dataset), info.seed - info.id


def refuse(worker):
    raise ValueError(f"no worker {worker}")


def remember(worker):
    get_worker_info().dataset.name = f"worker {worker}"


# ---- what other processes run ----------------------------------------------------------------------------------------


def add_one(queue, answers, direct):
    """Adds to the tensors that it receives."""
    direct.add_(100)
    while (x := queue.get()) is not None:
        x.copy_(x + 1)
        answers.put((x, x.is_shared(), x.stride()))
    queue.get()  # it lives until its tensors have been received


def train(rank, model, done):
    """Hogwild (Recht et al. 2011): processes write to one model without locks."""
    optimizer = norch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(50):
        optimizer.zero_grad()
        (model(norch.ones(4, 2)) - 3).square().mean().backward()
        optimizer.step()
    done[rank] = 1
