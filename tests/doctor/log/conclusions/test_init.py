"""Are ranks named that never came through, and times that are too long?"""

import pytest
from tests.doctor.log.conclusions.found import found, the
from tests.doctor.log.readings import a_reading, processes, the_communicator

from broadgauge.doctor.log.conclusions.limits import INIT_S_PER_RANK, LONG_BOOTSTRAP_S, LONG_INIT_S
from broadgauge.doctor.log.facts import LogReading, Place
from broadgauge.specs.records.record import Confidence, Severity


def stuck(*, completed: set[int], heard_of: set[int]) -> LogReading:
    """Four ranks, of which these completed and these were heard of."""
    reading = a_reading()
    communicator = the_communicator(reading)
    communicator.started, communicator.completed = set(heard_of), completed
    for rank in set(communicator.members) - heard_of:
        del reading.processes[communicator.members.pop(rank)]
    return reading


def test_the_rank_that_nobody_heard_of_is_named() -> None:
    finding = the(stuck(completed=set(), heard_of={0, 1, 3}), "init-not-completed")
    assert finding.symptom == (
        "nothing was heard of rank 2 of 4, and no line says that ranks 0, 1 and 3 completed the "
        "initialisation"
    )
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert finding.evidence[1] == "of 4 ranks 3 began, 0 completed"


def test_ranks_that_began_and_hang() -> None:
    reading = stuck(completed={0, 1, 2}, heard_of={0, 1, 2, 3})
    assert found(reading, "init-not-completed") == (), "it told its time: a line was cut"
    processes(reading)[3].init_s = None
    finding = the(reading, "init-not-completed")
    assert finding.severity is Severity.WARNING
    assert (
        finding.symptom == "rank 3 of 4 began to initialise, and no line says that they completed"
    )
    assert finding.cause is not None
    assert "the others are through" in finding.cause


def test_what_an_excerpt_does_not_say_is_unknown() -> None:
    """Connections that are made, ranks whose beginning is missing, or nobody's first lines."""

    def of(reading: LogReading) -> tuple[str, Severity]:
        finding = the(reading, "init-end-not-in-log")
        assert found(reading, "init-not-completed") == ()
        return finding.symptom, finding.severity

    told = ("no line says that ranks 0 to 3 completed the initialisation", Severity.INFO)
    connected = stuck(completed=set(), heard_of={0, 1, 2, 3})
    the_communicator(connected).has_connected = True
    assert of(connected) == told
    cut = stuck(completed=set(), heard_of={0, 1, 2, 3})
    for process in processes(cut):
        process.bootstrap = process.version = process.network = None
    assert of(cut) == told
    middle = stuck(completed=set(), heard_of={0, 1, 2, 3})
    the_communicator(middle).started.remove(2)
    assert of(middle)[1] is Severity.INFO


def test_ranks_whose_logs_were_not_given_are_not_missed() -> None:
    reading = stuck(completed={0}, heard_of={0})
    assert found(reading, "init-not-completed") == ()


def test_versions_without_these_lines_say_nothing() -> None:
    reading = stuck(completed=set(), heard_of={0, 1, 2, 3})
    the_communicator(reading).started = set()
    assert found(reading, "init-not-completed") == ()


@pytest.mark.parametrize(("more_s", "rules"), [(1.0, 1), (-1.0, 0)])
def test_a_long_initialisation(more_s: float, rules: int) -> None:
    reading = a_reading()
    processes(reading)[2].init_s = LONG_INIT_S + 4 * INIT_S_PER_RANK + more_s
    assert len(found(reading, "initialisation-long")) == rules


def test_a_long_bootstrap_is_told_and_not_the_initialisation_that_holds_it() -> None:
    reading = a_reading()
    processes(reading)[1].init_s = processes(reading)[1].bootstrap_s = 5 * LONG_BOOTSTRAP_S
    assert the(reading, "bootstrap-long").symptom == "NCCL's bootstrap took 50 s on rank 1"
    assert found(reading, "initialisation-long") == ()


def test_many_ranks_may_take_longer() -> None:
    reading = a_reading(nodes=128, gpus=8)
    processes(reading)[1].bootstrap_s = 2 * LONG_BOOTSTRAP_S
    assert found(reading, "bootstrap-long") == ()


def _ends(reading: LogReading, *lines: int) -> None:
    for process, line in zip(processes(reading), lines, strict=True):
        process.last_place = Place("job.log", line)


def test_a_process_that_falls_silent_early() -> None:
    reading = a_reading()
    _ends(reading, 5000, 5003, 40, 5001)
    finding = the(reading, "log-ends-early")
    assert finding.symptom == "rank 2 wrote nothing more while the others went on"
    assert finding.evidence == ("job.log:40: its last line; the others' are around 5000",)


def test_ranks_that_end_at_about_the_same_line() -> None:
    reading = a_reading()
    _ends(reading, 5000, 5003, 4600, 5001)
    assert found(reading, "log-ends-early") == ()


def test_one_that_writes_on_does_not_make_the_others_silent() -> None:
    reading = a_reading()
    _ends(reading, 50, 51, 49, 90_000)
    assert found(reading, "log-ends-early") == ()
