"""Is it known of what a run has left how old it is, whose it is, and whether it goes on?"""

from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from tests.platforms.kubernetes.fake_api import (
    CONFIG_MAPS,
    NAMESPACE,
    PODS,
    FakeApi,
    fake_api,
    listed,
    refused,
)

from broadgauge.manifests.names import JOB, MANAGER, OWNER, RUN
from broadgauge.platforms.kubernetes.job_place import this_owner
from broadgauge.running import cleaning
from broadgauge.running.cleaning import CleaningPlace, Leftover
from broadgauge.specs.kubernetes.settings import MANAGED_BY

JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning, "time", SimpleNamespace(time=NOW.timestamp))


def item(name: str, run: str = "demo", **more: Any) -> dict[str, Any]:
    labels = {MANAGED_BY: MANAGER, RUN: run, JOB: run}
    return {"metadata": {"name": name, "uid": f"uid of {name}", "labels": labels, **more}}


def pod(name: str, phase: str | None, run: str = "demo") -> dict[str, Any]:
    """Of the run's Job."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": run, "uid": "u", "controller": True}
    status = {} if phase is None else {"phase": phase}
    return item(name, run, ownerReferences=[owner]) | {"status": status}


def job(condition: str | None = None, run: str = "demo") -> dict[str, Any]:
    found = [] if condition is None else [{"type": condition, "status": "True"}]
    return item(run, run) | {"status": {"conditions": found}}


def found_in(fake: FakeApi) -> dict[str, Leftover]:
    runs = CleaningPlace(fake.api(), NAMESPACE).leftovers(None).runs
    return {each.run: each for each in runs}


@pytest.fixture
def fake() -> Iterator[FakeApi]:
    with fake_api() as started:
        yield started


@pytest.mark.parametrize(
    ("jobs", "pods", "may_run"),
    [
        ([], [], False),
        ([], [pod("a", "Succeeded"), pod("b", "Failed")], False),
        ([], [pod("a", "Succeeded"), pod("b", "Running")], True),
        ([], [pod("a", "Pending")], True),
        ([], [pod("a", "Unknown")], True),
        ([], [pod("a", None)], True),
        ([job("Complete")], [], False),
        ([job("Failed")], [pod("a", "Failed")], False),
        ([job("Complete")], [pod("a", "Running")], True),
        ([job("Suspended")], [], True),
        ([job()], [pod("a", "Failed")], True),
    ],
)
def test_a_run_may_go_on_where_a_pod_does_or_may_come(
    fake: FakeApi, jobs: list[dict[str, Any]], pods: list[dict[str, Any]], may_run: bool
) -> None:
    fake.script("GET", CONFIG_MAPS, listed(item("demo-orders")))
    fake.script("GET", JOBS, listed(*jobs))
    fake.script("GET", PODS, listed(*pods))
    assert found_in(fake)["demo"].may_run is may_run


@pytest.mark.parametrize("path", [JOBS, PODS])
def test_a_run_may_go_on_where_that_can_not_be_read(fake: FakeApi, path: str) -> None:
    """Its names were, a moment before."""
    fake.script("GET", JOBS, listed(job("Complete")))
    fake.script("GET", PODS, listed(pod("a", "Failed")))
    assert not found_in(fake)["demo"].may_run
    there = listed(job("Complete")) if path == JOBS else listed(pod("a", "Failed"))
    fake.script("GET", path, there, refused(503, "Unavailable"))
    assert found_in(fake)["demo"].may_run


def test_runs_are_told_apart_and_a_pod_without_our_job_is_none_of_theirs(fake: FakeApi) -> None:
    forged = item("forged") | {"status": {"phase": "Running"}}
    fake.script("GET", JOBS, listed(job("Complete"), job(run="other")))
    fake.script("GET", PODS, listed(pod("a", "Failed"), pod("b", "Running", "other"), forged))
    found = found_in(fake)
    assert (found["demo"].pods, found["demo"].may_run) == ((("Failed", 1),), False)
    assert (found["other"].pods, found["other"].may_run) == ((("Running", 1),), True)
    assert found["demo"].objects == ("Job demo", "Pod a")


@pytest.mark.parametrize(
    ("owners", "is_mine", "words"),
    [
        ([this_owner()] * 2, True, f"of {this_owner()}"),
        ([this_owner(), None], True, f"of {this_owner()}"),  # operators copy no annotation
        ([this_owner(), "ana@laptop"], False, "ana@laptop"),
        (["ana@laptop"], False, "of ana@laptop"),
        ([None], False, "of nobody knows whom"),
    ],
)
def test_what_is_mine_is_nobody_elses_by_any_of_it(
    fake: FakeApi, owners: list[str | None], is_mine: bool, words: str
) -> None:
    notes = [{} if each is None else {"annotations": {OWNER: each}} for each in owners]
    maps = (item(f"map-{number}", **note) for number, note in enumerate(notes))
    fake.script("GET", CONFIG_MAPS, listed(*maps))
    found = found_in(fake)["demo"]
    assert found.is_mine is is_mine
    assert words in found.words


@pytest.mark.parametrize(
    ("created", "words"),
    [
        ("2026-03-01T11:59:00Z", "new, "),
        ("2026-03-01T11:50:00Z", "10 min old, "),
        ("2026-03-01T09:00:00Z", "3 h old, "),
        ("2026-02-27T12:00:00Z", "2 d old, "),
        ("yesterday", "of unknown age, "),
        (None, "of unknown age, "),
    ],
)
def test_its_age_is_that_of_the_oldest(fake: FakeApi, created: str | None, words: str) -> None:
    newest = item("new", creationTimestamp="2026-03-01T11:59:30Z")
    oldest = item("old", creationTimestamp=created)
    is_known = created is not None and created != "yesterday"
    fake.script("GET", CONFIG_MAPS, listed(oldest, *([newest] if is_known else [])))
    assert found_in(fake)["demo"].words.startswith(words)
