"""`platform: hosts`: do ranks on two machines measure a storage that both see, and one that each
has for itself, and leave nothing on either?"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import wait_until
from tests.platforms.hosts.machines import HANG_S, TOOL, Started, Tool, host
from tests.platforms.hosts.rig import SHARED, TEMPORARY

from broadgauge.probes.storage.throttle import PREFIX, block_hierarchy, disk_of, throttled
from broadgauge.probes.trial import RefusedError
from broadgauge.specs.workloads.workload import GptModel

pytestmark = [
    *(pytest.mark.root, pytest.mark.namespaces, pytest.mark.sshd),
    *(pytest.mark.measuring, pytest.mark.slow),
]

SIZE = 4 << 20
ON_ONE = "/run/only-there"
"""Of node0 alone."""
READ_RATES = "blkio.throttle.read_bps_device"
RATES = {"read_byte_per_s": 400_000_000, "write_byte_per_s": 4_000_000}
MODEL = "{layers: 2, hidden: 128, heads: 2, vocabulary: 512, seq_len: 64}"
MODEL_BYTES = 2 * GptModel(layers=2, hidden=128, heads=2, vocabulary=512, seq_len=64).parameters
SAMPLES_BYTES = 64 * 4096
EXPERIMENT = f"""\
name: storages
platform: hosts
hosts: [{host("node0")}, {host("node1")}]
cluster: {{shapes: [2x1], device: cpu}}
networks: [{{name: data, found: {{interface: eth0}}}}]
storages:
  - {{name: shared, path: {SHARED}/files}}
  - {{name: own, path: {TEMPORARY}}}
  - {{name: slow, path: {SHARED}/files, emulated: {{read: 400 MB/s, write: 4 MB/s}}}}
  - {{name: on-one, path: {ON_ONE}}}
workloads:
  - {{kind: storage, phase: raw, name: raw, size: 4 MiB, repetitions: 1,
     storages: [shared, own, slow]}}
  - {{kind: storage, phase: load, name: load, model: MODEL, repetitions: 1,
     storages: [shared, own]}}
  - {{kind: storage, phase: batches, name: batches, source: files, samples: 64, sample_size: 4 KiB,
     workers: 1, repetitions: 1, storages: [shared, own]}}
  - {{kind: storage, phase: checkpoint, name: saved, model: MODEL, repetitions: 1,
     storages: [shared, own]}}
  - {{kind: storage, phase: raw, name: missed, size: 1 MiB, repetitions: 1, storages: [on-one]}}
launches: 1
""".replace("MODEL", MODEL)


@pytest.fixture
def shared(tool: Tool) -> Iterator[Path]:
    """As this machine sees what both hosts do; node0 has a folder more."""
    folder = tool.machines.folder / "files"
    folder.mkdir()
    (folder / "theirs.txt").write_text("kept")
    tool.machines.on("node0", "mkdir", ON_ONE)
    yield folder
    assert [path.name for path in folder.iterdir()] == ["theirs.txt"]
    tool.machines.on("node0", "rmdir", ON_ONE)  # which must be empty


def test_each_phase_on_what_hosts_share_and_on_what_is_their_own(tool: Tool, shared: Path) -> None:
    is_throttled = can_throttle(shared)
    tool.write(EXPERIMENT)
    started = tool.start("run", "e.yaml", command=TOOL)
    if is_throttled:
        assert_is_throttled(tool, started, disk_of(shared))
    said = started.end(None)
    records = {(each["workload"], each["network"].split(", ")[1]): each for each in tool.records}
    assert len(records) == 10, said
    check_refused(records, said, is_throttled=is_throttled)
    check_raw(records.pop(("raw", "shared")))
    check_raw(records.pop(("raw", "own")), cache="warm")
    for where, cache in (("shared", None), ("own", "warm")):
        (loaded,) = accesses(records.pop(("load", where)), cache)
        assert MODEL_BYTES <= loaded["size_bytes"] < 1.5 * MODEL_BYTES
        (epoch,) = accesses(records.pop(("batches", where)), cache)
        assert epoch["size_bytes"] == SAMPLES_BYTES
    (saved,) = accesses(records.pop(("saved", "shared")))
    assert saved["size_bytes"] >= 6 * MODEL_BYTES
    assert records == {}


def check_refused(
    records: dict[tuple[str, str], dict[str, Any]], said: str, *, is_throttled: bool
) -> None:
    """And takes them out: nobody could load the one, and the others are not on every host."""
    message = refused(records.pop(("saved", "own")), said)
    assert f"nodes do not share {TEMPORARY}: each would hold a part of the checkpoint" in message
    message = refused(records.pop(("missed", "on-one")), said)
    assert (
        message == f"rank 1: the storage's `path` {ON_ONE} is not there on node1: make it, or "
        "mount it"
    )
    slow = records.pop(("raw", "slow"))
    if is_throttled:
        check_raw(slow)
    else:
        assert "storage `slow` can't be throttled: " in refused(slow, said)


def refused(record: dict[str, Any], said: str) -> str:
    """Its message, which the terminal shows, too."""
    assert record["status"] == "failed"
    assert record["error"]["kind"] == "refused"
    message: str = record["error"]["message"]
    assert message in said
    return message


def check_raw(record: dict[str, Any], cache: str | None = None) -> None:
    write, read = accesses(record, None)
    assert [each["size_bytes"] for each in (write, read)] == [2 * SIZE, 2 * SIZE]
    assert [each["operations"] for each in (write, read)] == [8, 8]
    assert cache in (None, read["cache"])


def accesses(record: dict[str, Any], cache: str | None = None) -> list[dict[str, Any]]:
    """`cache`: what each found; None: not said here."""
    assert record["status"] == "ok", record["error"]
    found: list[dict[str, Any]] = record["file_accesses"]
    for each in found:
        assert sum(each["parts_s"].values()) == pytest.approx(each["time_s"])
        assert cache in (None, each["cache"])
    return found


def can_throttle(folder: Path) -> bool:
    """Root by ssh can what root can here."""
    try:
        with throttled(folder, "try-on-hosts", **RATES):
            return True
    except RefusedError:
        return False


def assert_is_throttled(tool: Tool, started: Started, disk: str) -> None:
    """Ranks of each host are in a group of their own, which has the rates of this disk: the
    machines of the rig stand on one."""

    def groups() -> set[Path]:
        found = set()
        for each in tool.machines.processes("broadgauge.zip worker"):
            with suppress(OSError):  # it has ended
                for line in Path(f"/proc/{each.pid}/cgroup").read_text().splitlines():
                    if f"/{PREFIX}" in line:
                        found.add(block_hierarchy() / line.split(":", 2)[2].lstrip("/"))
        return found

    seen: list[str] = []

    def is_throttled() -> bool:
        with suppress(OSError):  # they have left it
            seen[:] = [(each / READ_RATES).read_text().strip() for each in groups()]
        return len(seen) == 2 or started.process.poll() is not None

    wait_until(is_throttled, HANG_S)
    assert seen == [f"{disk} {RATES['read_byte_per_s']}"] * 2, started.said
