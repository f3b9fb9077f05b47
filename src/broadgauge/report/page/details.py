"""What stands below the pictures? Every figure with its spread, failures, and how it was had."""

from collections.abc import Callable, Iterable, Sequence

from broadgauge.advise.limits import THROTTLED_RATIO
from broadgauge.analysis.model import Analysis
from broadgauge.report.kinds.registry import in_report
from broadgauge.report.page.cells import estimate_content
from broadgauge.report.page.markup import Content, Html, join, table, tag
from broadgauge.report.rows.cost import MEANINGS, cost_rows
from broadgauge.report.rows.failed_trials import alike, trial_words, where_words
from broadgauge.report.words.cells import EMPTY
from broadgauge.report.words.findings import cause_words, why_failed
from broadgauge.report.words.links import has_emulated, stream_title
from broadgauge.report.words.quantities import interval, meaning_of, show, title_of
from broadgauge.results.cost import NO_COST, CaseCost, RunCost
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.results.summary import estimate_over
from broadgauge.specs.machines.alike_nodes import nodes_words
from broadgauge.specs.machines.cluster_words import cluster_rows
from broadgauge.specs.records.imported import IMPORTED
from broadgauge.specs.records.record import Environment, GpuFacts, Record
from broadgauge.specs.units import show_ratio, show_size

_BYTES = "bytes per trial"


def hosts(run: RunSummary) -> Html:
    """What did the hosts and links do meanwhile?"""
    cases = [summary for summary in run.cases if any(record.nodes for record in summary.good)]
    if not cases:
        return Html()
    head = ("case", _BYTES, "CPU per GB", "cores busy", "retransmits", "dropped")
    link = (stream_title(cases), "round trip")
    has_gpus = any(record.gpus for record in run.records)
    gpu_head = ("GPU clock", "GPU power", "throttled") if has_gpus else ()
    shown, rows = _without_empty(
        (*head, *link, *gpu_head), [_host_row(summary, has_gpus=has_gpus) for summary in cases]
    )
    how = "Counters read from outside the ranks at the same moments on every node."
    if _BYTES in shown:
        how += " Bytes are of the busiest node and direction on the wire."
    return join(
        tag("h2", "Hosts and links" if {_BYTES, *link} & {*shown} else "Hosts"),
        tag("p", how, class_="how"),
        table(shown, rows, class_="cards-below"),
    )


def _without_empty(
    head: Sequence[str], rows: Sequence[Sequence[Content]]
) -> tuple[list[str], list[list[Content]]]:
    """Columns of dashes say nothing: a run on one node has none of a link's figures."""
    kept = [index for index in range(len(head)) if any(row[index] != EMPTY.main for row in rows)]
    return [head[i] for i in kept], [[row[i] for i in kept] for row in rows]


def _host_row(summary: CaseSummary, *, has_gpus: bool) -> list[Content]:
    def over(name: str, value_of: Callable[[Record], float | None]) -> Content:
        return estimate_content(name, estimate_over(summary.good, value_of))

    row: list[Content] = [
        summary.case.label,
        over("wire_bytes", _bytes_moved),
        *(
            estimate_content(name, summary.estimates.get(name))
            for name in ("cpu_s_per_gbyte", "cpu_busy_ratio", "retransmits_count", "drops_count")
        ),
        estimate_content("ceiling_gbps", summary.ceiling_gbps),
        estimate_content("round_trip_s", summary.round_trip_s),
    ]
    if has_gpus:
        gpus = [gpu for record in summary.good for gpu in record.gpus]
        throttled = sum((gpu.throttled_ratio or 0) >= THROTTLED_RATIO for gpu in gpus)
        row += [
            over("clock_mhz", lambda r: _mean(gpu.sm_clock_mhz for gpu in r.gpus)),
            over("power_watts", lambda r: _mean(gpu.power_watts for gpu in r.gpus)),
            f"{throttled} of {len(gpus)}" if gpus else "–",
        ]
    return row


def _bytes_moved(record: Record) -> float | None:
    moved = [n for node in record.nodes for n in (node.tx_bytes, node.rx_bytes) if n is not None]
    return max(moved) if moved else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def all_metrics(run: RunSummary, cost: RunCost = NO_COST) -> Html:
    """Every figure of every case, with its interval and how it was obtained."""
    parts = [_metrics_of(each, cost.cases.get(each.case.key)) for each in run.cases]
    return join(
        tag("h2", "Every figure"),
        tag(
            "p",
            "Mean of the launches' means with its 95 % interval by Student's t over launches. "
            "Steps of one launch are correlated and count as one.",
            class_="how",
        ),
        parts,
    )


def _metrics_of(summary: CaseSummary, cost: CaseCost | None) -> Html:
    counts = f"{summary.num_ok} of {summary.num_planned} trials good"
    if summary.num_failed:
        counts += f", {summary.num_failed} failed"
    rows: list[tuple[Content, ...]] = [
        (
            title_of(name),
            show(name, estimate.value),
            interval(name, estimate),
            str(estimate.launches),
            estimate.method,
        )
        for name, estimate in summary.estimates.items()
    ]
    rows += [
        (title, value, ends, str(estimate.launches), estimate.method)
        for title, value, ends, estimate in cost_rows(cost)
    ]
    rows += [(title_of(name), "–", "–", "–", reason) for name, reason in summary.missing.items()]
    body: list[Html] = []
    if rows:
        head = ("metric", "value", "95 % interval", "launches", "how, or why not")
        body.append(table(head, rows, class_="cards-below"))
    body.append(in_report(summary.case.workload).details_on_page(summary))
    return tag("details", tag("summary", summary.case.label, " · ", counts), body)


def failures(run: RunSummary) -> Html:
    """Which trials failed, and what did their ranks say last?"""
    groups = alike(run)
    if not groups:
        return Html()
    return join(
        tag("h2", f"Failed trials ({sum(map(len, groups))})"),
        tag("p", "No figure above counts them.", class_="how"),
        [_failure(records) for records in groups],
    )


def _failure(records: Sequence[Record]) -> Html:
    """Of one case, alike."""
    first = records[0]
    label = f"{first.workload} {first.shape} {first.network}"
    error = first.error
    if error is None:
        return tag("div", tag("p", f"{label}, {trial_words(records)}"), class_="failure")
    return tag(
        "div",
        tag("h3", label),
        tag("p", f"{error.message} ({where_words(first)})"),
        [tag("p", line) for line in why_failed(first)],
        tag("pre", "\n".join(error.last_lines)) if error.last_lines else "",
        tag("p", f"{trial_words(records)}, logs/ in the run folder", class_="faint"),
        class_="failure",
    )


def findings(analysis: Analysis) -> Html:
    """What was conspicuous in the trials, each kind once with the cases it was seen in?"""
    rows: list[tuple[Content, ...]] = [
        (
            group.severity.value,
            join(group.symptom, tag("span", "; ".join(group.evidence), class_="sub wrapped")),
            ", ".join(group.cases),
            str(group.num_trials),
            "; ".join(filter(None, (cause_words(group.cause, group.confidence), group.fix))) or "–",
        )
        for group in analysis.findings
    ]
    if not rows:
        return Html()
    head = ("severity", "what was seen", "in", "trials", "cause and remedy")
    return join(tag("h2", "Findings"), table(head, rows, class_="text cards-below"))


def environments(run: RunSummary) -> Html:
    """On what did it run?"""
    return join(
        tag("h2", "Environment"),
        [_environment(key, facts) for key, facts in sorted(run.environments.items())],
    )


def _environment(key: str, facts: Environment) -> Html:
    is_here = facts.platform != IMPORTED
    special: dict[str, str | None] = {
        "memory_bytes": None if facts.memory_bytes is None else show_size(facts.memory_bytes),
        "gpus": "; ".join(map(_gpu_words, facts.gpus)) or ("none" if is_here else None),
        "nics": ", ".join(facts.nics) or ("unknown" if is_here else None),
        "nodes": nodes_words(facts),
        "variables": " ".join(f"{k}={v}" for k, v in sorted(facts.variables.items())) or "none",
    }
    rows = [("hash", key)]
    for name in Environment.model_fields:
        if name == "cluster":
            rows += cluster_rows(facts.cluster)
            continue
        value = special.get(name, getattr(facts, name))
        if value is None and not is_here:  # nearly everything: a file tells little
            continue
        rows.append((title_of(name), "unknown" if value is None else str(value)))
    return table(("fact", "value"), rows, class_="text")


def _gpu_words(gpu: GpuFacts) -> str:
    return gpu.name if gpu.memory_bytes is None else f"{gpu.name}, {show_size(gpu.memory_bytes)}"


def meanings(run: RunSummary, cost: RunCost = NO_COST) -> Html:
    """What does each metric mean?"""
    names = {n: None for s in run.cases for n in (*s.estimates, *s.missing)}
    rows = [(title_of(name), name, meaning_of(name)) for name in names]
    if cost.total_usd is not None:
        rows += [(title_of(name), name, meaning) for name, meaning in MEANINGS.items()]
    if not rows:
        return Html()
    share = show_ratio(0.95)
    emulated = (
        " An emulated network has the line rate named, by TCP, and no delay, loss or offload of "
        "the network it is like."
    )
    return join(
        tag("h2", "What the figures mean"),
        tag(
            "p",
            f"Intervals are {share} intervals. A dash means not measured; the reason stands under "
            f"“Every figure”.{emulated if has_emulated(run) else ''}",
            class_="how",
        ),
        table(("figure", "name in exports", "meaning"), rows, class_="text"),
    )


def experiment(run: RunSummary) -> Html:
    """What was asked for?"""
    is_here = all(facts.platform != IMPORTED for facts in run.environments.values())
    title = "The experiment as run" if is_here else "What was imported"
    return join(tag("h2", title), tag("pre", run.experiment_yaml))
