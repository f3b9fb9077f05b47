"""Does a hostile log cost more than its length? Calls and memory are counted; what a single call in
C takes is judged by CPU time."""

import time
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from tests.counted_calls import counted_calls

from broadgauge.doctor.log import (
    communicators,
    gathering,
    lines,
    matching,
    nccl_tests,
    prefix,
    process_lines,
    reading,
    room,
)
from broadgauge.doctor.log.files import Source
from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.loading import shipped_rules
from broadgauge.doctor.log.matching import Matcher
from broadgauge.doctor.log.prefix import Prefixes, plain
from broadgauge.doctor.log.reading import read_logs, read_text

MORE = 8
MOST_RATIO = 28
"""Of CPU time for eight times as much: 8 where work grows as the input, 64 where as its square."""
SPOKEN = "node0:1:1 [0] NCCL INFO "


def _inits(comm: Callable[[int], str], rank: Callable[[int], int]) -> Callable[[int], str]:
    def line(i: int) -> str:
        return (
            f"{SPOKEN}ncclCommInitRank comm 0x{i:x} rank {rank(i)} nranks 64 cudaDev 0 nvmlDev 0 "
            f"busId 60 commId 0x{comm(i)} - Init START\n"
        )

    return line


LINES: dict[str, Callable[[int], str]] = {
    "speakers": lambda i: f"node{i}:{i}:1 [0] NCCL INFO Using network Socket\n",
    "speakers of one pid": lambda i: f"node{i}:7:1 [0] NCCL INFO Using network Socket\n",
    "bodies": lambda i: f"{SPOKEN}something {i} that no rule knows {i * 7}\n",
    "warnings": lambda i: f"node0:1:1 [0] a.cc:{i} NCCL WARN something {i} new\n",
    "errors": lambda i: f"{SPOKEN}Call to connect returned error {i}, retrying\n",
    "communicators": _inits(lambda i: f"{i:x}", lambda i: i % 64),
    "one communicator": _inits(lambda i: "1", lambda i: i % 64),
    "splits": lambda i: (
        f"{SPOKEN}ncclCommSplit comm 0x{i:x} rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 60 "
        f"parent 0x{i - 1:x} splitCount 1 color {i} key 0 - Init START\n"
    ),
    "unnamed": lambda i: (
        f"node0:{i}:1 [0] NCCL INFO comm 0x{i:x} rank 0 nRanks 2 nNodes 1 localRanks 2 "
        "localRank 0 MNNVL 0\n"
    ),
    "channels": lambda i: f"{SPOKEN}Channel {i % 64:02d}/0 : {i}[0] -> {i + 1}[1] via P2P/IPC\n",
    "interfaces": lambda i: f"{SPOKEN}NET/Socket : Using [0]eth{i}:192.0.2.1<0>\n",
    "variables": lambda i: f"{SPOKEN}NCCL_X{min(i, 70)} set by environment to {i}\n",
    "printed variables": lambda i: f"NCCL_X{min(i, 70)}={i}\n",
    "glued": lambda i: f"{SPOKEN}Using network Socket{SPOKEN}a" + "\n" * (i % 9 == 0),
    "rings": lambda i: f"{SPOKEN}Channel {i}/64 : 0 1 2 3 4 5 6 7\n",
    "errors of torch": lambda i: f"[rank{i}]: RuntimeError: NCCL error in: a.cpp:{i}, version 2\n",
    "CRI": lambda i: f"2026-11-23T10:00:00.{i:09d}Z stdout P NCCL INFO error {i}\n",
    "Docker": lambda i: f'{{"log":"NCCL error {i}","stream":"stdout"}}\n',
    "nested JSON": lambda i: '{"a":' * 200 + f"NCCL {i}\n",
    "progress bars": lambda i: f"\r{i}/100 NCCL\r",
    "one endless line": lambda i: f"x NCCL INFO {i} error ",
    "colours": lambda i: "\x1b[3" * 20 + "1mNCCL INFO error\n",
    "hosts": lambda i: "a" * 500 + ":1:1 NCCL INFO a\n",
    "no hosts": lambda i: ":1:1 :1:1 " * 25 + "[0] a:1 (b) NCCL INFO a\n",
    "URLs": lambda i: f"NCCL error in: {'a.' * 200}://{'b:' * 100} token key=\n",
    "tables": lambda i: f"out-of-place\n {i} {i} float sum -1 1.0 1.0 1.0 0 1.0 1.0 1.0 0\n",
}


def cpu_s(work: Callable[[], object]) -> float:
    """The best of three."""
    samples = []
    for _ in range(3):
        start = time.process_time()
        work()
        samples.append(time.process_time() - start)
    return min(samples)


@pytest.mark.parametrize("shape", LINES)
def test_eight_times_the_log_is_eight_times_the_calls(shape: str) -> None:
    few, many = ("".join(map(LINES[shape], range(n))) for n in (60, 60 * MORE))
    read_text(few)
    few_calls = counted_calls(lambda: log_findings(read_text(few)))
    assert counted_calls(lambda: log_findings(read_text(many))) <= MORE * few_calls


@pytest.mark.measured
@pytest.mark.parametrize("shape", LINES)
def test_work_grows_as_the_log(shape: str) -> None:
    line = LINES[shape]
    few, many = ("".join(map(line, range(n))) for n in (60, 60 * MORE))
    read_text(few)
    few_s = cpu_s(lambda: log_findings(read_text(few)))
    assert cpu_s(lambda: log_findings(read_text(many))) < MOST_RATIO * few_s


def hostile_bodies(length: int) -> list[str]:
    """Of each wording's words again and again, in every place but as the rule has them."""
    bodies = []
    for rule in shipped_rules():
        for wording in rule.lines:
            for part in {part for part in wording.parts if part}:
                body = wording.parts[0] + f"{part}1 " * length
                bodies.append(body[:length])
    return bodies


@pytest.mark.measured
def test_rules_work_grows_as_the_line() -> None:
    """Of 500 characters and of 4000."""
    matcher = Matcher(shipped_rules())

    def work(bodies: list[str]) -> None:
        for body in bodies:
            matcher.match_nccl(body)
            matcher.match_text(body)

    few, many = hostile_bodies(500), hostile_bodies(500 * MORE)
    few_s = cpu_s(lambda: work(few))
    assert cpu_s(lambda: work(many)) < MOST_RATIO * few_s


REPEATED = ["\x1b[", "a:1:1 ", "NCCL INFO ", "a:1:1 [0] b:2 (c) NCCL INFO "]


@pytest.mark.parametrize("text", REPEATED)
def test_eight_times_the_line_is_eight_times_the_calls(text: str) -> None:
    few, many = ((text * n).encode() for n in (200, 200 * MORE))
    few_calls = counted_calls(lambda: Prefixes().messages(plain(few)))
    assert counted_calls(lambda: Prefixes().messages(plain(many))) <= MORE * few_calls


@pytest.mark.measured
@pytest.mark.parametrize("text", REPEATED)
def test_prefixes_work_grows_as_the_line(text: str) -> None:
    few, many = ((text * n).encode() for n in (200, 200 * MORE))
    few_s = cpu_s(lambda: [Prefixes().messages(plain(few)) for _ in range(5)])
    many_s = cpu_s(lambda: [Prefixes().messages(plain(many)) for _ in range(5)])
    assert many_s < MOST_RATIO * few_s


def peak_bytes(line: Callable[[int], str], num_bytes: int) -> int:
    def chunks() -> Iterator[bytes]:
        written = number = 0
        while written < num_bytes:
            chunk = "".join(map(line, range(number, number + 50))).encode()
            yield chunk
            written, number = written + len(chunk), number + 50

    tracemalloc.start()
    try:
        read_logs([Source("-", chunks)])
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", LINES)
def test_memory_has_a_bound(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its figures are made small here, so that a small log reaches them."""
    monkeypatch.setattr(room, "MOST_FACTS", 300)
    monkeypatch.setattr(gathering, "MOST_PROCESSES", 100)
    monkeypatch.setattr(process_lines, "MOST_VARIABLES", 50)
    monkeypatch.setattr(reading, "MOST_VARIABLES", 50)
    monkeypatch.setattr(reading, "MOST_SEEN", 100)
    monkeypatch.setattr(reading, "MOST_SPEAKERS", 100)
    monkeypatch.setattr(nccl_tests, "MOST_MEASURED", 100)
    monkeypatch.setattr(communicators, "MOST_COMMUNICATORS", 100)
    monkeypatch.setattr(matching, "_MOST_REMEMBERED", 100)
    monkeypatch.setattr(prefix, "_MOST_REMEMBERED", 100)
    monkeypatch.setattr(prefix, "MOST_PROCESSES", 100)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 2**14)
    read_text("")
    once = peak_bytes(LINES[shape], 2**16)
    assert peak_bytes(LINES[shape], 2**18) < once + 2**17


def test_a_line_of_100_megabytes_is_not_held() -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield bytes(2**20)
        yield b"node0:1:1 [0] NCCL INFO Using network Socket\n"

    tracemalloc.start()
    try:
        found = read_logs([Source("-", chunks)])
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
    assert len(found.processes) == 1
