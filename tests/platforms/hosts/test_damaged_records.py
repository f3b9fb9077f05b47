"""Lines between agents, leader and tool go wrong: is every record that is written the true one?"""

import errno
import os
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.engine.making import a_plan, make_folder, trial_ids
from tests.platforms.hosts.in_process import Damage, rig_in, two_hosts
from tests.platforms.launches import make_folders

from broadgauge.engine.events import Event, PhaseBegan
from broadgauge.engine.ports import Services
from broadgauge.engine.run import run
from broadgauge.leader import tools
from broadgauge.leader.spool import Spool
from broadgauge.merging.merge import merge
from broadgauge.platforms.hosts.platform import HostsPlatform
from broadgauge.specs.machines.hosts import Host
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.record import Record
from broadgauge.specs.secrets.values import Secrets

NOT_COMPARED = {"started_unix_s", "ended_unix_s", "clocks", "launch_id", "environment"}
"""Another run has other times; a failed trial ends its launch."""
NAMED = re.compile(r"frames? (\d+)(?: to (\d+))? of (\S+) did not come")
SIZES = ["1 MiB", "2 MiB", "4 MiB"]


def plan() -> Plan:
    """9 trials in 3 launches."""
    return a_plan(
        platform="hosts",
        hosts=[{"ssh": "node0"}, {"ssh": "node1"}],
        cluster={"shapes": ["2x1"], "device": "cpu"},
        networks=[{"name": "found", "found": {"interface": "eth0"}}],
        workloads=[
            {"kind": "collectives", "name": f"w{n}", "ops": ["all_reduce"], "sizes": SIZES[:n]}
            for n in (1, 2, 3)
        ],
        launches=3,
    )


def test_every_launch_leaves_what_its_ranks_wrote_the_last_one_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(tmp_path / "run", monkeypatch)
    logs = {path.name: path.read_text() for path in (tmp_path / "run" / "logs").glob("*.log")}
    wanted = {f"b{n}.l0.rank{rank}.log" for n in range(3) for rank in (0, 1)}
    assert logs == dict.fromkeys(wanted, "its words\n")


@dataclass(frozen=True)
class Outcome:
    """What a run left, and what it said."""

    records: dict[str, Record]
    said: str
    damage: tuple[Damage, Damage]

    def figures(self, trial_id: str) -> dict[str, Any]:
        return self.records[trial_id].model_dump(exclude=NOT_COMPARED)

    def named(self) -> dict[str, list[int]]:
        """Frames that are said not to have come, by sender."""
        found: dict[str, list[int]] = {}
        told = [each.error.message for each in self.records.values() if each.error is not None]
        for first, last, sender in NAMED.findall("\n".join([self.said, *told])):
            numbers = range(int(first), int(last or first) + 1)
            found[sender] = sorted({*found.get(sender, []), *numbers})
        return found


def ran(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int = 0,
    *,
    to_tool: float = 0.0,
    hang_up: float = 0.0,
    to_leader: float = 0.0,
) -> Outcome:
    """The plan, with these shares of lines damaged."""
    chance = random.Random(seed)
    damage = (Damage(chance, to_tool, hang_up), Damage(chance, to_leader))
    said: list[str] = []

    def observe(event: Event) -> None:
        if isinstance(event, PhaseBegan):
            said.append(event.detail)

    monkeypatch.setattr(tools, "ALIVE_EVERY_S", 0.05)
    with rig_in(folder, *damage, monkeypatch), make_folder(folder, plan()) as store:
        hosts = HostsPlatform(
            make_folders(folder),
            (Host(ssh="node0"), Host(ssh="node1")),
            secrets=Secrets(),
            cases=store.plan.cases,
            facts=two_hosts(),
        )
        run(store.plan, hosts, store, Services(merger=merge, observer=observe))
        said += hosts.notes
        records = {each.record_id: each for each in store.records}
        assert len(records) == len(store.records)
    return Outcome(records=records, said="\n".join(said), damage=damage)


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Nothing went wrong."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        found = ran(tmp_path_factory.mktemp("truth") / "run", monkeypatch)
    assert list(found.records) == trial_ids(plan())
    assert {each.status for each in found.records.values()} == {"ok"}
    assert [len(each.collectives) for each in found.records.values()].count(3) == 3
    return found


def test_the_truth_is_what_the_ranks_said(truth: Outcome) -> None:
    for trial_id, record in truth.records.items():
        row = record.collectives[0]
        both = [random.Random(f"{trial_id} {rank} {row.size_bytes}") for rank in (0, 1)]
        times = [[chance.uniform(0.001, 0.002) for _ in range(3)] for chance in both]
        slowest = sorted(max(pair) for pair in zip(*times, strict=True))
        assert row.time_median_s == pytest.approx(slowest[1])


@pytest.mark.parametrize("seed", range(20))
def test_no_record_is_wrong_where_what_the_leader_says_is_damaged(
    seed: int, truth: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every event is told again until it has come, so every trial is there."""
    found = ran(tmp_path / "run", monkeypatch, seed, to_tool=0.03, hang_up=0.004)
    assert list(found.records) == list(truth.records)
    assert {each.status for each in found.records.values()} == {"ok"}
    for trial_id in truth.records:
        assert found.figures(trial_id) == truth.figures(trial_id)
    lost, named = found.damage[0].lost, found.named()
    assert lost
    assert all(set(numbers) <= set(lost[sender]) for sender, numbers in named.items())
    # Of one that hung up or had said all, nobody needs what is lost.
    assert len(lost.keys() - named.keys() - found.damage[0].hung_up) <= 1


@pytest.mark.parametrize("seed", range(4))
def test_no_record_is_wrong_where_what_an_agent_says_is_damaged(
    seed: int, truth: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TCP loses nothing, so nothing is told again: the trial fails, and says which frames."""
    found = ran(tmp_path / "run", monkeypatch, seed, to_leader=0.004)
    assert list(found.records) == list(truth.records)
    for trial_id, record in found.records.items():
        if record.status == "ok":
            assert found.figures(trial_id) == truth.figures(trial_id)
        else:
            assert "did not come" in (record.error.message if record.error else "")
    lost, named = found.damage[1].lost, found.named()
    assert named
    assert all(set(numbers) <= set(lost[sender]) for sender, numbers in named.items())


def test_a_leader_whose_disk_is_full_says_so_and_another_goes_on(
    truth: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of a trial."""
    append, told = Spool.append, [0]

    def full_at_the_fortieth(self: Spool, generation: int, event: Any) -> Any:
        told[0] += 1
        if told[0] == 40:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return append(self, generation, event)

    monkeypatch.setattr(Spool, "append", full_at_the_fortieth)
    found = ran(tmp_path / "run", monkeypatch)
    assert list(found.records) == list(truth.records)
    errors = [each.error for each in found.records.values() if each.error is not None]
    assert [error.kind for error in errors] == ["launcher_lost"]
    assert errors[0].message == f"node0: {tmp_path / 'run'}: No space left on device"
    for trial_id, record in found.records.items():
        assert record.error or found.figures(trial_id) == truth.figures(trial_id)
