"""What does each column of an export mean? The dictionary of columns.

`broadgauge export --describe` prints it, Parquet files carry it in each field's metadata, and
docs/columns.md is it.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields

from broadgauge.report.export.run_tables import columns_of
from broadgauge.results.table_names import TABLE_NAMES, TableName
from broadgauge.results.tables import CellKind
from broadgauge.specs.workloads.metrics import REGISTRY, unit_of

OF_TRIALS: Mapping[str, str] = {
    "record_id": "id of the planned trial, unique in the run",
    "case_key": "hash of all settings that decide what was measured: equal keys, equal cases",
    "workload": "the workload's name in the experiment",
    "network": "the network's name in the experiment, or the path inside one node",
    "shape": "nodes x ranks per node",
    "launch_id": "the launch: ranks from start to end; r1, r2, … behind it: a repeated one",
    "block": "the pass over all cases that the trial belongs to; cases are compared within blocks",
    "trial": "number of the trial within its launch and case, from 0",
    "position": "its place in the order of all trials of its block, from 0",
    "line_rate_gbps": "what the shaper was set to, with Ethernet headers; empty: unshaped or found",
    "mtu_bytes": "largest IP packet on the link",
    "device": "cpu or cuda",
    "backend": "library of the collectives: gloo or nccl",
    "started_unix_s": "when the trial began, seconds since 1970-01-01 UTC",
    "ended_unix_s": "when it ended, seconds since 1970-01-01 UTC",
    "status": "ok, failed, timeout, or skipped (not run, with a reason)",
    "error_kind": "what kind of failure; empty where it succeeded",
    "error_phase": "where the ranks were then",
    "error_rank": "the rank that is to blame, where one is",
    "error_message": "what happened, in words",
    "environment": "hash of the software and hardware: environments/<hash>.json of the run folder",
    "ceiling_gbps": (
        "on the wire, what one plain TCP stream carried at least over the same link unshaped; of a "
        "found network over it as it is"
    ),
    "eight_streams_gbps": (
        "the same of eight streams at once, over all NICs of a node; empty: unknown, or not needed "
        "as one stream carries twice the line rate"
    ),
    "round_trip_s": (
        "of a small datagram over the link as it was shaped; of a found network of a byte over TCP"
    ),
    "arm": "candidate, or baseline (`run --against`)",
    "world_size": "number of ranks",
    "engine": "who ran the collectives: torch or nccl-tests",
    "nics_per_node": "NICs that a node has on this network",
    "receive_rate_gbps": "what the switch's port lets a node receive, where it is another rate",
    "overlay": "tunnel that packets went through; empty: none",
    "delay_s": "added to each packet that a node sends",
    "jitter_s": "spread of that delay",
    "loss_ratio": "share of the packets that are dropped on purpose",
    "path_wanted": "inside a node: the path that was asked for",
    "path_used": "inside a node: the path that was used, by the library's log and counters",
    "verdict_bound": "what limits the case, over all its trials: network, host, compute, unknown",
    "verdict_is_slower_than_one_node": "all nodes together were slower than one node alone",
    "verdict_sentence": "the verdict with its figures, in words",
    "platform": "where it ran: emulated, local, hosts or kubernetes",
    "usd_per_gigatoken": "US dollars for 10^9 tokens: all GPUs (or nodes) of the case are paid for "
    "as long as it trains",
    "usd_per_run": "US dollars for the trial from its start to its end, warm-up included",
    "price_usd_per_hour": "of all GPUs (or nodes) of the case; empty: no price is known",
    "price_source": "what one costs, who says so, and when",
    "transport_wanted": "how NCCL was to send over a found network; empty: as it comes",
    "nccl_version": "of NCCL, by its own log",
    "nccl_network": "which network NCCL used, by its own log: Socket, IB, a plugin's name",
    "gpudirect": "NICs read and wrote the GPUs' memory, by NCCL's log; empty: unknown, or no NIC",
    "max_batch_len": "tokens that a rank has at most in a batch, by its config.json; empty: none",
}
"""By name; the registered metrics say theirs themselves (specs/workloads/metrics.py)."""
OF_OPERATIONS: Mapping[str, str] = {
    "op": "the collective, or send_recv",
    "dtype": "type of the elements",
    "size_bytes": "size S as nccl-tests defines it",
    "iterations": "how often it was timed",
    "time_s": "mean time over the iterations, slowest rank of each",
    "time_min_s": "shortest of them",
    "time_median_s": "median of them",
    "time_max_s": "longest of them",
    "algbw_gbyte_per_s": "size / time",
    "busbw_gbyte_per_s": "algbw x the factor of the collective, as nccl-tests defines",
    "wire_bytes": "bytes on the wire by counters per iteration, busiest node and direction",
    "amplification_ratio": "wire_bytes / the ring algorithm's bytes of that node",
    "link_rate_gbps": "wire_bytes x 8 / time",
    "is_correct": "was the result checked, and right? Empty: not checked",
    "from_rank": "of a message between two ranks: who sent it",
    "to_rank": "of a message between two ranks: who received it",
}
"""Of one collective at one size in one trial."""
OF_FILE_ACCESSES: Mapping[str, str] = {
    "access": "write or read",
    "repetition": "of this access in the trial, from 0",
    "size_bytes": "of all ranks together; files that ranks find in one page cache count once",
    "time_s": "of the slowest rank; of a write until it is durable",
    "stall_s": "that training waited for it, of the rank that waited longest; empty: raw files",
    "slowest_rank": "which rank that was",
    "operations": "calls to the kernel that moved the files' bytes, of all ranks; empty: not "
    "counted",
    "device_bytes": "read from block devices by all ranks, of a checkpoint left to be written; "
    "empty: not counted",
    "cached_before_bytes": "of all ranks' files, in memory just before the read; empty: a write, "
    "or the kernel does not say",
    "cache": "where the bytes of a read came from: cold, warm or unknown",
    "evidence": "what was counted of the slowest rank that reads",
    "file_system": "that the storage is on, by the kernel's list of mounts",
    "held_ratio": "of the files' bytes, what their file system holds at most: below 1 where it "
    "compresses; empty: it does not say",
}
"""Of one repetition on a storage in one trial."""
_OF_ROWS: Mapping[TableName, Mapping[str, str]] = {
    "records": {},
    "collectives": OF_OPERATIONS,
    "file_accesses": OF_FILE_ACCESSES,
}
_ONE_ROW: Mapping[TableName, str] = {
    "records": "a trial",
    "collectives": "an operation, size and trial",
    "file_accesses": "a repetition and trial",
}
_OF_A_COMMAND = "a metric that the experiment reads from its command's output"


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedColumn:
    """One line of the dictionary."""

    table: TableName
    name: str
    kind: CellKind
    unit: str
    """Empty: it has none."""
    meaning: str


def meaning_of(name: str, table: TableName) -> str:
    """In one line, without a stop."""
    if name in _OF_ROWS[table]:
        return _OF_ROWS[table][name]
    if name in REGISTRY:
        return REGISTRY[name].meaning
    return OF_TRIALS.get(name, _OF_A_COMMAND)


def unit_of_column(name: str, kind: CellKind) -> str:
    """By the end of its name; empty for words, numbers of things and truths."""
    if kind == "text":
        return ""
    if name.endswith("_unix_s"):
        return "s since 1970"
    return unit_of(name) or ""


def described() -> Iterator[DescribedColumn]:
    """Every column that each run has, table by table."""
    for table in TABLE_NAMES:
        for column in columns_of(table):
            yield DescribedColumn(
                table=table,
                name=column.name,
                kind=column.kind,
                unit=unit_of_column(column.name, column.kind),
                meaning=meaning_of(column.name, table),
            )


def to_json() -> str:
    """The whole dictionary, for programs."""
    document = {"format": "broadgauge columns", "columns": [asdict(each) for each in described()]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def to_csv() -> str:
    """The same, a line a column."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(DescribedColumn)])
    writer.writerows(asdict(each).values() for each in described())
    return text.getvalue()


def to_markdown() -> str:
    """The page docs/columns.md."""
    lines = [
        "# Columns of the exports",
        "",
        "`broadgauge export --describe --format markdown > docs/columns.md` writes this page. An "
        "empty cell (CSV) or null (Parquet) is a value",
        "that was not measured. Columns keep their order, and new ones come last: go by the name. "
        "A command's own metrics stand among the",
        "metrics of `records` under the names that the experiment gives them.",
    ]
    for table in TABLE_NAMES:
        lines += [
            "",
            f"## `{table}`: one row {_ONE_ROW[table]}",
            "",
            "| column | type | unit | meaning |",
        ]
        lines += ["| --- | --- | --- | --- |"]
        lines += [
            f"| `{each.name}` | {each.kind} | {each.unit} | {each.meaning} |"
            for each in described()
            if each.table == table
        ]
    return "\n".join(lines) + "\n"
