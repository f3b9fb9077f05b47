"""Does a Job beside the run wait for its queue, and say what it waits for?"""

from pathlib import Path
from typing import Any

import pytest
from tests.manifests.requests import experiment_of, request_of
from tests.platforms.kubernetes.fake_api import (
    CONFIG_MAPS,
    NAMESPACE,
    PODS,
    Answer,
    Asked,
    FakeApi,
    FakeTime,
    listed,
    pod,
)
from tests.platforms.kubernetes.test_pod_warnings import EVENTS, event

from broadgauge.manifests.prepare import prepare_name
from broadgauge.manifests.request import JobRequest
from broadgauge.platforms.kubernetes import kept_results, pod_warnings, preparing
from broadgauge.platforms.kubernetes.job_place import JobPlace
from broadgauge.platforms.kubernetes.json_shapes import JsonMap
from broadgauge.platforms.kubernetes.kept_results import POD_LIMIT_S, KeptResults
from broadgauge.platforms.kubernetes.preparing import Preparing
from broadgauge.specs.errors import PlatformError

JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
SECONDS_QUEUED = 50
LIMIT_S = 10.0


def request_in_queue() -> JobRequest:
    volumes = [{"name": "kept", "mount": "/kept", "claim": "c"}]
    prepare = {"volume": "kept", "model": "me/tiny"}
    settings: dict[str, Any] = {"volumes": volumes, "prepare": prepare, "results": "kept"}
    return request_of(experiment_of(image="i", queue={"kueue": "team"}, **settings))


def made(asked: Asked) -> Answer:
    return Answer(status=201, body=asked.body)


def job(name: str, *, suspended: bool, **status: Any) -> Answer:
    metadata = {"name": name, "uid": "u", "labels": {"kueue.x-k8s.io/queue-name": "team"}}
    return Answer(body={"metadata": metadata, "spec": {"suspend": suspended}, "status": status})


def preparing_of(fake: FakeApi, folder: Path, said: list[str]) -> Preparing:
    request = request_in_queue()
    fake.script("POST", CONFIG_MAPS, made)
    fake.script("POST", JOBS, made)
    fake.script("GET", PODS, listed())
    return Preparing(
        api=fake.api(),
        namespace=NAMESPACE,
        request=request,
        log_folder=folder,
        say=said.append,
        show=said.append,
        owner={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p", "uid": "1"}},
    )


def test_queue_is_waited_for_beyond_the_limit(
    fake: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    asked = preparing_of(fake, tmp_path, said)
    name = prepare_name(asked.request)
    queued = job(name, suspended=True)
    done = job(name, suspended=False, conditions=[{"type": "Complete", "status": "True"}])
    fake.script("GET", f"{JOBS}/{name}", *[queued] * SECONDS_QUEUED, done)
    monkeypatch.setattr(preparing, "time", FakeTime())
    asked.run(LIMIT_S)
    assert said == [
        "preparing its volume: queued in team",
        f"Job {name} has prepared its volume",
    ]


def test_who_was_admitted_and_has_no_pod_is_given_up(
    fake: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = preparing_of(fake, tmp_path, [])
    name = prepare_name(asked.request)
    fake.script("GET", f"{JOBS}/{name}", job(name, suspended=False))
    monkeypatch.setattr(preparing, "time", FakeTime())
    with pytest.raises(PlatformError, match=f"after {LIMIT_S:g} s: preparing its volume: waiting"):
        asked.run(LIMIT_S)


def test_a_pod_that_may_not_be_made_is_said_in_its_controllers_words(
    fake: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = preparing_of(fake, tmp_path, [])
    name = prepare_name(asked.request)
    fake.script("GET", f"{JOBS}/{name}", job(name, suspended=False))
    fake.script("GET", EVENTS, listed(event("FailedCreate", "exceeded quota: small")))
    time = FakeTime()
    for module in (preparing, pod_warnings):
        monkeypatch.setattr(module, "time", time)
    with pytest.raises(PlatformError, match="1 pod can't be made: exceeded quota: small"):
        asked.run(LIMIT_S)
    selectors = {each.query.get("fieldSelector") for each in fake.asked if each.path == EVENTS}
    assert selectors == {"involvedObject.uid=u,type=Warning"}


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("broadgauge: /kept: Permission denied: … `kubernetes.fs_group` gives it …", False),
        ("broadgauge: me/tiny: 404 Not Found", True),
    ],
)
def test_hint_is_given_where_the_last_lines_have_none(
    fake: FakeApi, tmp_path: Path, line: str, hint: bool
) -> None:
    asked = preparing_of(fake, tmp_path, [])
    name = prepare_name(asked.request)
    failed = {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "2"}
    fake.script("GET", f"{JOBS}/{name}", job(name, suspended=False, conditions=[failed]))
    fake.script("GET", PODS, listed(pod_of(name, "Failed")))
    fake.script("GET", f"{PODS}/p/log", Answer(body=f"{line}\n".encode()))
    with pytest.raises(PlatformError) as caught:
        asked.run(LIMIT_S)
    assert line in caught.value.message
    assert ("`kubernetes.prepare`" in (caught.value.hint or "")) is hint


def pod_of(name: str, phase: str) -> JsonMap:
    found = pod("p", phase=phase)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "u", "controller": True}
    found["metadata"] |= {"ownerReferences": [owner]}
    return found


def test_reader_of_results_waits_for_its_queue_too(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    name, seconds_queued = "demo-results-0", int(2 * POD_LIMIT_S)
    place = JobPlace(
        context=None, namespace=NAMESPACE, run="demo-1", name="demo", kind="job", number=0
    )
    kept = KeptResults(
        api=fake.api(), place=place, volume="kept", make_request=request_in_queue, say=said.append
    )
    queued = job(name, suspended=True)
    fake.script("GET", f"{JOBS}/{name}", queued)
    fake.script("GET", PODS, *[listed()] * seconds_queued, listed(pod_of(name, "Running")))
    monkeypatch.setattr(kept_results, "time", FakeTime())
    assert kept._wait_for_pod(queued.body) == "p"
    assert said == [f"Job {name}, which reads kept, is queued in team"]
