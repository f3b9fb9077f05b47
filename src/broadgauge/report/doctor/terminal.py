"""What does `broadgauge doctor` print? What NCCL did, which way bytes went, and what is wrong."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from broadgauge.doctor.expectation import BandwidthExpectation
from broadgauge.doctor.log.overview import CommunicatorOverview, JobOverview, ToldValue
from broadgauge.doctor.log.path_matrix import PathMatrix, PathUse
from broadgauge.report.rows.nccl import WAYS
from broadgauge.report.terminal.tables import heading, indented, sentence
from broadgauge.report.words.findings import cause_words
from broadgauge.report.words.printable import printable
from broadgauge.specs.records.record import Finding, Severity
from broadgauge.specs.units import show_rate, show_size, show_time
from broadgauge.wording.listing import listed

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold"}
_NAMES = (
    (Severity.ERROR, "error", "errors"),
    (Severity.WARNING, "warning", "warnings"),
    (Severity.INFO, "note", "notes"),
)
_MOST_VARIABLES = 40
_TITLE_WIDTH = 12


def print_findings(findings: Sequence[Finding], console: Console) -> None:
    """Each with evidence, cause and fix, the worst first; then how many there are."""
    heading("Findings", console)
    for finding in findings:
        print_finding(finding, console)
    print_count(findings, console)


def print_finding(finding: Finding, console: Console, where: str = "") -> None:
    """`where`: in which cases of a run it holds."""
    console.print()
    print_symptom(finding, console)
    for index, evidence in enumerate(finding.evidence):
        print_part("" if index else "evidence", printable(evidence), console, "dim")
    print_part("cause", cause_words(finding.cause, finding.confidence), console)
    print_part("fix", finding.fix, console)
    if where:
        print_part("where", printable(where), console)
    print_part("rule", finding.rule, console, "dim")


def print_symptom(finding: Finding, console: Console) -> None:
    """`warning  RDMA was not used`."""
    title = Text(f"{finding.severity.value}  ", style=_STYLES[finding.severity])
    title.append(printable(finding.symptom), style="bold")
    for line in _hanging(title, console, len(finding.severity.value) + 2):
        console.print(line)


def print_count(findings: Sequence[Finding], console: Console) -> None:
    """How many there are of each severity."""
    console.print()
    console.print(Text(counted(findings), style="bold"))


def counted(findings: Sequence[Finding]) -> str:
    """`1 error, 2 warnings, 3 notes`."""
    words = []
    for severity, one, several in _NAMES:
        count = sum(finding.severity is severity for finding in findings)
        if count:
            words.append(f"{count} {one if count == 1 else several}")
    return ", ".join(words) or "nothing found"


def print_job(job: JobOverview, console: Console) -> None:
    """What its logs say of a job, one line a fact."""
    heading("What NCCL did, by its logs", console)
    if not job.num_processes:
        size, lines = show_size(job.num_bytes), f"{job.num_lines:,}"
        sentence(
            f"Unknown: of {lines} lines ({size}) none has NCCL's prefix. NCCL_DEBUG=INFO makes it "
            "say what it does.",
            console,
        )
    else:
        for title, words in _job_lines(job):
            print_part(title, words, console)
    for problem in job.problems:
        sentence(f"not read whole: {printable(problem)}", console, "yellow")


def print_expectation(expected: BandwidthExpectation, console: Console) -> None:
    """What a healthy job of this kind reaches, who says so, and what is missing to know it."""
    print_part("should be", expected.words, console)
    for each in expected.sources:
        print_part("", printable(f"{each.words}: {each.source} ({each.date})"), console, "dim")
    if expected.missing:
        print_part("", f"needed: {'; '.join(expected.missing)}", console, "dim")


def _job_lines(job: JobOverview) -> list[tuple[str, str]]:
    """Title and words of what is known."""
    hosts = "1 host" if len(job.hosts) == 1 else f"{len(job.hosts)} hosts"
    processes = "1 process" if job.num_processes == 1 else f"{job.num_processes} processes"
    lines = [
        (
            "read",
            f"{job.num_lines:,} lines, {job.num_nccl_lines:,} of NCCL ({show_size(job.num_bytes)})",
        ),
        ("job", f"{processes} on {hosts}: {_few(job.hosts)}"),
        (job.library, _told(job.versions)),
        ("network", _told(job.networks)),
        ("plugin", _told(job.plugins)),
        ("interfaces", _told(job.interfaces)),
        ("adapters", _adapters(job)),
        ("GPUDirect", _gdr(job)),
        ("bootstrap", _told(job.bootstraps)),
        ("sockets", _told(job.sockets)),
        ("group", "" if job.communicator is None else _communicator(job.communicator, job)),
        ("init", _times(job)),
        ("variables", _variables(job)),
    ]
    return [(title, words) for title, words in lines if words]


def _told(told: Sequence[ToldValue]) -> str:
    """One value without its owners, several with them."""
    if len(told) == 1:
        return told[0].value
    return "; ".join(f"{each.value} ({each.who})" for each in told)


def _few(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _adapters(job: JobOverview) -> str:
    return _few(
        [
            f"{each.name} {each.link}"
            + ("" if each.speed_gbps is None else f" {show_rate(each.speed_gbps)}")
            for each in job.adapters
        ]
    )


def _gdr(job: JobOverview) -> str:
    rows = []
    for row in job.gdr:
        different = [
            f"{name} {state}"
            for name, state in row.by_adapter.items()
            if state not in (row.all, "unknown")
        ]
        of_adapters = f" ({_few(different)})" if different else ""
        rows.append(f"{row.all}{of_adapters}" if len(job.gdr) == 1 else f"{row.who}: {row.all}")
    return "; ".join(rows)


def _communicator(group: CommunicatorOverview, job: JobOverview) -> str:
    def count(number: int | None, one: str) -> str:
        return "" if number is None else f"{number} {one}{'' if number == 1 else 's'}"

    parts = [
        count(group.num_ranks, "rank"),
        "" if group.num_nodes is None else f"{group.num_nodes} as NCCL counts nodes",
        count(group.num_channels, "channel"),
        count(len(group.rings) or None, "ring order"),
        "trees" if group.has_trees else "",
        "NVLS" if group.has_nvls else "",
    ]
    others = job.num_communicators - 1
    more = "" if others < 1 else f"; {count(others, 'other group')}"
    return ", ".join(part for part in parts if part) + more


def _times(job: JobOverview) -> str:
    def span(ends: tuple[float, float]) -> str:
        first, last = show_time(ends[0]), show_time(ends[1])
        return first if first == last else f"{first} to {last}"

    words = "" if job.init_s is None else span(job.init_s)
    if job.bootstrap_s is not None:
        words += f"{', of it' if words else ''} bootstrap {span(job.bootstrap_s)}".rstrip()
    return words.strip()


def _variables(job: JobOverview) -> str:
    words = [
        f"{name}={_told(told) if len(told) == 1 else ' or '.join(each.value for each in told)}"
        for name, told in job.variables.items()
    ]
    shown = " ".join(words[:_MOST_VARIABLES])
    left = len(words) - _MOST_VARIABLES
    return shown if left <= 0 else f"{shown} and {left} more"


def print_matrix(matrix: PathMatrix, console: Console) -> None:
    """Which way from row to column; one letter a cell, the slowest way of several."""
    heading("Which way the bytes go", console)
    what = "rank" if matrix.by == "rank" else "node"
    width = max(2, *(len(label) for label in matrix.labels)) + 1
    labels = [label.rjust(width) for label in matrix.labels]
    if width * (len(labels) + 1) + 5 <= console.width:
        _print_cells(matrix, labels, what, width, console)
    for place, uses in (("inside a node", matrix.inside), ("between nodes", matrix.between)):
        if uses:
            sentence(f"{place}: {'; '.join(map(_use_words, uses))}", console)
    if matrix.num_left_out:
        sentence(f"{matrix.num_left_out} nodes like most of these are not shown", console, "dim")


def _print_cells(
    matrix: PathMatrix, labels: Sequence[str], what: str, width: int, console: Console
) -> None:
    console.print(Text(f"{what:>5}{' ' * width}" + "".join(labels), style="dim"), soft_wrap=True)
    seen: set[str] = set()
    for label, row in zip(labels, matrix.cells, strict=True):
        letters = []
        for cell in row:
            ways = {use.way for use in cell.uses}
            slowest = next((way for way in WAYS if way in ways), None)
            seen |= ways
            letters.append(("·" if slowest is None else WAYS[slowest].letter).rjust(width))
        console.print(Text("     " + label + "".join(letters)), soft_wrap=True)
    for name, kind in WAYS.items():
        if name in seen:
            sentence(f"{kind.letter}: {name}, {kind.meaning}", console, "dim")


def _use_words(use: PathUse) -> str:
    pairs = "1 pair" if use.num_pairs == 1 else f"{use.num_pairs} pairs"
    channels = "1 channel" if len(use.channels) == 1 else f"{len(use.channels)} channels"
    over = f" over {listed(use.devices)}" if use.devices else ""
    proxied = f", {use.num_proxied} of them by another GPU's NIC (PXN)" if use.num_proxied else ""
    return f"{use.way}{over}: {pairs} on {channels}{proxied}"


def print_part(title: str, words: str | None, console: Console, style: str = "") -> None:
    """`  cause      the memlock limit is too low`; nothing where there is nothing to say."""
    if words:
        text = Text(f"{title:<{_TITLE_WIDTH}}", style="dim").append(printable(words), style=style)
        for line in _hanging(text, console, _TITLE_WIDTH):
            console.print(line)


def _hanging(text: Text, console: Console, indent: int) -> list[Text]:
    """Wrapped; further lines stand below the words, not below the title."""
    room = max(20, console.width - 2 - indent)
    head, rest = text[:indent], text[indent:]
    lines = rest.wrap(console, room)
    first = Text("  ").append_text(head).append_text(lines[0]) if lines else Text("  ") + head
    first.rstrip()
    return (
        [first, *indented(Text("\n").join(lines[1:]), console, indent + 2)]
        if lines[1:]
        else [first]
    )
