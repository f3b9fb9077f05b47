"""A hang and a crash of rank 1: is rank 1 with its own line what a user reads first?

Of a user's script under torchrun, and of a training under our own launcher; both ranks on one
node, and each on its own.
"""

import re
import shutil
import sys
from pathlib import Path

import pytest
from tests.e2e.driving import only_run, records_of, run_command

EXPERIMENT = """\
name: faulty
platform: {platform}
cluster: {{shapes: [{shape}], device: cpu}}
networks: [{{name: link, rate_gbps: 1 Gbit/s}}]
limits: {{stall_s: 4 s}}
workloads:
  - kind: command
    command: [faulty_script.py, {fault}]
    metrics: [{{name: step_time_s, regex: "step took ([0-9.]+) s", skip_first: 1}}]
  - kind: train
    model: {{layers: 1, hidden: 64, heads: 2, seq_len: 32}}
    steps: 8
    block_steps: 4
    warm_up_steps: 3
    communication_off: false
launches: 3
"""
HERE = Path(__file__).parent
PLACES = {
    "command": r"faulty_script\.py:\d+ in read_next_batch",
    "train": r"\S*with_faulty_training\.py:\d+ in faulty_step",
}
FAULTS = {"hang": "hangs outside communication", "crash": "crashed"}
pytestmark = [pytest.mark.measured, pytest.mark.measuring, pytest.mark.timeout(600)]


def said(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def in_html(page: str) -> str:
    """The headline, as it is read."""
    lines = re.findall(r'<p class="headline">(.*?)</p>', page, re.DOTALL)
    return said(re.sub(r"<[^>]+>", "", " ".join(lines))).replace("&#x27;", "'")


@pytest.mark.parametrize(
    ("fault", "shape"),
    [
        pytest.param("hang", "1x2", marks=pytest.mark.slow),
        pytest.param("crash", "1x2", marks=pytest.mark.thorough),
        pytest.param("hang", "2x1", marks=[pytest.mark.thorough, pytest.mark.namespaces]),
        pytest.param("crash", "2x1", marks=[pytest.mark.slow, pytest.mark.namespaces]),
    ],
)
def test_rank_1_and_its_own_line_come_first(fault: str, shape: str, empty_folder: Path) -> None:
    shutil.copy(HERE / "faulty_script.py", empty_folder)
    platform = "emulated" if shape == "2x1" else "local"
    text = EXPERIMENT.format(platform=platform, shape=shape, fault=fault)
    (empty_folder / "e.yaml").write_text(text)
    command = (sys.executable, str(HERE / "with_faulty_training.py"), fault)
    wide = {"COLUMNS": "500"}
    ran = run_command("run", "e.yaml", folder=empty_folder, command=command, timeout_s=500, **wide)
    run = only_run(empty_folder)
    records = records_of(run)
    logs = "\n".join(path.read_text() for path in sorted((run / "logs").glob("*.log")))
    assert ran.returncode == 3, logs

    shown = said(run_command("show", "last", folder=empty_folder, **wide).stdout)
    page = in_html((run / "report.html").read_text(encoding="utf-8"))
    for workload, place in PLACES.items():
        headline = rf"rank 1 {FAULTS[fault]} at {place}"
        status = "TIMEOUT" if fault == "hang" else "FAILED"
        assert re.search(rf"{workload} \S+ [\w ]+: {status} {headline}", said(ran.stderr)), (
            ran.stderr
        )
        assert re.search(rf"its only trial failed: {headline}", said(ran.stdout)), ran.stdout
        assert len(re.findall(headline, shown)) >= 2, "in the table, and where failures are listed"
        assert re.search(headline, page), page
        of = [record for record in records if record["workload"] == workload]
        assert [r["status"] for r in of] == [status.lower(), "skipped", "skipped"]
        assert of[0]["error"]["rank"] == 1
        assert re.fullmatch(place, of[0]["error"]["frame"])
        last = of[0]["error"]["last_lines"][-1]
        assert fault == "hang" or "labels" in last
    assert "Root Cause" not in shown
