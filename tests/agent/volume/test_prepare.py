"""Proves agent/volume/prepare.py and wait.py, what pods run: processes that are killed, come twice
and at once, with no network, under other Pythons."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import pythons
from tests.agent.volume.content_server import LIMIT_S, Answer, serving
from tests.agent.volume.hub import Hub
from tests.agent.volume.pods import VolumePods, archive, fetch_order
from tests.kubernetes.cluster.waiting import wait_until

from broadgauge.messages.prepare_order import CommandOrder

LARGE = os.urandom(3 << 20)


@pytest.fixture
def pods(tmp_path: Path) -> VolumePods:
    return VolumePods(tmp_path)


def test_a_killed_pod_is_gone_on_with_and_nothing_comes_twice(pods: VolumePods) -> None:
    """Of two files the first had come, and half of the second."""
    half = len(LARGE) // 2
    hub = Hub({"a.bin": b"one", "deep/b.bin": LARGE}, revision="v1")
    second = hub.answers[hub.file("deep/b.bin")]
    second.holds_at = half
    with serving(hub.answers) as server:
        order = pods.order(fetch_order("me/tiny", revision="v1"))
        first = pods.start("prepare", order, HF_ENDPOINT=server.url)
        assert second.sent.wait(LIMIT_S)
        wait_until(lambda: is_written(pods.root, half), "half of the file")
        first.kill()
        first.communicate(timeout=LIMIT_S)
        assert [name[:14] for name in pods.names()] == [".model-x.part-"]
        status, log = pods.run("prepare", order, HF_ENDPOINT=server.url)
        assert status == 0, log
        again = pods.run("prepare", order, HF_ENDPOINT=server.url)
        num_asked = len(server.asked)
    assert len(server.of(hub.file("a.bin"))) == 1
    _, resumed = server.of(hub.file("deep/b.bin"))
    assert resumed.headers["Range"] == f"bytes={half}-"
    assert "going on with model me/tiny" in log
    assert (pods.root / "model-x/deep/b.bin").read_bytes() == LARGE
    assert (pods.root / "model-x/a.bin").read_bytes() == b"one"
    assert pods.names() == ["model-x"]
    assert (again[0], len(server.asked)) == (0, num_asked)
    assert "model me/tiny is there" in again[1]


def first_line(process: "subprocess.Popen[str]") -> str:
    """Of its log; a process that says nothing is ended."""
    assert process.stdout is not None
    limit = threading.Timer(LIMIT_S, process.kill)
    limit.start()
    try:
        return process.stdout.readline()
    finally:
        limit.cancel()


def is_written(root: Path, size_bytes: int) -> bool:
    """So much of a file that is growing?"""
    return any(path.stat().st_size >= size_bytes for path in root.rglob("*.partial"))


def test_of_two_pods_at_once_one_fetches_and_the_other_waits(pods: VolumePods) -> None:
    answer = Answer(content=LARGE, holds_at=1000)
    with serving({"/a.bin": answer}) as server:
        order = pods.order(fetch_order(f"{server.url}/a.bin"))
        first = pods.start("prepare", order)
        assert answer.sent.wait(LIMIT_S)
        second = pods.start("prepare", order)
        assert f"waiting for {socket.gethostname()}" in first_line(second)
        answer.go_on.set()
        logs = [each.communicate(timeout=LIMIT_S)[0] for each in (first, second)]
        assert len(server.asked) == 1
    assert (first.returncode, second.returncode) == (0, 0), logs
    assert "fetching" not in logs[1]
    assert (pods.root / "model-x/a.bin").read_bytes() == LARGE


def test_of_two_pods_at_once_the_other_takes_over_when_one_is_killed(pods: VolumePods) -> None:
    answer = Answer(content=LARGE, holds_at=1000)
    with serving({"/a.bin": answer}) as server:
        order = pods.order(fetch_order(f"{server.url}/a.bin"))
        first = pods.start("prepare", order)
        assert answer.sent.wait(LIMIT_S)
        second = pods.start("prepare", order)
        assert "waiting for" in first_line(second)
        first.kill()
        first.communicate(timeout=LIMIT_S)
        log, _ = second.communicate(timeout=LIMIT_S)
    assert second.returncode == 0, log
    assert (pods.root / "model-x/a.bin").read_bytes() == LARGE


def test_where_locks_are_only_a_nodes_own_one_fetches_and_the_other_waits_too(
    pods: VolumePods,
) -> None:
    answer = Answer(content=LARGE, holds_at=1000)
    with serving({"/a.bin": answer}) as server:
        order = pods.order(fetch_order(f"{server.url}/a.bin"))
        first = pods.start_with_local_locks(order)
        assert answer.sent.wait(LIMIT_S)
        second = pods.start_with_local_locks(order)
        assert first_line(second).startswith("broadgauge: waiting for .model-x.part-")
        answer.go_on.set()
        logs = [each.communicate(timeout=LIMIT_S)[0] for each in (first, second)]
        assert len(server.asked) == 1
    assert (first.returncode, second.returncode) == (0, 0), logs
    assert (pods.root / "model-x/a.bin").read_bytes() == LARGE
    assert pods.names() == ["model-x"]


def test_without_a_network_one_line_says_what_from_where_why_and_what_helps(
    pods: VolumePods,
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody else's, and nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        status, log = pods.run("prepare", pods.order(fetch_order("me/tiny")), HF_ENDPOINT=url)
    assert status == 1
    [_, line] = log.splitlines()
    for words in ("me/tiny", url, "Connection refused", "HTTPS_PROXY", "HF_ENDPOINT", "path"):
        assert words in line
    assert [name[:14] for name in pods.names()] == [".it.error", ".model-x.part-"]
    _, waiting = pods.run("wait", pods.order(fetch_order("me/tiny")), "--limit-s", "0")
    assert f"(begun). The Job it brings it; its last try failed: model me/tiny: {url}" in waiting


@pytest.mark.parametrize("python", [pythons.oldest, pythons.newest])
def test_every_python_prepares_and_waits(
    pods: VolumePods, tmp_path: Path, python: Callable[[], str]
) -> None:
    source = archive(tmp_path / "w.tar.gz", {"deep/a.bin": b"one"})
    answers = {
        "/old.tar.gz": Answer(status=308, headers={"Location": "/w.tar.gz"}),
        "/w.tar.gz": Answer(content=source.read_bytes()),
    }
    link = str(pods.mount / "model/mine")
    with serving(answers) as server:
        order = pods.order(fetch_order(f"{server.url}/old.tar.gz", link=link))
        status, log = pods.run("prepare", order, python=python())
    assert status == 0, log
    assert (pods.mount / "model/mine/deep/a.bin").read_bytes() == b"one"
    status, log = pods.run("wait", order, "--limit-s", "60", python=python())
    assert status == 0, log


def test_a_command_runs_once_with_what_was_fetched(pods: VolumePods, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    code = (
        "import os,pathlib;p=pathlib.Path(os.environ['BROADGAUGE_PREPARED'],'n');"
        "p.write_text(os.environ['BROADGAUGE_MODEL']+os.getcwd())"
    )
    command = CommandOrder(
        name="command-1",
        words=(sys.executable, "-c", code, "https://ada:SEKRIT@h/a?sig=SEKRIT"),
        folder=str(tmp_path),
        file="n",
        link=str(pods.mount / "dataset/n"),
    )
    order = pods.order(fetch_order(str(tmp_path / "w")), command=command)
    status, log = pods.run("prepare", order)
    assert status == 0, log
    made = pods.mount / "dataset/n"
    assert made.read_text() == f"{pods.root}/model-x{tmp_path}"
    made.write_text("mine")
    assert pods.run("prepare", order)[0] == 0
    assert made.read_text() == "mine"
    assert "SEKRIT" not in (pods.root / "command-1/.broadgauge-done.json").read_text()


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((sys.executable, "-c", "raise SystemExit(3)"), 1, "ended with 3"),
        ((sys.executable, "-c", ""), 2, "has no file 'n': it has none"),
        (("/no/such",), 2, "/no/such does not start"),
    ],
)
def test_a_command_that_fails_leaves_nothing_that_looks_whole(
    pods: VolumePods, words: tuple[str, ...], status: int, said: str
) -> None:
    command = CommandOrder(name="command-1", words=words, folder="/", file="n")
    found = pods.run("prepare", pods.order(command=command))
    assert (found[0], said in found[1]) == (status, True), found[1]
    assert [name[:16] for name in pods.names()] == [".command-1.part-", ".it.error"]
    made = CommandOrder(name="command-1", words=("/bin/true",), folder="/")
    assert pods.run("prepare", pods.order(command=made))[0] == 0
    assert pods.names() == ["command-1"]


def test_an_order_that_is_none_is_said(pods: VolumePods) -> None:
    for program in ("prepare", "wait"):
        status, log = pods.run(
            program, pods.order(), *(["--limit-s", "1"] if program == "wait" else []),
            BROADGAUGE_PREPARE="{}",
        )  # fmt: skip
        assert (status, "says nothing usable" in log) == (2, True), log


def test_a_pod_ends_when_it_is_told_to(pods: VolumePods) -> None:
    """As the first process of a container it would ignore SIGTERM."""
    waiting = pods.start("wait", pods.order(fetch_order("me/tiny")), "--limit-s", "300")
    assert "waiting for model me/tiny" in first_line(waiting)
    waiting.send_signal(signal.SIGTERM)
    waiting.communicate(timeout=LIMIT_S)
    assert waiting.returncode == 128 + signal.SIGTERM


def test_pods_that_came_first_wait_until_all_is_there(pods: VolumePods, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    order = pods.order(fetch_order(str(tmp_path / "w"), link=str(pods.mount / "model")))
    waiting = pods.start("wait", order, "--limit-s", "300")
    line = first_line(waiting)
    assert f"waiting for model {tmp_path}/w in {pods.root}/model-x (not begun)" in line
    assert "The Job it brings it" in line
    assert pods.run("prepare", order)[0] == 0
    log, _ = waiting.communicate(timeout=LIMIT_S)
    assert (waiting.returncode, f"is there: {pods.root}/model-x" in log) == (0, True), log


def test_pods_wait_for_their_own_and_not_for_ever(pods: VolumePods, tmp_path: Path) -> None:
    """The path that they use may be another model's by now."""
    (tmp_path / "w").mkdir()
    link = str(pods.mount / "model")
    order = pods.order(fetch_order(str(tmp_path / "w"), link=link))
    assert pods.run("prepare", order)[0] == 0
    Path(link).unlink()
    Path(link).symlink_to("broadgauge/model-other")
    status, log = pods.run("wait", order, "--limit-s", "0")
    assert status == 1
    assert f"{link} to be model {tmp_path}/w" in log
    assert "did not come in 0 s" in log
    assert "kubectl logs job/it" in log


def test_pods_do_not_wait_for_what_never_comes(pods: VolumePods) -> None:
    """They hold GPUs meanwhile."""
    order = pods.order(fetch_order("/no/such"))
    assert pods.run("prepare", order)[0] == 2
    status, log = pods.run("wait", order, "--limit-s", "7200", "--grace-s", "0")
    assert status == 2, log
    assert "its last try failed: model /no/such: /no/such: no such file or folder" in log
    assert "the Job it has failed for good" in log


def test_a_job_that_begins_takes_the_failure_of_an_earlier_one_back(pods: VolumePods) -> None:
    assert pods.run("prepare", pods.order(fetch_order("/no/such")))[0] == 2
    answer = Answer(content=b"0123456789", holds_at=4)
    with serving({"/a.bin": answer}) as server:
        order = pods.order(fetch_order(f"{server.url}/a.bin"))
        mended = pods.start("prepare", order)
        assert answer.sent.wait(LIMIT_S)
        assert not (pods.root / ".it.error").exists()
        waiting = pods.start("wait", order, "--limit-s", "300", "--grace-s", "0")
        assert "(begun)" in first_line(waiting)
        answer.go_on.set()
        logs = [each.communicate(timeout=LIMIT_S)[0] for each in (mended, waiting)]
    assert (mended.returncode, waiting.returncode) == (0, 0), logs
