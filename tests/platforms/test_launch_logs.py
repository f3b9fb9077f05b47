"""Is a launch's log read once, of good trials and again of a failed one, and to what end?"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.platforms.launches import make_case

from broadgauge.platforms.launch_logs import LaunchLogs, ReadLogs
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network
from broadgauge.specs.records.nccl import NcclUse
from broadgauge.specs.records.record import ErrorKind, Finding, Severity, TrialError

CRASHED = TrialError(kind=ErrorKind.CRASHED, message="rank 1 ended with exit code 1")
WARNED = Finding(rule="r", severity=Severity.WARNING, symptom="s")


class Reader:
    """In place of the doctor."""

    def __init__(self, *told: ReadLogs) -> None:
        self.told = list(told)
        self.asked: list[list[str]] = []

    def __call__(self, paths: Sequence[Path]) -> ReadLogs:
        self.asked.append([path.name for path in paths])
        return self.told.pop(0)


def a_case(**found: Any) -> Case:
    network = Network.model_validate({"name": "fabric", "found": {"interface": "ib0", **found}})
    return make_case("emulated", network=network, device="cuda", backend="nccl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "b0.l1.rank0.log",
        "b0.l1.rank0.nccl.log",
        "b0.l1.rank1.log",
        "b0.l1.rank1.nccl.4711.log",
        "b0.l10.rank0.nccl.log",
        "b0.l1.supervisor.log",
        "b0.l1r1.rank0.nccl.log",
    ):
        (tmp_path / name).write_text("x\n")
    return tmp_path


def logs_in(folder: Path, reader: Reader) -> LaunchLogs:
    return LaunchLogs(folder=folder, launch_id="b0.l1", read=reader)


NCCL_FILES = ["b0.l1.rank0.nccl.log", "b0.l1.rank1.nccl.4711.log"]


def test_good_trials_of_a_launch_have_what_was_read_once(folder: Path) -> None:
    reader = Reader(ReadLogs(nccl=NcclUse(network="IB"), findings=(WARNED,)))
    logs = logs_in(folder, reader)
    first, second = (logs.of_trial(a_case(), None) for _ in range(2))
    assert first == second
    assert first.nccl == NcclUse(network="IB")
    assert first.findings == (WARNED,)
    assert reader.asked == [NCCL_FILES]


def test_what_the_first_trial_did_not_say_is_asked_again(folder: Path) -> None:
    reader = Reader(ReadLogs(), ReadLogs(nccl=NcclUse(network="IB")))
    logs = logs_in(folder, reader)
    told = [logs.of_trial(a_case(), None).nccl for _ in range(3)]
    assert told == [None, NcclUse(network="IB"), NcclUse(network="IB")]


def test_of_a_failed_trial_all_that_the_ranks_wrote_is_read(folder: Path) -> None:
    reader = Reader(ReadLogs(), ReadLogs(findings=(WARNED,)))
    logs = logs_in(folder, reader)
    logs.of_trial(a_case(), None)
    told = logs.of_trial(a_case(transport="roce"), CRASHED)
    assert (told.findings, told.error) == ((WARNED,), None)
    assert reader.asked[1] == [*NCCL_FILES, "b0.l1.rank0.log", "b0.l1.rank1.log"]


@pytest.mark.parametrize("change", [{"backend": "gloo"}, {"nodes": 1, "ranks_per_node": 1}])
def test_where_nccl_sends_nothing_nothing_is_read(folder: Path, change: dict[str, Any]) -> None:
    told = logs_in(folder, Reader()).of_trial(a_case().model_copy(update=change), None)
    assert told.nccl is None


def test_a_good_trial_that_went_another_way_has_an_error(folder: Path) -> None:
    reader = Reader(ReadLogs(nccl=NcclUse(network="Socket"), findings=(WARNED,)))
    told = logs_in(folder, reader).of_trial(a_case(transport="roce"), None)
    assert told.error is not None
    assert "is meant as RoCE, and NCCL sent over TCP sockets" in told.error.message
    assert [finding.rule for finding in told.findings] == ["not-sent-by-rdma", "r"]


def test_one_of_which_nothing_is_known_has_a_warning(folder: Path) -> None:
    told = logs_in(folder, Reader(ReadLogs())).of_trial(a_case(transport="roce"), None)
    assert told.error is None
    assert [finding.rule for finding in told.findings] == ["transport-unknown"]
