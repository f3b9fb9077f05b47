"""What did a preflight find, in words, and which machines are to be left out the next time?"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from broadgauge.messages.codec import encode
from broadgauge.messages.preflight import PreflightDone
from broadgauge.platforms.launch_folders import writing
from broadgauge.wording.amounts import show_time

DETAILS_FILE = "preflight.json"
FAILING_FILE = "failing-nodes.txt"
"""One name a line; only where a node fails."""


def preflight_words(done: PreflightDone) -> Iterator[str]:
    """What was looked at, then each finding, then who is to be left out."""
    num, over = len(done.names), ", ".join(done.networks)
    machines = "1 machine" if num == 1 else f"{num} machines"
    reached = f"{done.num_calls} calls over {over}" if over else "no network between them"
    kinds = {finding.kind for finding in done.findings}
    verdict = "fails" if "fails" in kinds else "nothing fails"
    if verdict != "fails" and "unknown" in kinds:
        verdict = "nothing that was looked at fails, and not all was"
    yield f"preflight: {machines}, {reached}, in {show_time(done.lasted_s)}: {verdict}"
    for finding in done.findings:
        yield f"preflight: {finding.kind}: {finding.text}"
    if done.failing:
        yield f"preflight: it would be well without {', '.join(failing_names(done))}"


def is_well(done: PreflightDone) -> bool:
    """Nothing fails, and every machine was looked at."""
    return not done.failing and all(finding.kind != "fails" for finding in done.findings)


def failing_names(done: PreflightDone) -> tuple[str, ...]:
    """Of a smallest set of machines, as far as one was found, without which nothing would fail;
    each once, as schedulers know it."""
    return tuple(dict.fromkeys(done.names[agent] for agent in done.failing))


def write_preflight(done: PreflightDone, folder: Path) -> None:
    """All of it, and the failing nodes as a list, if there are any. Raises RunFolderError."""
    with writing(folder):
        folder.mkdir(0o700, parents=True, exist_ok=True)
    failing = folder / FAILING_FILE
    if done.failing:
        write_failing(failing_names(done), failing)
    else:
        with writing(failing):
            failing.unlink(missing_ok=True)  # of an earlier one of this run
    path = folder / DETAILS_FILE
    with writing(path):
        path.write_text(json.dumps(encode(done), indent=2) + "\n")


def write_failing(names: Sequence[str], path: Path) -> None:
    """One a line; an empty file where there are none. Raises RunFolderError."""
    with writing(path):
        path.write_text("".join(f"{name}\n" for name in names))
