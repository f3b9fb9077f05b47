"""Are findings in order, is each thing said once, and is a healthy job left alone?"""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.doctor.log.readings import (
    FILE,
    a_reading,
    a_rule,
    on_sockets,
    one_node,
    processes,
    saw,
    the_communicator,
)

from broadgauge.doctor.log.facts import LogReading, Place, Speaker, UnknownWarning
from broadgauge.doctor.log.findings import log_findings
from broadgauge.specs.records.record import Confidence, Severity


@pytest.mark.parametrize(
    "make", [a_reading, on_sockets, one_node, LogReading, lambda: a_reading(16, 8)]
)
def test_a_healthy_job_is_left_alone(make: Callable[[], LogReading]) -> None:
    assert [f for f in log_findings(make()) if f.severity is not Severity.INFO] == []


@given(nodes=st.integers(1, 5), gpus=st.integers(1, 8), ranks_lost=st.integers(0, 3))
def test_no_healthy_job_of_any_size_is_warned_of(nodes: int, gpus: int, ranks_lost: int) -> None:
    """Also where the log of some ranks was not given."""
    reading = one_node(gpus) if nodes == 1 else a_reading(nodes, gpus)
    communicator = the_communicator(reading)
    for rank in list(communicator.members)[1 : 1 + ranks_lost]:
        del reading.processes[communicator.members.pop(rank)]
        communicator.started.discard(rank)
        communicator.completed.discard(rank)
    assert [f for f in log_findings(reading) if f.severity is not Severity.INFO] == []


def test_the_worst_comes_first_then_the_first_line() -> None:
    reading = LogReading()
    for at, severity in ((9, "info"), (5, "warning"), (7, "error"), (3, "warning")):
        rule = a_rule(f"rule-{at}", "something {what}", severity=severity)
        saw(reading, rule, f"something {at}", at=at, what="x")
    assert [f.rule for f in log_findings(reading)] == ["rule-7", "rule-3", "rule-5", "rule-9"]


def test_a_line_is_quoted_with_its_place_and_who_said_it() -> None:
    reading = a_reading()
    rule = a_rule(
        "shm", "no room in {folder}", symptom="{ranks}: {folder} is full", fix="use {{x}}"
    )
    saw(reading, rule, "no room in /dev/shm\x1b[0m" + "y" * 500, folder="/dev/shm")
    (found,) = (f for f in log_findings(reading) if f.rule == "shm")
    assert found.symptom == "ranks 0 to 3: /dev/shm is full"
    assert found.fix == "use {x}"
    line, count = found.evidence
    assert line.startswith(f"{FILE}:40: no room in /dev/shm [0myyy")
    assert len(line) == len(f"{FILE}:40: ") + 400
    assert count == "said 4 times by 4 processes"


def test_an_unknown_process_is_named_by_its_host() -> None:
    reading = LogReading(processes=a_reading().processes)
    seen = saw(reading, a_rule("late", "late {by}", symptom="{ranks} is late"), "late", by="1")
    seen.speakers = {processes(reading)[1].speaker}
    seen.count = 1
    (found,) = (f for f in log_findings(reading) if f.rule == "late")
    assert found.symptom == "host node0 process 101 (GPU 1) is late"
    assert found.evidence == (f"{FILE}:40: late",)


def test_lines_that_differ_in_numbers_are_one_finding() -> None:
    reading = a_reading()
    rule = a_rule(
        "port-down", "port of {hca} of {gpu} is down", symptom="{hca} of GPU {gpu}: port is down"
    )
    for i in range(8):
        saw(reading, rule, f"port of mlx5_{i} is down", at=40 + i, hca=f"mlx5_{i}", gpu=str(i))
    saw(reading, rule, "port of bond is down", at=60, hca="bond", gpu="0")
    many, one = (f for f in log_findings(reading) if f.rule == "port-down")
    assert many.symptom == "mlx5_0, mlx5_1, mlx5_2 and 5 more of GPU 0 to 7: port is down"
    assert many.evidence[3:] == ("said 32 times by 4 processes",)
    assert one.symptom == "bond of GPU 0: port is down"


def test_the_first_text_whose_words_hold_is_told() -> None:
    reading = LogReading()
    rule = a_rule("gdr", "RDMA {state}", when={"state": "Disabled"})
    saw(reading, rule, "RDMA Enabled", state="Enabled")
    assert log_findings(reading) == ()
    saw(reading, rule, "RDMA Disabled", state="Disabled")
    assert [f.rule for f in log_findings(reading)] == ["gdr"]


def test_unknown_warnings_are_one_finding() -> None:
    reading = LogReading()
    reading.unknown_warnings = [
        UnknownWarning(Place(FILE, line), f"odd thing {line}", Speaker("node0", 1), origin)
        for line, origin in enumerate(("", "misc/socket.cc", "", "profiler.cc", ""), 1)
    ]
    (found,) = log_findings(reading)
    assert found.symptom == ("NCCL warned of something that no rule knows, of its TCP sockets")
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert found.evidence == (
        *(f"{FILE}:{line}: odd thing {line}" for line in (1, 2, 3)),
        "said 5 times",
    )
