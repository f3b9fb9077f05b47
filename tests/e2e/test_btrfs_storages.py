"""Is a quota told that free space does not show, and a file system that compresses?

Both on real file systems, Btrfs in an image, which limits root as anybody else: mounted for the
tool alone, in a mount namespace of its own. Each way of making files is tried in tests/probes.
"""

import json
from pathlib import Path

import pytest
from tests.e2e.driving import COMMAND, only_run, records_of, run_command

from broadgauge.specs.plan import Plan

pytestmark = [pytest.mark.btrfs, pytest.mark.namespaces, pytest.mark.measuring]

MOUNTED = """\
set -e
made() {
    truncate -s 256M "$1.img"
    mkfs.btrfs --quiet "$1.img" 2>/dev/null
    mkdir "$1"
    mount -o "loop,$2" "$1.img" "$1"
}
made plain compress=no
btrfs quota enable plain
btrfs subvolume create plain/limited >/dev/null
btrfs qgroup limit 4M plain/limited
echo kept > plain/limited/theirs.txt
made compressed compress-force=zstd
set +e
"$0" "$@"
code=$?
find plain/limited compressed -mindepth 1 > left.txt
exit $code
"""
BATCHES = "{kind: storage, phase: batches, samples: 400, sample_size: 16 KiB, repetitions: 1"
EXPERIMENT = f"""\
name: btrfs
platform: local
cluster: {{shapes: [1x2], device: cpu}}
storages:
  - {{name: limited, path: plain/limited}}
  - {{name: compressed, path: compressed}}
workloads:
  - {{kind: storage, name: raw, size: 8 MiB, request: 4 KiB, repetitions: 1}}
  - {BATCHES}, name: lines}}
  - {BATCHES}, name: files, source: files, storages: [compressed]}}
  - {{kind: storage, name: small, size: 1 MiB, repetitions: 1}}
launches: 1
"""
COMPRESSING = "compressing-file-system"


def test_a_quota_and_a_compressing_file_system(tmp_path: Path) -> None:
    """A quarter of a gigabyte is free where 4 MiB may be written: only the write fails. Of base64
    three quarters are left."""
    (tmp_path / "e.yaml").write_text(EXPERIMENT)
    within = ("unshare", "--mount", "sh", "-c", MOUNTED, *COMMAND)
    ran = run_command("run", "e.yaml", folder=tmp_path, command=within)
    assert (tmp_path / "left.txt").read_text().split() == ["plain/limited/theirs.txt"], ran.stderr
    run = only_run(tmp_path)
    plan = Plan.model_validate(json.loads((run / "plan.json").read_text()))
    places = {case.key: (case.workload.name, case.network_name) for case in plan.cases}
    records = {places[record["case_key"]]: record for record in records_of(run)}
    assert len(records) == len(places), ran.stderr
    for name in ("raw", "lines"):
        error = records.pop((name, "limited"))["error"]
        assert error["kind"] == "no_space"
        assert "Disk quota exceeded: '" in error["message"]
        assert "plain/limited" in error["message"]
        assert error["message"] in ran.stdout + ran.stderr
    assert {record["status"] for record in records.values()} == {"ok"}, ran.stderr
    told = {place for place, each in records.items() if COMPRESSING in rules_of(each)}
    assert told == {("lines", "compressed")}
    (row,) = records["lines", "compressed"]["file_accesses"]
    assert 0.7 < row["held_ratio"] < 0.85
    assert row["cache"] == "cold", row["evidence"]


def rules_of(record: dict[str, list[dict[str, str]]]) -> set[str]:
    return {finding["rule"] for finding in record["findings"]}
