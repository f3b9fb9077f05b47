"""Holds on two GPUs that a calibrated machine predicts its trainings within 5 %.

`pytest -m gpu -s tests/gpu/test_predicted_gpu.py` prints the table for docs/measurements.md; some
15 minutes.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import run_command

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.measuring,
    pytest.mark.namespaces,
    pytest.mark.timeout(2400),
]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Calibrated, 48 trainings run, compared."""
    folder: Path = tmp_path_factory.mktemp("predicted")
    check = ("calibrate", "--check", "last")
    for words in (("calibrate",), ("run", "predicted-steps"), check):
        ran = run_command(*words, folder=folder, timeout_s=1800)
        assert ran.returncode == 0, ran.stderr
        print(ran.stdout)  # noqa: T201  the table, for docs/measurements.md
    ran = run_command(*check, "--json", folder=folder)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_steps_are_predicted_within_five_percent(checked: dict[str, Any]) -> None:
    overall = checked["overall"]
    assert overall["num_steps"] == 48
    assert overall["mape_ratio"] <= 0.05
    assert overall["pair_order_ratio"] >= 0.95


def test_the_run_predicts_itself_from_one_of_its_networks(
    checked: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What-if from the slowest rate of each training to its others."""
    folder = max(tmp_path_factory.getbasetemp().glob("predicted*/"), key=lambda path: path.name)
    names = sorted({step["label"].split()[0] for step in checked["steps"]})
    errors = []
    for name in names:
        words = ("whatif", "last", "--case", f"workload={name}", "--system", "system.yaml")
        ran = run_command(*words, "--json", folder=folder)
        assert ran.returncode == 0, ran.stderr
        errors += [abs(each["error_ratio"]) for each in json.loads(ran.stdout)["checks"]]
    assert len(errors) == 36
    assert sum(errors) / len(errors) <= 0.05
