"""Does another tool get every figure, in columns that keep their places?"""

import csv
import io
import json
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from broadgauge.analysis.analyse import analysed
from broadgauge.report.export.parquet import to_parquet
from broadgauge.report.export.run_tables import to_csv, to_json
from broadgauge.results.kinds.registry import ROW_TABLES
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.results.table_names import TABLE_NAMES, TableName
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.network import Network, NodePath
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.op_rows import CollectiveRow
from broadgauge.specs.records.record import (
    ErrorKind,
    PathFacts,
    Phase,
    Record,
    Status,
    TrialError,
)
from broadgauge.specs.workloads.metrics import REGISTRY
from broadgauge.specs.workloads.workload import CollectivesWorkload, TrainWorkload

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
    return run_of((CASE,), records)


def run_of(cases: tuple[Case, ...], records: list[Record]) -> RunSummary:
    return summarise_run(
        folder=Path("nowhere"),
        plan=Plan(experiment_name="x", seed=0, cases=cases, launches=(), expected_s=1),
        records=records,
        experiment_yaml="name: x\n",
        environments={},
    )


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_row_a_trial_with_all_metrics(run: RunSummary) -> None:
    rows = rows_of(to_csv(analysed(run)))
    assert [row["record_id"] for row in rows] == [r.record_id for r in run.records]
    assert rows[0]["step_time_s"] == "0.25"
    assert rows[0]["line_rate_gbps"] == "0.2"
    assert rows[0]["mtu_bytes"] == "9000"
    assert rows[0]["mfu_ratio"] == ""
    assert rows[1]["error_message"] == ERROR.message
    assert (rows[1]["status"], rows[1]["error_phase"]) == ("timeout", "measure")


def test_columns_keep_their_order(run: RunSummary) -> None:
    header = to_csv(analysed(run)).splitlines()[0].split(",")
    assert header[:4] == ["record_id", "case_key", "workload", "network"]
    assert header[-len(REGISTRY) - 2 :] == [*REGISTRY, "alpha_count", "zeta_s"]
    assert len(header) == len(set(header))


def test_what_decides_a_figure_has_its_column() -> None:
    network = Network(
        name="pods",
        rate_gbps=1.0,
        receive_rate_gbps=0.5,
        overlay="vxlan",
        delay_s=1e-3,
        jitter_s=1e-4,
        loss_ratio=0.01,
        nics_per_node=2,
    )
    between = CASE.model_copy(update={"network": network, "arm": "baseline"})
    workload = CollectivesWorkload(kind="collectives", engine="nccl-tests")
    inside = CASE.model_copy(
        update={
            "workload": workload,
            "network": NodePath(name="bus", path="pcie"),
            "nodes": 1,
            "ranks_per_node": 2,
        }
    )
    records = [
        a_record(0, case_key=between.key),
        a_record(1, case_key=inside.key, path=PathFacts(used="shm"), collectives=(ROW,)),
    ]
    run = run_of((between, inside), records)
    one, other = rows_of(to_csv(analysed(run)))
    assert {name: one[name] for name in one if name in network.model_fields_set} == {
        "receive_rate_gbps": "0.5",
        "overlay": "vxlan",
        "delay_s": "0.001",
        "jitter_s": "0.0001",
        "loss_ratio": "0.01",
        "nics_per_node": "2",
    }
    assert (one["arm"], one["line_rate_gbps"], one["world_size"]) == ("baseline", "1.0", "2")
    wanted = ("pcie", "shm", "nccl-tests", "candidate")
    assert (other["path_wanted"], other["path_used"], other["engine"], other["arm"]) == wanted
    (row,) = rows_of(to_csv(analysed(run), "collectives"))
    assert (row["arm"], row["engine"], row["from_rank"]) == ("candidate", "torch", "")


@pytest.mark.parametrize("name", ["records", "collectives"])
def test_parquet_reads_back_as_the_csv(run: RunSummary, name: TableName) -> None:
    """The same cells, each in its column's type, with nulls where the CSV is empty."""
    data = to_parquet(analysed(run), name)
    table = pyarrow.parquet.read_table(io.BytesIO(data))
    rows = rows_of(to_csv(analysed(run), name))
    assert table.column_names == list(rows[0])
    assert [
        {key: "" if value is None else str(value) for key, value in row.items()}
        for row in table.to_pylist()
    ] == rows
    assert to_parquet(analysed(run), name) == data
    by_name = {field.name: str(field.type) for field in table.schema}
    assert (by_name["record_id"], by_name["block"]) == ("string", "int64")
    if name == "records":
        assert {by_name[metric] for metric in REGISTRY} == {"double"}
    else:
        types = (by_name["size_bytes"], by_name["time_s"], by_name["is_correct"])
        assert types == ("int64", "double", "bool")
    assert table.schema.metadata[b"broadgauge.experiment"] == b"x"


def test_an_empty_table_has_its_types() -> None:
    table = pyarrow.parquet.read_table(io.BytesIO(to_parquet(analysed(run_of((CASE,), [])))))
    assert table.num_rows == 0
    assert str(table.schema.field("step_time_s").type) == "double"


def test_parquet_without_pyarrow_says_what_to_install(
    run: RunSummary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="pyarrow") as caught:
        to_parquet(analysed(run))
    assert "broadgauge[parquet]" in str(caught.value.hint)


def test_collectives_have_their_own_rows(run: RunSummary) -> None:
    rows = rows_of(to_csv(analysed(run), "collectives"))
    assert len(rows) == 2
    assert rows[0]["record_id"] == "b2.l0.t0"
    assert float(rows[0]["busbw_gbyte_per_s"]) == 0.5
    assert rows[0]["wire_bytes"] == ""


def test_json_holds_everything_and_no_nan(run: RunSummary) -> None:
    text = to_json(analysed(run))
    document = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in the JSON"))
    assert [Record.model_validate(record) for record in document["records"]] == list(run.records)
    (case,) = document["cases"]
    assert case["key"] == CASE.key
    assert case["estimates"]["step_time_s"]["launches"] == 1
    assert (case["num_ok"], case["num_failed"]) == (2, 1)
    assert document["experiment_yaml"] == "name: x\n"
    assert to_json(analysed(run)) == text


def test_the_command_line_knows_every_table() -> None:
    assert ("records", *ROW_TABLES) == TABLE_NAMES


def test_every_export_has_the_verdicts(run: RunSummary) -> None:
    judged = analysed(run)
    verdict = judged.analysis.case(CASE.key).verdict
    for row in rows_of(to_csv(judged)) + rows_of(to_csv(judged, "collectives")):
        assert row["verdict_bound"] == verdict.bound.value
        assert row["verdict_sentence"] == verdict.sentence
    table = pyarrow.parquet.read_table(io.BytesIO(to_parquet(judged)))
    assert set(table.column("verdict_sentence").to_pylist()) == {verdict.sentence}
    document = json.loads(to_json(judged))
    assert document["analysis"] == judged.analysis.model_dump(mode="json")
