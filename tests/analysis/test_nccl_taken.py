"""Is what NCCL did told of a case once, and what differs between its trials?"""

from typing import Any

from broadgauge.analysis.nccl_taken import nccl_taken
from broadgauge.specs.records.nccl import NcclUse
from broadgauge.specs.records.record import Record, Status

SOCKET = NcclUse(network="Socket", version="2.28.9", num_nodes=2)
IB = SOCKET.model_copy(update={"network": "IB", "gpudirect": True})


def a_record(nccl: NcclUse | None, status: Status = Status.OK) -> Record:
    labels: dict[str, Any] = {"workload": "w", "network": "n", "shape": "2x1", "case_key": "k"}
    return Record(
        record_id="t",
        launch_id="l",
        block=0,
        trial=0,
        position=0,
        started_unix_s=0.0,
        ended_unix_s=1.0,
        status=status,
        nccl=nccl,
        **labels,
    )


def test_older_runs_and_gloo_have_nothing() -> None:
    assert nccl_taken([]) is None
    assert nccl_taken([a_record(None)]) is None


def test_the_last_good_trial_speaks_for_the_case() -> None:
    taken = nccl_taken([a_record(IB), a_record(None), a_record(SOCKET, Status.FAILED)])
    assert taken is not None
    assert taken.use == IB
    assert taken.other_trials == ("network Socket in 1 of 2 trials",)


def test_a_case_that_only_failed_has_what_its_last_trial_said() -> None:
    taken = nccl_taken([a_record(SOCKET, Status.FAILED)])
    assert taken is not None
    assert (taken.use, taken.other_trials) == (SOCKET, ())


def test_what_a_trial_does_not_say_is_not_otherwise() -> None:
    taken = nccl_taken([a_record(IB.model_copy(update={"gpudirect": None})), a_record(IB)])
    assert taken is not None
    assert taken.other_trials == ()
