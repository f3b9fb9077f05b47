"""Do published figures stand beside the right ones of ours, and relative to the first of each?"""

import pytest
from tests.results import simulated_experiments as made

from broadgauge.results.comparing.published import PublishedRow, published_rows
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.hypothesis import PublishedFigure

REFERENCE = made.network_case("reference")
SLOW = made.network_case("slow")
WIGGLE = (1.0, 1.01, 0.99, 1.005, 0.995)


def a_figure(**more: object) -> PublishedFigure:
    facts = {
        "label": "theirs",
        "metric": "step_time_s",
        "value": 2.0,
        "cases": {"network": "slow"},
        "source": "An article, table 1",
    }
    return PublishedFigure.model_validate(facts | more)


def rows_of(*figures: PublishedFigure, run: RunSummary | None = None) -> tuple[PublishedRow, ...]:
    run = run or made.run_of([REFERENCE, SLOW], [WIGGLE, [3 * w for w in WIGGLE]])
    plan = run.plan.model_copy(update={"published": figures})
    return published_rows(
        summarise_run(
            folder=run.folder,
            plan=plan,
            records=run.records,
            experiment_yaml="",
            environments={},
        )
    )


def test_ours_stands_beside_theirs_with_its_interval() -> None:
    (row,) = rows_of(a_figure())
    assert row.summary is not None
    assert row.summary.case == SLOW
    assert row.ours is not None
    assert row.ours.value == pytest.approx(3.0)
    assert row.ours_over_theirs is not None
    assert row.ours_over_theirs.value == pytest.approx(1.5)
    assert row.ours_over_theirs.low == pytest.approx(row.ours.low / 2)
    assert (row.reason, row.first) == ("", None)


def test_rows_of_one_metric_are_relative_to_the_first() -> None:
    first = a_figure(label="fast", value=10.0, cases={"network": "reference"})
    other = a_figure(label="other metric", metric="loss", value=10.0)
    ratio = a_figure(label="a ratio", value=3.0, over={"network": "reference"})
    rows = rows_of(ratio, first, a_figure(value=20.0), other)
    assert [row.first for row in rows] == [None, None, "fast", None]
    assert rows[2].theirs_over_first_ratio == 2.0
    assert rows[2].ours_over_first is not None
    assert rows[2].ours_over_first.value == pytest.approx(3.0)


def test_figures_of_another_workload_have_a_first_of_their_own() -> None:
    first = a_figure(label="fast", cases={"network": "reference"})
    other = a_figure(label="other", cases={"workload": "other"})
    second = a_figure(label="second", cases={"workload": "other", "network": "x"})
    rows = rows_of(first, other, second, a_figure())
    assert [row.first for row in rows] == [None, None, "other", "fast"]


def test_a_published_ratio_is_held_against_pairs() -> None:
    (row,) = rows_of(a_figure(value=6.0, over={"network": "reference"}))
    assert row.ours is not None
    assert row.ours.value == pytest.approx(3.0)
    assert row.ours_over_theirs is not None
    assert row.ours_over_theirs.value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"cases": {"network": "infiniband"}}, "no case of this run is `infiniband`"),
        ({"cases": {"workload": "train"}}, "2 cases are `train`: train 2x1 reference, train 2x1"),
        ({"metric": "mfu_ratio"}, "train 2x1 slow: not measured"),
        ({"over": {"network": "none"}}, "no case of this run is `over: none`"),
    ],
)
def test_what_has_no_figure_says_why(more: dict[str, object], reason: str) -> None:
    (row,) = rows_of(a_figure(**more))
    assert row.ours is None
    assert row.ours_over_theirs is None
    assert row.reason.startswith(reason)


def test_a_negative_figure_has_no_ratio() -> None:
    (row,) = rows_of(a_figure(value=-1.0))
    assert row.ours is not None
    assert row.ours_over_theirs is None


def test_what_was_not_interleaved_is_not_put_in_relation() -> None:
    run = made.run_of([REFERENCE, SLOW], [WIGGLE, WIGGLE])
    moved = tuple(
        r.model_copy(update={"block": r.block + 10 * (r.network == "slow")}) for r in run.records
    )
    apart = summarise_run(
        folder=run.folder, plan=run.plan, records=moved, experiment_yaml="", environments={}
    )
    first = a_figure(label="fast", cases={"network": "reference"})
    rows = rows_of(first, a_figure(), a_figure(over={"network": "reference"}), run=apart)
    assert rows[1].theirs_over_first_ratio == 1.0
    assert rows[1].ours_over_first is None
    assert "not measured in common blocks" in rows[2].reason
