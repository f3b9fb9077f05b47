"""Did the path inside a node give what it should, and is it known which path it was?"""

from collections.abc import Iterator

from broadgauge.catalog.paths import Expectation, expect_path
from broadgauge.specs.case import Case
from broadgauge.specs.records.op_rows import OpRow
from broadgauge.specs.records.record import Finding, PathFacts, Record, Severity
from broadgauge.specs.units import show_bandwidth, show_size

_FIXES = {
    "nvlink": "`nvidia-smi nvlink -s` and `nvidia-smi topo -m`: are all links up, at full rate?",
    "pcie": "`nvidia-smi -q -d PCIE`: generation and width of the slots; ACS and IOMMU off",
    "shm": "`nvidia-smi -q -d PCIE`: generation and width of the slots; ranks on the GPUs' cores",
    "sockets": "more sockets: NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD; more cores",
}


def path_expectation(case: Case, record: Record) -> Iterator[Finding]:
    """Is the largest all-reduce slower than the catalog expects of this path? Unknown hardware,
    and paths that nobody has published figures of: nothing."""
    path, row = record.path, _largest_all_reduce(record)
    if case.backend != "nccl" or case.nodes > 1 or path is None or row is None:
        return
    expected = _expected(case, record, path)
    if expected is None or row.size_bytes < expected.from_bytes:
        return
    if row.busbw_gbyte_per_s > expected.high_gbyte_per_s:
        yield _too_fast(row, expected, path)
    if row.busbw_gbyte_per_s >= expected.low_gbyte_per_s:
        return
    figure = expected.figures[0]
    low = show_bandwidth(expected.low_gbyte_per_s)
    yield Finding(
        rule="path-expectation",
        severity=Severity.WARNING,
        symptom=(
            f"{path.used} carried {show_bandwidth(row.busbw_gbyte_per_s)} in an all_reduce of "
            f"{show_size(row.size_bytes)}, below the {low} expected of it"
        ),
        evidence=(
            f"{case.world_size} x {record.gpus[0].name}: "
            f"{low} to {show_bandwidth(expected.high_gbyte_per_s)} expected",
            f"{show_bandwidth(figure.gbyte_per_s)}: {figure.source} ({figure.date})",
            *path.evidence[:1],
        ),
        cause="a slower link, a longer path, or settings that keep the path from filling",
        fix=_FIXES.get(path.used),
    )


def _too_fast(row: OpRow, expected: Expectation, path: PathFacts) -> Finding:
    """Faster than the path can be: the best sign that it was another one."""
    return Finding(
        rule="path-expectation",
        severity=Severity.WARNING,
        symptom=(
            f"{path.used} carried {show_bandwidth(row.busbw_gbyte_per_s)} in an all_reduce of "
            f"{show_size(row.size_bytes)}, above the {show_bandwidth(expected.high_gbyte_per_s)} "
            "expected of it at most"
        ),
        evidence=path.evidence[:2],
        cause="the bytes took another path than the log says, or the catalog is out of date",
        fix="`nvidia-smi nvlink -gt d` before and after a run shows what NVLink carried",
    )


def path_unknown(case: Case, record: Record) -> Iterator[Finding]:
    """Was a path asked for, and nothing says which one was used?"""
    if case.path is None or record.path is None or record.path.used != "unknown":
        return
    yield Finding(
        rule="path-unknown",
        severity=Severity.WARNING,
        symptom=f"nothing says that the bytes went by `{case.path.path}`",
        evidence=record.path.evidence,
        cause="NCCL's log names no connection, and the GPUs' NVLink counters can't tell",
        fix="leave NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE as Broadgauge sets them",
    )


def _largest_all_reduce(record: Record) -> OpRow | None:
    rows = [row for row in record.collectives if row.op == "all_reduce"]
    return max(rows, key=lambda row: row.size_bytes, default=None)


def _expected(case: Case, record: Record, path: PathFacts) -> Expectation | None:
    names = {gpu.name for gpu in record.gpus}
    if len(names) != 1:
        return None
    return expect_path(path.used, names.pop(), case.world_size)
