"""Is a selector worded as its author wrote it?"""

from broadgauge.specs.selector import CaseSelector, SkippedCases


def test_a_label_names_each_axis_that_is_given() -> None:
    assert CaseSelector(workload="train", network=("slow", "fast")).label == "train, slow or fast"
    assert CaseSelector().label == "every case"


def test_the_reason_of_a_rule_of_omission_is_no_axis() -> None:
    assert SkippedCases(network="slow", reason="too slow").label == "slow"
    assert SkippedCases(nodes=(2, 4)).label == "2 or 4"
