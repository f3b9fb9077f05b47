"""Where on hosts is a run's leader, for this tool and for one that comes later?"""

from dataclasses import dataclass
from pathlib import Path

from broadgauge.messages.codec import Decoder
from broadgauge.platforms.led.leader_file import LeaderFile

STATE_FILE = "leader.json"
"""In the run folder's logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderPlace:
    """A leader on a host."""

    host: str
    python: str
    folder: str
    zip_hash: str


LEADER_PLACE: Decoder[LeaderPlace] = Decoder(LeaderPlace)


def leader_file(folder: Path) -> LeaderFile[LeaderPlace]:
    """Of a run folder's logs."""
    return LeaderFile(folder / STATE_FILE, LEADER_PLACE, "end on the hosts")
