"""Which networks hold the job back? The first words of the page, and of the terminal."""

from collections.abc import Sequence

from broadgauge.advise.verdicts.verdict import Bound
from broadgauge.report.rows.closing import NetworkRow
from broadgauge.report.words.failures import all_failed, has_failed_whole, reasons
from broadgauge.wording.listing import listed

_NOTHING = "Nothing was measured."


def headline_lines(rows: Sequence[NetworkRow]) -> tuple[str, ...]:
    """One line a workload, at least one."""
    failed = all_failed(row.job for row in rows)
    if failed is not None and len(reasons(row.job for row in rows)) == 1:
        return (_line(failed),)
    jobs = [row for row in rows if not row.job.case.workload.only_communicates]
    workloads: dict[str, list[NetworkRow]] = {}
    for row in jobs or rows:
        workloads.setdefault(row.job.case.workload.name, []).append(row)
    if len(workloads) == 1:
        return (_line(_headline(jobs or rows)),)
    return tuple(f"{name}: {_headline(of)}." for name, of in workloads.items()) or (_NOTHING,)


def _line(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else _NOTHING


def _headline(rows: Sequence[NetworkRow]) -> str:
    failed = [row for row in rows if has_failed_whole(row.job)]
    if failed and len(failed) == len(rows) and len(reasons(row.job for row in failed)) == 1:
        return f"every trial failed: {reasons(row.job for row in failed)[0]}"
    sentences = _failures(failed, rows)
    ran = [row for row in rows if not has_failed_whole(row.job)]
    judged = [row for row in ran if row.job.case.network is not None] or ran
    for bound in Bound:
        names = _names([row for row in judged if row.verdict.bound is bound], judged)
        if names:
            word = (
                "can't tell what limits the job on"
                if bound is Bound.UNKNOWN
                else f"{bound.value} on"
            )
            sentences.append(f"{word} {listed(names)}")
    slower = _names([row for row in judged if row.verdict.is_slower_than_one_node], judged)
    if slower:
        sentences.append(f"slower than one node on {listed(slower)}")
    return "; ".join(sentences)


def _failures(failed: Sequence[NetworkRow], rows: Sequence[NetworkRow]) -> list[str]:
    """Where nothing was measured, and why."""
    by_reason: dict[str, list[NetworkRow]] = {}
    for row in failed:
        by_reason.setdefault(reasons([row.job])[0], []).append(row)
    return [
        f"every trial failed on {listed(_names(of, rows))}: {reason}"
        for reason, of in by_reason.items()
    ]


def _names(rows: Sequence[NetworkRow], judged: Sequence[NetworkRow]) -> list[str]:
    """Networks; with the shape where another shape on the same network is judged otherwise."""
    chosen = {id(row) for row in rows}
    elsewhere = {row.network for row in judged if id(row) not in chosen}
    return list(
        dict.fromkeys(
            f"{row.network} {row.job.case.shape}" if row.network in elsewhere else row.network
            for row in rows
        )
    )
