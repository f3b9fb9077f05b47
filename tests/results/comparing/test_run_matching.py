"""Is each case compared with the right one of another run, and is said what was changed in it?"""

from pathlib import Path

import pytest
from tests.results.comparing.test_compare_cases import FAST, REFERENCE, SLOW, TRAIN, a_case, a_run
from tests.results.test_history import a_run as a_stored_run

from broadgauge.cli.main import main
from broadgauge.results.comparing.compare_cases import compare_runs
from broadgauge.results.comparing.run_matching import case_differences, match_cases
from broadgauge.specs.networks.network import Network
from broadgauge.specs.workloads.workload import CommandMetric, CommandWorkload

BIGGER = TRAIN.model_copy(update={"batch_per_rank": 2 * TRAIN.batch_per_rank})


def test_a_changed_argument_is_compared_and_said() -> None:
    old, new = (
        CommandWorkload(
            kind="command",
            name="mine",
            command=("python", "train.py", "--lr", rate),
            metrics=(CommandMetric(name="steps_per_s", regex=r"(\d+)"),),
        )
        for rate in ("0.1", "0.2")
    )
    a = a_run([(a_case(SLOW, old), [2.0, 2.1])], metric="steps_per_s")
    b = a_run([(a_case(SLOW, new), [3.0, 3.1])], metric="steps_per_s")
    comparison = compare_runs(a, b)
    (row,) = comparison.rows
    assert row.comparison is not None
    assert row.comparison.ratio.value == pytest.approx(1.49, abs=0.01)
    assert comparison.setting_differences == {
        "mine 2x1 slow": (
            "workload.command: python train.py --lr 0.1 in A, python train.py --lr 0.2 in B",
        )
    }
    assert comparison.only_in_a == comparison.only_in_b == ()


def test_the_same_settings_come_before_the_same_name() -> None:
    """In B the names of two networks are swapped: what was measured decides."""
    swapped = [SLOW.model_copy(update={"name": "fast"}), FAST.model_copy(update={"name": "slow"})]
    a = a_run([(a_case(SLOW), [1.0]), (a_case(FAST), [2.0])])
    b = a_run([(a_case(network), [1.0]) for network in swapped])
    pairs = [(pair.a.case.label, pair.b.case.label) for pair in match_cases(a, b)]
    assert pairs == [("train 2x1 slow", "train 2x1 fast"), ("train 2x1 fast", "train 2x1 slow")]
    assert not any(pair.differences for pair in match_cases(a, b))


def test_a_name_that_stands_for_two_cases_decides_nothing() -> None:
    a = a_run([(a_case(SLOW, BIGGER), [1.0]), (a_case(SLOW, TRAIN), [2.0])])
    b = a_run([(a_case(SLOW, TRAIN.model_copy(update={"steps": 99})), [1.0])])
    assert match_cases(a, b) == ()
    assert len(compare_runs(a, b).only_in_a) == 2


def test_each_setting_that_measures_something_else_is_named() -> None:
    link = Network(name="slow", rate_gbps=0.4, mtu_bytes=9000, description="another cable")
    found = list(case_differences(a_case(SLOW), a_case(link, BIGGER)))
    assert len(found) == 3
    for words in ("workload.batch_per_rank: ", "network.rate_gbps: 0.2 in A, 0.4 in B"):
        assert any(each.startswith(words) for each in found)
    assert not any("description" in each for each in found)
    changed = a_case(SLOW).model_copy(update={"environment": {"NCCL_ALGO": "Ring"}})
    assert list(case_differences(a_case(SLOW), changed)) == [
        "environment.NCCL_ALGO: nothing in A, Ring in B"
    ]


def test_names_alone_are_no_difference() -> None:
    assert list(case_differences(a_case(SLOW), a_case(SLOW.model_copy(update={"name": "x"})))) == []


def test_two_runs_with_nothing_in_common_are_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = a_stored_run(tmp_path, 0)
    b = a_stored_run(tmp_path, 1, cluster={"shapes": ["1x2"]})
    assert main(["compare", str(a), str(b)]) == 2
    out, err = capsys.readouterr()
    assert "Only in A" in out
    assert "no case in common, not even by name" in err


def test_what_was_changed_is_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = a_stored_run(tmp_path, 0)
    b = a_stored_run(tmp_path, 1, workloads=[{"kind": "train", "steps": 4, "batch_per_rank": 7}])
    assert main(["compare", str(a), str(b)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("workload.batch_per_rank:") == 1
    assert "Changed in train 1x1 one node:" in printed


def test_the_fastest_network_of_each_is_no_match_by_chance() -> None:
    a, b = a_run([(a_case(FAST), [1.0])]), a_run([(a_case(REFERENCE), [1.0])])
    assert match_cases(a, b) == ()
