"""Does every comparison inside a run leave out what a resume tore apart, and say so?

A block was ended between its cases and resumed an hour later, on what seems a far faster machine.
"""

import pytest
from tests.results import simulated_experiments as made

from broadgauge.results.comparing.compare_cases import compare_cases
from broadgauge.results.comparing.hypotheses import HypothesisVerdict, evaluate
from broadgauge.results.comparing.published import published_rows
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.hypothesis import Hypothesis, PublishedFigure

SMALL, LARGE = made.network_case("none", nodes=1), made.network_case("reference")
SLOW = made.network_case("slow")
WIGGLE = (1.0, 1.01, 0.99, 1.005, 0.995, 1.0)
NOTE = "1 of 6 blocks left out: the run was interrupted in between"
FIGURE = PublishedFigure.model_validate(
    {
        "label": "theirs",
        "metric": "tokens_per_s",
        "value": 2.0,
        "cases": {"network": "slow"},
        "over": {"network": "reference"},
        "source": "An article, table 1",
    }
)
CLAIM = Hypothesis.model_validate(
    {
        "name": "h",
        "statement": "half as fast",
        "cases": {"network": "slow"},
        "over": {"network": "reference"},
        "metric": "tokens_per_s",
        "at_least": 0.48,
        "at_most": 0.52,
    }
)


def a_run(torn_blocks: tuple[int, ...] = (0,), pause_s: float = 3600.0) -> RunSummary:
    """Each trial takes 10 s; what ran after a pause in its block is 128 times as fast, or more."""
    truths = (1.0, 2.0, 1.0)
    run = made.run_of(
        [SMALL, LARGE, SLOW],
        [[truth * value for value in WIGGLE] for truth in truths],
        metric="tokens_per_s",
    )
    records, now_s = [], 1e9
    for record in sorted(run.records, key=lambda record: (record.block, record.position)):
        is_late = record.block in torn_blocks and record.position > 0
        if is_late and record.position == 1:
            now_s += pause_s
        value = record.metrics["tokens_per_s"]
        assert value is not None
        update = {
            "started_unix_s": now_s,
            "ended_unix_s": now_s + 10,
            "metrics": {"tokens_per_s": value * (1 + record.position) ** (7 if is_late else 0)},
        }
        records.append(record.model_copy(update=update))
        now_s += 11
    plan = run.plan.model_copy(update={"published": (FIGURE,)})
    return summarise_run(
        folder=run.folder, plan=plan, records=records, experiment_yaml="", environments={}
    )


def test_a_short_pause_tears_nothing() -> None:
    (scaling,) = (s.scaling for s in a_run((), 0.0).cases if s.case == LARGE)
    assert scaling is not None
    assert scaling.notes == ()
    (scaling,) = (s.scaling for s in a_run((3,), 200.0).cases if s.case == LARGE)
    assert scaling is not None
    assert scaling.efficiency.launches == 6


def test_scaling_leaves_a_torn_block_out() -> None:
    (scaling,) = (s.scaling for s in a_run().cases if s.case == LARGE)
    assert scaling is not None
    assert scaling.speedup.value == pytest.approx(2.0)
    assert scaling.speedup.launches == 5
    assert NOTE in scaling.notes
    assert NOTE in scaling.speedup.method


def only_between_the_networks() -> RunSummary:
    """This block runs slow, reference, one node: the pause is between the first two."""
    return a_run((1,))


def test_hypotheses_leave_a_torn_block_out() -> None:
    found = evaluate(CLAIM, only_between_the_networks())
    assert found.verdict is HypothesisVerdict.SUPPORTED
    assert NOTE in found.caveats
    all_torn = evaluate(CLAIM, a_run(tuple(range(6))))
    assert all_torn.verdict is HypothesisVerdict.CANNOT_TELL


def test_published_ratios_leave_a_torn_block_out() -> None:
    (row,) = published_rows(only_between_the_networks())
    assert row.ours is not None
    assert row.ours.value == pytest.approx(0.5)
    assert NOTE in row.ours.method


def test_two_networks_leave_a_torn_block_out() -> None:
    run = only_between_the_networks()
    large, slow = (next(s for s in run.cases if s.case == case) for case in (LARGE, SLOW))
    row = compare_cases(large, slow, "tokens_per_s")
    assert row is not None
    assert row.comparison is not None
    assert row.comparison.ratio.value == pytest.approx(0.5)
    assert NOTE in row.notes
