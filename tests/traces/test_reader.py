"""Proves the reader: the same answer however a file is cut, else one clear message."""

import gzip
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.traces import jobs

from broadgauge.specs.errors import InputError
from broadgauge.traces.attribution.explaining import explain
from broadgauge.traces.explanation import PartTimes
from broadgauge.traces.reading.reader import read_trace
from broadgauge.traces.trace import RankTrace

DOCUMENT = jobs.fsdp2().document(0)
TEXT = json.dumps(DOCUMENT, indent=2).encode()
EVENTS = DOCUMENT["traceEvents"]
HOSTILE = [
    '}, {"ph": "X"',
    '"traceEvents": [',
    "]}",
    "\\",
    '\\"},{',
    "ncclDevKernel_\u202e\x00\ud83d\ude00",
    "a" * 70_000,
    "<script>alert(1)</script>",
    "\x1b[31m",
]


def read(text: bytes, folder: Path, **kwargs: int) -> RankTrace:
    path = folder / "trace.json"
    path.write_bytes(text)
    return read_trace(path, **kwargs)


def parts(trace: RankTrace) -> list[PartTimes]:
    (rank,) = explain([trace]).ranks
    return [step.parts for step in rank.steps]


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> list[PartTimes]:
    return parts(read(TEXT, tmp_path_factory.mktemp("whole")))


def document(events: list[object], **more: object) -> bytes:
    return json.dumps({**DOCUMENT, **more, "traceEvents": events}).encode()


@pytest.mark.parametrize("chunk_bytes", [1, 100, 1000, 4096, 65536])
def test_chunks_of_any_size_give_the_same(
    chunk_bytes: int, wanted: list[PartTimes], tmp_path: Path
) -> None:
    assert parts(read(TEXT, tmp_path, chunk_bytes=chunk_bytes)) == wanted


@pytest.mark.parametrize(
    "written",
    [
        lambda: json.dumps(DOCUMENT, separators=(",", ":")).encode(),
        lambda: gzip.compress(TEXT),
        lambda: json.dumps(EVENTS).encode(),
        lambda: b"\xef\xbb\xbf\n " + TEXT,
        lambda: json.dumps(dict(reversed(DOCUMENT.items()))).encode(),
        lambda: TEXT.replace(b"\n", b"\r\n"),
    ],
    ids=["compact", "gzip", "array", "byte order mark", "events first", "CRLF"],
)
def test_forms_of_one_trace_give_the_same(
    written: Callable[[], bytes], wanted: list[PartTimes], tmp_path: Path
) -> None:
    trace = read(written(), tmp_path, chunk_bytes=3000)
    assert parts(trace) == wanted


def test_what_the_job_was_is_read(tmp_path: Path) -> None:
    path = tmp_path / "node7_4711.1728391234567.pt.trace.json"
    path.write_bytes(TEXT)
    trace = read_trace(path)
    assert (trace.rank, trace.world_size, trace.host) == (0, 2, "node7")


def test_a_file_that_does_not_say_its_rank_is_named_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "trace_rank-3.json"
    path.write_bytes(document(EVENTS, distributedInfo=None))
    assert read_trace(path).rank == 3


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32 - 1))
def test_order_and_repetition_do_not_matter(
    seed: int, wanted: list[PartTimes], tmp_path: Path
) -> None:
    chance = random.Random(seed)
    events = [*EVENTS, *chance.sample(EVENTS, len(EVENTS) // 3)]
    chance.shuffle(events)
    assert parts(read(document(events), tmp_path, chunk_bytes=5000)) == wanted


def test_hostile_names_change_nothing(wanted: list[PartTimes], tmp_path: Path) -> None:
    """Whatever a user calls ranges and operators, and whatever else stands beside the events."""
    events = []
    for place, event in enumerate(EVENTS):
        name = HOSTILE[place % len(HOSTILE)]
        is_ours = event.get("cat") == "cpu_op" and not event["name"].startswith("fsdp::")
        events.append({**event, "name": name} if is_ours else event)
    more = {name: [{name: [name]}] for name in HOSTILE}
    for chunk_bytes in (700, 1 << 20):
        text = json.dumps({**more, **DOCUMENT, "traceEvents": events, "z": more}).encode()
        assert parts(read(text, tmp_path, chunk_bytes=chunk_bytes)) == wanted


def test_odd_events_are_left_out(wanted: list[PartTimes], tmp_path: Path) -> None:
    odd = [
        None,
        7,
        "text",
        [],
        {},
        {"ph": "X"},
        {"ph": 1, "name": {}, "ts": "now"},
        {"ph": "X", "cat": "kernel", "name": "x", "ts": 1e300, "dur": 1, "args": {}},
        {"ph": "X", "cat": "kernel", "name": "x", "ts": 1, "dur": -5, "args": {}},
        {"ph": "X", "cat": "cuda_runtime", "name": "x", "ts": 5, "dur": 1, "args": []},
        {"ph": "B", "cat": "cpu_op", "name": "x", "ts": 5, "dur": 1},
    ]
    events = [each for pair in zip(odd * 30, EVENTS, strict=False) for each in pair]
    events += EVENTS[len(odd) * 30 :]
    assert parts(read(document(events), tmp_path, chunk_bytes=2000)) == wanted


def test_numbers_that_json_has_not_are_read(wanted: list[PartTimes], tmp_path: Path) -> None:
    """Kineto prints a rate over no time as `inf`; names may hold what is no UTF-8."""
    text = TEXT.replace(b'"registers per thread": 168', b'"bandwidth (GB/s)": inf')
    text = text.replace(b'"aten::mm"', b'"aten::mm \xff\x01"')
    assert text.count(b"inf") > 10
    assert parts(read(text, tmp_path, chunk_bytes=9000)) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "does not begin with"),
        (b"\x00\x01\x02", "does not begin with"),
        (b"hello", "does not begin with"),
        (b"{}", 'has no "traceEvents"'),
        (b'{"a": "\\"traceEvents\\": [1]"}', 'has no "traceEvents"'),
        (b'{"traceEvents": []}', "without operators and kernels"),
        (b'{"traceEvents": [1, 2, 3]}', "without operators and kernels"),
        (b'{"traceEvents": [{"ph": "X"}, }]}', "no JSON"),
        (b'{"traceEvents": [{"ph": "X"} {"ph": "X"}]}', "no JSON"),
        (b'{"traceEvents": [{"ph": "X"}', "is cut off"),
        (b'{"traceEvents": [' + b"[" * 50_000 + b"]" * 50_000 + b"]}", "nested too deeply"),
        (b"\x1f\x8b\x08\x00garbage", "broken gzip"),
        (gzip.compress(TEXT, mtime=0)[:-900], "broken gzip"),
    ],
)
def test_what_is_no_trace_is_told_in_one_message(text: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as refused:
        read(text, tmp_path)
    message = str(refused.value)
    assert "trace.json" in message
    assert "hint:" in message
    assert len(message) < 600


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read: No such file"):
        read_trace(tmp_path / "nothing.json")


@pytest.mark.parametrize("chunk_bytes", [500, 1 << 20])
def test_cut_off_anywhere_is_told(chunk_bytes: int, tmp_path: Path) -> None:
    chance = random.Random(4)
    for end in chance.sample(range(2, len(TEXT.rstrip()) - 1), 10):
        with pytest.raises(InputError, match=r"is cut off|no profiler trace"):
            read(TEXT[:end], tmp_path, chunk_bytes=chunk_bytes)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.integers(0, len(TEXT) - 1), byte=st.integers(0, 255), cut=st.integers(0, 40))
def test_broken_bytes_end_in_words_or_an_answer(
    place: int, byte: int, cut: int, tmp_path: Path
) -> None:
    text = TEXT[:place] + bytes([byte]) + TEXT[place + cut :]
    try:
        found = explain([read(text, tmp_path, chunk_bytes=2000)])
    except InputError:
        return
    for step in found.ranks[0].steps:
        assert step.parts.total_ns == step.duration_ns


def many(num_copies: int) -> bytes:
    """The same events again and again, later each time: some 200 kB a copy."""
    span = 20_000.0
    copies = [
        {**event, "ts": event["ts"] + number * span}
        for number in range(num_copies)
        for event in EVENTS
    ]
    return document(copies)


@pytest.mark.parametrize("worst", ["plain", "one string", "backslashes", "nested lists"])
def test_time_is_linear(worst: str, tmp_path: Path) -> None:
    """Eight times as much takes less than twenty times as long: a square would take 64 times."""

    def text(size: int) -> bytes:
        if worst == "plain":
            return many(size)
        filling = {
            "one string": "}, {" * (6_000 * size),
            "backslashes": '\\"' * (4_000 * size),
            "nested lists": [[{"a": 1}, {"b": 2}]] * (600 * size),
        }[worst]
        return document([{"ph": "M", "args": {"name": filling}}, *EVENTS])

    def cpu_s(size: int) -> float:
        written = text(size)
        best = float("inf")
        for _ in range(2):
            start = time.process_time()
            read(written, tmp_path, chunk_bytes=20_000)
            best = min(best, time.process_time() - start)
        return best

    assert cpu_s(8) < 20 * max(cpu_s(1), 0.002)


def test_operators_are_kept_where_no_gpu_was_traced(tmp_path: Path) -> None:
    """The head names the machine's GPUs, also where only the CPU was profiled."""
    cpu_only = [e for e in EVENTS if e.get("cat") in ("cpu_op", "user_annotation")]
    trace = read(document(cpu_only), tmp_path)
    assert DOCUMENT["deviceProperties"]
    assert not trace.has_gpu
    assert "aten::mm" in {trace.names[name] for name in trace.calls.name}
