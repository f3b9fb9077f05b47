"""Are a command's steps told from its start, and one rank's lines from another's?"""

import pytest
from tests.merging.outcomes import make_case

from broadgauge.merging.command import merge_command
from broadgauge.merging.rank_blocks import read_blocks
from broadgauge.messages.codec import encode
from broadgauge.messages.counters import NodeCounters
from broadgauge.messages.rank import CommandSamples
from broadgauge.specs.launching import Mark
from broadgauge.specs.records.record import ErrorKind
from broadgauge.specs.workloads.workload import CommandMetric, CommandWorkload

METRIC = CommandMetric(name="step_time_s", regex="([0-9.]+)")
COMMAND = CommandWorkload(kind="command", command=("train.py",), metrics=(METRIC,))
CASE = make_case(COMMAND, nodes=2, ranks_per_node=1)


def mark(label: str, time_s: float, cpu_s: float, sent_bytes: int) -> Mark:
    """Two nodes alike, at these readings."""
    node = NodeCounters(
        tx_bytes=sent_bytes,
        rx_bytes=sent_bytes,
        drops_count=0,
        retransmits_count=0,
        cores_count=2,
        cpu_user_s=cpu_s,
        cpu_system_s=0.0,
        cpu_softirq_s=0.0,
    )
    return Mark(label=label, time_s=time_s, nodes=(node, node))


MARKS = (
    mark("command:begin", 100.0, 0.0, 0),
    mark("command:steps/2", 120.0, 18.0, 5_000_000),
    mark("command:steps/7", 125.0, 19.0, 100_000_000),
    mark("command:steps/22", 140.0, 22.0, 505_000_000),
    mark("command:end", 150.0, 29.0, 506_000_000),
)


def said(*values: float, rank: int = 0, exit_code: int = 0, **about: object) -> CommandSamples:
    samples = {"step_time_s": values}
    ranks = {"step_time_s": rank} if values else {}
    return CommandSamples(trial_id="t", samples=samples, exit_code=exit_code, ranks=ranks, **about)  # type: ignore[arg-type]


def merged(*nodes: CommandSamples, marks: tuple[Mark, ...] = MARKS):
    return merge_command(CASE, COMMAND, read_blocks([[encode(node)] for node in nodes]), marks)


def test_the_start_is_no_part_of_what_the_network_costs_the_cores() -> None:
    metrics = merged(said(1.0), said()).metrics
    assert metrics["cpu_s_per_gbyte"] == pytest.approx(2 * (22 - 18) / (2 * 0.5))
    assert metrics["start_time_s"] == pytest.approx(20)
    assert metrics["start_cpu_s"] == pytest.approx(2 * 18)


def test_bytes_are_from_line_to_line_and_the_link_is_as_full_as_over_all_steps() -> None:
    metrics = merged(said(1.0), said()).metrics
    assert metrics["wire_bytes"] == pytest.approx(500e6 / 20)
    assert metrics["link_rate_gbps"] == pytest.approx(500e6 * 8 / 20 / 1e9)
    line_gbps = CASE.link.node_rate_gbps  # type: ignore[union-attr]
    share = metrics["line_share_ratio"]
    assert share == (line_gbps and pytest.approx(0.2 / line_gbps))


@pytest.mark.parametrize("readings", [MARKS[1:2], MARKS[1:3]])
def test_steps_that_are_too_few_give_no_figure_that_holds_the_start(
    readings: tuple[Mark, ...],
) -> None:
    found = merged(said(1.0), said(), marks=(MARKS[0], *readings, MARKS[-1]))
    for name in ("cpu_s_per_gbyte", "wire_bytes", "link_rate_gbps", "start_time_s"):
        assert found.metrics[name] is None
        assert found.missing[name]
    assert found.nodes[0].elapsed_s == pytest.approx(50), "the nodes' use is of the whole then"


def test_the_first_node_whose_rank_printed_the_metric_counts() -> None:
    found = merged(said(), said(3.0, 5.0, rank=1))
    assert found.metrics["step_time_s"] == pytest.approx(4)
    assert found.metric_ranks == {"step_time_s": 1}
    both = merged(said(1.0), said(3.0, rank=1))
    assert (both.metrics["step_time_s"], both.metric_ranks) == (1.0, {"step_time_s": 0})


def test_a_metric_that_no_node_printed_is_refused_where_the_command_ended_well() -> None:
    missing = {"step_time_s": "metric `step_time_s`: no number"}
    found = merged(said(missing=missing, last_lines=("hello",)), said())
    assert found.error is not None
    assert found.error.kind is ErrorKind.REFUSED
    assert found.error.message == "metric `step_time_s`: no number; its last lines:\nhello"
    silent = merged(said(missing=missing), said())
    assert silent.error is not None
    assert silent.error.message == "metric `step_time_s`: no number; it printed no line"
    assert merged(said(exit_code=1), said()).error is None
    assert merged().error is None


def test_readings_that_came_at_one_time_say_nothing_of_the_steps_between() -> None:
    """They waited for something: no byte would be counted of twenty steps."""
    late = (
        mark("command:begin", 100.0, 10.0, 0),
        mark("command:steps/2", 150.0, 22.0, 505_000_000),
        mark("command:steps/22", 150.01, 22.0, 505_000_000),
        mark("command:end", 150.1, 22.0, 505_000_000),
    )
    found = merged(said(1.0), said(), marks=late)
    assert found.metrics["wire_bytes"] is None
    assert "half a second" in found.missing["wire_bytes"]
