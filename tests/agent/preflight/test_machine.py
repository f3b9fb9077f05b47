"""What does nvidia-smi say of GPUs? Its lines as drivers print them, and none."""

from pathlib import Path

import pytest

from broadgauge.agent.hardware.reading import read_machine_hardware
from broadgauge.agent.preflight.machine import parse_gpu_states, read_gpu_states, software_here
from broadgauge.messages.preflight import GpuState

GOOD = "0, NVIDIA H100 80GB HBM3, 81559, 4, 0, No, No, Disabled, " + ", ".join(["Not Active"] * 4)
BAD = (
    "5, NVIDIA H100 80GB HBM3, 81559, 70211, 3, Yes, Yes, Enabled, Active, Active, Not Active, "
    "Not Active"
)
OLD = "0, Tesla V100-SXM2-16GB, 16160, 0, [N/A], [N/A], [N/A], [N/A], " + ", ".join(["[N/A]"] * 4)
MIB = 2**20


def test_each_gpu_is_read() -> None:
    good, bad = parse_gpu_states(f"{GOOD}\n{BAD}\n")
    assert good == GpuState(
        index=0,
        model="NVIDIA H100 80GB HBM3",
        memory_bytes=81559 * MIB,
        used_bytes=4 * MIB,
        uncorrected_errors_count=0,
        is_remapping_pending=False,
        has_remapping_failed=False,
        is_split=False,
    )
    assert (bad.index, bad.uncorrected_errors_count, bad.is_split) == (5, 3, True)
    assert bad.is_remapping_pending
    assert bad.has_remapping_failed
    assert bad.is_slowed_by == ("hardware", "heat")


def test_what_a_gpu_does_not_have_is_not_known() -> None:
    (old,) = parse_gpu_states(OLD)
    assert (old.uncorrected_errors_count, old.is_remapping_pending, old.is_split) == (None,) * 3
    assert old.is_slowed_by == ()


def test_other_lines_are_no_gpus() -> None:
    assert parse_gpu_states("NVIDIA-SMI has failed because it couldn't communicate\n\n") == ()


def test_without_nvidia_smi_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert read_gpu_states() is None
    here = software_here(read_machine_hardware(Path("/"), {}))
    assert here.gpus is None
    assert here.torch is not None


def test_an_nvidia_smi_that_fails_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexit 9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert read_gpu_states() is None
