"""Ctrl-C between two bytecodes: nothing stays switched or locked."""

import dis
import pathlib
import signal
import sys
import threading
import types

import pytest

import norch


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _unguarded_loops(code):
    """Lines in a `with` or `try ... finally` where a loop begins again outside the range of its exception handler, but
    between two parts of it. An exception of a signal handler may come there, and then skips the exception handler."""
    instructions = {i.offset: i for i in dis.get_instructions(code)}
    offsets = sorted(instructions)
    entries = sorted(dis._parse_exception_table(code), key=lambda entry: entry.start)
    for entry, following in zip(entries, entries[1:], strict=False):
        if entry.target != following.target or entry.depth != following.depth:
            continue
        handler = [instructions[o].opname for o in offsets[offsets.index(entry.target) :][:12]]
        if handler[0] != "PUSH_EXC_INFO" or "CHECK_EXC_MATCH" in handler:
            continue  # of a comprehension, or `except`
        gap = [instructions[o] for o in offsets if entry.end <= o < following.start]
        if len(gap) <= 6:
            yield from (i.positions.lineno for i in gap if i.opname == "JUMP_BACKWARD")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="older versions guard all of a loop")
def test_no_loop_leaves_a_with_or_finally_behind():
    found = []
    for file in sorted(pathlib.Path(norch.__file__).parent.rglob("*.py")):
        for code in _codes(compile(file.read_text(), str(file), "exec")):
            found += [f"{file}:{line} {code.co_name}" for line in _unguarded_loops(code)]
    assert not found, "\n".join(found)


def interrupt(step, times, seconds):
    """Calls step() again and again, until a signal handler raises, so many times; the first time after so many seconds,
    then 0.1 us later each time. Returns how often it was interrupted."""

    class Interrupted(Exception):
        pass

    def handler(*_):
        raise Interrupted

    before, interrupted = signal.signal(signal.SIGALRM, handler), 0
    try:
        for i in range(times):
            try:
                signal.setitimer(signal.ITIMER_REAL, seconds + i * 1e-7, 5)  # again, where a callback loses it
                while True:
                    step()
            except Interrupted:
                interrupted += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert norch.is_grad_enabled()
    finally:
        signal.signal(signal.SIGALRM, before)
    return interrupted


def test_grad_mode_is_what_it_was_wherever_backward_is_interrupted():
    x = norch.ones(3, requires_grad=True)

    def step():
        y = x
        for _ in range(20):
            y = y + x
        y.sum().backward()

    assert interrupt(step, times=1000, seconds=1e-4) == 1000


def test_other_threads_go_on_after_an_interrupted_backward():
    """Whatever backward() holds while it adds to .grad is free again."""
    x = norch.ones(3, requires_grad=True)
    assert interrupt(lambda: (x + x).sum().backward(), times=500, seconds=5e-5) == 500
    thread = threading.Thread(target=lambda: (x * 2).sum().backward(), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
