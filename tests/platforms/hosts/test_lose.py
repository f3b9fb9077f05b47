"""Is a leader on hosts that was lost forgotten only once it is known to have ended?"""

from pathlib import Path

import pytest
from tests.platforms.launches import make_folders

from broadgauge.platforms.hosts import platform as hosts_platform
from broadgauge.platforms.hosts.leader_place import LeaderPlace, leader_file
from broadgauge.platforms.hosts.platform import HostsAllocation
from broadgauge.specs.errors import PlatformError

PLACE = LeaderPlace(host="node-a", python="python3", folder="/tmp/x", zip_hash="0")


@pytest.mark.parametrize("has_ended", [True, False])
def test_a_leader_that_may_go_on_stays_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_ended: bool
) -> None:
    """A successor on the same hosts would measure beside it."""
    monkeypatch.setattr(hosts_platform, "stop", lambda place: has_ended)
    folders = make_folders(tmp_path)
    file = leader_file(folders.logs)
    file.write(PLACE)
    allocation = HostsAllocation(folders, [], [], {})
    if has_ended:
        allocation.lose()
        assert file.read() is None
        return
    with pytest.raises(PlatformError, match="the leader on node-a was lost"):
        allocation.lose()
    assert file.read() == PLACE
