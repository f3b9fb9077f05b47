"""What do the facts of a host take from nvidia-smi? One that prints as drivers do, and none."""

from pathlib import Path

import pytest

from broadgauge.agent.facts import GpuFacts, read_gpus

FAKE = """#!/bin/sh
[ "$1 $2" = "--query-gpu=name,memory.total,driver_version --format=csv,noheader,nounits" ] || exit 2
echo "NVIDIA H100 80GB HBM3, 81559, 570.86.15"
echo "a line that is no answer"
"""


def test_its_gpus_and_its_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(FAKE)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    gpu = GpuFacts(name="NVIDIA H100 80GB HBM3", memory_bytes=81559 * 2**20)
    assert read_gpus() == ((gpu,), "570.86.15")


def test_without_it_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert read_gpus() == ((), None)
