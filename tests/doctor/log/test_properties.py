"""Does the reader hold on any input? No crash, facts that can be, evidence that is there."""

import functools
import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.doctor.log.retelling import NAMES, findings_of, lines_of, log_of

from broadgauge.doctor.log import lines
from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.files import Source, text_source
from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.loading import shipped_rules
from broadgauge.doctor.log.overview import job_overview
from broadgauge.doctor.log.path_matrix import path_matrix
from broadgauge.doctor.log.prefix import plain
from broadgauge.doctor.log.reading import read_logs, read_text
from broadgauge.doctor.log.room import MOST_RANKS

few = settings(max_examples=40, deadline=None, database=None)


@functools.cache
def real_lines() -> Sequence[bytes]:
    return sorted({line for name in NAMES for line in lines_of(name)})


def _words() -> Sequence[str]:
    parts = {part for rule in shipped_rules() for each in rule.lines for part in each.parts}
    return sorted(part for part in parts if part)


hosts = st.sampled_from(["node0", "node1", "a.b-c_d", "node10", "0node0"])
numbers = st.one_of(
    st.integers(-2, 70), st.sampled_from([2**31, 2**64, 10**30, 10**400]), st.just("²")
)
pieces = st.one_of(
    st.sampled_from(_words()),
    numbers.map(str),
    st.text(max_size=12),
    st.sampled_from(["0x", " ", ":", "[0]", "<0>", "/", "NaN", "inf", "1e999", "-1", "(", "{}"]),
)
messages = st.builds(
    lambda host, pid, level, parts: f"{host}:{pid}:7 [0] NCCL {level} {''.join(parts)}".encode(),
    hosts,
    st.integers(1, 3),
    st.sampled_from(["INFO", "WARN", "TRACE"]),
    st.lists(pieces, max_size=8),
)
any_line = st.one_of(
    st.sampled_from(real_lines()),
    messages,
    st.binary(max_size=60),
    st.text(max_size=60).map(str.encode),
)
cut_line = st.builds(
    lambda line, begin, end: line[begin:][: end or None],
    any_line,
    st.integers(0, 40),
    st.integers(0, 200),
)
logs = st.lists(st.one_of(any_line, cut_line), max_size=40).flatmap(
    lambda parts: st.sampled_from([b"\n", b"\r\n", b"\r", b""]).map(lambda end: end.join(parts))
)


def check(reading: LogReading) -> None:
    """What holds of every reading."""
    for speaker, process in reading.processes.items():
        assert process.speaker == speaker
        assert process.init_s is None or 0 <= process.init_s < float("inf")
    for communicator in reading.communicators.values():
        ranks = {rank for pair in communicator.paths for rank in pair} | set(communicator.members)
        ranks |= communicator.started | communicator.completed | set(communicator.local_ranks)
        assert all(0 <= rank < MOST_RANKS for rank in ranks)
        assert set(communicator.members.values()) <= set(reading.processes)
        assert communicator.num_ranks is None or 0 < communicator.num_ranks <= MOST_RANKS
    for seen in reading.seen:
        assert seen.count >= len(seen.lines) > 0
        assert seen.speakers <= set(reading.processes)


@few
@given(logs)
def test_any_log_is_read_and_judged(data: bytes) -> None:
    reading = read_text(data, "a.log")
    check(reading)
    assert reading.num_bytes == len(data)
    assert reading.num_lines == data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    matrix = path_matrix(reading)
    shown = (job_overview(reading).to_json(), matrix and matrix.to_json())
    found = [finding.model_dump(mode="json") for finding in log_findings(reading)]
    assert json.dumps([shown, found], allow_nan=False)


@few
@given(logs)
def test_evidence_stands_where_it_is_said_to_stand(data: bytes) -> None:
    reading = read_text(data, "a.log")
    texts = [plain(line) for line in data.split(b"\n")]
    told = [line for seen in reading.seen for line in seen.lines]
    told += [(each.place, each.text) for each in reading.unknown_warnings]
    for place, text in told:
        assert place.file == "a.log"
        if not texts[place.line - 1].startswith("{"):
            assert "***" in text or text in texts[place.line - 1]


@few
@given(logs, st.data())
@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_chunks_may_end_anywhere(block_bytes: int, data: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=20)))
    chunks = [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block_bytes)
        whole = read_text(data)
        parts = read_logs([Source("-", lambda: iter(chunks))])
    assert parts == whole


@settings(max_examples=10, deadline=None, database=None)
@given(st.permutations(range(3)), st.sampled_from(["two-nodes", "wrong-interface", "dead-peer"]))
def test_the_order_of_files_does_not_matter(order: Sequence[int], scenario: str) -> None:
    """Of three jobs, each with hosts and communicators of its own."""
    log = log_of(f"2.30.7-{scenario}").replace(b"commId 0x", b"commId 0x%d")
    jobs = [
        log.replace(b"commId 0x%d", b"commId 0x%d" % number).replace(b"node", b"n%dode" % number)
        for number in range(1, 4)
    ]
    sources = [text_source(job, f"{number}.log") for number, job in enumerate(jobs)]
    told = findings_of(read_logs(sources))
    assert findings_of(read_logs([sources[number] for number in order])) == told
