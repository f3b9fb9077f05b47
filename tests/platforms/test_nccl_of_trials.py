"""Has each trial of scripted ranks what their NCCL logs say, failed ones too?"""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.platforms.launches import make_case, make_platform, make_request, quiet
from tests.platforms.planted_nccl import MEMLOCK, Network, nccl_log

from broadgauge.platforms import starting
from broadgauge.platforms.launch_logs import ReadLogs
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.launching import TrialOutcome, TrialRequest
from broadgauge.specs.records.record import Finding, Severity, Status

KINDS = ["local", pytest.param("emulated", marks=pytest.mark.namespaces)]


def outcomes(
    kind: str, folder: Path, scenario: str, network: Network, *warnings: str, number: int = 1
) -> list[TrialOutcome]:
    """Trials of one launch whose ranks write this."""
    for rank in (0, 1):
        (folder / f"planted{rank}").write_text(nccl_log(network, rank, *warnings))
    environment = {"PLANTED_NCCL": str(folder / "planted{rank}")}
    case = make_case(kind, backend="nccl", environment=environment)
    launch = make_platform(folder, kind, scenario).start(make_request(case), quiet)
    try:
        return [
            launch.run_trial(TrialRequest(trial_id=f"t{n}", case=case, seed=1), quiet)
            for n in range(number)
        ]
    finally:
        launch.close()


@pytest.mark.parametrize("kind", KINDS)
def test_good_trials_of_a_launch_say_what_nccl_did(kind: str, tmp_path: Path) -> None:
    first, second = outcomes(kind, tmp_path, "ok", "sockets", number=2)
    assert (first.status, first.error) == (Status.OK, None)
    assert first.nccl is not None
    assert (first.nccl.network, first.nccl.version) == ("Socket", "2.28.9")
    assert [(way.way, way.num_pairs) for way in first.nccl.ways] == [("sockets", 2)]
    assert second.nccl == first.nccl


def test_ranks_that_do_not_come_up_have_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Finding(rule="r", severity=Severity.ERROR, symptom="a library is missing")
    asked: list[str] = []

    def read(paths: Sequence[Path]) -> ReadLogs:
        asked.extend(path.name for path in paths)
        return ReadLogs(findings=(found,))

    monkeypatch.setattr(starting, "read_logs", read)
    with pytest.raises(LaunchError) as caught:
        make_platform(tmp_path, "local", "stillborn").start(make_request(make_case("local")), quiet)
    assert caught.value.findings == (found,)
    assert asked == ["b0.0.rank0.log", "b0.0.rank1.log"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_trial_has_the_cause_that_nccl_names(kind: str, tmp_path: Path) -> None:
    (outcome,) = outcomes(kind, tmp_path, "exit", "roce", MEMLOCK)
    assert outcome.status is Status.FAILED
    assert outcome.nccl is not None
    named = [
        finding for finding in outcome.findings if any(MEMLOCK in line for line in finding.evidence)
    ]
    assert named
    assert named[0].severity is not Severity.INFO
    assert named[0].evidence[0].startswith("logs/b0.0.rank0.nccl.log:")
    assert named[0].cause
    assert named[0].fix
