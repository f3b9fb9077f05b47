"""Proves cli/calibrate.py but for the measuring itself, which tests/e2e and tests/probes do."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.making import a_machine, devices_of
from tests.predict.making_systems import compute, system

from broadgauge.cli.main import main
from broadgauge.engine.plan import make_plan
from broadgauge.predict.system.file import dump_system, read_system
from broadgauge.running.calibration.device import slower
from broadgauge.running.calibration.experiment import BETWEEN_NODES, SHAPED, calibration_experiment
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.machines.machine import MachineFacts
from broadgauge.specs.machines.system import Timing

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def golden(repository: Path) -> Path:
    return repository / "tests/results/golden/schema-1"


def test_a_run_is_predicted_from_a_system_file(
    golden: Path, capsys: Captured, tmp_path: Path
) -> None:
    environments = [json.loads(path.read_text()) for path in golden.glob("environments/*.json")]
    made = system()
    device = made.device.model_copy(update={"name": environments[0]["cpu"]})
    path = tmp_path / "system.yaml"
    path.write_text(dump_system(made.model_copy(update={"device": device})))
    assert main(["calibrate", "--check", str(golden), "--output", str(path)]) == 0
    written = capsys.readouterr()
    assert "MAPE" in written.out
    assert "train 2x1 slow" in written.out


def test_a_run_of_another_machine_is_not_predicted(
    golden: Path, capsys: Captured, tmp_path: Path
) -> None:
    path = tmp_path / "system.yaml"
    path.write_text(dump_system(system()))
    assert main(["calibrate", "--check", str(golden), "--output", str(path)]) == 2
    assert "the system file is of Toy CPU, and schema-1 computed on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: my-experiment\n", "is no system file, and is kept"),
        (dump_system(system()), "is of the machine toy, and is kept"),
    ],
)
def test_a_file_that_is_not_of_this_machine_is_kept(
    capsys: Captured, tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "there.yaml"
    path.write_text(text)
    assert main(["calibrate", "--output", str(path), "--device", "cpu"]) == 2
    assert message in capsys.readouterr().err
    assert path.read_text() == text


def test_nothing_is_measured_where_the_file_can_not_be_written(
    capsys: Captured, tmp_path: Path
) -> None:
    path = tmp_path / "no" / "system.yaml"
    assert main(["calibrate", "--output", str(path), "--device", "cpu"]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_a_gpu_that_is_not_there_is_refused(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broadgauge.platforms.machine.read_gpus", lambda: ())
    path = tmp_path / "system.yaml"
    assert main(["calibrate", "--output", str(path), "--device", "cuda"]) == 2
    assert "no GPU was found here" in capsys.readouterr().err


def test_of_ranks_side_by_side_the_slower_counts() -> None:
    one, other = compute(has_steps=True), compute(has_steps=True)
    long = Timing(median_s=1.0, low_s=0.9, high_s=1.2, repetitions=9)
    slow = other.gemms[3].model_copy(update={"forward": long})
    gemms = (*other.gemms[:3], slow, *other.gemms[4:])
    both = slower([one, other.model_copy(update={"gemms": gemms})])
    assert both.gemms[3].forward.median_s == 1.0
    assert both.gemms[3].backward == one.gemms[3].backward
    assert both.steps == one.steps
    with pytest.raises(LaunchError, match="different things"):
        slower([one, other.model_copy(update={"copies": ()})])


@pytest.mark.parametrize(
    ("machine", "device", "shapes", "networks"),
    [
        (a_machine(), "cpu", ("2x1",), {BETWEEN_NODES, SHAPED}),
        (
            a_machine(gpus=4, cores=64),
            "cuda",
            ("1x4", "2x2"),
            {"nvlink", "shm", "sockets", BETWEEN_NODES, SHAPED},
        ),
    ],
)
def test_each_path_of_a_machine_is_measured(
    machine: MachineFacts, device: str, shapes: tuple[str, ...], networks: set[str]
) -> None:
    experiment = calibration_experiment(machine, "cuda" if device == "cuda" else "cpu")
    assert experiment is not None
    assert experiment.cluster.shapes == shapes
    paths = {network.name for network in experiment.networks}
    assert paths >= networks - {"nvlink"}
    plan = make_plan(experiment, devices_of(machine))
    assert plan.expected_s < 180
    trained = {case.workload.name for case in plan.cases if case.workload.kind == "train"}
    assert trained == {"ddp", "fsdp"}


def test_one_rank_has_no_path() -> None:
    assert calibration_experiment(a_machine(cores=1), "cpu") is None


def test_a_machine_without_nodes_measures_its_own_path() -> None:
    machine = replace(a_machine(), can_emulate=False)
    experiment = calibration_experiment(machine, "cpu")
    assert experiment is not None
    assert experiment.platform == "local"
    assert [network.name for network in experiment.networks] == ["sockets"]


def test_the_file_is_read_where_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "system.yaml"
    path.write_text(dump_system(system()))
    assert read_system(path) == system()
