"""Does Python's `doctor` say what the command says, of logs, of a run and of this machine?"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broadgauge.api.doctor import doctor
from broadgauge.cli.main import main
from broadgauge.specs.errors import InputError

CASES = Path(__file__).parents[1] / "doctor/log/cases"
GOLDEN = Path(__file__).parents[1] / "results/golden/schema-1"
LOG = str(CASES / "efa-devices-not-in-container.log")


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    code = main(["doctor", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def plain(document: Any) -> Any:
    return json.loads(json.dumps(document))


def test_of_logs_it_is_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    found = doctor(LOG, expect="rdma", gpu="h100-sxm", nic_rate="400 Gbit/s")
    flags = ("--expect", "rdma", "--gpu", "h100-sxm", "--nic-rate", "400 Gbit/s")
    code, document = told(capsys, "--log", LOG, *flags)
    assert (found.exit_code, plain(found.document)) == (code, document)
    assert found.answers["rdma"] == "off"
    assert found.findings[0].rule == "expected-rdma"
    rows = list(found.table)
    assert [row["rule"] for row in rows] == [each["rule"] for each in document["findings"]]
    assert str(found).startswith("RDMA: off")
    assert "vpc.amazonaws.com/efa" in found._repr_html_()


def test_of_a_run_it_is_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    found = doctor(run=GOLDEN)
    code, document = told(capsys, str(GOLDEN))
    assert (found.exit_code, plain(found.document)) == (code, document)


def test_of_this_machine_there_are_answers() -> None:
    found = doctor(host=True)
    assert set(found.answers) == {"rdma", "gdr", "nvlink", "tcp"}
    assert found.document["host"] is not None


def test_a_table_of_no_findings_has_its_columns() -> None:
    found = doctor(CASES / "gdr-off-one-node.log")
    empty = replace(found, findings=())
    assert empty.table.columns == found.table.columns
    assert len(empty.table) == 0


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "doctor of what?"),
        ({"logs": LOG, "run": GOLDEN}, "run= brings its own logs"),
        ({"run": GOLDEN, "gpu": "h100-sxm"}, "run= brings its own logs"),
        ({"logs": LOG, "expect": "rmda"}, "expect='rmda': not known"),
        ({"logs": LOG, "nic_rate": "fast"}, "nic_rate: "),
        ({"logs": LOG, "busbw_gbyte_per_s": -1.0}, "busbw_gbyte_per_s: -1.0 is no bus bandwidth"),
        ({"logs": "nowhere.log"}, "nowhere.log"),
        ({"logs": 3}, "logs=3: not a path"),
    ],
)
def test_what_is_no_question(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        doctor(**asked)
