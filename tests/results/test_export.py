"""Does another tool get every figure, in columns that keep their places?"""

import csv
import io
import json
from pathlib import Path

import pytest

from broadgauge.results.export import to_csv, to_json
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.metrics import REGISTRY
from broadgauge.specs.network import Network
from broadgauge.specs.plan import Plan
from broadgauge.specs.record import CollectiveRow, ErrorKind, Phase, Record, Status, TrialError
from broadgauge.specs.workload import TrainWorkload

CASE = Case(
    workload=TrainWorkload(kind="train"),
    network=Network(name="slow", rate_gbps=0.2, mtu_bytes=9000),
    nodes=2,
    ranks_per_node=1,
    device="cpu",
    backend="gloo",
    environment={},
)
ROW = CollectiveRow(
    op="all_reduce",
    dtype="float32",
    size_bytes=1024,
    iterations=5,
    time_s=0.1,
    time_min_s=0.1,
    time_median_s=0.1,
    time_max_s=0.1,
    algbw_gbyte_per_s=0.5,
    busbw_gbyte_per_s=0.5,
)
ERROR = TrialError(
    kind=ErrorKind.HUNG, message='silent, "rank 1"\nfor 60 s', phase=Phase.MEASURE, rank=1
)


def a_record(number: int, **more: object) -> Record:
    facts = {
        "record_id": f"b{number}.l0.t0",
        "case_key": CASE.key,
        "workload": "train",
        "network": "slow",
        "shape": "2x1",
        "launch_id": f"b{number}.l0",
        "block": number,
        "trial": 0,
        "position": 0,
        "started_unix_s": 1.5,
        "ended_unix_s": 2.5,
        "status": Status.OK,
    }
    return Record(**(facts | more))


@pytest.fixture
def run() -> RunSummary:
    records = [
        a_record(0, metrics={"zeta_s": 3.0, "step_time_s": 0.25, "mfu_ratio": None}),
        a_record(1, status=Status.TIMEOUT, error=ERROR),
        a_record(2, metrics={"alpha_count": 7.0}, collectives=(ROW, ROW)),
    ]
    return summarise_run(
        folder=Path("nowhere"),
        plan=Plan(experiment_name="x", seed=0, cases=(CASE,), launches=(), expected_s=1),
        records=records,
        experiment_yaml="name: x\n",
        environments={},
    )


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_row_a_trial_with_all_metrics(run: RunSummary) -> None:
    rows = rows_of(to_csv(run))
    assert [row["record_id"] for row in rows] == [r.record_id for r in run.records]
    assert rows[0]["step_time_s"] == "0.25"
    assert rows[0]["line_rate_gbps"] == "0.2"
    assert rows[0]["mtu_bytes"] == "9000"
    assert rows[0]["mfu_ratio"] == ""
    assert rows[1]["error_message"] == ERROR.message
    assert (rows[1]["status"], rows[1]["error_phase"]) == ("timeout", "measure")


def test_columns_keep_their_order(run: RunSummary) -> None:
    header = to_csv(run).splitlines()[0].split(",")
    assert header[:4] == ["record_id", "case_key", "workload", "network"]
    assert header[-len(REGISTRY) - 2 :] == [*REGISTRY, "alpha_count", "zeta_s"]
    assert len(header) == len(set(header))


def test_collectives_have_their_own_rows(run: RunSummary) -> None:
    rows = rows_of(to_csv(run, "collectives"))
    assert len(rows) == 2
    assert rows[0]["record_id"] == "b2.l0.t0"
    assert float(rows[0]["busbw_gbyte_per_s"]) == 0.5
    assert rows[0]["wire_bytes"] == ""


def test_json_holds_everything_and_no_nan(run: RunSummary) -> None:
    text = to_json(run)
    document = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in the JSON"))
    assert [Record.model_validate(record) for record in document["records"]] == list(run.records)
    (case,) = document["cases"]
    assert case["key"] == CASE.key
    assert case["estimates"]["step_time_s"]["launches"] == 1
    assert (case["num_ok"], case["num_failed"]) == (2, 1)
    assert document["experiment_yaml"] == "name: x\n"
    assert to_json(run) == text
