"""What does the tool hear of a leader through a stream that loses, cuts and mixes lines?"""

import os
import random
from pathlib import Path

import pytest

from broadgauge.leader.spool import Spool
from broadgauge.messages.frames import FrameWriter
from broadgauge.messages.leader import LeaderHello, TrialBegins, TrialEnds
from broadgauge.platforms.hosts import platform
from broadgauge.platforms.hosts.allocation import AttachedLeader
from broadgauge.platforms.hosts.leader_place import LeaderPlace
from broadgauge.platforms.hosts.platform import HostsLeader
from broadgauge.platforms.led import following
from broadgauge.platforms.led.following import FollowedLeader
from broadgauge.platforms.led.leader_link import ByteStream, LeaderLink

NUM_TRIALS = 40
FAULTS = ("lost", "cut", "doubled", "swapped", "interleaved")
PLACE = LeaderPlace(host="h", python="p", folder="f", zip_hash="z")


def damaged(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """A tenth of them has one of the faults that logs have."""
    found: list[bytes] = []
    for line in lines:
        fault = chance.choice(FAULTS) if chance.random() < 0.1 else None
        if fault == "doubled":
            found += [line, line]
        elif fault == "cut":
            found.append(line[: chance.randrange(len(line))] + b"\n")
        elif fault == "interleaved":
            found.append(b"a rank said something " + line)
        elif fault == "swapped" and found:
            found.insert(-1, line)
        elif fault != "lost":
            found.append(line)
    return found


class FakeLeader:
    """The events of a spool, told to whoever attaches through a stream with faults."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.spool = Spool(folder / "spool")
        self.chance = random.Random(seed)
        for number in range(NUM_TRIALS):
            self.spool.append(0, TrialBegins(trial_id=f"t{number}", unix_s=float(number)))
            self.spool.append(0, TrialEnds(trial_id=f"t{number}", unix_s=number + 0.5))
        self.num_damaged = 0

    def attach(self, place: LeaderPlace, after: int) -> AttachedLeader:
        del place
        to_tool, from_leader = os.pipe()
        devnull = os.open(os.devnull, os.O_WRONLY)
        frames = FrameWriter("leader")
        hello = LeaderHello(version="", pid=1, generation=0, next_number=self.spool.next_number)
        lines = [frames.write(spooled) for spooled in self.spool.after(after)]
        told = lines[:1] + damaged(lines[1:], self.chance)
        self.num_damaged += told != lines
        os.set_blocking(from_leader, False)
        assert os.write(from_leader, b"".join([FrameWriter("hello").write(hello), *told])) > 0
        os.close(from_leader)
        link = LeaderLink(ByteStream(reading=to_tool, writing=devnull), after)
        link.wait_for_hello(1)
        return AttachedToNothing(process=None, link=link)  # type: ignore[arg-type]


class AttachedToNothing(AttachedLeader):
    def close(self) -> None:
        self.link.close()


@pytest.mark.parametrize("seed", range(20))
def test_every_event_comes_once_and_in_order(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = FakeLeader(tmp_path, seed)
    said: list[str] = []
    monkeypatch.setattr(platform, "attach", leader.attach)
    monkeypatch.setattr(following, "AGAIN_AFTER_S", (0.0,))
    leading = FollowedLeader.of(HostsLeader(PLACE), -1, said.append)
    heard = [leading.receive(5) for _ in range(2 * NUM_TRIALS)]
    leading.close()
    kinds = [TrialBegins, TrialEnds]
    sent = [(kinds[i % 2], f"t{i // 2}") for i in range(2 * NUM_TRIALS)]
    trials = [each for each in heard if isinstance(each, (TrialBegins, TrialEnds))]
    assert [(type(each), each.trial_id) for each in trials] == sent
    assert leader.num_damaged > 0
    assert any("did not come" in text for text in said)
