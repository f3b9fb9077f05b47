"""A hang and a crash of rank 1: is rank 1 with its own line what a user reads first?

Of a user's script under torchrun, and of a training under our own launcher; both ranks on one
node, and each on its own. Scripted ranks, which say what real ones do, show that all views tell it.
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import WITHOUT_TORCH, only_run, records_of, run_command

EXPERIMENT = """\
name: faulty
platform: {platform}
cluster: {{shapes: [{shape}], device: cpu}}
networks: [{{name: link, rate_gbps: 1 Gbit/s}}]
limits: {{stall_s: 4 s}}
launches: 3
workloads:
"""
COMMAND_WORKLOAD = """\
  - kind: command
    command: [faulty_script.py, {fault}]
    metrics: [{{name: step_time_s, regex: "step took ([0-9.]+) s", skip_first: 1}}]
"""
TRAIN_WORKLOAD = """\
  - kind: train
    model: {layers: 1, hidden: 64, heads: 2, seq_len: 32}
    steps: 8
    block_steps: 4
    warm_up_steps: 3
    communication_off: false
"""
HERE = Path(__file__).parent
PLACES = {
    "command": r"faulty_script\.py:\d+ in read_next_batch",
    "train": r"\S*with_faulty_training\.py:\d+ in faulty_step",
}
FAULTS = {"hang": "hangs outside communication", "crash": "crashed"}
WIDE = {"COLUMNS": "500"}
pytestmark = [pytest.mark.timeout(600)]


def said(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def in_html(page: str) -> str:
    """The headline, as it is read."""
    lines = re.findall(r'<p class="headline">(.*?)</p>', page, re.DOTALL)
    return said(re.sub(r"<[^>]+>", "", " ".join(lines))).replace("&#x27;", "'")


def assert_told_first(
    folder: Path, ran: Any, workload: str, headline: str, status: str
) -> dict[str, Any]:
    """By the command, by `show`, in the report and in the records. The record of what failed."""
    run = only_run(folder)
    shown = said(run_command("show", "last", "--details", folder=folder, **WIDE).stdout)
    page = in_html((run / "report.html").read_text(encoding="utf-8"))
    live = said(ran.stderr)
    assert re.search(rf"{workload} \S+ [\w ]+: {status} {headline}", live), ran.stderr
    assert re.search(rf"its only trial failed: {headline}", said(ran.stdout)), ran.stdout
    assert len(re.findall(headline, shown)) >= 2, "in the table, and where failures are listed"
    assert re.search(headline, page), page
    assert "Root Cause" not in shown
    of = [record for record in records_of(run) if record["workload"] == workload]
    assert [r["status"] for r in of] == [status.lower(), "skipped", "skipped"]
    assert of[0]["error"]["rank"] == 1
    return of[0]


def test_what_ranks_say_of_a_crash_is_told_by_all_views(empty_folder: Path) -> None:
    text = EXPERIMENT.format(platform="local", shape="1x2") + TRAIN_WORKLOAD
    (empty_folder / "e.yaml").write_text(text)
    breaks = {"BREAKS": str(empty_folder / "has said why")}
    ran = run_command("run", "e.yaml", folder=empty_folder, command=WITHOUT_TORCH, **breaks, **WIDE)
    assert ran.returncode == 3, ran.stderr
    place = r"scripted_worker\.py:\d+ in read_next_batch"
    headline = rf"rank 1 crashed at {place}"
    record = assert_told_first(empty_folder, ran, "train", headline, "FAILED")
    assert re.fullmatch(place, record["error"]["frame"])
    assert record["error"]["last_lines"][-1] == "KeyError: 'labels'"


REAL = [pytest.mark.thorough, pytest.mark.measuring]


@pytest.mark.parametrize(
    ("fault", "shape"),
    [
        pytest.param("hang", "1x2", marks=[*REAL, pytest.mark.measured]),
        pytest.param("crash", "1x2", marks=REAL),
        pytest.param("hang", "2x1", marks=[*REAL, pytest.mark.namespaces, pytest.mark.measured]),
        pytest.param("crash", "2x1", marks=[*REAL, pytest.mark.namespaces]),
    ],
)
def test_rank_1_and_its_own_line_come_first(fault: str, shape: str, empty_folder: Path) -> None:
    """A hang is told after seconds in which no rank went on: that is judged."""
    shutil.copy(HERE / "faulty_script.py", empty_folder)
    platform = "emulated" if shape == "2x1" else "local"
    text = EXPERIMENT.format(platform=platform, shape=shape)
    text += COMMAND_WORKLOAD.format(fault=fault) + TRAIN_WORKLOAD
    (empty_folder / "e.yaml").write_text(text)
    command = (sys.executable, str(HERE / "with_faulty_training.py"), fault)
    ran = run_command("run", "e.yaml", folder=empty_folder, command=command, timeout_s=500, **WIDE)
    logs = "\n".join(path.read_text() for path in sorted(only_run(empty_folder).glob("logs/*.log")))
    assert ran.returncode == 3, logs

    status = "TIMEOUT" if fault == "hang" else "FAILED"
    for workload, place in PLACES.items():
        headline = rf"rank 1 {FAULTS[fault]} at {place}"
        record = assert_told_first(empty_folder, ran, workload, headline, status)
        assert re.fullmatch(place, record["error"]["frame"])
        last = record["error"]["last_lines"][-1]
        assert fault == "hang" or "labels" in last
