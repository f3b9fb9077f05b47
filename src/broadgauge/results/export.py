"""How do the figures get into another tool? As CSV rows in a fixed order, or as one JSON."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Literal

from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.metrics import REGISTRY
from broadgauge.specs.record import CollectiveRow, Record

CsvTable = Literal["records", "collectives"]

LABEL_COLUMNS = (
    "record_id",
    "case_key",
    "workload",
    "network",
    "shape",
    "launch_id",
    "block",
    "trial",
    "position",
)
_RECORD_COLUMNS = (
    *LABEL_COLUMNS,
    "line_rate_gbps",
    "mtu_bytes",
    "device",
    "backend",
    "started_unix_s",
    "ended_unix_s",
    "status",
    "error_kind",
    "error_phase",
    "error_rank",
    "error_message",
    "environment",
    "ceiling_gbps",
    "round_trip_s",
)

Cell = str | int | float | bool | None


def to_csv(run: RunSummary, table: CsvTable = "records") -> str:
    """One row a trial, or one row a collective, size and trial. Empty cells are missing values.

    Columns keep their order: labels, the registered metrics, then other metrics by name. Metrics
    of a later version are added behind those there are.
    """
    if table == "collectives":
        return _collectives_csv(run)
    seen = {name for record in run.records for name in record.metrics}
    metrics = [*REGISTRY, *sorted(seen - set(REGISTRY))]
    rows = ([*_labels(run, record), *map(record.metrics.get, metrics)] for record in run.records)
    return _csv([*_RECORD_COLUMNS, *metrics], rows)


def _labels(run: RunSummary, record: Record) -> list[Cell]:
    summary = run.case(record.case_key)
    case = None if summary is None else summary.case
    network = None if case is None else case.link
    error, link = record.error, record.link
    return [
        *(getattr(record, column) for column in LABEL_COLUMNS),
        None if network is None else network.rate_gbps,
        None if network is None else network.mtu_bytes,
        None if case is None else case.device,
        None if case is None else case.backend,
        record.started_unix_s,
        record.ended_unix_s,
        record.status.value,
        None if error is None else error.kind.value,
        None if error is None or error.phase is None else error.phase.value,
        None if error is None else error.rank,
        None if error is None else error.message,
        record.environment,
        None if link is None else link.ceiling_gbps,
        None if link is None else link.round_trip_s,
    ]


def _collectives_csv(run: RunSummary) -> str:
    columns = tuple(CollectiveRow.model_fields)
    rows = (
        [getattr(record, name) for name in LABEL_COLUMNS] + [getattr(row, c) for c in columns]
        for record in run.records
        for row in record.collectives
    )
    return _csv([*LABEL_COLUMNS, *columns], rows)


def _csv(columns: list[str], rows: Iterable[list[Cell]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def to_json(run: RunSummary) -> str:
    """Everything the run folder and its summary say, as one JSON document without NaN."""
    document = {
        "format": "broadgauge run",
        "schema_version": run.plan.schema_version,
        "experiment": run.plan.experiment_name,
        "experiment_yaml": run.experiment_yaml,
        "notes": list(run.notes),
        "cases": [_case(summary) for summary in run.cases],
        "records": [record.model_dump(mode="json") for record in run.records],
        "environments": {
            key: environment.model_dump(mode="json")
            for key, environment in sorted(run.environments.items())
        },
        "plan": run.plan.model_dump(mode="json"),
    }
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _case(summary: CaseSummary) -> dict[str, object]:
    scaling = summary.scaling
    return {
        "key": summary.case.key,
        "label": summary.case.label,
        "case": summary.case.model_dump(mode="json"),
        "num_planned": summary.num_planned,
        "num_ok": summary.num_ok,
        "num_failed": summary.num_failed,
        "estimates": {name: asdict(value) for name, value in summary.estimates.items()},
        "missing": dict(summary.missing),
        "collectives": [asdict(row) for row in summary.collectives],
        "ceiling_gbps": None if summary.ceiling_gbps is None else asdict(summary.ceiling_gbps),
        "round_trip_s": None if summary.round_trip_s is None else asdict(summary.round_trip_s),
        "scaling": None
        if scaling is None
        else {
            "against": scaling.reference.label,
            "metric": scaling.metric,
            "efficiency_ratio": asdict(scaling.efficiency),
            "speedup_ratio": asdict(scaling.speedup),
            "notes": list(scaling.notes),
        },
    }
