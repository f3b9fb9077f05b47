"""Does `cleanup` say where it could not look, and does it mean the run that is named?"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.making import a_plan, make_folder
from tests.platforms.kubernetes.fake_api import (
    CONFIG_MAPS,
    NAMESPACE,
    PODS,
    SECRETS,
    Answer,
    Asked,
    FakeApi,
    fake_api,
    listed,
    refused,
)

from broadgauge.cli.main import main
from broadgauge.manifests.names import JOB, MANAGER, OWNER, RUN
from broadgauge.platforms.kubernetes import extra
from broadgauge.platforms.kubernetes.job_place import STATE_FILE, JobPlace, place_file, this_owner
from broadgauge.specs.errors import ExitCode
from broadgauge.specs.kubernetes.settings import MANAGED_BY

PYTORCH_JOBS = f"/apis/kubeflow.org/v1/namespaces/{NAMESPACE}/pytorchjobs"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """A user's own, with nothing in it."""
    with fake_api() as fake:
        context = {"cluster": "k", "user": "u", "namespace": NAMESPACE}
        found = {
            "current-context": "c",
            "contexts": [{"name": name, "context": context} for name in ("c", "other")],
            "clusters": [{"name": "k", "cluster": {"server": fake.url}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        (tmp_path / "config").write_text(json.dumps(found))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        monkeypatch.chdir(tmp_path)
        yield fake


def pod_of(run: str) -> dict[str, Any]:
    """Of its Job."""
    labels = {MANAGED_BY: MANAGER, RUN: run, JOB: run}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": run, "uid": "u", "controller": True}
    found = {"name": f"{run}-0", "uid": run, "labels": labels, "ownerReferences": [owner]}
    return {"metadata": found}


def place_of(folder: Path, run: str, namespace: str = NAMESPACE, context: str = "c") -> None:
    place_file(folder / "logs").write(
        JobPlace(context=context, namespace=namespace, run=run, name=run, kind="job", number=0)
    )


def test_nothing_is_left_where_all_was_looked_at(
    cluster: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.script("GET", PODS, listed())
    assert main(["cleanup"]) == ExitCode.OK
    assert capsys.readouterr().err == f"nothing of ours is left in namespace {NAMESPACE}\n"


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        (PODS, refused(403, "Forbidden"), "pods in namespace training: you may not list them"),
        (
            f"{SECRETS}/demo-secrets",
            refused(403, "Forbidden"),
            "secrets in namespace training: you may not get them",
        ),
        (
            CONFIG_MAPS,
            refused(503, "Unavailable", "down"),
            "configmaps in namespace training: down",
        ),
        (CONFIG_MAPS, Answer(body=b"<html>"), "configmaps in namespace training: no JSON"),
        (CONFIG_MAPS, Answer(body={"items": [{}]}), "configmaps in namespace training: an object"),
    ],
)
def test_a_kind_that_could_not_be_listed_is_said_and_no_success(
    cluster: FakeApi, path: str, answer: Answer, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.script("GET", PODS, listed(pod_of("demo")))  # whose job may have a Secret
    cluster.script("GET", path, answer)
    assert main(["cleanup"]) == ExitCode.PLATFORM_REFUSED
    told = capsys.readouterr().err
    assert words in told
    assert "nothing of ours is left" not in told


@pytest.mark.parametrize("is_served", [True, False])
def test_a_kind_that_is_not_there_is_not_missed_by_who_may_not_list_it(
    cluster: FakeApi, is_served: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.script("GET", PYTORCH_JOBS, refused(403, "Forbidden"))
    if is_served:
        found = {"resources": [{"name": "pytorchjobs"}]}
        cluster.script("GET", "/apis/kubeflow.org/v1", Answer(body=found))
    expected = ExitCode.PLATFORM_REFUSED if is_served else ExitCode.OK
    assert main(["cleanup"]) == expected
    assert ("pytorchjobs.kubeflow.org" in capsys.readouterr().err) is is_served


def test_a_run_whose_name_begins_as_last_does_is_that_run(
    cluster: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.script("GET", PODS, listed(pod_of("last-mile-1a2b3c4d"), pod_of("other")))
    assert main(["cleanup", "last-mile-1a2b3c4d", "--dry-run"]) == ExitCode.OK
    out = capsys.readouterr().out
    listed_line, told, *_ = out.splitlines()
    assert listed_line.startswith("last-mile-1a2b3c4d (")
    assert listed_line.endswith("): Pod last-mile-1a2b3c4d-0")
    assert told == f"not deleted, with --dry-run: run last-mile-1a2b3c4d in namespace {NAMESPACE}"


def test_a_run_that_nobody_knows_is_said_with_those_that_are_there(
    cluster: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.script("GET", PODS, listed(pod_of("demo-1a2b3c4d")))
    assert main(["cleanup", "demo-1a2b3c4e"]) == ExitCode.BAD_INPUT
    told = capsys.readouterr().err
    assert "no run `demo-1a2b3c4e` has left anything in namespace training" in told
    assert "demo-1a2b3c4d" in told
    assert {each.method for each in cluster.asked} == {"GET"}


def test_a_run_that_nobody_knows_is_no_success_where_nothing_is_left(
    cluster: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder's name that was mistyped is told from one of which all is gone by now."""
    made = make_folder(tmp_path / "runs", a_plan())
    made.close()
    place_of(made.path, "demo-1a2b3c")
    cluster.script("GET", PODS, listed())
    assert main(["cleanup", f"{made.path.name}9"]) == ExitCode.BAD_INPUT
    assert f"did you mean `{made.path.name}`?" in capsys.readouterr().err
    assert main(["cleanup", "unlike"]) == ExitCode.BAD_INPUT
    assert f"no run `unlike` has left anything in namespace {NAMESPACE}" in capsys.readouterr().err
    for name in (made.path.name, "demo-1a2b3c"):
        assert main(["cleanup", name]) == ExitCode.OK
        told = capsys.readouterr().err
        assert told == f"nothing of run demo-1a2b3c is left in namespace {NAMESPACE}\n"


@pytest.mark.parametrize("name", ["a,b=c", "no/folder", "x" * 300, "!", "a\0b"])
def test_what_can_be_no_name_is_said_before_a_server_is_asked(
    cluster: FakeApi, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cleanup", name]) == ExitCode.BAD_INPUT
    assert "no name of a run as it is listed" in capsys.readouterr().err
    assert cluster.asked == []


def test_a_folder_says_where_and_options_win(
    cluster: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place_of(tmp_path / "runs/demo-1", "demo", context="gone")
    assert main(["cleanup", "demo-1"]) == ExitCode.BAD_INPUT  # the context is not there any more
    assert "'gone'" in capsys.readouterr().err
    assert main(["cleanup", "demo-1", "--context", "other"]) == ExitCode.OK
    assert f"/namespaces/{NAMESPACE}/" in cluster.asked[-1].path
    assert main(["cleanup", "runs/demo-1", "--context", "c", "--namespace", "b"]) == ExitCode.OK
    assert "/namespaces/b/" in cluster.asked[-1].path


ME = this_owner()
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"


def left(
    cluster: FakeApi,
    run: str,
    *,
    owner: str | None = ME,
    phase: str = "Failed",
    pods: int = 1,
    ends: str = "Complete",
) -> None:
    """A job with this condition and its pods; what is asked for again is not there any more."""
    labels = {MANAGED_BY: MANAGER, RUN: run, JOB: run}
    notes = {} if owner is None else {"annotations": {OWNER: owner}}
    created = "2026-01-01T00:00:00Z"
    about = {"name": run, "uid": run, "labels": labels, "creationTimestamp": created, **notes}
    found = [pod_of(run) | {"status": {"phase": phase}} for _ in range(pods)]
    status = {"conditions": [{"type": ends, "status": "True"}]}
    job = listed({"metadata": about, "status": status})
    cluster.script("GET", JOBS, *([job] * 3), listed())
    cluster.script("GET", PODS, *([listed(*found)] * 3), listed())
    cluster.script("DELETE", f"{JOBS}/{run}", Answer(body={}))
    for pod in found:
        cluster.script("DELETE", f"{PODS}/{pod['metadata']['name']}", Answer(body={}))


@pytest.mark.parametrize(
    ("found", "options", "is_deleted"),
    [
        ({}, (), True),
        ({"phase": "Running"}, (), False),
        ({"phase": "Pending"}, (), False),
        ({"phase": "Running"}, ("--running",), True),
        ({"pods": 0}, (), True),
        ({"pods": 0, "ends": "Suspended"}, (), False),  # queued
        ({"ends": "Restarting"}, (), False),  # pods that failed are replaced
        ({"ends": "Restarting"}, ("--running",), True),
        ({"owner": "ana@laptop"}, (), False),
        ({"owner": None}, (), False),
        ({"owner": "ana@laptop"}, ("--of-others",), True),
        ({"owner": "ana@laptop", "phase": "Running"}, ("--of-others",), False),
    ],
)
def test_all_are_those_of_mine_that_have_ended(
    cluster: FakeApi,
    found: dict[str, Any],
    options: tuple[str, ...],
    is_deleted: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    left(cluster, "demo", **found)
    assert main(["cleanup", "--all", *options]) == ExitCode.OK
    assert ("DELETE" in {each.method for each in cluster.asked}) == is_deleted
    said = capsys.readouterr()
    assert "d old, " in said.out
    assert ("demo is left: " in said.err) != is_deleted


def test_a_run_that_is_named_is_meant(cluster: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever runs it, and though it may be running."""
    left(cluster, "demo", owner="ana@laptop", phase="Running")
    assert main(["cleanup", "--on", "kubernetes", "demo"]) == ExitCode.OK
    assert cluster.count("DELETE", f"{JOBS}/demo") == 1
    told = f"deleted all that was left of run demo in namespace {NAMESPACE}\n"
    assert capsys.readouterr().out.endswith(told)


def test_a_run_that_has_nothing_left_is_no_mistake_whatever_others_have(
    cluster: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its folder is known: only a name that was typed may be another's."""
    place_of(tmp_path / "runs/demo-1", "demo")
    other = pod_of("other")

    def selected(asked: Asked) -> Answer:
        return listed() if asked.query["labelSelector"].endswith("=demo") else listed(other)

    cluster.script("GET", PODS, selected)
    assert main(["cleanup", "demo-1"]) == ExitCode.OK
    told = capsys.readouterr().err
    assert told == f"nothing of run demo is left in namespace {NAMESPACE}\n"
    assert main(["cleanup", "demo"]) == ExitCode.BAD_INPUT


def test_a_folder_that_names_no_job_has_nothing_to_delete(
    cluster: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make_folder(tmp_path, a_plan())
    made.close()
    assert main(["cleanup", str(made.path)]) == ExitCode.OK
    assert f"{made.path} names no job in a cluster" in capsys.readouterr().err
    (made.path / "logs" / STATE_FILE).write_text("{")
    assert main(["cleanup", str(made.path)]) == ExitCode.RUN_FOLDER
    assert "can't be read" in capsys.readouterr().err
    (tmp_path / "no-run").mkdir()
    assert main(["cleanup", str(tmp_path / "no-run")]) == ExitCode.RUN_FOLDER
    assert cluster.asked == []


def test_a_run_that_a_tool_follows_is_that_tools_to_end(
    cluster: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would take the job for lost, and make another. To look at it is no harm."""
    left(cluster, "demo", phase="Running")
    made = make_folder(tmp_path, a_plan())
    place_of(made.path, "demo")
    assert main(["cleanup", str(made.path)]) == ExitCode.BAD_INPUT
    assert "with Ctrl-C" in capsys.readouterr().err
    assert main(["cleanup", str(made.path), "--dry-run"]) == ExitCode.OK
    assert "DELETE" not in {each.method for each in cluster.asked}
    made.close()
    left(cluster, "demo", phase="Running")
    assert main(["cleanup", str(made.path)]) == ExitCode.OK
    assert cluster.count("DELETE", f"{JOBS}/demo") == 1


def test_words_that_do_not_go_together_are_refused(cluster: FakeApi) -> None:
    for words in (["demo", "--all"], ["--running"], ["demo", "--of-others"]):
        assert main(["cleanup", *words]) == ExitCode.BAD_INPUT
    assert cluster.asked == []


def test_without_what_speaks_to_a_cluster_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extra, "find_spec", lambda _: None)
    assert main(["cleanup"]) == ExitCode.PLATFORM_REFUSED
    assert "pip install 'broadgauge[kubernetes]'" in capsys.readouterr().err


def test_what_bears_our_labels_by_half_is_nobodys_run(
    cluster: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """A list is not trusted with it."""
    theirs = {"name": "a", "uid": "a", "labels": {RUN: "demo"}}
    rendered = {"name": "b", "uid": "b", "labels": {MANAGED_BY: MANAGER}}
    cluster.script("GET", CONFIG_MAPS, listed({"metadata": theirs}, {"metadata": rendered}))
    assert main(["cleanup", "--all", "--running", "--of-others"]) == ExitCode.OK
    assert "nothing of ours is left" in capsys.readouterr().err
    assert {each.method for each in cluster.asked} == {"GET"}
