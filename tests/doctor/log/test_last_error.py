"""Are NCCL's own words understood where only torch's exception repeats them?"""

import json
from collections.abc import Callable

import pytest

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text

RAISED = "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, {what}"
SYSTEM = "ncclSystemError: System call (e.g. socket, malloc) or external library call failed"
SEGMENT = "Error while creating shared memory segment /dev/shm/nccl-abcDEF (size 33030528)"
CLOSED = "socketProgress: Connection closed by remote peer node01.cluster<38765>"


def log_of(words: str, *, before: str = "[rank9]: ", prefix: str = "") -> str:
    lines = (RAISED.format(what="unhandled system error"), SYSTEM, "Last error:", words)
    return "".join(f"{prefix}{before}{line}\n" for line in lines)


@pytest.mark.parametrize("before", ["", "[rank9]: ", "(WorkerDict pid=7) [rank9]: "])
@pytest.mark.parametrize("prefix", ["", "B-job/0 [default1]:"])
def test_the_line_after_last_error_is_of_nccl(before: str, prefix: str) -> None:
    (found,) = log_findings(read_text(log_of(SEGMENT, before=before, prefix=prefix)))
    assert found.rule == "shm-segment"
    assert "/dev/shm" in str(found.cause)
    assert ("rank 9" in found.symptom) == ("rank9" in before)
    assert SEGMENT in found.evidence[0]


def test_times_may_stand_before_the_rank() -> None:
    log = log_of(SEGMENT).splitlines()
    timed = "\n".join(f"2025-03-04T10:00:0{at}Z {line}" for at, line in enumerate(log))
    assert [f.rule for f in log_findings(read_text(timed))] == ["shm-segment"]


def test_torchs_summary_stands_not_beside_the_peer_that_closed() -> None:
    assert [f.rule for f in log_findings(read_text(log_of(CLOSED)))] == ["peer-closed"]


def test_words_without_a_trigger_are_delivered() -> None:
    log = log_of("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1a000")
    assert [f.rule for f in log_findings(read_text(log))] == ["same-gpu"]


def test_other_words_after_it_are_left_alone() -> None:
    rules = [f.rule for f in log_findings(read_text(log_of("step 7 loss=1.25")))]
    assert rules == ["torch-nccl-system"]


def test_the_line_is_counted_once() -> None:
    log = log_of(SEGMENT) + "step 1\n"
    reading = read_text(log)
    assert reading.num_lines == 5
    (seen,) = (each for each in reading.seen if each.rule.id == "shm-segment")
    assert (seen.count, seen.lines[0][0].line) == (1, 4)


def test_a_cut_traceback_stands_not_beside_what_is_known() -> None:
    cut = 'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\n'
    assert [f.rule for f in log_findings(read_text(log_of(SEGMENT) + cut))] == ["shm-segment"]
    assert [f.rule for f in log_findings(read_text(cut))] == ["process-ended"]


DUPLICATE = "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1a000"


def of_docker(line: str) -> str:
    return json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-11-28T10:00:00Z"})


def of_cri(line: str) -> str:
    return f"2026-11-28T10:00:00.123456789Z stderr F {line}"


@pytest.mark.parametrize("wrapped", [of_docker, of_cri, "{}\r".format, "{}".format])
@pytest.mark.parametrize("bar", ["", " 10%|#| 1/10\r 20%|##| 2/10\n"])
def test_whatever_wraps_the_lines_the_next_one_is_read(
    wrapped: Callable[[str], str], bar: str
) -> None:
    log = bar + "\n".join(map(wrapped, log_of(DUPLICATE).splitlines())) + "\n"
    assert "same-gpu" in {each.rule for each in log_findings(read_text(log))}
