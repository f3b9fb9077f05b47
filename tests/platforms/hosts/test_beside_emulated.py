"""Do the same cases take the same on hosts as on emulated nodes whose links are shaped alike?

One run interleaves both platforms. Ranks, cores, links and what shapes them are equal; what is not:
agents and leader run on the machines, and the bytes are counted by the agent of each machine.
"""

from collections.abc import Iterator, Mapping
from statistics import median

import pytest
from tests.disturbance import judging
from tests.e2e.driving import only_run
from tests.platforms.hosts.alike import EXPERIMENT, like_emulated
from tests.platforms.hosts.machines import TOOL, Machines, Tool, machines_in

from broadgauge.messages.vocabulary import UNDER_READ_RATIO, CounterKind
from broadgauge.results.comparing.compare_cases import between_platforms, compare_cases
from broadgauge.results.folder.series import read_series
from broadgauge.results.model import STEP_SERIES, CaseComparison, CaseSummary, RunSummary
from broadgauge.results.run_path import read_summary

pytestmark = [
    pytest.mark.root,
    pytest.mark.measuring,
    pytest.mark.namespaces,
    pytest.mark.measured,
    pytest.mark.sshd,
    pytest.mark.slow,
    pytest.mark.timeout(580),
]
SHAPED = ("pod-like", "vnic-like")
TIMES_WITHIN = 0.03
BYTES_WITHIN = 0.01


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with machines_in(tmp_path_factory.mktemp("alike"), **like_emulated()) as found:
        yield found


def test_a_shaped_step_takes_as_long_on_hosts(tool: Tool) -> None:
    """Twice on each platform, so that one moment's disturbance decides nothing."""
    run = run_of(tool, launches=2, only="pod-like")
    assert_alike(tool, run, ("pod-like",))


@pytest.mark.thorough
def test_the_quickstarts_networks_are_alike_on_hosts(tool: Tool) -> None:
    """The unshaped one is this machine's own speed, and is reported."""
    run = run_of(tool, launches=3)
    assert_alike(tool, run, SHAPED)
    assert_bytes(train_ratios(run, "wire_bytes")["reference"], CounterKind.INTERFACE)


def run_of(tool: Tool, launches: int, only: str | None = None) -> RunSummary:
    """The experiment, run once; of its networks perhaps only one."""
    settings = [f"launches={launches}"]
    if only is not None:
        settings += [f"workloads.{number}.networks=[{only}]" for number in range(2)]
    words = [word for setting in settings for word in ("--set", setting)]
    tool.run("run", str(EXPERIMENT), *words, command=TOOL, timeout_s=560)
    return read_summary(only_run(tool.folder))


def train_ratios(run: RunSummary, metric: str) -> Mapping[str, CaseComparison]:
    """By network: hosts over emulated, in pairs of one block."""
    by_network: dict[str, dict[str, CaseSummary]] = {}
    for summary in run.cases:
        if summary.case.workload.kind == "train":
            on = by_network.setdefault(summary.case.plain_network_name, {})
            on[str(summary.case.platform)] = summary
    rows = {
        name: compare_cases(on["emulated"], on["hosts"], metric) for name, on in by_network.items()
    }
    return {name: row for name, row in rows.items() if row is not None}


def assert_alike(tool: Tool, run: RunSummary, networks: tuple[str, ...]) -> None:
    show(run)
    times, num_bytes = fastest_steps(run), train_ratios(run, "wire_bytes")
    for network in networks:
        assert_bytes(num_bytes[network], CounterKind.QUEUE)
    with judging(tool.records):
        for network in networks:
            ratio = times[network]["hosts"] / times[network]["emulated"]
            assert ratio == pytest.approx(1, abs=TIMES_WITHIN), network


def fastest_steps(run: RunSummary) -> Mapping[str, Mapping[str, float]]:
    """By network and platform: the median step of the fastest launch, in seconds.

    What else runs on a machine, and what its hypervisor takes, only makes a step longer: of the
    launches the fastest one tells most of the platform, and of its steps the middle one.
    """
    found: dict[str, dict[str, float]] = {}
    for summary in run.cases:
        if summary.case.workload.kind == "train":
            medians = [
                float(median(read_series(run.folder, record, STEP_SERIES)))
                for record in summary.good
            ]
            on = found.setdefault(summary.case.plain_network_name, {})
            on[str(summary.case.platform)] = min(medians)
    return found


def assert_bytes(row: CaseComparison, kind: CounterKind) -> None:
    """Alike, but for what a counter of this kind is known to miss."""
    low = (1 - UNDER_READ_RATIO.get(kind, 0.0)) * (1 - BYTES_WITHIN)
    assert low <= ratio_of(row) <= 1 + BYTES_WITHIN, row.b_label


def ratio_of(row: CaseComparison) -> float:
    assert row.comparison is not None, row.notes
    assert row.is_paired
    return row.comparison.ratio.value


def show(run: RunSummary) -> None:
    """With -s, all of it."""
    rows = [*between_platforms(run), *train_ratios(run, "wire_bytes").values()]
    for row in rows:
        assert row.comparison is not None
        ratio = row.comparison.ratio
        ends = "" if ratio.low is None else f" ({ratio.low:.4f} to {ratio.high:.4f})"
        print(  # noqa: T201  for docs/measurements.md
            f"{row.b_label}: {row.metric} {row.a.value:.5g} and {row.b.value:.5g}, "
            f"ratio {ratio.value:.4f}{ends}"
        )
    for network, on in fastest_steps(run).items():
        print(f"{network}: median step of the fastest launch, {on}")  # noqa: T201
