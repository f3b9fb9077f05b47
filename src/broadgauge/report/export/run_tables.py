"""How do the figures get into another tool? As tables in a fixed order, or as one JSON."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from broadgauge.analysis.model import AnalysedRun
from broadgauge.results.cost import GIGATOKEN, HOUR_S, CaseCost, seconds_a_token
from broadgauge.results.kinds.registry import ROW_TABLES
from broadgauge.results.model import CaseSummary
from broadgauge.results.table_names import TableName
from broadgauge.results.tables import Cell, CellKind, ExportColumn, ExportTable, RowTable
from broadgauge.specs.case import Case
from broadgauge.specs.records.record import Record, Status
from broadgauge.specs.workloads.metrics import REGISTRY

LABEL_COLUMNS: dict[str, CellKind] = {
    "record_id": "text",
    "case_key": "text",
    "workload": "text",
    "network": "text",
    "shape": "text",
    "launch_id": "text",
    "block": "integer",
    "trial": "integer",
    "position": "integer",
}
VERDICT_COLUMNS: dict[str, CellKind] = {
    "verdict_bound": "text",
    "verdict_is_slower_than_one_node": "truth",
    "verdict_sentence": "text",
}
"""Of the case over all its trials, in each of their rows."""
COST_COLUMNS: dict[str, CellKind] = {
    "usd_per_gigatoken": "number",
    "usd_per_run": "number",
    "price_usd_per_hour": "number",
    "price_source": "text",
}
"""Of the trial, where a price is known; the price is of all GPUs or nodes of its case."""
_RECORD_COLUMNS: dict[str, CellKind] = {
    "line_rate_gbps": "number",
    "mtu_bytes": "integer",
    "device": "text",
    "backend": "text",
    "started_unix_s": "number",
    "ended_unix_s": "number",
    "status": "text",
    "error_kind": "text",
    "error_phase": "text",
    "error_rank": "integer",
    "error_message": "text",
    "environment": "text",
    "ceiling_gbps": "number",
    "eight_streams_gbps": "number",
    "round_trip_s": "number",
    "arm": "text",
    "world_size": "integer",
    "engine": "text",
    "nics_per_node": "integer",
    "receive_rate_gbps": "number",
    "overlay": "text",
    "delay_s": "number",
    "jitter_s": "number",
    "loss_ratio": "number",
    "path_wanted": "text",
    "path_used": "text",
    **VERDICT_COLUMNS,
    "platform": "text",
    **COST_COLUMNS,
    "transport_wanted": "text",
    "nccl_version": "text",
    "nccl_network": "text",
    "gpudirect": "truth",
    "max_batch_len": "integer",
}
"""Columns of a later version come behind those there are; readers go by the name."""


def table_of(analysed: AnalysedRun, name: TableName = "records") -> ExportTable:
    """One row a trial, or the rows of a kind of workload. None is a missing value.

    Columns keep their order: labels, the registered metrics, then other metrics by name.
    """
    return _records(analysed) if name == "records" else _rows(analysed, ROW_TABLES[name])


def columns_of(name: TableName) -> tuple[ExportColumn, ...]:
    """Those of every run; a command's own metrics come on top."""
    return _columns(_record_kinds(REGISTRY) if name == "records" else _row_kinds(ROW_TABLES[name]))


def _record_kinds(metrics: Iterable[str]) -> dict[str, CellKind]:
    return LABEL_COLUMNS | _RECORD_COLUMNS | dict.fromkeys(metrics, "number")


def _row_kinds(table: RowTable) -> dict[str, CellKind]:
    return LABEL_COLUMNS | {"arm": "text"} | table.columns | VERDICT_COLUMNS


def _records(analysed: AnalysedRun) -> ExportTable:
    run, verdicts = analysed.run, _verdicts(analysed)
    seen = {name for record in run.records for name in record.metrics}
    metrics = [*REGISTRY, *sorted(seen - set(REGISTRY))]
    kinds = _record_kinds(metrics)
    rows = []
    for record in run.records:
        summary = run.case(record.case_key)
        cells = _of_record(record) | ({} if summary is None else _of_case(summary.case))
        cells |= {name: record.metrics.get(name) for name in metrics}
        if (environment := run.environments.get(record.environment or "")) is not None:
            cells["platform"] = environment.platform
        cells |= verdicts.get(record.case_key, {})
        cells |= _of_cost(record, analysed.cost.cases.get(record.case_key))
        rows.append(tuple(cells.get(name) for name in kinds))
    return ExportTable(columns=_columns(kinds), rows=tuple(rows))


def _of_cost(record: Record, cost: CaseCost | None) -> dict[str, Cell]:
    """Of a trial that succeeded; the cells are empty where no price is known."""
    if cost is None or cost.price is None or cost.price_usd_per_hour is None:
        return {}
    cells: dict[str, Cell] = {
        "price_usd_per_hour": cost.price_usd_per_hour,
        "price_source": cost.price.words,
    }
    if record.status is not Status.OK:
        return cells
    a_second, a_token = cost.price_usd_per_hour / HOUR_S, seconds_a_token(record)
    return cells | {
        "usd_per_gigatoken": None if a_token is None else a_token * GIGATOKEN * a_second,
        "usd_per_run": (record.ended_unix_s - record.started_unix_s) * a_second,
    }


def _of_record(record: Record) -> dict[str, Cell]:
    error, link = record.error, record.link
    cells: dict[str, Cell] = {name: getattr(record, name) for name in LABEL_COLUMNS}
    cells |= {
        "started_unix_s": record.started_unix_s,
        "ended_unix_s": record.ended_unix_s,
        "status": record.status.value,
        "environment": record.environment,
        "max_batch_len": record.max_batch_len,
        "path_used": None if record.path is None else record.path.used,
    }
    if record.nccl is not None:
        cells |= {
            "nccl_version": record.nccl.version,
            "nccl_network": record.nccl.network,
            "gpudirect": record.nccl.gpudirect,
        }
    if error is not None:
        cells |= {
            "error_kind": error.kind.value,
            "error_phase": None if error.phase is None else error.phase.value,
            "error_rank": error.rank,
            "error_message": error.message,
        }
    if link is not None:
        cells |= {
            "ceiling_gbps": link.ceiling_gbps,
            "eight_streams_gbps": link.eight_streams_gbps,
            "round_trip_s": link.round_trip_s,
        }
    return cells


def _of_case(case: Case) -> dict[str, Cell]:
    network, path = case.link, case.path
    cells: dict[str, Cell] = {
        "device": case.device,
        "backend": case.backend,
        "arm": case.arm,
        "world_size": case.world_size,
        "engine": case.workload.measured_by,
        "path_wanted": None if path is None else path.path,
    }
    if network is not None:
        cells |= {
            "line_rate_gbps": network.rate_gbps,
            "mtu_bytes": network.mtu_bytes,
            "nics_per_node": network.num_nics,
            "receive_rate_gbps": network.receive_rate_gbps,
            "overlay": network.overlay,
            "delay_s": network.delay_s,
            "jitter_s": network.jitter_s,
            "loss_ratio": network.loss_ratio,
            "transport_wanted": None if network.face is None else network.face.transport,
        }
    return cells


def _verdicts(analysed: AnalysedRun) -> dict[str, dict[str, Cell]]:
    """The cells of VERDICT_COLUMNS, by the case's key."""
    return {
        case.key: {
            "verdict_bound": case.verdict.bound.value,
            "verdict_is_slower_than_one_node": case.verdict.is_slower_than_one_node,
            "verdict_sentence": case.verdict.sentence,
        }
        for case in analysed.analysis.cases
    }


def _rows(analysed: AnalysedRun, table: RowTable) -> ExportTable:
    run, verdicts = analysed.run, _verdicts(analysed)
    arms = {summary.case.key: summary.case.arm for summary in run.cases}
    rows = tuple(
        (
            *(getattr(record, name) for name in LABEL_COLUMNS),
            arms.get(record.case_key),
            *row.values(),
            *(verdicts.get(record.case_key, {}).get(name) for name in VERDICT_COLUMNS),
        )
        for record in run.records
        for row in table.rows_of(record)
    )
    return ExportTable(columns=_columns(_row_kinds(table)), rows=rows)


def _columns(kinds: dict[str, CellKind]) -> tuple[ExportColumn, ...]:
    return tuple(ExportColumn(name=name, kind=kind) for name, kind in kinds.items())


def to_csv(analysed: AnalysedRun, name: TableName = "records") -> str:
    """The table with a line of names; empty cells are missing values."""
    table = table_of(analysed, name)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    writer.writerows(table.rows)
    return text.getvalue()


def to_json(analysed: AnalysedRun) -> str:
    """Everything the run folder, its summary and its analysis say, as one JSON document without
    NaN."""
    run = analysed.run
    document = {
        "format": "broadgauge run",
        "schema_version": run.plan.schema_version,
        "experiment": run.plan.experiment_name,
        "experiment_yaml": run.experiment_yaml,
        "notes": list(run.notes),
        "cost": {"total_usd": analysed.cost.total_usd, "prices": list(analysed.cost.words)},
        "cases": [_case(each, analysed.cost.cases.get(each.case.key)) for each in run.cases],
        "analysis": analysed.analysis.model_dump(mode="json"),
        "records": [_record(record) for record in run.records],
        "environments": {
            key: environment.model_dump(mode="json")
            for key, environment in sorted(run.environments.items())
        },
        "plan": run.plan.model_dump(mode="json"),
    }
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _record(record: Record) -> dict[str, Any]:
    """Rows of their own have all columns of their table."""
    rows = {name: list(table.rows_of(record)) for name, table in ROW_TABLES.items()}
    return record.model_dump(mode="json") | rows


def _case(summary: CaseSummary, cost: CaseCost | None) -> dict[str, object]:
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
        "cost": None if cost is None else asdict(cost),
        "collectives": [asdict(row) for row in summary.collectives],
        "ceiling_gbps": None if summary.ceiling_gbps is None else asdict(summary.ceiling_gbps),
        "eight_streams_gbps": None
        if summary.eight_streams_gbps is None
        else asdict(summary.eight_streams_gbps),
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
