"""What a leader keeps for a tool: from where is it read, and when does it go?"""

from pathlib import Path

import pytest

from broadgauge.leader import spool as module
from broadgauge.leader.spool import Spool
from broadgauge.messages.leader import TrialBegins


def filled(folder: Path, num_events: int) -> Spool:
    spool = Spool(folder / "spool")
    for number in range(num_events):
        spool.append(0, TrialBegins(trial_id=f"t{number}", unix_s=0.0))
    return spool


def numbers(spool: Spool, after: int) -> list[int]:
    return [spooled.number for spooled in spool.after(after)]


@pytest.mark.parametrize("after", [-1, 0, 5, 8])
def test_a_tool_gets_what_it_has_not(tmp_path: Path, after: int) -> None:
    spool = filled(tmp_path, 10)
    assert numbers(spool, after) == list(range(after + 1, 10))
    assert numbers(spool, 9) == numbers(spool, 2**62) == []


def test_what_is_stored_goes_when_it_is_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = filled(tmp_path, 10)
    spool.stored(4)
    assert numbers(spool, -1) == list(range(10))  # too little for a new file
    monkeypatch.setattr(module, "MOST_STORED_BYTES", 100)
    before = (tmp_path / "spool").stat().st_size
    spool.stored(4)
    assert numbers(spool, -1) == [5, 6, 7, 8, 9]
    assert (tmp_path / "spool").stat().st_size < before
    assert (tmp_path / "spool").stat().st_mode & 0o077 == 0
    spool.append(0, TrialBegins(trial_id="t10", unix_s=0.0))
    spool.stored(2)  # told late
    assert numbers(spool, 8) == [9, 10]
    spool.stored(10)
    assert (tmp_path / "spool").stat().st_size == 0
    spool.append(0, TrialBegins(trial_id="t11", unix_s=0.0))
    assert numbers(spool, 10) == [11]
