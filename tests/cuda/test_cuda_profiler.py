"""norch.profiler on a CUDA device: times by events, copies, memory of the device. It runs in make test-cudasim."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import norch
from norch import cuda, nn
from norch.profiler import ProfilerActivity, profile
from norch.utils import summary

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")


def test_calls_have_a_time_on_the_device(tmp_path: Path) -> None:
    model, x = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2)).cuda(), norch.randn(4, 8, device="cuda")
    with profile(with_modules=True, profile_memory=True, with_flops=True) as prof:
        model(x).sum().backward()
    calls = [event for event in prof.events() if event.device == "cuda:0"]
    names = [event.name for event in calls]
    assert names.count("matmul") == 5 and "relu" in names and all(event.device_time > 0 for event in calls)
    starts = [event.device_start for event in calls]
    assert starts == sorted(starts) and starts[0] == 0
    assert all(a.device_start + a.device_time <= b.device_start + 1000 for a, b in zip(calls, calls[1:]))  # one stream
    (first,) = (event for event in prof.events() if event.name == "Sequential.0 (Linear)")
    assert (first.device_bytes, first.bytes, first.flops) == (4 * 64 * 4, 0, 2 * 4 * 8 * 64)
    assert first.device_time == calls[0].device_time
    averages = prof.key_averages()
    by_time = averages.table(sort_by="cuda_time_total")
    assert by_time == averages.table(sort_by="device_time_total") and "Self CUDA" in by_time and "CUDA Mem" in by_time
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    kernels = [one for one in json.loads(path.read_text())["traceEvents"] if one.get("cat") == "kernel"]
    assert [one["name"] for one in kernels] == names and {one["pid"] for one in kernels} == {"cuda:0"}


def test_without_the_activity_there_are_no_times_of_the_device() -> None:
    x = norch.ones(4, device="cuda")
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        x.exp()
    (exp,) = prof.events()
    assert (exp.name, exp.device, exp.device_time) == ("exp", "cuda:0", 0)
    assert "CUDA" not in prof.key_averages().table()


def test_the_activity_alone_leaves_calls_of_the_cpu_out() -> None:
    x, y = norch.ones(4, device="cuda"), norch.ones(4)
    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        x.exp()
        y.log()
    assert [event.name for event in prof.events()] == ["exp"]


def test_copies_between_host_and_device() -> None:
    x = norch.ones(256)
    with profile() as prof:
        y = x.to("cuda")
        y.cpu()
    copies = [(event.name, event.bytes) for event in prof.events() if event.name.startswith("copy ")]
    assert copies == [("copy from host", 1024), ("copy to host", 1024)]


def test_a_call_that_fails_is_noted_and_events_are_freed() -> None:
    x = norch.ones(4, device="cuda")
    for _ in range(2):
        with profile() as prof, pytest.raises(norch.Error):
            x.exp()
            x + norch.ones(3, device="cuda")
        assert "exp" in [event.name for event in prof.events()]


def test_a_model_on_the_device_in_a_table() -> None:
    found = summary(nn.Sequential(nn.Linear(8, 16), nn.ReLU()).cuda(), (4, 8))
    assert [row.shape for row in found.rows] == [(4, 16)] * 3 and found.total_mult_adds == 4 * 8 * 16
    assert found.peak_bytes >= 4 * 16 * 4
