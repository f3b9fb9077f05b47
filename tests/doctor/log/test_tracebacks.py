"""Is a traceback read to its exception, whoever wrote what before its lines and between them?"""

import pytest

from broadgauge.doctor.log.facts import LastWords
from broadgauge.doctor.log.files import text_source
from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.lines import BLOCK_BYTES
from broadgauge.doctor.log.reading import read_logs, read_text
from broadgauge.specs.records.record import Severity

FRAMES = ("Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "    x()")


def endings_of(*lines: str) -> list[LastWords]:
    return read_text("\n".join(lines) + "\n").endings


def test_the_exception_is_the_first_line_as_far_left_as_the_traceback() -> None:
    (ending,) = endings_of(*FRAMES, "KeyError: 'a'", "the end")
    assert (ending.words, ending.place.line, ending.rank) == ("KeyError: 'a'", 4, None)


def test_lines_of_two_ranks_that_ran_together() -> None:
    first = [f"[rank0]: {line}" for line in (*FRAMES, "KeyError: 'a'")]
    second = [f"[rank1]: {line}" for line in (*FRAMES, "site.Halted: b")]
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    found = read_text("\n".join(mixed)).endings
    assert [(each.rank, each.words) for each in found] == [(1, "Halted: b")]
    (finding,) = (each for each in log_findings(read_text("\n".join(mixed[::2]))))
    assert finding.rule == "rank-exception", "a rule knows torch's words with Error"


def test_times_that_change_from_line_to_line() -> None:
    lines = [f"2026-11-23T10:00:0{i}.{i}5Z {line}" for i, line in enumerate((*FRAMES, "A.Bad: c"))]
    (ending,) = endings_of(*lines)
    assert ending.words == "Bad: c"
    assert ending.clock_s == pytest.approx(36003.35)


def test_of_a_chain_the_last_exception_counts() -> None:
    (ending,) = endings_of(
        *(*FRAMES, "KeyError: 'a'", ""),
        *("During handling of the above exception, another exception occurred:", ""),
        *(*FRAMES, "LookupError: no plan"),
    )
    assert ending.words == "LookupError: no plan"


@pytest.mark.parametrize(
    "before", ["Exception ignored in: <function A.__del__>", "--- Logging error ---"]
)
def test_what_python_says_it_ignores_ends_nothing(before: str) -> None:
    assert endings_of(before, *FRAMES, "AttributeError: gone") == []
    assert log_findings(read_text("\n".join((before, *FRAMES, "AttributeError: gone")))) == ()


def test_an_exception_that_a_rule_knows_is_no_ending() -> None:
    known = "RuntimeError: CUDA out of memory. Tried to allocate 2.87 GiB (GPU 0; 14.76 GiB"
    assert endings_of(*FRAMES, known) == []


def test_an_interrupt_is_a_warning() -> None:
    (finding,) = log_findings(read_text("\n".join((*FRAMES, "KeyboardInterrupt"))))
    assert (finding.rule, finding.severity) == ("process-interrupted", Severity.WARNING)


def test_a_line_that_calls_itself_an_error_and_is_followed_by_much_was_survived() -> None:
    line = "[2026-11-23 10:00:00] [ERROR] [site.py:12] the cache is cold"
    (ended,) = log_findings(read_text("\n".join([line, *(["step"] * 20)])))
    (survived,) = log_findings(read_text("\n".join([line, *(["step"] * 60)])))
    assert (ended.rule, ended.severity) == ("process-ended", Severity.ERROR)
    assert (survived.rule, survived.severity) == ("error-line-unknown", Severity.WARNING)


@pytest.mark.parametrize("before", [BLOCK_BYTES - 80, BLOCK_BYTES - 40, BLOCK_BYTES - 3])
def test_a_traceback_across_the_blocks_of_a_reader(before: str) -> None:
    filler = "x" * 62 + "\n"
    text = filler * (int(before) // 63) + "\n".join((*FRAMES, "site.Halted: d", ""))
    (ending,) = read_text(text).endings
    assert ending.words == "Halted: d"


def test_a_traceback_in_a_structured_line() -> None:
    words = "failed\\nTraceback (most recent call last):\\n  File 'a'\\nsite.Halted: e"
    line = f'{{"level": "error", "msg": "{words}"}}'
    found = endings_of(line, '{"level": "info", "msg": "bye"}')
    assert [each.words for each in found] == ["Halted: e", "failed"]
    apart = line.replace('"msg": "failed\\n', '"msg": "failed", "exc_info": "')
    assert [each.words for each in endings_of(apart)] == ["Halted: e", "failed"]


@pytest.mark.parametrize(
    "line",
    [
        "loss: 2.31",
        "Epoch 1: 50%",
        "exit code 0",
        "return code: 0",
        "0 errors, 0 warnings",
        "INFO: ERROR_LIMIT=3 set",
        "errors: 0",
        "retrying after ConnectionError: later",
    ],
)
def test_what_is_no_ending(line: str) -> None:
    assert endings_of(line) == []


def test_a_crash_after_a_thousand_lines_that_call_themselves_errors_is_told() -> None:
    lines = [f"[ERROR] the cache is cold {number}" for number in range(1000)]
    (finding,) = log_findings(read_text("\n".join((*lines, *FRAMES, "site.Halted: f"))))
    assert finding.symptom == "a process ended: Halted: f"
    (finding,) = log_findings(read_text("\n".join(lines)))
    assert finding.rule == "process-ended", "the last of them are the log's last lines"


def test_a_traceback_far_to_the_right_is_no_crash_of_the_reader() -> None:
    assert endings_of("Exception ignored in: x", "y" * 400 + FRAMES[0], "site.Halted: g") == []


@pytest.mark.parametrize("frame", ['  File "run.py", line 3, in main\n    step()\n', ""])
def test_a_logger_writes_its_words_before_the_first_line_only(frame: str) -> None:
    first = f"[2025-02-24 14:09:34 TP8] worker failed: {FRAMES[0]}"
    (finding,) = log_findings(read_text(f"{first}\n{frame}ValueError: odd batch\ndone\n"))
    assert finding.symptom == "a process ended: ValueError: odd batch"


def test_what_one_rank_prints_of_another_is_the_others() -> None:
    """torch's distributed checkpoints: each rank prints the tracebacks of all that failed."""
    lines = [
        f"[rank{rank}]: {words}"
        for rank in range(2)
        for words in (
            "torch.distributed.checkpoint.api.CheckpointException: CheckpointException "
            "ranks:dict_keys([3])",
            "Traceback (most recent call last): (RANK 3)",
            '  File "/srv/filesystem.py", line 640, in write_data',
            "    os.fsync(stream.fileno())",
            "OSError: [Errno 28] No space left on device",
        )
    ]
    (found,) = log_findings(read_text("\n".join(lines)))
    assert found.symptom == "a file system of rank 3 is full (No space left on device)"


OWNED = "Traceback (most recent call last): (RANK 3)\n  File \"a\", line 1\nKeyError: 'x'\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"


def test_whose_traceback_it_is_ends_with_it() -> None:
    (found,) = (f for f in log_findings(read_text(OWNED + OOM)) if f.rule == "gpu-out-of-memory")
    assert "3" not in found.symptom
    sources = [text_source(OWNED, "r0.log"), text_source(OOM, "r5.log")]
    (found,) = (f for f in log_findings(read_logs(sources)) if f.rule == "gpu-out-of-memory")
    assert "3" not in found.symptom
