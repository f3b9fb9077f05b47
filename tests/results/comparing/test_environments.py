"""Does a comparison name what differs between clusters, and what nobody knows of them?"""

import pytest
from tests.results.comparing.test_compare_cases import SLOW, a_case, a_run, an_environment

from broadgauge.results.comparing.compare_cases import compare_runs
from broadgauge.results.model import RunComparison
from broadgauge.specs.records.record import Environment

KNOWN = {"kubernetes": "v1.34.4", "zones": "us-east-3 × 2"}
DIFFER = "The environments differ: a ratio may be theirs and not the change you made."
UNKNOWN = "Unknown in both runs, so perhaps different: "


def in_pods(**cluster: str | None) -> Environment:
    return an_environment(platform="kubernetes", cluster={**KNOWN, **cluster})


def compared(a: list[Environment], b: list[Environment]) -> RunComparison:
    """Runs with these environments."""
    runs = (
        a_run([(a_case(SLOW), [1.0])], environments={str(n): each for n, each in enumerate(of)})
        for of in (a, b)
    )
    return compare_runs(*runs)


def test_facts_that_differ_are_named_one_by_one() -> None:
    comparison = compared([in_pods()], [in_pods(kubernetes="v1.35.0")])
    assert comparison.environment_differences == ("cluster kubernetes: v1.34.4 in A, v1.35.0 in B",)
    assert DIFFER in comparison.notes
    assert compared([in_pods()], [in_pods()]).environment_differences == ()


def test_all_that_a_run_saw_is_named() -> None:
    both = [in_pods(), in_pods(zones="us-east-1 × 2")]
    assert compared(both, [in_pods()]).environment_differences == (
        "cluster zones: us-east-1 × 2 and us-east-3 × 2 in A, us-east-3 × 2 in B",
    )


def test_what_one_run_knows_and_the_other_does_not_differs() -> None:
    told = {"zones": None, "openshift": "4.17.12", "kueue": None}
    comparison = compared([in_pods(kueue="v0.14.1")], [in_pods(**told)])
    assert comparison.environment_differences == (
        "cluster zones: us-east-3 × 2 in A, unknown in B",
        "cluster kueue: v0.14.1 in A, unknown in B",
        "cluster openshift: none in A, 4.17.12 in B",
    )
    assert not any(note.startswith(UNKNOWN) for note in comparison.notes)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([in_pods(zones=None)], [in_pods(zones=None)]),
        ([in_pods(zones=None), in_pods()], [in_pods(), in_pods(zones=None)]),
    ],
    ids=("always", "at times"),
)
def test_two_unknowns_are_no_difference_and_not_equal(
    a: list[Environment], b: list[Environment]
) -> None:
    comparison = compared(a, b)
    assert comparison.environment_differences == ()
    assert DIFFER not in comparison.notes
    assert f"{UNKNOWN}cluster zones." in comparison.notes


@pytest.mark.parametrize(
    ("platform", "words"), [("emulated", "none"), ("imported", "unknown")], ids=str
)
def test_a_cluster_beside_none_is_told_in_one_line(platform: str, words: str) -> None:
    elsewhere = an_environment(platform=platform)
    comparison = compared([elsewhere], [in_pods(zones=None)])
    assert comparison.environment_differences == (
        f"platform: {platform} in A, kubernetes in B",
        f"cluster: {words} in A, kubernetes v1.34.4; zones unknown in B",
    )
    assert compared([elsewhere], [elsewhere]).environment_differences == ()


def test_a_run_on_two_platforms_is_compared_by_its_cluster() -> None:
    emulated = an_environment()
    a, b = [emulated, in_pods()], [emulated, in_pods(kubernetes="v1.35.0")]
    assert compared(a, b).environment_differences == (
        "cluster kubernetes: v1.34.4 in A, v1.35.0 in B",
    )


def test_a_run_that_tells_nothing_differs_in_nothing() -> None:
    assert compared([], [in_pods(zones=None)]).environment_differences == ()
