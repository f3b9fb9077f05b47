"""Proves api/calibrating.py but for the measuring itself, which tests/e2e and tests/probes do."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.making import a_machine
from tests.predict.making_systems import system

from broadgauge.api import calibrating
from broadgauge.api.calibrating import calibrate
from broadgauge.engine.interrupts import Interrupt
from broadgauge.predict.system.file import read_system
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.system import System


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which devices were measured, on a machine that has none but cores."""
    devices: list[str] = []

    def measure(_: object, device: str, **given: Any) -> System:
        devices.append(device)
        given["telling"].device("a copy")
        return system()

    machine = replace(a_machine(), hostname=system().machine.hostname, gpus=())
    monkeypatch.setattr(calibrating, "read_machine", lambda: machine)
    monkeypatch.setattr(calibrating, "measure", measure)
    return devices


def test_what_is_given_is_what_is_written(tmp_path: Path, asked: list[str]) -> None:
    path, told = tmp_path / "system.yaml", []
    assert calibrate(path, progress=lambda each: told.append(each.text)) == read_system(path)
    assert calibrate(path, device="cpu") == read_system(path), "an older one is replaced"
    assert asked == ["cpu", "cpu"]
    assert told == ["measuring  a copy"]


def test_nothing_is_measured_where_it_could_not_be_written(
    tmp_path: Path, asked: list[str]
) -> None:
    other = tmp_path / "notes.yaml"
    other.write_text("name: mine\n")
    for path, device in ((other, "cpu"), (tmp_path / "no" / "x", "cpu"), (tmp_path / "x", "cuda")):
        with pytest.raises(InputError):
            calibrate(path, device=device)  # type: ignore[arg-type]
    assert asked == []
    assert other.read_text() == "name: mine\n"


def test_an_interrupt_writes_nothing(tmp_path: Path, asked: list[str], monkeypatch: Any) -> None:
    def ended(*_: object, **__: object) -> System:
        raise Interrupt(2)

    monkeypatch.setattr(calibrating, "measure", ended)
    with pytest.raises(KeyboardInterrupt, match="ended by SIGINT"):
        calibrate(tmp_path / "system.yaml")
    assert not (tmp_path / "system.yaml").exists()
