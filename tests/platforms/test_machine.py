"""What is this machine, and how is it shared out?"""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.agent.cores import cores_by_neighbourhood, share_out
from broadgauge.platforms import gpu_watch
from broadgauge.platforms.gpu_watch import GpuWatch, reason_names
from broadgauge.platforms.host_facts import git_commit
from broadgauge.platforms.log_tail import last_lines
from broadgauge.platforms.machine import read_machine, visible_gpus


def test_the_machine_is_read() -> None:
    machine = read_machine()
    assert set(machine.cores) == os.sched_getaffinity(0)
    assert machine.memory_bytes > 2**28
    assert (machine.refusal is None) == machine.can_emulate
    assert not any(nic.name.startswith(("veth", "lo")) for nic in machine.nics)


def test_reading_the_machine_imports_no_torch() -> None:
    code = "import sys, broadgauge.platforms.machine; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@given(num_cores=st.integers(1, 64), num_nodes=st.integers(1, 80), wanted=st.integers(1, 64))
def test_cores_are_shared_out_evenly(num_cores: int, num_nodes: int, wanted: int) -> None:
    nodes, note = share_out(range(num_cores), num_nodes, wanted)
    assert len(nodes) == num_nodes
    assert len({len(node) for node in nodes}) == 1
    assert 1 <= len(nodes[0]) <= wanted
    given_out = [core for node in nodes for core in node]
    if num_nodes <= num_cores:
        assert len(set(given_out)) == len(given_out)
    assert (note is None) == (num_nodes * wanted <= num_cores)


def test_all_cores_are_neighbours_once() -> None:
    cores = cores_by_neighbourhood()
    assert sorted(cores) == sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, ("0", "1")), ("1", ("1",)), ("1,0", ("1", "0")), ("", ()), ("0,-1,1", ("0",))],
)
def test_cuda_visible_devices_is_read_as_cuda_reads_it(
    value: str | None, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if value is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert visible_gpus(2) == expected


def test_the_commit_of_a_folder(tmp_path: Path) -> None:
    assert git_commit(tmp_path) is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "file").write_text("one")
    for arguments in (["init", "-q"], ["add", "file"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *arguments], check=True)
    commit = git_commit(tmp_path)
    assert commit is not None
    assert len(commit) == 40
    (tmp_path / "file").write_text("two")
    assert git_commit(tmp_path) == f"{commit}+"


def test_the_end_of_a_log_is_bounded(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_lines(log) == ()
    log.write_text("# broadgauge: ours\n" + "".join(f"{n} {'x' * 5000}\n" for n in range(500)))
    lines = last_lines(log)
    assert len(lines) <= 20
    assert lines[-1].startswith("499 x")
    assert all(len(line) <= 500 for line in lines)


def test_no_gpus_are_watched_without_work() -> None:
    with GpuWatch(()) as watch:
        pass
    assert watch.uses() == ()


class FakeNvml(SimpleNamespace):
    """One GPU, power-capped, that does not tell its temperature."""

    NVMLError = RuntimeError
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0
    NVML_NVLINK_MAX_LINKS = 18
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 139

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetFieldValues(self, handle: int, fields: object) -> object:  # noqa: N802
        raise RuntimeError("not supported")

    def nvmlDeviceGetMaxClockInfo(self, handle: int, kind: int) -> int:  # noqa: N802
        raise RuntimeError("not supported")

    def nvmlDeviceGetIndex(self, handle: int) -> int:  # noqa: N802
        return handle

    def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802
        return b"Fake H200"

    def nvmlDeviceGetClockInfo(self, handle: int, kind: int) -> int:  # noqa: N802
        return 1500

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        return 700_000

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> object:  # noqa: N802
        return SimpleNamespace(gpu=90, memory=40)

    def nvmlDeviceGetTemperature(self, handle: int, kind: int) -> int:  # noqa: N802
        raise RuntimeError("not supported")

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:  # noqa: N802
        return 0x5


def test_what_nvml_tells_is_kept_and_the_rest_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_watch, "open_nvml", FakeNvml)
    with GpuWatch(("3",)) as watch:
        pass
    [use] = watch.uses()
    assert (use.index, use.name, use.sm_clock_mhz, use.power_watts) == (3, "Fake H200", 1500, 700)
    assert use.temperature_celsius is None
    assert use.utilization_ratio == 0.9
    assert use.sm_clock_max_mhz is None
    assert use.samples_count >= 1
    assert use.is_throttled
    assert use.throttled_ratio == 1
    assert use.throttle_reasons == ("software power cap",)


def test_a_gpu_is_used_from_its_first_work_to_its_last() -> None:
    # Before its ranks compute and after they have left it is idle, and in between it may be, too.
    assert gpu_watch.mean_utilization_ratio([0, 0, 0.8, 0, 0.4, 0]) == pytest.approx(0.4)
    assert gpu_watch.mean_utilization_ratio([0, 0]) == 0
    assert gpu_watch.mean_utilization_ratio([]) is None


def test_idle_is_no_throttling() -> None:
    assert reason_names(0x1 | 0x2) == ()
