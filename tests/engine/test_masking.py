"""Proves engine/masking.py: what ranks, launches and judges say of a secret is masked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.engine.fake_platform import FakeClock, FakePlatform, Script, an_environment, services
from tests.engine.making import a_plan, make_folder

from broadgauge.engine.masking import masked_record
from broadgauge.engine.run import run
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.records.nccl import NcclUse, NcclWay
from broadgauge.specs.records.record import (
    ErrorKind,
    Finding,
    PathFacts,
    Record,
    Severity,
    Status,
    TrialError,
)

PLANTED = "planted-value"
FOUND = Finding(
    rule="r",
    severity=Severity.INFO,
    symptom=f"s {PLANTED}",
    evidence=(f"e {PLANTED}",),
    cause=f"c {PLANTED}",
    fix=f"f {PLANTED}",
)


def mask(text: str) -> str:
    return text.replace(PLANTED, "***")


def test_every_text_of_a_record_is_masked_and_no_name_or_figure() -> None:
    record = Record(
        record_id="b0.l0.t0",
        case_key="k",
        workload=PLANTED,
        network="n",
        shape="1x1",
        launch_id="b0.l0",
        block=0,
        trial=0,
        position=0,
        started_unix_s=1.0,
        ended_unix_s=2.0,
        status=Status.FAILED,
        metrics={"step_time_s": None},
        missing={"step_time_s": f"m {PLANTED}"},
        data=f"d {PLANTED}",
        error=TrialError(
            kind=ErrorKind.CRASHED, message=f"x {PLANTED}", last_lines=(f"l {PLANTED}",)
        ),
        path=PathFacts(used="shm", evidence=(f"p {PLANTED}",)),
        nccl=NcclUse(
            ways=(NcclWay(way="SHM", num_pairs=1, line=f"w {PLANTED}"),), notes=(f"n {PLANTED}",)
        ),
        findings=(FOUND,),
    )
    masked = masked_record(record, mask)
    assert masked.workload == PLANTED, "a label that happens to be equal"
    assert PLANTED not in masked.model_copy(update={"workload": ""}).model_dump_json()
    assert masked.model_dump_json().count("***") == record.model_dump_json().count(PLANTED) - 1
    assert masked_record(record, str) == record


def test_a_launch_that_does_not_come_up_and_its_environment_are_masked(tmp_path: Path) -> None:
    told: list[Any] = []
    error = LaunchError(
        f"no veth for {PLANTED}\n  | 401 {PLANTED}", hint=f"see {PLANTED}", findings=(FOUND,)
    )
    script = Script(
        launch_errors={"b0.l0": error},
        environment=lambda _: an_environment(variables={"NCCL_X": f"a {PLANTED}"}),
    )
    with make_folder(tmp_path, a_plan(launches=1)) as folder:
        known = replace(services(FakeClock(), told.append), mask=mask)
        run(folder.plan, FakePlatform(FakeClock(), script), folder, known)
        assert folder.records[0].error is not None
        assert folder.records[0].error.message.startswith("no veth for ***")
        assert folder.records[0].error.last_lines == ("401 ***",)
        assert folder.records[0].findings[0].cause == "c ***"
        (environment,) = folder.environments.values()
        assert environment.variables == {"NCCL_X": "a ***"}
        assert not [
            p for p in folder.path.rglob("*") if p.is_file() and PLANTED.encode() in p.read_bytes()
        ]
    assert PLANTED not in repr(told)
