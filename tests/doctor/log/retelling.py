"""The same job's log as others would have written it down: prefixes, wrappers, several files."""

import datetime
import functools
import gzip
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.files import text_source
from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_logs, read_text

LOGS = Path(__file__).parents[1] / "machine" / "logs"
NAMES = sorted(path.name.removesuffix(".log.gz") for path in LOGS.glob("*.log.gz"))
SPEAKER = re.compile(rb"(node\d):(\d+):\d+ ")
Retelling = Callable[[Sequence[bytes]], Iterable[bytes]]


@functools.cache
def log_of(name: str) -> bytes:
    return gzip.decompress((LOGS / f"{name}.log.gz").read_bytes())


def lines_of(name: str) -> list[bytes]:
    return log_of(name).splitlines()


def each(written: Callable[[int, bytes], bytes]) -> Retelling:
    """Every line by itself, with its number."""
    return lambda lines: [written(number, line) for number, line in enumerate(lines)]


def _time(number: int) -> bytes:
    start = datetime.datetime(2026, 11, 23, 10, tzinfo=datetime.UTC)
    then = start + datetime.timedelta(microseconds=997 * number)
    return then.isoformat(timespec="microseconds").replace("+00:00", "Z").encode()


def _pieces(line: bytes) -> list[bytes]:
    """Cut before spaces: a line whose every trigger is cut is passed over, wherever that was."""
    return re.findall(rb"(?s).{1,60}\S*", line) or [b""]


def _cri(lines: Sequence[bytes]) -> Iterable[bytes]:
    """Every line in pieces, as if the runtime's buffer were small."""
    for number, line in enumerate(lines):
        pieces = _pieces(line)
        for piece in pieces[:-1]:
            yield b"%s stdout P %s" % (_time(number), piece)
        yield b"%s stdout F %s" % (_time(number), pieces[-1])


def _docker(lines: Sequence[bytes]) -> Iterable[bytes]:
    """As Go's encoder escapes it, the long ones in pieces."""
    for number, line in enumerate(lines):
        for piece in _pieces(line + b"\n"):
            entry = {
                "log": piece.decode(),
                "stream": "stderr",
                "time": _time(number).decode(),
            }
            written = json.dumps(entry, separators=(",", ":"))
            yield written.replace("<", "\\u003c").replace(">", "\\u003e").encode()


RETELLINGS: dict[str, Retelling] = {
    "kubectl timestamps": each(lambda i, line: _time(i) + b" " + line),
    "kubectl prefix": each(lambda i, line: b"[pod/train-0-x7k2p/pytorch] " + line),
    "kubectl both": each(lambda i, line: b"[pod/train-0/pytorch] " + _time(i) + b" " + line),
    "CRI": _cri,
    "Docker": _docker,
    "journalctl JSON": each(
        lambda i, line: json.dumps({"_PID": "7", "MESSAGE": line.decode()}).encode()
    ),
    "structured logger": each(
        lambda i, line: json.dumps({"level": "info", "msg": line.decode()}).encode()
    ),
    "docker compose": each(lambda i, line: b"worker-1  | " + line),
    "mpirun": each(lambda i, line: b"[1,%d]<stdout>:" % (i % 2) + line),
    "mpirun timestamps": each(lambda i, line: b"Mon Nov 23 10:00:00 2026[1,0]<stderr>:" + line),
    "srun": each(lambda i, line: b"%d: " % (i % 2) + line),
    "torchrun": each(lambda i, line: b"[rank0]:" + line if SPEAKER.match(line) else line),
    "torchrun tee": each(lambda i, line: b"[default0]:" + line),
    "journald": each(lambda i, line: b"Nov 23 10:00:00 gpu-host python3[4242]: " + line),
    "NCCL's timestamps": each(lambda i, line: b"[2026-11-23 10:00:00] " + line),
    "NCCL's milliseconds": each(lambda i, line: b"[2026-11-23 10:00:00.125] " + line),
    "times without brackets": each(lambda i, line: b"2026-11-23 10:00:00 " + line),
    "Kubeflow": each(lambda i, line: b"2026-11-23T10:00:00Z INFO     " + line),
    "Ray": each(lambda i, line: b"\x1b[36m(RayTrainWorker pid=77, ip=192.0.2.1)\x1b[0m " + line),
    "colours": each(lambda i, line: b"\x1b[1;32m" + line + b"\x1b[0m\x1b[K"),
    "colours inside": each(lambda i, line: line.replace(b"NCCL ", b"\x1b[33mNCCL\x1b[0m ")),
    "CRLF": each(lambda i, line: line + b"\r"),
    "progress bar before": each(
        lambda i, line: b"\r  0%|          | 0/100\r 50%|##### | 50/100\r" + line
    ),
    "progress bar, same line": each(
        lambda i, line: b" 50%|#####     | 50/100 [00:01<00:01]" + line
    ),
    "noise between": lambda lines: [
        part for line in lines for part in (line, b"step 12 loss 2.31 \xff\xfe tokens/s 81234")
    ],
    "empty lines": lambda lines: [part for line in lines for part in (b"", line, b"   ")],
    "invalid UTF-8 before": each(lambda i, line: b"\xff\xfe\x80 " + line),
    "NULs before": each(lambda i, line: b"\x00" * 70_000 + line if i == 5 else b"\x00\x00" + line),
    "a very long line before": each(
        lambda i, line: b"x" * 70_000 + b" " + line if i == 3 else line
    ),
}


def facts_of(reading: LogReading) -> dict[str, object]:
    """Everything but where it stands and how much there was."""
    return {
        "processes": {
            speaker: {
                name: getattr(process, name)
                for name in process.__slots__
                if name not in ("place", "last_place")
            }
            for speaker, process in reading.processes.items()
        },
        "communicators": {
            identity: {
                name: getattr(communicator, name)
                for name in communicator.__slots__
                if name not in ("place", "lines")
            }
            for identity, communicator in reading.communicators.items()
        },
        "seen": {
            (seen.rule.id, *seen.fields.values()): (seen.count, seen.speakers)
            for seen in reading.seen
        },
        "warnings": len(reading.unknown_warnings),
    }


def findings_of(reading: LogReading) -> list[tuple[str, ...]]:
    """Without evidence, which names files and lines."""
    return sorted(
        (found.rule, found.severity, found.symptom, found.cause or "", found.fix or "")
        for found in log_findings(reading)
    )


@functools.cache
def clean(name: str) -> LogReading:
    return read_text(log_of(name), "job.log")


def read_lines(lines: Iterable[bytes]) -> LogReading:
    return read_logs([text_source(b"".join(line + b"\n" for line in lines), "job.log")])
