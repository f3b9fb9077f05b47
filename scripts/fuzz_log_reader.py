"""Does any input make the reader of logs crash, or work far longer than its length explains?

Coverage-guided, by atheris in an environment of its own: `make fuzz`, `make fuzz FUZZ_S=60`. What
reached something new is kept in .fuzz/corpus, what fails in .fuzz/crash-*. An ordinary test replays
tests/doctor/log/corpus; `--keep` minimises into it.
"""

import argparse
import gzip
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "tests/doctor/log/corpus"
LOGS = ROOT / "tests/doctor/machine/logs"
LINES = ROOT / "tests/doctor/rules/lines"
FOUND = ROOT / ".fuzz"
MOST_BYTES = 4096
MOST_KEPT_BYTES = 200_000
TraceFunction = Callable[[FrameType, str, Any], Any]
SLOWEST_RATIO = 40
"""Of an input's CPU time to that of MOST_BYTES of an ordinary log. A short input has as much: each
reading costs something of its own."""


def read(data: bytes) -> None:
    """All that `broadgauge doctor --log --json` does with a log."""
    from broadgauge.doctor.log.findings import log_findings
    from broadgauge.doctor.log.overview import job_overview
    from broadgauge.doctor.log.path_matrix import path_matrix
    from broadgauge.doctor.log.reading import read_text

    reading = read_text(data, "fuzz.log")
    found = [finding.model_dump(mode="json") for finding in log_findings(reading)]
    matrix = path_matrix(reading)
    document = (found, job_overview(reading).to_json(), matrix and matrix.to_json())
    json.dumps(document, allow_nan=False, ensure_ascii=False)


def cpu_s(data: bytes) -> float:
    start = time.process_time()
    read(data)
    return time.process_time() - start


class SlowInputError(Exception):
    """Too much work for so few bytes."""


class Judge:
    """Reads an input; the machine's speed is measured with an ordinary log, first and now and
    then."""

    def __init__(self) -> None:
        self._ordinary = gzip.decompress((LOGS / "2.28.9-nvlink.log.gz").read_bytes())[:MOST_BYTES]
        read(self._ordinary)
        self.usual_s = self._measured()

    def _measured(self) -> float:
        return sorted(cpu_s(self._ordinary) for _ in range(9))[4]

    def __call__(self, data: bytes) -> None:
        """Raises SlowInputError where it is slow in each of three readings."""
        if cpu_s(data) <= SLOWEST_RATIO * self.usual_s:
            return
        self.usual_s = self._measured()
        ratio = min(cpu_s(data) for _ in range(3)) / self.usual_s
        if ratio > SLOWEST_RATIO:
            raise SlowInputError(f"{len(data)} bytes take {ratio:.0f} times as long as a usual log")


def seeds() -> Iterator[bytes]:
    """Parts of real logs, and of the lines that prove the rules."""
    for path in sorted(LOGS.glob("*.log.gz")):
        data = gzip.decompress(path.read_bytes())
        yield data[:MOST_BYTES]
        yield data[-MOST_BYTES:]
    for path in sorted(LINES.glob("*.yaml")):
        for line in path.read_bytes().splitlines():
            if b"line:" in line:
                yield b"node0:1:1 [0] NCCL INFO " + line.partition(b"line:")[2].strip(b" '\"")


def fuzz(seconds: int) -> None:
    """Ends at the first failure, with its input in .fuzz. Hands over to libFuzzer, which does not
    return."""
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["broadgauge.doctor"]):
        read(b"")
    folder = FOUND / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds()):
        (folder / f"seed-{number}").write_bytes(data)
    write_words()
    atheris.Setup(
        [
            sys.argv[0],
            str(folder),
            str(CORPUS),
            f"-max_total_time={seconds}",
            f"-max_len={MOST_BYTES}",
            f"-artifact_prefix={FOUND}/",
            f"-dict={FOUND / 'words'}",
            "-timeout=60",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
        ],
        Judge(),
    )
    atheris.Fuzz()


def keep() -> None:
    """Of what was found each input, the smallest first, that goes a way no smaller one goes."""
    paths = [*(FOUND / "corpus").iterdir(), *CORPUS.iterdir()]
    found = sorted({path.read_bytes() for path in paths}, key=lambda data: (len(data), data))
    for path in CORPUS.iterdir():
        path.unlink()
    known: set[Step] = set()
    num_bytes = 0
    for data in found:
        steps = steps_of(data)
        if steps <= known or num_bytes + len(data) > MOST_KEPT_BYTES:
            continue
        known |= steps
        num_bytes += len(data)
        (CORPUS / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)
    print(f"{len(list(CORPUS.iterdir()))} inputs of {num_bytes} bytes, {len(known)} steps")


Step = tuple[str, int, int, int]
"""File, line, the line that was executed next, and how often, as a power of two."""


def steps_of(data: bytes) -> frozenset[Step]:
    """The reader's steps from line to line."""
    counts: Counter[tuple[str, int, int]] = Counter()
    last: dict[FrameType, int] = {}

    def trace(frame: FrameType, event: str, _: object) -> TraceFunction | None:
        if "/doctor/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            counts[frame.f_code.co_filename, last.get(frame, 0), frame.f_lineno] += 1
            last[frame] = frame.f_lineno
        elif event == "return":
            last.pop(frame, None)
        return trace

    sys.settrace(trace)
    try:
        read(data)
    finally:
        sys.settrace(None)
    return frozenset((*step, count.bit_length()) for step, count in counts.items())


def write_words() -> None:
    """Words of the rules, one a line, as libFuzzer's dictionaries have them."""
    from broadgauge.doctor.log.loading import shipped_rules

    words = {part for rule in shipped_rules() for wording in rule.lines for part in wording.parts}
    quoted = (
        "".join(c if c.isalnum() or c in " /:.," else f"\\x{ord(c):02x}" for c in word)
        for word in sorted(words)
        if 2 < len(word) < 60 and word.isascii()
    )
    (FOUND / "words").write_text("".join(f'"{word}"\n' for word in quoted))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--keep", action="store_true", help="minimise what was found into CORPUS")
    options = parser.parse_args()
    if options.keep:
        keep()
    else:
        fuzz(options.seconds)


if __name__ == "__main__":
    main()
