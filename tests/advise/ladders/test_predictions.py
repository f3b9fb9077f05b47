"""Proves advise/ladders/predictions.py: they come from the machine, never from the ladder."""

from pathlib import Path

import pytest
from tests.advise.ladders.ladder_runs import COMMAND_WITH_STEPS, RATES_GBPS, ladder_run
from tests.engine.making import TRAIN
from tests.predict.making_systems import system

from broadgauge.advise.ladders.ladders_of_run import ladders
from broadgauge.advise.ladders.predictions import predicted_steps
from broadgauge.cli.main import main
from broadgauge.predict.system.file import dump_system
from broadgauge.results.run_path import read_summary
from broadgauge.specs.errors import InputError

GPT2: dict[str, object] = TRAIN | {
    "model": {"layers": 12, "hidden": 768, "heads": 12, "seq_len": 1024, "vocabulary": 50257}
}


def test_a_gpu_of_the_catalog_is_predicted_with_its_interval(tmp_path: Path) -> None:
    run = read_summary(ladder_run(tmp_path, workloads=[GPT2], num_gpus=2, launches=3))
    steps = predicted_steps(run)
    rungs = [s for s in run.candidates if s.case.link and s.case.link.rate_gbps]
    by_rate = [steps[s.case.key] for s in rungs]
    assert [s.case.link.rate_gbps for s in rungs if s.case.link] == list(RATES_GBPS)
    values = [step.value for step in by_rate]
    assert values == sorted(values, reverse=True)
    for step in by_rate:
        assert step.low is not None
        assert step.high is not None
        assert step.low < step.value < step.high
    # The run's own times are toys: nothing of them is in the prediction, and that is said.
    (ladder,) = ladders(run, predicted=steps)
    assert len(ladder.predicted) == len(RATES_GBPS)
    assert any(
        words.startswith("the predictor disagrees at 5 of 5") for words in ladder.disagreements
    )


def test_cores_need_a_system_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = ladder_run(tmp_path)
    run = read_summary(path)
    assert predicted_steps(run) == {}
    steps = predicted_steps(run, system())
    assert len(steps) == len(RATES_GBPS) + 1
    file = tmp_path / "system.yaml"
    file.write_text(dump_system(system()))
    assert main(["sensitivity", str(path), "--system", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "predicted" in shown
    assert "the predictor disagrees" in " ".join(shown.split())


def test_a_system_file_of_another_machine_is_refused(tmp_path: Path) -> None:
    run = read_summary(ladder_run(tmp_path, workloads=[GPT2], num_gpus=2, launches=1))
    with pytest.raises(InputError, match="the system file is of Toy CPU"):
        predicted_steps(run, system())


def test_commands_are_not_predicted(tmp_path: Path) -> None:
    run = read_summary(ladder_run(tmp_path, workloads=[COMMAND_WITH_STEPS], launches=1))
    assert predicted_steps(run, system()) == {}
